package client

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"testing"

	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"pepvault/store"
)

func TestMain(m *testing.M) {
	// The command line may still say otherwise.
	if err := flag.Set("rapid.checks", randomHistories); err != nil {
		panic(err)
	}
	goleak.VerifyTestMain(m)
}

// TestRandomHistories has devices of one account do anything at any time, with
// connections and devices that end in the middle. In the end all show the same,
// and of every record what a person saved last, or both in conflict.
func TestRandomHistories(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		dir, err := os.MkdirTemp("", "pepvault-client-")
		if err != nil {
			t.Fatal(err)
		}
		defer os.RemoveAll(dir)
		w := &service{t: t, dir: dir}
		w.open("store.db")
		defer func() { _ = w.store.Close() }()
		newHistory(r, w).play()
	})
}

// history is one of them.
type history struct {
	*rapid.T
	w      *service
	people []*person
	alive  map[string]bool // contents that nobody replaced knowingly
	count  int
	saved  bool
}

func newHistory(r *rapid.T, w *service) *history {
	h := &history{T: r, w: w, alive: map[string]bool{}}
	for i := range 3 {
		p := &person{w: w, dir: filepath.Join(w.dir, fmt.Sprint("device", i)), phrase: "p"}
		p.mustJoin()
		h.people = append(h.people, p)
	}
	return h
}

func (h *history) play() {
	for range rapid.IntRange(1, 25).Draw(h.T, "steps") {
		h.step(h.people[rapid.IntRange(0, 2).Draw(h.T, "who")])
	}
	h.w.cut = nil
	for range 3 {
		for _, p := range h.people {
			if err := p.sync(); err != nil {
				h.Fatalf("at the end: %v", err)
			}
		}
	}
	first := h.people[0].shown()
	found := map[string]bool{}
	for _, p := range h.people {
		if got := p.shown(); !maps.Equal(got, first) {
			h.Fatalf("one shows %q, another %q", first, got)
		}
		if bad := p.Tampered(); len(bad) > 0 {
			h.Fatalf("nobody tampered, and it says %q", bad)
		}
		list, _ := p.List()
		for _, e := range list {
			found[string(e.Content)] = true
		}
		for i := range 4 { // one conflict of a record is shown after the other
			name := fmt.Sprint("n", i)
			for e, err := p.Get(name); err == nil && e.Conflict != nil; e, err = p.Get(name) {
				found[string(e.Conflict.Content)] = true
				if err := p.Settle(name, false); err != nil {
					h.Fatal(err)
				}
			}
		}
	}
	for content := range h.alive {
		if !found[content] {
			h.Fatalf("%q is lost; there is %v", content, found)
		}
	}
	for _, p := range h.people {
		_ = p.Store.Close()
	}
}

func (h *history) step(p *person) {
	name := fmt.Sprint("n", rapid.IntRange(0, 3).Draw(h.T, "name"))
	seen := p.shown()[name]
	switch rapid.IntRange(0, 8).Draw(h.T, "what") {
	case 0, 1, 2:
		h.count++
		content := fmt.Sprint("v", h.count)
		p.put(name, content)
		delete(h.alive, seen)
		h.alive[content] = true
	case 3:
		if p.Remove(name) == nil {
			delete(h.alive, seen)
		}
	case 4:
		p.again()
	case 5:
		if err := p.Rotate(nil, Source{}); err != nil && !errors.Is(err, ErrNotRotated) {
			h.Fatal(err)
		}
	case 6:
		h.backup()
	default:
		h.session(p)
	}
}

// backup makes a copy of the store, or restores it.
func (h *history) backup() {
	o, copied := h.w.options("store.db"), filepath.Join(h.w.dir, "copy.db")
	if !h.saved {
		h.saved = true
		if _, err := store.BackupOnline(context.Background(), o, copied); err != nil {
			h.Fatal(err)
		}
		return
	}
	h.saved = false
	if err := h.w.store.Close(); err != nil {
		h.Fatal(err)
	}
	h.w.store = nil
	if _, _, err := store.Restore(context.Background(), o, copied); err != nil {
		h.Fatal(err)
	}
	if err := os.Remove(copied); err != nil {
		h.Fatal(err)
	}
	h.w.open("store.db")
}

// session has a connection that may end at any request, before it is carried out
// or after.
func (h *history) session(p *person) {
	left := rapid.IntRange(0, 12).Draw(h.T, "requests")
	after := rapid.Bool().Draw(h.T, "after")
	killed := rapid.Bool().Draw(h.T, "killed")
	state := filepath.Join(p.dir, "vault.sealed")
	var kept []byte // of the moment at which it ended
	h.w.cut = func(_ any, done bool) bool {
		if done == after {
			left--
		}
		if left < 0 && done == after && kept == nil {
			kept, _ = os.ReadFile(state) // it is there since the device joined
		}
		return left < 0 && done == after
	}
	if err := p.sync(); err != nil && !isCut(err) {
		h.Fatal(err)
	}
	if killed && kept != nil { // what was kept since then, was not
		if err := os.WriteFile(state, kept, 0o600); err != nil {
			h.Fatal(err)
		}
		p.again()
	}
}
