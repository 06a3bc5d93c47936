package loopback

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
)

// Send hands one stanza to the host, which stamps `from` and brings it to its
// `to`. It does not wait for the component. The error is [ErrBadStanza], or
// says why the device has ended; what a host answers comes with Recv.
//
// Presence without `to` makes the device available (priority from its
// <priority/>, default 0) or, with type unavailable, not; presence with `to`
// is remembered as directed. A device that sends only directed presence gets
// no headline for its bare JID.
func (d *Device) Send(raw []byte) error {
	s, err := d.stamp(raw)
	if err != nil {
		return err
	}
	select {
	case <-d.gone:
		return d.err
	default:
	}
	if !d.host.opts.Fast && d.refused(s) {
		return nil
	}
	if s.To == "" {
		d.toSelf(s)
		return nil
	}
	if s.Name == "presence" {
		d.direct(s)
	}
	if domainOf(s.To) == d.host.opts.Component {
		d.host.intercepted(ToComponent, s, d.host.route)
	} else {
		d.host.route(s)
	}
	return nil
}

// Stamp returns raw as the host would put it on the component's stream, for
// [Device.SendStamped].
func (d *Device) Stamp(raw []byte) ([]byte, error) {
	s, err := d.stamp(raw)
	return s.Raw, err
}

// SendStamped puts one stanza for the component on its stream as it is, past
// interceptors and all checks: raw must be what [Device.Stamp] returned, or as
// good (the `id` may differ). It may be changed afterwards. The error is
// [ErrDetached].
func (d *Device) SendStamped(raw []byte) error {
	l := d.host.link.Load()
	if l == nil || !l.send(raw) {
		return ErrDetached
	}
	d.host.routed[ToComponent].Add(1)
	d.host.trace("sent", "", raw)
	return nil
}

// stamp checks what the device sends and writes it as the host sends it on.
func (d *Device) stamp(raw []byte) (Stanza, error) {
	raw = bytes.TrimSpace(raw)
	var t tag
	if err := t.parse(raw); err != nil || !isStanza(string(t.name)) {
		return Stanza{}, fmt.Errorf("%w: no iq, message or presence", ErrBadStanza)
	}
	if len(raw) > d.host.opts.DeviceStanzaLimit {
		return Stanza{}, fmt.Errorf("%w: %d bytes, the limit is %d", ErrBadStanza, len(raw), d.host.opts.DeviceStanzaLimit)
	}
	s := d.host.describe(&t, raw)
	s.From = d.jid
	if s.Name == "presence" && s.Type != "probe" && subscription(s.Type) {
		s.From = d.bare // RFC 6121 §3: subscriptions are the account's
	}
	if d.host.opts.Fast {
		s.Raw = restamp(&t, raw, s.From)
		return s, nil
	}
	written, err := d.host.rewrite(raw, nsClient, map[string]string{"from": s.From})
	if err != nil {
		return Stanza{}, fmt.Errorf("%w: %w", ErrBadStanza, err)
	}
	s.Raw = written
	return s, nil
}

// restamp writes only the start tag anew.
func restamp(t *tag, raw []byte, from string) []byte {
	b := make([]byte, 0, len(raw)+len(from)+8)
	b = append(append(b, '<'), t.name...)
	b = appendAttr(b, "from", from)
	for _, a := range t.attrs {
		if name := string(a.name); name == "from" || name == "xmlns" && string(a.value) == nsClient {
			continue
		}
		quote := byte('\'')
		if bytes.IndexByte(a.value, quote) >= 0 {
			quote = '"'
		}
		b = append(append(append(b, ' '), a.name...), '=', quote)
		b = append(append(b, a.value...), quote)
	}
	if t.empty {
		b = append(b, '/')
	}
	return append(append(b, '>'), raw[t.size:]...)
}

// refused answers what Prosody refuses from a client (core_process_stanza).
func (d *Device) refused(s Stanza) bool {
	if s.Type == "error" && len(s.Payload()) == 0 {
		return true
	}
	if s.Name != "iq" {
		return false
	}
	why := ""
	switch s.Type {
	case "get", "set":
		if s.ID != "" && s.children() != 1 {
			why = "a request holds one element"
		}
	case "result", "error":
	default:
		why = "no such type of iq"
	}
	if s.ID == "" && why == "" {
		why = "an iq needs an id"
	}
	if why != "" {
		d.host.bounce(s, "modify", "bad-request", why, "")
	}
	return why != ""
}

// children counts the elements directly below the stanza.
func (s Stanza) children() int {
	var body struct {
		Children []struct{} `xml:",any"`
	}
	_ = s.Decode(&body) // it was written by us
	return len(body.Children)
}

// toSelf is what has no `to`: it is for the account, or its presence.
func (d *Device) toSelf(s Stanza) {
	if s.Name != "presence" {
		s.To = d.bare
		d.host.route(s)
		return
	}
	switch s.Type {
	case "":
		var body struct {
			Priority string `xml:"priority"`
		}
		_ = s.Decode(&body)
		priority, _ := strconv.Atoi(strings.TrimSpace(body.Priority)) // Prosody's way: 0 if it is none
		d.mu.Lock()
		d.available, d.priority = true, priority
		d.mu.Unlock()
	case "unavailable":
		d.mu.Lock()
		d.available = false
		directed := d.directed
		d.directed = nil
		d.mu.Unlock()
		for to := range directed {
			d.unavailable(to)
		}
	}
}

// direct remembers to whom presence was sent.
func (d *Device) direct(s Stanza) {
	d.mu.Lock()
	defer d.mu.Unlock()
	switch s.Type {
	case "":
		if d.directed == nil {
			d.directed = make(map[string]struct{})
		}
		d.directed[s.To] = struct{}{}
	case "unavailable", "error":
		delete(d.directed, s.To)
	}
}
