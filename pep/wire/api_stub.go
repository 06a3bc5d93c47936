package wire

import "pepvault/pep"
import "pepvault/vault"

// ItemNames asks for the names of a vault's records by service discovery
// (XEP-0060 §5.5). Do its Items as any other operation, under the same
// rights, and answer with [ItemNamesPage].
type ItemNames struct{ Items pep.Items }

// ItemNamesPage answers [ItemNames].
type ItemNamesPage struct{ Page pep.ItemsPage }

// DecodeRequest reads one whole <iq/> of type get or set. Prefixes and default
// namespace are those of the stream (jabber:component:accept or jabber:client,
// and "stream"); raw is not kept.
//
// The error is a sentinel of package pep or a *pep.Refusal, ready for
// [AppendError].
func DecodeRequest(raw []byte, limits Limits) (Call, error) { panic("stub") }

// AppendResult appends the answer to the request with header request, from
// where that went and to where it came from. answer is any pep.Answer but
// pep.Later, or [Pong], [VersionInfo] or [ItemNamesPage]; others panic.
func AppendResult(dst []byte, request Header, answer any) []byte { panic("stub") }

// AppendError appends the error answer to the request with header request.
// Only the text of a *pep.Refusal is sent; an error that has no row in the
// table goes out as a failure of the service.
func AppendError(dst []byte, request Header, err error) []byte { panic("stub") }

// EventBody returns the content of the messages that tell of ev, in the order
// in which they must be sent (PROTOCOL §6). quiet leaves payloads out. The
// bodies may be shared by any number of [AppendMessage].
func EventBody(ev *pep.Event, quiet bool) [][]byte { panic("stub") }

// AppendMessage appends a headline with a body of [EventBody].
func AppendMessage(dst []byte, from, to, id string, body []byte) []byte { panic("stub") }

// AppendRequest appends the request for call. header.From may be "": a client's
// server stamps it. header.Name and header.Type are not read.
func AppendRequest(dst []byte, header Header, call Call) []byte { panic("stub") }

// ReadHeader reads the start tag of a stanza.
func ReadHeader(raw []byte) (Header, error) { panic("stub") }

// DecodeReply reads the <iq/> that answers call: the same values that
// [AppendResult] takes, as far as the wire carries them. An <iq/> of type error
// is a [*StanzaError].
func DecodeReply(raw []byte, call Call) (any, error) { panic("stub") }

// StanzaError is an answer of type error, or a bounced message.
type StanzaError struct {
	Type      string // auth, cancel, continue, modify or wait
	Condition string // of RFC 6120 §8.3.3
	Text      string
	Pubsub    string // the condition of XEP-0060, "" if there is none
	Feature   string // of pubsub condition "unsupported"

	Bytes, Limit int64 // of <quota-exceeded/>
	RetryAfter   int   // seconds, of <retry/>
}

func (e *StanzaError) Error() string { panic("stub") }

// Notification is one message of the service about a vault.
type Notification struct {
	Node    string
	Changes []vault.Change // as far as the message carries them
	Deleted bool
	State   *pep.State // nil if the message has none
}

// DecodeMessage reads a <message/> of the service.
func DecodeMessage(raw []byte) (Notification, error) { panic("stub") }

// ForeignPayload reads one element that stands alone and returns it in
// canonical form, with its key version. The error is as of [DecodeRequest].
func ForeignPayload(element []byte) (vault.Payload, uint32, error) { panic("stub") }
