package component_test

import (
	"fmt"
	"math/rand/v2"
	"runtime/metrics"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"pepvault/component/lane"
	"pepvault/component/loopback"
	"pepvault/pep"
	"pepvault/pep/wire"
)

// rush is many devices that ask for the whole vault of their account at once,
// each until it has it: who is refused for now asks again when a pause is over,
// or up to twice as long, as a patient client would.
type rush struct {
	t       testing.TB
	host    *loopback.Host
	records int
	pushed  bool // in chunks; else in one stanza
	pause   time.Duration
	devices []*taker

	left    atomic.Int64
	done    chan struct{} // closed when nobody is left
	refused atomic.Int64
	again   chan *taker
	most    lane.Stats // what the queues held at most
	peak    uint64     // bytes of the heap, with what is garbage, at most
}

// taker is one of them; the host's only reader of the stream works it.
type taker struct {
	*loopback.Device
	rush  *rush
	taken int // records
}

// newRush connects the devices and fills the vaults of their accounts.
func newRush(t testing.TB, host *loopback.Host, accounts, devices, records int, pushed bool) *rush {
	t.Helper()
	r := &rush{t: t, host: host, records: records, pushed: pushed, pause: 20 * time.Millisecond, again: make(chan *taker, accounts*devices)}
	for a := range accounts {
		fills(t, host, fmt.Sprintf("account%d@localhost/filler", a), records)
	}
	for d := range devices { // one of each account after the other
		for a := range accounts {
			tr := &taker{rush: r}
			device, err := host.ConnectFunc(fmt.Sprintf("account%d@localhost/%d", a, d), func(_ *loopback.Device, s loopback.Stanza) { tr.receive(s) })
			if err != nil {
				t.Fatal(err)
			}
			tr.Device = device
			r.devices = append(r.devices, tr)
		}
	}
	return r
}

// fills stores so many records of about a kilobyte.
func fills(t testing.TB, host *loopback.Host, jid string, records int) *loopback.Device {
	t.Helper()
	d, err := host.Connect(jid)
	if err != nil {
		t.Fatal(err)
	}
	payload := native(strings.Repeat("x", 700))
	for i := range records {
		if got, err := d.IQ(t.Context(), "set", host.Component(), publication("notes", fmt.Sprint(i), payload)); err != nil || got.Type != "result" {
			t.Fatal(got, err)
		}
	}
	return d
}

func (r *rush) ask(d *taker) {
	kind, payload := "get", getNotes
	if r.pushed {
		kind, payload = "set", string(second(wire.Ask(pep.Download{ID: "d", Node: "notes", ChunkBytes: 8 << 10})))
	}
	if err := d.Send(fmt.Appendf(nil, `<iq type='%s' id='all' to='%s'>%s</iq>`, kind, r.host.Component(), payload)); err != nil {
		r.t.Error(err)
	}
}

func second[A, B any](_ A, b B) B { return b }

// receive acknowledges chunks and counts records.
func (d *taker) receive(s loopback.Stanza) {
	r := d.rush
	switch {
	case s.Name != "iq":
		return
	case s.Type == "error":
		for _, want := range []string{"type='wait'", "<resource-constraint ", "<retry "} { // decoding would be most of the host's work
			if !strings.Contains(string(s.Raw), want) {
				r.t.Errorf("%s got %s, want %s", d.JID(), s.Raw, want)
			}
		}
		r.refused.Add(1)
		time.AfterFunc(r.pause+rand.N(r.pause), func() { r.again <- d })
		return
	case s.Type == "result" && r.pushed:
		return // it begins
	}
	d.taken += strings.Count(string(s.Raw), "<item ")
	if s.Type == "set" {
		if err := d.Send(fmt.Appendf(nil, `<iq type='result' id='%s' to='%s'/>`, s.ID, r.host.Component())); err != nil {
			r.t.Error(err)
		}
		if !strings.Contains(string(s.Raw[:min(len(s.Raw), 1000)]), "last='true'") {
			return
		}
	}
	if d.taken != r.records {
		r.t.Errorf("%s has %d records, want %d", d.JID(), d.taken, r.records)
	}
	if r.left.Add(-1) == 0 {
		close(r.done)
	}
}

// run has all ask at once and waits until each has its vault.
func (r *rush) run(w *lane.Writer) {
	r.done = make(chan struct{})
	r.left.Store(int64(len(r.devices)))
	for _, d := range r.devices {
		d.taken = 0
		r.ask(d)
	}
	heapNow := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	look := time.NewTicker(10 * time.Millisecond)
	defer look.Stop()
	for {
		select {
		case <-r.done:
			return
		case d := <-r.again:
			r.ask(d)
			continue
		case <-look.C:
		}
		metrics.Read(heapNow)
		r.peak = max(r.peak, heapNow[0].Value.Uint64())
		now := w.Stats()
		r.most.SmallBytes, r.most.RefusalBytes = max(r.most.SmallBytes, now.SmallBytes), max(r.most.RefusalBytes, now.RefusalBytes)
		r.most.Reserved, r.most.Unconfirmed = max(r.most.Reserved, now.Reserved), max(r.most.Unconfirmed, now.Unconfirmed)
	}
}

// Thousands of devices ask at once, of more downloads than may be under way and
// more answers than may wait: each gets all, the queues keep their bounds, and
// nothing is left in memory. Not parallel: other tests would use memory beside
// it.
func TestThousandsAskAtOnce(t *testing.T) {
	const queue, window = 1 << 20, 64 << 10
	for name, pushed := range map[string]bool{"downloads": true, "whole answers": false} {
		t.Run(name, func(t *testing.T) {
			host, err := loopback.Start(loopback.Options{Fast: true})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { host.Close() })
			r := start(t, host, func(s *setup) {
				s.limits.Records, s.queue, s.unread, s.inline, s.pending = 64, queue, window, 4000, 512
			})
			if _, err := host.Attached(t.Context()); err != nil {
				t.Fatal(err)
			}
			storm := newRush(t, host, 20, requests(1000)/20, 10, pushed)
			storm.run(r.writer)
			early := heap()
			for range 2 {
				storm.run(r.writer)
			}
			if late := heap(); late > early+2<<20 {
				t.Errorf("the heap grew from %d to %d bytes", early, late)
			}
			most := storm.most
			if most.Reserved > queue || most.SmallBytes > 2*queue || most.RefusalBytes > queue/16 || most.Unconfirmed > window {
				t.Errorf("too much was held: %+v", most)
			}
			await(t, r.writer, "nothing is left over", func(s lane.Stats) bool {
				return s.Reserved == 0 && s.BulkChunks == 0 && s.Refusals == 0
			})
			if got := host.Links(); got != 1 {
				t.Errorf("got %d connections, want 1", got)
			}
			t.Logf("%d were refused for a while, at most %+v", storm.refused.Load(), most)
		})
	}
}

// BenchmarkTenThousandDevices has 10,000 devices of 100 accounts ask for their
// vaults of 16 KiB at once, through the embedded host, while another account
// reads a record every 5 ms; each read counts from its planned moment. One op
// is all of them.
func BenchmarkTenThousandDevices(b *testing.B) {
	for name, pushed := range map[string]bool{"pushed": true, "plain": false} {
		b.Run(name, func(b *testing.B) {
			host, err := loopback.Start(loopback.Options{Fast: true})
			if err != nil {
				b.Fatal(err)
			}
			b.Cleanup(func() { host.Close() })
			const queue = 16 << 20
			r := start(b, host, func(s *setup) {
				s.limits.Records, s.queue, s.pending, s.overall = 64, queue, 512, queue/(4*lane.SmallAnswer)
			})
			if _, err := host.Attached(b.Context()); err != nil {
				b.Fatal(err)
			}
			probe := fills(b, host, "probe@localhost/phone", 1)
			storm := newRush(b, host, 100, 100, 16, pushed)
			storm.pause = 2 * time.Second // as the service says
			before := heap()
			var took []time.Duration
			for b.Loop() {
				over := make(chan struct{})
				go func() { defer close(over); storm.run(r.writer) }()
				took = append(took, probes(b, probe, over)...)
			}
			slices.Sort(took)
			for _, q := range []struct {
				name string
				at   float64
			}{{"p50", 0.5}, {"p99", 0.99}, {"max", 1}} {
				b.ReportMetric(float64(took[int(q.at*float64(len(took)-1))].Microseconds())/1000, "read-"+q.name+"-ms")
			}
			b.ReportMetric(float64(storm.refused.Load())/float64(b.N), "refused/op")
			b.ReportMetric(float64(storm.most.Reserved)/1e6, "reserved-MB")
			b.ReportMetric(float64(storm.peak-before)/1e6, "heap-above-MB")
		})
	}
}

// probes reads a record every 5 ms until over is closed.
func probes(t testing.TB, d *loopback.Device, over <-chan struct{}) (took []time.Duration) {
	for at := time.Now(); ; at = at.Add(5 * time.Millisecond) {
		select {
		case <-over:
			return took
		case <-time.After(time.Until(at)):
		}
		answer, err := d.IQ(t.Context(), "get", d.Host().Component(),
			`<pubsub xmlns='http://jabber.org/protocol/pubsub'><items node='notes'><item id='0'/></items></pubsub>`)
		if err != nil || answer.Type != "result" {
			t.Error(answer, err)
			return took
		}
		took = append(took, time.Since(at))
	}
}
