package loopback

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync"
)

// Device is a connected resource of an account. It costs no goroutine and
// needs none: what it does not take with Recv waits, up to
// [Options.BufferLimit]; so a device that never reads is one that never calls
// Recv. Nothing is answered by itself, neither pings nor queries.
//
// All methods may be called from any goroutine.
type Device struct {
	host    *Host
	jid     string
	bare    string
	receive func(*Device, Stanza) // nil: queue

	mu        sync.Mutex
	queue     []Stanza
	waiting   int           // bytes in queue
	wake      chan struct{} // holds a token when there may be something to take
	calls     map[string]call
	directed  map[string]struct{} // sent directed presence to
	available bool                // has broadcast presence
	priority  int
	gone      chan struct{} // closed by end
	err       error         // why it ended
}

// call is an IQ of ours that is not answered yet.
type call struct {
	to     string
	answer chan<- Stanza
}

// Connect makes the account's resource connected: jid is a full JID of the
// host's domain, and `from` of what it sends is jid as spelled here. One that
// is connected as the same is replaced ([ErrReplaced]).
func (h *Host) Connect(jid string) (*Device, error) { return h.ConnectFunc(jid, nil) }

// ConnectFunc is [Host.Connect] for a device whose stanzas go to receive
// instead of a queue, except those that answer [Device.IQ]. receive is called
// by the goroutine that brings the stanza (for those from the component, the
// only reader of its stream), must not block, may send, and must not keep
// s.Raw without cloning it.
func (h *Host) ConnectFunc(jid string, receive func(d *Device, s Stanza)) (*Device, error) {
	bare, resource, _ := strings.Cut(jid, "/")
	local, _, found := strings.Cut(bare, "@")
	if !found || local == "" || resource == "" || domainOf(bare) != h.opts.Domain {
		return nil, fmt.Errorf("loopback: connect %q: not a full JID of %s", jid, h.opts.Domain)
	}
	d := &Device{
		host: h, jid: jid, bare: bare, receive: receive,
		wake: make(chan struct{}, 1), gone: make(chan struct{}),
	}
	h.deviceMu.Lock()
	if h.ended() {
		h.deviceMu.Unlock()
		return nil, ErrClosed
	}
	old := h.devices[jid]
	h.unlist(old)
	h.devices[jid] = d
	h.accounts[bare] = append(h.accounts[bare], d)
	h.deviceMu.Unlock()
	if old != nil {
		old.leave(ErrReplaced)
	}
	return d, nil
}

// unlist takes d out of the tables and says whether it was there; deviceMu is
// held.
func (h *Host) unlist(d *Device) bool {
	if d == nil || h.devices[d.jid] != d {
		return false
	}
	delete(h.devices, d.jid)
	var rest []*Device
	for _, other := range h.accounts[d.bare] {
		if other != d {
			rest = append(rest, other)
		}
	}
	if rest == nil {
		delete(h.accounts, d.bare)
	} else {
		h.accounts[d.bare] = rest
	}
	return true
}

// JID is the full JID.
func (d *Device) JID() string { return d.jid }

// Bare is the account.
func (d *Device) Bare() string { return d.bare }

// Host is where the device is connected.
func (d *Device) Host() *Host { return d.host }

// Close disconnects: the host sends `unavailable` to whom the device had sent
// directed presence. It always returns nil.
func (d *Device) Close() error {
	d.disconnect(ErrClosed, true)
	return nil
}

// Vanish disconnects without the host telling anybody, as when the host
// itself was restarted.
func (d *Device) Vanish() { d.disconnect(ErrClosed, false) }

func (d *Device) disconnect(why error, tell bool) {
	d.host.deviceMu.Lock()
	listed := d.host.unlist(d)
	d.host.deviceMu.Unlock()
	switch {
	case listed && tell:
		d.leave(why)
	case listed:
		d.end(why)
	}
}

// leave ends d, which is unlisted, and tells those who know of it.
func (d *Device) leave(why error) {
	for _, to := range d.end(why) {
		d.unavailable(to)
	}
}

// end returns to whom directed presence had been sent.
func (d *Device) end(why error) (directed []string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.err != nil {
		return nil
	}
	d.err = why
	close(d.gone)
	for to := range d.directed {
		directed = append(directed, to)
	}
	d.directed, d.available = nil, false
	return directed
}

func (d *Device) unavailable(to string) {
	s := compose(Stanza{Name: "presence", Type: "unavailable", From: d.jid, To: to}, "")
	d.host.intercepted(ToComponent, s, d.host.route)
}

// IQ sends a request of type get or set with an id of its own and waits for
// its answer, which does not come with Recv. An answer of type error is no
// error here: see [Stanza.Err].
func (d *Device) IQ(ctx context.Context, kind, to, payload string) (Stanza, error) {
	id := "iq" + strconv.FormatInt(d.host.iqs.Add(1), 10)
	answer := make(chan Stanza, 1)
	d.mu.Lock()
	if d.calls == nil {
		d.calls = make(map[string]call)
	}
	d.calls[id] = call{to: to, answer: answer}
	d.mu.Unlock()
	defer func() {
		d.mu.Lock()
		delete(d.calls, id)
		d.mu.Unlock()
	}()
	if err := d.Send(compose(Stanza{Name: "iq", Type: kind, To: to, ID: id}, payload).Raw); err != nil {
		return Stanza{}, err
	}
	select {
	case s := <-answer:
		return s, nil
	case <-ctx.Done():
		return Stanza{}, fmt.Errorf("iq %s to %s: %w", kind, to, ctx.Err())
	case <-d.gone:
		return Stanza{}, d.err
	}
}

// Reply answers the request s with a result.
func (d *Device) Reply(s Stanza, payload string) error {
	return d.Send(s.reply("result", payload).Raw)
}

// Refuse answers the request s with an error: type ("cancel") and defined
// condition ("service-unavailable").
func (d *Device) Refuse(s Stanza, kind, condition string) error {
	return d.Send(s.bounce(kind, condition, "", "").Raw)
}

// Recv waits for the next stanza in the order of delivery. What was delivered
// before the device ended still comes.
func (d *Device) Recv(ctx context.Context) (Stanza, error) {
	for {
		if s, ok := d.take(); ok {
			return s, nil
		}
		select {
		case <-d.wake:
		case <-ctx.Done():
			return Stanza{}, ctx.Err()
		case <-d.gone:
			if s, ok := d.take(); ok {
				return s, nil
			}
			return Stanza{}, d.err
		}
	}
}

// Messages takes all messages that wait now and leaves other stanzas.
func (d *Device) Messages() []Stanza {
	d.mu.Lock()
	defer d.mu.Unlock()
	var messages, rest []Stanza
	for _, s := range d.queue {
		if s.Name == "message" {
			messages = append(messages, s)
			d.waiting -= len(s.Raw)
		} else {
			rest = append(rest, s)
		}
	}
	d.queue = rest
	return messages
}

// Waiting is how many stanzas Recv would return at once.
func (d *Device) Waiting() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.queue)
}

func (d *Device) take() (Stanza, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.queue) == 0 {
		return Stanza{}, false
	}
	s := d.queue[0]
	d.queue[0] = Stanza{}
	d.queue = d.queue[1:]
	d.waiting -= len(s.Raw)
	if len(d.queue) > 0 {
		d.signal() // another Recv may be waiting
	}
	return s, true
}

func (d *Device) signal() {
	select {
	case d.wake <- struct{}{}:
	default:
	}
}

// deliver gives s to the device; s.Raw is lent.
func (d *Device) deliver(s Stanza) {
	d.mu.Lock()
	if d.err != nil {
		d.mu.Unlock()
		d.host.vanished.Add(1)
		return
	}
	if len(d.calls) > 0 && s.Name == "iq" && (s.Type == "result" || s.Type == "error") {
		if c, ok := d.calls[s.ID]; ok && (c.to == s.From || c.to == "") {
			delete(d.calls, s.ID)
			c.answer <- s.Clone()
			d.mu.Unlock()
			return
		}
	}
	if d.receive != nil {
		d.mu.Unlock()
		d.receive(d, s)
		return
	}
	over := d.waiting+len(s.Raw) > d.host.opts.BufferLimit
	if !over {
		d.queue = append(d.queue, s.Clone())
		d.waiting += len(s.Raw)
		d.signal()
	}
	d.mu.Unlock()
	if over {
		d.disconnect(ErrOverflow, true)
	}
}

func (d *Device) availability() (priority int, available bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.priority, d.available
}
