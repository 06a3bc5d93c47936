package link

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// TestNothingLostAtHandshake: stanzas in the segment of the handshake's end,
// and white space wherever a host may put it.
func TestNothingLostAtHandshake(t *testing.T) {
	t.Parallel()
	h, r := newHost(t), newRecorder()
	_, _, stop := start(t, r.options(h.Addr().String()), r)
	many := strings.Repeat("<message id='m'/>", 100)
	c := h.attach(" \n<iq type='get' id='1'><q/></iq>\n" + many + "<presence id='2'/><iq type='re")
	r.want(t, "attached s1", "iq get 1")
	r.want(t, slices.Repeat([]string{"message m"}, 100)...)
	r.want(t, "presence 2")
	c.say("sult' id='unasked'/><iq type='error' id='unasked'/><x/><message xmlns='jabber:client' id='3'/><message xmlns='y'/>")
	r.want(t, "message 3")
	if err := stop(); !errors.Is(err, errStopped) {
		t.Errorf("Run: %v", err)
	}
	r.want(t, "detached "+errStopped.Error())
}

func TestHandshakeWithWhiteSpace(t *testing.T) {
	t.Parallel()
	h, r := newHost(t), newRecorder()
	r.got = func(_ context.Context, s Stanza) { r.events <- s.Name.Space + " " + s.Child.Space }
	start(t, r.options(h.Addr().String()), r)
	c := h.accept()
	c.until(">")
	c.say("<?xml version='1.0'?>\n<stream:stream xmlns='jabber:component:accept' xmlns:stream='http://etherx.jabber.org/streams' xmlns:p='urn:p' id='a&lt;b'>\n")
	c.until("</handshake>")
	c.say("\n <handshake>\n</handshake>\n<iq><p:x/></iq>")
	r.want(t, "attached a<b", NSComponent+" urn:p")
}

func TestTLS(t *testing.T) {
	t.Parallel()
	authority := httptest.NewTLSServer(nil) // lends its certificate, for 127.0.0.1
	t.Cleanup(authority.Close)
	pool := x509.NewCertPool()
	pool.AddCert(authority.Certificate())
	for name, roots := range map[string]*x509.CertPool{"trusted": pool, "not trusted": x509.NewCertPool()} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h, r := newHost(t), newRecorder()
			h.Listener = tls.NewListener(h.Listener, &tls.Config{Certificates: authority.TLS.Certificates})
			opts := r.options(h.Addr().String())
			opts.TLS = &tls.Config{RootCAs: roots}
			opts.KeepAlive = KeepAlive{Idle: 20 * time.Millisecond, Answer: time.Hour}
			l, said, stop := start(t, opts, r)
			if name == "not trusted" {
				_ = h.accept().until("never")
				_ = h.accept().until("never")
				if up, why := l.State(); up || !strings.Contains(why, "tls: ") {
					t.Errorf("state: %v, %q", up, why)
				}
				_ = stop()
				if got, want := said.messages(), []string{"handshake failed"}; !slices.Equal(got, want) {
					t.Errorf("log: got %v, want %v", got, want)
				}
				return
			}
			c := h.attach("<presence/>")
			r.want(t, "attached s1", "presence")
			c.until("</iq>") // a read that timed out does not spoil the stream
			c.say("<message/>")
			r.want(t, "message")
		})
	}
}

// TestStreamEnds: however a connection ends, the next one comes, and the log
// has a line for each change.
func TestStreamEnds(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		end  func(*hostConn)
		want string
	}{
		"EOF":         {func(c *hostConn) { _ = c.Close() }, errHungUp.Error()},
		"in a stanza": {func(c *hostConn) { c.say("<iq"); _ = c.Close() }, io.ErrUnexpectedEOF.Error()},
		"stream end":  {func(c *hostConn) { c.say("</stream:stream>") }, ErrStreamEnd.Error()},
		"stream error": {func(c *hostConn) {
			c.say("<stream:error><system-shutdown xmlns='urn:ietf:params:xml:ns:xmpp-streams'/><text xmlns='urn:ietf:params:xml:ns:xmpp-streams'>for a while</text></stream:error></stream:stream>")
		}, "stream error: system-shutdown (for a while)"},
		"huge stream error": {func(c *hostConn) {
			c.say("<stream:error><conflict xmlns='urn:ietf:params:xml:ns:xmpp-streams'/>" + strings.Repeat(" ", 3<<20) + "</stream:error>")
		}, "stream error: conflict"},
		"empty stream error": {func(c *hostConn) { c.say("<stream:error/>") }, "stream error: undefined-condition"},
		"garbage":            {func(c *hostConn) { c.say("<iq>\n</message>") }, "not well-formed: the end tag of another element at byte 15"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h, r := newHost(t), newRecorder()
			l, said, stop := start(t, r.options(h.Addr().String()), r)
			c := h.attach("")
			r.want(t, "attached s1")
			if up, _ := l.State(); !up {
				t.Error("not attached")
			}
			tc.end(c)
			r.want(t, "detached "+tc.want)
			h.attach("<presence/>")
			r.want(t, "attached s1", "presence")
			_ = stop()
			if got, want := said.messages(), []string{"attached", "detached", "attached", "detached"}; !slices.Equal(got, want) {
				t.Errorf("log: got %v, want %v", got, want)
			}
			if !strings.Contains(said.String(), tc.want) {
				t.Errorf("%q is not in the log:\n%s", tc.want, said)
			}
			if l.Reconnects() != 1 {
				t.Errorf("%d reconnects", l.Reconnects())
			}
		})
	}
	t.Run("RST", func(t *testing.T) {
		t.Parallel()
		h, r := newHost(t), newRecorder()
		start(t, r.options(h.Addr().String()), r)
		h.attach("").reset()
		r.want(t, "attached s1")
		if got := <-r.events; !strings.Contains(got, "connection reset") {
			t.Errorf("got %q", got)
		}
		h.attach("")
		r.want(t, "attached s1")
	})
}

// TestRefused: what a host may say instead of the handshake's end, said once,
// whatever the number of tries.
func TestRefused(t *testing.T) {
	t.Parallel()
	const streams = " xmlns='urn:ietf:params:xml:ns:xmpp-streams'/></stream:error></stream:stream>"
	afterSecret := func(condition string) func(*hostConn) {
		return func(c *hostConn) {
			c.until(">")
			c.say(testHeader)
			c.until("</handshake>")
			c.say("<stream:error><" + condition + streams)
		}
	}
	tests := map[string]struct {
		host func(*hostConn)
		msg  string
		text string
	}{
		"wrong secret": {afterSecret("not-authorized"), "wrong secret", "another secret"},
		"conflict":     {afterSecret("conflict"), "conflict", "another connection"},
		"unknown host": {func(c *hostConn) {
			c.until(">")
			c.say("<stream:stream xmlns='jabber:component:accept' xmlns:stream='http://etherx.jabber.org/streams'><stream:error><host-unknown" + streams)
			_ = c.Close()
		}, "host-unknown", "no component of this name"},
		"another error": {afterSecret("resource-constraint"), "host refuses", "resource-constraint"},
		"EOF":           {func(c *hostConn) { c.until(">") }, "handshake failed", "hung up"},
		"RST":           {func(c *hostConn) { c.until(">"); c.reset() }, "handshake failed", "reset"},
		"not XMPP":      {func(c *hostConn) { c.say("HTTP/1.1 400 Bad Request\r\n\r\n") }, "handshake failed", "unexpected token"},
		"endless":       {func(c *hostConn) { c.say("<a b='" + strings.Repeat("x", 1<<20)) }, "handshake failed", "endless"},
		"silent":        {func(c *hostConn) { c.until("never") }, "handshake failed", errTimeout.Error()},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h, r := newHost(t), newRecorder()
			opts := r.options(h.Addr().String())
			if name == "silent" {
				opts.ConnectTimeout = 300 * time.Millisecond
				opts.Dial = func(ctx context.Context, network, address string) (net.Conn, error) {
					return dialTCP(context.WithoutCancel(ctx), network, address) // the host is there, however late
				}
			}
			l, said, stop := start(t, opts, r)
			for range 3 {
				c := h.accept()
				tc.host(c)
				_ = c.Close()
			}
			c := h.accept() // the third failure has been noted
			up, why := l.State()
			if up || !strings.HasPrefix(why, tc.msg) {
				t.Errorf("state: %v, %q", up, why)
			}
			_ = stop()
			_ = c.Close()
			if got, want := said.messages(), []string{tc.msg}; !slices.Equal(got, want) {
				t.Errorf("log: got %v, want %v", got, want)
			}
			if !strings.Contains(said.String(), tc.text) {
				t.Errorf("%q is not in the log:\n%s", tc.text, said)
			}
		})
	}
}

// TestHostAbsent: a host that is not there yet is waited for (C34).
func TestHostAbsent(t *testing.T) {
	t.Parallel()
	h, r := newHost(t), newRecorder()
	opts := r.options(h.Addr().String())
	var mu sync.Mutex
	tries, there := 0, false
	opts.Dial = func(ctx context.Context, network, address string) (net.Conn, error) {
		mu.Lock()
		defer mu.Unlock()
		if tries++; !there {
			return nil, &net.OpError{Op: "dial", Err: fmt.Errorf("connection refused, try %d", tries)}
		}
		return dialTCP(ctx, network, address)
	}
	l, said, stop := start(t, opts, r)
	for enough := false; !enough; {
		mu.Lock()
		enough = tries > 5
		there = enough
		mu.Unlock()
	}
	if up, why := l.State(); up || !strings.HasPrefix(why, "host unreachable: ") {
		t.Errorf("state: %v, %q", up, why)
	}
	h.attach("")
	r.want(t, "attached s1")
	_ = stop()
	if got, want := said.messages(), []string{"host unreachable", "attached", "detached"}; !slices.Equal(got, want) {
		t.Errorf("log: got %v, want %v", got, want)
	}
}

// TestFlapping: a connection that breaks a hundred times is back each time.
func TestFlapping(t *testing.T) {
	t.Parallel()
	h, r := newHost(t), newRecorder()
	opts := r.options(h.Addr().String())
	opts.Backoff.Max = 10 * time.Millisecond
	l, _, _ := start(t, opts, r)
	for i := range 100 {
		c := h.attach("<presence/>")
		r.want(t, "attached s1", "presence")
		if i%2 == 0 {
			c.reset()
		}
		_ = c.Close()
		<-r.events // detached
	}
	if l.Reconnects() != 99 {
		t.Errorf("%d reconnects", l.Reconnects())
	}
}

func TestBackoff(t *testing.T) {
	t.Parallel()
	b := Backoff{First: 500 * time.Millisecond, Max: 5 * time.Second}
	for failed, most := range []time.Duration{500, 500, 1000, 2000, 4000, 5000, 5000, 100: 5000} {
		if most == 0 {
			continue
		}
		most *= time.Millisecond
		for range 100 {
			d := b.pause(failed)
			if d > most || d < 0 || failed > 0 && d < most/2 {
				t.Errorf("after %d: %v, at most %v", failed, d, most)
			}
		}
	}
}

// piped runs a link whose connections are pipes, for tests with a false clock.
func piped(t *testing.T, opts Options, r *recorder) (dialled chan *hostConn) {
	t.Helper()
	_, dialled = pipedLink(t, opts, r, func(c net.Conn) net.Conn { return c })
	return dialled
}

// pipedLink is piped for who needs the link, or its end of the pipes.
func pipedLink(t *testing.T, opts Options, r *recorder, end func(net.Conn) net.Conn) (l *Link, dialled chan *hostConn) {
	t.Helper()
	dialled = make(chan *hostConn)
	opts.Dial = func(ctx context.Context, _, _ string) (net.Conn, error) {
		theirs, ours := net.Pipe()
		select {
		case dialled <- &hostConn{theirs, bufio.NewReader(theirs)}:
			return end(ours), nil
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	l, _, _ = start(t, opts, r)
	return l, dialled
}

func shake(c *hostConn) *hostConn {
	c.until(">")
	c.say(testHeader)
	c.until("</handshake>")
	c.say("<handshake/>")
	return c
}

func TestKeepAlive(t *testing.T) {
	t.Parallel()
	t.Run("half-open", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			r := newRecorder()
			opts := r.options("host:1")
			dialled := piped(t, opts, r)
			c := shake(<-dialled)
			r.want(t, "attached s1")
			began := time.Now()
			ping := c.until("</iq>")
			if at := time.Since(began); at != 30*time.Second {
				t.Errorf("pinged after %v", at)
			}
			for _, part := range []string{"type='get'", "from='v.example.org'", "to='example.org'", "<ping xmlns='urn:xmpp:ping'/>"} {
				if !strings.Contains(ping, part) {
					t.Errorf("no %s in %s", part, ping)
				}
			}
			r.want(t, "detached "+ErrHalfOpen.Error())
			if at := time.Since(began); at != 40*time.Second {
				t.Errorf("given up after %v", at)
			}
			shake(<-dialled)
			r.want(t, "attached s1")
		})
	})
	t.Run("alive", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			r := newRecorder()
			l, dialled := pipedLink(t, r.options("host:1"), r, func(c net.Conn) net.Conn { return c })
			c := shake(<-dialled)
			r.want(t, "attached s1")
			began := time.Now()
			for i := range 10 { // any answer is a sign of life, and so is anything else
				c.until("</iq>")
				time.Sleep(9 * time.Second)
				c.say([]string{"<iq type='error'/>", " ", "<presence/>"}[i%3])
			}
			synctest.Wait()
			if at := time.Since(began); at != 390*time.Second {
				t.Errorf("ten pings took %v", at)
			}
			if quiet := time.Since(l.Heard()); quiet != 0 {
				t.Errorf("heard %v ago, want now", quiet)
			}
			time.Sleep(time.Second)
			if quiet := time.Since(l.Heard()); quiet != time.Second {
				t.Errorf("heard %v ago, want a second", quiet)
			}
			r.want(t, "presence", "presence", "presence")
		})
	})
	t.Run("a pausing reader is not half-open", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			r := newRecorder()
			r.got = func(ctx context.Context, s Stanza) {
				time.Sleep(5 * time.Minute)
				r.events <- s.Name.Local
			}
			dialled := piped(t, r.options("host:1"), r)
			c := shake(<-dialled)
			c.say("<message/>")
			go c.say("<presence/>")
			r.want(t, "attached s1")
			for _, want := range []string{"message", "presence"} {
				if got := <-r.events; got != want {
					t.Errorf("got %q, want %q", got, want)
				}
			}
		})
	})
}

// TestPausedReader: Stanza may block; the end of the connection wakes it.
func TestPausedReader(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRecorder()
		opts := r.options("host:1")
		broken := make(chan struct{})
		opts.Serve = func(ctx context.Context, conn net.Conn) error {
			select {
			case <-broken:
				return errors.New("the writer is stuck")
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		}
		r.got = func(ctx context.Context, _ Stanza) {
			r.events <- "blocked"
			<-ctx.Done()
		}
		dialled := piped(t, opts, r)
		c := shake(<-dialled)
		c.say("<message/>")
		r.want(t, "attached s1", "blocked")
		close(broken)
		r.want(t, "detached write: the writer is stuck")
	})
}
