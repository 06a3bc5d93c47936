package pep_test

import (
	"strings"
	"testing"

	"pepvault/pep"
	"pepvault/vault"
)

// told lists to whom an outcome's notices go.
func told(out pep.Outcome) []string {
	list := []string{}
	for _, n := range out.Notices {
		to := n.To
		if n.Quiet {
			to += " (quiet)"
		}
		list = append(list, to)
	}
	return list
}

func TestWhoIsTold(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.must(laptop, publish("a"))
	equal(t, "nobody subscribed", told(w.must(laptop, publish("a"))), []string{})

	_, err := w.ask(phone, pep.Subscribe{Node: "notes", JID: phone})
	refused(t, err, pep.ErrPresenceRequired)
	w.arrive(phone)
	w.must(phone, pep.Subscribe{Node: "notes", JID: phone})
	equal(t, "full JID", told(w.must(laptop, publish("a"))), []string{phone})

	w.arrive(laptop)
	equal(t, "presence alone", told(w.must(laptop, publish("a"))), []string{phone})
	w.must(laptop, pep.Subscribe{Node: "notes", JID: "ALICE@localhost"})
	equal(t, "bare JID", told(w.must(laptop, publish("a"))), []string{phone, laptop})
	equal(t, "another vault", told(w.must(laptop, pep.Publish{Node: "other", Items: []pep.Item{item("x", "y")}})), []string{})

	w.Leave("alice@localhost", "phone")
	equal(t, "phone left", told(w.must(laptop, publish("a"))), []string{laptop})
	w.Leave("alice@localhost", "laptop")
	equal(t, "all left", told(w.must(laptop, publish("a"))), []string{"alice@localhost (quiet)"})
	w.arrive(phone)
	equal(t, "phone is back", told(w.must(laptop, publish("a"))), []string{phone})

	w.must(phone, pep.Unsubscribe{Node: "notes", JID: "alice@localhost"})
	equal(t, "full subscriptions end with presence", told(w.must(laptop, publish("a"))), []string{})
	_, err = w.ask(phone, pep.Unsubscribe{Node: "notes", JID: "alice@localhost"})
	refused(t, err, pep.ErrNotSubscribed)
	_, err = w.ask(phone, pep.Unsubscribe{Node: "notes", JID: phone})
	refused(t, err, pep.ErrNotSubscribed)
}

// What a bare JID missed is told to it as long as nobody better is known.
func TestBareState(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.must(laptop, publish("a"))
	key := vault.Key{Account: "alice@localhost", Node: "notes"}
	state := func(key vault.Key) []string {
		t.Helper()
		var out pep.Outcome
		if err := w.BareState(t.Context(), "alice@localhost", key, func(n []pep.Notice) { out.Notices = append(out.Notices, n...) }); err != nil {
			t.Error(err)
		}
		for _, n := range out.Notices {
			if n.Event.State.Previous != "" || n.Event.State.Cursor == "" || len(n.Event.Changes) > 0 {
				t.Errorf("more than the state: %+v", n.Event)
			}
		}
		return told(out)
	}
	equal(t, "not subscribed", state(key), []string{})
	w.must(laptop, pep.Subscribe{Node: "notes", JID: "alice@localhost"})
	equal(t, "subscribed", state(key), []string{"alice@localhost (quiet)"})
	equal(t, "no such vault", state(vault.Key{Account: "alice@localhost", Node: "other"}), []string{})
	w.arrive(phone)
	equal(t, "a resource is known", state(key), []string{})
}

func TestSubscribeRefuses(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.must(laptop, publish("a"))
	tests := []struct {
		name, jid string
		want      error
	}{
		{"somebody else", "mallory@localhost", pep.ErrInvalidJID},
		{"another resource", phone, pep.ErrInvalidJID},
		{"resource in another case", "alice@localhost/LAPTOP", pep.ErrInvalidJID},
		{"no JID", "", pep.ErrMalformedJID},
		{"a domain", "localhost", pep.ErrMalformedJID},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			_, err := w.ask(laptop, pep.Subscribe{Node: "notes", JID: tt.jid})
			refused(t, err, tt.want)
		})
	}
}

func TestSubscriptionsAreBounded(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.must(laptop, publish("a"))
	for _, d := range []string{laptop, phone, "alice@localhost/tablet"} {
		w.arrive(d)
	}
	w.must(laptop, pep.Subscribe{Node: "notes", JID: laptop})
	w.must(laptop, pep.Subscribe{Node: "notes", JID: laptop}) // again: no second place
	w.must(phone, pep.Subscribe{Node: "notes", JID: phone})
	_, err := w.ask(laptop, pep.Subscribe{Node: "notes", JID: "alice@localhost"})
	refused(t, err, pep.ErrTooManySubscriptions)
	_, err = w.ask("alice@localhost/tablet", pep.Subscribe{Node: "notes", JID: "alice@localhost/tablet"})
	refused(t, err, pep.ErrTooManySubscriptions)
}

func TestResourcesAreBounded(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	arrive := func(name string, want pep.Arrival) {
		t.Helper()
		equal(t, "arrival of "+name, w.arrive("alice@localhost/"+name), want)
	}
	for _, name := range []string{"1", "2", "3"} {
		arrive(name, pep.Arrival{New: true, Greet: true})
	}
	arrive("1", pep.Arrival{}) // heard of again
	if s, crowded := w.Stalest("alice@localhost"); crowded {
		t.Errorf("stalest of an account that is not crowded: %v", s)
	}
	for _, name := range []string{"4", "5", "6"} {
		arrive(name, pep.Arrival{New: true, Crowded: true, Greet: true})
	}
	s, crowded := w.Stalest("alice@localhost")
	if !crowded || s.Resource != "2" {
		t.Errorf("stalest is %q, %v; want the one heard of longest ago", s.Resource, crowded)
	}
	arrive("7", pep.Arrival{New: true, Crowded: true, Forgotten: "alice@localhost/2", Greet: true})
	equal(t, "number of known resources", len(w.Known()), 6)
	for _, s := range w.Known() {
		w.Leave(s.Account, s.Resource)
	}
	equal(t, "number of known resources after all left", len(w.Known()), 0)
}

func TestStatesTellWhereVaultsStand(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	states := func() (list []string) {
		t.Helper()
		err := w.States(t.Context(), device(phone), func(notices []pep.Notice) {
			for _, n := range notices {
				list = append(list, n.Event.Node+" "+n.Event.State.Cursor)
				if n.To != phone || n.Event.State.Previous != "" || len(n.Event.Changes) != 0 {
					t.Errorf("the notice is %+v of %+v", n, n.Event)
				}
			}
		})
		if err != nil {
			t.Error(err)
		}
		return list
	}
	op := publish("a")
	op.State = true
	cursor := w.must(laptop, op).Answer.(pep.Published).State.Cursor
	w.must(laptop, pep.Publish{Node: "other", Items: []pep.Item{item("x", "y")}})
	equal(t, "states for a resource that is not known", states(), []string(nil))
	w.arrive(phone)
	equal(t, "states without subscription", states(), []string(nil))
	w.must(phone, pep.Subscribe{Node: "notes", JID: phone})
	equal(t, "states by full JID", states(), []string{"notes " + cursor})
	w.must(phone, pep.Unsubscribe{Node: "notes", JID: phone})
	w.must(laptop, pep.Subscribe{Node: "notes", JID: "alice@localhost"})
	equal(t, "states by bare JID", states(), []string{"notes " + cursor})
}

// Each event's state leads from the one before it to the one after it.
func TestStatesFormAChain(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	at := pep.NoCursor
	step := func(what string, op pep.Op, items ...pep.StateItem) {
		t.Helper()
		var s *pep.State
		switch a := w.must(laptop, op).Answer.(type) {
		case pep.Published:
			s = a.State
		case pep.Retracted:
			s = a.State
		}
		if s == nil {
			t.Fatalf("%s: no state", what)
		}
		equal(t, what+": previous", s.Previous, at)
		equal(t, what+": items", s.Items, items)
		equal(t, what+": owner and node", s.Owner+"/"+vault.Account(s.Node), vault.Account("alice@localhost/notes"))
		at = s.Cursor
	}
	first := publish("a", "b")
	first.State = true
	step("publish of two", first, pep.StateItem{ID: "a", Revision: 2}, pep.StateItem{ID: "b", Revision: 3})
	second := publish("a")
	second.State = true
	step("overwrite", second, pep.StateItem{ID: "a", Revision: 4})
	step("retract", pep.Retract{Node: "notes", IDs: []string{"b"}, State: true}, pep.StateItem{ID: "b", Revision: 5, Gone: true})
	if plain := w.must(laptop, publish("c")).Answer.(pep.Published); plain.State != nil {
		t.Errorf("a state that nobody asked for: %v", plain.State)
	}
}

func TestDeleteTellsAndForgets(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.must(laptop, publish("a"))
	w.arrive(phone)
	w.must(phone, pep.Subscribe{Node: "notes", JID: phone})
	out := w.must(laptop, pep.Delete{Node: "notes"})
	equal(t, "told", told(out), []string{phone})
	event := out.Notices[0].Event
	if !event.Deleted || event.State.Cursor != "" || event.State.Previous == pep.NoCursor {
		t.Errorf("the event is %+v", event)
	}
	_, err := w.ask(laptop, pep.Items{Node: "notes"})
	refused(t, err, vault.ErrNoVault)

	op := publish("a")
	op.State = true
	out = w.must(laptop, op)
	equal(t, "told after the vault was made again", told(out), []string{})
	state := out.Answer.(pep.Published).State
	equal(t, "previous of a vault made again", state.Previous, pep.NoCursor)
	key := w.store.CursorKey()
	old, err := key.Verify(event.State.Previous)
	if err != nil {
		t.Fatal(err)
	}
	made, err := key.Verify(state.Cursor)
	if err != nil || made.Epoch == old.Epoch {
		t.Errorf("the vault made again has cursor %v (%v), the old one %v", made, err, old)
	}
}

func TestEventsCarryTheChange(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.must(laptop, publish("a"))
	w.arrive(phone)
	w.must(phone, pep.Subscribe{Node: "notes", JID: phone})
	event := w.must(laptop, publish("b")).Notices[0].Event
	if len(event.Changes) != 1 || event.Changes[0].ID != "b" || string(event.Changes[0].Payload.Data) != "data of b" {
		t.Errorf("publish: %+v", event.Changes)
	}
	event = w.must(laptop, pep.Retract{Node: "notes", IDs: []string{"a"}}).Notices[0].Event
	if len(event.Changes) != 1 || event.Changes[0].ID != "a" || !event.Changes[0].Gone {
		t.Errorf("retract: %+v", event.Changes)
	}
}

func TestIDsThatNoAnswerCouldHold(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(o *pep.Options) { many(o); o.AnswerBytes = 10_000 })
	long := strings.Repeat(`"`, 400)
	_, err := w.ask(laptop, publish(long+"1", long+"2", long+"3"))
	refused(t, err, pep.ErrPolicy)
	for _, id := range []string{"1", "2", "3"} {
		w.must(laptop, publish(long+id))
	}
	_, err = w.ask(laptop, pep.Retract{Node: "notes", IDs: []string{long + "1", long + "2", long + "3"}})
	refused(t, err, pep.ErrPolicy)
}
