package wire

// Header is what stands in the start tag of a stanza: attribute values with
// their references resolved, "" for what is absent.
type Header struct {
	From, To, ID string
	Type         string
	Name         string // iq, message or presence
}

// Limits bound what a request may carry.
type Limits struct {
	// RecordBytes bounds a payload: the ciphertext of a native record, the
	// canonical bytes of a foreign one. 0 = no bound.
	RecordBytes int
	// Foreign allows payloads that are not our own record element.
	Foreign bool
}

// Call is what a request asks for: a pep.Op, or [Ping], [Version],
// [ItemNames], [Command], [ListCommands], [DescribeCommands] or
// [DescribeCommand].
type Call any

// Ping asks for a sign of life (XEP-0199); [Pong] answers it.
type Ping struct{}

// Version asks which software this is (XEP-0092); [VersionInfo] answers it.
type Version struct{}

// Pong answers [Ping].
type Pong struct{}

// VersionInfo answers [Version].
type VersionInfo struct{ Name, Version string }
