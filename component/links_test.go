package component_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pepvault/component/hosttest"
	"pepvault/component/lane"
	"pepvault/component/link"
	"pepvault/component/loopback"
)

// stricken is a service on whose link something befalls, and who uses it.
type stricken struct {
	*hosttest.Host
	t    *testing.T
	news *news
	hole *hole
}

// tries waits for n more attempts to connect.
func (s *stricken) tries(n int) {
	s.t.Helper()
	s.news.await(s.t, dialling, s.news.count(dialling)+n)
}

// said waits until the service has logged that message once more.
func (s *stricken) said(message string) {
	s.t.Helper()
	s.news.await(s.t, message, 1)
}

// refused has the host refuse until the service has said so and tried again
// for some time.
func refused(condition, message string) func(*stricken) {
	return func(s *stricken) {
		s.RefuseWith(condition)
		s.Drop()
		s.said(message)
		s.tries(5)
		s.RefuseWith("")
	}
}

// stalled has the host stop until the service gives the connection up, and
// longer.
func stalled(stall func(*hosttest.Host)) func(*stricken) {
	return func(s *stricken) {
		stall(s.Host)
		s.said("detached")
		s.tries(2)
		s.Resume()
	}
}

func streamError(condition string) func(*stricken) {
	return func(s *stricken) { s.StreamError(condition) }
}

// quick keeps a test from waiting long for a dead link, and is long enough for
// the answers of a living one on a machine under load.
var quick = link.KeepAlive{Idle: 200 * time.Millisecond, Answer: 8 * time.Second}

// blow is what befalls a link.
type blow struct {
	change func(*setup)
	before func(*stricken) // befalls before the service starts
	hit    func(*stricken) // befalls an attached service; when it returns, the host is able to serve
	// said is the log of the link behind the first attaching, if there was one;
	// a line that ends in "?" may be missing.
	said []string
}

var (
	back        = []string{"detached", "attached"}
	stalledSaid = []string{"detached", "handshake failed?", "conflict?", "handshake failed?", "conflict?", "attached"}
)

func blows() map[string]blow {
	cut := func(s *setup) { s.alive = quick }
	slow := func(s *setup) { s.alive, s.connect = quick, 2*time.Second }
	all := map[string]blow{
		"host absent at start": {
			before: func(s *stricken) { s.Down() },
			hit:    func(s *stricken) { s.said("host unreachable"); s.tries(5); s.Up() },
			said:   []string{"host unreachable", "attached"},
		},
		"host unknown at start": {
			before: func(s *stricken) { s.RefuseWith("host-unknown") },
			hit:    func(s *stricken) { s.said("host-unknown"); s.tries(5); s.RefuseWith("") },
			said:   []string{"host-unknown", "attached"},
		},
		"wrong secret at start": {
			before: func(s *stricken) { s.RefuseWith("not-authorized") },
			hit:    func(s *stricken) { s.said("wrong secret"); s.tries(5); s.RefuseWith("") },
			said:   []string{"wrong secret", "attached"},
		},
		"host restarts": {
			hit:  func(s *stricken) { s.Down(); s.Drop(); s.said("host unreachable"); s.tries(5); s.Up() },
			said: []string{"detached", "host unreachable", "attached"},
		},
		"connections are reset": {
			hit:  func(s *stricken) { s.RefuseNext(5); s.Cut(); s.tries(5) },
			said: []string{"detached", "host unreachable?", "handshake failed?", "host unreachable?", "attached"},
		},
		"EOF":                       {hit: func(s *stricken) { s.Drop() }, said: back},
		"reset":                     {hit: func(s *stricken) { s.Cut() }, said: back},
		"stream ended":              {hit: streamError(""), said: back},
		"not well-formed":           {hit: func(s *stricken) { s.Inject("<iq></message>") }, said: back},
		"wrong secret for a while":  {hit: refused("not-authorized", "wrong secret"), said: []string{"detached", "wrong secret", "attached"}},
		"unknown for a while":       {hit: refused("host-unknown", "host-unknown"), said: []string{"detached", "host-unknown", "attached"}},
		"policy for a while":        {hit: refused("policy-violation", "host refuses"), said: []string{"detached", "host refuses", "attached"}},
		"out of resources meantime": {hit: refused("resource-constraint", "host refuses"), said: []string{"detached", "host refuses", "attached"}},
		"cable cut":                 {change: cut, hit: func(s *stricken) { s.CutSilently() }, said: back},
		"cable cut, host holds on": {
			change: cut,
			hit: func(s *stricken) {
				s.hole.cut()
				s.said("conflict")
				s.tries(5)
				s.Drop()
			},
			said: []string{"detached", "conflict", "attached"},
		},
		"host stops":          {change: slow, hit: stalled((*hosttest.Host).Stall), said: stalledSaid},
		"host reads nothing":  {change: slow, hit: stalled((*hosttest.Host).StallReads), said: stalledSaid},
		"host writes nothing": {change: slow, hit: stalled((*hosttest.Host).StallWrites), said: stalledSaid},
		"host stops for a moment": {
			hit: func(s *stricken) {
				s.Stall()
				s.Device("carol/phone").Sends(`<iq type='get' id='1' to='$component'>` + ping + `</iq>`)
				s.Resume()
				s.Drop() // for the rest of the test
			},
			said: back,
		},
		"link flaps": {
			change: func(s *setup) { s.backoff = link.Backoff{First: 5 * time.Millisecond, Max: 10 * time.Millisecond} },
			hit: func(s *stricken) {
				ends := []func(){s.Drop, s.Cut, func() { s.StreamError("system-shutdown") }, s.Sever}
				for i := range 100 {
					number := s.AwaitAttached()
					s.news.await(s.t, "attached", i+1) // the host knows first
					ends[i%len(ends)]()
					s.AwaitReattached(number)
				}
			},
			// Where the host has not noticed the end, it has two for a moment.
			said: slices.Repeat([]string{"detached", "conflict?", "attached"}, 100),
		},
	}
	for _, condition := range []string{
		"conflict", "system-shutdown", "host-unknown", "not-authorized", "policy-violation", "reset",
		"resource-constraint", "connection-timeout", "internal-server-error", "not-well-formed", "undefined-condition",
	} {
		all["stream error "+condition] = blow{hit: streamError(condition), said: back}
	}
	return all
}

// Sever breaks the service's socket.
func (s *stricken) Sever() { s.hole.sever() }

// TestLinks: whatever befalls the link to the host, the service is back as soon
// as the host is able, with all that it had acknowledged and nothing by halves;
// what was delivered on a living link was answered once; who is known is asked
// and told where his vaults stand; and the log has a line for each change.
func TestLinks(t *testing.T) {
	t.Parallel()
	for name, b := range blows() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			testBlow(t, b)
		})
	}
}

func testBlow(t *testing.T, b blow) {
	s := &stricken{Host: hosttest.New(t), t: t, news: newNews()}
	s.hole = &hole{news: s.news}
	t.Cleanup(s.hole.close)
	if b.before != nil {
		b.before(s)
	}
	start(t, s.Host.Host, func(to *setup) {
		to.limits.Records, to.log, to.dial = 64, s.news.logger(), s.hole.dial
		if b.change != nil {
			b.change(to)
		}
	})
	if b.before != nil {
		b.hit(s)
		b.hit = nil
	}
	s.AwaitAttached()

	w := watch(t, s.Host.Host, "alice@localhost/watch")
	publishers := []*publisher{newPublisher(t, s.Host.Host, "alice@localhost/laptop"), newPublisher(t, s.Host.Host, "bob@localhost/laptop")}
	for _, p := range publishers {
		p.begin()
		p.awaitMore(5)
	}
	if b.hit != nil {
		number, asked := s.AwaitAttached(), w.welcomes()
		b.hit(s)
		s.AwaitReattached(number)
		w.awaitWelcome(asked + 1)
	}
	for _, p := range publishers {
		p.awaitMore(5)
		p.finish()
		p.check()
	}
	w.checkHears(s.Host.Device("alice/late"))
	if got := s.news.changes(); !matches(got, b.said, b.before == nil) {
		t.Errorf("log of the link: got %q, want %q", got, b.said)
	}
}

// matches compares a log of the link, in which lines that end in "?" may be
// missing.
func matches(got, want []string, attached bool) bool {
	if attached {
		want = append([]string{"attached"}, want...)
	}
	for _, w := range want {
		w, optional := strings.CutSuffix(w, "?")
		switch {
		case len(got) > 0 && got[0] == w:
			got = got[1:]
		case !optional:
			return false
		}
	}
	return len(got) == 0
}

// TestSlowHost: a host that reads less than is to be said slows the service
// down. Nothing is lost by it: no answer, no event, and not the connection.
func TestSlowHost(t *testing.T) {
	t.Parallel()
	const budget = 256 << 10
	host := hosttest.New(t, func(o *loopback.Options) { o.ReadBuffer = 64 << 10 })
	r := serve(t, host, func(s *setup) {
		s.limits.Records, s.limits.RecordBytes, s.pending, s.queue = 64, 8000, 2000, budget
	})
	same := host.SameConnection()
	w := watch(t, host.Host, "alice@localhost/watch")
	host.StallReads()
	d := host.Device("alice/laptop")
	const requests = 1000
	payload := strings.Repeat("x", 4000)
	for i := range requests {
		d.Sends(quietPublish(host.Host, i, payload))
	}
	await(t, r.writer, "there is no room for one more", func(s lane.Stats) bool {
		return s.SmallBytes+s.Reserved+lane.SmallAnswer > budget
	})
	host.Resume()
	answered, refused := map[string]bool{}, 0
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for len(answered) < requests {
		s, err := d.Recv(ctx)
		if err != nil {
			t.Fatalf("%d of %d answered: %v", len(answered), requests, err)
		}
		if answered[s.ID] {
			t.Errorf("%s was answered twice", s.ID)
		}
		answered[s.ID] = true
		if s.Type == "error" {
			refused++
			wantError(t, s.Err(), "wait", "resource-constraint")
		}
	}
	d.ReceivesNothing()
	same()
	t.Logf("%d of %d were refused", refused, requests)
	w.checkChain(requests - refused)
}

// TestMissedEvents: where one change makes more events than there is room for,
// who has missed one is told where the vault stands when there is room again.
func TestMissedEvents(t *testing.T) {
	t.Parallel()
	host := hosttest.New(t, func(o *loopback.Options) { o.ReadBuffer = 16 << 10 })
	r := serve(t, host, func(s *setup) {
		s.limits.Records, s.limits.RecordBytes, s.limits.Resources = 64, 8000, 8
		s.pending, s.queue = 2000, 8<<10
	})
	same := host.SameConnection()
	watchers := make([]*watcher, 6)
	watchers[0] = watch(t, host.Host, "alice@localhost/watch0")
	for i := range watchers[1:] {
		watchers[1+i] = join(t, host.Host, fmt.Sprintf("alice@localhost/watch%d", 1+i))
	}
	host.StallReads()
	d := host.Device("alice/laptop")
	payload := strings.Repeat("x", 7000)
	for i := range 60 {
		d.Sends(quietPublish(host.Host, i, payload))
	}
	await(t, r.writer, "an event found no room", func(s lane.Stats) bool { return s.Dropped > 0 })
	host.Resume()
	for range 60 {
		d.Receives(`<iq type='*' id='*' from='*'>*</iq>`)
	}
	same()
	late := join(t, host.Host, "alice@localhost/late")
	for _, w := range watchers {
		w.await("knows where the vault stands", func() bool { return w.cursor == late.cursor })
	}
}
