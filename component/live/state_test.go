package live_test

import (
	"fmt"
	"regexp"
	"testing"
)

// prepare brings Alice's account into a state. What stands already is looked at
// by one read, since most stanzas change nothing.
func (a *arena) prepare(t *testing.T, state int) {
	if a.state == state && !a.changed {
		return
	}
	a.must(t, "get", ping) // whatever the stanza before has caused is over
	list := a.must(t, "get", `<query xmlns='http://jabber.org/protocol/disco#items'/>`)
	for _, found := range nodeOfItem.FindAllStringSubmatch(list, -1) {
		a.must(t, "set", `<pubsub xmlns='http://jabber.org/protocol/pubsub#owner'><delete node='`+found[1]+`'/></pubsub>`)
	}
	a.tell(t, `<presence type='unavailable' to='vault.localhost'/>`)
	switch state {
	case stateUsed:
		a.tell(t, `<presence to='vault.localhost'/>`)
		for i := range 3 {
			a.must(t, "set", publishing(string(rune('a'+i))))
		}
		for _, jid := range []string{"alice@localhost", "alice@localhost/phone"} {
			a.must(t, "set", `<pubsub xmlns='http://jabber.org/protocol/pubsub'><subscribe node='notes' jid='`+jid+`'/></pubsub>`)
		}
	case stateFull:
		for _, node := range []string{"notes", "1", "2", "3"} {
			for i := range 4 {
				a.must(t, "set", publication(node, fmt.Sprint(i), foreign("x")))
			}
		}
	}
	a.state, a.changed = state, false
}

// nodeOfItem finds the nodes in a list of vaults, escaped as the host has it.
var nodeOfItem = regexp.MustCompile(`<item [^>]*\bnode='([^']*)'`)

func (a *arena) must(t *testing.T, kind, payload string) string {
	answer, err := a.alice.IQ(t.Context(), kind, "vault.localhost", payload)
	if err != nil || answer.Type != "result" {
		t.Fatalf("%s is answered %s (%v)", payload, answer, err)
	}
	return string(answer.Raw)
}

func (a *arena) tell(t *testing.T, raw string) {
	if err := a.alice.Send([]byte(raw)); err != nil {
		t.Fatal(err)
	}
}
