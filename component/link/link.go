package link

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"mellium.im/xmpp/jid"
)

// What ends a connection or an expectation, beside the errors of the network
// and mellium's stream.Error (what the host said in `<stream:error/>`).
var (
	// ErrStreamEnd: the host closed the stream in order.
	ErrStreamEnd = errors.New("the host closed the stream")
	// ErrHalfOpen: the host sent nothing, not even the answer to a ping.
	ErrHalfOpen = errors.New("the host does not answer")
	// ErrNotWellFormed: the host sent what can't be framed.
	ErrNotWellFormed = errors.New("not well-formed")
	// ErrDetached: there is no connection (any more) that could bring the answer.
	ErrDetached = errors.New("not attached to the host")
	// ErrNoAnswer: an expected answer did not come in time.
	ErrNoAnswer = errors.New("no answer")
	// ErrNotTaken: Options.Send refused the stanza.
	ErrNotTaken = errors.New("the queue did not take the stanza")
)

// Handler gets what the host sends. All calls come one after the other from
// the goroutine of [Link.Run].
type Handler interface {
	// Attached: the handshake is done; Stanza and Detached follow. It must not
	// block. ctx ends with the connection.
	Attached(ctx context.Context, s Stream)
	// Stanza: an IQ get or set, a message or a presence. Nothing more is read
	// until it returns: blocking here is how a reader pauses, and ctx ends with
	// the connection. Results and errors of IQs never come here (see Expect).
	Stanza(ctx context.Context, s Stanza)
	// Detached: the connection of the last Attached is gone, and its writer has
	// returned.
	Detached(err error)
}

// Stream tells of the stream that was just opened.
type Stream struct {
	// Header is the host's stream start tag: a decoder primed with it reads
	// every Stanza.Raw with the right namespaces.
	Header string
	// ID is the host's id of the stream.
	ID string
}

// Link is the connection to the host. Its methods may be called by any
// goroutine at any time.
type Link struct {
	opts    Options
	addr    jid.JID
	handler Handler

	answers  answers
	attaches atomic.Uint64
	born     time.Time
	heard    atomic.Int64         // nanoseconds since born
	told     map[string]time.Time // of Run alone: failures logged since the last connection

	mu    sync.Mutex
	state state
}

// New checks the options; the error names all their faults. It does not
// connect yet.
func New(opts Options, h Handler) (*Link, error) {
	opts, addr, err := opts.complete()
	if err != nil {
		return nil, err
	}
	return &Link{opts: opts, born: time.Now(), addr: addr, handler: h, told: map[string]time.Time{}, state: state{reason: "connecting"}}, nil
}

// JID is the component's domain as it stands in `from`.
func (l *Link) JID() string { return l.opts.JID }

// State tells whether the stream is up, and if not, why, in one line.
func (l *Link) State() (attached bool, reason string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.state.attached, l.state.reason
}

// Reconnects counts the attaches after the first.
func (l *Link) Reconnects() uint64 { return max(l.attaches.Load(), 1) - 1 }

// Heard is when anything was read from the host last, on any connection; when
// the Link was made, if nothing was.
func (l *Link) Heard() time.Time { return l.born.Add(time.Duration(l.heard.Load())) }
