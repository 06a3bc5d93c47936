package device

import (
	"testing"

	"pepvault/pep"
)

// Histories that ended badly when TestReplicas found them, told as traces: what a
// seed draws changes with the world.

// A rotation seals what an ended history held; in the next one another record
// has the same revision.
func TestFoundSealsOfAnEndedHistory(t *testing.T) {
	trace{
		tell: func(s *story) {
			phone, laptop := s.device("phone", true), s.device("laptop", true)
			phone.saves("a", "old")
			phone.comes()
			phone.rotate(2)
			phone.tend() // all is sealed
			phone.goes()
			s.does(pep.Delete{Node: node})
			s.deleted = true
			s.forget(phone.records)
			laptop.saves("a", "new")
			laptop.comes()
			phone.comes()
			s.ends("a=new#2phone-1")
		},
	}.test(t)
}

// What is repeated after a lost answer is sealed anew before its second answer
// comes, and something stands on it.
func TestFoundRepeatAcrossARotation(t *testing.T) {
	trace{
		needs: []rules{followRotation},
		tell: func(s *story) {
			phone, laptop := s.device("phone", true), s.device("laptop", true)
			laptop.saves("b", "0")
			laptop.comes()
			phone.comes()
			phone.saves("a", "1")
			phone.asks()
			phone.saves("a", "2")
			phone.goes()
			phone.connect()
			phone.asks() // the same; the answer is slow
			laptop.rests()
			laptop.rotate(2)
			laptop.rests()
			phone.isAnswered()
			phone.rests()
			phone.keepsBoth()
			s.ends("a=2#2laptop-1 b=0#2laptop-1")
		},
	}.test(t)
}

// The answer to begin is lost, and then the batch can't be made any more: it may
// not hold one of the account's places.
func TestFoundBatchBegunUnheard(t *testing.T) {
	trace{
		tell: func(s *story) {
			phone := s.device("phone", true)
			phone.saves("a", "1")
			phone.comes()
			if !phone.Together("batch", []Change{{ID: "a", KeyVersion: 1, Payload: s.token()}, {ID: "b", KeyVersion: 1, Payload: s.token()}}) {
				s.fault("no batch begins")
			}
			phone.asks()
			phone.goes()
			s.does(pep.Publish{Node: node, Items: []pep.Item{item("a", 1, "2")}})
			phone.comes()
			phone.keepsBoth("a: v1 / 2", "b: v2 / -")
			for _, id := range []string{"one", "two"} { // there is room for two
				s.does(pep.BeginBatch{Node: node, ID: id, Cursor: s.cursor()})
			}
			s.ends("a=2")
		},
	}.test(t)
}

// An older file comes back, with a part of what is staged: no part of a batch is
// committed.
func TestFoundBatchHalfForgotten(t *testing.T) {
	trace{
		needs: []rules{beginAnew},
		tell: func(s *story) {
			phone := s.device("phone", true)
			phone.StageBy(1)
			phone.saves("a", "1")
			phone.comes()
			phone.Together("batch", []Change{{ID: "b", KeyVersion: 1, Payload: s.token()}, {ID: "c", KeyVersion: 1, Payload: s.token()}})
			phone.steps(2) // begin, and the first piece
			s.saved = s.store.model.Clone()
			phone.asks()
			phone.isAnswered()
			s.returns(func() { s.store.putBack(s.saved, false) })
			phone.connect()
			for i := 0; i < 20 && phone.batch != nil; i++ {
				phone.asks()
				phone.isAnswered()
				if n := len(s.contents()); n != 1 && n != 3 {
					s.fault("half of the batch is there")
					return
				}
			}
			s.ends("a=1 b=v1 c=v2")
		},
	}.test(t)
}

// The vault is deleted, and made anew, within a pass that found its history lost:
// the new one's revisions say nothing about what was shared with the lost one.
func TestFoundDeletedWithinALostPass(t *testing.T) {
	trace{
		needs: []rules{rememberLost},
		tell: func(s *story) {
			phone := s.device("phone", true)
			phone.PageBy(1)
			phone.saves("a", "1")
			phone.comes()
			s.saved = s.store.model.Clone()
			phone.saves("a", "2")
			phone.rests()
			s.byHand = true
			s.restore()
			s.does(pep.Publish{Node: node, Items: []pep.Item{item("b", 1, "3"), item("c", 1, "4")}})
			phone.connect()
			phone.asks()
			phone.isAnswered() // the first page
			s.does(pep.Delete{Node: node})
			s.deleted = true
			s.does(pep.Publish{Node: node, Items: []pep.Item{item("a", 1, "5")}})
			phone.rests()
			phone.keepsBoth("a: 2 / 5")
			s.ends("a=5")
		},
	}.test(t)
}

// The same, and the device crashes in the pass that follows the deletion: it keeps
// what it knew of the lost history.
func TestFoundCrashBehindALostPass(t *testing.T) {
	trace{
		needs: []rules{rememberLost},
		crashes: map[string]func(*actor){
			"forgets that a history was lost": func(a *actor) { a.kept.Lost = false },
		},
		tell: func(s *story) {
			phone := s.device("phone", true)
			phone.saves("a", "1")
			phone.comes()
			s.saved = s.store.model.Clone()
			phone.saves("a", "2")
			phone.rests()
			s.byHand = false
			s.restore()
			s.does(pep.Publish{Node: node, Items: []pep.Item{item("b", 1, "3"), item("c", 1, "4")}})
			phone.connect()
			phone.steps(1) // the first page
			s.does(pep.Delete{Node: node})
			s.deleted = true
			s.does(pep.Publish{Node: node, Items: []pep.Item{item("a", 1, "5")}})
			s.does(pep.Publish{Node: node, Items: []pep.Item{item("d", 1, "6")}})
			phone.steps(1) // the first page of another pass
			phone.keep()
			phone.crashes()
			phone.comes()
			phone.keepsBoth("a: 2 / 5")
			s.ends("a=5 d=6")
		},
	}.test(t)
}

// The vault is deleted while a rotation's commit is on its way: what was sealed
// in the history that has ended, is of no record of the next one.
func TestFoundCommitAcrossADeletion(t *testing.T) {
	trace{
		tell: func(s *story) {
			phone, laptop := s.device("phone", true), s.device("laptop", true)
			phone.saves("a", "1")
			phone.comes()
			phone.rotate(2)
			phone.tend()
			phone.steps(2) // begin, and all that is staged
			s.does(pep.Delete{Node: node})
			s.deleted = true
			phone.asks() // to commit
			phone.hears()
			phone.isAnswered()
			laptop.saves("a", "2")
			laptop.comes()
			phone.rests()
			phone.tend()
			s.ends("a=2#2phone-1")
		},
	}.test(t)
}

// An older file comes back before a device has read what its batch made. Its own
// cursor is of the older file too, so no sync says that something was lost.
func TestFoundCommittedBatchTakenBack(t *testing.T) {
	trace{
		tell: func(s *story) {
			phone := s.device("phone", true)
			phone.StageBy(0)
			phone.saves("a", "1")
			phone.comes()
			phone.Together("batch", []Change{{ID: "a", KeyVersion: 1, Payload: s.token()}, {ID: "b", KeyVersion: 1, Payload: s.token()}})
			s.saved = s.store.model.Clone()
			phone.steps(3) // begin, stage, commit
			s.returns(func() { s.store.putBack(s.saved, false) })
			phone.comes()
			phone.keepsBoth("a: v1 / 1", "b: v2 / -")
			s.ends("a=1")
		},
	}.test(t)
}

// An older file comes back without what was committed, and somebody writes one of
// its records anew, who knew nothing of the batch: that is no change of it.
func TestFoundCommittedBatchTakenBackAndWritten(t *testing.T) {
	trace{
		tell: func(s *story) {
			phone := s.device("phone", true)
			phone.StageBy(0)
			phone.saves("a", "1")
			phone.comes()
			phone.Together("batch", []Change{{ID: "a", KeyVersion: 1, Payload: s.token()}, {ID: "b", KeyVersion: 1, Payload: s.token()}})
			s.saved = s.store.model.Clone()
			phone.steps(3) // begin, stage, commit
			s.returns(func() { s.store.putBack(s.saved, false) })
			s.does(pep.Publish{Node: node, Items: []pep.Item{item("b", 1, "2")}})
			phone.comes()
			phone.keepsBoth("a: v1 / 1", "b: v2 / 2")
			s.ends("a=1 b=2")
		},
	}.test(t)
}

// A staged change is replaced, and then an older file comes back that has the
// first one: it is not committed in the place of the second.
func TestFoundStagedChangeTakenBack(t *testing.T) {
	trace{
		needs: []rules{beginAnew},
		tell: func(s *story) {
			phone := s.staging()
			s.saved = s.store.model.Clone()
			phone.saves("b", "2")
			phone.steps(1)
			s.returns(func() { s.store.putBack(s.saved, false) })
			phone.comes()
			s.ends("a=1 b=2 c=v2")
		},
	}.test(t)
}

// The answer to a commit is lost and how the batch ended is forgotten; what is
// saved then stands on what the batch may have made.
func TestFoundSaveBehindAForgottenCommit(t *testing.T) {
	trace{
		tell: func(s *story) {
			phone := s.staging()
			phone.asks() // to commit
			phone.goes()
			s.dayPasses()
			phone.connect()
			phone.asks()
			phone.isAnswered() // there is no such batch
			phone.saves("b", "2")
			phone.rests()
			phone.keepsBoth()
			s.ends("a=1 b=2 c=v2")
		},
	}.test(t)
}

// A rewritten batch is committed, the answer is lost, and somebody removes one of
// its records: what was saved behind another one stands on that.
func TestFoundSaveBehindAHalfSeenBatch(t *testing.T) {
	trace{
		tell: func(s *story) {
			phone := s.staging()
			phone.saves("b", "2")
			phone.steps(1)
			phone.asks() // to commit
			phone.saves("b", "3")
			phone.goes()
			s.does(pep.Retract{Node: node, IDs: []string{"c"}})
			phone.comes()
			phone.keepsBoth("c: v2 / -")
			s.ends("a=1 b=3")
		},
	}.test(t)
}

// Somebody removes what a batch has made before the device has read it: nothing was
// taken back.
func TestFoundRemovalBehindACommit(t *testing.T) {
	trace{
		tell: func(s *story) {
			phone := s.staging()
			phone.steps(1) // commit
			s.does(pep.Retract{Node: node, IDs: []string{"c"}})
			phone.rests()
			phone.ended(BatchMade)
			phone.keepsBoth()
			s.ends("a=1 b=v1")
		},
	}.test(t)
}

// A rotation is committed, and before the device has read it an older file comes
// back, or all records are removed.
func TestFoundRotationBehindItsCommit(t *testing.T) {
	for name, after := range map[string]struct {
		comes func(s *story, phone *actor)
		end   BatchEnd
		want  string
	}{
		"an older file": {end: BatchLost, want: "a=1", comes: func(s *story, phone *actor) {
			s.returns(func() { s.store.putBack(s.saved, false) })
			phone.comes()
		}},
		"all removed": {end: BatchMade, comes: func(s *story, phone *actor) {
			s.forget(phone.records) // whoever uses the tool knows
			s.does(pep.Retract{Node: node, IDs: []string{"a"}})
			phone.rests()
		}},
	} {
		t.Run(name, func(t *testing.T) {
			trace{
				tell: func(s *story) {
					phone := s.device("phone", true)
					phone.saves("a", "1")
					phone.comes()
					s.saved = s.store.model.Clone()
					phone.rotate(2)
					phone.tend()
					phone.steps(3) // begin, stage, commit
					after.comes(s, phone)
					phone.ended(after.end)
					s.ends(after.want)
				},
			}.test(t)
		})
	}
}

// The vault is deleted and made again while the commit of a batch is on its way. Its
// records have the revisions of the old ones, and are others all the same.
func TestFoundBatchAcrossADeletion(t *testing.T) {
	trace{
		needs: []rules{carryBases},
		tell: func(s *story) {
			phone, laptop := twoRecords(s)
			laptop.goes()
			phone.together()
			phone.StageBy(0)
			phone.steps(2)
			s.command(pep.Delete{Node: node})
			s.does(pep.Publish{Node: node, Items: []pep.Item{item("a", 1, "5")}})
			s.does(pep.Publish{Node: node, Items: []pep.Item{item("b", 1, "6")}})
			phone.asks() // to commit
			for range 3 {
				phone.hears()
			}
			phone.isAnswered()
			phone.rests()
			phone.keepsBoth("a: 3 / 5", "b: 4 / 6")
			s.ends("a=5 b=6")
		},
	}.test(t)
}

// A first answer comes late, of a vault that is deleted and made again meanwhile:
// what was saved behind it does not stand on a record of that revision in the new
// one, though a rotation has sealed that anew.
func TestFoundSaveBehindAVaultMadeAgain(t *testing.T) {
	for name, knows := range map[string]bool{"the device knew of no vault": false, "it knew of the deleted one": true} {
		t.Run(name, func(t *testing.T) {
			trace{
				needs: []rules{keepBoth},
				tell: func(s *story) {
					phone, laptop := s.device("phone", true), s.device("laptop", true)
					again := []pep.Item{item("a", 1, "3")}
					if knows {
						s.does(pep.Publish{Node: node, Items: []pep.Item{item("b", 1, "0")}})
						again = append([]pep.Item{item("b", 1, "4")}, again...)
					}
					phone.comes()
					phone.saves("a", "1")
					phone.asks()
					phone.goes() // the answer is lost
					phone.connect()
					phone.asks() // the same; the answer is slow
					phone.saves("a", "2")
					s.command(pep.Delete{Node: node})
					s.kept["2"] = true // nobody who saw it gave it up
					s.does(pep.Publish{Node: node, Items: again})
					laptop.comes()
					laptop.rotate(2)
					laptop.rests()
					phone.in = nil
					phone.isAnswered()
					phone.rests()
					phone.keepsBoth("a: 2 / 3#2laptop-1")
					s.ends(inWords(s.contents()))
				},
			}.test(t)
		})
	}
}

// steps has the device ask n times, and be answered.
func (a *actor) steps(n int) {
	for range n {
		a.asks()
		a.isAnswered()
	}
}

// staging is a device of a vault with a=1 that has begun a batch, b=v1 and c=v2,
// and staged all of it.
func (s *story) staging() *actor {
	a := s.device("phone", true)
	a.StageBy(0)
	a.saves("a", "1")
	a.comes()
	a.Together("batch", []Change{{ID: "b", KeyVersion: 1, Payload: s.token()}, {ID: "c", KeyVersion: 1, Payload: s.token()}})
	a.steps(2)
	return a
}
