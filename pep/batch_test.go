package pep_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"pepvault/pep"
	"pepvault/vault"
)

// clock is a time that a test moves.
type clock struct{ now time.Time }

func (c *clock) at(o *pep.Options) {
	c.now = time.UnixMilli(1_700_000_000_000)
	o.Now = func() time.Time { return c.now }
}

// sealed is an item under a key version.
func sealed(keyVersion uint32, id, data string) pep.Item {
	i := item(id, data)
	i.KeyVersion = keyVersion
	return i
}

// begin opens a batch from the state that the vault has now.
func (w *world) begin(from, id string, rotateTo uint32) {
	w.t.Helper()
	w.must(from, pep.BeginBatch{Node: "notes", ID: id, Cursor: w.cursor(), RotateTo: rotateTo})
}

func staging(id, cursor string, items ...pep.Item) pep.Publish {
	return pep.Publish{Node: "notes", Items: items, Batch: &pep.BatchRef{ID: id, Cursor: cursor}}
}

func removing(id, cursor string, ids ...string) pep.Retract {
	return pep.Retract{Node: "notes", IDs: ids, Batch: &pep.BatchRef{ID: id, Cursor: cursor}}
}

func (w *world) commit(from, id string) (pep.Outcome, error) {
	w.t.Helper()
	return w.ask(from, pep.CommitBatch{ID: id, Cursor: w.cursor()})
}

func (w *world) mustCommit(from, id string) pep.Outcome {
	w.t.Helper()
	return w.must(from, pep.CommitBatch{ID: id, Cursor: w.cursor()})
}

// stale checks a refusal that names what has to be staged again.
func (w *world) stale(err error, want ...pep.StateItem) {
	w.t.Helper()
	var refusal *pep.Refusal
	if !errors.As(err, &refusal) || refusal.Err != pep.ErrStale {
		w.t.Fatalf("refused with %v, want ErrStale", err)
	}
	equal(w.t, "cursor", refusal.Cursor, w.cursor())
	equal(w.t, "stale", refusal.Items, want)
}

func TestBatchIsMadeAtOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.must(laptop, publish("a", "b"))
	previous := w.cursor()
	w.begin(laptop, "x", 0)
	w.must(laptop, staging("x", previous, item("a", "new"), item("c", "new")))
	w.must(phone, removing("x", previous, "b", "absent")) // any device of the account may go on
	w.must(laptop, staging("x", previous, item("z", "a mistake")))
	w.must(laptop, pep.Unstage{ID: "x", IDs: []string{"z", "y"}})
	equal(t, "contents while staged", w.contents(phone, "notes"), []string{"a=data of a", "b=data of b"})
	equal(t, "cursor while staged", w.cursor(), previous)

	committed := w.must(phone, pep.CommitBatch{ID: "x", Cursor: previous}).Answer
	equal(t, "contents", w.contents(phone, "notes"), []string{"a=new", "c=new"})
	want := pep.Committed{State: pep.State{Owner: "alice@localhost", Node: "notes", Previous: previous, Cursor: w.cursor()}}
	equal(t, "answer", committed, want)

	// What a sync from the state's previous brings is the whole batch.
	page := w.syncPage(pep.Sync{Cursor: previous})
	var ids []string
	for _, c := range page.Changes {
		ids = append(ids, c.ID)
	}
	equal(t, "changes since", ids, []string{"b", "a", "c"})
	equal(t, "cursor of the sync", page.Cursor, want.State.Cursor)
}

// The batch's state alone goes to devices that follow states, even for one
// record, so that nobody adopts it without content.
func TestBatchEvents(t *testing.T) {
	t.Parallel()
	for _, ids := range [][]string{{"c"}, {"a", "c"}} {
		w := newWorld(t, nil)
		w.must(laptop, publish("a", "b"))
		w.here(laptop, phone)
		w.announce(phone, alice, hashOne, pep.Announced{Nodes: []string{"notes"}, Sync: true})
		w.must(laptop, pep.Subscribe{Node: "notes", JID: laptop})
		w.begin(laptop, "x", 0)
		previous := w.cursor()
		for _, id := range ids {
			w.must(laptop, staging("x", previous, item(id, "new")))
		}
		out := w.mustCommit(laptop, "x")
		if len(out.Notices) != 2 {
			t.Fatalf("%d notices", len(out.Notices))
		}
		for _, n := range out.Notices {
			equal(t, "state only to "+n.To, n.StateOnly, n.To == phone)
			if len(n.Event.Changes) != len(ids) || len(n.Event.State.Items) != len(ids) || n.Event.State.Previous != previous {
				t.Errorf("event %+v", n.Event)
			}
		}
	}
}

func TestStagedRecordOvertakenByASave(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.must(laptop, publish("a", "b"))
	held := w.cursor()
	w.begin(laptop, "x", 0)
	w.must(laptop, staging("x", held, item("a", "mine"), item("b", "mine")))
	w.must(phone, pep.Publish{Node: "notes", Items: []pep.Item{item("a", "theirs")}})

	_, err := w.ask(laptop, pep.CommitBatch{ID: "x", Cursor: held})
	w.stale(err, pep.StateItem{ID: "a", Revision: 4})
	_, err = w.commit(laptop, "x") // a newer cursor alone is no way on
	w.stale(err, pep.StateItem{ID: "a", Revision: 4})
	equal(t, "contents", w.contents(laptop, "notes"), []string{"b=data of b", "a=theirs"})

	w.must(laptop, staging("x", w.cursor(), item("a", "merged"))) // the rest is staged still
	w.mustCommit(laptop, "x")
	equal(t, "contents", w.contents(laptop, "notes"), []string{"b=mine", "a=merged"})
}

func TestStagedRecordOvertakenByADeletion(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.must(laptop, publish("a", "b"))
	held := w.cursor()
	w.begin(laptop, "x", 0)
	w.must(laptop, staging("x", held, item("a", "mine"), item("b", "mine")))
	w.must(phone, pep.Retract{Node: "notes", IDs: []string{"a"}})
	_, err := w.commit(laptop, "x")
	w.stale(err, pep.StateItem{ID: "a", Revision: 4, Gone: true})
	w.must(laptop, pep.Unstage{ID: "x", IDs: []string{"a"}})
	w.mustCommit(laptop, "x")
	equal(t, "contents", w.contents(laptop, "notes"), []string{"b=mine"})
}

// A removal that is forgotten can't be told from none.
func TestStagedRecordWhoseTombstoneWasPruned(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.must(laptop, publish("a", "b"))
	held := w.cursor()
	w.begin(laptop, "x", 0)
	w.must(laptop, staging("x", held, item("a", "mine")))
	w.must(phone, pep.Retract{Node: "notes", IDs: []string{"a"}})
	for i := range 5 { // four tombstones are kept
		w.must(phone, publish(fmt.Sprint(i)))
		w.must(phone, pep.Retract{Node: "notes", IDs: []string{fmt.Sprint(i)}})
	}
	_, err := w.commit(laptop, "x")
	w.stale(err, pep.StateItem{ID: "a"})
	equal(t, "contents", w.contents(laptop, "notes"), []string{"b=data of b"})
	_, err = w.ask(laptop, pep.BeginBatch{Node: "notes", ID: "y", Cursor: pep.NoCursor})
	w.stale(err)
}

func TestCommitAfterAnyChange(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.must(laptop, publish("a", "b"))
	held := w.cursor()
	w.begin(laptop, "x", 0)
	w.must(laptop, staging("x", held, item("a", "mine")))
	w.must(phone, publish("b"))
	_, err := w.ask(laptop, pep.CommitBatch{ID: "x", Cursor: held})
	w.stale(err) // nothing to stage again
	w.mustCommit(laptop, "x")
	equal(t, "contents", w.contents(laptop, "notes"), []string{"b=data of b", "a=mine"})
	_, err = w.ask(laptop, pep.CommitBatch{ID: "x", Cursor: "x"})
	refused(t, err, vault.ErrBadCursor)
}

func TestBeginAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.must(laptop, publish("a"))
	op := pep.BeginBatch{Node: "notes", ID: "x", Cursor: w.cursor(), RotateTo: 4}
	first := w.must(laptop, op).Answer
	equal(t, "answer", first, pep.Begun{ID: "x", Expires: time.UnixMilli(1_700_003_600_000).UTC()})
	w.must(laptop, staging("x", w.cursor(), sealed(4, "a", "new")))
	w.must(phone, publish("b"))
	equal(t, "answer to a repeat, by another device of the account", w.must(phone, op).Answer, first)
	for _, other := range []pep.BeginBatch{
		{Node: "notes", ID: "x", Cursor: w.cursor()},
		{Node: "notes", ID: strings.Repeat("x", 65), Cursor: w.cursor()},
		{Node: "notes", ID: "", Cursor: w.cursor()},
	} {
		_, err := w.ask(laptop, other)
		refused(t, err, pep.ErrBadRequest)
	}
	_, err := w.ask(laptop, pep.BeginBatch{Node: "absent", ID: "y", Cursor: w.cursor()})
	refused(t, err, vault.ErrNoVault)
	w.begin(laptop, "y", 0)
	_, err = w.ask(laptop, pep.BeginBatch{Node: "notes", ID: "z", Cursor: w.cursor()})
	refused(t, err, pep.ErrTooManyBatches)
	w.must(laptop, pep.AbortBatch{ID: "x"})
	w.begin(laptop, "z", 0)
}

// The answer to a commit or an abort was lost.
func TestOutcomesAreRepeated(t *testing.T) {
	t.Parallel()
	var time1 clock
	w := newWorld(t, time1.at)
	w.must(laptop, publish("a"))
	w.begin(laptop, "x", 0)
	w.must(laptop, staging("x", w.cursor(), item("a", "new")))
	commit := pep.CommitBatch{ID: "x", Cursor: w.cursor()}
	first := w.must(laptop, commit).Answer
	w.must(phone, publish("a"))
	for range 2 {
		out := w.must(phone, commit)
		equal(t, "answer", out.Answer, first)
		equal(t, "notices", len(out.Notices), 0)
		equal(t, "contents", w.contents(laptop, "notes"), []string{"a=data of a"})
		w.restart()
	}
	for _, op := range []pep.Op{pep.AbortBatch{ID: "x"}, staging("x", w.cursor(), item("a", "x")), pep.Unstage{ID: "x", IDs: []string{"a"}}} {
		_, err := w.ask(laptop, op)
		refused(t, err, vault.ErrNoBatch)
	}
	w.begin(laptop, "y", 0)
	w.must(laptop, pep.AbortBatch{ID: "y"})
	w.must(laptop, pep.AbortBatch{ID: "y"})
	_, err := w.commit(laptop, "y")
	refused(t, err, vault.ErrNoBatch)
	time1.now = time1.now.Add(time.Hour)
	_, err = w.ask(laptop, commit)
	refused(t, err, vault.ErrNoBatch)
}

func TestBatchIsBoundToAccountAndVault(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.must(laptop, publish("a"))
	w.begin(laptop, "x", 0)
	grant := func(affiliation string) {
		w.must(laptop, pep.SetAffiliations{Node: "notes", Changes: []pep.AffiliationChange{{JID: "bob@localhost", Affiliation: affiliation}}})
	}
	grant("publisher")
	now := w.cursor()
	commit := pep.CommitBatch{ID: "x", Cursor: now}
	for _, op := range []pep.Op{commit, pep.AbortBatch{ID: "x"}, pep.Unstage{ID: "x", IDs: []string{"a"}}, staging("x", now, item("a", "x"))} {
		_, err := w.askOf(bob, "alice@localhost", op)
		refused(t, err, vault.ErrNoBatch)
		_, err = w.askOf(laptop, "bob@localhost", op)
		if err == nil {
			t.Errorf("%T went to another owner's vault", op)
		}
	}
	w.must(laptop, pep.Publish{Node: "tasks", Items: []pep.Item{item("a", "x")}})
	stray := staging("x", now, item("a", "x"))
	stray.Node = "tasks"
	_, err := w.ask(laptop, stray)
	refused(t, err, vault.ErrNoBatch)

	// A publisher may batch, under the same id, but not rotate.
	begin := pep.BeginBatch{Node: "notes", ID: "x", Cursor: now}
	askBob := func(op pep.Op) error {
		_, err := w.askOf(bob, "alice@localhost", op)
		return err
	}
	for _, op := range []pep.Op{begin, staging("x", now, item("a", "bob's")), commit} {
		if err := askBob(op); err != nil {
			t.Fatalf("%T: %v", op, err)
		}
	}
	equal(t, "contents", w.contents(laptop, "notes"), []string{"a=bob's"})
	begin.RotateTo = 9
	refused(t, askBob(begin), pep.ErrForbidden)

	// Who loses the right to write loses the batch.
	begin = pep.BeginBatch{Node: "notes", ID: "y", Cursor: w.cursor()}
	if err := askBob(begin); err != nil {
		t.Fatal(err)
	}
	grant("member")
	refused(t, askBob(pep.CommitBatch{ID: "y", Cursor: w.cursor()}), vault.ErrNoBatch)
	refused(t, askBob(staging("y", w.cursor(), item("a", "x"))), pep.ErrForbidden)
	refused(t, askBob(begin), pep.ErrForbidden)
}

func TestVaultMadeAgainHasNoBatch(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.must(laptop, publish("a"))
	held := w.cursor()
	w.begin(laptop, "x", 0)
	w.must(laptop, staging("x", held, item("a", "staged")))
	w.must(phone, pep.Delete{Node: "notes"})
	_, err := w.ask(laptop, pep.CommitBatch{ID: "x", Cursor: held})
	refused(t, err, vault.ErrNoBatch)
	w.must(phone, publish("a"))
	for _, cursor := range []string{held, w.cursor()} {
		_, err = w.ask(laptop, pep.CommitBatch{ID: "x", Cursor: cursor})
		refused(t, err, vault.ErrNoBatch)
	}
	_, err = w.ask(laptop, pep.BeginBatch{Node: "notes", ID: "y", Cursor: held})
	w.stale(err)
	w.begin(laptop, "y", 0)
	_, err = w.ask(laptop, staging("y", held, item("a", "x")))
	w.stale(err)
	equal(t, "contents", w.contents(laptop, "notes"), []string{"a=data of a"})
}

func TestBatchAcrossRestarts(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.must(laptop, publish("a", "b"))
	held := w.cursor()
	for _, op := range []pep.Op{
		pep.BeginBatch{Node: "notes", ID: "x", Cursor: held, RotateTo: 4},
		staging("x", held, sealed(4, "a", "new")),
		removing("x", held, "b"),
		staging("x", held, sealed(4, "c", "more")),
		pep.Unstage{ID: "x", IDs: []string{"c"}},
		pep.CommitBatch{ID: "x", Cursor: held},
		pep.CommitBatch{ID: "x", Cursor: held},
	} {
		w.restart()
		w.must(laptop, op)
	}
	w.restart()
	equal(t, "contents", w.contents(laptop, "notes"), []string{"a=new"})
	equal(t, "floor", w.vault(laptop, "notes").Config.KeyVersionFloor, uint32(4))
}
