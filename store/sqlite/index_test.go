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
