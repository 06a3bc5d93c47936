package wire

// AppendPresence appends a <presence/> of the service; kind "" is available.
func AppendPresence(dst []byte, from, to, kind string) []byte {
	panic("stub")
}

// BounceCondition returns the condition (RFC 6120 §8.3.3) of a stanza of type
// error, "" if it can't be read.
func BounceCondition(raw []byte) string { panic("stub") }
