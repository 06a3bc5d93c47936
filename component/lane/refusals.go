package lane

import (
	"context"
	"time"
)

// refusals wait for their way to the host with a budget of their own: a flood
// of requests that are refused fills this queue and nothing else, and then the
// reader waits. They go behind lane 0 and before bulk, and yet nobody starves:
//
//   - While a refusal waits, no more than passSmall bytes of lane 0 and one
//     batch go before the next batch of refusals.
//   - While a stanza of bulk could go, no more than one batch of refusals and
//     one stanza go before it.
type refusals struct {
	queue[[]byte]
	limit   int
	bytes   int // that wait, with what is being written
	waiting int // stanzas, likewise
	waiters int // callers of Refuse that wait for room

	behind int           // bytes of lane 0 that have gone before the first one
	ahead  int           // bytes that have gone since bulk last did
	room   chan struct{} // closed, and made anew, when some have gone
}

// passSmall is how many bytes of lane 0 may go while a refusal waits.
const passSmall = 256 << 10

// due tells whether a refusal has waited long enough behind lane 0.
func (r *refusals) due() bool { return r.len() > 0 && r.behind >= passSmall }

// passed books what of lane 0 goes.
func (r *refusals) passed(bytes int) {
	if r.len() > 0 {
		r.behind += bytes
	}
}

// before tells whether refusals go before bulk, of which a stanza could go.
func (r *refusals) before(bulkGoes bool, batch int) bool { return !bulkGoes || r.ahead < batch }

// took books refusals that go.
func (r *refusals) took(bytes int) {
	if bytes > 0 {
		r.behind = 0
		r.ahead += bytes
	}
}

// gone gives back the room of one that was written.
func (r *refusals) gone(bytes int) {
	r.bytes -= bytes
	r.waiting--
	if r.waiters > 0 {
		close(r.room)
		r.room = make(chan struct{})
	}
}

// fits tells whether there is room for one more.
func (r *refusals) fits(bytes int) bool { return r.waiting == 0 || r.bytes+bytes <= r.limit }

// Refuse queues a refusal (`wait`) for a request that got no place. While those
// that wait take Options.RefusalBytes, it blocks: so who reads the stream reads
// no more of what has to be refused. It returns ErrClosed, and b not queued,
// when the stream was ended by Drain, or the cause when ctx ends.
func (w *Writer) Refuse(ctx context.Context, b []byte) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	for w.phase != closed && !w.refusals.fits(len(b)) {
		room := w.refusals.room
		w.refusals.waiters++
		w.mu.Unlock()
		select {
		case <-room:
		case <-ctx.Done():
		}
		w.mu.Lock()
		w.refusals.waiters--
		w.window.written(time.Now()) // meanwhile nothing was read, the host's answers neither
		if ctx.Err() != nil {
			w.nudge() // the end may have waited for this one
			return context.Cause(ctx)
		}
	}
	if w.phase == closed {
		return ErrClosed
	}
	if len(b) > 0 {
		w.refusals.push(b)
		w.refusals.bytes += len(b)
		w.refusals.waiting++
		w.nudge()
	}
	return nil
}
