package component_test

import (
	"strings"
	"testing"
	"time"

	"pepvault/component/hosttest"
	"pepvault/component/loopback"
)

// A session that comes while the one before it, of the same name, is asked
// whether it is there is not forgotten with that one: it hears of all changes.
func TestNewSessionWhileTheOldOneIsAsked(t *testing.T) {
	t.Parallel()
	const life = `<iq type='get' id='*' from='*'><query xmlns='http://jabber.org/protocol/disco#info'/></iq>`
	for name, asks := range map[string]func(*testing.T, *hosttest.Host, *running){
		"after a handshake": func(t *testing.T, host *hosttest.Host, _ *running) {
			number := host.AwaitAttached()
			host.Drop()
			host.AwaitReattached(number)
		},
		"unseen": func(_ *testing.T, _ *hosttest.Host, r *running) { r.front.VerifyUnseen(time.Now().Add(time.Hour)) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			host := hosttest.New(t)
			r := serve(t, host, nil)
			phone, other := host.Device("alice/phone"), host.Device("alice/other")
			other.Asks("set", publishing("a"))
			phone.Sends(`<presence to='` + host.Component() + `'/>`)
			subscribes(phone, "alice@localhost")
			asks(t, host, r)
			if name != "unseen" {
				phone.Receives(`<presence from='` + host.Component() + `'/>`)
			}
			query := phone.Receives(life)
			phone.Sends(`<presence to='` + host.Component() + `'/>`) // of the new session
			phone.Asks("get", ping)                                  // it has been read
			if err := phone.Refuse(query, "cancel", "service-unavailable"); err != nil {
				t.Fatal(err)
			}
			if name != "unseen" {
				phone.Receives(stateOfNotes) // as whoever is there is told
			}
			phone.ReceivesNothing() // the error has been read
			other.Asks("set", publishing("b"))
			phone.Receives(`<message type='headline' from='*' id='*'>*</message>`)
			if got := len(r.engine.Known()); got != 1 {
				t.Errorf("%d resources are known, want 1", got)
			}
		})
	}
}

// In a crowded account too, who came back while it was asked stays, and
// another one is the next.
func TestNewSessionInACrowd(t *testing.T) {
	t.Parallel()
	host := hosttest.New(t)
	r := serve(t, host, func(s *setup) { s.limits.Resources = 1 })
	first, second := host.Device("alice/first"), host.Device("alice/second")
	there := `<presence to='` + host.Component() + `'/>`
	first.Sends(there)
	second.Sends(there)
	query := first.Receives(askLife)
	first.Sends(there)
	first.Asks("get", ping)
	if err := first.Refuse(query, "cancel", "service-unavailable"); err != nil {
		t.Fatal(err)
	}
	if err := second.Refuse(second.Receives(askLife), "cancel", "service-unavailable"); err != nil {
		t.Fatal(err)
	}
	for len(r.engine.Known()) > 1 {
		first.Asks("get", ping)
	}
	if got := r.engine.Known(); len(got) != 1 || got[0].Resource != "first" {
		t.Errorf("known is %v, want the first alone", got)
	}
}

// The silence of the session before says nothing about the capabilities of
// this one: it is asked itself.
func TestCapsOfANewSession(t *testing.T) {
	t.Parallel()
	host := hosttest.New(t)
	r := serve(t, host, func(s *setup) { s.verify = time.Millisecond })
	// Silence is judged once the host has answered a ping: that of the old
	// session not before the new one is there, that of the new one not at all.
	isPing := func(s loopback.Stanza) bool { return s.To == host.Domain() }
	asked := false
	first := host.Hold(loopback.FromComponent, isPing)
	second := host.Hold(loopback.FromComponent, func(s loopback.Stanza) bool {
		asked = asked || strings.Contains(string(s.Raw), "node='urn:example:client#")
		return asked && isPing(s)
	})
	phone := host.Device("alice/phone")
	phone.Asks("set", publishing("a"))
	phone.Sends(`<presence to='vault.localhost'/>`)
	phone.Asks("get", ping)
	r.front.VerifyUnseen(time.Now().Add(time.Hour))
	phone.Receives(askLife)
	phone.Sends(`<presence to='vault.localhost'>` + withCaps + `</presence>`)
	phone.Asks("get", ping)
	first()
	if err := phone.Reply(phone.Receives(askCaps), theCaps); err != nil {
		t.Fatal(err)
	}
	phone.Receives(stateOfNotes)
	second()
	phone.ReceivesNothing()
}
