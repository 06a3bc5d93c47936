package loopback

import (
	"bytes"
	"crypto/sha1" // XEP-0114 says so
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// lingering is how long a connection stays open after its stream error, so
// that a component which still writes can read it.
const lingering = time.Second

// streamError ends a stream.
type streamError struct{ condition, text string }

func (e *streamError) Error() string { return e.condition + ": " + e.text }

// link is one connection of a component. Its reader goroutine cuts and routes,
// its writer goroutine writes what is in out.
type link struct {
	host      *Host
	conn      *net.TCPConn
	out       outbox
	abandoned atomic.Bool
	ending    atomic.Bool
	headed    atomic.Bool   // our stream header is out
	written   chan struct{} // closed when the writer has ended

	number int // set once, by Host.attach

	// of the reader alone
	id     string // of the stream
	prefix string // of the component's stream namespace, with the colon
	ready  bool   // the handshake was accepted
	scan   tag
}

func newLink(h *Host, conn *net.TCPConn) *link {
	l := &link{host: h, conn: conn, written: make(chan struct{})}
	l.out.ready.L = &l.out.mu
	return l
}

// send queues raw; false says that the connection is at its end.
func (l *link) send(raw []byte) bool {
	if l.out.put(raw, l.host.opts.BufferLimit) {
		return true
	}
	if l.out.overflown() {
		l.host.detach(l, "the component reads too slowly")
		l.conn.Close()
	}
	return false
}

// end sends a stream error, unless condition is "", and closes the stream.
func (l *link) end(condition, text string) {
	if !l.ending.CompareAndSwap(false, true) {
		return
	}
	l.host.detach(l, strings.TrimSpace("stream ended "+condition+" "+text))
	var b strings.Builder
	if l.headed.CompareAndSwap(false, true) {
		b.WriteString(l.header(""))
	}
	if condition != "" {
		fmt.Fprintf(&b, "<stream:error><%s xmlns='%s'/>", condition, nsStreams)
		if text != "" {
			fmt.Fprintf(&b, "<text xmlns='%s'>%s</text>", nsStreams, escape(text))
		}
		b.WriteString("</stream:error>")
	}
	b.WriteString("</stream:stream>")
	l.out.finish([]byte(b.String()))
}

// abandon stops reading and writing and leaves the connection open.
func (l *link) abandon() {
	l.abandoned.Store(true)
	l.out.kill()
	_ = l.conn.SetDeadline(time.Unix(1, 0)) // wakes reader and writer
}

// header is our stream header.
func (l *link) header(id string) string {
	attrs := []string{
		"xmlns='" + nsComponent + "'", "xmlns:stream='" + nsStream + "'",
		"xml:lang='en'", "id='" + id + "'", "from='" + l.host.opts.Component + "'",
	}
	l.host.random.shuffle(len(attrs), func(i, j int) { attrs[i], attrs[j] = attrs[j], attrs[i] })
	return "<?xml version='1.0'?><stream:stream " + strings.Join(attrs, " ") + ">"
}

// read is the reader goroutine.
func (l *link) read() {
	defer l.host.wait.Done()
	err := l.serve()
	if l.abandoned.Load() {
		<-l.host.done
	} else {
		var fault *streamError
		if errors.As(err, &fault) {
			l.end(fault.condition, fault.text)
		} else if err != nil {
			l.host.detach(l, err.Error())
			l.out.kill()
		}
		l.drain()
	}
	l.out.kill()
	l.conn.Close()
	l.host.forget(l)
}

// serve reads until the connection fails or the stream ends; a *streamError
// is to be sent.
func (l *link) serve() error {
	cut := cutter{limit: l.host.opts.StanzaLimit}
	for {
		n, err := l.conn.Read(cut.space())
		l.host.reads.pass(l.host.done)
		cut.added(n)
		for n > 0 {
			kind, raw, err := cut.next()
			if err != nil {
				return &streamError{"not-well-formed", ""}
			}
			if l.ending.Load() {
				return nil
			}
			if kind == unitNone {
				break
			}
			if err := l.take(kind, raw); err != nil {
				return err
			}
		}
		if err != nil || l.ending.Load() {
			return err
		}
	}
}

// drain lets the component read the end of the stream before the socket
// closes: closing with unread bytes would reset it.
func (l *link) drain() {
	if !l.ending.Load() {
		return
	}
	_ = l.conn.SetDeadline(time.Now().Add(lingering))
	var waste [4096]byte
	for {
		if _, err := l.conn.Read(waste[:]); err != nil {
			<-l.written
			return
		}
	}
}

func (l *link) take(kind unit, raw []byte) error {
	switch kind {
	case unitOpen:
		return l.open(raw)
	case unitClose:
		l.end("", "")
		return nil
	}
	if l.ready && !bytes.HasPrefix(raw[1:], []byte(l.prefix)) {
		return l.host.fromComponent(l, raw)
	}
	if err := l.scan.parse(raw); err != nil {
		return &streamError{"not-well-formed", ""}
	}
	switch string(l.scan.name) {
	case l.prefix + "error":
		l.end("", "")
		return nil
	case "handshake":
		return l.handshake(raw)
	}
	if !l.ready {
		return &streamError{"not-authorized", "no handshake"}
	}
	return &streamError{"unsupported-stanza-type", ""}
}

// open answers the component's stream header.
func (l *link) open(raw []byte) error {
	if err := l.scan.parse(raw); err != nil {
		return &streamError{"not-well-formed", ""}
	}
	prefix, local, found := strings.Cut(string(l.scan.name), ":")
	l.prefix = prefix + ":"
	if !found || local != "stream" || l.scan.text("xmlns:"+prefix) != nsStream || l.scan.text("xmlns") != nsComponent {
		return &streamError{"invalid-namespace", ""}
	}
	to := l.scan.text("to")
	switch to {
	case "":
		return &streamError{"improper-addressing", "the stream header names no component"}
	case l.host.opts.Component:
	default:
		return &streamError{"host-unknown", "there is no component " + to}
	}
	if err := l.host.refuses(true); err != nil {
		return err
	}
	l.id = l.host.random.token()
	l.headed.Store(true)
	l.send([]byte(l.header(l.id)))
	return nil
}

// handshake checks the digest (XEP-0114 §3).
func (l *link) handshake(raw []byte) error {
	if l.ready {
		return &streamError{"unsupported-stanza-type", ""}
	}
	sum := sha1.Sum([]byte(l.id + l.host.opts.Secret))
	want := hex.EncodeToString(sum[:])
	got := Stanza{Raw: raw}.Payload()
	if subtle.ConstantTimeCompare(got, []byte(want)) != 1 {
		return &streamError{"not-authorized", "the digest of the handshake is wrong"}
	}
	if err := l.host.refuses(false); err != nil {
		return err
	}
	if !l.host.attach(l) {
		return &streamError{"conflict", "the component is connected already"}
	}
	l.ready = true
	return nil
}

// write is the writer goroutine: all that is waiting goes out in one piece.
func (l *link) write() {
	defer l.host.wait.Done()
	defer close(l.written)
	var batch []byte
	for {
		runtime.Gosched() // whoever is about to send too goes into this batch
		var last, ok bool
		batch, last, ok = l.out.take(batch)
		if !ok {
			return
		}
		l.host.writes.pass(l.host.done)
		if last {
			_ = l.conn.SetWriteDeadline(time.Now().Add(lingering))
		}
		if _, err := l.conn.Write(batch); err != nil {
			if !l.abandoned.Load() {
				l.conn.Close()
			}
			l.out.kill()
			return
		}
		if last {
			// Wakes the reader if it is waiting; it closes.
			_ = l.conn.CloseWrite()
			_ = l.conn.SetReadDeadline(time.Now().Add(lingering))
			return
		}
	}
}

// outbox holds the bytes that wait for the writer.
type outbox struct {
	mu      sync.Mutex
	ready   sync.Cond
	waiting []byte
	last    bool // nothing may be added
	dead    bool // nothing will be written
	over    bool // the limit was passed
}

func (o *outbox) put(raw []byte, limit int) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.last || o.dead {
		return false
	}
	if len(o.waiting)+len(raw) > limit {
		o.over, o.dead = true, true
		o.ready.Signal()
		return false
	}
	if len(o.waiting) == 0 {
		o.ready.Signal()
	}
	o.waiting = append(o.waiting, raw...)
	return true
}

// finish puts the last bytes.
func (o *outbox) finish(raw []byte) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.waiting = append(o.waiting, raw...)
	o.last = true
	o.ready.Signal()
}

func (o *outbox) kill() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.dead = true
	o.ready.Signal()
}

func (o *outbox) overflown() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.over
}

// take waits for bytes and gives them away for spare, whose memory is used
// for the next ones. last says that nothing comes after them.
func (o *outbox) take(spare []byte) (batch []byte, last, ok bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for len(o.waiting) == 0 && !o.last && !o.dead {
		o.ready.Wait()
	}
	if o.dead {
		return nil, false, false
	}
	batch = o.waiting
	if cap(spare) > 1<<20 {
		spare = nil // one burst should not be kept for ever
	}
	o.waiting = spare[:0]
	return batch, o.last, true
}
