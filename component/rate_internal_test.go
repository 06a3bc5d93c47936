package component

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"pepvault/component/lane"
	"pepvault/pep"
	"pepvault/vault"
)

func TestRatesHoldTheirBound(t *testing.T) {
	t.Parallel()
	r := newRates(Rate{PerSecond: 10, Burst: 3})
	now := time.Unix(1000, 0)
	allowed := func(account vault.Account, tries int) (n int) {
		for range tries {
			if r.allow(account, now) {
				n++
			}
		}
		return n
	}
	for _, step := range []struct {
		after   time.Duration
		account vault.Account
		want    int // of ten
	}{
		{0, "alice", 3},
		{0, "bob", 3}, // has a bucket of his own
		{50 * time.Millisecond, "alice", 0},
		{50 * time.Millisecond, "alice", 1},
		{time.Second, "alice", 3}, // in the next generation
		{900 * time.Millisecond, "alice", 3},
		{200 * time.Millisecond, "alice", 2}, // a generation later she is not forgotten
		{100 * time.Millisecond, "alice", 1},
		{time.Hour, "alice", 3},
	} {
		now = now.Add(step.after)
		if got := allowed(step.account, 10); got != step.want {
			t.Errorf("at %v %s is allowed %d, want %d", now, step.account, got, step.want)
		}
	}
}

// Whoever is forgotten had a full bucket: nobody gains by the generations.
func TestForgettingChangesNothing(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		rate := Rate{PerSecond: rapid.IntRange(1, 20).Draw(t, "per second"), Burst: rapid.IntRange(1, 50).Draw(t, "burst")}
		r, keeps := newRates(rate), newRates(rate)
		keeps.fills = time.Duration(1<<63 - 1) // never forgets
		now := time.Unix(1000, 0)
		for range rapid.IntRange(1, 200).Draw(t, "requests") {
			now = now.Add(time.Duration(rapid.IntRange(0, 3000).Draw(t, "ms")) * time.Millisecond)
			account := vault.Account(rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "account"))
			for range rapid.IntRange(1, 60).Draw(t, "at once") {
				if got, want := r.allow(account, now), keeps.allow(account, now); got != want {
					t.Fatalf("%s is allowed: %v, want %v", account, got, want)
				}
			}
		}
	})
}

// Accounts that come once are forgotten.
func TestRatesAreForgotten(t *testing.T) {
	t.Parallel()
	r := newRates(Rate{PerSecond: 200, Burst: 1000})
	now, most := time.Unix(1000, 0), 0
	for i := range 100_000 {
		now = now.Add(time.Millisecond)
		r.allow(vault.Account(fmt.Sprint(i)), now)
		most = max(most, len(r.young)+len(r.old))
	}
	// Two times five seconds, a thousand accounts a second.
	if want := 10_001; most > want {
		t.Errorf("%d buckets were kept, want at most %d", most, want)
	}
}

// The account's own doing comes first: its rate, what of it waits, then the
// room that the service has for all.
func TestOrderOfRefusals(t *testing.T) {
	t.Parallel()
	const alice = vault.Account("alice@localhost")
	from := party{sender: pep.Sender{Account: alice, Address: "alice@localhost/phone", Resource: "phone"}}
	now := time.Now() // for all: no bucket fills meanwhile
	conditions := []struct {
		why  Rejection
		make func(*Service)
	}{
		{IsStopping, func(s *Service) { s.stopping.Store(true) }},
		{TooOften, func(s *Service) { s.rates.allow(alice, now) }},
		{TooMany, func(s *Service) { s.queues.busy[string(alice)] = &queue{jobs: []func(){nil}} }},
		{NoRoom, func(s *Service) { s.writer.Reserve(lane.SmallAnswer) }},
	}
	for set := range 1 << len(conditions) {
		s := New(Options{Writer: lane.New(lane.Options{QueueBytes: lane.SmallAnswer}), Rate: Rate{PerSecond: 1, Burst: 1}, MaxPending: 1})
		want := Rejection("")
		for i := len(conditions) - 1; i >= 0; i-- {
			if set&(1<<i) != 0 {
				conditions[i].make(s)
				want = conditions[i].why
			}
		}
		r := &reply{began: now}
		got, err := s.admit(string(alice), from, r)
		if got != want || (err == nil) != (want == "") || (r.place == nil) != (want != "") {
			t.Errorf("with %04b: refused as %q (%v), want %q", set, got, err, want)
		}
	}
}

// A storm of those who ask for much leaves room for who asks for little.
func TestRoomForWhoAsksForLittle(t *testing.T) {
	t.Parallel()
	const places = 80
	s := New(Options{
		Writer: lane.New(lane.Options{QueueBytes: places * lane.SmallAnswer}),
		Rate:   Rate{PerSecond: 1000, Burst: 1000}, MaxPending: 1000,
	})
	ask := func(account string) Rejection {
		from := party{sender: pep.Sender{Account: vault.Account(account), Address: account + "/phone", Resource: "phone"}}
		why, _ := s.admit(account, from, &reply{began: time.Now()})
		if why == "" {
			s.queues.hold(account) // it is not answered yet
		}
		return why
	}
	taken := 0
	for refused := 0; refused < 3; { // three accounts, each as much as it gets
		refused = 0
		for _, account := range []string{"a@localhost", "b@localhost", "c@localhost"} {
			if why := ask(account); why == "" {
				taken++
			} else if refused++; why != NoRoom {
				t.Fatalf("refused as %q, want %q", why, NoRoom)
			}
		}
	}
	if want := places * 7 / 8; taken != want {
		t.Errorf("%d requests were taken, want %d", taken, want)
	}
	for i := range few {
		if why := ask("probe@localhost"); why != "" {
			t.Errorf("request %d of somebody else is refused as %q", i, why)
		}
	}
	if why := ask("probe@localhost"); why != NoRoom {
		t.Errorf("one more is refused as %q, want %q", why, NoRoom)
	}
}

func BenchmarkRates(b *testing.B) {
	r := newRates(Rate{PerSecond: 200, Burst: 1000})
	accounts := make([]vault.Account, 10_000)
	for i := range accounts {
		accounts[i] = vault.Account(fmt.Sprintf("user%d@example.org", i))
	}
	now := time.Unix(1000, 0)
	b.ReportAllocs()
	for i := range b.N {
		now = now.Add(100 * time.Microsecond)
		r.allow(accounts[i%len(accounts)], now)
	}
}
