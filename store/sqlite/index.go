package sqlite

import (
	"math"
	"slices"
	"sort"

	"github.com/tidwall/btree"

	"pepvault/vault"
)

// slots is how many records a vault can hold: a slot has 16 bits.
const slots = 1 << 16

// entry is what the order index knows of one record or tombstone. It never
// changes once it is in an index.
type entry struct {
	id         string
	revision   vault.Revision
	rotated    vault.Revision // vault.Record.RotatedFrom
	size       int32          // of the payload
	cost       int32          // vault.Record.Cost
	keyVersion uint32
	slot       uint16 // of a live record
	gone       bool
}

// live describes a record that lies in a slot.
func live(slot uint16, r vault.Record) *entry {
	return &entry{
		id:         r.ID,
		revision:   r.Revision,
		size:       int32(len(r.Payload.Data)),
		cost:       int32(r.Cost()),
		keyVersion: r.KeyVersion,
		rotated:    r.RotatedFrom,
		slot:       slot,
	}
}

func tombstone(id string, revision vault.Revision) *entry {
	return &entry{id: id, revision: revision, gone: true, cost: int32(vault.Record{ID: id}.Cost())}
}

// record is what the entry is of, with the rest from its row.
func (e *entry) record(row *content) vault.Record {
	return (&scanned{
		revision:    int64(e.revision),
		keyVersion:  int64(e.keyVersion),
		form:        row.form,
		publisher:   row.publisher,
		published:   row.published,
		rotatedFrom: int64(e.rotated),
		payload:     row.payload,
	}).record(e.id)
}

// buried is a tombstone as a change.
func (e *entry) buried() vault.Change {
	return vault.Change{Record: vault.Record{ID: e.id, Revision: e.revision}, Gone: true}
}

// bytes estimates what the entry takes in memory, with its places in the trees.
func (e *entry) bytes() int { return 168 + len(e.id) }

// index is the order index of one vault: its state, and which row holds what
// in which order. A published index is immutable: a change is made on a clone,
// which shares all that did not change.
type index struct {
	id     int64 // the vault's row
	state  vault.Vault
	purged vault.Revision // rows of records up to it are waste

	// byID and tombs may still hold forgotten tombstones; see prune.
	byID  *btree.Map[string, *entry]         // records and tombstones
	live  *btree.Map[vault.Revision, *entry] // records by revision
	tombs *btree.Map[vault.Revision, *entry] // tombstones by revision

	// Both are sorted by account; they are replaced, never changed.
	subscribers []vault.Account
	affiliated  []vault.Affiliated

	runs vault.Runs // replaced, never changed

	// Slots below used are taken unless they are in holes.
	used  int
	holes *btree.Map[uint16, struct{}]

	memory int
}

func newIndex(id int64, state vault.Vault) *index {
	return &index{
		id:     id,
		state:  state,
		byID:   btree.NewMap[string, *entry](0),
		live:   btree.NewMap[vault.Revision, *entry](0),
		tombs:  btree.NewMap[vault.Revision, *entry](0),
		holes:  btree.NewMap[uint16, struct{}](0),
		memory: 512 + len(state.Key.Account) + len(state.Key.Node) + configBytes(state.Config),
	}
}

func configBytes(c vault.Config) int { return len(c.Title) + len(c.Type) }

// configure replaces the configuration.
func (ix *index) configure(c vault.Config) {
	ix.memory += configBytes(c) - configBytes(ix.state.Config)
	ix.state.Config = c
}

// clone costs the same for every size of vault. Only the writer may call it:
// it marks the shared trees.
func (ix *index) clone() *index {
	c := *ix
	c.byID, c.live = ix.byID.Copy(), ix.live.Copy()
	c.tombs, c.holes = ix.tombs.Copy(), ix.holes.Copy()
	return &c
}

// bytes is for the cache.
func (ix *index) bytes() int { return ix.memory }

// add takes in an entry whose id and slot are free.
func (ix *index) add(e *entry) {
	ix.byID.Set(e.id, e)
	ix.memory += e.bytes()
	ix.state.Revision = max(ix.state.Revision, e.revision)
	if e.gone {
		ix.tombs.Set(e.revision, e)
		ix.state.Tombstones++
		return
	}
	ix.live.Set(e.revision, e)
	ix.state.Records++
	ix.state.Bytes += int64(e.size)
	ix.state.Cost += int64(e.cost)
	ix.take(e.slot)
}

// remove drops an entry and frees its slot.
func (ix *index) remove(e *entry) {
	ix.byID.Delete(e.id)
	ix.memory -= e.bytes()
	if e.gone {
		ix.tombs.Delete(e.revision)
		ix.state.Tombstones--
		return
	}
	ix.live.Delete(e.revision)
	ix.state.Records--
	ix.state.Bytes -= int64(e.size)
	ix.state.Cost -= int64(e.cost)
	ix.holes.Set(e.slot, struct{}{})
}

// supersede is add for an id of which something else may be known: the later
// revision counts.
func (ix *index) supersede(e *entry) {
	if old, known := ix.byID.Get(e.id); known {
		if old.revision > e.revision {
			return
		}
		ix.remove(old)
	}
	ix.add(e)
}

// find returns what is known of an id.
func (ix *index) find(id string) (*entry, bool) {
	e, known := ix.byID.Get(id)
	if !known || e.gone && e.revision <= ix.state.Pruned {
		return nil, false
	}
	return e, true
}

// trimmed is how many forgotten tombstones leave the trees at a time.
const trimmed = 128

// prune forgets the oldest tombstones until keep are left, and returns the
// highest revision that it forgot; 0 if there is none. It costs the same for
// any number of them: from then on they are not looked at (find, after), and
// they leave the trees bit by bit, with later changes (trim).
func (ix *index) prune(keep int) (highest vault.Revision, forgotten int) {
	forgotten = ix.state.Tombstones - max(keep, 0)
	if forgotten <= 0 {
		return 0, 0
	}
	before := ix.tombs.Len() - ix.state.Tombstones // forgotten earlier
	highest, _, _ = ix.tombs.GetAt(before + forgotten - 1)
	ix.state.Pruned = highest
	ix.state.Tombstones -= forgotten
	ix.trim()
	return highest, forgotten
}

// trim takes some of the forgotten tombstones out of the trees.
func (ix *index) trim() {
	for range min(trimmed, ix.tombs.Len()-ix.state.Tombstones) {
		_, e, _ := ix.tombs.PopMin()
		ix.memory -= e.bytes()
		if now, _ := ix.byID.Get(e.id); now == e {
			ix.byID.Delete(e.id)
		}
	}
}

// purge replaces each record by a tombstone, the oldest change first, with the
// revisions from first on, and returns the tombstones. What the rows of the
// records held is waste then.
func (ix *index) purge(first vault.Revision) []*entry {
	purged := make([]*entry, 0, ix.live.Len())
	bySlot := make([]*entry, ix.used)
	var block []entry // fewer allocations; whoever stays keeps no more than its block
	ix.live.Scan(func(_ vault.Revision, old *entry) bool {
		if len(block) == 0 {
			block = make([]entry, 16)
		}
		e := &block[0]
		block = block[1:]
		*e = *tombstone(old.id, first+vault.Revision(len(purged)))
		ix.tombs.Load(e.revision, e)
		purged, bySlot[old.slot] = append(purged, e), e
		return true
	})
	ix.replace(purged, bySlot)
	ix.purged = first - 1
	ix.state.Revision = first + vault.Revision(len(purged)) - 1
	ix.state.Tombstones += len(purged)
	ix.state.Records, ix.state.Bytes, ix.state.Cost = 0, 0, 0
	ix.live = btree.NewMap[vault.Revision, *entry](0)
	ix.used, ix.holes = 0, btree.NewMap[uint16, struct{}](0)
	return purged
}

// replace has the ids of purged records lead to their tombstones. A tree that
// most of is replaced is cheaper made anew, in its order.
func (ix *index) replace(purged, bySlot []*entry) {
	if len(purged) < ix.byID.Len()/4 {
		for _, e := range purged {
			ix.byID.Set(e.id, e)
		}
		return
	}
	made := btree.NewMap[string, *entry](0)
	ix.byID.Scan(func(id string, e *entry) bool {
		if !e.gone {
			e = bySlot[e.slot]
		}
		made.Load(id, e)
		return true
	})
	ix.byID = made
}

// take marks a slot as taken; all below it that were never taken become holes.
func (ix *index) take(slot uint16) {
	for ; ix.used <= int(slot); ix.used++ {
		ix.holes.Set(uint16(ix.used), struct{}{})
	}
	ix.holes.Delete(slot)
}

// freeSlot returns the lowest free slot, and whether there is one.
func (ix *index) freeSlot() (uint16, bool) {
	if slot, _, found := ix.holes.Min(); found {
		return slot, true
	}
	return uint16(ix.used), ix.used < slots
}

// row returns the key of the record row in a slot.
func (ix *index) row(slot uint16) int64 { return ix.id<<16 | int64(slot) }

// latest returns the entries of records that changed last before revision
// below (0 = up to now), the oldest change first, and whether there are older
// ones.
func (ix *index) latest(below vault.Revision, limit vault.PageLimit) (page []*entry, more bool) {
	cost := 0
	// 0 - 1 is the highest revision of all.
	ix.live.Descend(below-1, func(_ vault.Revision, e *entry) bool {
		cost += int(e.cost)
		if more = isFull(limit, len(page), cost); !more {
			page = append(page, e)
		}
		return !more
	})
	slices.Reverse(page)
	return page, more
}

// rank returns how many records have a revision below r.
func (ix *index) rank(r vault.Revision) int {
	return sort.Search(ix.live.Len(), func(i int) bool {
		revision, _, _ := ix.live.GetAt(i)
		return revision >= r
	})
}

// keyVersions returns the lowest and the highest key version of the records.
func (ix *index) keyVersions() (low, high uint32) {
	low = math.MaxUint32
	ix.live.Scan(func(_ vault.Revision, e *entry) bool {
		low, high = min(low, e.keyVersion), max(high, e.keyVersion)
		return true
	})
	return min(low, high), high // both 0 if there are none
}

// after returns a page of what changed above a revision, in order, and
// whether there is more.
func (ix *index) after(revision vault.Revision, limit vault.PageLimit) (page []*entry, more bool) {
	records, tombs := ix.live.Iter(), ix.tombs.Iter()
	haveRecord := records.Seek(revision + 1)
	haveTomb := !limit.Live && tombs.Seek(max(revision, limit.GoneAbove, ix.state.Pruned)+1)
	cost := 0
	for haveRecord || haveTomb {
		fromTombs := haveTomb && (!haveRecord || tombs.Key() < records.Key())
		var e *entry
		if fromTombs {
			e = tombs.Value()
		} else {
			e = records.Value()
		}
		cost += int(e.cost)
		if isFull(limit, len(page), cost) {
			return page, true
		}
		page = append(page, e)
		if fromTombs {
			haveTomb = tombs.Next()
		} else {
			haveRecord = records.Next()
		}
	}
	return page, false
}

// isFull reports whether a page of n changes has no place for one more, which
// would raise its cost to cost.
func isFull(limit vault.PageLimit, n, cost int) bool {
	return n > 0 && (n >= limit.Records || cost > limit.Cost)
}

// head tells what is known of an id.
func (ix *index) head(id string) vault.Head {
	e, known := ix.find(id)
	switch {
	case !known:
		return vault.Head{ID: id}
	case e.gone:
		return vault.Head{ID: id, Revision: e.revision, Gone: true}
	default:
		return vault.Head{
			ID:         id,
			Revision:   e.revision,
			KeyVersion: e.keyVersion,
			Bytes:      int(e.size),
			Cost:       int(e.cost),

			RotatedFrom: e.rotated,
		}
	}
}

// usage sums up an account; it is cached like an index.
type usage struct {
	account vault.Account
	vault.Usage
}

// follow takes in what a change did to a vault.
func (u *usage) follow(before, after vault.Vault) {
	u.Records += after.Records - before.Records
	u.Bytes += after.Bytes - before.Bytes
}

func (u usage) bytes() int { return 128 + len(u.account) }
