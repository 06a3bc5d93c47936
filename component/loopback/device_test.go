package loopback

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
)

// TestFrom: a device can't say who it is.
func TestFrom(t *testing.T) {
	t.Parallel()
	const jid = "al'ice&@localhost/ph<o>ne/2"
	tests := map[string]struct{ send, want string }{
		"stamped":      {"<presence to='vault.localhost'/>", jid},
		"forged":       {`<presence from="mallory@localhost/x" to='vault.localhost'/>`, jid},
		"forged twice": {"<message from='vault.localhost' to='vault.localhost'><x xmlns='y' from='z'/></message>", jid},
		"subscribe":    {"<presence type='subscribe' to='vault.localhost'/>", "al'ice&@localhost"},
		"probe":        {"<presence type='probe' to='vault.localhost'/>", jid},
		"unavailable":  {"<presence type='unavailable' to='vault.localhost'/>", jid},
	}
	for name, test := range tests {
		for _, fast := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, fast %t", name, fast), func(t *testing.T) {
				t.Parallel()
				h := start(t, Options{Fast: fast})
				d := connect(t, h, jid)
				c := attach(t, h)
				send(t, d, test.send)
				s := c.readStanza()
				if s.From != test.want || bytes.Count(s.Raw[:bytes.IndexByte(s.Raw, '>')], []byte(" from=")) != 1 {
					t.Errorf("got %s, want from %s", s, test.want)
				}
				c.send("<iq type='result' id='x' from='vault.localhost' to='%s'/>", escape(d.JID()))
				if got := recv(t, d); got.ID != "x" || got.To != jid {
					t.Errorf("got %s", got)
				}
			})
		}
	}
}

func TestBadStanzas(t *testing.T) {
	t.Parallel()
	h := start(t, Options{})
	d := connect(t, h, "alice@localhost/phone")
	for name, raw := range map[string]string{
		"empty":        "",
		"text":         "hello",
		"other":        "<stream:stream to='vault.localhost'>",
		"two":          "<presence to='vault.localhost'/><presence/>",
		"half":         "<message to='vault.localhost'>",
		"unquoted":     "<message to=vault.localhost/>",
		"comment":      "<message to='vault.localhost'><!-- --></message>",
		"wrong end":    "<message to='vault.localhost'></presence>",
		"too large":    "<message to='vault.localhost'>" + strings.Repeat("x", DefaultDeviceStanzaLimit) + "</message>",
		"trailing":     "<message to='vault.localhost'/>text",
		"empty prefix": "<message to='vault.localhost'><x:a xmlns:x=''/></message>",
	} {
		if err := d.Send([]byte(raw)); !errors.Is(err, ErrBadStanza) {
			t.Errorf("%s: got %v, want ErrBadStanza", name, err)
		}
	}
	for _, jid := range []string{"", "localhost", "alice@localhost", "alice@localhost/", "@localhost/x", "alice@example.org/x"} {
		if _, err := h.Connect(jid); err == nil {
			t.Errorf("connect %q: got no error", jid)
		}
	}
}

// TestRefused: what the host answers in the component's place.
func TestRefused(t *testing.T) {
	t.Parallel()
	const ping = "<ping xmlns='urn:xmpp:ping'/>"
	tests := map[string]struct{ send, want string }{
		"unknown type":     {"<iq type='ask' id='1' to='vault.localhost'>" + ping + "</iq>", "modify/bad-request"},
		"no type":          {"<iq id='1' to='vault.localhost'>" + ping + "</iq>", "modify/bad-request"},
		"no id":            {"<iq type='get' to='vault.localhost'>" + ping + "</iq>", "modify/bad-request"},
		"no child":         {"<iq type='get' id='1' to='vault.localhost'>text</iq>", "modify/bad-request"},
		"two children":     {"<iq type='get' id='1' to='vault.localhost'>" + ping + ping + "</iq>", "modify/bad-request"},
		"foreign domain":   {"<iq type='get' id='1' to='example.org'>" + ping + "</iq>", "cancel/remote-server-not-found"},
		"other device":     {"<iq type='get' id='1' to='bob@localhost/x'>" + ping + "</iq>", "cancel/service-unavailable"},
		"own account":      {"<iq type='get' id='1'><query xmlns='jabber:iq:roster'/></iq>", "cancel/service-unavailable"},
		"ping the account": {"<iq type='get' id='1'>" + ping + "</iq>", "result"},
		"ping the host":    {"<iq type='get' id='1' to='localhost'>" + ping + "</iq>", "result"},
		"detached, get":    {"<iq type='get' id='1' to='vault.localhost'>" + ping + "</iq>", "wait/remote-server-timeout"},
		"detached, set":    {"<iq type='set' id='1' to='x@vault.localhost'>" + ping + "</iq>", "wait/remote-server-timeout"},
		"detached message": {"<message to='vault.localhost'/>", "wait/remote-server-timeout"},
		"detached present": {"<presence to='vault.localhost'/>", "wait/remote-server-timeout"},
		"detached result":  {"<iq type='result' id='1' to='vault.localhost'/>", ""},
		"empty error":      {"<iq type='error' id='1' to='vault.localhost'/>", ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := start(t, Options{})
			d := connect(t, h, "alice@localhost/phone")
			send(t, d, test.send)
			if d.Waiting() == 0 && test.want == "" {
				return
			}
			s := recv(t, d)
			got := s.Type
			if err := s.Err(); err != nil {
				got = err.Type + "/" + err.Condition
			}
			if got != test.want {
				t.Errorf("got %s, want %s", s, test.want)
			}
		})
	}
}

func TestDirectedPresence(t *testing.T) {
	t.Parallel()
	const jid = "alice@localhost/phone"
	directed := "<presence to='vault.localhost'/>"
	tests := map[string]struct {
		sends []string
		leave func(t *testing.T, d *Device)
		want  []string // to whom unavailable is sent, in any order
	}{
		"close":          {[]string{directed}, func(_ *testing.T, d *Device) { d.Close() }, []string{"vault.localhost"}},
		"close twice":    {[]string{directed}, func(_ *testing.T, d *Device) { d.Close(); d.Close(); d.Vanish() }, []string{"vault.localhost"}},
		"two":            {[]string{directed, "<presence to='bob\\40localhost@vault.localhost'/>"}, func(_ *testing.T, d *Device) { d.Close() }, []string{"vault.localhost", "bob\\40localhost@vault.localhost"}},
		"repeated":       {[]string{directed, directed}, func(_ *testing.T, d *Device) { d.Close() }, []string{"vault.localhost"}},
		"none":           {nil, func(_ *testing.T, d *Device) { d.Close() }, nil},
		"broadcast only": {[]string{"<presence/>"}, func(_ *testing.T, d *Device) { d.Close() }, nil},
		"taken back":     {[]string{directed, "<presence type='unavailable' to='vault.localhost'/>"}, func(_ *testing.T, d *Device) { d.Close() }, []string{"vault.localhost"}},
		"subscription":   {[]string{"<presence type='subscribed' to='vault.localhost'/>"}, func(_ *testing.T, d *Device) { d.Close() }, nil},
		"vanish":         {[]string{directed}, func(_ *testing.T, d *Device) { d.Vanish() }, nil},
		"unavailable": {[]string{directed, "<presence/>"}, func(t *testing.T, d *Device) {
			send(t, d, "<presence type='unavailable'/>")
			d.Close()
		}, []string{"vault.localhost"}},
		"replaced": {[]string{directed}, func(t *testing.T, d *Device) {
			connect(t, d.Host(), jid)
			if _, err := d.Recv(deadline(t)); !errors.Is(err, ErrReplaced) {
				t.Errorf("got %v, want ErrReplaced", err)
			}
		}, []string{"vault.localhost"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := start(t, Options{})
			c := attach(t, h)
			d := connect(t, h, jid)
			for _, raw := range test.sends {
				send(t, d, raw)
			}
			test.leave(t, d)
			if err := d.Send([]byte(directed)); err == nil {
				t.Error("a device that left can send")
			}
			end := connect(t, h, "alice@localhost/end")
			send(t, end, "<message id='end' to='vault.localhost'/>")
			got := map[string]int{}
			for s := c.readStanza(); s.ID != "end"; s = c.readStanza() {
				if s.Type == "unavailable" {
					got[s.To]++
				}
				if s.Type != "subscribed" && s.From != jid {
					t.Errorf("got %s", s)
				}
			}
			if len(got) != len(test.want) {
				t.Errorf("got %v, want %v", got, test.want)
			}
			for _, to := range test.want {
				if got[to] != 1 {
					t.Errorf("got %d unavailable for %s, want 1", got[to], to)
				}
			}
		})
	}
}

func TestIQ(t *testing.T) {
	t.Parallel()
	h := start(t, Options{})
	d := connect(t, h, "alice@localhost/phone")
	c := attach(t, h)
	go func() {
		request := c.readStanza()
		c.send("<iq type='result' id='other' from='vault.localhost' to='%s'/>", d.JID())
		c.send("<iq type='result' id='%s' from='x@vault.localhost' to='%s'/>", request.ID, d.JID())
		c.send("<iq type='result' id='%s' from='vault.localhost' to='%s'><a xmlns='b'>c</a></iq>", request.ID, d.JID())
	}()
	got, err := d.IQ(deadline(t), "get", h.Component(), "<a xmlns='b'/>")
	if err != nil {
		t.Fatal(err)
	}
	if payload := string(got.Payload()); payload != "<a xmlns='b'>c</a>" || got.From != h.Component() {
		t.Errorf("got %s", got)
	}
	for _, want := range []string{"other", got.ID} {
		if s := recv(t, d); s.ID != want {
			t.Errorf("got %s, want id %s", s, want)
		}
	}

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := d.IQ(ctx, "get", h.Component(), "<a xmlns='b'/>"); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want canceled", err)
	}
	d.Close()
	if _, err := d.IQ(t.Context(), "get", h.Component(), "<a xmlns='b'/>"); !errors.Is(err, ErrClosed) {
		t.Errorf("got %v, want ErrClosed", err)
	}
}

func TestAnswersOfDevices(t *testing.T) {
	t.Parallel()
	h := start(t, Options{})
	d := connect(t, h, "alice@localhost/phone")
	c := attach(t, h)
	c.send("<iq type='set' id='1' from='vault.localhost' to='%s'><a xmlns='b'/></iq>", d.JID())
	request := recv(t, d)
	if err := d.Reply(request, "<c xmlns='d'/>"); err != nil {
		t.Fatal(err)
	}
	if err := d.Refuse(request, "cancel", "item-not-found"); err != nil {
		t.Fatal(err)
	}
	if s := c.readStanza(); s.Type != "result" || s.ID != "1" || string(s.Payload()) != "<c xmlns='d'/>" {
		t.Errorf("got %s", s)
	}
	if s := c.readStanza(); s.Err() == nil || s.Err().Condition != "item-not-found" || s.Err().Type != "cancel" {
		t.Errorf("got %s", s)
	}
}

func TestMessages(t *testing.T) {
	t.Parallel()
	h := start(t, Options{})
	d := connect(t, h, "alice@localhost/phone")
	c := attach(t, h)
	c.send("<message id='1' from='vault.localhost' to='%[1]s'/><presence id='2' from='vault.localhost' to='%[1]s'/><message id='3' from='vault.localhost' to='%[1]s'/>", d.JID())
	c.wantAlive(h)
	messages := d.Messages()
	if len(messages) != 2 || messages[0].ID != "1" || messages[1].ID != "3" {
		t.Errorf("got %v, want 1 and 3", messages)
	}
	if s := recv(t, d); s.ID != "2" || d.Waiting() != 0 {
		t.Errorf("got %s and %d more", s, d.Waiting())
	}
}

// TestOverflow: a device that does not read is cut off at last, and the
// component is told.
func TestOverflow(t *testing.T) {
	t.Parallel()
	h := start(t, Options{BufferLimit: 100_000})
	d := connect(t, h, "alice@localhost/phone")
	c := attach(t, h)
	send(t, d, "<presence to='vault.localhost'/>")
	c.readStanza()
	for range 11 {
		c.send("<message type='headline' from='vault.localhost' to='%s'><x xmlns='y'>%s</x></message>", d.JID(), strings.Repeat("x", 10_000))
	}
	if s := c.readStanza(); s.Type != "unavailable" || s.From != d.JID() {
		t.Errorf("got %s, want unavailable", s)
	}
	for range 9 {
		recv(t, d)
	}
	if _, err := d.Recv(deadline(t)); !errors.Is(err, ErrOverflow) {
		t.Errorf("got %v, want ErrOverflow", err)
	}
}

func TestIntercept(t *testing.T) {
	t.Parallel()
	h := start(t, Options{})
	d := connect(t, h, "alice@localhost/phone")
	c := attach(t, h)
	var held []Stanza
	h.SetIntercept(func(dir Direction, s Stanza) []Stanza {
		switch {
		case dir == ToComponent:
			return []Stanza{s, s}
		case s.ID == "lost":
			return nil
		case s.ID == "held":
			held = append(held, s.Clone())
			return nil
		}
		return []Stanza{s}
	})
	send(t, d, "<presence id='twice' to='vault.localhost'/>")
	for range 2 {
		if s := c.readStanza(); s.ID != "twice" {
			t.Errorf("got %s", s)
		}
	}
	for _, id := range []string{"lost", "held", "kept"} {
		c.send("<message id='%s' from='vault.localhost' to='%s'/>", id, d.JID())
	}
	if s := recv(t, d); s.ID != "kept" {
		t.Errorf("got %s", s)
	}
	h.SetIntercept(nil)
	h.Forward(held[0])
	if s := recv(t, d); s.ID != "held" {
		t.Errorf("got %s", s)
	}
}

// TestManyDevices: many send at once, each is answered in its own order.
func TestManyDevices(t *testing.T) {
	t.Parallel()
	for _, fast := range []bool{false, true} {
		t.Run(fmt.Sprintf("fast %t", fast), func(t *testing.T) {
			t.Parallel()
			const devices, requests = 50, 40
			h := start(t, Options{Fast: fast})
			c := attach(t, h)
			go c.echo("<a xmlns='b'/>")
			var wait sync.WaitGroup
			for i := range devices {
				d := connect(t, h, fmt.Sprintf("user%d@localhost/r", i))
				wait.Go(func() {
					for n := range requests {
						if err := d.Send(fmt.Appendf(nil, "<iq type='get' id='%d' to='vault.localhost'><a xmlns='b'/></iq>", n)); err != nil {
							t.Error(err)
						}
					}
				})
				wait.Go(func() {
					for n := range requests {
						if s, err := d.Recv(deadline(t)); err != nil || s.ID != fmt.Sprint(n) || s.To != d.JID() {
							t.Errorf("%s: got %s, %v, want answer %d", d.JID(), s, err, n)
							return
						}
					}
				})
			}
			wait.Wait()
		})
	}
}
