package component_test

import (
	"context"
	"encoding/xml"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"pepvault/component/loopback"
)

// patience bounds every wait of these tests. It is far more than any machine
// needs: a test that passes never waits so long.
const patience = 5 * time.Minute

// dialling is what news hears of each attempt to connect.
const dialling = "dialling"

// news is all that was logged of a link, with the attempts to connect.
type news struct {
	mu      sync.Mutex
	lines   []string
	changed chan struct{} // closed and replaced at each line
}

func newNews() *news { return &news{changed: make(chan struct{})} }

func (n *news) add(line string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.lines = append(n.lines, line)
	close(n.changed)
	n.changed = make(chan struct{})
}

func (n *news) count(line string) (found int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, l := range n.lines {
		if l == line {
			found++
		}
	}
	return found
}

func (n *news) await(t *testing.T, line string, times int) {
	t.Helper()
	limit := time.After(patience)
	for {
		n.mu.Lock()
		changed := n.changed
		n.mu.Unlock()
		if n.count(line) >= times {
			return
		}
		select {
		case <-changed:
		case <-limit:
			t.Fatalf("%q has not come %d times: %q", line, times, n.changes())
		}
	}
}

// changes are the lines of the log.
func (n *news) changes() (lines []string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, l := range n.lines {
		if l != dialling {
			lines = append(lines, l)
		}
	}
	return lines
}

func (n *news) logger() *slog.Logger { return slog.New(newsHandler{n}) }

// newsHandler keeps the messages, from level info on.
type newsHandler struct{ news *news }

func (h newsHandler) Enabled(_ context.Context, l slog.Level) bool { return l >= slog.LevelInfo }
func (h newsHandler) WithAttrs([]slog.Attr) slog.Handler           { return h }
func (h newsHandler) WithGroup(string) slog.Handler                { return h }
func (h newsHandler) Handle(_ context.Context, r slog.Record) error {
	h.news.add(r.Message)
	return nil
}

// hole is the way to the host; it may be cut without either side being told.
type hole struct {
	news *news
	mu   sync.Mutex
	all  []*holeConn
}

func (h *hole) dial(ctx context.Context, network, address string) (net.Conn, error) {
	h.news.add(dialling)
	var d net.Dialer
	conn, err := d.DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	c := &holeConn{Conn: conn}
	h.all = append(h.all, c)
	return c, nil
}

// cut has the last connection swallow what is written and bring nothing.
func (h *hole) cut() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.all[len(h.all)-1].set(true, false)
}

// sever closes the last connection under the service.
func (h *hole) sever() {
	h.mu.Lock()
	defer h.mu.Unlock()
	_ = h.all[len(h.all)-1].Conn.Close()
}

func (h *hole) close() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, c := range h.all {
		_ = c.Conn.Close()
	}
}

type holeConn struct {
	net.Conn
	mu          sync.Mutex
	cut, closed bool
}

func (c *holeConn) set(cut, closed bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.cut, c.closed = c.cut || cut, c.closed || closed
}

func (c *holeConn) state() (cut, closed bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.cut, c.closed
}

func (c *holeConn) Read(p []byte) (int, error) {
	for {
		n, err := c.Conn.Read(p)
		cut, closed := c.state()
		switch {
		case closed:
			return 0, net.ErrClosed
		case !cut || err != nil:
			return n, err
		}
	}
}

func (c *holeConn) Write(p []byte) (int, error) {
	if cut, _ := c.state(); cut {
		return len(p), nil
	}
	return c.Conn.Write(p)
}

// Close of a cut connection does not reach the other side.
func (c *holeConn) Close() error {
	c.set(false, true)
	if cut, _ := c.state(); cut {
		return c.Conn.SetDeadline(time.Unix(1, 0))
	}
	return c.Conn.Close()
}

// publisher is a device that writes one set of records after the other, and
// knows what was acknowledged.
type publisher struct {
	t      *testing.T
	host   *loopback.Host
	device *loopback.Device
	stop   chan struct{}
	ended  chan struct{}

	mu      sync.Mutex
	changed chan struct{}
	sent    []int       // the connection of each write
	answers map[int]int // how many came to each write
	acks    int
	acked   [publisherSets]int // the last acknowledged write of each set; -1: none
}

const publisherSets = 5

func newPublisher(t *testing.T, host *loopback.Host, jid string) *publisher {
	t.Helper()
	p := &publisher{
		t: t, host: host, stop: make(chan struct{}), ended: make(chan struct{}),
		changed: make(chan struct{}), answers: map[int]int{},
	}
	for i := range p.acked {
		p.acked[i] = -1
	}
	device, err := host.ConnectFunc(jid, p.receive)
	if err != nil {
		t.Fatal(err)
	}
	p.device = device
	return p
}

// begin writes until finish, a set at a time.
func (p *publisher) begin() {
	ctx, cancel := context.WithCancel(context.WithoutCancel(p.t.Context()))
	p.t.Cleanup(func() { cancel(); <-p.ended })
	go func() {
		defer close(p.ended)
		for n := 0; ; n++ {
			select {
			case <-p.stop:
				return
			default:
			}
			number, err := p.host.Attached(ctx)
			if err != nil || !p.write(ctx, number, n) {
				return
			}
		}
	}()
}

// write sends the n-th set and waits for its answer, or for the connection
// behind the one that may have swallowed it.
func (p *publisher) write(ctx context.Context, number, n int) bool {
	p.mu.Lock()
	p.sent = append(p.sent, number)
	p.mu.Unlock()
	text := publisherText(n)
	raw := fmt.Sprintf(`<iq type='set' id='%d' to='%s'><pubsub xmlns='http://jabber.org/protocol/pubsub'><publish node='notes'>`, n, p.host.Component())
	for _, part := range []string{"a", "b"} {
		raw += fmt.Sprintf(`<item id='%s%d'><n xmlns='urn:example' seq='%d'>%s</n></item>`, part, n%publisherSets, n, text)
	}
	if err := p.device.Send([]byte(raw + `</publish></pubsub></iq>`)); err != nil {
		return false
	}
	lost, cancel := context.WithCancel(ctx)
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		_, _ = p.host.Reattached(lost, number)
	}()
	defer func() { cancel(); <-gone }()
	for {
		p.mu.Lock()
		changed, answered := p.changed, p.answers[n] > 0
		p.mu.Unlock()
		if answered {
			return true
		}
		select {
		case <-changed:
		case <-gone:
			return ctx.Err() == nil
		}
	}
}

func publisherText(n int) string { return strings.Repeat(fmt.Sprint(n, ";"), 60) }

func (p *publisher) receive(_ *loopback.Device, s loopback.Stanza) {
	var n int
	if _, err := fmt.Sscan(s.ID, &n); s.Name != "iq" || err != nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.answers[n]++
	if s.Type == "result" {
		p.acks++
		p.acked[n%publisherSets] = max(p.acked[n%publisherSets], n)
	}
	close(p.changed)
	p.changed = make(chan struct{})
}

// awaitMore waits for that many more acknowledgements.
func (p *publisher) awaitMore(n int) {
	p.t.Helper()
	limit := time.After(patience)
	p.mu.Lock()
	want := p.acks + n
	p.mu.Unlock()
	for {
		p.mu.Lock()
		changed, acks := p.changed, p.acks
		p.mu.Unlock()
		if acks >= want {
			return
		}
		select {
		case <-changed:
		case <-limit:
			p.t.Fatalf("%s: %d writes were acknowledged, want %d", p.device.JID(), acks, want)
		}
	}
}

// finish stops writing; the last write is answered.
func (p *publisher) finish() {
	p.t.Helper()
	close(p.stop)
	select {
	case <-p.ended:
	case <-time.After(patience):
		p.t.Fatalf("%s: the last write was never answered", p.device.JID())
	}
}

// check reads all back: what was acknowledged is there or overwritten, no set
// is there by halves, and what the present connection carried was answered once.
func (p *publisher) check() {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.t.Context(), patience)
	defer cancel()
	answer, err := p.device.IQ(ctx, "get", p.host.Component(), getNotes)
	if err != nil || answer.Type != "result" {
		p.t.Fatalf("%s reads: %s %v", p.device.JID(), answer.Raw, err)
	}
	var read struct {
		Items []struct {
			ID string `xml:"id,attr"`
			N  struct {
				Seq  int    `xml:"seq,attr"`
				Text string `xml:",chardata"`
			} `xml:"n"`
		} `xml:"pubsub>items>item"`
	}
	if err := xml.Unmarshal(answer.Raw, &read); err != nil {
		p.t.Fatal(err)
	}
	stored := map[string]int{}
	for _, item := range read.Items {
		stored[item.ID] = item.N.Seq
		if item.N.Text != publisherText(item.N.Seq) {
			p.t.Errorf("%s: record %s is damaged: %q", p.device.JID(), item.ID, item.N.Text)
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for set, acked := range p.acked {
		a, there := stored[fmt.Sprint("a", set)]
		b, whole := stored[fmt.Sprint("b", set)]
		if a != b || there != whole || acked >= 0 && (!there || a < acked) || a >= len(p.sent) {
			p.t.Errorf("%s: set %d has writes %d and %d, acknowledged was %d", p.device.JID(), set, a, b, acked)
		}
	}
	number := p.host.Link()
	for n, on := range p.sent {
		if got := p.answers[n]; got > 1 || got == 0 && on == number {
			p.t.Errorf("%s: write %d of %d, sent on connection %d of %d, got %d answers", p.device.JID(), n, len(p.sent), on, number, got)
		}
	}
}
