package lane

import (
	"context"
	"fmt"
	"net"
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

// batch is what goes out in one write: lane-0 stanzas, or one of bulk.
type batch struct {
	stanzas [][]byte
	bulk    bool
	bytes   []byte // the stanzas one behind the other
	buffer  []byte // kept for the next batch
}

func (w *Writer) serve(ctx context.Context, conn net.Conn, chunks chan<- bulk) error {
	var b batch
	for {
		switch w.next(&b, chunks) {
		case something:
			if err := w.write(ctx, conn, &b); err != nil {
				return err
			}
		case theEnd:
			return w.send(ctx, conn, []byte(streamEnd))
		case nothing:
			select {
			case <-w.wake:
				// Who is about to answer too goes first: one write for several
				// stanzas costs the host and us a fraction of one for each.
				runtime.Gosched()
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		}
	}
}

type work uint8

const (
	nothing work = iota
	something
	theEnd
)

// next fills the batch: all of lane 0 first, up to Options.BatchBytes, else one
// stanza of bulk. While one is written, the next chunk is made.
func (w *Writer) next(b *batch, chunks chan<- bulk) work {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.making && w.made == nil {
		if next, ok := w.bulk.pop(); ok {
			w.making = true
			chunks <- next
		}
	}
	b.stanzas, b.bulk = b.stanzas[:0], false
	size := 0
	for w.small.len() > 0 {
		n := len(w.small.front())
		if size > 0 && size+n > w.opts.BatchBytes {
			break
		}
		size += n
		s, _ := w.small.pop()
		b.stanzas = append(b.stanzas, s)
	}
	switch {
	case size > 0:
	case w.made != nil:
		b.stanzas, b.bulk = append(b.stanzas, w.made), true
		w.made = nil
	case w.phase == draining && w.places == 0 && !w.making:
		w.phase = closed // nothing may slip in behind the end
		return theEnd
	default:
		return nothing
	}
	b.join(w.opts.BatchBytes)
	return something
}

// join puts the stanzas one behind the other; one alone is not copied.
func (b *batch) join(size int) {
	if len(b.stanzas) == 1 {
		b.bytes = b.stanzas[0]
		return
	}
	if b.buffer == nil {
		b.buffer = make([]byte, 0, size)
	}
	b.buffer = b.buffer[:0]
	for _, s := range b.stanzas {
		b.buffer = append(b.buffer, s...)
	}
	b.bytes = b.buffer
}

// write sends the batch. What the connection did not take goes back to the
// front of its lane, a stanza that was cut as a whole: the host drops the piece.
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
	done := 0
	for done < len(b.stanzas) && taken >= len(b.stanzas[done]) {
		n := len(b.stanzas[done])
		taken -= n
		w.stats.Written++
		w.stats.WrittenBytes += uint64(n)
		if !b.bulk {
			w.stats.SmallBytes -= n
			w.stats.SmallStanzas--
		}
		done++
	}
	for i := len(b.stanzas) - 1; i >= done; i-- {
		if b.bulk {
			w.made = b.stanzas[i]
		} else {
			w.small.pushFront(b.stanzas[i])
		}
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
func (w *Writer) send(ctx context.Context, conn net.Conn, p []byte) error {
	if err := conn.SetWriteDeadline(time.Now().Add(w.opts.WriteTimeout)); err != nil {
		return &writeError{0, err}
	}
	if ctx.Err() != nil { // after the deadline was set: it may have undone the one that ctx set
		return &writeError{0, context.Cause(ctx)}
	}
	if n, err := conn.Write(p); err != nil {
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		return &writeError{n, err}
	}
	return nil
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
