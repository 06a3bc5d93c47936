package component_test

import (
	"crypto/sha1"
	"encoding/base64"
	"slices"
	"strings"
	"testing"

	"pepvault/component/hosttest"
)

// announcement is what a client says that it can do, in a presence and when it
// is asked.
type announcement struct {
	rule  string // the section, and what it says
	caps  string // in the presence
	node  string // asked about; "" = the client is not asked
	info  string // what the client answers
	hears bool   // whether it hears of the notes from then on
	// cached says that the next client with the same presence is not asked.
	cached bool
}

const clientNode = "urn:example:client"

var (
	listens = []string{"http://jabber.org/protocol/disco#info", "notes+notify"}
	pages   = []string{"http://jabber.org/protocol/disco#info", "notes", "other+notify"}
)

// verification is the hash of XEP-0115 §5.1 for the identity of infoOf.
func verification(features []string) string {
	sum := sha1.Sum([]byte("client/pc//Test<" + strings.Join(slices.Sorted(slices.Values(features)), "<") + "<"))
	return base64.StdEncoding.EncodeToString(sum[:])
}

func infoOf(features []string, more string) string {
	const one = "<identity category='client' type='pc' name='Test'/>"
	return one + "<feature var='" + strings.Join(features, "'/><feature var='") + "'/>" + more
}

func capsOf(ver string) string {
	return "<c xmlns='http://jabber.org/protocol/caps' hash='sha-1' node='" + clientNode + "' ver='" + ver + "'/>"
}

func announcements() []announcement {
	const newer = "LJod8YvjeJ0F0+VphJ3yymQrrRr2IQDP/hauFZnJigQ="
	states := []string{"notes+notify", "urn:pepvault:sync:0", "http://jabber.org/protocol/disco#info"}
	capsOfNewer := "<c xmlns='urn:xmpp:caps'><hash xmlns='urn:xmpp:hashes:2' algo='sha-256'>" + newer + "</hash></c>"
	right, other := verification(listens), verification(pages)
	asked := func(ver string) string { return clientNode + "#" + ver }
	twice := "<x xmlns='jabber:x:data' type='result'><field var='FORM_TYPE' type='hidden'><value>urn:example:form</value></field></x>"
	form := verificationWithForm(listens)
	return []announcement{
		{"XEP-0115 §5.4 the hash fits", capsOf(right), asked(right), infoOf(listens, ""), true, true},
		{"XEP-0163 §4.3.2 nobody hears of what he did not ask for (C11)", capsOf(other), asked(other), infoOf(pages, ""), false, true},
		{"XEP-0115 §5.4 the hash does not fit", capsOf(other), asked(other), infoOf(listens, ""), true, false},
		{"XEP-0115 §5.4 a feature twice", capsOf(right), asked(right), infoOf(append(slices.Clone(listens), listens[0]), ""), true, false},
		{"XEP-0115 §5.4 an identity twice", capsOf(right), asked(right), infoOf(listens, "<identity category='client' type='pc' name='Test'/>"), true, false},
		{"XEP-0115 §5.4 a form twice", capsOf(form), asked(form), infoOf(listens, twice+twice), true, false},
		{"XEP-0115 §5.4 a form once", capsOf(form), asked(form), infoOf(listens, twice), true, true},
		{"XEP-0115 §8.4 no capabilities, nothing known", "", "", "", false, true},
		{"XEP-0390 §4 the hash fits", capsOfNewer, "urn:xmpp:caps#sha-256." + newer, infoOf(states, ""), true, true},
		{"XEP-0390 §4 the hash does not fit", capsOfNewer, "urn:xmpp:caps#sha-256." + newer, infoOf(listens, ""), true, false},
	}
}

func verificationWithForm(features []string) string {
	sum := sha1.Sum([]byte("client/pc//Test<" + strings.Join(slices.Sorted(slices.Values(features)), "<") + "<urn:example:form<"))
	return base64.StdEncoding.EncodeToString(sum[:])
}

// TestConformanceOfCapabilities holds the service to what the XEPs say about
// whose word it may take for what a client can do.
func TestConformanceOfCapabilities(t *testing.T) {
	t.Parallel()
	for _, row := range announcements() {
		t.Run(row.rule, func(t *testing.T) {
			t.Parallel()
			s := newStage(t, nil)
			laptop := s.host.Device("alice/laptop")
			laptop.Asks("set", publishing("a"))
			first, second := s.host.Device("alice/first"), s.host.Device("alice/second")
			row.announcedBy(t, first, false)
			row.announcedBy(t, second, row.cached)
			// Neither the same presence again nor one that says nothing changes
			// anything (XEP-0115 §8.4, XEP-0163 §4.3.3).
			first.Sends("<presence to='$component'>" + row.caps + "</presence>")
			first.Sends("<presence to='$component'/>")
			first.ReceivesNothing()
			laptop.Asks("set", publishing("b"))
			for _, d := range []*hosttest.Device{first, second} {
				if row.hears {
					d.Receives("<message type='headline' id='*' from='$component'>" + told("<items node='notes'><item id='b' publisher='*'>*</item></items>") + "</message>")
				}
				d.ReceivesNothing()
			}
			// Who leaves hears no more.
			first.Sends("<presence type='unavailable' to='$component'/>")
			first.ReceivesNothing()
			laptop.Asks("set", publishing("c"))
			first.ReceivesNothing()
			s.survived()
		})
	}
}

// announcedBy has a device announce itself, answer what it is asked, and wait
// until that counts.
func (a announcement) announcedBy(t *testing.T, d *hosttest.Device, known bool) {
	t.Helper()
	d.Sends("<presence to='$component'>" + a.caps + "</presence>")
	if a.node != "" && !known {
		a.answeredBy(t, d)
	}
	if a.hears {
		d.Receives(stateOfNotes)
	}
	d.ReceivesNothing()
}

func (a announcement) answeredBy(t *testing.T, d *hosttest.Device) {
	t.Helper()
	query := d.Receives("<iq type='get' id='*' from='$component'><query xmlns='http://jabber.org/protocol/disco#info' node='" + a.node + "'/></iq>")
	if err := d.Reply(query, "<query xmlns='http://jabber.org/protocol/disco#info' node='"+a.node+"'>"+a.info+"</query>"); err != nil {
		t.Fatal(err)
	}
}
