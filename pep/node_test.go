package pep_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"pepvault/pep"
	"pepvault/vault"
)

// watched has a bare subscription, so that every event goes to one address.
func (w *world) watched(node string) {
	w.t.Helper()
	w.must(laptop, pep.Subscribe{Node: node, JID: string(alice)})
}

// event returns the one event that op makes.
func (w *world) event(op pep.Op) *pep.Event {
	w.t.Helper()
	out := w.must(laptop, op)
	if len(out.Notices) != 1 {
		w.t.Fatalf("%T is told to %d", op, len(out.Notices))
	}
	return out.Notices[0].Event
}

// XEP-0060 §8.1.
func TestCreate(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	out := w.must(laptop, pep.Create{Node: "notes"})
	equal(t, "answer", out.Answer, pep.Answer(pep.Created{Node: "notes"}))
	equal(t, "told", len(out.Notices), 0)
	state := w.vault(laptop, "notes")
	equal(t, "revision and configuration", fmt.Sprint(state.Revision, state.Config), fmt.Sprint(1, vault.Config{}))
	equal(t, "contents", w.contents(laptop, "notes"), []string{})

	_, err := w.ask(laptop, pep.Create{Node: "notes"})
	refused(t, err, vault.ErrVaultExists)
	_, err = w.ask(laptop, pep.Create{Node: "notes", Config: form(pep.FormConfig, "pubsub#title", "x")})
	refused(t, err, vault.ErrVaultExists)
	equal(t, "the vault", w.vault(laptop, "notes"), state)
	_, err = w.ask(laptop, pep.Create{Node: strings.Repeat("x", 513)})
	refused(t, err, pep.ErrBadName)

	w.must(laptop, pep.Create{Node: "other", Config: form(pep.FormConfig, "pubsub#title", "Other")})
	equal(t, "configuration", w.vault(laptop, "other").Config, vault.Config{Title: "Other"})
	for _, node := range []string{"third", ""} {
		_, err = w.ask(laptop, pep.Create{Node: node})
		refused(t, err, pep.ErrTooManyVaults)
	}
	w.must(mallory, pep.Create{Node: "notes"})
}

// An empty vault is told by its state, so that what comes next shows no gap.
func TestCreationIsTold(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.announce(phone, alice, "h", notes())
	for range 2 {
		made := w.event(pep.Create{Node: "notes", Config: form(pep.FormConfig, "pubsub#deliver_notifications", "0")})
		equal(t, "the state before", made.State.Previous, pep.NoCursor)
		equal(t, "more than the state", *made, pep.Event{Owner: alice, Node: "notes", State: made.State})
		equal(t, "the next event follows", w.event(publish("a")).State.Previous, made.State.Cursor)
		equal(t, "the end", w.event(pep.Delete{Node: "notes"}).State.Cursor, "")
	}
	equal(t, "another vault", told(w.must(laptop, pep.Create{Node: "other"})), []string{})
}

// XEP-0060 §8.1.2: instant nodes.
func TestInstantNodes(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	first := w.must(laptop, pep.Create{}).Answer.(pep.Created).Node
	second := w.must(laptop, pep.Create{Config: form(pep.FormConfig, "pubsub#title", "x")}).Answer.(pep.Created).Node
	if first == "" || first >= second {
		t.Errorf("nodes are %q and %q, want names in the order of their making", first, second)
	}
	equal(t, "configuration", w.vault(laptop, second).Config, vault.Config{Title: "x"})
}

// XEP-0060 §8.5: one event for all, whose state names what went.
func TestPurge(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.must(laptop, publish("a", "b"))
	w.watched("notes")
	before := w.vault(laptop, "notes")
	event := w.event(pep.Purge{Node: "notes"})
	if !event.Purged || event.Muted || len(event.Changes) != 0 || event.State.Previous == pep.NoCursor || event.State.Cursor == "" {
		t.Errorf("the event is %+v", event)
	}
	equal(t, "items of the state", event.State.Items, []pep.StateItem{{ID: "a", Revision: 4, Gone: true}, {ID: "b", Revision: 5, Gone: true}})
	equal(t, "contents", w.contents(laptop, "notes"), []string{})
	after := w.vault(laptop, "notes")
	equal(t, "revision and epoch", fmt.Sprint(after.Revision, after.Epoch), fmt.Sprint(before.Revision+2, before.Epoch))

	out := w.must(laptop, pep.Purge{Node: "notes"})
	equal(t, "told of a purge of nothing", len(out.Notices), 0)
	equal(t, "the vault after a purge of nothing", w.vault(laptop, "notes"), after)
	w.must(laptop, publish("a"))
	_, err := w.ask(laptop, pep.Purge{Node: "absent"})
	refused(t, err, vault.ErrNoVault)
}

// What no stanza could name is not named, and tombstones stay bounded.
func TestPurgeOfMuch(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(o *pep.Options) { many(o); o.AnswerBytes = 3_000; o.Limits.Records = 8 })
	long := strings.Repeat("x", 400)
	for round := range 5 {
		for i := range 8 {
			w.must(laptop, publish(fmt.Sprint(long, round, i)))
		}
		if round == 0 {
			w.watched("notes")
		}
		event := w.event(pep.Purge{Node: "notes"})
		if !event.Purged || len(event.State.Items) != 0 || event.State.Cursor == "" || event.State.Previous == "" {
			t.Errorf("the event is %+v", event)
		}
	}
	if state := w.vault(laptop, "notes"); state.Pruned == 0 || state.Records != 0 {
		t.Errorf("the vault is %+v", state)
	}
}

// XEP-0060 §8.4: what the vault had is gone with it.
func TestDeleteTakesEverythingAlong(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.must(laptop, publish("a"))
	w.watched("notes")
	w.affiliate("notes", "member")
	if _, err := w.askOf(mallory, alice, pep.Subscribe{Node: "notes", JID: "mallory@localhost"}); err != nil {
		t.Fatal(err)
	}
	out := w.must(laptop, pep.Delete{Node: "notes"})
	equal(t, "told", len(out.Notices), 2)
	for _, n := range out.Notices {
		if !n.Event.Deleted || n.Event.Muted || n.Event.State.Cursor != "" {
			t.Errorf("%s is told %+v", n.To, n.Event)
		}
	}
	w.must(laptop, pep.Create{Node: "notes"})
	equal(t, "told after the vault was made again", len(w.must(laptop, publish("a")).Notices), 0)
	_, err := w.askOf(mallory, alice, pep.Items{Node: "notes"})
	refused(t, err, pep.ErrClosedNode)
}

// PROTOCOL §6: what is switched off still sends its state.
func TestMuting(t *testing.T) {
	t.Parallel()
	type told struct{ Muted, Bare bool }
	put := func(n string) pep.Op { return pep.Publish{Node: n, Items: []pep.Item{item("a", "x")}} }
	gone := func(n string) pep.Op { return pep.Retract{Node: n, IDs: []string{"a"}} }
	loud := func(n string) pep.Op { return pep.Retract{Node: n, IDs: []string{"a"}, Notify: true} }
	purge := func(n string) pep.Op { return pep.Purge{Node: n} }
	remove := func(n string) pep.Op { return pep.Delete{Node: n} }
	tests := []struct {
		name, field string
		op          func(node string) pep.Op
		want        told
	}{
		{"publish", "", put, told{}},
		{"retract", "", gone, told{}},
		{"publish without payloads", "pubsub#deliver_payloads", put, told{Bare: true}},
		{"retract without payloads", "pubsub#deliver_payloads", gone, told{}},
		{"muted retract", "pubsub#notify_retract", gone, told{Muted: true}},
		{"retract that asks for it", "pubsub#notify_retract", loud, told{}},
		{"purge where retracts are muted", "pubsub#notify_retract", purge, told{Muted: true}},
		{"publish where retracts are muted", "pubsub#notify_retract", put, told{}},
		{"delete where retracts are muted", "pubsub#notify_retract", remove, told{}},
		{"muted delete", "pubsub#notify_delete", remove, told{Muted: true}},
		{"purge where deletes are muted", "pubsub#notify_delete", purge, told{}},
		{"publish without events", "pubsub#deliver_notifications", put, told{Muted: true}},
		{"retract without events", "pubsub#deliver_notifications", loud, told{Muted: true}},
		{"purge without events", "pubsub#deliver_notifications", purge, told{Muted: true}},
		{"delete without events", "pubsub#deliver_notifications", remove, told{Muted: true}},
	}
	w := newWorld(t, roomy)
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			node := t.Name()
			w.must(laptop, put(node))
			w.watched(node)
			if tt.field != "" {
				w.must(laptop, pep.Configure{Node: node, Form: configForm(tt.field, "0")})
			}
			event := w.event(tt.op(node))
			equal(t, "the event", told{event.Muted, event.Bare}, tt.want)
			if event.State.Previous == "" || (event.State.Cursor == "") != event.Deleted {
				t.Errorf("the state is %+v", event.State)
			}
		})
	}
}

// XEP-0060 §7.1.3.6: a vault with a type takes no other payload.
func TestPayloadType(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.must(laptop, pep.Create{Node: "notes", Config: form(pep.FormConfig, "pubsub#type", "urn:example:notes")})
	good, bad := item("a", "x"), item("b", "x")
	good.Namespace, bad.Namespace = "urn:example:notes", "urn:example:other"
	_, err := w.ask(laptop, pep.Publish{Node: "notes", Items: []pep.Item{bad}})
	says(t, err, pep.ErrInvalidPayload, "urn:example:notes")
	_, err = w.ask(laptop, pep.Publish{Node: "notes", Items: []pep.Item{good, bad}})
	says(t, err, pep.ErrInvalidPayload, `"b"`)
	equal(t, "contents", w.contents(laptop, "notes"), []string{})
	w.must(laptop, pep.Publish{Node: "notes", Items: []pep.Item{good}})
}

// PROTOCOL §9: a key version below the floor is refused, and the error says
// where the floor is.
func TestKeyVersionFloor(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.must(laptop, publish("a")) // key version 3
	w.must(laptop, pep.Configure{Node: "notes", Form: configForm("x-pepvault-key-version-floor", "4")})
	low, high := item("b", "x"), item("c", "x")
	high.KeyVersion = 4
	_, err := w.ask(laptop, pep.Publish{Node: "notes", Items: []pep.Item{high, low}})
	says(t, err, pep.ErrKeyVersionTooLow, `"b"`)
	var refusal *pep.Refusal
	if errors.As(err, &refusal) {
		equal(t, "floor", refusal.Floor, uint32(4))
	}
	_, err = w.ask(laptop, publish("a"))
	refused(t, err, pep.ErrKeyVersionTooLow)
	equal(t, "contents", w.contents(laptop, "notes"), []string{"a=data of a"})
	w.must(laptop, pep.Publish{Node: "notes", Items: []pep.Item{high}})
	w.must(laptop, pep.Retract{Node: "notes", IDs: []string{"a"}})
}

// Discovery takes these names for the commands of the service.
func TestNodesOfTheService(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	for _, node := range []string{pep.CommandsNode, pep.CommandPrefix + "usage", pep.CommandPrefix} {
		_, err := w.ask(laptop, pep.Create{Node: node})
		refused(t, err, pep.ErrBadName)
		op := publish("a")
		op.Node = node
		_, err = w.ask(laptop, op)
		refused(t, err, pep.ErrBadName)
	}
}
