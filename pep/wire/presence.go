package wire

import "errors"

// AppendPresence appends a <presence/> of the service; kind is its type, ""
// for an available one.
func AppendPresence(dst []byte, from, to, kind string) []byte {
	dst = appendAttrIf(append(dst, "<presence"...), "type", kind)
	return append(appendAttr(appendAttr(dst, "from", from), "to", to), "/>"...)
}

// BounceCondition returns the condition (RFC 6120 §8.3.3) of a <message/> of
// type error, or "" if raw is none that can be read.
func BounceCondition(raw []byte) string {
	_, err := decodeStanza(raw, "message")
	var bounce *StanzaError
	if !errors.As(err, &bounce) {
		return ""
	}
	return bounce.Condition
}
