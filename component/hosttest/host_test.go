package hosttest

import (
	"bufio"
	"context"
	"crypto/sha1"
	"encoding/xml"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"go.uber.org/goleak"

	"pepvault/component/loopback"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// echo is a component: it answers <echo/> with itself, a ping with nothing, and
// sends a headline for <tell jid='…'/>.
type echo struct {
	conn net.Conn
	done chan struct{} // closed when its stream is over
}

func attachEcho(t *testing.T, h *Host) *echo {
	t.Helper()
	conn, err := net.Dial("tcp", h.Addr())
	if err != nil {
		t.Fatal(err)
	}
	e := &echo{conn: conn, done: make(chan struct{})}
	go e.run(h.Component(), h.Secret())
	t.Cleanup(func() { conn.Close(); <-e.done })
	return e
}

type request struct {
	XMLName xml.Name
	ID      string `xml:"id,attr"`
	Type    string `xml:"type,attr"`
	From    string `xml:"from,attr"`
	To      string `xml:"to,attr"`
	Inner   string `xml:",innerxml"`
	Tell    *struct {
		JID string `xml:"jid,attr"`
	} `xml:"tell"`
	Echo *struct{} `xml:"echo"`
}

func (e *echo) run(domain, secret string) {
	defer close(e.done)
	fmt.Fprintf(e.conn, "<stream:stream xmlns='jabber:component:accept' xmlns:stream='http://etherx.jabber.org/streams' to='%s'>", domain)
	d := xml.NewDecoder(bufio.NewReader(e.conn))
	for {
		token, err := d.Token()
		if err != nil {
			return
		}
		open, ok := token.(xml.StartElement)
		if !ok {
			continue
		}
		if open.Name.Local == "stream" {
			for _, a := range open.Attr {
				if a.Name.Local == "id" {
					fmt.Fprintf(e.conn, "<handshake>%x</handshake>", sha1.Sum([]byte(a.Value+secret)))
				}
			}
			continue
		}
		var r request
		if err := d.DecodeElement(&r, &open); err != nil {
			return
		}
		if r.XMLName.Local == "iq" && (r.Type == "get" || r.Type == "set") {
			e.answer(r)
		}
	}
}

func (e *echo) answer(r request) {
	inner := ""
	if r.Tell != nil {
		fmt.Fprintf(e.conn, "<message type='headline' id='m%s' from='%s' to='%s'><told xmlns='urn:example:echo'/></message>", r.ID, r.To, r.Tell.JID)
	}
	if r.Echo != nil {
		inner = r.Inner
	}
	fmt.Fprintf(e.conn, "<iq type='result' id='%s' from='%s' to='%s'>%s</iq>", r.ID, r.To, r.From, inner)
}

// recorder is a test that may fail without failing the one that runs it.
type recorder struct {
	testing.TB
	failed bool
	said   string
	clean  []func()
	done   context.Context
	cancel context.CancelFunc
}

// failing runs f with a test of its own and returns what that said; "" means
// that it passed. ctx ends it.
func failing(t *testing.T, patience time.Duration, f func(t testing.TB)) string {
	t.Helper()
	r := &recorder{TB: t}
	r.done, r.cancel = context.WithTimeout(t.Context(), patience)
	over := make(chan struct{})
	go func() {
		defer close(over)
		defer func() {
			r.cancel()
			for i := len(r.clean) - 1; i >= 0; i-- {
				r.clean[i]()
			}
		}()
		f(r)
	}()
	<-over
	return r.said
}

func (r *recorder) Helper()                  {}
func (r *recorder) Context() context.Context { return r.done }
func (r *recorder) Cleanup(f func())         { r.clean = append(r.clean, f) }
func (r *recorder) Failed() bool             { return r.failed }
func (r *recorder) Fatal(args ...any)        { r.Fatalf("%s", fmt.Sprint(args...)) }
func (r *recorder) Fatalf(format string, args ...any) {
	r.failed = true
	r.said += fmt.Sprintf(format, args...)
	runtime.Goexit()
}
func (r *recorder) Logf(format string, args ...any) { r.said += "\n" + fmt.Sprintf(format, args...) }

func TestScripts(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/*.script")
	if err != nil || len(files) == 0 {
		t.Fatalf("got %d scripts, %v", len(files), err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			t.Parallel()
			h := New(t)
			attachEcho(t, h)
			h.AwaitAttached()
			Script(t, h.Network(), file)
		})
	}
}

// TestScriptFailures: what does not hold is found, and where.
func TestScriptFailures(t *testing.T) {
	t.Parallel()
	const ask = "a/b connects\na/b sends: <iq type='get' id='1' to='$component'><echo xmlns='urn:example:echo'>x</echo></iq>\n"
	tests := map[string]struct{ script, want string }{
		"other text":       {ask + "a/b receives: <iq type='result' id='1' from='$component'><echo xmlns='urn:example:echo'>y</echo></iq>", `:3: a/b receives: /iq/echo: got "x", want "y"`},
		"something":        {ask + "a/b receives nothing", ":3: a/b receives nothing: got <iq"},
		"set":              {ask + "a/b receives in any order:\n  <iq/>\n  <message/>", ":3: a/b receives in any order: /iq: unexpected attribute"},
		"not connected":    {"a/b receives nothing", ":1: a/b receives nothing: is not connected"},
		"connected twice":  {"a/b connects\na/b connects", ":2: a/b connects: is connected already"},
		"disconnected":     {"a/b connects\na/b disconnects\na/b receives nothing", ":3: a/b receives nothing: is not connected"},
		"unset variable":   {"a/b connects\na/b sends: <iq id='$x'/>", ":2: a/b sends: variable without a value: $x"},
		"bad stanza":       {"a/b connects\na/b sends: <note/>", ":2: a/b sends: bad stanza"},
		"unknown verb":     {"# x\na/b dances", ":2: not understood"},
		"no device":        {"alice connects", ":1: not understood"},
		"no stanza":        {"a/b connects\na/b receives:", ":2: not understood: 0 stanzas"},
		"too many":         {"a/b connects: <iq/>", ":1: not understood: 1 stanzas"},
		"text":             {"a/b connects\na/b sends: hello", ":2: not understood"},
		"broken XML":       {"a/b connects\na/b sends:\n  <iq>\n", ":2: XML syntax error"},
		"begins indented":  {"  <iq/>", ":1: not understood"},
		"wrong full JID":   {"a/ connects", ":1: a/ connects: loopback: connect"},
		"no such variable": {ask + "a/b receives: <iq type='result' id='x$y' from='*'>*</iq>", ":3: a/b receives: /iq@id: variable without a value: $y"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			file := filepath.Join(t.TempDir(), "test.script")
			if err := os.WriteFile(file, []byte(test.script), 0o600); err != nil {
				t.Fatal(err)
			}
			h := New(t)
			attachEcho(t, h)
			h.AwaitAttached()
			got := failing(t, patience, func(t testing.TB) { Script(t, h.Network(), file) })
			if !strings.Contains(got, test.want) {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

func TestDevice(t *testing.T) {
	t.Parallel()
	h := New(t)
	attachEcho(t, h)
	phone, laptop := h.Device("alice/phone"), h.Device("alice@localhost/laptop")
	h.AwaitAttached()
	phone.ReceivesNothing()
	if got := phone.Asks("get", "<echo xmlns='urn:example:echo'>x</echo>"); !strings.Contains(got.String(), ">x</echo>") {
		t.Errorf("got %s", got)
	}
	phone.Asks("get", "<tell xmlns='urn:example:echo' jid='alice@$host/laptop'/>")
	laptop.Receives("<message type='headline' id='$id' from='$component'>*</message>")
	if h.Vars()["id"] == "" {
		t.Error("$id is not bound")
	}
	laptop.Sends("<iq type='get' id='$id' to='$component'><echo xmlns='urn:example:echo'/></iq>")
	laptop.ReceivesInAnyOrder("<iq type='result' id='$id' from='$component'>*</iq>")

	h.Cut()
	h.AwaitDetached()
	if got := phone.AsksInVain("get", "<echo xmlns='urn:example:echo'/>"); got.Condition != "remote-server-timeout" {
		t.Errorf("got %v", got)
	}
	for _, want := range []string{"attached (connection 1)", "received: <iq type='result'", "detached (reset)"} {
		if !strings.Contains(h.Transcript(), want) {
			t.Errorf("the transcript lacks %q:\n%s", want, h.Transcript())
		}
	}
}

// TestDeviceFailures: each expectation that does not hold fails the test, which
// then shows the transcript.
func TestDeviceFailures(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		f    func(h *Host, d *Device)
		want string
	}{
		"receives": {func(h *Host, d *Device) {
			d.Sends("<iq type='get' id='1' to='$component'><echo xmlns='urn:example:echo'/></iq>")
			d.Receives("<message/>")
		}, "stanza: got element iq, want message"},
		"nothing": {func(h *Host, d *Device) {
			d.Sends("<iq type='get' id='1' to='$component'><echo xmlns='urn:example:echo'/></iq>")
			d.ReceivesNothing()
		}, "want nothing"},
		"asks":         {func(h *Host, d *Device) { h.Cut(); d.Asks("get", "<a xmlns='b'/>") }, "remote-server-timeout"},
		"asks in vain": {func(h *Host, d *Device) { d.AsksInVain("get", "<echo xmlns='urn:example:echo'/>") }, "want an error"},
		"sends":        {func(h *Host, d *Device) { d.Sends("<note/>") }, "bad stanza"},
		"unset":        {func(h *Host, d *Device) { d.Sends("<iq id='$none'/>") }, "variable without a value"},
		"ended":        {func(h *Host, d *Device) { d.Close(); d.Receives("<iq/>") }, "receives nothing: closed"},
		"inject":       {func(h *Host, d *Device) { h.Cut(); h.Inject(" ") }, "no component is attached"},
		"connect":      {func(h *Host, d *Device) { h.Device("alice") }, "not a full JID"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := failing(t, patience, func(inner testing.TB) {
				h := New(inner)
				attachEcho(t, h)
				h.AwaitAttached()
				test.f(h, h.Device("alice/phone"))
			})
			if !strings.Contains(got, test.want) || !strings.Contains(got, "what the host saw:") {
				t.Errorf("got %q, want %q and the transcript", got, test.want)
			}
		})
	}
}

func TestAwaitFails(t *testing.T) {
	t.Parallel()
	got := failing(t, time.Millisecond, func(t testing.TB) { New(t).AwaitAttached() })
	if !strings.Contains(got, "no component has attached") {
		t.Errorf("got %q", got)
	}
}

func TestSameConnection(t *testing.T) {
	t.Parallel()
	h := New(t)
	attachEcho(t, h)
	check := h.SameConnection()
	check()
	check()
	number := h.Link()
	h.Cut()
	h.AwaitDetached()
	attachEcho(t, h)
	if got := h.AwaitReattached(number); got != number+1 {
		t.Errorf("got connection %d, want %d", got, number+1)
	}
	h.SameConnection()()
	inner := failing(t, patience, func(inner testing.TB) {
		h := New(inner)
		attachEcho(t, h)
		check := h.SameConnection()
		h.Cut()
		h.AwaitDetached()
		attachEcho(t, h)
		h.AwaitReattached(1)
		check()
	})
	if !strings.Contains(inner, "got connection 2 (0: none), want still 1") {
		t.Errorf("got %q", inner)
	}
}

func TestFaults(t *testing.T) {
	t.Parallel()
	isMessage := func(s loopback.Stanza) bool { return s.Name == "message" }
	tell := "<tell xmlns='urn:example:echo' jid='alice@$host/phone'/>"
	tests := map[string]func(t *testing.T, h *Host, e *echo, d *Device){
		"lose": func(t *testing.T, h *Host, e *echo, d *Device) {
			h.Lose(loopback.FromComponent, 2, isMessage)
			for range 3 {
				d.Asks("get", tell)
			}
			d.Receives("<message type='headline' id='*' from='$component'>*</message>")
			d.ReceivesNothing()
		},
		"reorder": func(t *testing.T, h *Host, e *echo, d *Device) {
			h.Reorder(loopback.FromComponent, 2, isMessage)
			for _, id := range []string{"1", "2", "3"} {
				d.Sends("<iq type='get' id='" + id + "' to='$component'>" + tell + "</iq>")
			}
			d.Receives("<iq type='result' id='1' from='$component'/>")
			for _, id := range []string{"m2", "m1"} {
				d.Receives("<message type='headline' id='" + id + "' from='$component'>*</message>")
			}
			d.Receives("<iq type='result' id='2' from='$component'/>")
			d.Receives("<message type='headline' id='m3' from='$component'>*</message>")
		},
		"hold": func(t *testing.T, h *Host, e *echo, d *Device) {
			release := h.Hold(loopback.ToComponent, nil)
			d.Sends("<iq type='get' id='1' to='$component'>" + tell + "</iq>")
			d.Sends("<iq type='get' id='2' to='$component'>" + tell + "</iq>")
			if got := d.Waiting(); got != 0 {
				t.Errorf("got %d stanzas", got)
			}
			if got := release(); got != 2 {
				t.Errorf("got %d released, want 2", got)
			}
			for _, id := range []string{"1", "2"} {
				d.Receives("<message type='headline' id='m" + id + "' from='$component'>*</message>")
				d.Receives("<iq type='result' id='" + id + "' from='$component'/>")
			}
			d.ReceivesNothing()
		},
		"stall": func(t *testing.T, h *Host, e *echo, d *Device) {
			check := h.SameConnection()
			h.Stall()
			d.Sends("<iq type='get' id='1' to='$component'>" + tell + "</iq>")
			h.Resume()
			d.Receives("<message type='headline' id='m1' from='$component'>*</message>")
			h.StallReads()
			h.Resume()
			h.StallWrites()
			h.Resume()
			check()
		},
		"stream error": func(t *testing.T, h *Host, e *echo, d *Device) {
			h.StreamError("system-shutdown")
			h.AwaitDetached()
			<-e.done
		},
		"cut silently": func(t *testing.T, h *Host, e *echo, d *Device) {
			h.CutSilently()
			h.AwaitDetached()
			if got := d.AsksInVain("get", tell); got.Type != "wait" {
				t.Errorf("got %v", got)
			}
			attachEcho(t, h)
			h.AwaitReattached(1)
			select {
			case <-e.done:
				t.Error("the old connection was closed")
			default:
			}
		},
		"down and up": func(t *testing.T, h *Host, e *echo, d *Device) {
			h.Down()
			if conn, err := net.Dial("tcp", h.Addr()); err == nil {
				conn.Close()
				t.Error("a host that is down accepts")
			}
			h.Up()
			h.SameConnection()()
		},
		"inject": func(t *testing.T, h *Host, e *echo, d *Device) {
			h.Inject("<iq type='get' id='9' from='" + d.JID() + "' to='x@" + h.Component() + "'><echo xmlns='urn:example:echo'/></iq>")
			d.Receives("<iq type='result' id='9' from='x@$component'>*</iq>")
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := New(t)
			e := attachEcho(t, h)
			h.AwaitAttached()
			test(t, h, e, h.Device("alice/phone"))
		})
	}
}

// A failed test shows the latest events, in lines that a log can hold.
func TestTranscriptIsBounded(t *testing.T) {
	t.Parallel()
	var lines transcript
	if got := lines.String(); got != "" {
		t.Errorf("got %q of nothing", got)
	}
	for i := range 5 * transcriptLines {
		lines.add(loopback.Event{What: fmt.Sprint(i), Raw: make([]byte, 3000)})
	}
	lines.add(loopback.Event{What: "sent", Raw: []byte("<a>\n\xff\r\n</a>")})
	lines.add(loopback.Event{What: "sent", Raw: []byte(strings.Repeat("\u20ac", 500))})
	lines.add(loopback.Event{What: "detached", Detail: strings.Repeat("x", 3000)})
	got := strings.Split(lines.String(), "\n")
	if len(got) != 1+transcriptLines || got[0] != "(243 lines forgotten)" || !strings.HasPrefix(got[1], "243: ") || !strings.HasSuffix(got[1], "… (3000 bytes)") {
		t.Errorf("got %d lines, the first %.400q", len(got), got[:2])
	}
	if got := got[len(got)-3]; got != "sent: <a> ?  </a>" {
		t.Errorf("got the line %q", got)
	}
	for _, line := range got {
		if len(line) > transcriptBytes || !utf8.ValidString(line) {
			t.Errorf("a line of %d bytes: %q", len(line), line)
		}
	}
}

func TestOptions(t *testing.T) {
	t.Parallel()
	traced := make(chan loopback.Event, 10)
	h := New(t, func(o *loopback.Options) {
		o.Domain, o.Component = "example.org", "v.example.org"
		o.Trace = func(e loopback.Event) { traced <- e }
	})
	if got := (<-traced).What; got != "listening" {
		t.Errorf("got event %s, want listening", got)
	}
	if got := h.Device("alice/phone").JID(); got != "alice@example.org/phone" {
		t.Errorf("got %s", got)
	}
	if got := h.Vars()["component"]; got != "v.example.org" {
		t.Errorf("got $component %s", got)
	}
}
