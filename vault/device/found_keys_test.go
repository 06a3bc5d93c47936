package device

import (
	"testing"

	"pepvault/pep"
)

// What random histories found about key versions (see found_test.go).

// All records go, and others come that are rotated to the same key version with
// another key: what waits is sealed again.
func TestFoundKeyOfAnEmptiedVault(t *testing.T) {
	trace{
		needs: []rules{sealAgain},
		tell: func(s *story) {
			phone := s.device("phone", true)
			s.does(pep.Publish{Node: node, Items: []pep.Item{item("a", 2, "1#x")}})
			phone.comes()
			phone.goes()
			phone.saves("b", "2")
			s.does(pep.Retract{Node: node, IDs: []string{"a"}})
			s.does(pep.Publish{Node: node, Items: []pep.Item{item("c", 1, "3")}})
			s.commits("batch", 2, item("c", 2, "3#y"))
			phone.comes()
			phone.tend()
			s.ends("b=2#y c=3#y")
		},
	}.test(t)
}

// The same, so long ago that the removals are forgotten: of what a full pass shows,
// nothing is as it was.
func TestFoundKeyOfAVaultEmptiedLongAgo(t *testing.T) {
	trace{
		needs: []rules{sealAgain},
		tell: func(s *story) {
			phone := s.device("phone", true)
			s.does(pep.Publish{Node: node, Items: []pep.Item{item("a", 2, "1#x")}})
			phone.comes()
			phone.goes()
			phone.saves("b", "2")
			s.does(pep.Retract{Node: node, IDs: []string{"a"}})
			s.removals()
			s.does(pep.Publish{Node: node, Items: []pep.Item{item("c", 2, "3#y")}})
			phone.comes()
			s.ends("b=2#y c=3#y")
		},
	}.test(t)
}

// The same, and all of it is heard of as it happens.
func TestFoundKeyOfAVaultEmptiedMeanwhile(t *testing.T) {
	trace{
		needs: []rules{sealAgain},
		tell: func(s *story) {
			phone := s.device("phone", true)
			s.does(pep.Publish{Node: node, Items: []pep.Item{item("a", 2, "1#x")}})
			phone.comes()
			phone.saves("b", "2")
			s.does(pep.Retract{Node: node, IDs: []string{"a"}})
			s.does(pep.Publish{Node: node, Items: []pep.Item{item("c", 2, "3#y")}})
			phone.hears()
			phone.hears()
			phone.rests()
			s.ends("b=2#y c=3#y")
		},
	}.test(t)
}

// A vault has no records any more, and one change of a batch is replaced before the
// rest is made: all of it has one key version, and the vault takes no other one then.
func TestFoundBatchOfTwoKeyVersions(t *testing.T) {
	for name, empty := range map[string]func(s *story){
		"deleted":          func(s *story) { s.command(pep.Delete{Node: node}) },
		"all were removed": func(s *story) { s.does(pep.Retract{Node: node, IDs: []string{"a"}}) },
	} {
		t.Run(name, func(t *testing.T) {
			trace{
				needs: []rules{sealAgain},
				tell: func(s *story) {
					phone := s.device("phone", true)
					s.does(pep.Publish{Node: node, Items: []pep.Item{item("a", 2, "1#2x")}})
					phone.comes()
					phone.Together("batch", []Change{{ID: "b", KeyVersion: 2, Payload: s.token()}, {ID: "c", KeyVersion: 2, Payload: s.token()}})
					empty(s)
					phone.hears()
					phone.saves("b", "2")
					phone.rests()
					s.refuses("key-version-too-low", pep.Publish{Node: node, Items: []pep.Item{item("d", 1, "4")}})
					s.ends("b=2#2x c=v2#2x")
				},
			}.test(t)
		})
	}
}

// Somebody gives contents of two key versions for one batch.
func TestFoundBatchOfTwoKeyVersionsFromTheStart(t *testing.T) {
	trace{
		needs: []rules{sealAgain},
		tell: func(s *story) {
			phone := s.device("phone", true)
			s.does(pep.Create{Node: node})
			phone.comes()
			s.keys[2] = "2x"
			phone.Together("batch", []Change{{ID: "b", KeyVersion: 1, Payload: s.token()}, {ID: "c", KeyVersion: 2, Payload: item("c", 2, "v#2x").Payload}})
			phone.rests()
			s.refuses("key-version-too-low", pep.Publish{Node: node, Items: []pep.Item{item("d", 1, "4")}})
			s.ends("b=v1#2x c=v#2x")
		},
	}.test(t)
}

// The commit of a batch is refused, since the vault was deleted and made again under
// another key of the same version: the batch is sealed with that.
func TestFoundSealsOfARefusedCommit(t *testing.T) {
	trace{
		needs: []rules{sealAgain},
		tell: func(s *story) {
			phone := s.device("phone", true)
			phone.StageBy(0)
			s.does(pep.Publish{Node: node, Items: []pep.Item{item("a", 2, "1#2x")}})
			phone.comes()
			phone.Together("batch", []Change{{ID: "b", KeyVersion: 2, Payload: s.token()}, {ID: "c", KeyVersion: 2, Payload: s.token()}})
			phone.tend()
			phone.steps(2)
			s.command(pep.Delete{Node: node})
			s.does(pep.Publish{Node: node, Items: []pep.Item{item("a", 2, "3#2y")}})
			phone.asks() // to commit
			phone.hears()
			phone.hears()
			phone.isAnswered()
			phone.rests()
			s.ends("a=3#2y b=v1#2y c=v2#2y")
		},
	}.test(t)
}

// A device offers what a lost history had under a new key, into a vault that is
// empty again; another one still knows the vault with records under the old key.
func TestFoundNewKeyInAnEmptyVault(t *testing.T) {
	trace{
		needs: []rules{rotateTogether},
		tell: func(s *story) {
			s.byHand = false
			phone, laptop := s.device("phone", true), s.device("laptop", true)
			s.saved = s.store.model.Clone()
			phone.saves("a", "1")
			phone.comes()
			phone.rotate(2)
			phone.tend()
			phone.rests()
			s.restore()
			s.does(pep.Publish{Node: node, Items: []pep.Item{item("c", 1, "3")}})
			laptop.comes()
			laptop.saves("b", "2")
			s.does(pep.Retract{Node: node, IDs: []string{"c"}})
			phone.connect()
			phone.steps(2) // it syncs, and begins a rotation
			batch, _ := phone.Batch()
			phone.goes()
			phone.comes()
			if got, want := phone.Ended(), (BatchResult{ID: batch.ID, RotateTo: 2, End: BatchMade}); got != want {
				s.fault("the rotation ended as %+v, want %+v", got, want)
			}
			laptop.asks() // it has not heard of it
			laptop.rests()
			laptop.keepsBoth()
			s.ends("a=1#2phone-1 b=2#2phone-1")
		},
	}.test(t)
}

// A rotation of an empty vault is committed, and how it ended is forgotten: the
// contents say that it was made.
func TestFoundForgottenRotationOfAnEmptyVault(t *testing.T) {
	trace{
		tell: func(s *story) {
			s.byHand = false
			phone := s.device("phone", true)
			s.saved = s.store.model.Clone()
			phone.saves("a", "1")
			phone.comes()
			phone.rotate(2)
			phone.rests()
			s.restore()
			phone.connect()
			phone.steps(5) // it syncs, makes the vault, syncs, begins and stages
			phone.asks()
			phone.goes()
			s.dayPasses()
			phone.comes()
			phone.ended(BatchMade)
			s.ends("a=1#2phone-1")
		},
	}.test(t)
}

// A batch from an ended history, under a new key, comes into a vault that is empty
// again, and raises it to its key version.
func TestFoundNewKeyOfABatchInAnEmptyVault(t *testing.T) {
	trace{
		needs: []rules{rotateTogether},
		tell: func(s *story) {
			phone, laptop := s.emptied()
			laptop.comes()
			laptop.saves("d", "4")
			s.does(pep.Retract{Node: node, IDs: []string{"c"}})
			phone.comes()
			phone.ended(BatchMade)
			laptop.asks() // it has not heard of it
			laptop.rests()
			s.ends("a=v1#2x b=v2#2x d=4#2x")
		},
	}.test(t)
}

// Another device rotates while a batch is to raise an empty vault to the same key
// version: the batch is sealed with that key, and raises nothing.
func TestFoundBatchBehindARotation(t *testing.T) {
	for name, steps := range map[string]int{"nothing is begun": 1, "it is begun": 2, "it is staged": 3} {
		t.Run(name, func(t *testing.T) {
			trace{
				tell: func(s *story) {
					phone, _ := s.emptied()
					s.does(pep.Retract{Node: node, IDs: []string{"c"}})
					phone.connect()
					phone.tend()
					phone.does(steps)
					s.does(pep.Publish{Node: node, Items: []pep.Item{item("c", 1, "3")}})
					s.commits("rotation", 2, item("c", 2, "3#2y"))
					phone.in = nil // it misses all of that
					phone.asks()
					phone.rests()
					for range 3 {
						phone.tend()
						phone.rests()
					}
					phone.ended(BatchMade)
					phone.keepsBoth()
					s.ends("a=v1#2y b=v2#2y c=3#2y")
				},
			}.test(t)
		})
	}
}

// A batch has a key version that the vault has not: it seals no records anew, so it
// is for a person.
func TestFoundNewKeyOfABatchBesideRecords(t *testing.T) {
	trace{
		needs: []rules{rotateTogether},
		tell: func(s *story) {
			phone, _ := s.emptied()
			phone.comes()
			phone.ended(BatchRefused)
			phone.keepsBoth("a: v1 / -", "b: v2 / -")
			s.ends("c=3")
		},
	}.test(t)
}

// A rotated vault has lost all its records, and a device does not know how far
// it was rotated: its batch is made all the same.
func TestFoundBatchInAnEmptiedVault(t *testing.T) {
	trace{
		tell: func(s *story) {
			phone := s.device("phone", true)
			s.does(pep.Publish{Node: node, Items: []pep.Item{item("c", 1, "3")}})
			s.commits("rotation", 2, item("c", 2, "3#2x"))
			phone.comes()
			phone.goes()
			phone.Together("batch", []Change{{ID: "a", KeyVersion: 2, Payload: s.token()}, {ID: "b", KeyVersion: 2, Payload: s.token()}})
			s.does(pep.Retract{Node: node, IDs: []string{"c"}})
			phone.connect()
			for range 5 {
				phone.tend()
				phone.rests()
			}
			phone.ended(BatchMade)
			phone.keepsBoth()
			s.ends("a=v1#2x b=v2#2x")
		},
	}.test(t)
}

// emptied leaves two devices and a vault that was deleted and made again, with
// c=3; the phone has been away since before, with a batch under the key version 2
// of that time.
func (s *story) emptied() (phone, laptop *actor) {
	phone, laptop = s.device("phone", true), s.device("laptop", true)
	phone.StageBy(0)
	s.does(pep.Publish{Node: node, Items: []pep.Item{item("x", 2, "0#2x")}})
	phone.comes()
	phone.goes()
	phone.Together("batch", []Change{{ID: "a", KeyVersion: 2, Payload: s.token()}, {ID: "b", KeyVersion: 2, Payload: s.token()}})
	s.command(pep.Delete{Node: node})
	s.does(pep.Publish{Node: node, Items: []pep.Item{item("c", 1, "3")}})
	return phone, laptop
}
