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
	"net"
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
type Writer struct{ opts Options }

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
func New(opts Options) *Writer { panic("lane: being written") }

// Small queues one whole stanza that no place was reserved for (an event, a
// ping) on lane 0; the Writer owns b from then on. It is false, and b not
// queued, when the stream was ended by Drain, or when lane 0 holds twice its budget: who makes events
// waits for Room before it makes more, so that this is never seen.
func (w *Writer) Small(b []byte) bool { panic("lane: being written") }

// Refuse queues a refusal (`wait`) for a request that got no place. It may go
// beyond the budget by Options.RefusalBytes; false means that this is used up
// too: wait for Room, then try again.
func (w *Writer) Refuse(b []byte) bool { panic("lane: being written") }

// Bulk queues a chunk on lane 1 with a place of SmallAnswer bytes that it takes
// itself; false if there is none.
func (w *Writer) Bulk(c Chunk) bool { panic("lane: being written") }

// Reserve takes n bytes of the budget for an answer to come, or says that they
// are not there. A request is taken only with a place.
func (w *Writer) Reserve(n int) (*Place, bool) { panic("lane: being written") }

// Place is room for one answer. The first call of Small, Bulk or Release uses
// it up; later ones do nothing and return false.
type Place struct{ w *Writer }

// Small queues the answer on lane 0 and gives the reservation back. An answer
// with a place is always taken, also if it is larger than the reservation; false
// only when the stream was ended by Drain.
func (p *Place) Small(b []byte) bool { panic("lane: being written") }

// Bulk queues the answer as a chunk on lane 1; the reservation is given back
// when the chunk has been made.
func (p *Place) Bulk(c Chunk) bool { panic("lane: being written") }

// Release gives the reservation back without an answer.
func (p *Place) Release() bool { panic("lane: being written") }

// Full tells whether lane 0 has reached its budget.
func (w *Writer) Full() bool { panic("lane: being written") }

// Room returns nil as soon as lane 0 is not full, at once if it is not; or the
// cause when ctx ends. The reader of the stream and those who make events wait
// here.
func (w *Writer) Room(ctx context.Context) error { panic("lane: being written") }

// Stats is a look at the queues.
type Stats struct {
	SmallBytes, SmallStanzas int    // lane 0
	BulkBytes, BulkChunks    int    // lane 1, as declared by Chunk.Size
	Reserved                 int    // bytes of places not used yet
	Refused                  uint64 // Reserve said no
	Dropped                  uint64 // Small said no
	Written                  uint64 // stanzas given to a connection
	WrittenBytes             uint64
}

// Stats looks at the queues now.
func (w *Writer) Stats() Stats { panic("lane: being written") }

// Serve writes what is queued to conn until ctx ends or conn fails, and returns
// the reason; it never closes conn. It returns nil after Drain, when all is
// written and the stream is closed by `</stream:stream>`.
func (w *Writer) Serve(ctx context.Context, conn net.Conn) error { panic("lane: being written") }

// Drain ends the stream in order: Reserve gives nothing any more (Refuse still
// works), and as soon as every place is used or released and all that is queued
// is written, bulk too, Serve writes `</stream:stream>` and returns nil. From
// then on nothing is taken. Drain returns nil when that is done, ErrDetached if
// there is no connection or it is lost on the way, or the cause when ctx ends.
func (w *Writer) Drain(ctx context.Context) error { panic("lane: being written") }
