package pep_test

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"testing"

	"pgregory.net/rapid"

	"pepvault/pep"
	"pepvault/store"
	"pepvault/vault"
)

// follower holds a vault as a device does that only syncs (PROTOCOL §7).
type follower struct {
	cursor string
	held   map[string]string // id: data
	seen   map[string]bool   // ids of the pass under way
	reset  vault.Reset       // of the latest pass
	fork   vault.Revision
	pages  int
}

// page takes one in and tells whether it was the last.
func (f *follower) page(p pep.SyncPage) (last bool) {
	f.pages++
	if p.First {
		f.seen = map[string]bool{}
		f.reset, f.fork = p.Reset, p.Fork
	}
	if f.held == nil {
		f.held = map[string]string{}
	}
	for _, c := range p.Changes {
		if c.Gone {
			delete(f.held, c.ID)
			delete(f.seen, c.ID)
			continue
		}
		f.held[c.ID] = string(c.Payload.Data)
		if f.seen != nil {
			f.seen[c.ID] = true
		}
	}
	f.cursor = p.Cursor
	if p.More {
		return false
	}
	if p.Reset != vault.NoReset {
		maps.DeleteFunc(f.held, func(id, _ string) bool { return !f.seen[id] })
	}
	f.seen = nil
	return true
}

// sync follows to the end.
func (w *world) sync(f *follower, op pep.Sync) {
	w.t.Helper()
	f.reset, f.fork, f.pages = vault.NoReset, 0, 0
	for {
		op.Cursor = f.cursor
		if f.page(w.syncPage(op)) {
			return
		}
	}
}

func (w *world) syncPage(op pep.Sync) pep.SyncPage {
	w.t.Helper()
	op.Node = "notes"
	answer := w.must(phone, op).Answer
	if later, large := answer.(pep.Later); large {
		var err error
		if answer, err = later.Read(); err != nil {
			w.t.Fatal(err)
		}
	}
	page, ok := answer.(pep.SyncPage)
	if !ok {
		w.t.Fatalf("a sync is answered by %T", answer)
	}
	return page
}

func (w *world) holds(f *follower, want ...string) {
	w.t.Helper()
	got := map[string]bool{}
	for id := range f.held {
		got[id] = true
	}
	wanted := map[string]bool{}
	for _, id := range want {
		wanted[id] = true
	}
	equal(w.t, "held", got, wanted)
}

func TestSyncBringsWhatChanged(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.must(laptop, publish("a", "b", "c"))
	var f follower
	w.sync(&f, pep.Sync{})
	equal(t, "reset", f.reset, vault.ResetNew)
	w.holds(&f, "a", "b", "c")

	w.sync(&f, pep.Sync{}) // nothing new
	equal(t, "reset", f.reset, vault.NoReset)

	w.must(laptop, pep.Publish{Node: "notes", Items: []pep.Item{item("a", "new")}})
	w.must(laptop, pep.Retract{Node: "notes", IDs: []string{"b"}})
	page := w.syncPage(pep.Sync{Cursor: f.cursor})
	f.page(page)
	w.holds(&f, "a", "c")
	equal(t, "a", f.held["a"], "new")
	equal(t, "changes", len(page.Changes), 2)
	equal(t, "records", page.Records, 2)
	equal(t, "owner", page.Owner, vault.Account("alice@localhost"))
	state := w.vault(laptop, "notes")
	equal(t, "cursor", f.cursor, w.store.CursorKey().Sign(state.Cursor()))
}

func TestSyncPagesHoldOneChangeAtLeast(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.must(laptop, publish("a", "b", "c"))
	for _, op := range []pep.Sync{{Max: 1}, {Bytes: 1}} {
		var f follower
		w.sync(&f, op)
		w.holds(&f, "a", "b", "c")
		equal(t, "pages", f.pages, 3)
	}
}

func TestSyncAfterPruning(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil) // four tombstones are kept
	w.must(laptop, publish("a", "b", "c"))
	var f follower
	w.sync(&f, pep.Sync{})
	for range 5 {
		w.must(laptop, publish("x"))
		w.must(laptop, pep.Retract{Node: "notes", IDs: []string{"x"}})
	}
	for _, id := range []string{"a", "b", "v", "w", "x", "y"} {
		w.must(laptop, publish(id))
		w.must(laptop, pep.Retract{Node: "notes", IDs: []string{id}})
	}
	w.sync(&f, pep.Sync{Max: 1})
	equal(t, "reset", f.reset, vault.ResetPruned)
	w.holds(&f, "c")
}

// A pass in whose course removals are forgotten begins anew.
func TestSyncPassAcrossPruning(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.must(laptop, publish("a", "b", "c"))
	var f follower
	f.page(w.syncPage(pep.Sync{Max: 1}))
	w.must(laptop, pep.Retract{Node: "notes", IDs: []string{"a"}})
	for range 5 {
		w.must(laptop, publish("x"))
		w.must(laptop, pep.Retract{Node: "notes", IDs: []string{"x"}})
	}
	for _, id := range []string{"v", "w", "y", "z"} {
		w.must(laptop, publish(id))
		w.must(laptop, pep.Retract{Node: "notes", IDs: []string{id}})
	}
	page := w.syncPage(pep.Sync{Max: 1, Cursor: f.cursor})
	equal(t, "first", page.First, true)
	equal(t, "reset", page.Reset, vault.ResetPruned)
	w.sync(&f, pep.Sync{Max: 1})
	w.holds(&f, "b", "c")
}

func TestSyncOfAnEndedHistory(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.must(laptop, publish("a"))
	var f follower
	w.sync(&f, pep.Sync{})
	w.must(laptop, pep.Delete{Node: "notes"})
	old := f.cursor
	w.sync(&f, pep.Sync{})
	equal(t, "reset", f.reset, vault.ResetEnded)
	equal(t, "cursor", f.cursor, pep.NoCursor)
	w.holds(&f)

	w.must(laptop, publish("b"))
	f.cursor = old
	w.sync(&f, pep.Sync{})
	equal(t, "reset of a vault that was made again", f.reset, vault.ResetEnded)
	w.holds(&f, "b")
}

func TestSyncOfAnAbsentVault(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	for _, cursor := range []string{"", pep.NoCursor} {
		page := w.syncPage(pep.Sync{Cursor: cursor})
		equal(t, "page", page, pep.SyncPage{
			Owner: "alice@localhost", Node: "notes", Cursor: pep.NoCursor, Reset: vault.ResetNew, First: true,
		})
	}
	_, err := w.askOf(mallory, "alice@localhost", pep.Sync{Node: "notes"})
	refused(t, err, pep.ErrClosedNode)
}

func TestSyncRefusesForgedCursors(t *testing.T) {
	t.Parallel()
	w, other := newWorld(t, nil), newWorld(t, nil)
	w.must(laptop, publish("a"))
	other.must(laptop, publish("a"))
	foreign := other.store.CursorKey().Sign(other.vault(laptop, "notes").Cursor())
	for _, cursor := range []string{"x", "k3f9q2ab.41", foreign} {
		_, err := w.ask(phone, pep.Sync{Node: "notes", Cursor: cursor})
		refused(t, err, vault.ErrBadCursor)
	}
}

// folder is a store that can be closed and copied, as an operator does it.
type folder struct {
	*world
	dir string
}

func newFolder(t *testing.T) *folder {
	f := &folder{world: &world{t: t}, dir: t.TempDir()}
	f.open()
	t.Cleanup(func() { f.store.Close() })
	return f
}

func (f *folder) open() {
	f.t.Helper()
	s, err := store.Open(f.t.Context(), store.Options{Driver: "sqlite", Path: filepath.Join(f.dir, "vault.db")})
	if err != nil {
		f.t.Fatal(err)
	}
	f.store = s
	f.Engine = pep.New(pep.Options{Store: s, Limits: limits, Domains: []string{"localhost"}, AnswerBytes: 100_000, InlineBytes: 10_000})
}

func (f *folder) close() {
	f.t.Helper()
	if err := f.store.Close(); err != nil {
		f.t.Fatal(err)
	}
}

func (f *folder) copy(from, to string) {
	f.t.Helper()
	raw, err := os.ReadFile(filepath.Join(f.dir, from))
	if err != nil {
		f.t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(f.dir, to), raw, 0o600); err != nil {
		f.t.Fatal(err)
	}
}

// An older file is copied back by hand: the devices are told, and the vault
// goes on under another epoch, once.
func TestSyncAfterAnOlderFileCameBack(t *testing.T) {
	t.Parallel()
	w := newFolder(t)
	w.must(laptop, publish("a"))
	w.close()
	w.copy("vault.db", "copy.db")
	w.open()
	var early, late follower
	w.sync(&early, pep.Sync{})
	w.must(laptop, publish("b"))
	w.sync(&late, pep.Sync{})
	w.close()
	w.copy("copy.db", "vault.db")
	w.open()
	before := w.vault(laptop, "notes").Epoch

	w.sync(&early, pep.Sync{})
	equal(t, "reset of a cursor that still holds", early.reset, vault.NoReset)

	w.must(laptop, publish("c")) // takes the revision that b had
	w.sync(&late, pep.Sync{})
	equal(t, "reset", late.reset, vault.ResetLost)
	after := w.vault(laptop, "notes").Epoch
	if after == before {
		t.Error("the vault kept an epoch that has two histories")
	}
	w.sync(&early, pep.Sync{})
	equal(t, "reset of the other device", early.reset, vault.ResetLost)
	equal(t, "its fork", early.fork, vault.Revision(2)) // creation and a
	for _, f := range []*follower{&early, &late} {
		w.holds(f, "a", "c")
		w.sync(f, pep.Sync{})
		equal(t, "reset in the new epoch", f.reset, vault.NoReset)
	}
	equal(t, "epoch", w.vault(laptop, "notes").Epoch, after)
}

// The store was rolled back to before the vault: that is no deletion.
func TestSyncOfAVaultThatWasRolledBack(t *testing.T) {
	t.Parallel()
	w := newFolder(t)
	w.close()
	w.copy("vault.db", "copy.db")
	w.open()
	w.must(laptop, publish("a"))
	var f follower
	w.sync(&f, pep.Sync{})
	w.close()
	w.copy("copy.db", "vault.db")
	w.open()
	page := w.syncPage(pep.Sync{Cursor: f.cursor})
	equal(t, "reset", page.Reset, vault.ResetLost)
	equal(t, "cursor", page.Cursor, pep.NoCursor)
}

// Whoever syncs now and then, in pages of any size and with writers between
// them, ends with what is there.
func TestSyncMissesNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(o *pep.Options) {
		o.Limits.Records, o.Limits.AccountBytes, o.Limits.TombstonesFactor = 8, 1<<20, 1
	})
	devices := make([]follower, 3)
	rapid.Check(t, func(t *rapid.T) {
		var want map[string]string
		read := func() {
			want = map[string]string{}
			page, err := w.ask(phone, pep.Items{Node: "notes"})
			if errors.Is(err, vault.ErrNoVault) {
				return
			}
			for _, r := range page.Answer.(pep.ItemsPage).Records {
				want[r.ID] = string(r.Payload.Data)
			}
		}
		count := 0
		write := func(t *rapid.T) {
			count++
			id := fmt.Sprint(rapid.IntRange(0, 9).Draw(t, "id"))
			var op pep.Op = pep.Publish{Node: "notes", Items: []pep.Item{item(id, fmt.Sprint(count))}}
			switch rapid.IntRange(0, 20).Draw(t, "kind") {
			case 0:
				op = pep.Delete{Node: "notes"}
			case 1:
				op = pep.Purge{Node: "notes"}
			case 2, 3, 4, 5, 6, 7, 8:
				op = pep.Retract{Node: "notes", IDs: []string{id}}
			}
			if _, err := w.ask(laptop, op); err != nil && !errors.Is(err, vault.ErrNoVault) &&
				!errors.Is(err, vault.ErrNoRecord) && !errors.Is(err, pep.ErrNodeFull) {
				t.Fatal(err)
			}
		}
		for range rapid.IntRange(1, 30).Draw(t, "steps") {
			write(t)
			f := &devices[rapid.IntRange(0, 2).Draw(t, "device")]
			op := pep.Sync{Max: rapid.IntRange(0, 4).Draw(t, "max"), Cursor: f.cursor}
			if rapid.Bool().Draw(t, "only a page") && f.seen == nil {
				continue // pages go on where a pass is under way
			}
			if !f.page(w.syncPage(op)) {
				continue
			}
			read()
			if got := f.held; !maps.Equal(got, want) {
				t.Fatalf("the device holds %v, the vault %v", got, want)
			}
		}
	})
}
