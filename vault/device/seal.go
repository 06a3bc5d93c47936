package device

import (
	"maps"
	"slices"

	"pepvault/vault"
)

// Sealing is a content that has to be sealed with another key, or of which it is
// in doubt whether it has to be.
type Sealing struct {
	ID      string
	From    uint32        // the key version that it is sealed with
	To      uint32        // the one that it has to be sealed with
	Payload vault.Payload // as it is now sealed
	// Of is the revision of the record that a rotation seals anew; 0 = it is a
	// change of the device's own.
	Of vault.Revision
}

// Unsealed lists what waits for Seal: changes that were sealed with a key that
// the vault has left behind, or in a history of the vault that is lost; and the
// records of a vault whose rotation is under way on this device. From equals To
// where the key may be the right one: then Seal is given the same payload if it
// is.
//
// Whoever hasn't got the key To, waits; nothing is offered meanwhile, and
// nothing is dropped.
func (r *Replica) Unsealed() (list []Sealing) {
	version, rotation := r.KeyVersion(), uint32(0)
	if r.batch != nil {
		rotation = r.batch.RotateTo
	}
	own := func(c Change, to uint32) {
		list = append(list, Sealing{ID: c.ID, From: c.KeyVersion, To: to, Payload: c.Payload})
	}
	for i, c := range r.changes {
		switch {
		case i == 0 && r.sent():
		case r.above(c):
			if rotation > 0 && (c.Unsealed || c.KeyVersion != rotation) {
				own(c, rotation)
			}
		case c.Unsealed:
			own(c, max(version, c.KeyVersion))
		}
	}
	if r.batch != nil && !r.batch.Committed && r.request.Step != Committing {
		for _, c := range r.batch.Changes {
			if c.Unsealed {
				own(c, r.batchVersion())
			}
		}
	}
	if rotation == 0 || r.batch.Committed || rotation <= version {
		return list
	}
	for _, id := range slices.Sorted(maps.Keys(r.records)) {
		if record := r.records[id]; !r.batch.sealed(r, id) {
			list = append(list, Sealing{ID: id, From: record.KeyVersion, To: rotation, Payload: record.Payload, Of: record.Revision})
		}
	}
	return list
}

// Seal gives a content of Unsealed, sealed with the key version To. What was
// changed meanwhile is listed anew.
func (r *Replica) Seal(s Sealing, payload vault.Payload) {
	if s.Of > 0 {
		if b := r.batch; b != nil && b.RotateTo == s.To && r.records[s.ID].Revision == s.Of {
			b.Sealed[s.ID] = Sealed{Of: s.Of, Payload: payload}
		}
		return
	}
	own := func(c *Change) {
		if c.ID == s.ID && !c.Gone && c.record(0).alike(Record{KeyVersion: s.From, Payload: s.Payload}) {
			c.KeyVersion, c.Payload, c.Unsealed = s.To, payload, false
		}
	}
	for i := range r.changes {
		if i > 0 || !r.sent() {
			own(&r.changes[i])
		}
	}
	if r.batch != nil && !r.batch.Committed && r.request.Step != Committing {
		for i := range r.batch.Changes {
			own(&r.batch.Changes[i])
		}
	}
}

// Due returns the key version to which the vault has to be rotated, by
// [Replica.Rotate], before some changes can be offered: those that were sealed
// with it in a history that is lost. 0 = there is none, or a batch is under way.
func (r *Replica) Due() uint32 {
	to := uint32(0)
	if r.batch != nil || r.stale {
		return 0
	}
	for _, c := range r.changes {
		if r.above(c) {
			to = max(to, c.KeyVersion)
		}
	}
	return to
}

// raise takes in that the service stores no lower key version; no change is on
// its way.
func (r *Replica) raise(floor uint32) {
	before := r.KeyVersion()
	r.floor = max(r.floor, floor)
	r.reseal(before, false, false)
}

// keyShown reports whether a record that is not among these changes still tells
// which key the vault's key version stands for. Where all records have gone, others
// may come with the same key version and another key.
func (r *Replica) keyShown(changes []vault.Change) bool {
	fresh := map[string]bool{}
	for _, c := range changes {
		fresh[c.ID] = true
	}
	version := r.KeyVersion()
	for id, record := range r.records {
		if record.KeyVersion == version && !fresh[id] {
			return true
		}
	}
	return false
}

// sameKey is keyShown after a pass; a full one shows all records anew, and one of
// them has to be as it was.
func (r *Replica) sameKey(before map[string]Record, done *pass) bool {
	if done.reset == vault.NoReset {
		return r.keyShown(done.changes)
	}
	version := r.KeyVersion()
	for id, record := range r.records {
		if record.KeyVersion == version && before[id].Revision == record.Revision {
			return true
		}
	}
	return false
}

// reseal has changes sealed again where the key of the vault is another than
// before, or may be. sent says that the first change is on its way; what is, is
// judged by its answer.
func (r *Replica) reseal(before uint32, lost, sent bool) {
	if !r.rules.has(sealAgain) {
		return
	}
	version := r.KeyVersion()
	look := func(c *Change, asked bool) {
		c.Doubted = c.Doubted || lost
		if !asked && !c.Gone && (c.KeyVersion < version || c.Doubted && (lost || version != before)) {
			c.Unsealed = true
		}
	}
	for i := range r.changes {
		look(&r.changes[i], i == 0 && sent)
	}
	if r.batch != nil {
		for i := range r.batch.Changes {
			look(&r.batch.Changes[i], r.batch.Committed || r.request.Step == Committing)
		}
		r.align()
	}
}

// batchVersion is the key version that all changes of the batch are made with: in
// an empty vault none but theirs counts.
func (r *Replica) batchVersion() uint32 {
	version := r.KeyVersion()
	for _, c := range r.batch.Changes {
		version = max(version, c.KeyVersion)
	}
	return version
}

// align has changes of the batch sealed anew that have a lower key version than
// others of it.
func (r *Replica) align() {
	if r.batch.Committed || r.request.Step == Committing || !r.rules.has(sealAgain) {
		return
	}
	version := r.batchVersion()
	for i := range r.batch.Changes {
		c := &r.batch.Changes[i]
		c.Unsealed = c.Unsealed || !c.Gone && c.KeyVersion < version
	}
}
