package hosttest

import (
	"context"

	"pepvault/component/loopback"
)

// Device is a [loopback.Device] for one test: its methods fail the test
// instead of returning an error. Variables in what it sends are replaced, those
// in what it expects are bound or compared; see [Match].
type Device struct {
	*loopback.Device
	host *Host
}

// Sends sends one stanza.
func (d *Device) Sends(stanza string) {
	d.host.t.Helper()
	raw, err := d.host.vars.Expand(stanza)
	if err == nil {
		err = d.Send([]byte(raw))
	}
	if err != nil {
		d.host.t.Fatalf("%s sends %s: %v", d.JID(), stanza, err)
	}
}

// Asks sends a request of that type ("get", "set") to the component and
// returns its answer, which must be a result.
func (d *Device) Asks(kind, payload string) loopback.Stanza {
	d.host.t.Helper()
	answer := d.ask(kind, payload)
	if err := answer.Err(); err != nil {
		d.host.t.Fatalf("%s asks %s: got error %v, want a result", d.JID(), payload, err)
	}
	return answer
}

// AsksInVain sends a request that must be answered with an error.
func (d *Device) AsksInVain(kind, payload string) *loopback.StanzaError {
	d.host.t.Helper()
	answer := d.ask(kind, payload)
	err := answer.Err()
	if err == nil {
		d.host.t.Fatalf("%s asks %s: got %s, want an error", d.JID(), payload, answer)
	}
	return err
}

func (d *Device) ask(kind, payload string) loopback.Stanza {
	d.host.t.Helper()
	expanded, err := d.host.vars.Expand(payload)
	if err != nil {
		d.host.t.Fatal(err)
	}
	answer, err := d.IQ(d.host.context(), kind, d.host.Component(), expanded)
	if err != nil {
		d.host.t.Fatalf("%s asks %s: %v", d.JID(), payload, err)
	}
	return answer
}

// Receives returns the next stanza, which must match want.
func (d *Device) Receives(want string) loopback.Stanza {
	d.host.t.Helper()
	s := d.next()
	if err := Match(want, s.Raw, d.host.vars); err != nil {
		d.host.t.Fatalf("%s receives: %v", d.JID(), err)
	}
	return s
}

// ReceivesInAnyOrder takes as many stanzas as are wanted; each must match one.
func (d *Device) ReceivesInAnyOrder(want ...string) {
	d.host.t.Helper()
	if err := receiveSet(d.host.context(), peer{d.Device}, want, d.host.vars); err != nil {
		d.host.t.Fatalf("%s receives: %v", d.JID(), err)
	}
}

// ReceivesNothing makes sure that nothing is under way to the device: it pings
// the component, and the answer must be what comes next. What the component
// has not begun to send by then it does not see.
func (d *Device) ReceivesNothing() {
	d.host.t.Helper()
	if err := receiveNothing(d.host.context(), peer{d.Device}, d.host.Component()); err != nil {
		d.host.t.Fatalf("%s: %v", d.JID(), err)
	}
}

func (d *Device) next() loopback.Stanza {
	d.host.t.Helper()
	s, err := d.Recv(d.host.context())
	if err != nil {
		d.host.t.Fatalf("%s receives nothing: %v", d.JID(), err)
	}
	return s
}

// peer makes a device a [Peer].
type peer struct{ device *loopback.Device }

func (p peer) Send(raw []byte) error { return p.device.Send(raw) }
func (p peer) Close() error          { return p.device.Close() }

func (p peer) Recv(ctx context.Context) ([]byte, error) {
	s, err := p.device.Recv(ctx)
	return s.Raw, err
}

// Network lets scripts run on the host.
func (h *Host) Network() Network { return network{h.Host} }

type network struct{ *loopback.Host }

func (n network) Connect(_ context.Context, jid string) (Peer, error) {
	d, err := n.Host.Connect(jid)
	if err != nil {
		return nil, err
	}
	return peer{d}, nil
}
