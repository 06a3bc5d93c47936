package loopback

import (
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"syscall"
	"testing"

	mellium "mellium.im/xmpp/component"
	"mellium.im/xmpp/jid"
	"mellium.im/xmpp/stanza"
	"mellium.im/xmpp/stream"
)

func TestHandshake(t *testing.T) {
	t.Parallel()
	const header = "<stream:stream xmlns='jabber:component:accept' xmlns:stream='http://etherx.jabber.org/streams' to='vault.localhost'>"
	tests := map[string]struct {
		header string
		answer func(id string) string // what follows the header, if any
		want   string
	}{
		"wrong secret": {header, func(id string) string { return "<handshake>" + digest(id, "other") + "</handshake>" }, "not-authorized"},
		"upper case": {header, func(id string) string {
			return "<handshake>" + strings.ToUpper(digest(id, DefaultSecret)) + "</handshake>"
		}, "not-authorized"},
		"empty":            {header, func(string) string { return "<handshake/>" }, "not-authorized"},
		"element inside":   {header, func(id string) string { return "<handshake><x/>" + digest(id, DefaultSecret) + "</handshake>" }, "not-authorized"},
		"stanza before":    {header, func(string) string { return "<presence from='vault.localhost' to='a@localhost'/>" }, "not-authorized"},
		"unknown host":     {strings.Replace(header, "vault.", "other.", 1), nil, "host-unknown"},
		"no host":          {strings.Replace(header, " to='vault.localhost'", "", 1), nil, "improper-addressing"},
		"client namespace": {strings.Replace(header, "jabber:component:accept", "jabber:client", 1), nil, "invalid-namespace"},
		"no stream":        {"<html>", nil, "invalid-namespace"},
		"no XML":           {"GET / HTTP/1.1\r\n", nil, "not-well-formed"},
		"document type":    {"<!DOCTYPE x>" + header, nil, "not-well-formed"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := start(t, Options{})
			c := dial(t, h)
			c.send("%s", test.header)
			id := c.header()
			if test.answer != nil {
				if id == "" {
					t.Fatal("the stream has no id")
				}
				c.send("%s", test.answer(id))
			} else if id != "" {
				t.Errorf("got id %q for a refused stream, want none", id)
			}
			c.wantEnd(test.want)
			if got := h.Links(); got != 0 {
				t.Errorf("got %d handshakes, want 0", got)
			}
		})
	}
}

func TestConflict(t *testing.T) {
	t.Parallel()
	h := start(t, Options{})
	first := attach(t, h)
	second := dial(t, h)
	second.send("<handshake>%s</handshake>", digest(second.open(h.Component()), h.Secret()))
	second.wantEnd("conflict")
	first.wantAlive(h)
	if got := h.Link(); got != 1 {
		t.Errorf("got connection %d, want 1", got)
	}
	first.send("</stream:stream>")
	first.wantEnd("")
	if err := h.Detached(deadline(t)); err != nil {
		t.Fatal(err)
	}
	attach(t, h).wantAlive(h)
	if got := h.Link(); got != 2 {
		t.Errorf("got connection %d, want 2", got)
	}
}

// TestMellium lets a component that is not ours make the handshake.
func TestMellium(t *testing.T) {
	t.Parallel()
	h := start(t, Options{})
	session := func(secret string) (io.Closer, func(v any) error, error) {
		conn, err := net.Dial("tcp", h.Addr())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { conn.Close() })
		s, err := mellium.NewSession(t.Context(), jid.MustParse(h.Component()), []byte(secret), conn)
		if err != nil {
			return nil, nil, err
		}
		return s, func(v any) error { return s.Encode(t.Context(), v) }, nil
	}
	if _, _, err := session("wrong"); !errors.Is(err, stream.NotAuthorized) {
		t.Errorf("got error %v, want not-authorized", err)
	}
	d := connect(t, h, "alice@localhost/phone")
	_, encode, err := session(h.Secret())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := h.Attached(deadline(t)); err != nil {
		t.Fatal(err)
	}
	message := stanza.Message{ID: "m1", Type: stanza.HeadlineMessage, From: jid.MustParse(h.Component()), To: jid.MustParse(d.JID())}
	if err := encode(message); err != nil {
		t.Fatal(err)
	}
	if got := recv(t, d); got.Name != "message" || got.ID != "m1" || got.From != h.Component() {
		t.Errorf("got %s", got)
	}
	if _, _, err := session(h.Secret()); !errors.Is(err, stream.Conflict) {
		t.Errorf("second session: got error %v, want conflict", err)
	}
}

func TestStreamErrors(t *testing.T) {
	t.Parallel()
	const from = " from='vault.localhost' to='alice@localhost/phone'"
	tests := map[string]struct{ send, want string }{
		"foreign from":        {"<presence from='alice@localhost/phone' to='bob@localhost'/>", "invalid-from"},
		"subdomain":           {"<presence from='x.vault.localhost' to='bob@localhost'/>", "invalid-from"},
		"no from":             {"<presence to='bob@localhost'/>", "invalid-from"},
		"domain in resource":  {"<presence from='x/@vault.localhost' to='bob@localhost'/>", "invalid-from"},
		"comment":             {"<presence" + from + "><!-- x --></presence>", "not-well-formed"},
		"instruction":         {"<presence" + from + "><?x y?></presence>", "not-well-formed"},
		"late declaration":    {"<?xml version='1.0'?>", "not-well-formed"},
		"text between":        {"text", "not-well-formed"},
		"wrong end tag":       {"<presence" + from + "><a><b></a></b></presence>", "not-well-formed"},
		"unknown prefix":      {"<presence" + from + "><x:a/></presence>", "not-well-formed"},
		"unknown attr prefix": {"<presence" + from + "><a x:b='1'/></presence>", "not-well-formed"},
		"attribute twice":     {"<presence" + from + "><a b='1' b='2'/></presence>", "not-well-formed"},
		"unknown entity":      {"<presence" + from + ">&nbsp;</presence>", "not-well-formed"},
		"bare less-than":      {"<presence" + from + "><a b='<'/></presence>", "not-well-formed"},
		"control character":   {"<presence" + from + ">\x01</presence>", "not-well-formed"},
		"bad UTF-8":           {"<presence" + from + ">\xff</presence>", "not-well-formed"},
		"no stanza":           {"<note" + from + "/>", "unsupported-stanza-type"},
		"foreign namespace":   {"<iq xmlns='urn:example'" + from + "/>", "unsupported-stanza-type"},
		"second handshake":    {"<handshake>x</handshake>", "unsupported-stanza-type"},
		"stream error":        {"<stream:error><reset xmlns='urn:ietf:params:xml:ns:xmpp-streams'/></stream:error>", ""},
		"end":                 {"</stream:stream>", ""},
		"too large":           {"<message" + from + "><body>" + strings.Repeat("x", DefaultStanzaLimit) + "</body></message>", "not-well-formed"},
		"too large, open":     {"<message" + from + "><body>" + strings.Repeat("x", DefaultStanzaLimit), "not-well-formed"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := start(t, Options{})
			c := attach(t, h)
			c.send("%s", test.send)
			c.wantEnd(test.want)
			if err := h.Detached(deadline(t)); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestLargestStanza(t *testing.T) {
	t.Parallel()
	h := start(t, Options{})
	d := connect(t, h, "alice@localhost/phone")
	c := attach(t, h)
	head, tail := "<message type='headline' from='vault.localhost' to='alice@localhost/phone'><body>", "</body></message>"
	body := strings.Repeat("x", DefaultStanzaLimit-len(head)-len(tail))
	c.send("%s%s%s", head, body, tail)
	if got := recv(t, d); !strings.Contains(string(got.Raw), body) {
		t.Errorf("got %d bytes, want %d", len(got.Raw), DefaultStanzaLimit)
	}
	c.wantAlive(h)
}

func TestFaults(t *testing.T) {
	t.Parallel()
	dialError := func(h *Host) error {
		conn, err := net.Dial("tcp", h.Addr())
		if err == nil {
			_, err = conn.Read(make([]byte, 1))
			conn.Close()
		}
		return err
	}
	tests := map[string]func(t *testing.T, h *Host, c *component){
		"drop": func(t *testing.T, h *Host, c *component) {
			h.Drop()
			if _, err := c.next(); !isEOF(err) {
				t.Errorf("got %v, want EOF", err)
			}
		},
		"reset": func(t *testing.T, h *Host, c *component) {
			h.Reset()
			if _, err := c.next(); !errors.Is(err, syscall.ECONNRESET) {
				t.Errorf("got %v, want a reset", err)
			}
		},
		"end with an error": func(t *testing.T, h *Host, c *component) {
			h.EndStream("system-shutdown")
			c.wantEnd("system-shutdown")
		},
		"end": func(t *testing.T, h *Host, c *component) {
			h.EndStream("")
			c.wantEnd("")
		},
		"abandon": func(t *testing.T, h *Host, c *component) {
			h.Abandon()
			c.send("<iq type='get' id='1' from='vault.localhost' to='localhost'><ping xmlns='urn:xmpp:ping'/></iq>")
			attach(t, h).wantAlive(h)
			// Nothing came on the old connection meanwhile, not even its end:
			// that comes with the host's.
			h.Close()
			if got, err := c.next(); err == nil {
				t.Errorf("got %s from an abandoned connection", got)
			}
		},
		"inject": func(t *testing.T, h *Host, c *component) {
			want := "<iq from='\xe2\x99\xa5@x' ><a xmlns='b'></a></iq>"
			if err := h.Inject([]byte(" " + want)); err != nil {
				t.Fatal(err)
			}
			if got := c.read(); got != want {
				t.Errorf("got %s, want %s", got, want)
			}
		},
		"refuse": func(t *testing.T, h *Host, c *component) {
			h.RefuseNext(2)
			for range 2 {
				if err := dialError(h); !errors.Is(err, syscall.ECONNRESET) {
					t.Errorf("got %v, want a reset", err)
				}
			}
			c.wantAlive(h)
			h.Drop()
			attach(t, h).wantAlive(h)
		},
		"down and up": func(t *testing.T, h *Host, c *component) {
			h.Down()
			if err := dialError(h); !errors.Is(err, syscall.ECONNREFUSED) {
				t.Errorf("got %v, want refused", err)
			}
			c.wantAlive(h)
			h.Drop()
			if err := h.Up(); err != nil {
				t.Fatal(err)
			}
			attach(t, h).wantAlive(h)
		},
		"stalled writes": func(t *testing.T, h *Host, c *component) {
			h.Stall(false, true)
			d := connect(t, h, "alice@localhost/phone")
			send(t, d, "<presence to='vault.localhost'/>")
			c.send("<message type='headline' id='m' from='vault.localhost' to='%s'/>", d.JID())
			if got := recv(t, d); got.ID != "m" { // reads go on
				t.Errorf("got %s", got)
			}
			h.Resume()
			if got := c.readStanza(); got.Name != "presence" || got.From != d.JID() {
				t.Errorf("got %s", got)
			}
		},
		"stalled reads": func(t *testing.T, h *Host, c *component) {
			h.Stall(true, false)
			d := connect(t, h, "alice@localhost/phone")
			c.send("<message type='headline' id='m' from='vault.localhost' to='%s'/>", d.JID())
			send(t, d, "<presence to='vault.localhost'/>")
			if got := c.readStanza(); got.Name != "presence" { // writes go on
				t.Errorf("got %s", got)
			}
			if got := d.Waiting(); got != 0 {
				t.Errorf("got %d stanzas through a stalled host", got)
			}
			h.Resume()
			if got := recv(t, d); got.ID != "m" {
				t.Errorf("got %s", got)
			}
		},
		"stalled while closing": func(t *testing.T, h *Host, c *component) {
			h.Stall(true, true)
			h.EndStream("reset")
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := start(t, Options{})
			test(t, h, attach(t, h))
		})
	}
}

func isEOF(err error) bool {
	return errors.Is(err, io.EOF) || err != nil && strings.Contains(err.Error(), "unexpected EOF")
}

// TestComponentThatDoesNotRead: beyond the limit the connection is cut.
func TestComponentThatDoesNotRead(t *testing.T) {
	t.Parallel()
	h := start(t, Options{BufferLimit: 1 << 20})
	attach(t, h)
	h.Stall(false, true)
	d := connect(t, h, "alice@localhost/phone")
	big := "<message to='vault.localhost'><body>" + strings.Repeat("x", 100_000) + "</body></message>"
	for range 12 {
		send(t, d, big)
	}
	if err := h.Detached(deadline(t)); err != nil {
		t.Fatal(err)
	}
	if s := recv(t, d); s.Err() == nil || s.Err().Condition != "remote-server-timeout" {
		t.Errorf("got %s, want remote-server-timeout", s)
	}
}

func TestAttachedEnds(t *testing.T) {
	t.Parallel()
	h := start(t, Options{})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := h.Attached(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want canceled", err)
	}
	h.Close()
	if _, err := h.Attached(t.Context()); !errors.Is(err, ErrClosed) {
		t.Errorf("got %v, want ErrClosed", err)
	}
	if err := h.Up(); !errors.Is(err, ErrClosed) {
		t.Errorf("Up: got %v, want ErrClosed", err)
	}
	if _, err := h.Connect("alice@localhost/phone"); !errors.Is(err, ErrClosed) {
		t.Errorf("Connect: got %v, want ErrClosed", err)
	}
	if err := h.Inject([]byte(" ")); !errors.Is(err, ErrDetached) {
		t.Errorf("Inject: got %v, want ErrDetached", err)
	}
	h.Close()
}

func TestRefuseWith(t *testing.T) {
	t.Parallel()
	h := start(t, Options{})
	attached := attach(t, h)
	for _, condition := range []string{"host-unknown", "not-authorized", "policy-violation"} {
		h.RefuseWith(condition)
		c := dial(t, h)
		id := c.open(h.Component())
		if condition != "host-unknown" {
			c.send("<handshake>%s</handshake>", digest(id, h.Secret()))
		}
		c.wantEnd(condition)
	}
	attached.wantAlive(h)
	h.RefuseWith("")
	h.Drop()
	attach(t, h).wantAlive(h)
}
