// Package lane queues what goes to the host and is the only one that writes
// it. Lane 0 carries small answers, events and pings, in the order in which
// they came, always first; lane 1 carries bulk, one stanza at a time, each
// made when its turn comes.
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

// Errors of Serve and Drain.
var (
	// ErrDetached: nothing serves the queues, so they can't be drained.
	ErrDetached = errors.New("lane: not attached to the host")
	// ErrClosed: the stream was ended by Drain.
	ErrClosed = errors.New("lane: closed")
	// ErrServing: Serve was called while an earlier call still runs.
	ErrServing = errors.New("lane: already serving")
)

// Options of a Writer; a zero value stands for the default.
type Options struct {
	// QueueBytes is the budget of all that waits: what lane 0 holds and what
	// places have reserved. Reserve refuses beyond it; lane 0 counts as full
	// (see Full) from the same size on. Default 16 MiB.
	QueueBytes int
	// RefusalBytes may be queued above the budget by Refuse. Default
	// QueueBytes/16, at least 64 KiB.
	RefusalBytes int
	// BatchBytes is how much goes to the connection in one write. Default 64 KiB.
	BatchBytes int
	// SendBuffer is the socket's send buffer (SO_SNDBUF): what hides there
	// can't be overtaken. Default 64 KiB; negative: left alone.
	SendBuffer int
	// WriteTimeout bounds one write: a host that reads nothing for so long
	// loses the connection. Default 30 s.
	WriteTimeout time.Duration
	// Logger hears of chunks that could not be made. Default: discards.
	Logger *slog.Logger
}

// Writer holds the lanes and writes them to one connection after the other.
// Its methods may be called by any goroutine; none but Serve, Drain and Room
// blocks.
type Writer struct {
	opts Options
	wake chan struct{} // there may be something to write

	mu       sync.Mutex // never held while anything is written or made
	small    queue[[]byte]
	bulk     queue[bulk]
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
	held int
}

// Chunk describes one stanza of bulk that is made when its turn comes.
type Chunk struct {
	// For is the full JID that it is for; turns will be fair between these.
	For string
	// Size is about how many bytes Produce will return.
	Size int
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
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.DiscardHandler)
	}
	return &Writer{
		opts:  opts,
		wake:  make(chan struct{}, 1),
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

// Refuse queues a refusal (`wait`) for a request that got no place. It may go
// beyond the budget by Options.RefusalBytes; false means that this is used up
// too: wait for Room, then try again.
func (w *Writer) Refuse(b []byte) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.phase == closed || w.stats.SmallBytes+len(b) > w.opts.QueueBytes+w.opts.RefusalBytes {
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
func (w *Writer) Reserve(n int) (*Place, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.phase != running || w.reserved+w.stats.SmallBytes+n > w.opts.QueueBytes {
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
// when the stream was ended by Drain; or the cause when ctx ends. The reader of the stream and those who make events wait
// here.
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
	BulkBytes, BulkChunks    int    // lane 1, not made yet, as declared by Chunk.Size
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
	s.Reserved = w.reserved
	return s
}
