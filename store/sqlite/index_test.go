package sqlite

import (
	"fmt"
	"testing"

	"pepvault/vault"
)

func testIndex() *index { return newIndex(1, vault.Vault{Key: faultKey}) }

// TestSlots: a freed slot is taken again, the lowest first, so a vault that
// keeps its size keeps its place on disk.
func TestSlots(t *testing.T) {
	t.Parallel()
	ix := testIndex()
	add := func(id string, want uint16) *entry {
		t.Helper()
		slot, free := ix.freeSlot()
		if !free || slot != want {
			t.Fatalf("%s: slot %d, %v, want %d", id, slot, free, want)
		}
		record := sample(0)
		record.ID, record.Revision = id, ix.state.Revision+1
		e := live(slot, record)
		ix.add(e)
		return e
	}
	var entries []*entry
	for i := range 5 {
		entries = append(entries, add(fmt.Sprint(i), uint16(i)))
	}
	ix.remove(entries[3])
	ix.remove(entries[1])
	add("a", 1)
	add("b", 3)
	add("c", 5)
}

func TestAllSlots(t *testing.T) {
	t.Parallel()
	ix := testIndex()
	for i := range slots {
		slot, free := ix.freeSlot()
		if !free || int(slot) != i {
			t.Fatalf("slot %d, %v, want %d", slot, free, i)
		}
		ix.add(live(slot, vault.Record{ID: fmt.Sprint(i), Revision: vault.Revision(i + 1)}))
	}
	if slot, free := ix.freeSlot(); free {
		t.Errorf("slot %d is free in a full vault", slot)
	}
	last, _ := ix.byID.Get("65535")
	ix.remove(last)
	if slot, free := ix.freeSlot(); !free || slot != slots-1 {
		t.Errorf("slot %d, %v", slot, free)
	}
}

// TestIndexCloneIsApart: what is done to a clone does not show in the index.
func TestIndexCloneIsApart(t *testing.T) {
	t.Parallel()
	ix := testIndex()
	for i := range 200 {
		ix.add(live(uint16(i), vault.Record{ID: fmt.Sprint(i), Revision: vault.Revision(i + 1)}))
	}
	clone := ix.clone()
	for i := range 100 {
		e, _ := clone.byID.Get(fmt.Sprint(i))
		clone.remove(e)
		clone.add(tombstone(e.id, vault.Revision(1000+i)))
	}
	clone.subscribe("bob@example.org")
	if ix.state.Records != 200 || ix.live.Len() != 200 || ix.tombs.Len() != 0 || ix.holes.Len() != 0 ||
		len(ix.subscribers) != 0 || ix.state.Revision != 200 {
		t.Errorf("the index changed: %+v", ix.state)
	}
	if clone.state.Records != 100 || clone.tombs.Len() != 100 || clone.holes.Len() != 100 {
		t.Errorf("the clone did not: %+v", clone.state)
	}
}

// TestIndexPurge: a purged vault takes no more room than one that was built
// from its rows, and its places are free.
func TestIndexPurge(t *testing.T) {
	t.Parallel()
	ix := testIndex()
	empty := ix.memory
	for i := range 300 {
		ix.add(live(uint16(i), vault.Record{ID: fmt.Sprint(i), Revision: vault.Revision(1000 - i)}))
	}
	before := ix.clone()
	purged := ix.purge(1001)
	if len(purged) != 300 || purged[0].id != "299" || purged[299].id != "0" || purged[299].revision != 1300 {
		t.Errorf("%d purged, %+v to %+v", len(purged), purged[0], purged[len(purged)-1])
	}
	if ix.state.Revision != 1300 || ix.state.Records != 0 || ix.state.Bytes != 0 || ix.state.Cost != 0 ||
		ix.live.Len() != 0 || ix.tombs.Len() != 300 || ix.byID.Len() != 300 {
		t.Errorf("index %+v", ix.state)
	}
	if slot, free := ix.freeSlot(); slot != 0 || !free || ix.holes.Len() != 0 {
		t.Errorf("slot %d, %v, %d holes", slot, free, ix.holes.Len())
	}
	if before.live.Len() != 300 || before.tombs.Len() != 0 {
		t.Error("the purge shows in a clone made before it")
	}
	for _, e := range purged {
		ix.remove(e)
	}
	if ix.memory != empty {
		t.Errorf("an empty index counts %d bytes, a new one %d", ix.memory, empty)
	}
}

// TestIndexPurgeFew: where most ids are gone already, only the others change.
func TestIndexPurgeFew(t *testing.T) {
	t.Parallel()
	ix := testIndex()
	for i := range 300 {
		ix.add(tombstone(fmt.Sprint("gone-", i), vault.Revision(1+i)))
	}
	for i := range 3 {
		ix.add(live(uint16(i), vault.Record{ID: fmt.Sprint(i), Revision: vault.Revision(1000 + i)}))
	}
	ix.purge(2001)
	if ix.byID.Len() != 303 || ix.tombs.Len() != 303 || ix.state.Tombstones != 303 {
		t.Errorf("%d ids, %d tombstones, %d counted", ix.byID.Len(), ix.tombs.Len(), ix.state.Tombstones)
	}
	for id, want := range map[string]vault.Revision{"gone-7": 8, "0": 2001, "2": 2003} {
		if e, known := ix.find(id); !known || !e.gone || e.revision != want {
			t.Errorf("%s: %+v, want revision %d", id, e, want)
		}
	}
}

// TestIndexPrune: what is forgotten is so at once, whatever its number, and
// leaves the trees with later changes.
func TestIndexPrune(t *testing.T) {
	t.Parallel()
	ix := testIndex()
	empty := ix.memory
	const n, keep = 3*trimmed + 50, 20
	for i := range n {
		ix.add(tombstone(fmt.Sprint(i), vault.Revision(1+i)))
	}
	if highest, forgotten := ix.prune(keep); highest != n-keep || forgotten != n-keep {
		t.Fatalf("%d forgotten, up to %d", forgotten, highest)
	}
	if ix.tombs.Len() == keep {
		t.Fatal("all have left the trees: this test shows nothing")
	}
	ix.add(live(0, vault.Record{ID: fmt.Sprint(trimmed + 1), Revision: n + 1})) // a forgotten one comes back
	if highest, forgotten := ix.prune(keep - 5); highest != n-keep+5 || forgotten != 5 {
		t.Errorf("%d forgotten then, up to %d", forgotten, highest)
	}
	for range 2 {
		if page, _ := ix.after(0, vault.PageLimit{Records: n, Cost: 1 << 30}); len(page) != keep-5+1 || page[0].revision != n-keep+6 {
			t.Errorf("%d changes, %+v first", len(page), page[0])
		}
		for _, i := range []int{0, trimmed + 2, n - keep + 4} {
			if head := ix.head(fmt.Sprint(i)); head.Revision != 0 {
				t.Errorf("a forgotten tombstone: %+v", head)
			}
		}
		if head := ix.head(fmt.Sprint(trimmed + 1)); head.Gone || head.Revision != n+1 {
			t.Errorf("the record that came back: %+v", head)
		}
		for range 3 {
			ix.trim()
		}
	}
	if ix.tombs.Len() != keep-5 || ix.byID.Len() != keep-5+1 || ix.state.Tombstones != keep-5 {
		t.Errorf("%d in the trees, %d ids, %d counted", ix.tombs.Len(), ix.byID.Len(), ix.state.Tombstones)
	}
	for _, e := range ix.byID.Values() {
		ix.remove(e)
	}
	if ix.memory != empty {
		t.Errorf("an empty index counts %d bytes, a new one %d", ix.memory, empty)
	}
}

// TestIndexPruneOfClone: who still looks at the state before sees all of it.
func TestIndexPruneOfClone(t *testing.T) {
	t.Parallel()
	ix := testIndex()
	const n, keep = 3*trimmed + 50, 20
	for i := range n {
		ix.add(tombstone(fmt.Sprint(i), vault.Revision(1+i)))
	}
	memory := ix.memory
	clone := ix.clone()
	clone.prune(keep)
	for range 9 {
		clone = clone.clone()
		clone.trim()
	}
	if clone.tombs.Len() != keep || clone.byID.Len() != keep {
		t.Errorf("the clone has %d tombstones and %d ids", clone.tombs.Len(), clone.byID.Len())
	}
	page, _ := ix.after(0, vault.PageLimit{Records: n, Cost: 1 << 30})
	if len(page) != n || page[0].id != "0" || page[n-1].revision != n {
		t.Errorf("%d changes in the index before", len(page))
	}
	for i := range n {
		if head := ix.head(fmt.Sprint(i)); !head.Gone || head.Revision != vault.Revision(1+i) {
			t.Fatalf("%d: %+v", i, head)
		}
	}
	if ix.memory != memory || ix.state.Tombstones != n || ix.state.Pruned != 0 {
		t.Errorf("the index changed: %d bytes, %+v", ix.memory, ix.state)
	}
}

// BenchmarkRank asks for places in small and large vaults.
func BenchmarkRank(b *testing.B) {
	for _, n := range []int{256, 4096, slots} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			ix := testIndex()
			for i := range n {
				ix.add(live(uint16(i), vault.Record{ID: fmt.Sprint(i), Revision: vault.Revision(2*i + 2)}))
			}
			for i := 0; b.Loop(); i++ {
				at := i % n
				if revision, _, _ := ix.live.GetAt(at); ix.rank(revision) != at {
					b.Fatal("rank of", revision)
				}
			}
		})
	}
}

type sized int

func (s sized) bytes() int { return int(s) }

func TestCache(t *testing.T) {
	t.Parallel()
	c := newCache[string, sized](100)
	want := func(key string, at sequence, found bool) {
		t.Helper()
		if _, got := c.get(key, at); got != found {
			t.Errorf("%s as of %d: found %v", key, at, got)
		}
	}
	c.put("a", 40, 5)
	want("a", 4, false) // it is newer than that state
	want("a", 5, true)
	c.offer("a", 41, 9)
	if v, _ := c.get("a", 9); v != 40 {
		t.Error("an offer replaced a value")
	}
	c.put("b", 40, 7)
	want("a", 9, true) // now b is the one used longest ago
	c.put("c", 40, 8)
	want("b", 9, false)
	want("a", 9, true)
	c.offer("b", 1, 6) // b may have changed since: it did, in 7
	want("b", 9, false)
	c.offer("b", 1, 7)
	want("b", 9, true)
	c.drop("a", 9)
	want("a", 9, false)
	c.offer("a", 1, 8)
	want("a", 9, false)
	c.put("large", 1000, 10) // one value always has its place
	want("large", 10, true)
}
