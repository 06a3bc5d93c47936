package link

import (
	"errors"
	"net"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// sleepy is a connection to a process that is stopped while it reads: on
// waking, the deadline of that read is over, whatever waits in the socket.
type sleepy struct {
	net.Conn
	stop chan struct{} // holds a token for each read to be stopped in
}

const sleep = time.Hour

func (s *sleepy) Read(p []byte) (int, error) {
	select {
	case <-s.stop:
		time.Sleep(sleep)
		return 0, os.ErrDeadlineExceeded
	default:
		return s.Conn.Read(p)
	}
}

// TestStopped: a process that was stopped for longer than any pause reads what
// has come meanwhile, and keeps a stream that is good.
func TestStopped(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		stops int // of the reads that follow
		pong  bool
	}{
		"while idle":                         {1, true},
		"while a ping is under way":          {2, true},
		"while a ping is lost":               {2, false},
		"while idle, the ping after is lost": {1, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				r := newRecorder()
				stop := make(chan struct{}, 2)
				_, hosts := pipedLink(t, r.options("host:1"), r, func(ours net.Conn) net.Conn { return &sleepy{ours, stop} })
				c := shake(<-hosts)
				r.want(t, "attached s1")
				synctest.Wait() // in the first read
				for range test.stops {
					stop <- struct{}{}
				}
				c.say("<message/>") // the next read is stopped in
				r.want(t, "message")
				c.until("</iq>")
				if test.pong {
					c.say("<iq type='result'/><presence/>")
					r.want(t, "presence")
					return
				}
				time.Sleep(2 * sleep)
				r.want(t, "detached "+ErrHalfOpen.Error())
				shake(<-hosts)
				r.want(t, "attached s1")
			})
		})
	}
}

// TestSilence: whether a device is silent is judged only when a ping that was
// sent after the time was over has been answered; what was under way comes
// before that.
func TestSilence(t *testing.T) {
	t.Parallel()
	const device, within = "a@example.org/phone", time.Minute
	pong := func(id string) string { return "<iq type='error' id='" + id + "' from='example.org'/>" }
	result := func(id string) string { return "<iq type='result' id='" + id + "' from='" + device + "'/>" }
	for name, test := range map[string]struct {
		said func(asked, pinged string) string
		want error
	}{
		"answer before the ping's":   {func(asked, pinged string) string { return result(asked) + pong(pinged) }, nil},
		"answer, and none to a ping": {func(asked, _ string) string { return result(asked) }, nil},
		"silence":                    {func(_, pinged string) string { return pong(pinged) }, ErrNoAnswer},
		"stream ends":                {func(string, string) string { return "</stream:stream>" }, ErrDetached},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				r := newRecorder()
				opts := r.options("host:1")
				opts.KeepAlive.Idle = 24 * time.Hour
				l, hosts := pipedLink(t, opts, r, func(ours net.Conn) net.Conn { return ours })
				c := shake(<-hosts)
				r.want(t, "attached s1")
				answered, began := make(chan error, 1), time.Now()
				go func() {
					_, err := l.Request(t.Context(), "get", device, nil, within)
					answered <- err
				}()
				asked := idOf(c.until("</iq>"))
				ping := c.until("</iq>")
				if took := time.Since(began); took != within || !strings.Contains(ping, pingPayload) || !strings.Contains(ping, "to='example.org'") {
					t.Errorf("%s after %v", ping, took)
				}
				time.Sleep(sleep)
				synctest.Wait()
				if len(answered) != 0 {
					t.Error("judged before the ping was answered")
				}
				c.say(test.said(asked, idOf(ping)))
				if err := <-answered; !errors.Is(err, test.want) {
					t.Errorf("got %v, want %v", err, test.want)
				}
			})
		})
	}
}

func idOf(iq string) string {
	_, id, _ := strings.Cut(iq, "id='")
	id, _, _ = strings.Cut(id, "'")
	return id
}
