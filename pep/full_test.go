package pep_test

import (
	"errors"
	"strconv"
	"strings"
	"testing"

	"pepvault/pep"
	"pepvault/vault"
)

// XEP-0060 §7.1.3.4: max_items bounds a vault as the service's bound does.
func TestFullByMaxItems(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.must(laptop, with(publish("a", "b"), "pubsub#max_items", "2"))
	_, err := w.ask(laptop, publish("c"))
	says(t, err, pep.ErrNodeFull, "2 records")
	_, err = w.ask(laptop, publish("c", "d", "e"))
	refused(t, err, pep.ErrMaxItemsExceeded)
	w.must(laptop, publish("b", "a"))
	equal(t, "contents", w.contents(laptop, "notes"), []string{"b=data of b", "a=data of a"})
}

// A vault that may evict retracts the oldest change that the request does not
// store itself, and tells it before what is stored.
func TestEviction(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name    string
		publish []string
		evicted []string
		left    []string
	}{
		{"one", []string{"e"}, []string{"a"}, []string{"b", "c", "d", "e"}},
		{"two", []string{"e", "f"}, []string{"a", "b"}, []string{"c", "d", "e", "f"}},
		{"with an overwrite of the oldest", []string{"a", "e"}, []string{"b"}, []string{"c", "d", "a", "e"}},
		{"with an overwrite in between", []string{"e", "b", "f"}, []string{"a", "c"}, []string{"d", "e", "b", "f"}},
		{"all", []string{"1", "2", "3", "4"}, []string{"a", "b", "c", "d"}, []string{"1", "2", "3", "4"}},
		{"an overwrite alone", []string{"a"}, nil, []string{"b", "c", "d", "a"}},
	}
	w := newWorld(t, roomy)
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			full := with(publish("a", "b", "c", "d"), "pubsub#publish_node_full", "retract-oldest")
			full.Node = t.Name()
			w.must(laptop, full)
			w.watched(full.Node)
			op := publish(tt.publish...)
			op.Node, op.State = full.Node, true
			out := w.must(laptop, op)
			event, state := out.Notices[0].Event, out.Answer.(pep.Published).State
			equal(t, "number of changes", len(event.Changes), len(tt.evicted)+len(tt.publish))
			for i, c := range event.Changes {
				want := vault.Change{Record: vault.Record{ID: append(append([]string{}, tt.evicted...), tt.publish...)[i], Revision: vault.Revision(6 + i)}, Gone: i < len(tt.evicted)}
				equal(t, "change "+strconv.Itoa(i), vault.Change{Record: vault.Record{ID: c.ID, Revision: c.Revision}, Gone: c.Gone}, want)
				equal(t, "state item "+strconv.Itoa(i), state.Items[i], pep.StateItem{ID: c.ID, Revision: c.Revision, Gone: c.Gone})
			}
			if event.Muted {
				t.Error("an eviction is muted")
			}
			equal(t, "ids left", ids(w.must(laptop, pep.Items{Node: full.Node}).Answer.(pep.ItemsPage)), tt.left)
		})
	}
}

func TestEvictionRefuses(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.must(laptop, with(publish("a", "b", "c", "d"), "pubsub#publish_node_full", "retract-oldest"))
	before := w.contents(laptop, "notes")
	_, err := w.ask(laptop, publish("1", "2", "3", "4", "5"))
	refused(t, err, pep.ErrMaxItemsExceeded)
	big := strings.Repeat("x", 100)
	_, err = w.ask(laptop, pep.Publish{Node: "notes", Items: []pep.Item{item("1", big), item("2", big), item("3", big)}})
	refused(t, err, pep.ErrQuotaExceeded) // even with what would go
	equal(t, "contents after the refusals", w.contents(laptop, "notes"), before)
	// What goes makes room in the account, too.
	w.must(laptop, pep.Publish{Node: "notes", Items: []pep.Item{item("1", big), item("2", big)}})
}

// Tombstones of evictions stay bounded like all others.
func TestEvictionPrunes(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.must(laptop, with(publish("first"), "pubsub#publish_node_full", "retract-oldest"))
	for i := range 20 {
		w.must(laptop, publish(strconv.Itoa(i)))
	}
	state := w.vault(laptop, "notes")
	equal(t, "records", state.Records, 4)
	var tombstones vault.Page
	err := w.store.View(t.Context(), func(v vault.View) (err error) {
		tombstones, err = v.Changes(state.Key, 0, vault.PageLimit{Records: 100, Cost: 1 << 20})
		return err
	})
	if err != nil || len(tombstones.Changes) != 8 || state.Pruned == 0 {
		t.Errorf("%d changes are kept, %v; the vault is %+v", len(tombstones.Changes), err, state)
	}
}

// XEP-0060 §12.11: nothing is done, and every id that is at fault is named.
func TestEveryFailingIDIsNamed(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.must(laptop, publish("a", "b"))
	big := strings.Repeat("x", 101)
	tests := []struct {
		name  string
		op    pep.Op
		want  error
		named []string
		not   []string
	}{
		{
			"retract", pep.Retract{Node: "notes", IDs: []string{"x", "a", "y", "b", "z"}}, vault.ErrNoRecord,
			[]string{`"x"`, `"y"`, `"z"`}, []string{`"a"`, `"b"`},
		},
		{
			"retract of one", pep.Retract{Node: "notes", IDs: []string{"x"}}, vault.ErrNoRecord, []string{`"x"`}, nil,
		},
		{
			"too big", pep.Publish{Node: "notes", Items: []pep.Item{item("1", big), item("2", "x"), item("3", big)}}, pep.ErrPayloadTooBig,
			[]string{"100", `"1"`, `"3"`}, []string{`"2"`},
		},
		{
			"bad names", pep.Publish{Node: "notes", Items: []pep.Item{item("1", "x"), item("2\x01", "x"), item("3\x02", "x")}}, pep.ErrBadName,
			[]string{`"2\x01"`, `"3\x02"`}, []string{`"1"`},
		},
		{
			"one id twice", publish("1", "2", "1"), pep.ErrBadRequest, []string{`"1"`}, []string{`"2"`},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			_, err := w.ask(laptop, tt.op)
			for _, name := range tt.named {
				says(t, err, tt.want, name)
			}
			for _, name := range tt.not {
				if strings.Contains(err.Error(), name) {
					t.Errorf("%v names %s", err, name)
				}
			}
			equal(t, "contents", w.contents(laptop, "notes"), []string{"a=data of a", "b=data of b"})
		})
	}
}

func TestNamesInAnErrorAreBounded(t *testing.T) {
	t.Parallel()
	w := newWorld(t, many)
	w.must(laptop, publish("a"))
	var absent []string
	for i := range 500 {
		absent = append(absent, strings.Repeat("ä", 100)+strconv.Itoa(i))
	}
	_, err := w.ask(laptop, pep.Retract{Node: "notes", IDs: absent})
	says(t, err, vault.ErrNoRecord, "and others")
	var refusal *pep.Refusal
	if errors.As(err, &refusal) && len(refusal.Text) > 1200 {
		t.Errorf("the text has %d bytes", len(refusal.Text))
	}
}

func TestForeignPayloadsThatAreNotTaken(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(o *pep.Options) { o.Limits.ForeignPayloads = false })
	foreign := item("b", "<x xmlns='urn:example'/>")
	foreign.Payload.Form = vault.Foreign
	_, err := w.ask(laptop, pep.Publish{Node: "notes", Items: []pep.Item{item("a", "x"), foreign}})
	says(t, err, pep.ErrInvalidPayload, `"b"`)
	w.must(laptop, publish("a"))
}
