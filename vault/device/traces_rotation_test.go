package device

import (
	"testing"

	"pepvault/pep"
	"pepvault/vault"
)

// Traces about batches and rotations of a device (PROTOCOL §7-9). A record under
// a key of its own says so: "content#key".

// twoRecords leaves two devices that hold the records a and b.
func twoRecords(s *story) (phone, laptop *actor) {
	phone, laptop = s.device("phone", true), s.device("laptop", true)
	laptop.saves("a", "1")
	laptop.saves("b", "2")
	laptop.comes()
	phone.comes()
	laptop.rests()
	return phone, laptop
}

// does has the device ask for so many steps and be answered.
func (a *actor) does(steps int) {
	for range steps {
		a.asks()
		a.isAnswered()
	}
}

// ended holds how the device's latest batch ended.
func (a *actor) ended(want BatchEnd) {
	if got := a.Ended().End; got != want {
		a.s.fault("the batch of %s ended as %d, want %d", a.sender.Resource, got, want)
	}
}

// A record is saved while it is staged under a new key: the rotation seals
// that one, and loses neither it nor the other one.
func TestTraceRotationOvertakenBySave(t *testing.T) {
	trace{
		needs: []rules{stageAgain},
		tell: func(s *story) {
			phone, laptop := twoRecords(s)
			phone.rotate(2)
			phone.does(2) // it begins, and stages a
			laptop.saves("a", "3")
			laptop.rests()
			phone.rests()
			phone.ended(BatchMade)
			s.ends("a=3#2phone-1 b=2#2phone-1")
		},
	}.test(t)
}

// commitsAnyhow takes a commit for one of a device that has heard of everything.
func commitsAnyhow(s *story, op pep.Op) pep.Op {
	if commit, is := op.(pep.CommitBatch); is {
		commit.Cursor = s.cursor()
		return commit
	}
	return op
}

// A record is removed while it is staged under a new key: the rotation does
// not bring it back.
func TestTraceRotationOvertakenByDeletion(t *testing.T) {
	trace{
		traps: map[string]meddling{
			"asks for nothing at a commit": {
				request: commitsAnyhow, disk: func(tx vault.Tx) vault.Tx { return obliging{tx} },
			},
		},
		tell: func(s *story) {
			phone, laptop := twoRecords(s)
			phone.rotate(2)
			phone.does(3) // it begins, and stages both
			laptop.removes("a")
			laptop.rests()
			phone.asks() // it commits, and has not heard of it
			phone.rests()
			phone.ended(BatchMade)
			s.ends("b=2#2phone-1")
		},
	}.test(t)
}

// Two devices have sealed the whole vault, each with a key of its own. One
// commits first: the other one takes what that has made, all of it.
func TestTraceTwoDevicesRotate(t *testing.T) {
	for _, knows := range []bool{true, false} {
		name := map[bool]string{true: "the loser has heard of it", false: "the loser commits too"}[knows]
		t.Run(name, func(t *testing.T) {
			trace{
				needs: []rules{takeWinner},
				tell: func(s *story) {
					phone, laptop := twoRecords(s)
					phone.rotate(2)
					laptop.rotate(2)
					phone.does(3)
					laptop.does(3)
					phone.does(1)
					if knows {
						laptop.hears()
					}
					laptop.asks()
					laptop.rests()
					phone.rests()
					phone.ended(BatchMade)
					laptop.ended(BatchLost)
					s.ends("a=1#2phone-1 b=2#2phone-1")
				},
			}.test(t)
		})
	}
}

// together has the device begin a batch that changes both records.
func (a *actor) together() {
	changes := []Change{
		{ID: "a", KeyVersion: 1, Payload: vault.Payload{Form: vault.Native, Data: []byte("3")}},
		{ID: "b", KeyVersion: 1, Payload: vault.Payload{Form: vault.Native, Data: []byte("4")}},
	}
	if !a.Together("both", changes) {
		a.s.fault("the batch can't begin")
	}
	delete(a.s.kept, "1")
	delete(a.s.kept, "2")
	a.s.kept["3"], a.s.kept["4"] = true, true
	a.keep()
}

// The answer to a commit is lost, and others go on from what it made. The
// device that repeats it learns that all was made, and takes nothing back.
func TestTraceDeviceLosesCommitAnswer(t *testing.T) {
	trace{
		needs: []rules{repeatSame},
		traps: map[string]meddling{
			"forgets how a batch ended": {disk: func(tx vault.Tx) vault.Tx { return forgetful{tx} }},
		},
		tell: func(s *story) {
			phone, laptop := twoRecords(s)
			phone.together()
			phone.does(3)
			phone.asks()
			phone.goes() // the answer is lost
			laptop.rests()
			laptop.holds("a=3 b=4")
			laptop.removes("a")
			laptop.saves("b", "5")
			laptop.rests()
			phone.comes()
			phone.ended(BatchMade)
			phone.keepsBoth()
			s.ends("b=5")
		},
	}.test(t)
}

// Of two changes that belong together one can't be made any more, since its
// record was saved or removed: none is made, and both are for a person.
func TestTraceBatchOvertaken(t *testing.T) {
	batch := func(s *story, laptopDoes func(laptop *actor)) (phone *actor) {
		phone, laptop := twoRecords(s)
		phone.together()
		phone.does(3)
		laptopDoes(laptop)
		phone.asks() // it commits, and has not heard of it
		phone.rests()
		phone.ended(BatchRefused)
		return phone
	}
	t.Run("by a save", func(t *testing.T) {
		trace{
			needs: []rules{asOne},
			tell: func(s *story) {
				phone := batch(s, func(laptop *actor) {
					laptop.saves("a", "5")
					laptop.rests()
				})
				phone.keepsBoth("a: 3 / 5", "b: 4 / 2")
				s.ends("a=5 b=2")
			},
		}.test(t)
	})
	t.Run("by a deletion that is forgotten", func(t *testing.T) {
		trace{
			needs: []rules{asOne},
			traps: map[string]meddling{
				"forgets that it has forgotten": {
					request: commitsAnyhow, disk: func(tx vault.Tx) vault.Tx { return withoutPruned{tx} },
				},
			},
			tell: func(s *story) {
				phone := batch(s, func(laptop *actor) {
					laptop.removes("a")
					laptop.rests()
					s.removals()
				})
				phone.keepsBoth("a: 3 / -", "b: 4 / 2")
				s.ends("b=2")
			},
		}.test(t)
	})
}

// A change was made before a rotation sealed its record anew: it counts, under
// the new key. But not any more once somebody has saved after the rotation.
func TestTraceChangeBeforeRotation(t *testing.T) {
	t.Run("nobody has saved since", func(t *testing.T) {
		trace{
			needs: []rules{followRotation, sealAgain},
			tell: func(s *story) {
				phone, laptop := twoRecords(s)
				phone.goes()
				phone.saves("a", "3")
				laptop.rotate(2)
				laptop.rests()
				phone.comes()
				phone.keepsBoth()
				s.ends("a=3#2laptop-1 b=2#2laptop-1")
			},
		}.test(t)
	})
	t.Run("somebody has saved since", func(t *testing.T) {
		trace{
			needs: []rules{keepBoth},
			traps: map[string]meddling{
				"remembers the old seal for ever": {disk: func(tx vault.Tx) vault.Tx { return lasting{tx} }},
			},
			tell: func(s *story) {
				phone, laptop := twoRecords(s)
				phone.goes()
				phone.saves("a", "3")
				laptop.rotate(2)
				laptop.rests()
				laptop.saves("a", "4")
				laptop.rests()
				phone.comes()
				phone.keepsBoth("a: 3 / 4#2laptop-1")
				s.ends("a=4#2laptop-1 b=2#2laptop-1")
			},
		}.test(t)
	})
}

// A restore goes back to before a rotation. A device holds records of both
// sides of it: it does not offer some under a key that the others are not under.
func TestTraceRotationUndoneByRestore(t *testing.T) {
	trace{
		needs: []rules{rotateTogether},
		tell: func(s *story) {
			s.byHand = false
			phone, laptop := twoRecords(s)
			s.saved = s.store.model.Clone()
			phone.rotate(2)
			phone.rests()
			phone.saves("c", "3")
			phone.rests()
			laptop.goes() // it has seen nothing of it
			s.restore()
			phone.comes()
			laptop.comes()
			s.ends("a=1#2phone-1 b=2#2phone-1 c=3#2phone-1")
		},
	}.test(t)
}

// A device crashes in the middle of a pass. A cursor inside it is worth nothing
// without what was seen before: the pass begins anew.
func TestTraceCrashInPass(t *testing.T) {
	trace{
		crashes: map[string]func(*actor){
			"keeps the cursor of a page, and not the page": func(a *actor) {
				a.kept.Cursor = a.request.Cursor
			},
			"keeps the page, and not that it is one of a pass": func(a *actor) {
				a.kept.Cursor = a.request.Cursor
				a.kept.Records = map[string]Record{}
				for _, c := range a.pass.changes {
					a.kept.Records[c.ID] = Record{Revision: c.Revision, KeyVersion: c.KeyVersion, Payload: c.Payload}
				}
			},
		},
		tell: func(s *story) {
			phone := awayTooLong(s)
			phone.isAnswered() // b is there
			phone.crashes()
			s.does(pep.Retract{Node: node, IDs: []string{"b"}})
			s.removals()
			phone.comes()
			phone.holds("c=c")
			s.ends("c=c")
		},
	}.test(t)
}

// A device crashes before it has kept that its new record was stored, and
// somebody who saw that removes it. The device repeats the request that it had
// kept, which undoes nothing.
func TestTraceCrashBeforeAnswerIsKept(t *testing.T) {
	trace{
		needs: []rules{keepBoth},
		crashes: map[string]func(*actor){
			"does not keep what it asks": func(a *actor) { a.kept.Request = Request{} },
		},
		tell: func(s *story) {
			phone, laptop := twoRecords(s)
			phone.saves("c", "3")
			phone.does(1)
			phone.crashes()
			laptop.rests()
			laptop.holds("a=1 b=2 c=3")
			laptop.removes("c")
			laptop.rests()
			phone.comes()
			phone.keepsBoth("c: 3 / -")
			s.ends("a=1 b=2")
		},
	}.test(t)
}

// syncs begins a session, and has the device ask until it is where the service
// is, and no more.
func (a *actor) syncs() {
	a.connect()
	for range 10 {
		if a.cursor == a.s.cursor() {
			return
		}
		a.does(1)
	}
	a.s.fault("%s is not where the service is", a.sender.Resource)
}

// Two devices have changed the same record under a new key, which the service
// loses by a restore. One rotates the vault again to offer its change. That
// change is no other seal of the record: the second device's one is not made of
// it, and both are for a person.
func TestTraceChangesBehindLostRotation(t *testing.T) {
	trace{
		needs: []rules{keepBoth},
		tell: func(s *story) {
			s.byHand = false
			phone, laptop := twoRecords(s)
			s.saved = s.store.model.Clone()
			phone.rotate(2)
			phone.rests()
			laptop.rests()
			phone.goes()
			laptop.goes()
			phone.saves("a", "3")
			laptop.saves("a", "4")
			s.restore()
			laptop.syncs()
			phone.comes()
			phone.holds("a=3#2phone-1 b=2#2phone-1")
			laptop.rests()
			laptop.keepsBoth("a: 4#2phone-1 / 3#2phone-1")
			s.ends("a=3#2phone-1 b=2#2phone-1")
		},
	}.test(t)
}
