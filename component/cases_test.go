package component_test

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pepvault/component/hosttest"
	"pepvault/pep/wire"
)

// C16: the address, node and id of an event are what a request needs.
func TestC16RetractWhatAnEventNames(t *testing.T) {
	t.Parallel()
	s := newStage(t, nil)
	laptop := s.host.Device("alice/laptop")
	laptop.Asks("set", publishing("first"))
	send(t, s.alice, `<presence to='vault.localhost'/>`)
	subscribes(s.alice, "alice@localhost/phone")
	laptop.Asks("set", publishing("327058251"))
	event := s.alice.Receives(`<message type='headline' from='$service' id='*'>
		<event xmlns='http://jabber.org/protocol/pubsub#event'><items node='$node'><item id='$id' publisher='*'>*</item></items></event>
		<state xmlns='urn:pepvault:sync:0' owner='*' node='*' previous='*' cursor='*'>*</state></message>`)
	vars := s.host.Vars()
	answer, err := s.alice.IQ(t.Context(), "set", event.From,
		`<pubsub xmlns='http://jabber.org/protocol/pubsub'><retract node='`+vars["node"]+`'><item id='`+vars["id"]+`'/></retract></pubsub>`)
	if err != nil || outcome(answer) != "result" || vars["id"] != "327058251" {
		t.Errorf("retracting %v at %s: %s, %v", vars, event.From, answer, err)
	}
	if got := s.got(s.alice); len(got) != 1 || !strings.Contains(string(got[0].Raw), `<retract id='327058251'/>`) {
		t.Errorf("the retract is told by %s", got)
	}
	s.survived()
}

// C07, C08, C11: a change is told once to each of the owner's devices that
// wants to know, the one that made it included, and to nobody else.
func TestC07C08C11WhoHears(t *testing.T) {
	t.Parallel()
	s := newStage(t, func(s *setup) { s.limits.Resources = 10 })
	laptop, quiet, gone := s.host.Device("alice/laptop"), s.host.Device("alice/quiet"), s.host.Device("alice/gone")
	s.alice.Asks("set", publishing("a"))
	devices := []*hosttest.Device{s.alice, laptop, quiet, gone}
	for _, d := range devices {
		send(t, d, `<presence to='vault.localhost'/>`)
	}
	for _, d := range []*hosttest.Device{s.alice, laptop, gone} {
		subscribes(d, d.JID())
	}
	gone.Asks("set", `<pubsub xmlns='http://jabber.org/protocol/pubsub'><unsubscribe node='notes' jid='alice@localhost/gone'/></pubsub>`)
	for _, row := range []struct{ name, request, event string }{
		{"publish", publishing("b"), `<items node='notes'><item id='b' publisher='alice@localhost'>*</item></items>`},
		{"overwrite", publishing("b"), `<items node='notes'><item id='b' publisher='alice@localhost'>*</item></items>`},
		{"retract", `<pubsub xmlns='http://jabber.org/protocol/pubsub'><retract node='notes' notify='true'><item id='a'/></retract></pubsub>`, `<items node='notes'><retract id='a'/></items>`},
		{"retract without notify", `<pubsub xmlns='http://jabber.org/protocol/pubsub'><retract node='notes'><item id='b'/></retract></pubsub>`, `<items node='notes'><retract id='b'/></items>`},
	} {
		laptop.Asks("set", row.request)
		for _, d := range []*hosttest.Device{laptop, s.alice} {
			d.Receives(`<message type='headline' from='vault.localhost' id='*'><event xmlns='http://jabber.org/protocol/pubsub#event'>` + row.event +
				`</event><state xmlns='urn:pepvault:sync:0' owner='*' node='*' previous='*' cursor='*'>*</state></message>`)
		}
		for _, d := range append(slices.Clone(devices), s.bob) {
			if got := s.got(d); len(got) > 0 {
				t.Errorf("%s: %s got %s too", row.name, d.JID(), got)
			}
		}
	}
	s.survived()
}

// C46: a vault that a publish made is a node like any other, and one that is
// not there is missing in the same way everywhere.
func TestC46DiscoOfAnAutoCreatedNode(t *testing.T) {
	t.Parallel()
	s := newStage(t, nil)
	if got := put(t, s.alice, "urn:example:notes", "a", foreign("x")); got != "result" {
		t.Fatal(got)
	}
	info := s.alice.Asks("get", `<query xmlns='http://jabber.org/protocol/disco#info' node='urn:example:notes'/>`)
	if !strings.Contains(string(infoset(t, info.Payload())), `identity category="pubsub" type="leaf"`) {
		t.Errorf("no leaf: %s", info)
	}
	for _, payload := range []string{
		`<query xmlns='http://jabber.org/protocol/disco#info' node='urn:example:absent'/>`,
		`<query xmlns='http://jabber.org/protocol/disco#items' node='urn:example:absent'/>`,
		reading("urn:example:absent"),
	} {
		wantError(t, s.alice.AsksInVain("get", payload), "cancel", "item-not-found")
	}
	s.survived()
}

// C19: pages by <last/> bring every record that is there all the time exactly
// once, whatever is written meanwhile, and come to an end. C17: no page says
// that it begins where it does not.
func TestC17C19Pages(t *testing.T) {
	t.Parallel()
	s := newStage(t, func(s *setup) { s.limits.Records = 30 })
	for i := range 25 {
		s.alice.Asks("set", publishing(fmt.Sprint("record", i)))
	}
	seen := map[string]int{}
	after, pages := "", 0
	for {
		answer := s.alice.Asks("get", `<pubsub xmlns='http://jabber.org/protocol/pubsub'><items node='notes'/>`+
			`<set xmlns='http://jabber.org/protocol/rsm'><max>10</max>`+after+`</set></pubsub>`)
		var page struct {
			Items []struct {
				ID string `xml:"id,attr"`
			} `xml:"pubsub>items>item"`
			First struct {
				Index string `xml:"index,attr"`
			} `xml:"pubsub>set>first"`
			Last string `xml:"pubsub>set>last"`
		}
		if err := answer.Decode(&page); err != nil {
			t.Fatal(err)
		}
		if len(page.Items) == 0 {
			break
		}
		// One of the removed records stood in front of the second page.
		if want := []string{"0", "9", "19"}[min(pages, 2)]; pages < 3 && page.First.Index != want {
			t.Errorf("page %d says that it begins at %s, want %s", pages, page.First.Index, want)
		}
		for _, item := range page.Items {
			seen[item.ID]++
		}
		after = `<after>` + escape(page.Last) + `</after>`
		if pages++; pages == 1 {
			s.alice.Asks("set", publishing("new"))
			s.alice.Asks("set", `<pubsub xmlns='http://jabber.org/protocol/pubsub'><retract node='notes'><item id='record3'/><item id='record17'/></retract></pubsub>`)
		}
		if pages > 10 {
			t.Fatal("the pages do not end")
		}
	}
	for i := range 25 {
		id := fmt.Sprint("record", i)
		if want := 1; i != 3 && i != 17 && seen[id] != want {
			t.Errorf("%s came %d times, want %d", id, seen[id], want)
		}
	}
	last, err := s.alice.IQ(t.Context(), "get", "vault.localhost", `<pubsub xmlns='http://jabber.org/protocol/pubsub'><items node='notes'/>`+
		`<set xmlns='http://jabber.org/protocol/rsm'><max>3</max><before/></set></pubsub>`)
	if err != nil || strings.Contains(string(last.Raw), "index='0'") {
		t.Errorf("the last page is %s (%v)", last, err)
	}
	s.survived()
}

// C49: each way to change a vault tells the other devices, with the record's
// revision; what stores nothing tells nothing.
func TestC49EachChangeIsTold(t *testing.T) {
	t.Parallel()
	s := newStage(t, nil)
	laptop := s.host.Device("alice/laptop")
	laptop.Asks("set", publishing("first"))
	send(t, s.alice, `<presence to='vault.localhost'/>`)
	subscribes(s.alice, "alice@localhost/phone")
	item := func(id string) string { return `<item id='` + id + `'>` + foreign("x") + `</item>` }
	several := func(items ...string) string {
		return `<pubsub xmlns='http://jabber.org/protocol/pubsub'><publish node='notes'>` + strings.Join(items, "") + `</publish></pubsub>`
	}
	for _, row := range []struct {
		name, request string
		told          []string // what stands in the events, one after the other
	}{
		{"new record", several(item("a")), []string{`}item id="a"`}},
		{"generated id", several(`<item>` + foreign("x") + `</item>`), []string{`}item id="`}},
		{"overwrite", several(item("a")), []string{`}item id="a"`}},
		{"overwrite by the same", several(item("a")), []string{`}item id="a"`}},
		{"several", several(item("a"), item("first")), []string{`}item id="a"`, `}item id="first"`}},
		{"refused", several(item("a"), item("b"), item("c")), nil},
		{"retract", `<pubsub xmlns='http://jabber.org/protocol/pubsub'><retract node='notes'><item id='a'/></retract></pubsub>`, []string{`}retract id="a"`}},
		{"refused retract", `<pubsub xmlns='http://jabber.org/protocol/pubsub'><retract node='notes'><item id='a'/></retract></pubsub>`, nil},
		{"fewer records", configures("max_items", "3"), []string{`}configuration node="notes"`}},
		{"refused configuration", configures("max_items", "1"), nil},
		{"purge", owners("<purge node='notes'/>"), []string{`}purge node="notes"`}},
		{"delete", owners("<delete node='notes'/>"), []string{`}delete node="notes"`}},
		{"made again, without the subscription", publishing("a"), nil},
	} {
		if _, err := laptop.IQ(t.Context(), "set", "vault.localhost", row.request); err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, message := range s.got(s.alice) {
			got = append(got, string(infoset(t, message.Raw)))
		}
		if len(got) != len(row.told) {
			t.Errorf("%s: told by %s, want %d messages", row.name, got, len(row.told))
			continue
		}
		for i, want := range row.told {
			// The last message of a commit tells where the vault stands now.
			last := i == len(got)-1
			if !strings.Contains(got[i], want) || strings.Contains(got[i], "{urn:pepvault:sync:0}state") != last {
				t.Errorf("%s: told by %s, want %s", row.name, got[i], want)
			}
		}
	}
	delete(s.host.Vars(), "now") // the vault that was made again stands elsewhere
	subscribes(s.alice, "alice@localhost/phone")
	erase(t, s.bob, "alice@localhost")
	if got := s.got(s.alice); len(got) != 1 || !strings.Contains(string(infoset(t, got[0].Raw)), `}delete node="notes"`) {
		t.Errorf("the operator's erasure is told by %s", got)
	}
	s.survived()
}

// erase has an operator remove all that an account has (XEP-0050 §3.4).
func erase(t *testing.T, operator *hosttest.Device, account string) {
	t.Helper()
	c := commander{t, operator}
	asked, _ := c.step(wire.Command{Node: eraseCommand, Action: "execute"})
	for _, step := range []wire.Command{
		{Action: "next", Form: form("jid", account)}, {Action: "complete", Form: form("confirm", "1")},
	} {
		step.Node, step.Session = eraseCommand, asked.Session
		if _, status := c.step(step); status != "executing" && status != "completed" {
			t.Fatalf("%s of an erasure: %s", step.Action, status)
		}
	}
}

// C43: an account that was erased is there for whoever gets its name, and
// holds nothing; until then it holds all.
func TestC43AnErasedAccountIsEmpty(t *testing.T) {
	t.Parallel()
	s := newStage(t, nil)
	s.alice.Asks("set", publishing("a"))
	successor := s.host.Device("alice/new")
	if got := successor.Asks("get", reading("notes")); !strings.Contains(string(got.Raw), "id='a'") {
		t.Errorf("before the erasure there is %s", got)
	}
	erase(t, s.bob, "alice@localhost")
	wantError(t, successor.AsksInVain("get", reading("notes")), "cancel", "item-not-found")
	if got := successor.Asks("get", disco("items", "")); strings.Contains(string(got.Raw), "<item ") {
		t.Errorf("after the erasure there is %s", got)
	}
	successor.Asks("set", publishing("b"))
	if got := successor.Asks("get", reading("notes")); strings.Contains(string(got.Raw), "id='a'") {
		t.Errorf("made again there is %s", got)
	}
	s.survived()
}

// C04: "max" is the service's own bound, before and after a restart; a number
// over it is refused in words that name it, and stores nothing.
func TestC04MaxItemsAfterARestart(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "vault.db")
	for start := range 2 {
		t.Run(fmt.Sprint("start ", start+1), func(t *testing.T) {
			host := hosttest.New(t)
			serve(t, host, func(s *setup) { s.store = openStore(t, path) })
			d := host.Device("alice/phone")
			if start == 0 {
				d.Asks("set", publishesWith("a", "max_items", "max"))
				d.Asks("set", publishing("b"))
				d.Asks("set", publishing("c"))
			}
			for _, over := range []string{configures("max_items", "5"), strings.ReplaceAll(publishesWith("d", "max_items", "5"), "notes", "other")} {
				if fault := d.AsksInVain("set", over); !strings.Contains(fault.Text, "4") {
					t.Errorf("the refusal names no bound: %q", fault.Text)
				}
			}
			if got := strings.Count(string(d.Asks("get", reading("notes")).Raw), "<item "); got != 3 {
				t.Errorf("%d records, want 3", got)
			}
			if got := string(d.Asks("get", disco("items", "")).Raw); strings.Contains(got, "other") {
				t.Errorf("a refusal left %s", got)
			}
			if got := string(d.Asks("get", owners("<configure node='notes'/>")).Raw); !strings.Contains(got, "<value>max</value>") {
				t.Errorf("the configuration is %s", got)
			}
		})
	}
}
