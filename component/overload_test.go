package component_test

import (
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"

	"pepvault/component"
	"pepvault/component/hosttest"
	"pepvault/component/lane"
	"pepvault/component/loopback"
)

// ledger holds a host to one answer for each request of some devices: a result,
// or an error that tells when to try again.
type ledger struct {
	t      *testing.T
	host   *hosttest.Host
	window chan struct{} // of requests under way; nil = any number

	mu      sync.Mutex
	answers []int          // by the number of the request
	ended   map[string]int // by outcome
	open    int
	settled *sync.Cond
}

func newLedger(t *testing.T, host *hosttest.Host, window int) *ledger {
	l := &ledger{t: t, host: host, ended: map[string]int{}}
	if window > 0 {
		l.window = make(chan struct{}, window)
	}
	l.settled = sync.NewCond(&l.mu)
	return l
}

// device connects one whose answers are noted.
func (l *ledger) device(jid string) *loopback.Device {
	l.t.Helper()
	d, err := l.host.ConnectFunc(jid, func(d *loopback.Device, s loopback.Stanza) {
		if s.Name == "iq" {
			l.note(d, s)
		}
	})
	if err != nil {
		l.t.Fatal(err)
	}
	return d
}

func (l *ledger) note(d *loopback.Device, s loopback.Stanza) {
	what := outcome(s)
	if fault := s.Err(); fault != nil && (fault.Type != "wait" || !strings.Contains(string(s.Raw), "<retry xmlns='urn:pepvault:errors:0' after='")) {
		l.t.Errorf("%s got %s", d.JID(), s)
	}
	n, err := strconv.Atoi(s.ID)
	l.mu.Lock()
	defer l.mu.Unlock()
	if err != nil || n >= len(l.answers) {
		l.t.Errorf("%s never asked for %s", d.JID(), s)
		return
	}
	if l.answers[n]++; l.answers[n] > 1 {
		l.t.Errorf("request %d got one more answer: %s", n, s)
		return
	}
	l.ended[what]++
	if l.open--; l.open == 0 {
		l.settled.Broadcast()
	}
	if l.window != nil {
		<-l.window
	}
}

func (l *ledger) ask(d *loopback.Device, kind, payload string) {
	l.t.Helper()
	if l.window != nil {
		l.window <- struct{}{}
	}
	l.mu.Lock()
	n := len(l.answers)
	l.answers = append(l.answers, 0)
	l.open++
	l.mu.Unlock()
	if err := d.Send(fmt.Appendf(nil, `<iq type='%s' id='%d' to='vault.localhost'>%s</iq>`, kind, n, payload)); err != nil {
		l.t.Error(err)
	}
}

// outcomes waits until all is answered and returns what came of it.
func (l *ledger) outcomes() map[string]int {
	l.mu.Lock()
	defer l.mu.Unlock()
	for l.open > 0 {
		l.settled.Wait()
	}
	return l.ended
}

// flood are requests of many kinds, cheap and dear ones.
var flood = []struct{ kind, payload string }{
	{"get", ping},
	{"get", getNotes},
	{"set", publishing("a")},
	{"get", `<query xmlns='http://jabber.org/protocol/disco#info'/>`},
	{"get", `<sync xmlns='urn:pepvault:sync:0' node='notes' cursor='none'/>`},
}

// One account at full speed is refused what is too much; the reads of others go
// between, since it does not end before they do.
func TestOneAccountAtFullSpeed(t *testing.T) {
	t.Parallel()
	const (
		burst   = 1000
		pending = 64
		window  = 300 // of requests under way
		reads   = 30  // of somebody else
	)
	tests := map[string]struct {
		change  func(*setup)
		refused string
		by      component.Rejection
	}{
		"above its rate": {func(s *setup) { s.rate, s.pending = component.Rate{PerSecond: 1, Burst: burst}, 2*window },
			"wait/policy-violation+retry", component.TooOften},
		"above what may wait": {func(s *setup) { s.pending = pending }, "wait/resource-constraint+retry", component.TooMany},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			host := hosttest.New(t, func(o *loopback.Options) { o.Fast = true })
			meter := newTally(t)
			serve(t, host, func(s *setup) { s.meter, s.queue = meter, 16<<20; test.change(s) })
			same := host.SameConnection()
			bob := host.Device("bob/phone")
			bob.Asks("set", publishing("his"))
			l := newLedger(t, host, window)
			alice := []*loopback.Device{l.device("alice@localhost/phone"), l.device("alice@localhost/tablet")}
			l.ask(alice[0], "set", publishing("a"))
			l.outcomes()
			enough := make(chan struct{})
			stop := sync.OnceFunc(func() { close(enough) })
			var flooding sync.WaitGroup
			defer flooding.Wait()
			defer stop()
			flooding.Go(func() {
				for i := 0; ; i++ {
					select {
					case <-enough: // and she was refused, which a slow machine puts off
						if i >= requests(30_000) && meter.all()[string(test.by)] > 0 {
							return
						}
					default:
					}
					l.ask(alice[i%2], flood[i%len(flood)].kind, flood[i%len(flood)].payload)
				}
			})
			for range reads {
				if answer := bob.Asks("get", getNotes); !strings.Contains(string(answer.Raw), "id='his'") {
					t.Errorf("Bob reads %s", answer)
				}
			}
			stop()
			flooding.Wait()
			got := l.outcomes()
			if got["result"] == 0 || got[test.refused] == 0 || len(got) != 2 {
				t.Errorf("answers: %v, want results and %s", got, test.refused)
			}
			heard := meter.all()
			if n := heard[string(test.by)]; n != got[test.refused] {
				t.Errorf("%d refusals were counted, want %d", n, got[test.refused])
			}
			same()
		})
	}
}

// Many accounts ask for more than a slow host takes: each request is answered
// once, if only by "later", and what waits is bounded.
func TestManyAccountsOverASlowHost(t *testing.T) {
	t.Parallel()
	const budget = 1 << 20
	host := hosttest.New(t, func(o *loopback.Options) { o.Fast, o.ReadBuffer = true, 16<<10 })
	meter := newTally(t)
	// Small answers, large ones and events at once: each has its own way.
	r := serve(t, host, func(s *setup) { s.queue, s.inline, s.meter = budget, 1000, meter })
	same := host.SameConnection()
	l := newLedger(t, host, 0)
	devices := make([]*loopback.Device, 30)
	for i := range devices {
		devices[i] = l.device(fmt.Sprintf("account%d@localhost/phone", i))
		l.ask(devices[i], "set", publication("notes", "a", "<n xmlns='urn:example'>"+strings.Repeat("x", 1500)+"</n>"))
		if err := devices[i].Send([]byte(`<presence to='vault.localhost'/>`)); err != nil {
			t.Fatal(err)
		}
		l.ask(devices[i], "set", `<pubsub xmlns='http://jabber.org/protocol/pubsub'><subscribe node='notes' jid='`+devices[i].JID()+`'/></pubsub>`)
	}
	if got := l.outcomes(); got["result"] != 2*len(devices) {
		t.Fatalf("the beginning: %v", got)
	}
	var most lane.Stats
	total := requests(20_000)
	for i := range total {
		if i%1000 == 0 {
			host.StallReads()
		}
		if i%1000 == 900 {
			host.Resume()
		}
		f := flood[i/len(devices)%len(flood)]
		l.ask(devices[i%len(devices)], f.kind, f.payload)
		now := r.writer.Stats()
		most.SmallBytes, most.Reserved = max(most.SmallBytes, now.SmallBytes), max(most.Reserved, now.Reserved)
	}
	refused := func() int {
		heard := meter.all()
		return heard[string(component.NoRoom)] + heard[string(component.TooMany)]
	}
	for host.StallReads(); refused() == 0; { // where each stall was over too soon
		for i, d := range devices {
			l.ask(d, flood[i%len(flood)].kind, flood[i%len(flood)].payload)
		}
	}
	host.Resume()
	got := l.outcomes()
	if got["wait/resource-constraint+retry"] == 0 || got["result"] == 0 || len(got) != 2 {
		t.Errorf("answers: %v, want results and wait/resource-constraint", got)
	}
	if most.SmallBytes > 2*budget || most.Reserved > budget {
		t.Errorf("the queue held %d bytes and promised %d, want at most %d and %d", most.SmallBytes, most.Reserved, 2*budget, budget)
	}
	if n := refused(); n != got["wait/resource-constraint+retry"] {
		t.Errorf("%d refusals were counted, want %d", n, got["wait/resource-constraint+retry"])
	}
	same()
}

// A flood of requests that are refused, over a host that takes nothing, fills
// the queue of refusals and no more: the room for others' answers is what it
// was. In the end each is answered, once.
func TestFloodOfRefusals(t *testing.T) {
	t.Parallel()
	const (
		budget = 1 << 20
		most   = budget / 16 // lane's default
		total  = 3000        // far more than that and what hides in sockets
	)
	host := hosttest.New(t, func(o *loopback.Options) { o.Fast, o.ReadBuffer = true, 16<<10 })
	meter := newTally(t)
	r := serve(t, host, func(s *setup) {
		s.queue, s.meter, s.rate = budget, meter, component.Rate{PerSecond: 1, Burst: 20}
	})
	same := host.SameConnection()
	bob := host.Device("bob/phone")
	bob.Asks("set", publishing("his"))
	l := newLedger(t, host, 0)
	alice := l.device("alice@localhost/phone")
	host.StallReads()
	for range total {
		l.ask(alice, "get", ping)
	}
	const small = 600 // a refusal is no larger
	await(t, r.writer, "as many refusals wait as may, and no answer is being made", func(s lane.Stats) bool {
		return s.RefusalBytes > most-small && s.Reserved == 0
	})
	if s := r.writer.Stats(); s.RefusalBytes > most || s.SmallBytes > 30*small {
		t.Errorf("what waits is %+v, want at most %d bytes of refusals and 20 answers", s, most)
	}
	place, ok := r.writer.Reserve(budget - 30*small)
	if !ok {
		t.Error("refusals have taken the room of others")
	} else {
		place.Release()
	}
	host.Resume()
	if answer := bob.Asks("get", getNotes); !strings.Contains(string(answer.Raw), "id='his'") {
		t.Errorf("Bob reads %s", answer)
	}
	got := l.outcomes()
	if n := got["wait/policy-violation+retry"]; n == 0 || n+got["result"] != total || n != meter.all()[string(component.TooOften)] {
		t.Errorf("answers: %v", got)
	}
	same()
}
