package link

import (
	"bufio"
	"context"
	"errors"
	"net"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// moody is a host on a false clock that treats each connection as it is told.
type moody struct {
	conns chan *hostConn // attached ones
	mu    sync.Mutex
	tries int
	mood  func(*hostConn) // what becomes of the next connections; nil: nobody listens
}

func (m *moody) dial(context.Context, string, string) (net.Conn, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.tries++
	if m.mood == nil {
		return nil, &net.OpError{Op: "dial", Err: errors.New("connection refused")}
	}
	theirs, ours := net.Pipe()
	go m.mood(&hostConn{theirs, bufio.NewReader(theirs)})
	return ours, nil
}

// turn changes the mood and returns how often the old one was met.
func (m *moody) turn(mood func(*hostConn)) (tries int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	tries, m.tries, m.mood = m.tries, 0, mood
	return tries
}

func (m *moody) attach(c *hostConn) { m.conns <- shake(c) }

func (m *moody) refuse(condition string) func(*hostConn) {
	return func(c *hostConn) {
		c.until(">")
		c.say(testHeader)
		c.until("</handshake>")
		c.say("<stream:error><" + condition + " xmlns='urn:ietf:params:xml:ns:xmpp-streams'/></stream:error></stream:stream>")
		_ = c.Close()
	}
}

// silent takes the connection and does nothing, as a stopped process does.
func silent(c *hostConn) { c.until("never") }

// TestBackInTime: however long and in whatever way a host could not serve,
// with the default options the link is back within 5 s of its being able, has
// told of the change in one line, and has not hammered.
func TestBackInTime(t *testing.T) {
	t.Parallel()
	m := &moody{}
	tests := map[string]struct {
		away func(*hostConn)
		said string
	}{
		"absent":       {nil, "host unreachable"},
		"stopped":      {silent, "handshake failed"},
		"wrong secret": {m.refuse("not-authorized"), "wrong secret"},
		"half-open":    {m.refuse("conflict"), "conflict"},
		"unknown":      {m.refuse("host-unknown"), "host-unknown"},
		"policy":       {m.refuse("policy-violation"), "host refuses"},
		"hangs up":     {func(c *hostConn) { c.until(">"); _ = c.Close() }, "handshake failed"},
	}
	const most = 5 * time.Second
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, outage := range []time.Duration{0, time.Second, 61 * time.Second, 13*time.Minute + 333*time.Millisecond} {
				synctest.Test(t, func(t *testing.T) {
					m := &moody{conns: make(chan *hostConn)}
					r := newRecorder()
					opts := r.options("host:1")
					opts.Backoff, opts.ConnectTimeout = Backoff{}, 0
					opts.Dial = m.dial
					m.turn(m.attach)
					_, said, stop := start(t, opts, r)
					c := <-m.conns
					r.want(t, "attached s1")
					time.Sleep(20 * time.Second) // it lasted, and is not pinged yet

					m.turn(tc.away)
					_ = c.Close()
					time.Sleep(outage)
					synctest.Wait()
					if tries, allowed := m.turn(m.attach), 6+int(outage/(most/2)); tries > allowed {
						t.Errorf("%d tries in %v, at most %d", tries, outage, allowed)
					}
					able := time.Now()
					c = <-m.conns
					if took := time.Since(able); took > most {
						t.Errorf("back %v after an outage of %v, want at most %v", took, outage, most)
					}
					synctest.Wait()
					messages := said.messages()
					want := []string{"attached", "detached", tc.said, "attached"}
					if outage < time.Second { // it may have gone unnoticed
						messages = slices.DeleteFunc(messages, func(m string) bool { return m == tc.said })
						want = slices.Delete(want, 2, 3)
					}
					if !slices.Equal(messages, want) {
						t.Errorf("log: after an outage of %v: got %v, want %v", outage, messages, want)
					}
					_ = c.Close()
					_ = stop()
				})
			}
		})
	}
}

// TestFlappingIsSlow: a host that ends every connection at once is tried in
// growing pauses, so that it costs it little and the log stays short.
func TestFlappingIsSlow(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := &moody{mood: func(c *hostConn) { _ = shake(c).Close() }}
		r := newRecorder()
		opts := r.options("host:1")
		opts.Backoff, opts.ConnectTimeout = Backoff{}, 0
		opts.Dial = m.dial
		_, said, stop := start(t, opts, r)
		time.Sleep(10 * time.Minute)
		_ = stop()
		tries := m.turn(nil)
		if tries < 100 || tries > 250 {
			t.Errorf("%d tries in ten minutes, want one in 2.5 to 5 s", tries)
		}
		if got := len(said.messages()); got > 2*tries {
			t.Errorf("%d lines of log for %d connections", got, tries)
		}
		for i, message := range said.messages() {
			if want := []string{"attached", "detached"}[i%2]; message != want {
				t.Fatalf("line %d: got %q, want %q", i, message, want)
			}
		}
	})
}

// TestFailingInTurns: a host that fails in one way and another costs a line for
// each way, and one more where it lasts.
func TestFailingInTurns(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := &moody{conns: make(chan *hostConn)}
		turns := 0
		m.mood = func(c *hostConn) {
			if turns++; turns%2 == 0 {
				m.refuse("conflict")(c)
			} else {
				_ = c.Close()
			}
		}
		r := newRecorder()
		opts := r.options("host:1")
		opts.Backoff, opts.ConnectTimeout = Backoff{}, 0
		opts.Dial = m.dial
		_, said, stop := start(t, opts, r)
		time.Sleep(tellAgain - time.Second)
		want := []string{"handshake failed", "conflict"}
		if got := said.messages(); !slices.Equal(got, want) {
			t.Errorf("log: got %v, want %v", got, want)
		}
		time.Sleep(time.Minute)
		// Which of the two is due again first is for chance to say.
		got := said.messages()
		if slices.Sort(got[min(2, len(got)):]); !slices.Equal(got, []string{"handshake failed", "conflict", "conflict", "handshake failed"}) {
			t.Errorf("log: got %v, want %v twice", got, want)
		}
		m.turn(m.attach)
		_ = (<-m.conns).Close()
		m.turn(m.refuse("conflict"))
		time.Sleep(time.Minute)
		_ = stop()
		if got := said.messages()[4:]; !slices.Equal(got, []string{"attached", "detached", "conflict"}) {
			t.Errorf("log after a connection: got %v", got)
		}
	})
}
