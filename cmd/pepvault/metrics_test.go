package main

import (
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"pepvault/component"
	"pepvault/component/loopback"
	"pepvault/configs"
)

// figures reads all series of ours, of a histogram the number of observations.
func figures(t *testing.T, m *metrics) map[string]float64 {
	t.Helper()
	families, err := m.registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]float64{}
	for _, family := range families {
		if !strings.HasPrefix(family.GetName(), "pepvault_") {
			continue
		}
		for _, series := range family.GetMetric() {
			name := family.GetName()
			for _, label := range series.GetLabel() {
				name += " " + label.GetValue()
			}
			switch {
			case series.Histogram != nil:
				found[name] = float64(series.GetHistogram().GetSampleCount())
			case series.Counter != nil:
				found[name] = series.GetCounter().GetValue()
			default:
				found[name] = series.GetGauge().GetValue()
			}
		}
	}
	return found
}

// gain is what changed between two looks.
func gain(before, after map[string]float64) map[string]float64 {
	changed := map[string]float64{}
	for name, value := range after {
		if value != before[name] {
			changed[name] = value - before[name]
		}
	}
	return changed
}

// fleeting are the figures that an answer on its way already moves; they have
// tests of their own.
var fleeting = []string{"pepvault_queue_bytes small", "pepvault_queue_bytes refusals", "pepvault_queue_bytes bulk", "pepvault_host_unconfirmed_bytes", "pepvault_link_connected"}

// metered is a service whose figures a test looks at.
type metered struct {
	t       *testing.T
	host    *loopback.Host
	service *service
}

func newMetered(t *testing.T, change func(*configs.Config)) *metered {
	t.Helper()
	m := &metered{t: t}
	m.host, m.service = startService(t, loopback.Options{ReadBuffer: 16 << 10}, change)
	return m
}

// send has a device send a stanza and answers nothing.
func (m *metered) send(d *loopback.Device, format string, args ...any) {
	m.t.Helper()
	if err := d.Send(fmt.Appendf(nil, format, args...)); err != nil {
		m.t.Fatal(err)
	}
}

// asks has a device ask, and returns the condition of the error, "" for none.
func (m *metered) asks(d *loopback.Device, kind, payload string) string {
	m.t.Helper()
	answer, err := d.IQ(m.t.Context(), kind, m.host.Component(), payload)
	if err != nil {
		m.t.Fatal(err)
	}
	if fault := answer.Err(); fault != nil {
		return fault.Condition
	}
	return ""
}

const (
	pinging  = `<ping xmlns='urn:xmpp:ping'/>`
	allNotes = `<pubsub xmlns='http://jabber.org/protocol/pubsub'><items node='notes'/></pubsub>`
)

func saved(id string, size int) string {
	return `<pubsub xmlns='http://jabber.org/protocol/pubsub'><publish node='notes'><item id='` + id + `'><n xmlns='urn:example'>` +
		strings.Repeat("x", size) + `</n></item></publish></pubsub>`
}

// TestMetrics: what happens moves the series that it should, and no other.
func TestMetrics(t *testing.T) {
	t.Parallel()
	m := newMetered(t, nil)
	phone, tablet := connect(t, m.host, "alice", "phone"), connect(t, m.host, "alice", "tablet")
	stranger := `<iq type='get' id='s' from='eve@elsewhere.example/x' to='vault.localhost'>` + pinging + `</iq>`
	for _, step := range []struct {
		name string
		act  func()
		want map[string]float64
		// also may be there besides, by as much as comes: what the service does
		// by itself.
		also []string
	}{
		{"ping", func() { m.asks(phone, "get", pinging) },
			map[string]float64{"pepvault_requests_total ping ok": 1, "pepvault_request_seconds ping": 1}, nil},
		{"read of an absent vault", func() { m.asks(phone, "get", allNotes) },
			map[string]float64{"pepvault_requests_total items item-not-found": 1, "pepvault_request_seconds items": 1}, nil},
		{"save", func() { m.asks(phone, "set", saved("a", 9)) },
			map[string]float64{"pepvault_requests_total publish ok": 1, "pepvault_request_seconds publish": 1,
				"pepvault_store_commits_total": 1, "pepvault_store_commit_seconds": 1, "pepvault_store_batch_size": 1}, nil},
		{"refused save", func() { m.asks(phone, "set", saved("b", 90_000)) },
			map[string]float64{"pepvault_requests_total unknown not-acceptable": 1, "pepvault_request_seconds unknown": 1}, nil},
		{"no such element", func() { m.asks(phone, "set", `<x xmlns='urn:example:anything'/>`) },
			map[string]float64{"pepvault_requests_total unknown service-unavailable": 1, "pepvault_request_seconds unknown": 1}, nil},
		{"stanza beyond the limits", func() { m.asks(phone, "set", strings.Repeat("<x>", 200)+strings.Repeat("</x>", 200)) },
			map[string]float64{"pepvault_requests_total unread policy-violation": 1, "pepvault_request_seconds unread": 1,
				"pepvault_rejected_total size": 1}, nil},
		{"somebody who is not served", func() { m.inject(stranger); m.asks(phone, "get", pinging) },
			map[string]float64{"pepvault_requests_total unread forbidden": 1, "pepvault_request_seconds unread": 1,
				"pepvault_rejected_total sender": 1, "pepvault_requests_total ping ok": 1, "pepvault_request_seconds ping": 1}, nil},
		{"subscription", func() {
			m.send(tablet, `<presence to='%s'/>`, m.host.Component())
			m.asks(tablet, "set", `<pubsub xmlns='http://jabber.org/protocol/pubsub'><subscribe node='notes' jid='`+tablet.JID()+`'/></pubsub>`)
		}, map[string]float64{"pepvault_requests_total subscribe ok": 1, "pepvault_request_seconds subscribe": 1,
			"pepvault_notifications_total sent": 1}, // where the vault stands
			[]string{"pepvault_store_"}},
		{"event", func() { m.asks(phone, "set", saved("a", 10)) },
			map[string]float64{"pepvault_requests_total publish ok": 1, "pepvault_request_seconds publish": 1,
				"pepvault_notifications_total sent": 1}, []string{"pepvault_store_"}},
		{"bounced event", func() {
			m.send(tablet, `<message type='error' id='m' to='%s'><error type='cancel'><service-unavailable xmlns='urn:ietf:params:xml:ns:xmpp-stanzas'/></error></message>`, m.host.Component())
			m.asks(tablet, "get", pinging)
		}, map[string]float64{"pepvault_notifications_total bounced": 1,
			"pepvault_requests_total ping ok": 1, "pepvault_request_seconds ping": 1}, []string{"pepvault_store_"}},
		{"large answer", func() {
			m.asks(phone, "set", saved("large", 20_000))
			m.asks(phone, "get", allNotes)
		}, map[string]float64{"pepvault_requests_total items ok": 1, "pepvault_request_seconds items": 1,
			"pepvault_requests_total publish ok": 1, "pepvault_request_seconds publish": 1, "pepvault_notifications_total sent": 1},
			[]string{"pepvault_store_"}},
	} {
		before := figures(t, m.service.metrics)
		step.act()
		moved := func() map[string]float64 {
			got := gain(before, figures(t, m.service.metrics))
			maps.DeleteFunc(got, func(name string, _ float64) bool {
				_, wanted := step.want[name]
				if slices.Contains(fleeting, name) {
					return true
				}
				return !wanted && slices.ContainsFunc(step.also, func(part string) bool { return strings.HasPrefix(name, part) })
			})
			return got
		}
		got := moved()
		// Events are counted behind the answer to what they tell.
		for until := time.Now().Add(time.Minute); !maps.Equal(got, step.want) && time.Now().Before(until); got = moved() {
			time.Sleep(time.Millisecond)
		}
		if !maps.Equal(got, step.want) {
			t.Errorf("%s: changed %v, want %v", step.name, got, step.want)
		}
	}
}

func (m *metered) inject(stanza string) {
	m.t.Helper()
	if err := m.host.Inject([]byte(stanza)); err != nil {
		m.t.Fatal(err)
	}
}

// await looks until the figure is as it should be.
func (m *metered) await(name string, holds func(float64) bool) {
	m.t.Helper()
	for deadline := time.Now().Add(time.Minute); ; runtime.Gosched() {
		got := figures(m.t, m.service.metrics)[name]
		if holds(got) {
			return
		}
		if time.Now().After(deadline) {
			m.t.Fatalf("%s is %v", name, got)
		}
	}
}

func is(want float64) func(float64) bool { return func(got float64) bool { return got == want } }

func TestMetricsOfTheLink(t *testing.T) {
	t.Parallel()
	m := newMetered(t, nil)
	m.await("pepvault_link_connected", is(1))
	if got := figures(t, m.service.metrics)["pepvault_link_reconnects_total"]; got != 0 {
		t.Errorf("%v reconnects, want none", got)
	}
	m.host.Down()
	m.host.Drop()
	m.await("pepvault_link_connected", is(0))
	if err := m.host.Up(); err != nil {
		t.Fatal(err)
	}
	m.await("pepvault_link_connected", is(1))
	m.await("pepvault_link_reconnects_total", is(1))
}

func TestMetricsOfDownloads(t *testing.T) {
	t.Parallel()
	m := newMetered(t, nil)
	phone := connect(t, m.host, "alice", "phone")
	m.asks(phone, "set", saved("a", 20_000))
	m.asks(phone, "set", `<download xmlns='urn:pepvault:sync:0' id='d1' node='notes' cursor='none' chunk-bytes='32768' window='2'/>`)
	chunk, err := phone.Recv(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	got := figures(t, m.service.metrics)
	if got["pepvault_downloads_active"] != 1 || got["pepvault_requests_total download ok"] != 1 {
		t.Errorf("%v downloads are active, want 1", got["pepvault_downloads_active"])
	}
	if bytes := got["pepvault_chunk_bytes_total"]; bytes < 20_000 || bytes > 22_000 {
		t.Errorf("the chunk %s made %v bytes", chunk.ID, bytes)
	}
	if err := phone.Reply(chunk, ""); err != nil {
		t.Fatal(err)
	}
	m.await("pepvault_downloads_active", is(0))
}

// What a host does not take waits, and shows.
func TestMetricsOfTheQueues(t *testing.T) {
	t.Parallel()
	m := newMetered(t, func(c *configs.Config) {
		c.Stream.ConfirmTimeout = 5 * time.Minute                       // the link must not be given up while its host is held
		c.Limits.RatePerSecond, c.Limits.RateBurst = 100_000, 1_000_000 // what is refused waits elsewhere
	})
	phone, tablet := connect(t, m.host, "alice", "phone"), connect(t, m.host, "bob", "tablet")
	for i := range 20 {
		m.asks(tablet, "set", saved(fmt.Sprint(i), 20_000))
	}
	// The host takes what is sent, and confirms nothing.
	m.host.SetIntercept(func(dir loopback.Direction, s loopback.Stanza) []loopback.Stanza {
		if dir == loopback.FromComponent && s.Name == "iq" && s.Type == "get" {
			return nil // the ping
		}
		return []loopback.Stanza{s}
	})
	m.asks(tablet, "get", allNotes)
	m.await("pepvault_host_unconfirmed_bytes", func(n float64) bool { return n > 100_000 })
	m.asks(phone, "set", saved("0", 6000))
	m.host.Stall(true, false)
	small := func() bool { return figures(t, m.service.metrics)["pepvault_queue_bytes small"] > 0 }
	// Small answers that are far larger than what asks for them: the sockets are
	// full of them long before the host has too many requests that wait.
	for i := 0; !small(); i++ {
		m.send(phone, `<iq type='get' id='p%d' to='%s'><pubsub xmlns='http://jabber.org/protocol/pubsub'><items node='notes'><item id='0'/></items></pubsub></iq>`,
			i, m.host.Component())
	}
	for i := range 3 { // one may be made ahead
		m.send(tablet, `<iq type='get' id='all%d' to='%s'>%s</iq>`, i, m.host.Component(), allNotes)
	}
	m.await("pepvault_queue_bytes bulk", func(n float64) bool { return n > 100_000 })
	m.host.SetIntercept(nil)
	m.host.Resume()
	m.host.Drop() // what was not confirmed is gone
	m.await("pepvault_queue_bytes small", is(0))
	m.await("pepvault_queue_bytes bulk", is(0))
}

// The census is not taken anew for everybody who asks.
func TestCensus(t *testing.T) {
	t.Parallel()
	m := newMetered(t, nil)
	phone := connect(t, m.host, "alice", "phone")
	now := time.Unix(1_700_000_000, 0)
	registry := prometheus.NewRegistry()
	registry.MustRegister(newCensus(m.service.store, func() time.Time { return now }))
	shows := func(when string, vaults, records int) {
		t.Helper()
		want := fmt.Sprintf("# HELP pepvault_records Records in the store, as counted within the last minute.\n# TYPE pepvault_records gauge\npepvault_records %d\n"+
			"# HELP pepvault_vaults Vaults in the store, as counted within the last minute.\n# TYPE pepvault_vaults gauge\npepvault_vaults %d\n", records, vaults)
		if err := testutil.GatherAndCompare(registry, strings.NewReader(want)); err != nil {
			t.Errorf("%s: %v", when, err)
		}
	}
	shows("empty", 0, 0)
	m.asks(phone, "set", saved("a", 1))
	m.asks(phone, "set", saved("b", 1))
	now = now.Add(59 * time.Second)
	shows("within a minute", 0, 0)
	now = now.Add(time.Second)
	shows("after a minute", 1, 2)
	if got := m.asks(phone, "set", `<erase xmlns='urn:pepvault:account:0'/>`); got != "" {
		t.Fatal(got)
	}
	now = now.Add(time.Minute)
	shows("after an erase", 0, 0)
}

// BenchmarkAnswered is what counting adds to each request.
func BenchmarkAnswered(b *testing.B) {
	m := newMetrics()
	b.ReportAllocs()
	for b.Loop() {
		m.Answered("items", component.ResultOK, time.Millisecond)
	}
}
