package component_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pepvault/component/hosttest"
	"pepvault/component/loopback"
)

// exchange is one rule of a XEP: a request and what must come of it.
type exchange struct {
	rule string // the section, and what it says
	by   string // who asks; "" = alice/laptop
	at   string // the local part of the address asked; "" = the service itself
	ask  string // the content of a set, or of a get if it begins with "get "
	// want is the content of the result as hosttest.Match compares it, or an
	// error as outcome writes it.
	want  string
	heard []string // contents of the messages that alice/watch gets, to the letter
}

// chapter is a story: its exchanges follow each other in one service.
type chapter struct {
	name      string
	exchanges []exchange
}

// Guests of Alice: the service's other accounts, by what she lets them do.
const (
	guestOwner     = "alice/desk"
	guestPublisher = "paula/pc"
	guestMember    = "bob/pc"
	guestOutcast   = "olaf/pc"
	guestNone      = "mallory/pc"
	watching       = "alice/watch"
)

// TestConformance holds the service to what the XEPs demand of a node of one
// account that is open to those alone whom its owner names.
func TestConformance(t *testing.T) {
	t.Parallel()
	chapters := slices.Concat(conformanceOfItems(), conformanceOfNodes(), conformanceOfPeople())
	for _, c := range chapters {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := newStage(t, nil)
			w := conformanceCast(t, s)
			for _, x := range c.exchanges {
				t.Run(x.rule, func(t *testing.T) { w.hold(t, x) })
			}
			s.survived()
		})
	}
}

// cast are the devices of a chapter.
type cast struct {
	stage   *stage
	devices map[string]*hosttest.Device
}

// conformanceCast has Alice's guests come in. Her watch hears of "notes",
// which do not exist yet, by its capabilities.
func conformanceCast(t *testing.T, s *stage) *cast {
	t.Helper()
	c := &cast{stage: s, devices: map[string]*hosttest.Device{}}
	for _, address := range []string{"alice/laptop", guestOwner, guestPublisher, guestMember, guestOutcast, guestNone, watching} {
		c.devices[address] = s.host.Device(address)
	}
	announce(t, c.devices[watching])
	return c
}

// announce makes a device hear of the notes (XEP-0115 §5, XEP-0163 §4.3.2). A
// vault is made for that: the first message shows that the interest counts.
func announce(t *testing.T, d *hosttest.Device) {
	t.Helper()
	d.Asks("set", pubsub("<create node='notes'/>"))
	d.Sends("<presence to='$component'>" + withCaps + "</presence>")
	if err := d.Reply(d.Receives(askCaps), theCaps); err != nil {
		t.Fatal(err)
	}
	d.Receives(stateOfNotes)
	d.Asks("set", owners("<delete node='notes'/>"))
	d.Receives("<message type='headline' id='*' from='*'>" + told("<delete node='notes'/>") + "</message>")
}

func (c *cast) hold(t *testing.T, x exchange) {
	t.Helper()
	by := x.by
	if by == "" {
		by = "alice/laptop"
	}
	vars := c.stage.host.Vars()
	payload, kind := x.ask, "set"
	if rest, isGet := strings.CutPrefix(payload, "get "); isGet {
		payload, kind = rest, "get"
	}
	payload, err := vars.Expand(payload)
	if err != nil {
		t.Fatal(err)
	}
	to := "vault.localhost"
	if x.at != "" {
		to = x.at + `\40localhost@` + to
	}
	answer, err := c.devices[by].IQ(t.Context(), kind, to, payload)
	if err != nil {
		t.Fatal(err)
	}
	switch {
	case answer.From != to:
		t.Errorf("answered from %q", answer.From)
	case x.want != "" && !strings.HasPrefix(x.want, "<"):
		if got := outcome(answer); got != x.want {
			t.Errorf("answered %s, want %s\n%s", got, x.want, answer)
		}
	default:
		if err := hosttest.Match("<iq type='result' id='*' from='*'>"+x.want+"</iq>", answer.Raw, vars); err != nil {
			t.Error(err)
		}
	}
	c.holdHeard(t, x)
}

func (c *cast) holdHeard(t *testing.T, x exchange) {
	t.Helper()
	d := c.devices[watching]
	if _, err := d.IQ(t.Context(), "get", "vault.localhost", ping); err != nil {
		t.Fatal(err)
	}
	var got []loopback.Stanza
	for d.Waiting() > 0 {
		message, err := d.Recv(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, message)
	}
	if len(got) != len(x.heard) {
		t.Fatalf("the watch hears %s, want %d messages", got, len(x.heard))
	}
	for i, want := range x.heard {
		want = "<message type='headline' id='*' from='vault.localhost'>" + want + "</message>"
		if err := hosttest.Match(want, got[i].Raw, c.stage.host.Vars()); err != nil {
			t.Errorf("message %d: %v", i+1, err)
		}
	}
}

// What requests, results and events consist of. A request on a vault names it
// "notes" unless it says otherwise.

func pubsub(inner string) string {
	return `<pubsub xmlns='http://jabber.org/protocol/pubsub'>` + inner + `</pubsub>`
}

func owners(inner string) string {
	return `<pubsub xmlns='http://jabber.org/protocol/pubsub#owner'>` + inner + `</pubsub>`
}

func publishes(items string) string { return pubsub("<publish node='notes'>" + items + "</publish>") }

func oneItem(id string) string {
	return "<item id='" + id + "'><n xmlns='urn:example'/></item>"
}

func readItem(id, publisher string) string {
	return "<item id='" + id + "' publisher='" + publisher + "@localhost'><n xmlns='urn:example'/></item>"
}

func items(inner string) string { return pubsub("<items node='notes'>" + inner + "</items>") }

func paged(rsm string) string {
	return "get " + pubsub("<items node='notes'/><set xmlns='http://jabber.org/protocol/rsm'>"+rsm+"</set>")
}

func page(items, rsm string) string {
	return pubsub("<items node='notes'>" + items + "</items><set xmlns='http://jabber.org/protocol/rsm'>" + rsm + "</set>")
}

// submits is a form with fields in pairs: name (without "pubsub#", unless it
// stands alone with a colon) and value.
func submits(about string, fields ...string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "<x xmlns='jabber:x:data' type='submit'><field var='FORM_TYPE' type='hidden'><value>http://jabber.org/protocol/pubsub#%s</value></field>", about)
	for pair := range slices.Chunk(fields, 2) {
		fmt.Fprintf(&b, "<field var='pubsub#%s'><value>%s</value></field>", pair[0], pair[1])
	}
	return b.String() + "</x>"
}

func configures(fields ...string) string {
	return owners("<configure node='notes'>" + submits("node_config", fields...) + "</configure>")
}

func publishesWith(id string, fields ...string) string {
	return pubsub("<publish node='notes'>" + oneItem(id) + "</publish><publish-options>" + submits("publish-options", fields...) + "</publish-options>")
}

// affiliates gives affiliations, pairs of an account's name and what it is.
func affiliates(pairs ...string) string {
	var b strings.Builder
	for pair := range slices.Chunk(pairs, 2) {
		fmt.Fprintf(&b, "<affiliation jid='%s@localhost' affiliation='%s'/>", pair[0], pair[1])
	}
	return owners("<affiliations node='notes'>" + b.String() + "</affiliations>")
}

func event(inner string) string {
	return `<event xmlns='http://jabber.org/protocol/pubsub#event'>` + inner + `</event>`
}

// told is the event of one change with the state of the vault after it; what
// that says is no matter of XEP-0060.
func told(inner string) string {
	cursor := " cursor='*'"
	if strings.HasPrefix(inner, "<delete") {
		cursor = ""
	}
	return event(inner) + `<state xmlns='urn:pepvault:sync:0' owner='alice@localhost' node='notes' previous='*'` + cursor + `>*</state>`
}

// toldCreation is the state alone: XEP-0060 has no event for a new node.
const toldCreation = `<state xmlns='urn:pepvault:sync:0' owner='alice@localhost' node='notes' previous='none' cursor='*'/>`

func toldItem(id string) string {
	return told("<items node='notes'>" + readItem(id, "alice") + "</items>")
}

func disco(about, node string) string {
	if node != "" {
		node = " node='" + node + "'"
	}
	return "<query xmlns='http://jabber.org/protocol/disco#" + about + "'" + node + "/>"
}
