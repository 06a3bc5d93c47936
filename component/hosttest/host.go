// Package hosttest tests an XMPP component against a host that the test
// controls: devices that send and expect stanzas, scripts of such exchanges,
// and the faults of hosts and networks.
//
// Stanzas are compared by what they mean ([Match]), so the expectations hold
// for any host; the script runner knows hosts only as a [Network], so the same
// files can be run against a real server.
package hosttest

import (
	"context"
	"strconv"
	"strings"
	"testing"
	"time"

	"pepvault/component/loopback"
)

// patience is how long an expectation waits before it fails. It is far more
// than any machine needs: a test that passes never waits so long.
const patience = 5 * time.Minute

// Host is a [loopback.Host] for one test. Where it has a method of the same
// name, that one fails the test instead of returning an error.
//
// Its methods, and those of its devices, belong to the test's goroutine.
type Host struct {
	*loopback.Host
	t     testing.TB
	vars  Vars
	lines transcript
	rules rules
}

// New starts a host for the test and closes it at its end; a test that failed
// shows what was said. change, if given, may change the options. A component
// started after New is closed before the host, as t.Cleanup goes.
func New(t testing.TB, change ...func(*loopback.Options)) *Host {
	t.Helper()
	h := &Host{t: t}
	var opts loopback.Options
	for _, f := range change {
		f(&opts)
	}
	also := opts.Trace
	opts.Trace = func(e loopback.Event) {
		h.lines.add(e)
		if also != nil {
			also(e)
		}
	}
	host, err := loopback.Start(opts)
	if err != nil {
		t.Fatalf("start the host: %v", err)
	}
	h.Host = host
	h.vars = Vars{"host": host.Domain(), "component": host.Component()}
	host.SetIntercept(h.rules.intercept)
	t.Cleanup(func() {
		host.Close()
		if t.Failed() {
			t.Logf("what the host saw:\n%s", h.lines.String())
		}
	})
	return h
}

// Transcript is what the host saw so far, one line an event, the oldest
// forgotten.
func (h *Host) Transcript() string { return h.lines.String() }

// Vars are the values that expectations have bound; see [Match]. Two are set
// from the beginning: $host and $component.
func (h *Host) Vars() Vars { return h.vars }

// AwaitAttached waits for a component and returns the number of its
// connection.
func (h *Host) AwaitAttached() int {
	h.t.Helper()
	number, err := h.Host.Attached(h.context())
	if err != nil {
		h.t.Fatalf("no component has attached: %v", err)
	}
	return number
}

// AwaitDetached waits until no component is attached.
func (h *Host) AwaitDetached() {
	h.t.Helper()
	if err := h.Host.Detached(h.context()); err != nil {
		h.t.Fatalf("the component is still attached: %v", err)
	}
}

// AwaitReattached waits for a connection later than the one numbered.
func (h *Host) AwaitReattached(number int) int {
	h.t.Helper()
	next, err := h.Host.Reattached(h.context(), number)
	if err != nil {
		h.t.Fatalf("the component has not come back: %v", err)
	}
	return next
}

// SameConnection remembers the attached connection; the function that it
// returns fails the test unless that one is still attached and carries a
// stanza there and an answer back.
func (h *Host) SameConnection() (check func()) {
	h.t.Helper()
	before := h.AwaitAttached()
	return func() {
		h.t.Helper()
		probe := h.connect("connection-probe@" + h.Domain() + "/" + strconv.Itoa(h.Links()))
		defer probe.Close()
		ctx := h.context()
		if _, err := probe.IQ(ctx, "get", h.Component(), "<ping xmlns='urn:xmpp:ping'/>"); err != nil {
			h.t.Fatalf("the connection carries nothing: %v", err)
		}
		if now := h.Link(); now != before {
			h.t.Fatalf("got connection %d (0: none), want still %d", now, before)
		}
	}
}

// Device connects a device. Its address may be shortened: "alice/phone" is
// alice@ the host's domain.
func (h *Host) Device(address string) *Device {
	h.t.Helper()
	return &Device{Device: h.connect(fullJID(address, h.Domain())), host: h}
}

func (h *Host) connect(jid string) *loopback.Device {
	h.t.Helper()
	d, err := h.Host.Connect(jid)
	if err != nil {
		h.t.Fatal(err)
	}
	return d
}

func (h *Host) context() context.Context {
	ctx, cancel := context.WithTimeout(h.t.Context(), patience)
	h.t.Cleanup(cancel)
	return ctx
}

func fullJID(address, domain string) string {
	local, resource, _ := strings.Cut(address, "/")
	if strings.Contains(local, "@") {
		return address
	}
	return local + "@" + domain + "/" + resource
}
