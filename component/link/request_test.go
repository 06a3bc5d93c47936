package link

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"mellium.im/xmpp/stream"
)

// TestFarewell: when the writer has ended the stream, Run waits for the host to
// close its side, but not for ever.
func TestFarewell(t *testing.T) {
	t.Parallel()
	for _, polite := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			r := newRecorder()
			opts := r.options("host:1")
			theirs, ours := net.Pipe()
			opts.Dial = func(context.Context, string, string) (net.Conn, error) { return ours, nil }
			l, err := New(opts, r)
			if err != nil {
				t.Fatal(err)
			}
			result := make(chan error, 1)
			go func() { result <- l.Run(t.Context()) }()
			c := shake(&hostConn{theirs, bufio.NewReader(theirs)})
			r.want(t, "attached s1")
			go r.finish()
			if got := c.until("</stream:stream>"); got != "</stream:stream>" {
				t.Errorf("got %q", got)
			}
			synctest.Wait()
			began := time.Now()
			c.say("<iq type='get' id='too-late'/>")
			want := farewell
			if polite {
				c.say("</stream:stream>")
				want = 0
			}
			if err := <-result; err != nil {
				t.Errorf("Run: %v", err)
			}
			if took := time.Since(began); took != want {
				t.Errorf("took %v, want %v", took, want)
			}
			r.want(t, "detached closed on purpose")
			_ = c.Close()
		})
	}
}

func TestRequest(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRecorder()
		opts := r.options("host:1")
		theirs, ours := net.Pipe()
		opts.Dial = func(context.Context, string, string) (net.Conn, error) { return ours, nil }
		l, err := New(opts, r)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := l.Request(t.Context(), "get", "a", nil, time.Minute); !errors.Is(err, ErrDetached) {
			t.Errorf("before Run: %v", err)
		}
		ctx, cancel := context.WithCancelCause(t.Context())
		result := make(chan error, 1)
		go func() { result <- l.Run(ctx) }()
		c := shake(&hostConn{theirs, bufio.NewReader(theirs)})
		r.want(t, "attached s1")

		to := "o'neil&co@example.org/<phone>"
		const escaped = "o&#39;neil&amp;co@example.org/&lt;phone&gt;"
		answered := make(chan outcome, 10)
		request := func(ctx context.Context) {
			s, err := l.Request(ctx, "get", to, []byte("<query xmlns='q'/>"), time.Minute)
			answered <- outcome{s, err}
		}
		ask := func(ctx context.Context) (id string) {
			go request(ctx)
			iq := c.until("</iq>")
			if !strings.Contains(iq, "to='"+escaped+"'") || !strings.Contains(iq, "<query xmlns='q'/>") {
				t.Errorf("asked %s", iq)
			}
			return idOf(iq)
		}
		for _, typ := range []string{"result", "error"} {
			id := ask(t.Context())
			c.say("<iq type='" + typ + "' id='" + id + "' from='mallory@example.org/x'/>") // forged
			c.say("<iq type='" + typ + "' id='other' from='" + escaped + "'/>")
			c.say("<iq type='get' id='" + id + "' from='" + escaped + "'/>") // a request of that id
			synctest.Wait()
			if len(answered) != 0 {
				t.Error("a forged answer was taken")
			}
			c.say("<iq type='" + typ + "' id='" + id + "' from='" + escaped + "'><x/></iq>")
			if o := <-answered; o.err != nil || o.stanza.Type != typ || o.stanza.Child.Local != "x" {
				t.Errorf("%s: %+v", typ, o)
			}
			c.say("<iq type='" + typ + "' id='" + id + "' from='" + escaped + "'/>") // twice
			r.want(t, "iq get "+id)
		}

		short, done := context.WithTimeout(t.Context(), time.Second)
		defer done()
		ask(short)
		if o := <-answered; !errors.Is(o.err, context.DeadlineExceeded) {
			t.Errorf("time-out: %v", o.err)
		}
		calls := make(chan error, 10)
		note := func(_ Stanza, err error) { calls <- err }
		began := time.Now()
		l.Expect(to, time.Second, note)
		if err := <-calls; !errors.Is(err, ErrNoAnswer) || time.Since(began) != time.Second {
			t.Errorf("expectation: %v after %v", err, time.Since(began))
		}
		_, forget := l.Expect(to, time.Second, note)
		forget()
		ask(t.Context())
		l.Expect(to, time.Hour, note)
		cancel(errStopped)
		if err := <-calls; !errors.Is(err, ErrDetached) {
			t.Errorf("expectation of an ended connection: %v", err)
		}
		if o := <-answered; !errors.Is(o.err, ErrDetached) {
			t.Errorf("request of an ended connection: %v", o.err)
		}
		<-result
		if len(calls) > 0 {
			t.Error("called twice, or although forgotten")
		}
		_ = c.Close()
	})
}

func TestOptions(t *testing.T) {
	t.Parallel()
	r := newRecorder()
	good := r.options("host:5347")
	tests := map[string]struct {
		change func(*Options)
		want   string
	}{
		"no server":  {func(o *Options) { o.Server = "host" }, `server "host" is not host:port`},
		"a full JID": {func(o *Options) { o.JID = "a@b/c" }, `jid "a@b/c": not a domain`},
		"a bad JID":  {func(o *Options) { o.JID = "" }, `jid "": `},
		"no secret":  {func(o *Options) { o.Secret = nil }, "no secret"},
		"no writer":  {func(o *Options) { o.Serve = nil }, "no writer"},
		"several":    {func(o *Options) { o.Server, o.Secret = "", nil }, "is not host:port\nno secret"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			opts := good
			tc.change(&opts)
			if _, err := New(opts, r); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want %q", err, tc.want)
			}
		})
	}
	l, err := New(good, r)
	if err != nil || l.opts.PingTo != "example.org" || l.JID() != "v.example.org" {
		t.Errorf("got %+v, %v", l, err)
	}
	if up, why := l.State(); up || why != "connecting" {
		t.Errorf("state: %v, %q", up, why)
	}
	if got := fmt.Sprintf("%v %+v %#v %s %x %q", good.Secret, good.Secret, good.Secret, good.Secret, good.Secret, good.Secret); strings.Trim(strings.ReplaceAll(got, hidden, ""), " ") != "" {
		t.Errorf("a secret prints as %s", got)
	}
}

// TestStreamErrorKinds: each condition of RFC 6120 is told by its name.
func TestStreamErrorKinds(t *testing.T) {
	t.Parallel()
	for _, want := range []stream.Error{
		stream.BadFormat, stream.Conflict, stream.ConnectionTimeout, stream.HostGone, stream.HostUnknown,
		stream.ImproperAddressing, stream.InternalServerError, stream.InvalidFrom, stream.InvalidNamespace,
		stream.InvalidXML, stream.NotAuthorized, stream.NotWellFormed, stream.PolicyViolation, stream.Reset,
		stream.ResourceConstraint, stream.RestrictedXML, stream.SystemShutdown, stream.UnsupportedStanzaType,
	} {
		raw := "<s:error><" + want.Err + " xmlns='urn:ietf:params:xml:ns:xmpp-streams'/></s:error>"
		of := Stream{Header: "<s:stream xmlns='jabber:component:accept' xmlns:s='http://etherx.jabber.org/streams'>"}
		if err := streamError(of, Stanza{Raw: []byte(raw)}); !errors.Is(err, want) {
			t.Errorf("got %v, want %v", err, want)
		}
	}
}
