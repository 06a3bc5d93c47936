package storetest

import (
	"fmt"
	"math/rand/v2"
	"slices"

	"pepvault/vault"
)

func testPurge(f *fixture) {
	f.create(notes)
	f.create(tasks)
	f.put(tasks, record("a", "kept"))
	for _, id := range []string{"a", "b", "c", "d"} {
		f.put(notes, record(id, id))
	}
	f.put(notes, record("a", "changed"))
	f.retract(notes, "c")
	purge := func() (gone []vault.Change) {
		f.Helper()
		f.update(func(tx vault.Tx) (err error) {
			gone, err = tx.Purge(notes)
			return err
		})
		return gone
	}
	want := []vault.Change{gone(8, "b"), gone(9, "d"), gone(10, "a")}
	f.equal(purge(), want)
	check := func() {
		f.Helper()
		f.equal(f.changes(notes, 0, unlimited).Changes, append([]vault.Change{gone(7, "c")}, want...))
		state := f.vault(notes)
		if state.Revision != 10 || state.Records != 0 || state.Bytes != 0 || state.Cost != 0 {
			f.Errorf("vault %+v", state)
		}
		f.equal(look(f, func(v vault.View) (vault.Usage, error) { return v.Usage(alice) }),
			vault.Usage{Vaults: 2, Records: 1, Bytes: 4})
		f.equal(f.changes(tasks, 0, unlimited).Changes, []vault.Change{live(numbered(2, record("a", "kept")))})
	}
	check()
	f.reopen()
	check()
	f.equal(purge(), []vault.Change{}) // nothing there: no revision
	check()
	// The places and the ids can be used again.
	if r := f.put(notes, record("b", "again")); r != 11 {
		f.Errorf("next revision %v, want 11", r)
	}
	f.put(notes, record("e", "new"))
	f.equal(purge(), []vault.Change{gone(13, "b"), gone(14, "e")})
	f.update(func(tx vault.Tx) error { return tx.Prune(notes, 1) })
	f.equal(f.changes(notes, 0, unlimited).Changes, []vault.Change{gone(14, "e")})
}

// testPurgeLarge purges a vault whose order is not that of its rows.
func testPurgeLarge(f *fixture) {
	const n = 700
	f.create(notes)
	f.update(func(tx vault.Tx) error {
		for _, i := range append(rand.Perm(n), rand.Perm(n)[:n/2]...) {
			if _, err := tx.Put(notes, record(fmt.Sprint(i), "x")); err != nil {
				return err
			}
		}
		return nil
	})
	before := f.changes(notes, 0, unlimited).Changes
	next := f.vault(notes).Revision + 1
	var purged []vault.Change
	f.update(func(tx vault.Tx) (err error) {
		purged, err = tx.Purge(notes)
		return err
	})
	var want []vault.Change
	for i, c := range before {
		want = append(want, gone(next+vault.Revision(i), c.ID))
	}
	f.equal(len(want), n)
	f.equal(purged, want)
	f.equal(f.changes(notes, 0, unlimited).Changes, want)
	f.reopen()
	f.equal(f.changes(notes, 0, unlimited).Changes, want)

	// Some come back, one of them goes again, and the oldest are forgotten.
	const keep = 150
	back := []string{want[n-keep/2].ID, want[n-1].ID, want[0].ID}
	for _, id := range back {
		f.put(notes, record(id, "again"))
	}
	f.retract(notes, back[1])
	f.update(func(tx vault.Tx) error { return tx.Prune(notes, keep) })
	want = slices.DeleteFunc(want, func(c vault.Change) bool { return slices.Contains(back, c.ID) })
	want = append(want, gone(f.vault(notes).Revision, back[1]))
	want = want[len(want)-keep:]
	for range 2 {
		f.equal(f.vault(notes).Pruned, want[0].Revision-1)
		f.equal(f.vault(notes).Tombstones, keep)
		var tombs []vault.Change
		for _, c := range f.changes(notes, 0, unlimited).Changes {
			if c.Gone {
				tombs = append(tombs, c)
			}
		}
		f.equal(tombs, want)
		sizes := look(f, func(v vault.View) ([]vault.Size, error) { return v.Sizes(alice) })
		f.equal(sizes, []vault.Size{{Key: notes, Revision: f.vault(notes).Revision, Records: 2, Bytes: 10, Tombstones: keep}})
		heads := look(f, func(v vault.View) ([]vault.Head, error) {
			return v.Heads(notes, []string{before[0].ID, before[1].ID, back[1]})
		})
		f.equal([]bool{heads[0].Gone, heads[1].Gone, heads[2].Gone}, []bool{false, false, true})
		f.equal(heads[1].Revision, vault.Revision(0))
		f.reopen()
	}
}

func testLatestBelow(f *fixture) {
	f.create(notes)
	for _, id := range []string{"a", "b", "c", "d"} {
		f.put(notes, record(id, "x")) // 2 to 5
	}
	f.retract(notes, "c")
	a, b, d := live(numbered(2, record("a", "x"))), live(numbered(3, record("b", "x"))), live(numbered(5, record("d", "x")))
	for _, test := range []struct {
		name    string
		below   vault.Revision
		records int
		want    vault.Page
	}{
		{"up to now", 0, 9, vault.Page{Changes: []vault.Change{a, b, d}}},
		{"ahead of all", 99, 9, vault.Page{Changes: []vault.Change{a, b, d}}},
		{"below the last", 5, 9, vault.Page{Changes: []vault.Change{a, b}}},
		{"below what is not there any more", 4, 9, vault.Page{Changes: []vault.Change{a, b}}},
		{"not all of it", 5, 1, vault.Page{Changes: []vault.Change{b}, More: true}},
		{"the first alone", 3, 1, vault.Page{Changes: []vault.Change{a}}},
		{"below the first", 2, 9, vault.Page{}},
		{"below the first revision", 1, 9, vault.Page{}},
	} {
		f.Log(test.name)
		got := look(f, func(v vault.View) (vault.Page, error) {
			return v.Latest(notes, test.below, vault.PageLimit{Records: test.records, Cost: 1 << 20})
		})
		f.equal(got, test.want)
	}
}

// testRank: Rank and Nth say where a record stands, and undo each other.
func testRank(f *fixture) {
	f.create(notes)
	check := func() {
		f.Helper()
		live := f.changes(notes, 0, vault.PageLimit{Records: 1 << 20, Cost: 1 << 30, Live: true}).Changes
		highest := f.vault(notes).Revision
		f.view(func(v vault.View) error {
			rank := 0
			for r := range highest + 3 {
				got, err := v.Rank(notes, r)
				if err != nil || got != rank {
					f.Errorf("revision %v has rank %d, want %d; %v", r, got, rank, err)
				}
				if rank < len(live) && live[rank].Revision == r {
					rank++
				}
			}
			for n := -1; n < len(live)+2; n++ {
				var want vault.Revision
				if n >= 0 && n < len(live) {
					want = live[n].Revision
				}
				if got, err := v.Nth(notes, n); err != nil || got != want {
					f.Errorf("record %d has revision %v, want %v; %v", n, got, want, err)
				}
			}
			return nil
		})
	}
	check()
	f.update(func(tx vault.Tx) error {
		for i := range 300 {
			if _, err := tx.Put(notes, record(fmt.Sprint(i*i%211), "x")); err != nil {
				return err
			}
		}
		for i := range 20 {
			if _, err := tx.Retract(notes, fmt.Sprint(i*i)); err != nil && i*i < 211 {
				return err
			}
		}
		return nil
	})
	check()
	f.reopen()
	check()
	f.update(func(tx vault.Tx) error { _, err := tx.Purge(notes); return err })
	check()
}

func testKeyVersions(f *fixture) {
	f.create(notes)
	want := func(low, high uint32) {
		f.Helper()
		got := look(f, func(v vault.View) ([2]uint32, error) {
			low, high, err := v.KeyVersions(notes)
			return [2]uint32{low, high}, err
		})
		f.equal(got, [2]uint32{low, high})
	}
	put := func(id string, version uint32) {
		r := record(id, "x")
		r.KeyVersion = version
		f.put(notes, r)
	}
	want(0, 0)
	put("a", 7)
	want(7, 7)
	put("b", vault.MaxKeyVersion)
	put("c", 3)
	want(3, vault.MaxKeyVersion)
	f.retract(notes, "b")
	put("c", 8)
	want(7, 8)
	f.reopen()
	want(7, 8)
	put("d", 0)
	want(0, 8)
	f.update(func(tx vault.Tx) error { _, err := tx.Purge(notes); return err })
	want(0, 0)
}
