package wire

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"pepvault/pep"
	"pepvault/vault"
)

// told is what a device learns of an event.
func told(ev pep.Event, detail Detail) pep.Event {
	bare := ev.Bare || detail == Quiet
	want := pep.Event{Owner: ev.Owner, Node: ev.Node, State: ev.State}
	if ev.Muted || detail == StateOnly || detail == Quiet && (len(ev.Changes) > 1 || ev.Batch) {
		return want
	}
	want.Deleted, want.Purged, want.Past, want.Config = ev.Deleted, ev.Purged, ev.Past, ev.Config
	if ev.Config != nil && bare {
		want.Config = &pep.Form{}
	}
	if ev.Purged {
		return want
	}
	want.Changes = append([]vault.Change(nil), ev.Changes...)
	for i := range want.Changes {
		if i < len(want.Changes)-1 || ev.Config != nil {
			want.Changes[i].Revision = 0 // told by the last message only
		}
		if !ev.Past {
			want.Changes[i].Published = time.Time{}
		}
		if bare {
			want.Changes[i].Payload, want.Changes[i].KeyVersion = vault.Payload{}, 0
		}
	}
	return want
}

func TestEvents(t *testing.T) {
	t.Parallel()
	change := func(id string, revision vault.Revision) vault.Change {
		r := testRecord(id)
		r.Revision, r.Published = revision, time.Date(2026, 11, 30, 9, 0, 0, 120e6, time.UTC)
		return vault.Change{Record: r}
	}
	config := pep.Form{Type: pep.FormConfig, Fields: []pep.Field{{Name: "pubsub#max_items", Kind: "text-single", Values: []string{"100"}}}}
	gone := vault.Change{Record: vault.Record{ID: "b", Revision: 43}, Gone: true}
	state := func(items ...pep.StateItem) pep.State {
		s := *testState()
		s.Items = items
		return s
	}
	tests := map[string]struct {
		event  pep.Event
		detail Detail
	}{
		"publish": {event: pep.Event{Owner: "alice@localhost", Node: "notes", Changes: []vault.Change{change("a", 42)},
			State: state(pep.StateItem{ID: "a", Revision: 42})}},
		"quiet": {detail: Quiet, event: pep.Event{Owner: "alice@localhost", Node: "notes", Changes: []vault.Change{change("a", 42)},
			State: state(pep.StateItem{ID: "a", Revision: 42})}},
		"retract": {event: pep.Event{Owner: "alice@localhost", Node: "notes", Changes: []vault.Change{gone},
			State: state(pep.StateItem{ID: "b", Revision: 43, Gone: true})}},
		"rotation": {event: pep.Event{Owner: "alice@localhost", Node: "notes", Batch: true, Config: &config, Changes: []vault.Change{change("a", 42)},
			State: state(pep.StateItem{ID: "a", Revision: 42})}},
		"rotation quiet": {detail: Quiet, event: pep.Event{Owner: "alice@localhost", Node: "notes", Batch: true, Config: &config, Changes: []vault.Change{change("a", 42)},
			State: state(pep.StateItem{ID: "a", Revision: 42})}},
		"several": {event: pep.Event{Owner: "alice@localhost", Node: "notes", Changes: []vault.Change{change("a", 42), gone},
			State: state(pep.StateItem{ID: "a", Revision: 42}, pep.StateItem{ID: "b", Revision: 43, Gone: true})}},
		"first": {event: pep.Event{Owner: "alice@localhost", Node: "notes", Changes: []vault.Change{change("a", 2)},
			State: pep.State{Owner: "alice@localhost", Node: "notes", Previous: pep.NoCursor, Cursor: "c-1", Items: []pep.StateItem{{ID: "a", Revision: 2}}}}},
		"state": {event: pep.Event{Owner: "alice@localhost", Node: "notes",
			State: pep.State{Owner: "alice@localhost", Node: "notes", Cursor: "c-2"}}},
		"bare": {event: pep.Event{Owner: "alice@localhost", Node: "notes", Bare: true, Changes: []vault.Change{change("a", 42)},
			State: state(pep.StateItem{ID: "a", Revision: 42})}},
		"past": {event: pep.Event{Owner: "alice@localhost", Node: "notes", Past: true, Changes: []vault.Change{change("a", 42)},
			State: pep.State{Owner: "alice@localhost", Node: "notes", Cursor: "c-2", Items: []pep.StateItem{{ID: "a", Revision: 42}}}}},
		"muted": {event: pep.Event{Owner: "alice@localhost", Node: "notes", Muted: true, Changes: []vault.Change{change("a", 42)},
			State: state(pep.StateItem{ID: "a", Revision: 42})}},
		"muted delete": {event: pep.Event{Owner: "alice@localhost", Node: "notes", Muted: true, Deleted: true,
			State: pep.State{Owner: "alice@localhost", Node: "notes", Previous: "c-1"}}},
		"several state only": {detail: StateOnly, event: pep.Event{Owner: "alice@localhost", Node: "notes",
			Changes: []vault.Change{change("a", 42), gone}, State: state(pep.StateItem{ID: "a", Revision: 42}, pep.StateItem{ID: "b", Revision: 43, Gone: true})}},
		"several quiet": {detail: Quiet, event: pep.Event{Owner: "alice@localhost", Node: "notes",
			Changes: []vault.Change{change("a", 42), gone}, State: state(pep.StateItem{ID: "a", Revision: 42}, pep.StateItem{ID: "b", Revision: 43, Gone: true})}},
		"purge": {event: pep.Event{Owner: "alice@localhost", Node: "notes", Purged: true, Changes: []vault.Change{gone},
			State: state(pep.StateItem{ID: "b", Revision: 43, Gone: true})}},
		"config":       {event: pep.Event{Owner: "alice@localhost", Node: "notes", Config: &config, State: state()}},
		"config bare":  {event: pep.Event{Owner: "alice@localhost", Node: "notes", Config: &config, Bare: true, State: state()}},
		"config quiet": {detail: Quiet, event: pep.Event{Owner: "alice@localhost", Node: "notes", Config: &config, State: state()}},
		"delete": {event: pep.Event{Owner: "alice@localhost", Node: "notes", Deleted: true,
			State: pep.State{Owner: "alice@localhost", Node: "notes", Previous: "c-1"}}},
	}
	for what, test := range tests {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			bodies := EventBody(&test.event, test.detail)
			var got pep.Event
			for i, body := range bodies {
				raw := AppendMessage(nil, "vault.localhost", "alice@localhost/phone", "m1", body)
				golden(t, "event "+what+[]string{"", " 2"}[i], raw)
				n, err := DecodeMessage(raw)
				if err != nil {
					t.Fatal(err)
				}
				if last := i == len(bodies)-1; (n.State != nil) != last {
					t.Errorf("state in message %d of %d", i+1, len(bodies))
				}
				got.Node, got.Deleted, got.Purged, got.Config, got.Past = n.Node, n.Deleted, n.Purged, n.Config, n.Past
				got.Changes = append(got.Changes, n.Changes...)
				if n.State != nil {
					got.State, got.Owner = *n.State, n.State.Owner
				}
			}
			want := told(test.event, test.detail)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("read again (-want +got)\n%s", diff)
			}
		})
	}
}

func TestDecodeMessage(t *testing.T) {
	t.Parallel()
	n, err := DecodeMessage([]byte("<message from='v' to='a'><state xmlns='urn:pepvault:sync:0' owner='o' node='n' cursor='c'/></message>"))
	if err != nil || n.Node != "n" || n.State == nil || len(n.Changes) > 0 {
		t.Errorf("a state alone: %+v, %v", n, err)
	}
	bounce := new(StanzaError)
	_, err = DecodeMessage([]byte("<message type='error'><body/><error type='cancel'><gone xmlns='urn:ietf:params:xml:ns:xmpp-stanzas'/></error></message>"))
	if !errors.As(err, &bounce) || bounce.Condition != "gone" || bounce.Type != "cancel" {
		t.Errorf("bounce: %v", err)
	}
	for _, raw := range []string{
		"", "<message/>", "<iq/>", "<message><body>hello</body></message>",
		"<message><event xmlns='http://jabber.org/protocol/pubsub#event'/></message>",
		"<message><state xmlns='urn:pepvault:sync:0'><item id='a' revision='-1'/></state></message>",
		"<message><event xmlns='http://jabber.org/protocol/pubsub#event'><configuration/></event></message>",
		"<message><event xmlns='http://jabber.org/protocol/pubsub#event'><configuration node='n'><x xmlns='jabber:x:data'>t</x></configuration></event></message>",
		"<message><event xmlns='http://jabber.org/protocol/pubsub#event'><items node='n'><item id='a'/></items></event><delay xmlns='urn:xmpp:delay' stamp='yesterday'/></message>",
		"<message><event xmlns='http://jabber.org/protocol/pubsub#event'><purge node='n'/></event><delay xmlns='urn:xmpp:delay' stamp='2026-11-30T09:00:00Z'/></message>",
	} {
		if n, err := DecodeMessage([]byte(raw)); !errors.Is(err, ErrBadReply) {
			t.Errorf("%q: %+v, %v", raw, n, err)
		}
	}
}

// A commit of several records is told to a bare JID in one message, which has
// the state alone.
func TestQuietEventOfSeveralChanges(t *testing.T) {
	t.Parallel()
	event := pep.Event{Owner: "alice@localhost", Node: "notes", State: *testState(), Changes: []vault.Change{
		{Record: testRecord("a")}, {Record: vault.Record{ID: "b", Revision: 43}, Gone: true},
	}}
	bodies := EventBody(&event, Quiet)
	if len(bodies) != 1 {
		t.Fatalf("%d messages, want 1", len(bodies))
	}
	n, err := DecodeMessage(AppendMessage(nil, "vault.localhost", "alice@localhost", "m1", bodies[0]))
	if err != nil || n.State == nil || len(n.Changes) != 0 {
		t.Errorf("told %+v, %v; want the state alone", n, err)
	}
}

func TestDetailOf(t *testing.T) {
	t.Parallel()
	for want, notices := range map[Detail][]pep.Notice{
		Full:      {{}},
		Quiet:     {{Quiet: true}},
		StateOnly: {{StateOnly: true}, {StateOnly: true, Quiet: true}},
	} {
		for _, n := range notices {
			if got := DetailOf(n); got != want {
				t.Errorf("quiet %v, state only %v: got %d, want %d", n.Quiet, n.StateOnly, got, want)
			}
		}
	}
}
