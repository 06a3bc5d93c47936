package hosttest

import (
	"sync"

	"pepvault/component/loopback"
)

// Stall stops the host's reading and writing until [Host.Resume], as if its
// process were stopped: connections stay, also new ones, and buffers fill.
func (h *Host) Stall() { h.Host.Stall(true, true) }

// StallReads stops the host's reading alone: what it has goes out.
func (h *Host) StallReads() { h.Host.Stall(true, false) }

// StallWrites stops the host's writing alone.
func (h *Host) StallWrites() { h.Host.Stall(false, true) }

// Cut resets the component's connection: it reads an error at once.
func (h *Host) Cut() { h.Reset() }

// CutSilently makes the host ignore the component's socket from now on,
// without a FIN: only the component's own time-outs find out. A new connection
// is accepted.
func (h *Host) CutSilently() { h.Abandon() }

// Up listens again after Down.
func (h *Host) Up() {
	h.t.Helper()
	if err := h.Host.Up(); err != nil {
		h.t.Fatal(err)
	}
}

// StreamError ends the stream with an error of the defined condition, such as
// "system-shutdown"; with "" it ends without one.
func (h *Host) StreamError(condition string) { h.EndStream(condition) }

// Inject puts raw on the component's stream as it is.
func (h *Host) Inject(raw string) {
	h.t.Helper()
	if err := h.Host.Inject([]byte(raw)); err != nil {
		h.t.Fatal(err)
	}
}

// Lose drops the next n stanzas of that direction that match; nil matches all.
func (h *Host) Lose(dir loopback.Direction, n int, match func(loopback.Stanza) bool) {
	h.rules.add(func(d loopback.Direction, s loopback.Stanza) ([]loopback.Stanza, bool) {
		if n == 0 || d != dir || match != nil && !match(s) {
			return nil, false
		}
		n--
		return nil, true
	})
}

// Reorder holds back the next n stanzas of that direction that match, and lets
// them go in reverse order when the last of them has come.
func (h *Host) Reorder(dir loopback.Direction, n int, match func(loopback.Stanza) bool) {
	var held []loopback.Stanza
	h.rules.add(func(d loopback.Direction, s loopback.Stanza) ([]loopback.Stanza, bool) {
		if n == 0 || d != dir || match != nil && !match(s) {
			return nil, false
		}
		n--
		held = append([]loopback.Stanza{s.Clone()}, held...)
		if n > 0 {
			return nil, true
		}
		return held, true
	})
}

// Hold holds back all stanzas of that direction that match until release,
// which returns how many it let go, in their order.
func (h *Host) Hold(dir loopback.Direction, match func(loopback.Stanza) bool) (release func() int) {
	var held []loopback.Stanza
	over := false
	h.rules.add(func(d loopback.Direction, s loopback.Stanza) ([]loopback.Stanza, bool) {
		if over || d != dir || match != nil && !match(s) {
			return nil, false
		}
		held = append(held, s.Clone())
		return nil, true
	})
	return func() int {
		h.rules.mu.Lock()
		over = true
		h.rules.mu.Unlock()
		for _, s := range held {
			h.Forward(s)
		}
		return len(held)
	}
}

// rule may take a stanza; then out goes on in its place.
type rule func(loopback.Direction, loopback.Stanza) (out []loopback.Stanza, taken bool)

// rules are asked in their order until one takes the stanza. They are called
// under mu and share nothing else.
type rules struct {
	mu  sync.Mutex
	all []rule
}

func (r *rules) add(f rule) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.all = append(r.all, f)
}

func (r *rules) intercept(dir loopback.Direction, s loopback.Stanza) []loopback.Stanza {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, f := range r.all {
		if out, taken := f(dir, s); taken {
			return out
		}
	}
	return []loopback.Stanza{s}
}
