package pep_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"pepvault/pep"
	"pepvault/vault"
)

// rotation stages every record of the vault under a key version.
func (w *world) rotation(from, id string, keyVersion uint32) {
	w.t.Helper()
	w.begin(from, id, keyVersion)
	for _, r := range w.must(from, pep.Items{Node: "notes"}).Answer.(pep.ItemsPage).Records {
		w.must(from, staging(id, w.cursor(), sealed(keyVersion, r.ID, fmt.Sprint(r.ID, " under ", keyVersion))))
	}
}

func TestRotation(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.here(laptop)
	w.must(laptop, publish("b", "a")) // revisions 2 and 3
	w.must(laptop, pep.Subscribe{Node: "notes", JID: laptop})
	w.rotation(laptop, "x", 4)
	previous := w.cursor()
	out := w.mustCommit(laptop, "x")
	equal(t, "contents, in their old order", w.contents(laptop, "notes"), []string{"b=b under 4", "a=a under 4"})
	state := w.vault(laptop, "notes")
	equal(t, "floor", state.Config.KeyVersionFloor, uint32(4))
	equal(t, "revision", state.Revision, vault.Revision(6)) // the configuration took the last

	event := out.Notices[0].Event
	equal(t, "state", event.State, pep.State{
		Owner: "alice@localhost", Node: "notes", Previous: previous, Cursor: w.cursor(),
		Items: []pep.StateItem{{ID: "b", Revision: 4}, {ID: "a", Revision: 5}},
	})
	if event.Config == nil || len(event.Changes) != 2 {
		t.Errorf("event %+v", event)
	}
	page := w.syncPage(pep.Sync{Cursor: w.cursor()})
	equal(t, "changes since the commit", len(page.Changes), 0)

	_, err := w.ask(phone, pep.Publish{Node: "notes", Items: []pep.Item{sealed(3, "a", "old key")}})
	var refusal *pep.Refusal
	if !errors.As(err, &refusal) || refusal.Err != pep.ErrKeyVersionTooLow || refusal.Floor != 4 {
		t.Errorf("an old key: %v", err)
	}
}

// A record that was only sealed anew is what the device expects, until the next
// write.
func TestExpectationOnRotatedFrom(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.must(laptop, publish("a", "b"))
	held := w.cursor()
	w.rotation(phone, "x", 4)
	w.mustCommit(phone, "x")
	change := func(id, data string, revision vault.Revision) pep.Publish {
		op := pep.Publish{Node: "notes", Items: []pep.Item{sealed(4, id, data)}}
		return expecting(op, held, pep.Expected{ID: id, Revision: revision})
	}
	_, err := w.ask(laptop, change("a", "mine", 9))
	refused(t, err, pep.ErrRevisionMismatch)
	w.must(laptop, change("a", "mine", 2))
	w.must(laptop, change("a", "mine", 2)) // a repeat
	_, err = w.ask(laptop, change("a", "again", 2))
	refused(t, err, pep.ErrRevisionMismatch)
	w.must(phone, pep.Publish{Node: "notes", Items: []pep.Item{sealed(4, "b", "a later save")}})
	_, err = w.ask(laptop, change("b", "mine", 3))
	refused(t, err, pep.ErrRevisionMismatch)
}

// One of two devices wins, the other is told, and the vault is never mixed.
func TestTwoDevicesRotateToTheSameVersion(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.must(laptop, publish("a", "b"))
	held := w.cursor()
	w.rotation(laptop, "one", 4)
	w.begin(phone, "two", 4)
	w.must(phone, staging("two", held, sealed(4, "a", "other key"), sealed(4, "b", "other key")))
	w.must(laptop, pep.CommitBatch{ID: "one", Cursor: held})
	won := []string{"a=a under 4", "b=b under 4"}
	_, err := w.ask(phone, pep.CommitBatch{ID: "two", Cursor: held})
	w.stale(err, pep.StateItem{ID: "a", Revision: 4}, pep.StateItem{ID: "b", Revision: 5})
	equal(t, "contents", w.contents(phone, "notes"), won)

	// Whoever tries again, with whatever staged, gets no further.
	w.must(phone, staging("two", w.cursor(), sealed(4, "a", "other key"), sealed(4, "b", "other key")))
	_, err = w.commit(phone, "two")
	refused(t, err, pep.ErrBadRequest)
	_, err = w.ask(phone, pep.BeginBatch{Node: "notes", ID: "three", Cursor: w.cursor(), RotateTo: 4})
	refused(t, err, pep.ErrBadRequest)
	equal(t, "contents", w.contents(phone, "notes"), won)
	w.must(phone, pep.AbortBatch{ID: "two"})
	w.rotation(phone, "three", 5)
	w.mustCommit(phone, "three")
}

func TestRotationNeedsEveryRecord(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.must(laptop, publish("a", "b", "c"))
	w.begin(laptop, "x", 4)
	now := w.cursor()
	w.must(laptop, staging("x", now, sealed(4, "a", "new"), sealed(5, "d", "new")))
	_, err := w.ask(laptop, staging("x", now, sealed(3, "b", "new")))
	refused(t, err, pep.ErrKeyVersionTooLow)
	_, err = w.commit(laptop, "x")
	w.stale(err, pep.StateItem{ID: "d"}, pep.StateItem{ID: "b", Revision: 3}, pep.StateItem{ID: "c", Revision: 4})
	w.must(laptop, staging("x", now, sealed(4, "b", "new"), sealed(4, "d", "new")))
	w.must(laptop, removing("x", now, "c"))
	w.must(phone, publish("a")) // meanwhile
	_, err = w.commit(laptop, "x")
	w.stale(err, pep.StateItem{ID: "a", Revision: 5})
	w.must(laptop, staging("x", w.cursor(), sealed(4, "a", "newer")))
	w.mustCommit(laptop, "x")
	equal(t, "contents", w.contents(laptop, "notes"), []string{"b=new", "a=newer", "d=new"})
}

// The floor may rise by the configuration, too, after a batch was begun.
func TestFloorAtCommit(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.must(laptop, publish("a"))
	w.begin(laptop, "plain", 0)
	w.begin(laptop, "rotation", 4)
	now := w.cursor()
	w.must(laptop, staging("plain", now, sealed(3, "b", "x")))
	w.must(laptop, staging("rotation", now, sealed(4, "a", "x")))
	w.must(laptop, pep.Configure{Node: "notes", Form: pep.Form{Type: pep.FormConfig, Fields: []pep.Field{
		{Name: "x-pepvault-key-version-floor", Values: []string{"4"}},
	}}})
	_, err := w.commit(laptop, "plain")
	refused(t, err, pep.ErrKeyVersionTooLow)
	_, err = w.commit(laptop, "rotation")
	refused(t, err, pep.ErrBadRequest)
	equal(t, "contents", w.contents(laptop, "notes"), []string{"a=data of a"})
}

func TestRotationOfAnEmptyVault(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.here(laptop)
	w.must(laptop, pep.Create{Node: "notes"})
	w.must(laptop, pep.Subscribe{Node: "notes", JID: laptop})
	w.begin(laptop, "x", 4)
	out := w.mustCommit(laptop, "x")
	event := out.Notices[0].Event
	if event.Config == nil || event.Batch || event.State.Cursor != w.cursor() {
		t.Errorf("event %+v", event)
	}
	equal(t, "floor", w.vault(laptop, "notes").Config.KeyVersionFloor, uint32(4))
}

func TestEmptyBatch(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.must(laptop, publish("a"))
	w.begin(laptop, "x", 0)
	now := w.cursor()
	out := w.mustCommit(laptop, "x")
	state := out.Answer.(pep.Committed).State
	equal(t, "state", []string{state.Previous, state.Cursor, w.cursor()}, []string{now, now, now})
	equal(t, "notices", len(out.Notices), 0)
}

// many records in a vault, and as many in a batch.
func wide(o *pep.Options) {
	o.Limits.Records, o.BatchRecords = 100, 100
	o.Limits.AccountBytes, o.Limits.StagedBytes, o.Limits.RecordBytes = 1<<30, 1<<30, 50_000
}

func TestMassChangeIsConfirmed(t *testing.T) {
	t.Parallel()
	ids := func(n int) (list []string) {
		for i := range n {
			list = append(list, fmt.Sprint(i))
		}
		return list
	}
	for _, tt := range []struct {
		name          string
		records, gone int
		asks          bool
	}{
		{"all of few", 8, 8, false},
		{"all of nine", 9, 9, true},
		{"nine tenths", 20, 18, false},
		{"more", 20, 19, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, wide)
			w.must(laptop, publish(ids(tt.records)...))
			check := func(op pep.Op) {
				t.Helper()
				_, err := w.ask(laptop, op)
				var refusal *pep.Refusal
				switch asked := errors.As(err, &refusal); {
				case asked != tt.asks, !asked && err != nil:
					t.Fatalf("%T: %v", op, err)
				case asked && (refusal.Err != pep.ErrConfirmRequired || refusal.Records != tt.gone):
					t.Errorf("%T: %v of %d records", op, err, refusal.Records)
				}
			}
			w.begin(laptop, "x", 0)
			w.must(laptop, removing("x", w.cursor(), ids(tt.gone)...))
			now := w.cursor()
			if tt.asks {
				check(pep.CommitBatch{ID: "x", Cursor: now})
				check(pep.Retract{Node: "notes", IDs: ids(tt.gone)})
				equal(t, "cursor", w.cursor(), now)
				w.must(laptop, pep.CommitBatch{ID: "x", Cursor: now, Confirm: true})
				w.must(laptop, publish(ids(tt.records)...))
				w.must(laptop, pep.Retract{Node: "notes", IDs: ids(tt.gone), Confirm: true})
			} else {
				check(pep.CommitBatch{ID: "x", Cursor: now})
				w.must(laptop, publish(ids(tt.records)...))
				check(pep.Retract{Node: "notes", IDs: ids(tt.gone)})
			}
			equal(t, "left", len(w.contents(laptop, "notes")), tt.records-tt.gone)
		})
	}
}

// A batch that no stanza has room for is told in bounds, and is no reason to
// refuse it.
func TestLargeBatchIsTold(t *testing.T) {
	t.Parallel()
	w := newWorld(t, wide)
	w.here(laptop)
	w.must(laptop, publish("a"))
	w.must(laptop, pep.Subscribe{Node: "notes", JID: laptop})
	w.begin(laptop, "x", 0)
	long := strings.Repeat("&", 400)
	for i := range 60 {
		w.must(laptop, staging("x", w.cursor(), item(fmt.Sprint(i, long), strings.Repeat("y", 3000))))
	}
	out := w.mustCommit(laptop, "x")
	event := out.Notices[0].Event
	if !event.Bare || len(event.Changes) != 60 || event.Changes[0].Payload.Data != nil {
		t.Errorf("bare: %v, %d changes", event.Bare, len(event.Changes))
	}
	size := 0
	for _, i := range event.State.Items {
		size += len(i.ID) * 6
	}
	if n := len(event.State.Items); n == 0 || n == 60 || size > 100_000 {
		t.Errorf("the state names %d records in %d bytes", n, size)
	}
}
