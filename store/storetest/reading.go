package storetest

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"time"

	"pepvault/vault"
)

func testRecords(f *fixture) {
	f.create(notes)
	for _, id := range []string{"a", "b", "c", "ä", "A"} {
		f.put(notes, record(id, id))
	}
	f.retract(notes, "c")
	ids := func(ids ...string) (got []string) {
		f.view(func(v vault.View) error {
			records, err := v.Records(notes, ids)
			for _, r := range records {
				got = append(got, r.ID)
				if string(r.Payload.Data) != r.ID {
					f.Errorf("record %q has %q", r.ID, r.Payload.Data)
				}
			}
			return err
		})
		return got
	}
	check := func() {
		f.equal(ids("b", "a"), []string{"b", "a"})
		f.equal(ids("b", "x", "b", "a", "b"), []string{"b", "a"})
		f.equal(ids("c"), []string{}) // a tombstone is no record
		f.equal(ids("A", "a\u0308", "ä"), []string{"A", "ä"})
		f.equal(ids(), []string{})
	}
	check()
	f.reopen() // nothing is in memory now
	check()
}

func testHeads(f *fixture) {
	f.create(notes)
	a := record("a", "12345")
	f.put(notes, a)
	f.put(notes, record("b", "1"))
	f.retract(notes, "b")
	want := []vault.Head{
		{ID: "b", Revision: 4, Gone: true},
		{ID: "x"},
		{ID: "a", Revision: 2, KeyVersion: 3, Bytes: 5, Cost: a.Cost()},
	}
	check := func() {
		got := look(f, func(v vault.View) ([]vault.Head, error) { return v.Heads(notes, []string{"b", "x", "a"}) })
		f.equal(got, want)
	}
	check()
	f.reopen()
	check()
	f.update(func(tx vault.Tx) error { return tx.Prune(notes, 0) })
	want[0] = vault.Head{ID: "b"}
	check()
}

func testLatest(f *fixture) {
	f.create(notes)
	for _, id := range []string{"a", "b", "c", "d"} {
		f.put(notes, record(id, "x"))
	}
	f.put(notes, record("a", "xyz"))
	f.retract(notes, "c")
	b, d, a := numbered(3, record("b", "x")), numbered(5, record("d", "x")), numbered(6, record("a", "xyz"))
	latest := func(records, cost int) vault.Page {
		return look(f, func(v vault.View) (vault.Page, error) {
			return v.Latest(notes, 0, vault.PageLimit{Records: records, Cost: cost})
		})
	}
	all := []vault.Change{live(b), live(d), live(a)}
	f.equal(latest(9, 1<<20), vault.Page{Changes: all})
	f.equal(latest(3, 1<<20), vault.Page{Changes: all})
	f.equal(latest(2, 1<<20), vault.Page{Changes: all[1:], More: true})
	f.equal(latest(9, a.Cost()+d.Cost()), vault.Page{Changes: all[1:], More: true})
	f.equal(latest(9, a.Cost()+d.Cost()-1), vault.Page{Changes: all[2:], More: true})
	f.equal(latest(9, 1), vault.Page{Changes: all[2:], More: true})
	f.update(func(tx vault.Tx) error {
		for _, id := range []string{"a", "b", "d"} {
			if _, err := tx.Retract(notes, id); err != nil {
				return err
			}
		}
		return nil
	})
	f.equal(latest(9, 1<<20), vault.Page{})
}

func testChanges(f *fixture) {
	f.create(notes)
	for _, id := range []string{"a", "b", "c"} {
		f.put(notes, record(id, "x"))
	}
	f.retract(notes, "b")
	a, c := live(numbered(2, record("a", "x"))), live(numbered(4, record("c", "x")))
	b := gone(5, "b")
	tombCost := vault.Record{ID: "b"}.Cost()
	for _, test := range []struct {
		name  string
		after vault.Revision
		limit vault.PageLimit
		want  vault.Page
	}{
		{"all", 0, unlimited, vault.Page{Changes: []vault.Change{a, c, b}}},
		{"after one", 2, unlimited, vault.Page{Changes: []vault.Change{c, b}}},
		{"after a replaced one", 3, unlimited, vault.Page{Changes: []vault.Change{c, b}}},
		{"after all", 5, unlimited, vault.Page{}},
		{"ahead of all", 99, unlimited, vault.Page{}},
		{"as many as there are", 0, vault.PageLimit{Records: 3, Cost: 1 << 20}, vault.Page{Changes: []vault.Change{a, c, b}}},
		{"fewer", 0, vault.PageLimit{Records: 2, Cost: 1 << 20}, vault.Page{Changes: []vault.Change{a, c}, More: true}},
		{"one, whatever its size", 0, vault.PageLimit{Records: 9, Cost: 1}, vault.Page{Changes: []vault.Change{a}, More: true}},
		{"the last one, whatever its size", 4, vault.PageLimit{Records: 9, Cost: 1}, vault.Page{Changes: []vault.Change{b}}},
		{"cost of all", 0, vault.PageLimit{Records: 9, Cost: a.Cost() + c.Cost() + tombCost},
			vault.Page{Changes: []vault.Change{a, c, b}}},
		{"one byte less", 0, vault.PageLimit{Records: 9, Cost: a.Cost() + c.Cost() + tombCost - 1},
			vault.Page{Changes: []vault.Change{a, c}, More: true}},
		{"live", 0, vault.PageLimit{Records: 2, Cost: 1 << 20, Live: true}, vault.Page{Changes: []vault.Change{a, c}}},
		{"live, more", 0, vault.PageLimit{Records: 1, Cost: 1 << 20, Live: true}, vault.Page{Changes: []vault.Change{a}, More: true}},
		{"live, only tombstones left", 4, vault.PageLimit{Records: 1, Cost: 1 << 20, Live: true}, vault.Page{}},
	} {
		if got := f.changes(notes, test.after, test.limit); true {
			f.Log(test.name)
			f.equal(got, test.want)
		}
	}
}

// testPaging reads a vault page by page, while it is changed in between.
func testPaging(f *fixture) {
	f.create(notes)
	f.update(func(tx vault.Tx) error {
		for i := range 300 {
			if _, err := tx.Put(notes, record(fmt.Sprint("r", i), strings.Repeat("x", i))); err != nil {
				return err
			}
		}
		return nil
	})
	for _, live := range []bool{false, true} {
		limit := vault.PageLimit{Records: 7, Cost: 3000, Live: live}
		seen := map[string]bool{}
		var after vault.Revision
		for page := (vault.Page{More: true}); page.More; {
			page = f.changes(notes, after, limit)
			for _, c := range page.Changes {
				if c.Revision <= after {
					f.Fatalf("revision %v after %v", c.Revision, after)
				}
				after = c.Revision
				seen[c.ID] = !c.Gone
			}
			if len(seen) < 100 { // an end comes in sight
				f.put(notes, record(fmt.Sprint("r", len(seen)), "again"))
				f.put(notes, record(fmt.Sprint("new", len(seen)), "new"))
				f.retract(notes, fmt.Sprint("new", len(seen)))
			}
		}
		for i := range 300 {
			if id := fmt.Sprint("r", i); !seen[id] {
				f.Errorf("live=%v: %s was not seen", live, id)
			}
		}
	}
}

// testScattered reads records that were made far from each other and were
// changed lately, in any order: alone, as a page, and with all between them.
func testScattered(f *fixture) {
	const made = 60
	f.create(notes)
	f.update(func(tx vault.Tx) error {
		for i := range made {
			if _, err := tx.Put(notes, record(fmt.Sprint("r", i), "first")); err != nil {
				return err
			}
		}
		return nil
	})
	var want []vault.Change
	for i, n := range []int{31, 2, 58, 17, 44, 9} {
		r := record(fmt.Sprint("r", n), strings.Repeat("y", 1000*i))
		r.Published = at.Add(time.Duration(i) * time.Hour)
		r.KeyVersion += uint32(i)
		if i%2 == 1 {
			r.Publisher, r.Payload.Form = bob, vault.Foreign
		}
		if i == 4 {
			r.RotatedFrom = 46 // what it replaces
		}
		want = append(want, live(numbered(f.put(notes, r), r)))
	}
	before := want[0].Revision - 1
	kept := f.changes(notes, before, unlimited)
	for range 2 { // what was read lately is kept in mind
		f.equal(f.changes(notes, before, unlimited).Changes, want)
		f.equal(f.changes(notes, before+1, vault.PageLimit{Records: 2, Cost: 1 << 20}).Changes, want[1:3])
		f.equal(f.changes(notes, 0, unlimited).Changes[made-len(want):], want)
	}
	f.equal(kept.Changes, want) // what was read is the reader's
	f.retract(notes, "r58")
	f.glance(func(v vault.View) error {
		page, err := v.Changes(notes, before, vault.PageLimit{Records: 9, Cost: 1 << 20, Live: true})
		f.equal(page.Changes, append(want[:2:2], want[3:]...))
		return err
	})
}

func testAccounts(f *fixture) {
	var keys []vault.Key
	for _, account := range []vault.Account{alice, bob, alice + "x", "a@b"} {
		for _, node := range []string{"b", "a", "Z", "ä", "urn:example:notes"} {
			key := vault.Key{Account: account, Node: node}
			keys = append(keys, key)
			f.create(key)
			f.put(key, record("a", string(account)+node))
		}
	}
	check := func() {
		for _, key := range keys {
			payload := string(key.Account) + key.Node
			f.equal(f.changes(key, 0, unlimited).Changes, []vault.Change{live(numbered(2, record("a", payload)))})
		}
		vaults := look(f, func(v vault.View) ([]vault.Vault, error) { return v.Vaults(alice) })
		var nodes []string
		for _, v := range vaults {
			nodes = append(nodes, v.Key.Node)
			f.equal(v, f.vault(v.Key))
		}
		f.equal(nodes, []string{"Z", "a", "b", "urn:example:notes", "ä"})
		want := vault.Usage{Vaults: 5, Records: 5}
		for _, node := range nodes {
			want.Bytes += int64(len(alice) + len(node))
		}
		f.equal(look(f, func(v vault.View) (vault.Usage, error) { return v.Usage(alice) }), want)
		f.equal(look(f, func(v vault.View) ([]vault.Account, error) { return v.Accounts() }),
			[]vault.Account{"a@b", alice, alice + "x", bob})
	}
	check()
	f.reopen()
	check()
	for _, key := range keys {
		if key.Account == bob {
			f.update(func(tx vault.Tx) error { return tx.Delete(key) })
		}
	}
	f.equal(look(f, func(v vault.View) ([]vault.Account, error) { return v.Accounts() }), []vault.Account{"a@b", alice, alice + "x"})
}

func testLargePayload(f *fixture) {
	f.create(notes)
	want := map[string][]byte{}
	for _, size := range []int{0, 1, 1000, 4095, 4096, 4097, 65536, 1 << 20} {
		data := make([]byte, size)
		for i := range data {
			data[i] = byte(i * i >> 3)
		}
		id := fmt.Sprint(size)
		want[id] = data
		f.put(notes, record(id, string(data)))
	}
	f.reopen()
	for _, c := range f.changes(notes, 0, unlimited).Changes {
		if !bytes.Equal(c.Payload.Data, want[c.ID]) {
			f.Errorf("payload of %s bytes came back otherwise", c.ID)
		}
		delete(want, c.ID)
	}
	f.equal(len(want), 0)
	if long := strings.Repeat("é", vault.MaxNameBytes/2); f.put(notes, record(long, "x")) == 0 {
		f.Error("no revision")
	}
}

// testFreedPlaces fills places that retracts have freed, in many shapes.
func testFreedPlaces(f *fixture) {
	f.create(notes)
	want := map[string]vault.Record{}
	var latest []vault.Change
	for round := range 12 {
		f.update(func(tx vault.Tx) error {
			for i := range 40 {
				r := record(fmt.Sprint(round, "-", i), fmt.Sprint("payload ", round, i))
				revision, err := tx.Put(notes, r)
				if err != nil {
					return err
				}
				want[r.ID] = numbered(revision, r)
			}
			return nil
		})
		f.update(func(tx vault.Tx) error {
			for i := round % 3; i < 40; i += 1 + round%4 {
				for _, back := range []int{round, round - 2} {
					id := fmt.Sprint(back, "-", i)
					if _, there := want[id]; !there {
						continue
					}
					if _, err := tx.Retract(notes, id); err != nil {
						return err
					}
					delete(want, id)
				}
			}
			return nil
		})
		if round%4 == 3 {
			f.reopen()
		}
	}
	for _, r := range want {
		latest = append(latest, live(r))
	}
	slices.SortFunc(latest, func(a, b vault.Change) int { return int(a.Revision) - int(b.Revision) })
	limit := unlimited
	limit.Live = true
	f.equal(f.changes(notes, 0, limit).Changes, latest)
	f.equal(f.changes(notes, latest[9].Revision, vault.PageLimit{Records: 5, Cost: 1 << 20, Live: true}).Changes, latest[10:15])
}
