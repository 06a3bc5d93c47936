package component_test

import (
	"fmt"
	"testing"
	"time"

	"pepvault/component"
	"pepvault/component/hosttest"
	"pepvault/component/loopback"
)

// limited is a service on which an account may ask n times, and in this test
// not once more.
func limited(t *testing.T, n int, change func(*setup)) *stage {
	t.Helper()
	return newStage(t, func(s *setup) {
		s.rate = component.Rate{PerSecond: 1, Burst: n}
		if change != nil {
			change(s)
		}
	})
}

// refusedByRate tells whether the answer is the refusal, with its hint.
func refusedByRate(t *testing.T, answer loopback.Stanza) bool {
	t.Helper()
	if fault := answer.Err(); fault == nil || fault.Type != "wait" {
		return false
	}
	const want = `<iq type='error' from='*' id='*'><error type='wait'>` +
		`<policy-violation xmlns='urn:ietf:params:xml:ns:xmpp-stanzas'/>` +
		`<text xmlns='urn:ietf:params:xml:ns:xmpp-stanzas' xml:lang='en'>*</text>` +
		`<retry xmlns='urn:pepvault:errors:0' after='1'/></error></iq>`
	if err := hosttest.Match(want, answer.Raw, hosttest.Vars{}); err != nil {
		t.Errorf("%s: %v", answer, err)
	}
	return true
}

// All devices of an account share its rate, whatever they ask and of whom;
// nobody else has less for it.
func TestRateOfAnAccount(t *testing.T) {
	t.Parallel()
	const burst = 20
	s := limited(t, burst, nil)
	tablet := s.host.Device("ALICE/tablet") // as ejabberd passes it on
	requests := []struct{ kind, to, payload string }{
		{"get", "vault.localhost", ping},
		{"get", "vault.localhost", getNotes},
		{"set", "vault.localhost", publishing("a")},
		{"get", `bob\40localhost@vault.localhost`, getNotes},
		{"get", "vault.localhost", `<unknown xmlns='urn:example'/>`},
	}
	ask := func(d *hosttest.Device, i int) loopback.Stanza {
		r := requests[i%len(requests)]
		answer, err := d.IQ(t.Context(), r.kind, r.to, r.payload)
		if err != nil {
			t.Fatal(err)
		}
		return answer
	}
	began := time.Now()
	for i := range burst {
		if answer := ask([]*hosttest.Device{s.alice, tablet}[i%2], i); refusedByRate(t, answer) {
			t.Fatalf("request %d of %d is refused", i+1, burst)
		}
	}
	const more = 3 * burst
	for i := range more {
		r := requests[i%len(requests)]
		send(t, []*hosttest.Device{s.alice, tablet}[i%2], fmt.Sprintf(`<iq type='%s' id='more%d' to='%s'>%s</iq>`, r.kind, i, r.to, r.payload))
	}
	allowed := 0
	for i := range more {
		answer, err := []*hosttest.Device{s.alice, tablet}[i%2].Recv(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if !refusedByRate(t, answer) {
			allowed++
		}
	}
	// Each second since the first request has brought room for one.
	if most := 1 + int(time.Since(began)/time.Second); allowed > most {
		t.Errorf("%d of %d further requests are allowed, want at most %d", allowed, more, most)
	}
	s.same()
	if got := s.reads(s.bob); string(got) != string(s.bobs) {
		t.Errorf("Bob reads %s, want %s", got, s.bobs)
	}
}

// What nobody answers takes nothing from the rate, and the server itself has
// none.
func TestWhatHasNoRate(t *testing.T) {
	t.Parallel()
	const burst = 10
	s := limited(t, burst, nil)
	for i := range 10 * burst {
		send(t, s.alice, fmt.Sprintf(`<iq type='result' id='r%d' to='vault.localhost'/>`, i))
		send(t, s.alice, fmt.Sprintf(`<iq type='error' id='e%d' to='vault.localhost'/>`, i))
		send(t, s.alice, `<presence to='vault.localhost'/>`)
		send(t, s.alice, `<message to='vault.localhost'><body>hello</body></message>`)
		s.host.Inject(fmt.Sprintf(`<iq type='get' id='h%d' from='localhost' to='vault.localhost'>%s</iq>`, i, ping))
	}
	for i := range burst {
		if answer, err := s.alice.IQ(t.Context(), "get", "vault.localhost", ping); err != nil || answer.Type != "result" {
			t.Fatalf("request %d of %d: %v, %v", i+1, burst, answer, err)
		}
	}
	s.same()
}
