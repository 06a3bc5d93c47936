package component_test

import (
	"strings"
	"testing"
	"time"

	"pepvault/component/hosttest"
	"pepvault/component/loopback"
)

// What a client that wants to hear of the notes announces, and what it is
// asked and answers then.
const (
	withCaps = `<c xmlns='http://jabber.org/protocol/caps' hash='sha-1' node='urn:example:client' ver='qLShc1d8vAJNZH9FseKv6kGpXEE='/>`
	askCaps  = `<iq type='get' id='*' from='vault.localhost'><query xmlns='http://jabber.org/protocol/disco#info' node='urn:example:client#qLShc1d8vAJNZH9FseKv6kGpXEE='/></iq>`
	askLife  = `<iq type='get' id='*' from='vault.localhost'><query xmlns='http://jabber.org/protocol/disco#info'/></iq>`
	theCaps  = `<query xmlns='http://jabber.org/protocol/disco#info'><identity category='client' type='pc' name='Test'/>` +
		`<feature var='notes+notify'/><feature var='http://jabber.org/protocol/disco#info'/></query>`
)

// A client that can't be asked stays unknown until it is there again.
func TestCapsWithoutAnswer(t *testing.T) {
	t.Parallel()
	for name, answer := range map[string]func(*testing.T, *hosttest.Device){
		"error": func(t *testing.T, d *hosttest.Device) {
			if err := d.Refuse(d.Receives(askCaps), "cancel", "item-not-found"); err != nil {
				t.Fatal(err)
			}
		},
		"unreadable": func(t *testing.T, d *hosttest.Device) {
			if err := d.Reply(d.Receives(askCaps), `<query xmlns='urn:example'/>`); err != nil {
				t.Fatal(err)
			}
		},
		"empty": func(t *testing.T, d *hosttest.Device) {
			if err := d.Reply(d.Receives(askCaps), ""); err != nil {
				t.Fatal(err)
			}
		},
		"silence": func(t *testing.T, d *hosttest.Device) { d.Receives(askCaps) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			host := hosttest.New(t)
			serve(t, host, func(s *setup) {
				if name == "silence" {
					s.verify = 50 * time.Millisecond
				}
			})
			// Silence is judged once the host has answered a ping: not before the
			// answer to the second question is there, however long that takes.
			questions := 0
			release := host.Hold(loopback.FromComponent, func(s loopback.Stanza) bool {
				if strings.Contains(string(s.Raw), "node='urn:example:client#") {
					questions++
				}
				return questions > 1 && s.To == host.Domain()
			})
			phone := host.Device("alice/phone")
			phone.Asks("set", publishing("a"))
			presence := `<presence to='vault.localhost'>` + withCaps + `</presence>`
			phone.Sends(presence)
			answer(t, phone)
			for phone.Waiting() == 0 { // while it is being asked, it is not asked again
				phone.Asks("set", publishing("b"))
				phone.Sends(presence)
			}
			if err := phone.Reply(phone.Receives(askCaps), theCaps); err != nil {
				t.Fatal(err)
			}
			release()
			phone.Receives(stateOfNotes)
			phone.ReceivesNothing()
		})
	}
}

// An error to the question about capabilities says nothing about whether the
// device is there: that is asked next.
func TestCapsRefused(t *testing.T) {
	t.Parallel()
	host := hosttest.New(t)
	r := serve(t, host, nil)
	phone := host.Device("alice/phone")
	phone.Asks("set", publishing("a"))
	phone.Sends(`<presence to='vault.localhost'>` + withCaps + `</presence>`)
	query := phone.Receives(askCaps)
	r.front.VerifyUnseen(time.Now().Add(time.Hour))
	phone.ReceivesNothing()
	if err := phone.Refuse(query, "cancel", "item-not-found"); err != nil {
		t.Fatal(err)
	}
	if err := phone.Reply(phone.Receives(askLife), theCaps); err != nil {
		t.Fatal(err)
	}
	phone.Receives(stateOfNotes)
	phone.ReceivesNothing()
	if got := len(r.engine.Known()); got != 1 {
		t.Errorf("%d resources are known, want 1", got)
	}
}

// The answer to the question after a handshake teaches what a device wants to
// hear of.
func TestVerificationTeaches(t *testing.T) {
	t.Parallel()
	host := hosttest.New(t)
	serve(t, host, nil)
	phone := host.Device("alice/phone")
	phone.Asks("set", publishing("a"))
	phone.Sends(`<presence to='vault.localhost'/>`)
	phone.ReceivesNothing()
	number := host.AwaitAttached()
	host.Drop()
	host.AwaitReattached(number)
	phone.Receives(`<presence from='vault.localhost'/>`)
	if err := phone.Reply(phone.Receives(askLife), theCaps); err != nil {
		t.Fatal(err)
	}
	phone.Receives(stateOfNotes)
	phone.ReceivesNothing()
	phone.Sends(`<iq type='set' id='p' to='vault.localhost'>` + publishing("b") + `</iq>`)
	phone.Receives(`<iq type='result' id='p' from='*'>*</iq>`)
	phone.Receives(`<message type='headline' from='vault.localhost' id='*'><event xmlns='http://jabber.org/protocol/pubsub#event'>*</event>` +
		`<state xmlns='urn:pepvault:sync:0' owner='*' node='notes' previous='$now' cursor='*'>*</state></message>`)
	phone.ReceivesNothing()
}

// Presence counts for the address that it goes to, and so does its end.
func TestPresenceByAddress(t *testing.T) {
	t.Parallel()
	const alices = `alice\40localhost@vault.localhost`
	host := hosttest.New(t)
	r := serve(t, host, nil)
	alice, bob := host.Device("alice/phone"), host.Device("bob/pc")
	alice.Asks("set", publishing("a"))
	bob.Asks("set", publishing("a"))
	alice.Asks("set", `<pubsub xmlns='http://jabber.org/protocol/pubsub#owner'><affiliations node='notes'><affiliation jid='bob@localhost' affiliation='member'/></affiliations></pubsub>`)
	for _, nobody := range []string{`alice@vault.localhost`, `alice\40elsewhere@vault.localhost`, `\40@vault.localhost`} {
		bob.Sends(`<presence to='` + nobody + `'/>`)
	}
	bob.ReceivesNothing()
	if got := len(r.engine.Known()); got != 0 {
		t.Errorf("%d resources are known by presence to nobody, want none", got)
	}
	bob.Sends(`<presence to='` + alices + `'>` + withCaps + `</presence>`)
	if err := bob.Reply(bob.Receives(askCaps), theCaps); err != nil {
		t.Fatal(err)
	}
	bob.Receives(`<message type='headline' from='` + alices + `' id='*'><state xmlns='urn:pepvault:sync:0' owner='alice@localhost' node='notes' cursor='*'/></message>`)
	bob.Sends(`<presence to='vault.localhost'/>`)
	bob.Receives(`<message type='headline' from='vault.localhost' id='*'><state xmlns='urn:pepvault:sync:0' owner='bob@localhost' node='notes' cursor='*'/></message>`)
	alice.Asks("set", publishing("b"))
	bob.Receives(`<message type='headline' from='` + alices + `' id='*'><event xmlns='http://jabber.org/protocol/pubsub#event'>*</event>` +
		`<state xmlns='urn:pepvault:sync:0' owner='alice@localhost' node='notes' previous='*' cursor='*'>*</state></message>`)
	bob.Sends(`<presence type='unavailable' to='` + alices + `'/>`)
	bob.ReceivesNothing()
	alice.Asks("set", publishing("b"))
	bob.ReceivesNothing()
	if got := len(r.engine.Known()); got != 1 {
		t.Errorf("%d resources are known, want Bob's for his own vaults", got)
	}
	bob.Sends(`<presence type='error' to='` + alices + `'><error type='cancel'><gone xmlns='urn:ietf:params:xml:ns:xmpp-stanzas'/></error></presence>`)
	bob.ReceivesNothing()
	if got := len(r.engine.Known()); got != 0 {
		t.Errorf("%d resources are known after an error, want none", got)
	}
}

// A presence of which only the start was read says nothing.
func TestSkippedPresence(t *testing.T) {
	t.Parallel()
	host := hosttest.New(t)
	r := serve(t, host, nil)
	phone := host.Device("alice/phone")
	host.Inject(`<presence from='alice@localhost/phone' to='vault.localhost'><status>` + strings.Repeat("x", 3<<20) + `</status></presence>`)
	phone.ReceivesNothing()
	if got := len(r.engine.Known()); got != 0 {
		t.Errorf("%d resources are known, want none", got)
	}
}
