package component

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"pepvault/component/link"
)

// asking is a verifier whose device answers when the test does, and counts
// what it is asked. Two questions at once are a fault.
type asking struct {
	verifier
	answers chan string  // their types; "" for silence
	total   atomic.Int32 // of the questions
	now     atomic.Int32 // under way
}

func newAsking(t *testing.T) *asking {
	a := &asking{answers: make(chan string)}
	a.places, a.asked = make(chan struct{}, verifying), map[string]*question{}
	a.arrivals = func() uint64 { return 0 }
	a.request = func(ctx context.Context, _, _ string, _ []byte, _ time.Duration) (link.Stanza, error) {
		if a.now.Add(1) > 1 {
			t.Error("asked while it is being asked")
		}
		defer a.now.Add(-1)
		a.total.Add(1)
		select {
		case kind := <-a.answers:
			if kind == "" {
				return link.Stanza{}, link.ErrNoAnswer
			}
			return link.Stanza{Type: kind}, nil
		case <-ctx.Done():
			return link.Stanza{}, context.Cause(ctx)
		}
	}
	return a
}

// A device is asked one thing at a time, whoever wants to know. A result and
// silence serve all that wait; an error to a question about a node says
// nothing about whether the device is there.
func TestOneQuestionAtATime(t *testing.T) {
	t.Parallel()
	const first, others = "node", 20
	for _, row := range []struct {
		name    string
		node    string // that the first question is about
		answers []string
		alive   bool
	}{
		{"result", "", []string{"result"}, true},
		{"result about a node", first, []string{"result"}, true},
		{"error about a node, then result", first, []string{"error", "result"}, true},
		{"silence", "", []string{""}, false},
		{"silence about a node", first, []string{""}, false},
		{"error about a node, then silence", first, []string{"error", ""}, false},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				a := newAsking(t)
				var all sync.WaitGroup
				all.Go(func() { a.ask(t.Context(), "a@h/r", row.node) })
				synctest.Wait()
				for range others {
					all.Go(func() {
						if _, alive, known := a.there(t.Context(), "a@h/r"); alive != row.alive || !known {
							t.Errorf("got alive %t, known %t, want %t, true", alive, known, row.alive)
						}
					})
				}
				for i, answer := range row.answers {
					synctest.Wait()
					if got := int(a.total.Load()); got != i+1 {
						t.Errorf("asked %d times by then, want %d", got, i+1)
					}
					a.answers <- answer
				}
				all.Wait()
				if got := int(a.total.Load()); got != len(row.answers) {
					t.Errorf("asked %d times, want %d", got, len(row.answers))
				}
				if len(a.asked) != 0 || len(a.places) != 0 {
					t.Error("a question is still noted")
				}
			})
		})
	}
}
