package main_test

import (
	"context"
	"encoding/xml"
	"flag"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"pepvault/component/loopback"
)

var killRounds = flag.Int("kill-rounds", 10, "how often TestKill kills the service under load")

const (
	killWriters = 4
	killSets    = 5
	killParts   = 4 // records that one write changes
)

// TestKill: whenever the real program is killed under load, what it has
// acknowledged is there with its content, and no write is there by halves.
func TestKill(t *testing.T) {
	t.Parallel()
	host, err := loopback.Start(loopback.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { host.Close() })
	s := newService(t, buildProgram(t), host.Component(), host.Addr(), host.Secret(), "")
	writers := make([]*killWriter, killWriters)
	for i := range writers {
		if writers[i], err = newKillWriter(host, i); err != nil {
			t.Fatal(err)
		}
	}
	saved, rounds := 0, 0
	// On a slow machine little is acknowledged in a round: there it takes more.
	for ; rounds < *killRounds || saved < *killRounds; rounds++ {
		number := host.Link()
		s.launch()
		awaitLink(t, host, number)
		for _, w := range writers {
			if err := w.check(t.Context()); err != nil {
				t.Fatalf("round %d: %v", rounds, err)
			}
		}
		saved += loadAndKill(t, s, writers)
	}
	number := host.Link()
	s.launch()
	awaitLink(t, host, number)
	for _, w := range writers {
		if err := w.check(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("%d rounds, %d writes acknowledged", rounds, saved)
}

func awaitLink(t *testing.T, host *loopback.Host, before int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if _, err := host.Reattached(ctx, before); err != nil {
		t.Fatalf("the service is not attached: %v", err)
	}
}

// loadAndKill has all write until the service is killed at some moment, and
// counts what was acknowledged.
func loadAndKill(t *testing.T, s *service, writers []*killWriter) (saved int) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	var writing sync.WaitGroup
	counts := make([]int, len(writers))
	for i, w := range writers {
		writing.Go(func() { counts[i] = w.writeUntil(ctx) })
	}
	select {
	case <-time.After(time.Duration(rand.Int64N(int64(300 * time.Millisecond)))): // what is tested has no event
	case <-s.exited:
		t.Error("the service ended by itself")
	}
	s.kill()
	stop()
	writing.Wait()
	for _, n := range counts {
		saved += n
	}
	return saved
}

// version is what a set of records holds: the text of the n-th write, or
// nothing. The zero version is that of a set that was never written.
type version struct {
	n    int
	gone bool
}

func (v version) absent() bool { return v.n == 0 || v.gone }

// killWriter writes one set of records after the other, and knows what was
// acknowledged.
type killWriter struct {
	host    *loopback.Host
	device  *loopback.Device
	n       int
	known   [killSets]version // acknowledged
	pending *version          // of set n % killSets, without an answer
	refused error             // what the service itself did not carry out
}

func newKillWriter(host *loopback.Host, i int) (*killWriter, error) {
	device, err := host.Connect(fmt.Sprintf("writer%d@%s/laptop", i, host.Domain()))
	return &killWriter{host: host, device: device}, err
}

func killText(n int) string { return strings.Repeat(fmt.Sprint(n, ";"), 100) }

func killID(set, part int) string { return fmt.Sprintf("set%d-%d", set, part) }

// writeUntil writes until ctx ends or the service is gone.
func (w *killWriter) writeUntil(ctx context.Context) (acknowledged int) {
	for {
		w.n++
		set := w.n % killSets
		next := version{n: w.n, gone: w.n%7 == 0 && !w.known[set].absent()}
		w.pending = &next
		answer, err := w.device.IQ(ctx, "set", w.host.Component(), next.request(set))
		if err != nil {
			return acknowledged
		}
		if fault := answer.Err(); fault != nil {
			if fault.Condition != "remote-server-timeout" { // that is the host's
				w.refused = fault
			}
			return acknowledged
		}
		w.known[set], w.pending = next, nil
		acknowledged++
	}
}

func (v version) request(set int) string {
	var b strings.Builder
	operation := "publish"
	if v.gone {
		operation = "retract"
	}
	fmt.Fprintf(&b, "<pubsub xmlns='%s'><%s node='notes'>", nsPubsub, operation)
	for part := range killParts {
		fmt.Fprintf(&b, "<item id='%s'>", killID(set, part))
		if !v.gone {
			fmt.Fprintf(&b, "<n xmlns='urn:example' seq='%d'>%s</n>", v.n, killText(v.n))
		}
		b.WriteString("</item>")
	}
	fmt.Fprintf(&b, "</%s></pubsub>", operation)
	return b.String()
}

// check reads all back. What had no answer may be there or not, but only as a
// whole.
func (w *killWriter) check(ctx context.Context) error {
	if w.refused != nil {
		return fmt.Errorf("%s: write %d: %w", w.device.JID(), w.n, w.refused)
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	answer, err := w.device.IQ(ctx, "get", w.host.Component(), items("notes", "", ""))
	if err != nil {
		return err
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
		return err
	}
	if fault := answer.Err(); fault != nil && fault.Condition != "item-not-found" {
		return fault
	}
	stored := map[string]int{}
	for _, item := range read.Items {
		if stored[item.ID] = item.N.Seq; item.N.Text != killText(item.N.Seq) {
			return fmt.Errorf("%s: record %s is damaged: %q", w.device.JID(), item.ID, item.N.Text)
		}
	}
	for set := range w.known {
		if err := w.checkSet(set, stored); err != nil {
			return err
		}
	}
	w.pending = nil
	return nil
}

func (w *killWriter) checkSet(set int, stored map[string]int) error {
	holds := func(v version) bool {
		for part := range killParts {
			if n, there := stored[killID(set, part)]; there == v.absent() || there && n != v.n {
				return false
			}
		}
		return true
	}
	switch {
	case holds(w.known[set]):
	case w.pending != nil && w.pending.n%killSets == set && holds(*w.pending):
		w.known[set] = *w.pending
	default:
		return fmt.Errorf("%s: set %d should be %+v, or %+v without an answer: %v", w.device.JID(), set, w.known[set], w.pending, stored)
	}
	return nil
}
