package pep_test

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"pepvault/pep"
	"pepvault/vault"
)

// cursor is that of the vault now.
func (w *world) cursor() string {
	w.t.Helper()
	return w.store.CursorKey().Sign(w.vault(laptop, "notes").Cursor())
}

func expecting(op pep.Publish, cursor string, items ...pep.Expected) pep.Publish {
	op.Expect = &pep.Expect{Cursor: cursor, Items: items}
	return op
}

func retracting(cursor, id string, items ...pep.Expected) pep.Retract {
	return pep.Retract{Node: "notes", IDs: []string{id}, Expect: &pep.Expect{Cursor: cursor, Items: items}}
}

func stateOf(t *testing.T, out pep.Outcome) *pep.State {
	t.Helper()
	switch a := out.Answer.(type) {
	case pep.Published:
		return a.State
	case pep.Retracted:
		return a.State
	default:
		t.Fatalf("answer is a %T", out.Answer)
		return nil
	}
}

func TestExpectations(t *testing.T) {
	t.Parallel()
	// The vault is made at revision 1, a and b are stored at 2 and 3, and b is
	// removed at 4. Devices hold the state of 3 (old) or of 4 (now).
	one := func(id string, r vault.Revision) pep.Expected { return pep.Expected{ID: id, Revision: r} }
	tests := []struct {
		name string
		op   func(old, now string) pep.Op
		want error
		bad  []pep.StateItem
	}{
		{"the record is as it was", func(old, _ string) pep.Op { return expecting(publish("a2"), old, one("a", 2)) }, nil, nil},
		{"it has changed", func(old, _ string) pep.Op { return expecting(publish("x"), old, one("a", 1)) },
			pep.ErrRevisionMismatch, []pep.StateItem{{ID: "a", Revision: 2}}},
		{"it was removed", func(old, _ string) pep.Op { return expecting(publish("x"), old, one("b", 3)) },
			pep.ErrRevisionMismatch, []pep.StateItem{{ID: "b", Revision: 4, Gone: true}}},
		{"a new one", func(old, _ string) pep.Op { return expecting(publish("x"), old, one("x", 0)) }, nil, nil},
		{"a new one that was removed since", func(old, _ string) pep.Op { return expecting(publish("b"), old, one("b", 0)) },
			pep.ErrRevisionMismatch, []pep.StateItem{{ID: "b", Revision: 4, Gone: true}}},
		{"a new one whose removal is known", func(_, now string) pep.Op { return expecting(publish("b"), now, one("b", 0)) }, nil, nil},
		{"a new one that is there", func(_, now string) pep.Op {
			return expecting(pep.Publish{Node: "notes", Items: []pep.Item{item("a", "x")}}, now, one("a", 0))
		}, pep.ErrRevisionMismatch, []pep.StateItem{{ID: "a", Revision: 2}}},
		{"all that differ are named", func(_, now string) pep.Op {
			return expecting(publish("x"), now, one("a", 9), one("b", 3), one("x", 0), one("y", 7))
		},
			pep.ErrRevisionMismatch, []pep.StateItem{{ID: "a", Revision: 2}, {ID: "b", Revision: 4, Gone: true}, {ID: "y"}}},
		{"nothing has changed", func(_, now string) pep.Op { return expecting(publish("x"), now) }, nil, nil},
		{"something has changed", func(old, _ string) pep.Op { return expecting(publish("x"), old) }, pep.ErrRevisionMismatch, nil},
		{"the vault must not be there", func(_, _ string) pep.Op { return expecting(publish("x"), pep.NoCursor) }, pep.ErrRevisionMismatch, nil},
		{"forged cursor", func(_, _ string) pep.Op { return expecting(publish("x"), "x") }, vault.ErrBadCursor, nil},
		{"retract of a record that is as it was", func(old, _ string) pep.Op { return retracting(old, "a", one("a", 2)) }, nil, nil},
		{"retract of one that has changed", func(old, _ string) pep.Op { return retracting(old, "a", one("a", 1)) },
			pep.ErrRevisionMismatch, []pep.StateItem{{ID: "a", Revision: 2}}},
		{"retract of one that was never there", func(_, now string) pep.Op { return retracting(now, "z", one("z", 2)) },
			pep.ErrRevisionMismatch, []pep.StateItem{{ID: "z"}}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, nil)
			w.must(laptop, publish("a", "b"))
			old := w.cursor()
			w.must(laptop, pep.Retract{Node: "notes", IDs: []string{"b"}})
			now := w.cursor()
			before := w.contents(laptop, "notes")
			out, err := w.ask(phone, tt.op(old, now))
			if !errors.Is(err, tt.want) {
				t.Fatalf("error %v, want %v", err, tt.want)
			}
			if err == nil {
				state := stateOf(t, out)
				if state == nil || state.Previous != now || state.Cursor != w.cursor() || len(state.Items) != 1 {
					t.Errorf("state %+v", state)
				}
				return
			}
			equal(t, "contents", w.contents(laptop, "notes"), before)
			var refusal *pep.Refusal
			if errors.As(err, &refusal) && errors.Is(err, pep.ErrRevisionMismatch) {
				equal(t, "cursor", refusal.Cursor, now)
				if diff := cmp.Diff(tt.bad, refusal.Items); diff != "" {
					t.Errorf("named (-want +got)\n%s", diff)
				}
			}
		})
	}
}

func TestExpectationNeverMakesAVault(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.must(laptop, publish("a"))
	held := w.cursor()
	w.must(laptop, pep.Delete{Node: "notes"})
	_, err := w.ask(phone, expecting(publish("b"), held))
	refused(t, err, vault.ErrNoVault)
	_, err = w.ask(phone, retracting(held, "a"))
	refused(t, err, vault.ErrNoVault)

	// With no cursor it is made, once.
	out := w.must(phone, expecting(publish("b"), pep.NoCursor))
	equal(t, "previous", stateOf(t, out).Previous, pep.NoCursor)
	_, err = w.ask(phone, expecting(publish("c"), held))
	refused(t, err, pep.ErrRevisionMismatch) // of an ended history
}

// The answer was lost, and the device repeats what it asked for: what is there
// already stays as it is, and nobody hears of it twice.
func TestRepeatsAfterALostAnswer(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.here(laptop)
	create := expecting(publish("a"), pep.NoCursor)
	w.must(phone, create)
	made := w.cursor()
	w.must(laptop, pep.Subscribe{Node: "notes", JID: laptop})
	change := expecting(pep.Publish{Node: "notes", Items: []pep.Item{item("a", "new")}}, made, pep.Expected{ID: "a", Revision: 2})
	steps := []struct {
		name string
		op   pep.Op
		made pep.StateItem
	}{
		{"creation", create, pep.StateItem{ID: "a", Revision: 2}},
		{"change", change, pep.StateItem{ID: "a", Revision: 3}},
		{"removal", retracting(made, "a", pep.Expected{ID: "a", Revision: 3}), pep.StateItem{ID: "a", Revision: 4, Gone: true}},
	}
	for i, step := range steps {
		if i > 0 {
			w.must(phone, step.op)
		}
		now := w.cursor()
		out := w.must(phone, step.op)
		want := &pep.State{Owner: "alice@localhost", Node: "notes", Cursor: now, Items: []pep.StateItem{step.made}}
		if diff := cmp.Diff(want, stateOf(t, out)); diff != "" {
			t.Errorf("%s: state (-want +got)\n%s", step.name, diff)
		}
		if len(out.Notices) > 0 || w.cursor() != now {
			t.Errorf("%s: the repeat changed something", step.name)
		}
	}
	// Somebody has gone on meanwhile: then it is a conflict.
	w.must(laptop, pep.Publish{Node: "notes", Items: []pep.Item{item("a", "other")}})
	_, err := w.ask(phone, change)
	refused(t, err, pep.ErrRevisionMismatch)
}

// A removal that is forgotten can't be told from none.
func TestExpectationAcrossPruning(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.must(laptop, publish("a"))
	old := w.cursor()
	for _, id := range []string{"1", "2", "3", "4", "5"} {
		w.must(laptop, publish(id))
		w.must(laptop, pep.Retract{Node: "notes", IDs: []string{id}})
	}
	_, err := w.ask(phone, expecting(publish("1"), old, pep.Expected{ID: "1"}))
	refused(t, err, pep.ErrRevisionMismatch)
	w.must(phone, expecting(publish("1"), w.cursor(), pep.Expected{ID: "1"}))
}
