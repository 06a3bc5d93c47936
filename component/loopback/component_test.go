package loopback

import (
	"bytes"
	"context"
	"crypto/sha1"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const patience = 5 * time.Minute

func start(t testing.TB, opts Options) *Host {
	t.Helper()
	h, err := Start(opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { h.Close() })
	return h
}

func connect(t testing.TB, h *Host, jid string) *Device {
	t.Helper()
	d, err := h.Connect(jid)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func deadline(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	return ctx
}

func send(t testing.TB, d *Device, raw string) {
	t.Helper()
	if err := d.Send([]byte(raw)); err != nil {
		t.Fatalf("send %s: %v", raw, err)
	}
}

func recv(t testing.TB, d *Device) Stanza {
	t.Helper()
	s, err := d.Recv(deadline(t))
	if err != nil {
		t.Fatalf("%s: %v", d.JID(), err)
	}
	return s
}

// component is a scripted component: encoding/xml reads for it, so that the
// host's own cutter is checked by another one.
type component struct {
	t    testing.TB
	conn net.Conn
	seen bytes.Buffer // what d has read, from base on
	base int64
	d    *xml.Decoder
}

func dial(t testing.TB, h *Host) *component {
	t.Helper()
	conn, err := net.Dial("tcp", h.Addr())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	_ = conn.SetDeadline(time.Now().Add(patience))
	c := &component{t: t, conn: conn}
	c.d = xml.NewDecoder(io.TeeReader(conn, &c.seen))
	return c
}

func (c *component) send(format string, args ...any) {
	c.t.Helper()
	if _, err := fmt.Fprintf(c.conn, format, args...); err != nil {
		c.t.Fatal(err)
	}
}

// open opens the stream and returns its id.
func (c *component) open(to string) (id string) {
	c.t.Helper()
	c.send("<?xml version='1.0'?><stream:stream xmlns='jabber:component:accept' xmlns:stream='http://etherx.jabber.org/streams' to='%s'>", to)
	return c.header()
}

func (c *component) header() (id string) {
	c.t.Helper()
	for {
		token, err := c.d.RawToken()
		if err != nil {
			c.t.Fatal(err)
		}
		if open, ok := token.(xml.StartElement); ok {
			for _, a := range open.Attr {
				if a.Name.Local == "id" {
					id = a.Value
				}
			}
			return id
		}
	}
}

func digest(id, secret string) string {
	return fmt.Sprintf("%x", sha1.Sum([]byte(id+secret)))
}

// attach makes the whole handshake.
func attach(t testing.TB, h *Host) *component {
	t.Helper()
	c := dial(t, h)
	c.send("<handshake>%s</handshake>", digest(c.open(h.Component()), h.Secret()))
	if got := c.read(); got != "<handshake/>" {
		t.Fatalf("got %s, want the handshake", got)
	}
	return c
}

// next returns the next child of the stream, or "</stream:stream>".
func (c *component) next() (string, error) {
	c.seen.Next(int(c.d.InputOffset() - c.base))
	c.base = c.d.InputOffset()
	depth := 0
	for {
		before := c.d.InputOffset()
		token, err := c.d.RawToken()
		if err != nil {
			return "", err
		}
		switch token.(type) {
		case xml.StartElement:
			if depth == 0 {
				c.seen.Next(int(before - c.base))
				c.base = before
			}
			depth++
		case xml.EndElement:
			depth--
		default:
			continue
		}
		if depth <= 0 {
			return string(c.seen.Bytes()[:c.d.InputOffset()-c.base]), nil
		}
	}
}

func (c *component) read() string {
	c.t.Helper()
	raw, err := c.next()
	if err != nil {
		c.t.Fatalf("read: %v", err)
	}
	return raw
}

// readStanza reads a stanza and takes it apart.
func (c *component) readStanza() Stanza {
	c.t.Helper()
	raw := []byte(c.read())
	var t tag
	if err := t.parse(raw); err != nil {
		c.t.Fatalf("%s: %v", raw, err)
	}
	return Stanza{Name: string(t.name), Type: t.text("type"), ID: t.text("id"), From: t.text("from"), To: t.text("to"), Raw: raw}
}

// wantEnd reads until the stream has ended and compares the stream error.
func (c *component) wantEnd(condition string) {
	c.t.Helper()
	got := ""
	for {
		raw, err := c.next()
		if errors.Is(err, io.EOF) {
			c.t.Fatalf("end of file without an end tag; error %q", got)
		}
		if err != nil {
			c.t.Fatal(err)
		}
		if raw == "</stream:stream>" {
			break
		}
		if rest, ok := strings.CutPrefix(raw, "<stream:error><"); ok {
			got, _, _ = strings.Cut(rest, " ")
		}
	}
	if got != condition {
		c.t.Errorf("got stream error %q, want %q", got, condition)
	}
	if _, err := c.conn.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
		c.t.Errorf("got %v after the stream, want EOF", err)
	}
}

// wantAlive makes sure that the stream works and that nothing else waits.
func (c *component) wantAlive(h *Host) {
	c.t.Helper()
	c.send("<iq type='get' id='alive' from='%s' to='%s'><ping xmlns='urn:xmpp:ping'/></iq>", h.Component(), h.Domain())
	s := c.readStanza()
	if s.ID != "alive" || s.Type != "result" || s.From != h.Domain() || s.To != h.Component() {
		c.t.Fatalf("got %s, want the answer to the ping", s)
	}
}

// echo answers each request with the payload until the stream ends.
func (c *component) echo(payload string) {
	for {
		raw, err := c.next()
		if err != nil {
			return
		}
		var t tag
		if t.parse([]byte(raw)) != nil || string(t.name) != "iq" {
			continue
		}
		answer := compose(Stanza{Name: "iq", Type: "result", ID: t.text("id"), From: t.text("to"), To: t.text("from")}, payload)
		if _, err := c.conn.Write(answer.Raw); err != nil {
			return
		}
	}
}
