package wire

import (
	"encoding/base64"
	"strconv"

	"pepvault/pep"
	"pepvault/vault"
)

// resets are the reasons of a pass through the whole vault (PROTOCOL §7).
var resets = map[vault.Reset]string{
	vault.ResetNew:    "new",
	vault.ResetPruned: "pruned",
	vault.ResetEnded:  "ended",
	vault.ResetLost:   "lost",
}

func decodeSync(e *element, _ extensions) (Call, error) {
	node, err := nodeOf(e)
	switch {
	case err != nil:
		return nil, err
	case !e.empty():
		return nil, pep.Refuse(pep.ErrBadRequest, "<sync/> is empty in a request")
	}
	op := pep.Sync{Node: node, Cursor: e.attr("cursor")}
	if err := decodeBounds(e, bound{"max", &op.Max}, bound{"max-bytes", &op.Bytes}); err != nil {
		return nil, err
	}
	return op, nil
}

// bound is an attribute that bounds something, and may be left out.
type bound struct {
	attr string
	to   *int
}

func decodeBounds(e *element, bounds ...bound) (err error) {
	for _, b := range bounds {
		if !e.has(b.attr) {
			continue
		}
		if *b.to, err = decodeMax(e.attr(b.attr)); err != nil || *b.to == 0 {
			return pep.Refuse(pep.ErrBadRequest, "%s is a number from 1", b.attr)
		}
	}
	return nil
}

func appendSyncResult(dst []byte, _ string, answer any) ([]byte, bool) {
	page, ok := answer.(pep.SyncPage)
	if !ok {
		return dst, false
	}
	dst = appendAttr(append(dst, "<sync xmlns='"+nsSync+"'"...), "owner", string(page.Owner))
	dst = appendAttr(appendAttr(dst, "node", page.Node), "cursor", page.Cursor)
	dst = appendAttr(dst, "more", strconv.FormatBool(page.More))
	dst = appendAttr(dst, "records", strconv.Itoa(page.Records))
	dst = appendReset(dst, page.Reset, page.Fork)
	if page.First {
		dst = appendAttr(dst, "first", "true")
	}
	if len(page.Changes) == 0 {
		return append(dst, "/>"...), true
	}
	return append(appendChanges(append(dst, '>'), page.Changes), "</sync>"...), true
}

func appendReset(dst []byte, reset vault.Reset, fork vault.Revision) []byte {
	if reset != vault.NoReset {
		dst = appendAttr(dst, "reset", resets[reset])
	}
	if reset == vault.ResetLost {
		dst = appendAttr(dst, "fork", fork.String())
	}
	return dst
}

// appendChanges appends records with their revisions, and removals.
func appendChanges(dst []byte, changes []vault.Change) []byte {
	for i := range changes {
		c := &changes[i]
		if c.Gone {
			dst = appendAttr(append(dst, "<retract"...), "id", c.ID)
			dst = append(appendAttr(dst, "revision", c.Revision.String()), "/>"...)
			continue
		}
		dst = appendAttr(append(dst, "<item"...), "id", c.ID)
		dst = appendAttr(dst, "revision", c.Revision.String())
		if c.RotatedFrom > 0 {
			dst = appendAttr(dst, "rotated-from", c.RotatedFrom.String())
		}
		if c.Payload.Form == vault.Native {
			dst = appendAttr(dst, "key-version", strconv.FormatUint(uint64(c.KeyVersion), 10))
			dst = base64.StdEncoding.AppendEncode(append(dst, '>'), c.Payload.Data)
		} else {
			dst = append(append(dst, '>'), c.Payload.Data...)
		}
		dst = append(dst, "</item>"...)
	}
	return dst
}

func askSync(call Call) (kind string, ask func(dst []byte) []byte) {
	op, ok := call.(pep.Sync)
	if !ok {
		return "", nil
	}
	return "get", func(dst []byte) []byte {
		dst = appendAttr(append(dst, "<sync xmlns='"+nsSync+"'"...), "node", op.Node)
		dst = appendAttrIf(dst, "cursor", op.Cursor)
		dst = appendBound(appendBound(dst, "max", op.Max), "max-bytes", op.Bytes)
		return append(dst, "/>"...)
	}
}

func appendBound(dst []byte, attr string, n int) []byte {
	if n == 0 {
		return dst
	}
	return appendAttr(dst, attr, strconv.Itoa(n))
}

func decodeSyncReply(iq *element, call Call) (any, error) {
	if _, ok := call.(pep.Sync); !ok {
		return nil, nil
	}
	e, err := within(iq, name{nsSync, "sync"})
	if err != nil {
		return nil, err
	}
	page := pep.SyncPage{
		Owner: vault.Account(e.attr("owner")), Node: e.attr("node"), Cursor: e.attr("cursor"),
		More: e.attr("more") == "true",
	}
	records, isCount := parseCount(e.attr("records"), 1<<31-1)
	if page.Cursor == "" || !isCount {
		return nil, badReply("<sync/> without a cursor or a count")
	}
	page.Records = int(records)
	if err := decodePass(e, &page); err != nil {
		return nil, err
	}
	return page, nil
}

// decodePass reads what a page of a sync and a chunk share: its pass, and the
// changes.
func decodePass(e *element, page *pep.SyncPage) (err error) {
	page.First = e.attr("first") == "true"
	if page.Reset, page.Fork, err = decodeReset(e); err != nil {
		return err
	}
	for _, c := range e.children {
		change, err := decodeChange(c)
		if err != nil {
			return err
		}
		page.Changes = append(page.Changes, change)
	}
	return nil
}

func decodeReset(e *element) (vault.Reset, vault.Revision, error) {
	if !e.has("reset") {
		return vault.NoReset, 0, nil
	}
	for reset, word := range resets {
		if e.attr("reset") != word {
			continue
		}
		if reset != vault.ResetLost {
			return reset, 0, nil
		}
		fork, ok := parseCount(e.attr("fork"), 1<<63)
		if !ok {
			return 0, 0, badReply("a lost pass without its fork")
		}
		return reset, vault.Revision(fork), nil
	}
	return 0, 0, badReply("reset is %q", e.attr("reset"))
}

// decodeChange reads what appendChanges writes.
func decodeChange(e *element) (vault.Change, error) {
	revision, ok := parseCount(e.attr("revision"), 1<<63)
	if !ok || e.attr("id") == "" {
		return vault.Change{}, badReply("a change without id or revision")
	}
	c := vault.Change{Record: vault.Record{ID: e.attr("id"), Revision: vault.Revision(revision)}}
	switch {
	case e.name == name{nsSync, "retract"}:
		c.Gone = true
		return c, nil
	case e.name != name{nsSync, "item"}:
		return vault.Change{}, badReply("a <%s/> among the changes", e.name.local)
	}
	if e.has("rotated-from") {
		from, ok := parseCount(e.attr("rotated-from"), 1<<63)
		if !ok {
			return vault.Change{}, badReply("rotated-from is %q", e.attr("rotated-from"))
		}
		c.RotatedFrom = vault.Revision(from)
	}
	if len(e.payloads) > 0 {
		c.KeyVersion, c.Payload = e.payloads[0].keyVersion, e.payloads[0].payload
		return c, nil
	}
	keyVersion, ok := parseCount(e.attr("key-version"), vault.MaxKeyVersion)
	data, isBase64 := decodeBase64(e.text)
	if !ok || !isBase64 {
		return vault.Change{}, badReply("a record without key version or ciphertext")
	}
	c.KeyVersion, c.Payload = uint32(keyVersion), vault.Payload{Form: vault.Native, Data: data}
	return c, nil
}
