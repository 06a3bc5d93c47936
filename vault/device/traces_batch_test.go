package device

import (
	"fmt"
	"slices"
	"testing"

	"pepvault/pep"
	"pepvault/vault"
)

// Traces about batches and rotations as the service has them, whatever the
// device does (PROTOCOL §8, §9).

// staged has the tool begin a batch and stage items in it, with the state that
// the vault has now.
func (s *story) staged(id string, rotateTo uint32, items ...pep.Item) {
	s.does(pep.BeginBatch{Node: node, ID: id, Cursor: s.cursor(), RotateTo: rotateTo})
	s.does(pep.Publish{Node: node, Items: items, Batch: &pep.BatchRef{ID: id, Cursor: s.cursor()}})
}

// stale holds that a commit is refused because of these records.
func (s *story) stale(id string, want ...string) {
	refusal := s.refuses("stale", pep.CommitBatch{ID: id, Cursor: s.cursor()})
	var got []string
	for _, item := range refusal.Items {
		got = append(got, item.ID)
	}
	if !slices.Equal(got, want) {
		s.fault("the commit of %s names %q, want %q", id, got, want)
	}
}

// obliging takes it that whatever is staged was staged just now.
type obliging struct{ vault.Tx }

func (t obliging) Staged(key vault.BatchKey) ([]vault.Staged, error) {
	staged, err := t.Tx.Staged(key)
	for i := range staged {
		staged[i].Held = 1 << 40
	}
	return staged, err
}

var forgetsWhatWasHeld = map[string]meddling{
	"forgets with what a change was staged": {disk: func(tx vault.Tx) vault.Tx { return obliging{tx} }},
}

// A record is saved while a change of it is staged: the commit may not undo
// that.
func TestTraceStagedOvertakenBySave(t *testing.T) {
	trace{
		traps: forgetsWhatWasHeld,
		tell: func(s *story) {
			phone := s.device("phone", true)
			phone.saves("a", "1")
			phone.saves("b", "2")
			phone.comes()
			s.staged("batch", 0, item("a", 1, "3"), item("b", 1, "4"))
			phone.saves("a", "5")
			phone.rests()
			s.stale("batch", "a")
			phone.rests()
			phone.holds("a=5 b=2") // nothing of it, not even b
			s.does(pep.Unstage{ID: "batch", IDs: []string{"a"}})
			s.does(pep.CommitBatch{ID: "batch", Cursor: s.cursor()})
			s.ends("a=5 b=4")
		},
	}.test(t)
}

// A record is removed while a change of it is staged: the commit may not bring
// it back.
func TestTraceStagedOvertakenByDeletion(t *testing.T) {
	trace{
		traps: forgetsWhatWasHeld,
		tell: func(s *story) {
			phone := s.device("phone", true)
			phone.saves("a", "1")
			phone.saves("b", "2")
			phone.comes()
			s.staged("batch", 0, item("a", 1, "3"), item("b", 1, "4"))
			phone.removes("a")
			phone.rests()
			s.stale("batch", "a")
			s.does(pep.Unstage{ID: "batch", IDs: []string{"a"}})
			s.does(pep.CommitBatch{ID: "batch", Cursor: s.cursor()})
			s.ends("b=4")
		},
	}.test(t)
}

// withoutPruned takes it that no removal was ever forgotten.
type withoutPruned struct{ vault.Tx }

func (t withoutPruned) Vault(key vault.Key) (vault.Vault, error) {
	v, err := t.Tx.Vault(key)
	v.Pruned = 0
	return v, err
}

// A record is removed while a change of it is staged, and then that is
// forgotten: nothing says any more that the record was ever there.
func TestTraceStagedTombstonePruned(t *testing.T) {
	trace{
		traps: map[string]meddling{
			"forgets that it has forgotten": {disk: func(tx vault.Tx) vault.Tx { return withoutPruned{tx} }},
		},
		tell: func(s *story) {
			phone := s.device("phone", true)
			phone.saves("a", "1")
			phone.saves("b", "2")
			phone.comes()
			s.staged("batch", 0, item("a", 1, "3"))
			phone.removes("a")
			phone.rests()
			s.removals()
			s.stale("batch", "a")
			s.does(pep.AbortBatch{ID: "batch"})
			s.ends("b=2")
		},
	}.test(t)
}

// Two devices rotate to the same version, each with a key of its own. One of
// them does, with all of its records; the other one can't any more.
func TestTraceTwoRotationsToOneVersion(t *testing.T) {
	for _, loser := range []string{"begun", "staged"} {
		t.Run("the loser has "+loser, func(t *testing.T) {
			trace{
				traps: map[string]meddling{
					"takes rotations for batches": {request: func(_ *story, op pep.Op) pep.Op {
						if begin, is := op.(pep.BeginBatch); is {
							begin.RotateTo = 0
							return begin
						}
						return op
					}},
				},
				tell: func(s *story) {
					phone := s.device("phone", true)
					phone.saves("a", "1")
					phone.saves("b", "2")
					phone.comes()
					s.staged("one", 2, item("a", 2, "1 under one"), item("b", 2, "2 under one"))
					s.does(pep.BeginBatch{Node: node, ID: "other", Cursor: s.cursor(), RotateTo: 2})
					if loser == "staged" {
						s.does(pep.Publish{
							Node: node, Batch: &pep.BatchRef{ID: "other", Cursor: s.cursor()},
							Items: []pep.Item{item("a", 2, "1 under other"), item("b", 2, "2 under other")},
						})
					}
					s.does(pep.CommitBatch{ID: "one", Cursor: s.cursor()})
					s.stale("other", "a", "b")
					s.does(pep.Publish{
						Node: node, Batch: &pep.BatchRef{ID: "other", Cursor: s.cursor()},
						Items: []pep.Item{item("a", 2, "1 under other"), item("b", 2, "2 under other")},
					})
					s.refuses("bad-request", pep.CommitBatch{ID: "other", Cursor: s.cursor()})
					s.refuses("bad-request", pep.BeginBatch{Node: node, ID: "again", Cursor: s.cursor(), RotateTo: 2})
					s.ends("a=1 under one b=2 under one")
				},
			}.test(t)
		})
	}
}

// forgetful does not remember how a batch ended.
type forgetful struct{ vault.Tx }

func (t forgetful) EndBatch(key vault.BatchKey, _ vault.BatchOutcome) error { return t.DropBatch(key) }

// The answer to a commit is lost. Whoever repeats it is told the same, and
// nothing is done twice, though others have gone on meanwhile.
func TestTraceLostCommitAnswer(t *testing.T) {
	trace{
		traps: map[string]meddling{
			"forgets how a batch ended": {disk: func(tx vault.Tx) vault.Tx { return forgetful{tx} }},
		},
		tell: func(s *story) {
			phone := s.device("phone", true)
			phone.saves("a", "1")
			phone.comes()
			s.staged("batch", 0, item("a", 1, "2"), item("b", 1, "3"))
			commit := pep.CommitBatch{ID: "batch", Cursor: s.cursor()}
			lost := s.does(commit)
			phone.rests()
			phone.saves("a", "4")
			phone.rests()
			s.returns(s.store.restart)
			if again := s.does(commit); fmt.Sprint(again) != fmt.Sprint(lost) {
				s.fault("told %v, then %v", lost, again)
			}
			s.ends("a=4 b=3")
		},
	}.test(t)
}

// lasting does not forget what a rotation sealed anew, whatever is written.
type lasting struct{ vault.Tx }

func (t lasting) Put(key vault.Key, r vault.Record) (vault.Revision, error) {
	heads, err := t.Heads(key, []string{r.ID})
	if err != nil {
		return 0, err
	}
	if r.RotatedFrom == 0 {
		r.RotatedFrom = heads[0].RotatedFrom
	}
	return t.Tx.Put(key, r)
}

// A rotation seals a record anew: who relied on the old seal may go on, but
// not any more once somebody has written.
func TestTraceRotatedFromAfterSave(t *testing.T) {
	trace{
		traps: map[string]meddling{
			"remembers the old seal for ever": {disk: func(tx vault.Tx) vault.Tx { return lasting{tx} }},
		},
		tell: func(s *story) {
			phone := s.device("phone", true)
			phone.saves("a", "1")
			phone.comes()
			before := phone.records["a"].Revision
			relies := func(cursor, text string) pep.Publish {
				expect := &pep.Expect{Cursor: cursor, Items: []pep.Expected{{ID: "a", Revision: before}}}
				return pep.Publish{Node: node, Items: []pep.Item{item("a", 2, text)}, Expect: expect}
			}
			held := s.cursor()
			s.commits("rotation", 2, item("a", 2, "1 anew"))
			s.does(relies(held, "2"))
			for _, cursor := range []string{held, s.cursor()} {
				if refusal := s.refuses("revision-mismatch", relies(cursor, "3")); len(refusal.Items) != 1 {
					s.fault("the refusal names %v", refusal.Items)
				}
			}
			s.ends("a=2")
		},
	}.test(t)
}
