package device

import (
	"slices"

	"pepvault/pep/wire"
	"pepvault/vault"
)

// refusedBatch judges a step of the batch that was refused. A sync follows.
func (r *Replica) refusedBatch(b *Batch, request Request, err *wire.StanzaError) {
	if request.Step == Committing {
		// What came in doubt meanwhile, waited for this answer.
		for i := range b.Changes {
			c := &b.Changes[i]
			c.Unsealed = c.Unsealed || c.Doubted && !c.Gone
		}
	}
	switch {
	case err.Own == "stale":
		r.overtaken(b, request, err)
	case err.Own == "confirm-required":
		b.Removals = max(err.Records, 1)
	case err.Own == "key-version-too-low":
		r.raise(err.Floor)
	case err.Condition == "item-not-found" && request.Step == Beginning:
		// There is no vault: the sync tells.
	case err.Condition == "item-not-found" && request.Step == Committing && request.Repeated:
		b.Tried, b.Begun, b.Unsure = false, false, true
	case err.Condition == "item-not-found":
		b.Tried = false
		r.renew()
	case b.RotateTo > 0 && err.Condition == "bad-request":
		r.raise(b.RotateTo) // it is as high
		r.end(BatchLost)
	case b.Raises > 0 && err.Condition == "bad-request":
		r.raise(b.Raises) // likewise, whatever records there are
		r.renew()
	case b.RotateTo > 0:
		// The vault has no room for what came from a lost history.
		r.refused = append(r.refused, r.takeAbove()...)
		r.end(BatchRefused)
	default:
		b.Unsure = b.Unsure || request.Step == Committing && request.Repeated
		r.giveUp(b.Changes)
	}
}

// takeAbove removes the changes that wait for a rotation.
func (r *Replica) takeAbove() (above []Change) {
	r.changes = slices.DeleteFunc(r.changes, func(c Change) bool {
		if !r.above(c) {
			return false
		}
		above = append(above, c)
		return true
	})
	return above
}

// overtaken takes in what has to be staged again, or taken out.
func (r *Replica) overtaken(b *Batch, request Request, err *wire.StanzaError) {
	for _, item := range err.Items {
		b.Staged[item.ID] = 0
	}
	if request.Step == Committing && len(err.Items) == 0 && err.Cursor == request.Cursor {
		// Nothing has changed, so the service holds something else than it was
		// given: an older file came back.
		r.renew()
	}
}

// giveUp ends the batch, since something of it can't be made any more.
func (r *Replica) giveUp(left []Change) {
	if !r.rules.has(asOne) {
		r.batch.Changes = slices.DeleteFunc(r.batch.Changes, func(c Change) bool { return !r.rebased(&c) })
		r.renew()
		return
	}
	r.end(BatchRefused)
	r.refused = append(r.refused, left...)
}

// settleBatch looks at the batch after the records have changed, if by a sync, as
// seen says. lost says that the history of what the device held is.
func (r *Replica) settleBatch(lost bool, seen []vault.Change) {
	b := r.batch
	if b == nil {
		return
	}
	b.Strayed = b.Strayed || lost
	if r.request.Step == Committing {
		return // its answer comes first
	}
	lost, b.Strayed = b.Strayed, false
	if b.RotateTo > 0 {
		r.settleRotation(lost)
		return
	}
	var left []Change
	broken := b.Unsure
	undone := b.Committed && !lost && r.undone(b.Changes, seen)
	for i := range b.Changes {
		c := &b.Changes[i]
		switch {
		case r.made(*c), b.Committed && !lost && !undone && r.touched(*c, seen):
			continue // if it isn't there any more, whoever changed it knew it
		case b.Committed, !r.rebased(c), r.above(*c) && len(r.records) > 0:
			broken = true // a batch seals no records anew
		}
		left = append(left, *c)
	}
	all := b.Changes
	switch {
	case len(left) == 0:
		r.end(BatchMade)
		r.settleBehind(all)
	case broken:
		r.giveUp(left)
		r.settleBehind(all) // some may have been made
	default:
		b.Changes = left
		if lost || b.Raises > 0 && r.KeyVersion() >= b.Raises {
			r.renew()
		}
	}
}

// undone reports whether a batch that was committed is not there any more: one of
// its changes was not made and nobody touched its record since. Then an older file
// came back that is no other history to the device: it had not read the newer one
// yet. The rest went with it, also where somebody has written since, who didn't
// know it.
func (r *Replica) undone(changes []Change, seen []vault.Change) bool {
	return slices.ContainsFunc(changes, func(c Change) bool { return !r.made(c) && !r.touched(c, seen) })
}

// touched reports whether somebody changed a record since the state that a change
// was made of.
func (r *Replica) touched(c Change, seen []vault.Change) bool {
	return !r.rebased(&c) || slices.ContainsFunc(seen, func(s vault.Change) bool { return s.Gone && s.ID == c.ID })
}

// settleBehind has changes that waited for those of a batch stand on what these
// made. Where that is not there any more, they are conflicts.
func (r *Replica) settleBehind(made []Change) {
	for _, done := range made {
		switch {
		case !r.made(done):
		case done.Gone:
			r.rebase(done.ID, unknown, 0)
		default:
			r.rebase(done.ID, unknown, r.records[done.ID].Revision)
		}
	}
}

// settleRotation is settleBatch for a rotation.
func (r *Replica) settleRotation(lost bool) {
	b := r.batch
	version := r.KeyVersion()
	switch {
	case b.Committed && !lost && (version >= b.RotateTo || len(r.records) == 0):
		r.end(BatchMade)
		return
	case version >= b.RotateTo:
		// Whose rotation it was, its contents say.
		how := BatchLost
		for id, s := range b.Sealed {
			if r.records[id].alike(Record{KeyVersion: b.RotateTo, Payload: s.Payload}) {
				how = BatchMade
			}
		}
		for _, c := range r.changes {
			if b.Sent[c.ID] == c.mark() && r.made(c) {
				how = BatchMade
			}
		}
		r.end(how)
		return
	case b.Committed, !r.rotatable():
		r.end(BatchLost)
		return
	}
	for id, s := range b.Sealed {
		if r.records[id].Revision != s.Of && r.rules.has(stageAgain) {
			delete(b.Sealed, id)
		}
	}
	if lost {
		// A revision says nothing in another history.
		clear(b.Sealed)
		r.renew()
	} else if b.Unsure {
		b.Unsure = false // it was not committed: the vault has its old key version
		r.renew()
	}
}
