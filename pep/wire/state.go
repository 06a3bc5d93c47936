package wire

import (
	"pepvault/pep"
	"pepvault/vault"
)

// appendState appends a <state/> (PROTOCOL §6).
func appendState(dst []byte, s pep.State) []byte {
	dst = appendAttr(append(dst, "<state xmlns='"+nsSync+"'"...), "owner", string(s.Owner))
	dst = appendAttr(dst, "node", s.Node)
	dst = appendAttrIf(dst, "previous", s.Previous)
	dst = appendAttrIf(dst, "cursor", s.Cursor)
	if len(s.Items) == 0 {
		return append(dst, "/>"...)
	}
	dst = append(dst, '>')
	return append(appendStateItems(dst, s.Items), "</state>"...)
}

// decodeState reads the <state/> in parent, nil if there is none.
func decodeState(parent *element) (*pep.State, error) {
	e := parent.child(name{nsSync, "state"})
	if e == nil {
		return nil, nil
	}
	s := pep.State{
		Owner: vault.Account(e.attr("owner")), Node: e.attr("node"),
		Previous: e.attr("previous"), Cursor: e.attr("cursor"),
	}
	items, ok := decodeStateItems(e)
	if !ok {
		return nil, badReply("<state/> without a revision")
	}
	s.Items = items
	return &s, nil
}
