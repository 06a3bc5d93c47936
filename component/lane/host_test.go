package lane

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"testing/synctest"
	"time"
)

// scriptedHost is a host in a synctest bubble that reads and answers only when
// it is told to. Stanzas are "<kind name filling>"; a ping is "<ping N>".
type scriptedHost struct {
	w      *Writer
	conn   net.Conn
	result chan error
	cancel context.CancelFunc

	pending    []byte   // read, not yet a whole stanza
	stanzas    []string // whole ones, on any connection; no pings
	everything []string // with pings
	ended      int      // how often the stream was closed
	pings      []string // read and not answered, on this one
	dones      map[string]func(error)
	asked      int
	heard      atomic.Pointer[time.Time] // when the host said something last
}

// newScriptedHost makes a Writer for it; it is not attached yet.
func newScriptedHost(o Options) *scriptedHost {
	h := &scriptedHost{dones: map[string]func(error){}}
	o.Confirm = func(done func(error)) []byte {
		h.asked++
		name := strconv.Itoa(h.asked)
		h.dones[name] = done
		return []byte("<ping " + name + ">")
	}
	o.Heard = func() time.Time { return *h.heard.Load() }
	h.hears(time.Time{})
	h.w = New(o)
	return h
}

func (h *scriptedHost) hears(at time.Time) { h.heard.Store(&at) }

// attach gives the Writer a connection; nothing passes before the host reads.
func (h *scriptedHost) attach(ctx context.Context) {
	ctx, h.cancel = context.WithCancel(ctx)
	h.pending, h.pings = nil, nil
	h.conn, h.result = serve(ctx, h.w)
	synctest.Wait()
}

// cut ends the connection.
func (h *scriptedHost) cut() error {
	_ = h.conn.Close()
	h.cancel()
	return <-h.result
}

// read takes up to n bytes, as many as there are without a further event, and
// tells how many.
func (h *scriptedHost) read(n int) int {
	buffer := make([]byte, n)
	got := make(chan int)
	go func() {
		n, err := io.ReadFull(h.conn, buffer)
		if err != nil && !errors.Is(err, os.ErrDeadlineExceeded) && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
			panic(err)
		}
		got <- n
	}()
	synctest.Wait()
	_ = h.conn.SetReadDeadline(time.Unix(1, 0))
	n = <-got
	_ = h.conn.SetReadDeadline(time.Time{})
	synctest.Wait()
	h.take(buffer[:n])
	return n
}

// take cuts what was read into stanzas.
func (h *scriptedHost) take(read []byte) {
	h.pending = append(h.pending, read...)
	for {
		end := bytes.IndexByte(h.pending, '>')
		if end < 0 {
			return
		}
		if string(h.pending[:end+1]) == streamEnd {
			h.ended++
			h.pending = h.pending[end+1:]
			continue
		}
		kind, rest, _ := strings.Cut(string(h.pending[1:end]), " ")
		name, _, _ := strings.Cut(rest, " ")
		h.pending = h.pending[end+1:]
		h.everything = append(h.everything, strings.TrimSpace(kind+" "+name))
		if kind == "ping" {
			h.pings = append(h.pings, name)
			continue
		}
		h.stanzas = append(h.stanzas, strings.TrimSpace(kind+" "+name))
	}
}

// answer answers the first n pings that were read.
func (h *scriptedHost) answer(n int) {
	for _, name := range h.pings[:n] {
		h.dones[name](nil)
	}
	h.pings = h.pings[n:]
	synctest.Wait()
}

// readAll reads and answers until nothing comes any more.
func (h *scriptedHost) readAll() {
	for h.read(1<<20) > 0 || len(h.pings) > 0 {
		h.answer(len(h.pings))
	}
}

// seen are the whole stanzas read since the last call, in one line.
func (h *scriptedHost) seen() string {
	all := strings.Join(h.stanzas, ", ")
	h.stanzas = nil
	return all
}

// filled is a stanza of n bytes.
func filled(kind, name string, n int) []byte {
	head := fmt.Sprintf("<%s %s ", kind, name)
	return []byte(head + strings.Repeat("x", max(0, n-len(head)-1)) + ">")
}

// large is a chunk of n bytes for somebody.
func large(who, name string, n int) Chunk {
	return Chunk{For: who, Size: n, Produce: func() ([]byte, error) { return filled("bulk", name, n), nil }}
}
