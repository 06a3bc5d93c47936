package device

import (
	"testing"

	"pepvault/pep"
	"pepvault/pep/wire"
	"pepvault/vault"
)

func sealedAs(text string) vault.Payload {
	return vault.Payload{Form: vault.Native, Data: []byte(text)}
}

// holding is a replica that has synced two records.
func holding() *Replica {
	r := New(node)
	r.Ask()
	r.Answered(pep.SyncPage{Node: node, Cursor: "c", Reset: vault.ResetNew, First: true, Changes: []vault.Change{
		{Record: vault.Record{ID: "a", Revision: 2, KeyVersion: 3, Payload: sealedAs("1")}},
		{Record: vault.Record{ID: "b", Revision: 3, KeyVersion: 3, Payload: sealedAs("2")}},
	}})
	return r
}

func TestWhatBeginsNoBatch(t *testing.T) {
	t.Parallel()
	change := func(id string) Change { return Change{ID: id, KeyVersion: 3, Payload: sealedAs("new")} }
	for name, begins := range map[string]func(r *Replica) bool{
		"rotation of an empty vault":         func(*Replica) bool { return New(node).Rotate("x", 4) },
		"rotation to the same version":       func(r *Replica) bool { return r.Rotate("x", 3) },
		"second rotation":                    func(r *Replica) bool { return r.Rotate("x", 4) && r.Rotate("y", 5) },
		"batch during a rotation":            func(r *Replica) bool { return r.Rotate("x", 4) && r.Together("y", []Change{change("a")}) },
		"batch of nothing":                   func(r *Replica) bool { return r.Together("x", nil) },
		"two changes of one record":          func(r *Replica) bool { return r.Together("x", []Change{change("a"), change("a")}) },
		"change of what is changed already":  func(r *Replica) bool { r.Remove("a"); return r.Together("x", []Change{change("a")}) },
		"abandoning without a batch":         func(r *Replica) bool { return r.Abandon() },
		"abandoning what may be made by now": func(r *Replica) bool { committing(r); return r.Abandon() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if begins(holding()) {
				t.Error("got true, want false")
			}
		})
	}
}

// committing brings a batch as far as its commit.
func committing(r *Replica) {
	r.Together("x", []Change{{ID: "a", KeyVersion: 3, Payload: sealedAs("new")}})
	r.Ask()
	r.Answered(pep.Begun{ID: "x"})
	r.Ask()
	r.Answered(pep.Published{Node: node})
	r.Ask()
}

// A rotation goes on by itself once all is sealed, and asks for nothing before.
func TestRotationWaitsForSeals(t *testing.T) {
	t.Parallel()
	r := holding()
	r.Rotate("x", 4)
	list := r.Unsealed()
	if len(list) != 2 || list[0].ID != "a" || list[0].From != 3 || list[0].To != 4 || list[0].Of != 2 {
		t.Fatalf("got %+v", list)
	}
	r.Seal(list[0], sealedAs("1 anew"))
	if op := r.Ask(); op != nil {
		t.Errorf("it asks %T before all is sealed", op)
	}
	// What is sealed twice, or for a record that has changed, does no harm.
	r.Seal(Sealing{ID: "b", To: 4, Of: 1}, sealedAs("older"))
	if got := len(r.Unsealed()); got != 1 {
		t.Errorf("%d wait to be sealed, want 1", got)
	}
	r.Seal(list[1], sealedAs("2 anew"))
	if op, is := r.Ask().(pep.BeginBatch); !is || op.RotateTo != 4 || op.ID != "x" {
		t.Errorf("it asks %+v", op)
	}
}

// Where the service wants a pause, nothing is asked until it is over, and then
// the same.
func TestPause(t *testing.T) {
	t.Parallel()
	r := holding()
	r.Save("a", 3, sealedAs("new"))
	first := says(r.Ask())
	r.Refused(&wire.StanzaError{Type: "wait", Condition: "resource-constraint"})
	if op := r.Ask(); op != nil || !r.PutOff() {
		t.Errorf("it asks %T, put off %v", op, r.PutOff())
	}
	r.Again()
	if got := says(r.Ask()); got != first || r.PutOff() {
		t.Errorf("got %q, want %q", got, first)
	}
	if len(r.Conflicts()) > 0 {
		t.Error("it takes the pause for a refusal")
	}
}

// A save that the floor refuses is no conflict: it waits for the new key.
func TestFloor(t *testing.T) {
	t.Parallel()
	r := holding()
	r.Save("a", 3, sealedAs("new"))
	r.Ask()
	r.Refused(&wire.StanzaError{Type: "cancel", Condition: "conflict", Own: "key-version-too-low", Floor: 4})
	r.Ask()
	r.Answered(pep.SyncPage{Node: node, Cursor: "d", Changes: []vault.Change{
		{Record: vault.Record{ID: "a", Revision: 4, RotatedFrom: 2, KeyVersion: 4, Payload: sealedAs("1 anew")}},
		{Record: vault.Record{ID: "b", Revision: 5, RotatedFrom: 3, KeyVersion: 4, Payload: sealedAs("2 anew")}},
	}})
	list := r.Unsealed()
	if op := r.Ask(); op != nil || len(list) != 1 || list[0].To != 4 || len(r.Conflicts()) > 0 {
		t.Fatalf("it asks %T, waits for %+v, conflicts %v", op, list, r.Conflicts())
	}
	r.Seal(list[0], sealedAs("new anew"))
	op, is := r.Ask().(pep.Publish)
	if !is || op.Items[0].KeyVersion != 4 || op.Expect.Items[0].Revision != 4 {
		t.Errorf("it asks %s", says(op))
	}
}

func TestNearlyAllIsConfirmed(t *testing.T) {
	trace{
		needs: []rules{askFirst},
		tell: func(s *story) {
			phone := s.device("phone", true)
			phone.saves("a", "1")
			phone.saves("b", "2")
			phone.comes()
			s.calming, s.crashes = false, true // nobody confirms by himself
			phone.Together("batch", []Change{{ID: "a", Gone: true}, {ID: "b", Gone: true}})
			s.forget(phone.records)
			phone.rests()
			phone.holds("a=1 b=2")
			if got := phone.Confirming(); got != 2 {
				s.fault("%d are to be confirmed, want 2", got)
			}
			phone.Confirm()
			phone.rests()
			s.ends("")
		},
	}.test(t)
}

func TestErasedAccountEndsWithNone(t *testing.T) {
	trace{
		tell: func(s *story) {
			phone, laptop := s.device("phone", true), s.device("laptop", false)
			phone.saves("a", "1")
			phone.comes()
			laptop.comes()
			laptop.goes()
			phone.rotate(2)
			phone.asks()
			phone.isAnswered()
			s.does(pep.Erase{})
			phone.goes()
			s.ends("")
			for _, a := range s.actors {
				if a.Cursor() != pep.NoCursor {
					s.fault("%s holds %s", a.sender.Resource, a.Cursor())
				}
			}
			if end := phone.Ended(); end.End != BatchLost {
				s.fault("the rotation ended %d", end.End)
			}
		},
	}.test(t)
}

// What came from a lost history, and finds no room beside what the vault has, is
// a conflict: it is not tried for ever.
func TestRotationWithoutRoom(t *testing.T) {
	t.Parallel()
	r := holding()
	r.Save("c", 4, sealedAs("lost"))
	if r.Ask() != nil || r.Due() != 4 {
		t.Fatalf("due is %d, want 4", r.Due())
	}
	r.Rotate("x", 4)
	for _, s := range r.Unsealed() {
		r.Seal(s, s.Payload)
	}
	r.Ask()
	r.Answered(pep.Begun{ID: "x"})
	r.Ask()
	r.Refused(&wire.StanzaError{Type: "cancel", Condition: "not-allowed", Pubsub: "max-items-exceeded"})
	r.Ask()
	r.Answered(pep.SyncPage{Node: node, Cursor: "c"})
	if r.Due() != 0 || len(r.Conflicts()) != 1 || r.Ended().End != BatchRefused {
		t.Errorf("due %d, conflicts %+v, end %d", r.Due(), r.Conflicts(), r.Ended().End)
	}
}
