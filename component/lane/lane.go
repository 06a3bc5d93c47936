// Package lane queues what goes to the host and is the only one that writes
// it. Lane 0 carries small answers, events and pings, in the order in which
// they came, always first; lane 1 carries bulk, in fair turns between accounts
// and their devices, one stanza at a time, each made when its turn comes.
// Refusals of requests that got no place stand between the two, in a queue of
// their own (refusals.go), so that no flood of them takes the room of others.
//
// Queues survive a lost connection: [Writer.Serve] is called again with the
// next one and goes on, with the stanza that was cut off sent again as a whole.
// Only what the socket had already taken is gone.
package lane

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"
)

// SmallAnswer is what a request reserves for its answer: an error fits.
const SmallAnswer = 2 << 10

// Errors of Serve, Room and Drain.
var (
	// ErrDetached: nothing serves the queues, so they can't be drained.
	ErrDetached = errors.New("lane: not attached to the host")
	// ErrClosed: the stream was ended by Drain.
	ErrClosed = errors.New("lane: closed")
	// ErrUnconfirmed: the host has answered pings on this connection, and now
	// nothing comes from it.
	ErrUnconfirmed = errors.New("lane: the host confirms nothing any more")
	// ErrServing: Serve was called while an earlier call still runs.
	ErrServing = errors.New("lane: already serving")
)

// Options of a Writer; a zero value stands for the default.
type Options struct {
	// QueueBytes is the budget of all that waits: what lane 0 holds and what
	// places have reserved. Reserve refuses beyond it; lane 0 counts as full
	// (see Full) from the same size on. Default 16 MiB.
	QueueBytes int
	// RefusalBytes is the budget of Refuse, which counts for nothing else; one
	// refusal may always wait. Default QueueBytes/16, at least 64 KiB.
	RefusalBytes int
	// BatchBytes is how much goes to the connection in one write. Default 64 KiB.
	BatchBytes int
	// SendBuffer is the socket's send buffer (SO_SNDBUF): what hides there
	// can't be overtaken. Default 64 KiB; negative: left alone.
	SendBuffer int
	// WriteTimeout bounds one write: a host that reads nothing for so long
	// loses the connection. Default 30 s.
	WriteTimeout time.Duration
	// Confirm makes a ping to the host. The Writer writes it at once, behind bulk
	// or alone; done is then called with nil when the host has answered it, with
	// whatever, or with an error if the connection ends first; it does not block.
	// It may be called by any goroutine, also before Confirm returns. nil: there
	// is no window. link.Link.Ping without a limit of time is one.
	Confirm func(done func(error)) (ping []byte)
	// HostWindow is how many bytes of bulk may be under way without the host's
	// confirmation. One stanza may always go when nothing is. Default 64 KiB;
	// negative: there is no window.
	HostWindow int
	// ConfirmTimeout is how long the host may stay silent when it is pinged. If it
	// has answered before on this connection and nothing comes from it for so
	// long, Serve ends with ErrUnconfirmed. If it has never answered, or does not
	// for six times as long though it is heard of, it is one that answers no
	// pings: bulk goes to it one stanza at a time, at most 1 MiB a second, until
	// it does. Default 10 s.
	ConfirmTimeout time.Duration
	// Heard tells when anything came from the host last; it does not block. nil:
	// only answers to pings are known. link.Link.Heard is one.
	Heard func() time.Time
	// Logger hears of chunks that could not be made, and of a host that answers
	// no pings. Default: discards.
	Logger *slog.Logger
}

// Writer holds the lanes and writes them to one connection after the other.
// Its methods may be called by any goroutine; none but Serve, Drain, Room and
// Refuse blocks.
type Writer struct {
	opts Options
	wake chan struct{} // there may be something to write

	mu       sync.Mutex // never held while anything is written or made
	small    queue[[]byte]
	refusals refusals
	bulk     turns
	window   window
	made     []byte // the next bulk stanza
	making   bool
	reserved int // bytes
	places   int
	phase    phase
	serving  bool
	lost     chan struct{} // closed when the connection ends that serves now
	ended    chan struct{} // closed when Drain's end is written
	room     chan struct{} // closed, and made anew, when lane 0 stops being full
	stats    Stats
}

type phase uint8

const (
	running phase = iota
	draining
	closed
)

// bulk is a chunk that waits, with the place that it holds.
type bulk struct {
	Chunk
	held  int
	from  *round // that it was taken from
	share *share // likewise
}

// Chunk describes one stanza of bulk that is made when its turn comes.
type Chunk struct {
	// Account is who has turns by bytes, beside other accounts, with all that is
	// for its devices. "": For has turns of its own.
	Account string
	// For is the full JID that it is for, of that account. Those of an account
	// take turns in its turns; the chunks of one are sent in the order in which
	// they came.
	For string
	// Size is about how many bytes Produce will return.
	Size int
	// Remaining is about how many bytes are still to go with this chunk and those
	// of the same answer that will follow it; less than Size (0): this is all.
	// What is nearly done goes before what is not.
	Remaining int
	// Produce returns the stanza; it is called at most once, on a goroutine of
	// the Writer's, while lane 0 goes on. It may read the store; it may not wait
	// for the Writer. An answer is owed whatever happens, so it turns its own
	// errors into an error stanza; an error or a panic is only logged. No bytes:
	// nothing is sent.
	Produce func() ([]byte, error)
}

// New returns a Writer with empty lanes.
func New(opts Options) *Writer {
	orDefault(&opts.QueueBytes, 16<<20)
	orDefault(&opts.RefusalBytes, max(opts.QueueBytes/16, 64<<10))
	orDefault(&opts.BatchBytes, 64<<10)
	orDefault(&opts.SendBuffer, 64<<10)
	orDefault(&opts.WriteTimeout, 30*time.Second)
	orDefault(&opts.HostWindow, 64<<10)
	orDefault(&opts.ConfirmTimeout, 10*time.Second)
	if opts.Confirm == nil || opts.HostWindow < 0 {
		opts.HostWindow = 0
	}
	if opts.Heard == nil {
		opts.Heard = func() time.Time { return time.Time{} }
	}
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.DiscardHandler)
	}
	return &Writer{
		opts:   opts,
		wake:   make(chan struct{}, 1),
		window: window{limit: int64(opts.HostWindow), timeout: opts.ConfirmTimeout},

		refusals: refusals{limit: opts.RefusalBytes, room: make(chan struct{})},

		ended: make(chan struct{}),
		room:  make(chan struct{}),
	}
}

func orDefault[T comparable](v *T, fallback T) {
	var zero T
	if *v == zero {
		*v = fallback
	}
}

// Small queues one whole stanza that no place was reserved for (an event, a
// ping) on lane 0; the Writer owns b from then on. It is false, and b not
// queued, when the stream was ended by Drain, or when lane 0 holds twice its
// budget: who makes events waits for Room before it makes more, so that this is
// never seen.
func (w *Writer) Small(b []byte) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.phase == closed || w.stats.SmallBytes >= 2*w.opts.QueueBytes {
		w.stats.Dropped++
		return false
	}
	w.push(b)
	return true
}

// Bulk queues a chunk on lane 1 with a place of SmallAnswer bytes that it takes
// itself; false if there is none.
func (w *Writer) Bulk(c Chunk) bool {
	p, ok := w.Reserve(SmallAnswer)
	return ok && p.Bulk(c)
}

// Reserve takes n bytes of the budget for an answer to come, or says that they
// are not there. A request is taken only with a place.
func (w *Writer) Reserve(n int) (*Place, bool) { return w.reserve(n, 0) }

// ReserveMore is Reserve for somebody who has places already: it leaves an
// eighth of the budget to those who have none.
func (w *Writer) ReserveMore(n int) (*Place, bool) { return w.reserve(n, w.opts.QueueBytes/8) }

// reserve takes n bytes unless fewer than leave would be left.
func (w *Writer) reserve(n, leave int) (*Place, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.phase != running || w.reserved+w.stats.SmallBytes+n+leave > w.opts.QueueBytes {
		w.stats.Refused++
		return nil, false
	}
	w.reserved += n
	w.places++
	return &Place{w: w, held: n}, true
}

// giveBack ends a reservation. It needs w.mu, like all that follows here.
func (w *Writer) giveBack(n int) {
	w.reserved -= n
	w.places--
	if w.phase == draining {
		w.nudge() // it may have been the last
	}
}

func (w *Writer) push(b []byte) {
	if len(b) == 0 {
		return
	}
	w.small.push(b)
	w.stats.SmallBytes += len(b)
	w.stats.SmallStanzas++
	w.nudge()
}

// nudge wakes Serve, if it sleeps.
func (w *Writer) nudge() {
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

func (w *Writer) full() bool { return w.stats.SmallBytes >= w.opts.QueueBytes }

// Full tells whether lane 0 has reached its budget.
func (w *Writer) Full() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.full()
}

// Room returns nil as soon as lane 0 is not full, at once if it is not; ErrClosed
// when the stream was ended by Drain; or the cause when ctx ends. The reader of
// the stream and those who make events wait here.
func (w *Writer) Room(ctx context.Context) error {
	for {
		w.mu.Lock()
		full, room, phase := w.full(), w.room, w.phase
		w.mu.Unlock()
		if phase == closed {
			return ErrClosed
		}
		if !full {
			return nil
		}
		select {
		case <-room:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// Stats is a look at the queues.
type Stats struct {
	SmallBytes, SmallStanzas int    // lane 0, with what is being written
	RefusalBytes, Refusals   int    // refusals, with what is being written
	BulkBytes, BulkChunks    int    // lane 1, not made yet, as declared by Chunk.Size
	Unconfirmed              int64  // bytes of bulk that the host has not confirmed on this connection
	Reserved                 int    // bytes of places not used yet, and of chunks that wait
	Refused                  uint64 // Reserve said no
	Dropped                  uint64 // Small said no
	Written                  uint64 // stanzas given to a connection
	WrittenBytes             uint64
}

// Stats looks at the queues now.
func (w *Writer) Stats() Stats {
	w.mu.Lock()
	defer w.mu.Unlock()
	s := w.stats
	s.RefusalBytes, s.Refusals = w.refusals.bytes, w.refusals.waiting
	s.Reserved = w.reserved
	s.Unconfirmed = w.window.unconfirmed()
	return s
}
