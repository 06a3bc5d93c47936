package component_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"pepvault/component/hosttest"
	"pepvault/component/lane"
	"pepvault/component/loopback"
)

// storm sends stanzas of many devices at once and waits for an answer to each.
type storm struct {
	t      *testing.T
	host   *loopback.Host
	window chan struct{}
}

func newStorm(t *testing.T, host *loopback.Host, window int) *storm {
	return &storm{t: t, host: host, window: make(chan struct{}, window)}
}

// device connects one whose answers are counted.
func (s *storm) device(jid string) *loopback.Device {
	s.t.Helper()
	d, err := s.host.ConnectFunc(jid, func(d *loopback.Device, stanza loopback.Stanza) {
		switch {
		case stanza.Name != "iq":
		case stanza.Type == "result":
			<-s.window
		case stanza.Type == "error":
			s.t.Errorf("%s got %s", d.JID(), stanza)
			<-s.window
		}
	})
	if err != nil {
		s.t.Fatal(err)
	}
	return d
}

// ask sends a request as soon as fewer than the window are under way.
func (s *storm) ask(d *loopback.Device, id int, kind, payload string) {
	s.t.Helper()
	s.window <- struct{}{}
	if err := d.Send(fmt.Appendf(nil, `<iq type='%s' id='%d' to='vault.localhost'>%s</iq>`, kind, id, payload)); err != nil {
		s.t.Fatal(err)
	}
}

// rest waits until all is answered.
func (s *storm) rest() {
	for range cap(s.window) {
		s.window <- struct{}{}
	}
	for range cap(s.window) {
		<-s.window
	}
}

// requests is how many a bound is held against; the race detector makes each
// one ten times as slow.
func requests(n int) int {
	if raceDetector {
		return n / 10
	}
	return n
}

// Memory does not grow with the number of requests. Not parallel: other tests
// would use memory beside it.
func TestMemoryStaysFlatUnderRequests(t *testing.T) {
	const room = 2 << 20                                      // of noise, between two looks
	host, err := loopback.Start(loopback.Options{Fast: true}) // hosttest's transcript would take its time
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { host.Close() })
	r := start(t, host, func(s *setup) { s.pending = 512 })
	if _, err := host.Attached(t.Context()); err != nil {
		t.Fatal(err)
	}
	s := newStorm(t, host, 100)
	devices := make([]*loopback.Device, 20)
	for i := range devices {
		devices[i] = s.device(fmt.Sprintf("account%d@localhost/phone", i))
		s.ask(devices[i], i, "set", publishing("a"))
		s.ask(devices[i], i, "set", publishing("b"))
	}
	total := requests(200_000)
	run := func(from, to int) {
		for i := from; i < to; i++ {
			d := devices[i%len(devices)]
			switch {
			case i%2 == 0:
				s.ask(d, i, "get", ping)
			case i%1001 == 0:
				s.ask(d, i, "set", publishing("a"))
			default:
				s.ask(d, i, "get", getNotes)
			}
		}
		s.rest()
	}
	run(0, total/10)
	goroutines, early := runtime.NumGoroutine(), heap()
	run(total/10, total)
	if late := heap(); late > early+room {
		t.Errorf("the heap grew from %d bytes after %d requests to %d after %d, want at most %d more", early, total/10, late, total, room)
	}
	settled(t, goroutines)
	// The host has an answer before the write that brought it returns.
	await(t, r.writer, "the queues are empty", func(s lane.Stats) bool {
		return s.SmallBytes == 0 && s.BulkBytes == 0 && s.Reserved == 0
	})
	if got := host.Links(); got != 1 {
		t.Errorf("got %d connections, want 1", got)
	}
}

// spare is how many goroutines the service keeps for the next requests, at
// most.
const spare = 64

// settled waits until no more goroutines run than before, but for spare ones.
func settled(t *testing.T, before int) {
	t.Helper()
	want := before + spare
	deadline := time.Now().Add(patience)
	for runtime.NumGoroutine() > want {
		if time.Now().After(deadline) {
			stacks := make([]byte, 1<<20)
			t.Fatalf("%d goroutines run, want %d:\n%s", runtime.NumGoroutine(), want, stacks[:runtime.Stack(stacks, true)])
		}
		runtime.Gosched()
	}
}

// A thousand accounts leave nothing in memory but what is cached with a bound.
func TestManyAccounts(t *testing.T) {
	host := hosttest.New(t, func(o *loopback.Options) { o.Fast = true })
	r := serve(t, host, nil)
	same := host.SameConnection()
	s := newStorm(t, host.Host, 50)
	host.Device("first/phone").Asks("set", publishing("a")) // what the store starts once is there
	accounts := requests(1000)
	goroutines := runtime.NumGoroutine()
	for i := range accounts {
		d := s.device(fmt.Sprintf("account%d@localhost/phone", i))
		send := func(raw string) {
			if err := d.Send([]byte(raw)); err != nil {
				t.Fatal(err)
			}
		}
		send(`<presence to='vault.localhost'/>`)
		s.ask(d, 1, "set", publishing("a"))
		s.ask(d, 2, "set", `<pubsub xmlns='http://jabber.org/protocol/pubsub'><subscribe node='notes' jid='`+d.JID()+`'/></pubsub>`)
		s.ask(d, 3, "get", getNotes)
		s.ask(d, 4, "get", ping)
	}
	s.rest()
	if got := len(r.engine.Known()); got != accounts {
		t.Errorf("%d resources are known, want %d", got, accounts)
	}
	settled(t, goroutines)
	for i := range accounts {
		host.Inject(fmt.Sprintf(`<presence type='unavailable' from='account%d@localhost/phone' to='vault.localhost'/>`, i))
	}
	same()
	if got := len(r.engine.Known()); got != 0 {
		t.Errorf("%d resources are known, want none", got)
	}
}

// C38: resources that come and go in every odd way are forgotten; never more
// than twice the bound are known.
func TestC38OddResources(t *testing.T) {
	const limit = 3
	host := hosttest.New(t, func(o *loopback.Options) { o.Fast = true })
	r := serve(t, host, func(s *setup) { s.limits.Resources, s.verify, s.pending = limit, 50*time.Millisecond, 1000 })
	same := host.SameConnection()
	probe := host.Device("alice/probe")
	probe.Asks("set", publishing("a"))
	goroutines := runtime.NumGoroutine()
	const caps = `<c xmlns='http://jabber.org/protocol/caps' hash='sha-1' node='urn:example' ver='x'/>`
	total, most := requests(50_000), 0
	early := uint64(0)
	for i := range total {
		jid := fmt.Sprintf("alice@localhost/r%d", i)
		here, gone := `<presence from='`+jid+`' to='vault.localhost'>`+caps+`</presence>`, `<presence type='unavailable' from='`+jid+`' to='vault.localhost'/>`
		switch i % 5 {
		case 0:
			host.Inject(here + gone)
		case 1: // cut off without a word
			host.Inject(here)
		case 2:
			host.Inject(strings.Replace(here, caps, "", 1) + gone)
		case 3:
			host.Inject(gone + gone)
		case 4:
			host.Inject(here + here + `<presence type='error' from='` + jid + `' to='vault.localhost'/>`)
		}
		if i%100 == 99 {
			probe.Asks("get", ping) // what the host holds back is bounded, too
			most = max(most, len(r.engine.Known()))
		}
		if i == total/10 {
			early = heap()
		}
	}
	probe.Asks("get", ping)
	if most > 2*limit {
		t.Errorf("up to %d resources were known, want at most %d", most, 2*limit)
	}
	if late := heap(); late > early+2<<20 {
		t.Errorf("the heap grew from %d to %d bytes", early, late)
	}
	// The silent ones are asked, one after the other, until the bound holds.
	for len(r.engine.Known()) > limit {
		probe.Asks("get", ping)
	}
	settled(t, goroutines)
	same()
	// After the next handshake all are asked, and those that are gone forgotten.
	number := host.AwaitAttached()
	host.Drop()
	host.AwaitReattached(number)
	for len(r.engine.Known()) > 0 {
		probe.Asks("get", ping)
	}
}

// A host that does not read holds nobody's memory but what the queue may take.
func TestQueuesAreBounded(t *testing.T) {
	const budget = 256 << 10
	host := hosttest.New(t, func(o *loopback.Options) { o.ReadBuffer = 16 << 10 })
	r := serve(t, host, func(s *setup) { s.queue, s.pending = budget, 100_000 })
	same := host.SameConnection()
	alice, bob := host.Device("alice/phone"), host.Device("bob/phone")
	bob.Asks("set", publishing("his"))
	host.StallReads()
	const n = 3000
	for i := range n {
		send(t, alice, fmt.Sprintf(`<iq type='get' id='%d' to='vault.localhost'><query xmlns='http://jabber.org/protocol/disco#info'/></iq>`, i))
	}
	// What is refused for want of room takes room of its own; what does not
	// even find that is not read.
	var most lane.Stats
	for still := 0; still < 1000; still++ {
		stats := r.writer.Stats()
		if stats.SmallBytes > most.SmallBytes || stats.Reserved > most.Reserved {
			still = 0
		}
		most.SmallBytes, most.Reserved = max(most.SmallBytes, stats.SmallBytes), max(most.Reserved, stats.Reserved)
		runtime.Gosched()
	}
	if most.SmallBytes > 2*budget || most.Reserved > budget {
		t.Errorf("the queue held %d bytes and promised %d, want at most %d and %d", most.SmallBytes, most.Reserved, 2*budget, budget)
	}
	host.Resume()
	answered := map[string]bool{}
	for len(answered) < n {
		s, err := alice.Recv(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if answered[s.ID] {
			t.Fatalf("%s was answered twice", s.ID)
		}
		answered[s.ID] = true
	}
	if answer := bob.Asks("get", getNotes); !strings.Contains(string(answer.Raw), "id='his'") {
		t.Errorf("Bob reads %s", answer)
	}
	same()
}
