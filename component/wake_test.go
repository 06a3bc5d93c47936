package component_test

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"pepvault/component/hosttest"
	"pepvault/component/lane"
	"pepvault/component/loopback"
)

// drowsy is the way to the host of a service that may be stopped: then what
// the host sends waits in the socket, while time goes on. It may be clogged
// likewise: then nothing that the service writes goes on.
type drowsy struct {
	mu      sync.Mutex
	awake   chan struct{} // closed while the service runs
	open    chan struct{} // closed while it is not clogged
	waiting chan struct{} // one for each write that has to wait
}

func newDrowsy() *drowsy {
	d := &drowsy{awake: make(chan struct{}), open: make(chan struct{}), waiting: make(chan struct{}, 100)}
	close(d.awake)
	close(d.open)
	return d
}

func (d *drowsy) clog() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.open = make(chan struct{})
}

func (d *drowsy) clear() {
	d.mu.Lock()
	defer d.mu.Unlock()
	close(d.open)
}

func (d *drowsy) stop() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.awake = make(chan struct{})
}

func (d *drowsy) wake() {
	d.mu.Lock()
	defer d.mu.Unlock()
	close(d.awake)
}

func (d *drowsy) dial(ctx context.Context, network, address string) (net.Conn, error) {
	var dialer net.Dialer
	conn, err := dialer.DialContext(ctx, network, address)
	return &drowsyConn{conn, d}, err
}

type drowsyConn struct {
	net.Conn
	drowsy *drowsy
}

func (c *drowsyConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.drowsy.mu.Lock()
	awake := c.drowsy.awake
	c.drowsy.mu.Unlock()
	<-awake
	return n, err
}

func (c *drowsyConn) Write(p []byte) (int, error) {
	c.drowsy.mu.Lock()
	open := c.drowsy.open
	c.drowsy.mu.Unlock()
	select {
	case <-open:
	default:
		c.drowsy.waiting <- struct{}{}
		<-open
	}
	return c.Conn.Write(p)
}

// A service that was stopped for longer than a device may be silent forgets
// none whose answer had come meanwhile.
func TestStoppedServiceKeepsResources(t *testing.T) {
	t.Parallel()
	host := hosttest.New(t)
	way := newDrowsy()
	serve(t, host, func(s *setup) { s.verify, s.dial = 50*time.Millisecond, way.dial })
	phone := host.Device("alice/phone")
	phone.Asks("set", publishing("a"))
	subscribes(phone, "alice@localhost")
	phone.Sends(`<presence to='` + host.Component() + `'/>`)
	const state = `<message type='headline' from='*' id='*'><state xmlns='urn:pepvault:sync:0' owner='*' node='notes' cursor='$now'/></message>`
	phone.Receives(state)
	number := host.AwaitAttached()
	pings := make(chan struct{}, 100) // that the host does not come to, however long this takes
	release := host.Hold(loopback.FromComponent, func(s loopback.Stanza) bool {
		isPing := s.To == host.Domain()
		if isPing {
			pings <- struct{}{}
		}
		return isPing
	})
	host.Drop()
	host.AwaitReattached(number)
	phone.Receives(`<presence from='` + host.Component() + `'/>`)
	query := phone.Receives(`<iq type='get' id='*' from='*'><query xmlns='http://jabber.org/protocol/disco#info'/></iq>`)
	way.stop()
	if err := phone.Reply(query, ""); err != nil {
		t.Fatal(err)
	}
	for range 2 { // one at the beginning, one when the time for an answer is over
		select {
		case <-pings:
		case <-time.After(patience):
			t.Fatal("silence is judged without asking the host")
		}
	}
	release() // it answers behind the phone
	way.wake()
	phone.Receives(state)
}

// A crowded account's resource that answers is forgotten and told so.
func TestTooManyResources(t *testing.T) {
	t.Parallel()
	host := hosttest.New(t)
	r := serve(t, host, func(s *setup) { s.limits.Resources = 1 })
	first, second := host.Device("alice/first"), host.Device("alice/second")
	for _, d := range []*hosttest.Device{first, second} {
		d.Sends(`<presence to='` + host.Component() + `'/>`)
	}
	if err := first.Reply(first.Receives(askLife), ""); err != nil {
		t.Fatal(err)
	}
	first.Receives(`<presence type='unavailable' from='` + host.Component() + `'/>`)
	second.ReceivesNothing()
	if got := r.engine.Known(); len(got) != 1 || got[0].Resource != "second" {
		t.Errorf("known is %v, want the second alone", got)
	}
}

// An event to a bare JID that found no room is made good by the state, also if
// the host is gone meanwhile.
func TestMissedEventToABareJID(t *testing.T) {
	t.Parallel()
	for _, lost := range []bool{false, true} {
		t.Run(fmt.Sprint("connection lost: ", lost), func(t *testing.T) {
			t.Parallel()
			host := hosttest.New(t)
			way := newDrowsy()
			r, store := serveFaulty(t, host, func(s *setup) { s.queue, s.dial = 8<<10, way.dial })
			number := host.AwaitAttached()
			laptop, client := host.Device("alice/laptop"), host.Device("alice/client")
			laptop.Asks("set", publishing("a"))
			subscribes(laptop, "alice@localhost")
			client.Sends(`<presence/>`) // so that headlines for the bare JID reach it
			reached, release := make(chan struct{}), make(chan struct{})
			var once sync.Once
			store.set(func() error { once.Do(func() { close(reached) }); <-release; return nil })
			laptop.Sends(`<iq type='set' id='p' to='` + host.Component() + `'>` + publishing("b") + `</iq>`)
			<-reached
			way.clog()
			fill := []byte(`<message from='` + host.Component() + `' to='bob@localhost/phone' type='headline'><body>` + strings.Repeat("x", 4000) + `</body></message>`)
			r.writer.Small(bytes.Clone(fill))
			<-way.waiting // from now on nothing goes
			for r.writer.Small(bytes.Clone(fill)) {
			}
			before := r.writer.Stats().Dropped
			close(release)
			await(t, r.writer, "the event found no room", func(s lane.Stats) bool { return s.Dropped > before })
			if lost {
				host.Drop()
			}
			way.clear()
			if lost {
				host.AwaitReattached(number)
			}
			laptop.Receives(`<iq type='result' id='p' from='*'>*</iq>`)
			client.Receives(`<message type='headline' from='*' id='*'><state xmlns='urn:pepvault:sync:0' owner='*' node='notes' cursor='*'/></message>`)
			client.ReceivesNothing()
		})
	}
}
