package wire

import (
	"strconv"

	"pepvault/pep"
	"pepvault/vault"
)

// decodeExpect reads what a change relies on (PROTOCOL §8).
func decodeExpect(e *element) (*pep.Expect, error) {
	x := pep.Expect{Cursor: e.attr("cursor")}
	if x.Cursor == "" || e.mixed() {
		return nil, pep.Refuse(pep.ErrBadRequest, "<expect/> names a cursor, and items")
	}
	ids := make([]string, 0, len(e.children))
	for _, c := range e.children {
		revision, ok := parseCount(c.attr("revision"), 1<<63)
		if c.name != (name{nsSync, "item"}) || !c.empty() || !ok {
			return nil, pep.Refuse(pep.ErrBadRequest, "<expect/> holds empty items with an id and a revision")
		}
		if err := checkName("record id", c.attr("id")); err != nil {
			return nil, err
		}
		ids = append(ids, c.attr("id"))
		x.Items = append(x.Items, pep.Expected{ID: c.attr("id"), Revision: vault.Revision(revision)})
	}
	return &x, checkUnique(ids)
}

func askExpect(dst []byte, x *pep.Expect) []byte {
	if x == nil {
		return dst
	}
	dst = append(appendAttr(append(dst, "<expect xmlns='"+nsSync+"'"...), "cursor", x.Cursor), '>')
	for _, item := range x.Items {
		dst = appendAttr(append(dst, "<item"...), "id", item.ID)
		dst = append(appendAttr(dst, "revision", item.Revision.String()), "/>"...)
	}
	return append(dst, "</expect>"...)
}

// appendMismatch appends what is not as a device expected it, as a condition of
// ours.
func appendMismatch(dst []byte, condition string, refusal *pep.Refusal) []byte {
	dst = append(append(append(dst, '<'), condition...), " xmlns='"+nsErrors+"'"...)
	dst = appendAttr(dst, "cursor", refusal.Cursor)
	if len(refusal.Items) == 0 {
		return append(dst, "/>"...)
	}
	dst = append(appendStateItems(append(dst, '>'), refusal.Items), "</"...)
	return append(append(dst, condition...), '>')
}

func appendStateItems(dst []byte, items []pep.StateItem) []byte {
	for _, item := range items {
		dst = appendAttr(append(dst, "<item"...), "id", item.ID)
		dst = strconv.AppendUint(append(dst, " revision='"...), uint64(item.Revision), 10)
		if item.Gone {
			dst = append(dst, "' gone='true"...)
		}
		dst = append(dst, "'/>"...)
	}
	return dst
}

// decodeStateItems reads what appendStateItems writes, in the namespace of its
// parent; false if that is something else.
func decodeStateItems(parent *element) ([]pep.StateItem, bool) {
	var items []pep.StateItem
	for _, c := range parent.children {
		revision, ok := parseCount(c.attr("revision"), 1<<63)
		if c.name != (name{parent.name.space, "item"}) || !ok {
			return nil, false
		}
		items = append(items, pep.StateItem{
			ID: c.attr("id"), Revision: vault.Revision(revision), Gone: c.attr("gone") == "true",
		})
	}
	return items, true
}
