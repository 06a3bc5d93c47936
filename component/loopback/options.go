package loopback

import "errors"

// Defaults of [Options].
const (
	DefaultDomain            = "localhost"
	DefaultComponent         = "vault.localhost"
	DefaultSecret            = "secret"
	DefaultStanzaLimit       = 512 << 10
	DefaultDeviceStanzaLimit = 256 << 10
	DefaultBufferLimit       = 32 << 20
)

var (
	// ErrClosed says that the host or the device is closed.
	ErrClosed = errors.New("closed")
	// ErrOverflow says that a device had more waiting than
	// [Options.BufferLimit], so the host cut it off.
	ErrOverflow = errors.New("device reads too slowly")
	// ErrReplaced says that another device connected with the same full JID.
	ErrReplaced = errors.New("replaced by a new connection")
	// ErrBadStanza says that a device sent what no client could send: not one
	// well-formed iq, message or presence within the limit.
	ErrBadStanza = errors.New("bad stanza")
	// ErrDetached says that no component is attached.
	ErrDetached = errors.New("no component is attached")
)

// Options say what host to start. The zero value is complete.
type Options struct {
	Domain    string // of the accounts; default "localhost"
	Component string // domain of the component; default "vault.localhost"
	Secret    string // of the handshake; default "secret"

	// StanzaLimit is the largest stanza, in bytes, that the component may
	// send; a larger one ends the stream. Default 512 KiB.
	StanzaLimit int
	// DeviceStanzaLimit is the largest stanza that a device may send, before
	// the host escapes it. Default 256 KiB.
	DeviceStanzaLimit int
	// BufferLimit is how many bytes wait at most for one device that does not
	// read, and for a component that does not: beyond it the device, or the
	// stream, is cut off. Default 32 MiB.
	BufferLimit int
	// ReadBuffer is the size of the kernel's receive buffer of the component's
	// socket, so that a stalled host pushes back early. 0 leaves the default.
	ReadBuffer int

	// Seed makes attribute order and stream ids repeatable. 0 = random.
	Seed uint64
	// Fast carries stanzas as they came, with `from` stamped but not written
	// anew and not checked for being well-formed. For benchmarks.
	Fast bool
	// Trace is told all that happens. It is called from several goroutines at
	// once, must not block, and must not keep Raw without copying it.
	Trace func(Event)
}

func (o Options) withDefaults() Options {
	setDefault(&o.Domain, DefaultDomain)
	setDefault(&o.Component, DefaultComponent)
	setDefault(&o.Secret, DefaultSecret)
	setDefault(&o.StanzaLimit, DefaultStanzaLimit)
	setDefault(&o.DeviceStanzaLimit, DefaultDeviceStanzaLimit)
	setDefault(&o.BufferLimit, DefaultBufferLimit)
	return o
}

func setDefault[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

// Direction says which way a stanza goes.
type Direction int

const (
	ToComponent   Direction = iota // from a device, or from the host itself
	FromComponent                  // from the component
)

// Event is one line of what happened.
type Event struct {
	// What is "sent" (to the component), "received" (from it), or a word about
	// the stream: "listening", "refused", "connected", "attached", "detached",
	// "stalled", "resumed", "down", "up".
	What   string
	Detail string
	Raw    []byte // the stanza of sent and received
}

// Stats counts what the host did since it started.
type Stats struct {
	FromComponent int64 // stanzas
	ToComponent   int64 // stanzas
	Vanished      int64 // for a gone resource or an account without one, without an answer
	Bounced       int64 // answered with an error by the host
	Misplaced     int64 // top-level stanzas in jabber:client, which Prosody does not route
}

// Intercept sees each stanza on its way and says what goes on in its place:
// the stanza itself, none, or several. It is called by the goroutine that
// brings the stanza (one for all of [FromComponent]) and must not block.
// s.Raw is lent: clone the stanza to keep it. Answers of the host itself are
// not shown.
type Intercept func(dir Direction, s Stanza) []Stanza
