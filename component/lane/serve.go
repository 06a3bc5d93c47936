package lane

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"runtime"
	"runtime/debug"
	"sync"
	"time"
)

const streamEnd = "</stream:stream>"

// Serve writes what is queued to conn until ctx ends or conn fails, and returns
// the reason; it never closes conn. It returns nil after Drain, when all is
// written and the stream is closed by `</stream:stream>`.
func (w *Writer) Serve(ctx context.Context, conn net.Conn) error {
	lost := make(chan struct{})
	if err := w.begin(lost); err != nil {
		return err
	}
	w.shrinkSendBuffer(conn)
	// A blocked write ends with ctx, too.
	stop := context.AfterFunc(ctx, func() { _ = conn.SetWriteDeadline(time.Unix(1, 0)) })
	chunks := make(chan bulk, 1) // one is made at a time: sending never blocks
	var maker sync.WaitGroup
	maker.Go(func() {
		for b := range chunks {
			w.produced(w.produce(b.Chunk), b)
		}
	})
	err := w.serve(ctx, conn, chunks)
	stop()
	close(chunks)
	maker.Wait()
	w.finish(err)
	return err
}

func (w *Writer) begin(lost chan struct{}) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case w.phase == closed:
		return ErrClosed
	case w.serving:
		return ErrServing
	}
	w.serving, w.lost = true, lost
	w.window.begin()
	return nil
}

func (w *Writer) finish(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case err == nil:
		close(w.ended)
	case w.phase == closed:
		w.phase = draining // the end was not written
	}
	w.serving = false
	close(w.lost)
}

func (w *Writer) serve(ctx context.Context, conn net.Conn, chunks chan<- bulk) error {
	var b batch
	alarm := time.NewTimer(forever)
	defer alarm.Stop()
	for {
		switch what, until := w.next(&b, chunks); what {
		case something:
			if b.ping != 0 {
				b.stanzas = append(b.stanzas, w.opts.Confirm(w.confirmed(b.ping)))
			}
			b.join(w.opts.BatchBytes)
			if err := w.write(ctx, conn, &b); err != nil {
				return err
			}
		case theEnd:
			return w.send(ctx, conn, []byte(streamEnd))
		case noAnswer:
			return ErrUnconfirmed
		case slower:
			w.opts.Logger.Warn("host answers no pings: large answers go slowly", "timeout", w.opts.ConfirmTimeout)
		case nothing:
			alarm.Reset(until)
			select {
			case <-w.wake:
				// Who is about to answer too goes first: one write for several
				// stanzas costs the host and us a fraction of one for each.
				runtime.Gosched()
			case <-alarm.C:
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		}
	}
}

// forever is longer than any connection.
const forever = 1 << 62

type work uint8

const (
	nothing work = iota
	something
	theEnd
	noAnswer
	slower
)

// next fills the batch: all of lane 0 first and then refusals, up to
// Options.BatchBytes, else one stanza of bulk if the window has room for it;
// see refusals.go for how they give way. The next chunk is chosen, and made,
// when the one before is written: so late that it is the right one, and while
// the host works on that. With nothing to do it tells how long that holds at
// most.
func (w *Writer) next(b *batch, chunks chan<- bulk) (what work, until time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	now, heard := time.Now(), w.opts.Heard()
	switch w.window.judge(now, heard, !w.full() && w.refusals.waiters == 0) {
	case halfOpen:
		return noAnswer, 0
	case slow:
		return slower, 0
	}
	if !w.making && w.made == nil {
		if next, ok := w.bulk.take(); ok {
			w.making = true
			chunks <- next
		}
	}
	bulkGoes := w.made != nil && w.window.admits(len(w.made), now)
	*b = batch{stanzas: b.stanzas[:0], buffer: b.buffer}
	switch {
	case w.batchQueued(b, bulkGoes):
		return something, 0
	case bulkGoes:
		b.stanzas, b.bulk = append(b.stanzas, w.made), 1
		w.window.send(len(w.made), now)
		w.made = nil
		w.refusals.ahead = 0
	case w.made == nil && w.phase == draining && w.places == 0 && !w.making && w.refusals.waiters == 0:
		w.phase = closed // nothing may slip in behind the end
		return theEnd, 0
	}
	if w.window.wants() {
		b.ping = w.window.ask(now)
	}
	if b.bulk == 0 && b.ping == 0 {
		until = forever
		if at := w.window.wake(w.made != nil, heard); !at.IsZero() {
			until = at.Sub(now)
		}
		return nothing, until
	}
	return something, 0
}

// confirmed is what the answer to that ping calls.
func (w *Writer) confirmed(ping uint64) func(error) {
	return func(err error) {
		if err != nil {
			return // the connection ends
		}
		w.mu.Lock()
		awake := w.window.confirm(ping, time.Now())
		w.nudge()
		w.mu.Unlock()
		if awake {
			w.opts.Logger.Info("host answers pings")
		}
	}
}

// write sends the batch. What the connection did not take goes back to the
// front of its lane, a stanza that was cut as a whole: the host drops the piece.
// A ping belongs to its connection and is gone.
func (w *Writer) write(ctx context.Context, conn net.Conn, b *batch) error {
	err := w.send(ctx, conn, b.bytes)
	taken := len(b.bytes)
	var failed *writeError
	if err != nil {
		failed, _ = err.(*writeError)
		taken = failed.taken
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	wasFull := w.full()
	if b.ping != 0 {
		w.window.written(time.Now())
	}
	done := 0
	for done < len(b.stanzas) && taken >= len(b.stanzas[done]) {
		n := len(b.stanzas[done])
		taken -= n
		w.stats.Written++
		w.stats.WrittenBytes += uint64(n)
		switch {
		case done < b.small:
			w.stats.SmallBytes -= n
			w.stats.SmallStanzas--
		case done < b.small+b.refused:
			w.refusals.gone(n)
		}
		done++
	}
	if b.bulk > done {
		w.made = b.stanzas[0]
	}
	for i := b.small + b.refused - 1; i >= max(done, b.small); i-- {
		w.refusals.queue.pushFront(b.stanzas[i])
	}
	for i := b.small - 1; i >= done; i-- {
		w.small.pushFront(b.stanzas[i])
	}
	clear(b.stanzas)
	if wasFull && !w.full() {
		close(w.room)
		w.room = make(chan struct{})
	}
	return err
}

// writeError is a failed write, with what the connection had taken of it.
type writeError struct {
	taken int
	err   error
}

func (e *writeError) Error() string { return e.err.Error() }
func (e *writeError) Unwrap() error { return e.err }

// send writes all of p within Options.WriteTimeout; its error is a *writeError.
// The time in which this process did not run does not count.
func (w *Writer) send(ctx context.Context, conn net.Conn, p []byte) error {
	taken, late, err := w.sendWithin(ctx, conn, p)
	if late > wasStopped && errors.Is(err, os.ErrDeadlineExceeded) && ctx.Err() == nil {
		var more int
		more, _, err = w.sendWithin(ctx, conn, p[taken:])
		taken += more
	}
	if err == nil {
		return nil
	}
	if ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	return &writeError{taken, err}
}

// wasStopped is how late no timer is unless the whole process did not run.
const wasStopped = time.Second

// sendWithin tells also by how much it returned later than it should have.
func (w *Writer) sendWithin(ctx context.Context, conn net.Conn, p []byte) (taken int, late time.Duration, err error) {
	due := time.Now().Add(w.opts.WriteTimeout)
	if err := conn.SetWriteDeadline(due); err != nil {
		return 0, 0, err
	}
	if err := ctx.Err(); err != nil { // after the deadline was set: it may have undone the one that ctx set
		return 0, 0, err
	}
	taken, err = conn.Write(p)
	return taken, time.Since(due), err
}

// produce makes the chunk's stanza; nil if there is none.
func (w *Writer) produce(c Chunk) (stanza []byte) {
	defer func() {
		if p := recover(); p != nil {
			w.opts.Logger.Error("chunk lost", "type", fmt.Sprintf("%T", p), "stack", string(debug.Stack()))
			stanza = nil
		}
	}()
	stanza, err := c.Produce()
	if err != nil {
		w.opts.Logger.Error("chunk lost", "err", err)
		return nil
	}
	return stanza
}

// produced hands the stanza on to the writer.
func (w *Writer) produced(stanza []byte, b bulk) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.making = false
	w.bulk.made(&b, len(stanza))
	if len(stanza) > 0 {
		w.made = stanza
	}
	w.stats.BulkBytes -= b.Size
	w.stats.BulkChunks--
	w.giveBack(b.held)
	w.nudge()
}

// shrinkSendBuffer keeps bulk from hiding in the kernel, where no small answer
// can overtake it.
func (w *Writer) shrinkSendBuffer(conn net.Conn) {
	if wrapped, ok := conn.(interface{ NetConn() net.Conn }); ok { // *tls.Conn
		conn = wrapped.NetConn()
	}
	if tcp, ok := conn.(interface{ SetWriteBuffer(int) error }); ok && w.opts.SendBuffer > 0 {
		_ = tcp.SetWriteBuffer(w.opts.SendBuffer) // only slower if it fails
	}
}

// Drain ends the stream in order: Reserve gives nothing any more (Refuse still
// works), and as soon as every place is used or released and all that is queued
// is written, bulk too, Serve writes `</stream:stream>` and returns nil. From
// then on nothing is taken. Drain returns nil when that is done, ErrDetached if
// there is no connection or it is lost on the way, or the cause when ctx ends.
func (w *Writer) Drain(ctx context.Context) error {
	w.mu.Lock()
	if w.phase == running {
		w.phase = draining
	}
	serving, lost := w.serving, w.lost
	w.nudge()
	w.mu.Unlock()
	if serving {
		select {
		case <-w.ended:
			return nil
		case <-lost:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	select {
	case <-w.ended:
		return nil
	default:
		return ErrDetached
	}
}
