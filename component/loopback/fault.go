package loopback

import (
	"fmt"
	"net"
	"sync"
	"sync/atomic"
)

// Drop closes the component's connection without a word, as a host that
// restarts does: the component reads an end of file. It does nothing while no
// component is attached.
func (h *Host) Drop() {
	if l := h.link.Load(); l != nil {
		h.detach(l, "dropped")
		l.conn.Close()
	}
}

// Reset is [Host.Drop] with a TCP reset: the component reads an error, and
// what was under way may be lost.
func (h *Host) Reset() {
	if l := h.link.Load(); l != nil {
		h.detach(l, "reset")
		reset(l.conn)
	}
}

// Abandon forgets the component's connection without closing it: nothing is
// read from it or written to it any more, and no FIN is sent, as when the
// host's machine has lost power. Devices get what they get while no component
// is attached, and a new connection is accepted. Close closes it at last.
func (h *Host) Abandon() {
	if l := h.link.Load(); l != nil {
		h.detach(l, "abandoned")
		l.abandon()
	}
}

// EndStream ends the component's stream properly: with a stream error of the
// given defined condition (RFC 6120 §4.9.3), or without one if it is "".
func (h *Host) EndStream(condition string) {
	if l := h.link.Load(); l != nil {
		l.end(condition, "")
	}
}

// Inject puts raw on the component's stream as it is, unchecked: a hostile or
// broken stanza, a space, half an element. The error is [ErrDetached].
func (h *Host) Inject(raw []byte) error {
	l := h.link.Load()
	if l == nil || !l.out.put(raw, h.opts.BufferLimit) {
		return ErrDetached
	}
	h.trace("sent", "injected", raw)
	return nil
}

// Stall stops the host's reading from sockets, its writing to them, or both,
// as if its process were stopped: connections stay, also new ones, and the
// kernel's buffers fill. What devices send waits.
func (h *Host) Stall(reads, writes bool) {
	if reads {
		h.reads.shut()
	}
	if writes {
		h.writes.shut()
	}
	h.trace("stalled", fmt.Sprintf("reads %t, writes %t", reads, writes), nil)
}

// Resume ends what Stall began.
func (h *Host) Resume() {
	h.reads.open()
	h.writes.open()
	h.trace("resumed", "", nil)
}

// RefuseNext makes the next n connections be reset as soon as they are made.
func (h *Host) RefuseNext(n int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.refuse = n
}

// RefuseWith makes the host end the stream of every component that presents
// itself with an error of that defined condition ("not-authorized": as if it had
// another secret); "host-unknown" comes before the handshake, as it does from
// real hosts. "" takes components again. An attached one stays attached.
func (h *Host) RefuseWith(condition string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.refuseWith = condition
}

// refuses is the error that a component gets at this point of its handshake.
func (h *Host) refuses(header bool) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.refuseWith == "" || header != (h.refuseWith == "host-unknown") {
		return nil
	}
	return &streamError{h.refuseWith, "told to refuse"}
}

// Down stops listening: connecting is refused until Up. An attached component
// stays attached. The port stays ours.
func (h *Host) Down() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.listener != nil {
		h.listener.Close()
		h.listener = nil
		h.trace("down", h.addr, nil)
	}
}

// Up listens again, on the same port.
func (h *Host) Up() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return ErrClosed
	}
	if h.listener != nil {
		return nil
	}
	listener, err := net.Listen("tcp4", h.addr)
	if err != nil {
		return fmt.Errorf("loopback: %w", err)
	}
	h.listener = listener
	h.trace("listening", h.addr, nil)
	h.wait.Add(1)
	go h.accept(listener)
	return nil
}

func reset(conn *net.TCPConn) {
	_ = conn.SetLinger(0) // fails only on a closed socket
	conn.Close()
}

// gate is open at first; while it is shut, pass waits.
type gate struct {
	closed atomic.Bool // the quick look
	mu     sync.Mutex
	opened chan struct{} // closed by open; nil while open
}

func (g *gate) shut() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.opened == nil {
		g.opened = make(chan struct{})
		g.closed.Store(true)
	}
}

func (g *gate) open() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.opened != nil {
		close(g.opened)
		g.opened = nil
		g.closed.Store(false)
	}
}

// pass returns when the gate is open, or done is closed.
func (g *gate) pass(done <-chan struct{}) {
	for g.closed.Load() {
		g.mu.Lock()
		opened := g.opened
		g.mu.Unlock()
		if opened == nil {
			return
		}
		select {
		case <-opened:
		case <-done:
			return
		}
	}
}
