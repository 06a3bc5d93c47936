package loopback

import (
	"bytes"
	"encoding/xml"
)

// storedLimit bounds Host.Stored.
const storedLimit = 1000

// fromComponent takes a child of the component's stream. The order of checks
// is Prosody's (mod_component, stanza_router).
func (h *Host) fromComponent(l *link, raw []byte) error {
	t := &l.scan
	if err := t.parse(raw); err != nil {
		return &streamError{"not-well-formed", ""}
	}
	h.routed[FromComponent].Add(1)
	s := h.describe(t, raw)
	h.trace("received", "", raw)
	if !h.opts.Fast {
		written, err := h.rewrite(raw, nsComponent, nil)
		if err != nil {
			return &streamError{"not-well-formed", ""}
		}
		s.Raw = written
	}
	if space := t.value("xmlns"); space != nil && string(space) != nsComponent {
		if string(space) != nsClient || !isStanza(s.Name) {
			return &streamError{"unsupported-stanza-type", ""}
		}
		h.misplaced.Add(1)
		if s.request() {
			h.bounce(s, "cancel", "service-unavailable", "", "")
		}
		return nil
	}
	if !isStanza(s.Name) {
		return &streamError{"unsupported-stanza-type", ""}
	}
	if domainOf(s.From) != h.opts.Component {
		return &streamError{"invalid-from", "the address " + s.From + " is not of " + h.opts.Component}
	}
	if s.To == "" {
		if s.Type != "error" { // even a result: Prosody does
			h.bounce(s, "modify", "bad-request", "the stanza names no recipient", "")
		}
		return nil
	}
	h.intercepted(FromComponent, s, h.route)
	return nil
}

func isStanza(name string) bool { return name == "iq" || name == "message" || name == "presence" }

// describe fills a stanza from its tag.
func (h *Host) describe(t *tag, raw []byte) Stanza {
	return Stanza{
		Name: known(t.name), Type: known(t.value("type")), ID: t.text("id"),
		From: h.address(t.value("from")), To: h.address(t.value("to")), Raw: raw,
	}
}

// address spares the allocation of the addresses that we know.
func (h *Host) address(value []byte) string {
	if string(value) == h.opts.Component {
		return h.opts.Component
	}
	h.deviceMu.RLock()
	d := h.devices[string(value)]
	h.deviceMu.RUnlock()
	if d != nil {
		return d.jid
	}
	return unescape(value)
}

// route brings s to where its `to` says.
func (h *Host) route(s Stanza) {
	bare := bareOf(s.To)
	switch domainOf(bare) {
	case h.opts.Component:
		h.toComponent(s)
	case h.opts.Domain:
		switch {
		case bare == h.opts.Domain:
			h.toHost(s)
		case bare == s.To:
			h.toAccount(s, bare)
		default:
			h.toDevice(s, bare)
		}
	default:
		if s.answered() {
			h.bounce(s, "cancel", "remote-server-not-found", "", "")
		}
	}
}

func (h *Host) toComponent(s Stanza) {
	if l := h.link.Load(); l != nil && l.send(s.Raw) {
		h.routed[ToComponent].Add(1)
		h.trace("sent", "", s.Raw)
		return
	}
	if s.answered() {
		h.bounce(s, "wait", "remote-server-timeout", "the component is not connected",
			"<not-connected xmlns='xmpp:prosody.im/protocol/component'/>")
		return
	}
	h.vanished.Add(1)
}

// toHost answers for the host's own domain.
func (h *Host) toHost(s Stanza) {
	switch {
	case s.isPing():
		h.route(s.reply("result", ""))
	case s.request(), s.Name == "message" && s.answered():
		h.bounce(s, "cancel", "service-unavailable", "", "")
	default:
		h.vanished.Add(1)
	}
}

// toAccount brings s to a bare JID.
func (h *Host) toAccount(s Stanza, bare string) {
	switch s.Name {
	case "iq":
		h.toHost(s) // the account's answers are the host's
	case "message":
		switch s.Type {
		case "error":
			h.vanished.Add(1)
		case "headline":
			h.broadcast(s, bare, 0)
		default:
			h.store(s)
		}
	case "presence":
		if s.Type == "probe" { // nobody is on a roster
			h.route(compose(Stanza{Name: "presence", Type: "unsubscribed", From: bare, To: bareOf(s.From)}, ""))
			return
		}
		h.broadcast(s, bare, minPriority)
	}
}

// minPriority is the least that a presence may have (RFC 6121 §4.7.2.3).
const minPriority = -128

// broadcast delivers s to the account's available devices of a priority.
func (h *Host) broadcast(s Stanza, bare string, priority int) {
	h.deviceMu.RLock()
	devices := append([]*Device(nil), h.accounts[bare]...)
	h.deviceMu.RUnlock()
	reached := false
	for _, d := range devices {
		if has, available := d.availability(); available && has >= priority {
			d.deliver(s)
			reached = true
		}
	}
	if !reached {
		h.vanished.Add(1)
	}
}

// toDevice brings s to a full JID.
func (h *Host) toDevice(s Stanza, bare string) {
	h.deviceMu.RLock()
	d := h.devices[s.To]
	h.deviceMu.RUnlock()
	switch {
	case s.Name == "presence" && subscription(s.Type):
		h.toAccount(s, bare)
	case d != nil:
		d.deliver(s)
	case s.request():
		h.bounce(s, "cancel", "service-unavailable", "", "")
	case s.Name == "message" && s.Type != "headline" && s.Type != "error":
		h.store(s)
	default:
		h.vanished.Add(1)
	}
}

func subscription(kind string) bool {
	switch kind {
	case "", "unavailable", "error":
		return false
	}
	return true
}

func (h *Host) store(s Stanza) {
	h.storedMu.Lock()
	defer h.storedMu.Unlock()
	if len(h.stored) < storedLimit {
		h.stored = append(h.stored, s.Clone())
	}
}

// bounce answers s with an error of the host. s must be answerable.
func (h *Host) bounce(s Stanza, kind, condition, text, extra string) {
	h.bounced.Add(1)
	h.route(s.bounce(kind, condition, text, extra))
}

// isPing says whether s is a get of XEP-0199.
func (s Stanza) isPing() bool {
	if s.Name != "iq" || s.Type != "get" || !bytes.Contains(s.Raw, []byte(nsPing)) {
		return false
	}
	var body struct {
		Ping *struct {
			XMLName xml.Name `xml:"urn:xmpp:ping ping"`
		}
	}
	return s.Decode(&body) == nil && body.Ping != nil
}
