package device

import (
	"maps"
	"slices"

	"pepvault/pep"
	"pepvault/vault"
)

// pass is a sync under way. Nothing of it counts before its end.
type pass struct {
	reset   vault.Reset
	fork    vault.Revision
	changes []vault.Change
}

// page takes in a page of a sync (PROTOCOL §7).
func (r *Replica) page(p pep.SyncPage) {
	if p.First {
		r.pass = &pass{reset: p.Reset, fork: p.Fork}
		r.remember(p)
	}
	r.pass.changes = append(r.pass.changes, p.Changes...)
	if p.More {
		r.request = Request{Step: Syncing, Cursor: p.Cursor, Max: r.pageBy}
		r.repeat = true // it is asked at once
		return
	}
	r.request = Request{}
	r.finish(p.Cursor)
}

// loss is what is known of a history that the service has lost. The two are
// revisions of different histories, if the vault was deleted since.
type loss struct {
	fork   vault.Revision // of the device's: what it holds up to there, the service had too
	shared vault.Revision // of the service's: what it has up to there, the device had too
}

// remember notes that a pass found the device's history lost, until one is
// finished: the next one may not know that any more. What was made since the
// vault was deleted, is shared with nobody.
func (r *Replica) remember(p pep.SyncPage) {
	switch {
	case !r.rules.has(rememberLost):
	case p.Reset == vault.ResetLost && r.lost == nil:
		r.lost = &loss{fork: p.Fork, shared: p.Fork}
	case p.Reset == vault.ResetLost:
		r.lost.fork, r.lost.shared = min(r.lost.fork, p.Fork), min(r.lost.shared, p.Fork)
	case r.lost != nil && p.Reset != vault.ResetPruned:
		r.lost.shared = 0
	}
}

// finish takes in all that a sync brought.
func (r *Replica) finish(cursor string) {
	done, noted := r.pass, r.noted
	r.pass, r.noted = nil, ""
	behind, lost := loss{fork: done.fork, shared: done.fork}, done.reset == vault.ResetLost
	if r.lost != nil {
		behind, lost = *r.lost, true
	}
	before, version := r.records, r.KeyVersion()
	other := done.reset == vault.ResetEnded || lost
	if other {
		r.floor = 0
	}
	if done.reset != vault.NoReset && r.rules.has(dropUnseen) {
		r.records = map[string]Record{}
	}
	for _, c := range done.changes {
		r.apply(c)
	}
	r.cursor, r.lost = cursor, nil
	if other {
		r.carryOver(before)
	}
	if lost && r.rules.has(rescueLost) {
		r.rescue(before, behind, done.changes)
	}
	r.reseal(version, other || !r.sameKey(before, done), false)
	r.settleBatch(other, done.changes)
	r.settleRest()
	r.stale = noted != "" && noted != cursor && r.rules.has(lookAgain)
}

// carryOver has the device's changes stand on the records of another epoch:
// revisions are never compared across epochs, so what a change was made of is
// there only if the record says the same.
func (r *Replica) carryOver(before map[string]Record) {
	if !r.rules.has(carryBases) {
		return
	}
	carry := func(c *Change) {
		if c.Base == 0 || c.Base == unknown {
			return
		}
		held, now := before[c.ID], r.records[c.ID]
		if held.Revision == c.Base && now.Revision > 0 && held.alike(now) {
			c.Base = now.Revision
		} else {
			c.Base = gone
		}
	}
	for i := range r.changes {
		carry(&r.changes[i])
	}
	for i := range r.onto {
		r.onto[i].Base = 0
	}
	if r.batch != nil {
		for i := range r.batch.Changes {
			carry(&r.batch.Changes[i])
		}
	}
}

// rescue looks after what the device held of a history that the service has
// lost (PROTOCOL §7): what was held above the fork and differs becomes a change
// of the device's, or a conflict where the service has something newer.
func (r *Replica) rescue(before map[string]Record, behind loss, seen []vault.Change) {
	removed := map[string]bool{} // since then
	for _, c := range seen {
		removed[c.ID] = c.Gone && c.Revision > behind.shared
	}
	for _, id := range slices.Sorted(maps.Keys(before)) {
		held := before[id]
		now, there := r.records[id]
		if there && held.alike(now) || held.Revision <= behind.fork {
			continue // the service's counts, its absence too
		}
		mine := Change{ID: id, Base: now.Revision, KeyVersion: held.KeyVersion, Payload: held.Payload}
		older := !there || now.Revision <= behind.shared
		switch {
		case !older || removed[id]:
			r.conflict(mine)
		case r.rebase(id, gone, now.Revision): // what was made of it counts
		case r.waits(id), r.batch.change(id) != nil:
			r.conflict(mine)
		default:
			r.changes = append(r.changes, mine)
		}
	}
}

// rebase has a change that was made of a lost record stand on the one that is
// there instead, and reports whether there was such a change.
func (r *Replica) rebase(id string, from, onto vault.Revision) bool {
	for i := range r.changes {
		if r.changes[i].ID == id && r.changes[i].Base == from {
			r.changes[i].Base = onto
			return true
		}
	}
	return false
}

// waits reports whether there is a change of a record.
func (r *Replica) waits(id string) bool {
	return slices.ContainsFunc(r.changes, func(c Change) bool { return c.ID == id })
}

// settleRest looks at the changes once the device knows what there is.
func (r *Replica) settleRest() {
	for _, done := range r.onto { // their Base is the revision that they got; 0 = it says nothing
		now, there := r.records[done.ID]
		rotated := done.Base > 0 && now.RotatedFrom == done.Base && r.rules.has(followRotation)
		if there && (rotated || done.record(0).alike(now)) {
			r.rebase(done.ID, unknown, now.Revision)
		}
	}
	r.onto = nil
	r.settleChanges(r.sent())
	for _, c := range r.refused {
		if !r.made(c) {
			r.conflict(c)
		}
	}
	r.refused = nil
}
