package link

// Namespaces of the stream and of its stanzas.
const (
	NSComponent = "jabber:component:accept"
	NSStream    = "http://etherx.jabber.org/streams"
)

// Limits bound what one stanza may cost before it is skipped.
type Limits struct {
	Bytes int // the whole element; default 2 MiB
	Depth int // levels of elements, the stanza itself being the first; default 128
	Tag   int // the stanza's start tag; default 64 KiB
}

func (l Limits) complete() Limits {
	orDefault(&l.Bytes, 2<<20)
	orDefault(&l.Depth, 128)
	orDefault(&l.Tag, 64<<10)
	l.Tag = min(l.Tag, l.Bytes)
	return l
}

// Reason says why a stanza was skipped.
type Reason uint8

// The reasons. A stanza that was not skipped has Whole.
const (
	Whole     Reason = iota
	TooBig           // longer than Limits.Bytes
	TooDeep          // deeper than Limits.Depth
	HugeStart        // its start tag is longer than Limits.Tag; attributes may be missing
)

// String is the reason in words, for logs and error texts.
func (r Reason) String() string {
	return [...]string{"whole", "too big", "too deep", "huge start tag"}[r]
}

// Name is the name of an element with its namespace.
type Name struct{ Space, Local string }

// Stanza is one depth-1 element of the stream, with what its start tag says.
// Attributes are unescaped, otherwise verbatim (white space in them is not
// normalised: an answer must carry the id as it came); a missing one is "".
type Stanza struct {
	Name             Name // Local is iq, message or presence for all that a Handler gets
	Type, From, To   string
	ID, Lang         string
	Child, Grand     Name   // the first child element and its first child; zero: none, or not seen before a limit
	Raw              []byte // the whole element as it came, owned by the receiver; nil if skipped
	Skipped          Reason // Whole, or why Raw is nil
	Offset, RawBytes int64  // where in the stream it began (after the handshake), and its length, skipped or not
}

// IsAnswer tells whether s is an IQ that must never be answered.
func (s *Stanza) IsAnswer() bool {
	return s.Name.Local == "iq" && (s.Type == "result" || s.Type == "error")
}
