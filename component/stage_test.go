package component_test

import (
	"bytes"
	"encoding/base64"
	"strings"
	"testing"

	"pepvault/component/hosttest"
	"pepvault/component/loopback"
)

// stage is a service with two accounts: what Alice's device does must do no
// harm to Bob, who has a record, nor to the connection.
type stage struct {
	t          *testing.T
	host       *hosttest.Host
	service    *running
	alice, bob *hosttest.Device
	same       func()
	bobs       []byte // what he reads, from the beginning
}

func newStage(t *testing.T, change func(*setup)) *stage {
	t.Helper()
	host := hosttest.New(t)
	s := &stage{t: t, host: host, service: serve(t, host, change)}
	s.same = host.SameConnection()
	s.alice, s.bob = host.Device("alice/phone"), host.Device("bob/phone")
	s.bob.Asks("set", publishing("his"))
	s.bobs = s.reads(s.bob)
	if !bytes.Contains(s.bobs, []byte(`id="his"`)) {
		t.Fatalf("Bob reads %s", s.bobs)
	}
	return s
}

// reads returns all records of the device's notes.
func (s *stage) reads(d *hosttest.Device) []byte {
	s.t.Helper()
	return infoset(s.t, d.Asks("get", getNotes).Payload())
}

// survived fails the test unless the connection is the same, Alice is still
// served, and Bob reads what he did.
func (s *stage) survived() {
	s.t.Helper()
	s.same()
	if got := s.reads(s.bob); !bytes.Equal(got, s.bobs) {
		s.t.Errorf("Bob reads %s, want still %s", got, s.bobs)
	}
	if s.alice.Asks("get", ping); s.alice.Waiting() > 0 {
		s.t.Errorf("Alice got %s too", s.got(s.alice))
	}
}

// got returns what has come for a device. All that it has asked for, and that
// is no large read, is answered by then: an account is served in turn.
func (s *stage) got(d *hosttest.Device) (all []loopback.Stanza) {
	s.t.Helper()
	d.Asks("get", ping)
	for d.Waiting() > 0 {
		stanza, err := d.Recv(s.t.Context())
		if err != nil {
			s.t.Fatal(err)
		}
		all = append(all, stanza)
	}
	return all
}

// answered fails the test unless exactly the wanted answers have come to
// Alice, separated by spaces; see outcome.
func (s *stage) answered(want string) {
	s.t.Helper()
	var got []string
	for _, stanza := range s.got(s.alice) {
		if stanza.Name != "iq" {
			s.t.Errorf("got %s", stanza)
		}
		got = append(got, outcome(stanza))
	}
	if got := strings.Join(got, " "); got != want {
		s.t.Errorf("answered %q, want %q", got, want)
	}
}

// stateOfNotes is what a resource is told that begins to hear of the notes.
const stateOfNotes = `<message type='headline' from='*' id='*'><state xmlns='urn:pepvault:sync:0' owner='*' node='notes' cursor='$now'/></message>`

// subscribes has a device ask for the events of its notes, as jid.
func subscribes(d *hosttest.Device, jid string) {
	d.Asks("set", `<pubsub xmlns='http://jabber.org/protocol/pubsub'><subscribe node='notes' jid='`+jid+`'/></pubsub>`)
	d.Receives(stateOfNotes)
}

// outcome is "result", or the type, condition and specific condition of an
// error: "modify/bad-request+invalid-payload".
func outcome(s loopback.Stanza) string {
	fault := s.Err()
	if fault == nil {
		return s.Type
	}
	text := fault.Type + "/" + fault.Condition
	if fault.Specific.Local != "" {
		text += "+" + fault.Specific.Local
	}
	return text
}

// send has a device send what hosttest would expand: "$" is itself here.
func send(t testing.TB, d *hosttest.Device, raw string) {
	t.Helper()
	if err := d.Send([]byte(raw)); err != nil {
		t.Fatalf("%s sends %.200s: %v", d.JID(), raw, err)
	}
}

// put asks for a record to be stored, and returns the answer's outcome.
func put(t testing.TB, d *hosttest.Device, node, id, payload string) string {
	t.Helper()
	answer, err := d.IQ(t.Context(), "set", d.Host().Component(), publication(node, id, payload))
	if err != nil {
		t.Fatal(err)
	}
	return outcome(answer)
}

// publication is a publish; node and id are escaped here.
func publication(node, id, payload string) string {
	return `<pubsub xmlns='http://jabber.org/protocol/pubsub'><publish node='` + escape(node) + `'><item id='` + escape(id) + `'>` +
		payload + `</item></publish></pubsub>`
}

// reading is a read of all records of a node.
func reading(node string) string {
	return `<pubsub xmlns='http://jabber.org/protocol/pubsub'><items node='` + escape(node) + `'/></pubsub>`
}

func escape(s string) string {
	return strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", "'", "&apos;", `"`, "&quot;").Replace(s)
}

// native is our own record around a ciphertext.
func native(ciphertext string) string {
	return `<record xmlns='urn:pepvault:record:0' key-version='1'>` + base64.StdEncoding.EncodeToString([]byte(ciphertext)) + `</record>`
}

// foreign is a payload in its stored form.
func foreign(text string) string {
	return `<n xmlns='urn:example'>` + text + `</n>`
}
