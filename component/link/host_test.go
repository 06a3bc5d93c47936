package link

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha1"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	testSecret = "marked-secret"
	testHeader = `<?xml version='1.0'?><stream:stream xmlns='jabber:component:accept' xmlns:stream='http://etherx.jabber.org/streams' id='s1' from='v.example.org'>`
)

// host is a scripted host on a free port.
type host struct {
	t *testing.T
	net.Listener
}

func newHost(t *testing.T) *host {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return &host{t, l}
}

// hostConn is one connection to the host.
type hostConn struct {
	net.Conn
	r *bufio.Reader
}

func (h *host) accept() *hostConn {
	h.t.Helper()
	conn, err := h.Accept()
	if err != nil {
		h.t.Fatal(err)
	}
	h.t.Cleanup(func() { _ = conn.Close() })
	_ = conn.SetDeadline(time.Now().Add(5 * time.Minute)) // far more than any machine needs
	return &hostConn{conn, bufio.NewReader(conn)}
}

// attach accepts a connection and shakes hands; more goes out in one segment
// with the end of the handshake.
func (h *host) attach(more string) *hostConn {
	h.t.Helper()
	c := h.accept()
	c.until(">") // the stream's start tag
	c.say(testHeader)
	digest := fmt.Sprintf("%x", sha1.Sum([]byte("s1"+testSecret)))
	if got := c.until("</handshake>"); !strings.Contains(got, digest) {
		h.t.Errorf("handshake %q", got)
	}
	c.say("<handshake/>" + more)
	return c
}

func (c *hostConn) say(s string) { _, _ = io.WriteString(c, s) }

// until reads up to and with the text; less if the connection ends.
func (c *hostConn) until(end string) string {
	var b strings.Builder
	for !strings.HasSuffix(b.String(), end) {
		one, err := c.r.ReadByte()
		if err != nil {
			break
		}
		b.WriteByte(one)
	}
	return b.String()
}

// reset closes the connection with RST.
func (c *hostConn) reset() {
	_ = c.Conn.(*net.TCPConn).SetLinger(0)
	_ = c.Close()
}

// recorder is a Handler that tells what it sees, and a writer that just writes.
type recorder struct {
	events chan string
	out    chan []byte
	got    func(context.Context, Stanza) // replaces the event, if not nil
}

func newRecorder() *recorder {
	return &recorder{events: make(chan string, 1000), out: make(chan []byte, 100)}
}

func (r *recorder) Attached(_ context.Context, s Stream) { r.events <- "attached " + s.ID }
func (r *recorder) Detached(err error)                   { r.events <- "detached " + reason(err) }
func (r *recorder) Send(b []byte) bool                   { r.out <- b; return true }
func (r *recorder) finish()                              { r.out <- nil }
func (r *recorder) Stanza(ctx context.Context, s Stanza) {
	if r.got != nil {
		r.got(ctx, s)
		return
	}
	r.events <- strings.Join(strings.Fields(s.Name.Local+" "+s.Type+" "+s.ID), " ")
}

// Serve writes what Send got; finish ends the stream.
func (r *recorder) Serve(ctx context.Context, conn net.Conn) error {
	for {
		select {
		case b := <-r.out:
			if b == nil {
				_, err := io.WriteString(conn, "</stream:stream>")
				return err
			}
			if _, err := conn.Write(b); err != nil {
				return err
			}
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// want waits for the events, in this order.
func (r *recorder) want(t *testing.T, events ...string) {
	t.Helper()
	for _, want := range events {
		select {
		case got := <-r.events:
			if got != want {
				t.Errorf("got %q, want %q", got, want)
			}
		case <-time.After(5 * time.Minute):
			t.Fatalf("no %q", want)
		}
	}
}

func (r *recorder) options(server string) Options {
	return Options{
		Server: server, JID: "v.example.org", Secret: Secret(testSecret),
		Serve: r.Serve, Send: r.Send,
		Backoff:        Backoff{First: 5 * time.Millisecond, Max: 50 * time.Millisecond},
		ConnectTimeout: time.Hour, // only tests of it meet it, on a busy machine too
	}
}

// log is a buffer for several goroutines.
type log struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// messages are the msg values, in order.
func (l *log) messages() (all []string) {
	for line := range strings.Lines(l.String()) {
		_, rest, _ := strings.Cut(line, "msg=")
		if quoted, ok := strings.CutPrefix(rest, `"`); ok {
			rest, _, _ = strings.Cut(quoted, `"`)
		} else {
			rest, _, _ = strings.Cut(rest, " ")
		}
		all = append(all, strings.TrimSpace(rest))
	}
	return all
}

// start runs a link until the test ends; stop waits for Run's result.
func start(t *testing.T, opts Options, h Handler) (l *Link, said *log, stop func() error) {
	t.Helper()
	said = &log{}
	opts.Logger = slog.New(slog.NewTextHandler(said, &slog.HandlerOptions{Level: slog.LevelDebug}))
	l, err := New(opts, h)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancelCause(context.Background())
	result := make(chan error, 1)
	go func() { result <- l.Run(ctx) }()
	stop = sync.OnceValue(func() error {
		cancel(errStopped)
		return <-result
	})
	t.Cleanup(func() {
		_ = stop()
		if strings.Contains(said.String(), testSecret) {
			t.Error("the secret is in the log")
		}
	})
	return l, said, stop
}

var errStopped = errors.New("stopped by the test")
