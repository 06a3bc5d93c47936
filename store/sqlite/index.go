package sqlite

import (
	"slices"

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
	size       int32 // of the payload
	cost       int32 // vault.Record.Cost
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
		slot:       slot,
	}
}

func tombstone(id string, revision vault.Revision) *entry {
	return &entry{id: id, revision: revision, gone: true, cost: int32(vault.Record{ID: id}.Cost())}
}

// bytes estimates what the entry takes in memory, with its places in the trees.
func (e *entry) bytes() int { return 160 + len(e.id) }

// index is the order index of one vault: its state, and which row holds what
// in which order. A published index is immutable: a change is made on a clone,
// which shares all that did not change.
type index struct {
	id    int64 // the vault's row
	state vault.Vault

	byID  *btree.Map[string, *entry]         // records and tombstones
	live  *btree.Map[vault.Revision, *entry] // records by revision
	tombs *btree.Map[vault.Revision, *entry] // tombstones by revision

	subscribers []vault.Account // sorted; replaced, never changed

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
		memory: 512 + len(state.Key.Account) + len(state.Key.Node) + len(state.Config.Title),
	}
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
		return
	}
	ix.live.Delete(e.revision)
	ix.state.Records--
	ix.state.Bytes -= int64(e.size)
	ix.state.Cost -= int64(e.cost)
	ix.holes.Set(e.slot, struct{}{})
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

// latest returns the entries of records that changed last, the oldest change
// first, and whether there are older ones.
func (ix *index) latest(limit vault.PageLimit) (page []*entry, more bool) {
	cost := 0
	ix.live.Reverse(func(_ vault.Revision, e *entry) bool {
		cost += int(e.cost)
		if more = isFull(limit, len(page), cost); !more {
			page = append(page, e)
		}
		return !more
	})
	slices.Reverse(page)
	return page, more
}

// after returns a page of what changed above a revision, in order, and
// whether there is more.
func (ix *index) after(revision vault.Revision, limit vault.PageLimit) (page []*entry, more bool) {
	records, tombs := ix.live.Iter(), ix.tombs.Iter()
	haveRecord := records.Seek(revision + 1)
	haveTomb := !limit.Live && tombs.Seek(revision+1)
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
	e, known := ix.byID.Get(id)
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
		}
	}
}

// subscribe adds a subscriber and reports whether it is new.
func (ix *index) subscribe(account vault.Account) bool {
	i, found := slices.BinarySearch(ix.subscribers, account)
	if found {
		return false
	}
	ix.subscribers = slices.Insert(slices.Clone(ix.subscribers), i, account)
	ix.memory += 16 + len(account)
	return true
}

// unsubscribe removes a subscriber and reports whether there was one.
func (ix *index) unsubscribe(account vault.Account) bool {
	i, found := slices.BinarySearch(ix.subscribers, account)
	if !found {
		return false
	}
	ix.subscribers = slices.Delete(slices.Clone(ix.subscribers), i, i+1)
	ix.memory -= 16 + len(account)
	return true
}

// usage sums up an account; it is cached like an index.
type usage struct {
	account vault.Account
	vault.Usage
}

func (u usage) bytes() int { return 128 + len(u.account) }
