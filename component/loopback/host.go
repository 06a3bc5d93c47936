package loopback

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// Host is the running host. All methods may be called at any time from any
// goroutine.
type Host struct {
	opts   Options
	addr   string
	random *random
	port   *Reserved

	done chan struct{} // closed by Close
	wait sync.WaitGroup

	link       atomic.Pointer[link] // the attached component, or nil
	intercept  atomic.Pointer[Intercept]
	reads      gate
	writes     gate
	routed     [2]atomic.Int64 // by Direction
	vanished   atomic.Int64
	bounced    atomic.Int64
	misplaced  atomic.Int64
	iqs        atomic.Int64 // numbers the ids of Device.IQ
	mu         sync.Mutex   // guards the rest; taken before deviceMu, never held while sending
	listener   net.Listener // nil while down
	conns      map[*link]struct{}
	links      int           // handshakes accepted
	changed    chan struct{} // closed and replaced when link changes
	refuse     int
	refuseWith string
	closed     bool
	storedMu   sync.Mutex
	stored     []Stanza
	deviceMu   sync.RWMutex
	devices    map[string]*Device   // by full JID
	accounts   map[string][]*Device // by bare JID
}

// Start listens on a free port of 127.0.0.1.
func Start(opts Options) (*Host, error) {
	opts = opts.withDefaults()
	if opts.Domain == opts.Component || strings.ContainsAny(opts.Domain+opts.Component, "@/") {
		return nil, fmt.Errorf("loopback: domains %q and %q", opts.Domain, opts.Component)
	}
	port, err := Reserve(0)
	if err != nil {
		return nil, fmt.Errorf("loopback: reserve a port: %w", err)
	}
	h := &Host{
		opts: opts, addr: port.Addr(), port: port, random: newRandom(opts.Seed),
		done:     make(chan struct{}),
		conns:    make(map[*link]struct{}),
		changed:  make(chan struct{}),
		devices:  make(map[string]*Device),
		accounts: make(map[string][]*Device),
	}
	if err := h.Up(); err != nil {
		port.Release()
		return nil, err
	}
	return h, nil
}

// Addr is where the component connects: "127.0.0.1:port". It stays the same
// through Down and Up.
func (h *Host) Addr() string { return h.addr }

// Domain is the domain of the accounts.
func (h *Host) Domain() string { return h.opts.Domain }

// Component is the component's domain.
func (h *Host) Component() string { return h.opts.Component }

// Secret is the component's secret.
func (h *Host) Secret() string { return h.opts.Secret }

// Close ends the host, its connections and its devices, and returns when all
// its goroutines have ended. The component sees a plain end of file.
func (h *Host) Close() error {
	h.mu.Lock()
	if h.closed {
		h.mu.Unlock()
		h.wait.Wait()
		return nil
	}
	h.closed = true
	if h.listener != nil {
		h.listener.Close()
		h.listener = nil
	}
	close(h.done)
	for l := range h.conns {
		l.conn.Close()
	}
	h.mu.Unlock()

	h.deviceMu.Lock()
	devices := h.devices
	h.devices, h.accounts = map[string]*Device{}, map[string][]*Device{}
	h.deviceMu.Unlock()
	for _, d := range devices {
		d.end(ErrClosed)
	}
	h.wait.Wait()
	h.port.Release()
	return nil
}

// Attached waits until a component is attached, and says which it is: the
// handshakes are numbered from 1, so equal numbers are the same connection.
func (h *Host) Attached(ctx context.Context) (number int, err error) {
	err = h.await(ctx, func(l *link) bool {
		if l != nil {
			number = l.number
		}
		return l != nil
	})
	return number, err
}

// Detached waits until no component is attached.
func (h *Host) Detached(ctx context.Context) error {
	return h.await(ctx, func(l *link) bool { return l == nil })
}

// Reattached waits for a component attached by a later handshake than number.
func (h *Host) Reattached(ctx context.Context, number int) (int, error) {
	err := h.await(ctx, func(l *link) bool {
		if l == nil || l.number <= number {
			return false
		}
		number = l.number
		return true
	})
	return number, err
}

func (h *Host) await(ctx context.Context, holds func(*link) bool) error {
	for {
		h.mu.Lock()
		changed, ok := h.changed, holds(h.link.Load())
		h.mu.Unlock()
		if ok {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		case <-h.done:
			return ErrClosed
		}
	}
}

// Link is the number of the attached connection, 0 if there is none.
func (h *Host) Link() int {
	if l := h.link.Load(); l != nil {
		return l.number
	}
	return 0
}

// Links counts the handshakes that were accepted.
func (h *Host) Links() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.links
}

// Stats returns the counters.
func (h *Host) Stats() Stats {
	return Stats{
		FromComponent: h.routed[FromComponent].Load(),
		ToComponent:   h.routed[ToComponent].Load(),
		Vanished:      h.vanished.Load(),
		Bounced:       h.bounced.Load(),
		Misplaced:     h.misplaced.Load(),
	}
}

// Stored returns the messages that a real host would have put into offline
// storage or given to a chat client: those for a bare JID, or a gone full JID,
// that are neither headline nor error. At most the first 1,000 are kept.
func (h *Host) Stored() []Stanza {
	h.storedMu.Lock()
	defer h.storedMu.Unlock()
	return append([]Stanza(nil), h.stored...)
}

// Forward brings s to where its `to` says, past the interceptor: for one that
// held s back.
func (h *Host) Forward(s Stanza) { h.route(s) }

// SetIntercept puts f in the way of every stanza; nil takes it away.
func (h *Host) SetIntercept(f Intercept) {
	if f == nil {
		h.intercept.Store(nil)
		return
	}
	h.intercept.Store(&f)
}

func (h *Host) intercepted(dir Direction, s Stanza, pass func(Stanza)) {
	f := h.intercept.Load()
	if f == nil {
		pass(s)
		return
	}
	for _, s := range (*f)(dir, s) {
		pass(s)
	}
}

func (h *Host) trace(what, detail string, raw []byte) {
	if h.opts.Trace != nil {
		h.opts.Trace(Event{What: what, Detail: detail, Raw: raw})
	}
}

// accept takes connections until the listener is closed.
func (h *Host) accept(listener net.Listener) {
	defer h.wait.Done()
	for {
		conn, err := listener.Accept()
		if err != nil {
			if errors.Is(err, net.ErrClosed) {
				return
			}
			// Out of descriptors, or the peer was gone at once: not ours.
			select {
			case <-time.After(time.Millisecond):
				continue
			case <-h.done:
				return
			}
		}
		h.admit(conn.(*net.TCPConn))
	}
}

func (h *Host) admit(conn *net.TCPConn) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		conn.Close()
		return
	}
	if h.refuse > 0 {
		h.refuse--
		reset(conn)
		h.trace("refused", conn.RemoteAddr().String(), nil)
		return
	}
	if h.opts.ReadBuffer > 0 {
		_ = conn.SetReadBuffer(h.opts.ReadBuffer) // a wish to the kernel
	}
	l := newLink(h, conn)
	h.conns[l] = struct{}{}
	h.trace("connected", conn.RemoteAddr().String(), nil)
	h.wait.Add(2)
	go l.read()
	go l.write()
}

// attach makes l the component's connection, unless there is one already.
func (h *Host) attach(l *link) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed || h.link.Load() != nil {
		return false
	}
	h.links++
	l.number = h.links
	// The answer to the handshake must be ahead of the first routed stanza.
	l.out.put([]byte("<handshake/>"), h.opts.BufferLimit)
	h.link.Store(l)
	h.announce()
	h.trace("attached", fmt.Sprintf("connection %d", l.number), nil)
	return true
}

// detach forgets l as the component's connection, if it is.
func (h *Host) detach(l *link, why string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.link.CompareAndSwap(l, nil) {
		h.announce()
		h.trace("detached", why, nil)
	}
}

// forget ends the bookkeeping of a connection that is closed.
func (h *Host) forget(l *link) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.conns, l)
}

// ended says whether Close was called.
func (h *Host) ended() bool {
	select {
	case <-h.done:
		return true
	default:
		return false
	}
}

// announce wakes those who wait for a change of link; mu is held.
func (h *Host) announce() {
	close(h.changed)
	h.changed = make(chan struct{})
}
