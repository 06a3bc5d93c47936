package device

import (
	"hash/fnv"
	"slices"

	"pepvault/pep"
	"pepvault/vault"
)

// Change is what a device changed and the service has not acknowledged.
type Change struct {
	ID         string
	Base       vault.Revision // of the record that was changed; 0 = there was none
	Gone       bool           // a removal
	KeyVersion uint32
	Payload    vault.Payload
	// Unsealed says that it is not offered before it was sealed with the vault's
	// key ([Replica.Unsealed]).
	Unsealed bool
	// Doubted says that it was sealed in another history of the vault, where a
	// key version may have stood for another key.
	Doubted bool
}

// Save changes a record on the device.
func (r *Replica) Save(id string, keyVersion uint32, payload vault.Payload) {
	r.change(Change{ID: id, KeyVersion: keyVersion, Payload: payload})
}

// Remove removes a record on the device.
func (r *Replica) Remove(id string) { r.change(Change{ID: id, Gone: true}) }

// change replaces a change of that record that was not sent yet.
func (r *Replica) change(c Change) {
	c.Unsealed = r.mustSeal(c)
	c.Base = r.records[c.ID].Revision
	for i := len(r.changes) - 1; i >= 0; i-- {
		if r.changes[i].ID != c.ID {
			continue
		}
		if i > 0 || !r.sent() {
			c.Base, c.Doubted = r.changes[i].Base, r.changes[i].Doubted
			r.changes[i] = c
			return
		}
		c.Base = unknown // its author saw what is on its way
		r.changes = append(r.changes, c)
		return
	}
	if in := r.batch.change(c.ID); in != nil {
		if r.batch.Committed || r.batch.Unsure || r.request.Step == Committing {
			c.Base = unknown
		} else {
			c.Base, c.Doubted = in.Base, in.Doubted
			*in = c
			r.align()
			return
		}
	}
	r.changes = append(r.changes, c)
}

// mustSeal reports whether a change has a key version that the vault has left
// behind.
func (r *Replica) mustSeal(c Change) bool {
	return !c.Gone && c.KeyVersion < r.KeyVersion() && r.rules.has(sealAgain)
}

// sent reports whether a change is on its way, or was and waits to be repeated:
// it is the first one.
func (r *Replica) sent() bool { return r.request.Step == Offering }

// take removes the change that was on its way.
func (r *Replica) take() Change {
	c := r.changes[0]
	r.changes = slices.Delete(r.changes, 0, 1)
	return c
}

// offer is the request for the first change that can be offered. It relies on
// what was changed.
func (r *Replica) offer() Request {
	earlier := map[string]bool{}
	for i, c := range r.changes {
		if earlier[c.ID] {
			continue
		}
		earlier[c.ID] = true
		if c.Unsealed || r.above(c) || r.batch.change(c.ID) != nil {
			continue
		}
		r.changes = slices.Insert(slices.Delete(r.changes, i, i+1), 0, c)
		request := Request{Step: Offering, Cursor: r.cursor, Changes: []Change{c}}
		// In an empty vault nothing tells which key a key version stands for.
		request.Whole = r.cursor == pep.NoCursor || len(r.records) == 0 && c.Base == 0 && !c.Gone
		if !r.rules.has(expectBase) {
			request.Cursor = ""
		}
		return request
	}
	return Request{}
}

// above reports whether a change has a key version that the vault has not: it
// was sealed in a history that is lost, and goes into a rotation to that key
// version, or two of them would stand side by side (PROTOCOL §7). A vault without
// records, or none, is like one of key version 1: that is what others begin with
// who know no other.
func (r *Replica) above(c Change) bool {
	return !c.Gone && c.KeyVersion > max(r.KeyVersion(), 1) && r.rules.has(rotateTogether)
}

// waitsAbove reports whether a change waits for a rotation.
func (r *Replica) waitsAbove() bool { return slices.ContainsFunc(r.changes, r.above) }

func (c Change) record(revision vault.Revision) Record {
	return Record{Revision: revision, KeyVersion: c.KeyVersion, Payload: c.Payload}
}

// made reports whether a change is there already.
func (r *Replica) made(c Change) bool {
	theirs, there := r.records[c.ID]
	return c.Gone && !there || !c.Gone && there && c.record(0).alike(theirs)
}

// mark stands for what a change says and what it was made of.
func (c Change) mark() uint64 {
	h := fnv.New64a()
	frame := []byte{byte(c.Payload.Form), byte(c.KeyVersion), byte(c.KeyVersion >> 8), byte(c.KeyVersion >> 16), byte(c.KeyVersion >> 24)}
	for shift := 0; shift < 64; shift += 8 {
		frame = append(frame, byte(c.Base>>shift))
	}
	_, _ = h.Write(frame)
	_, _ = h.Write(c.Payload.Data)
	return max(h.Sum64(), 1)
}

// conflict sets a change aside.
func (r *Replica) conflict(c Change) {
	found := Conflict{Mine: c}
	if theirs, there := r.records[c.ID]; there {
		found.Theirs = &theirs
	}
	r.conflicts = append(r.conflicts, found)
}

// standsOn reports whether it is not known yet what a change was made of.
func (r *Replica) standsOn(c Change) bool {
	return c.Base == unknown && (r.batch.change(c.ID) != nil ||
		slices.ContainsFunc(r.onto, func(done Change) bool { return done.ID == c.ID }))
}

// rebased has a change stand on a record that a key rotation sealed anew, and
// reports whether it stands on what there is.
func (r *Replica) rebased(c *Change) bool {
	theirs := r.records[c.ID]
	if theirs.RotatedFrom > 0 && theirs.RotatedFrom == c.Base && r.rules.has(followRotation) {
		c.Base = theirs.Revision
		c.Unsealed = c.Unsealed || r.mustSeal(*c)
	}
	return theirs.Revision == c.Base
}

// settleChanges looks at what is not sent after the records have changed: what
// is there already is done, and what was made of another record than there is
// can't be made any more. sent says that the first one is on its way.
func (r *Replica) settleChanges(sent bool) {
	waiting := r.changes
	r.changes = nil
	touched := map[string]bool{}
	for i, c := range waiting {
		if i == 0 && sent || touched[c.ID] || r.standsOn(c) {
			// What is on its way is judged by its answer, and what waits for
			// it by that too; what stands on something unknown by a sync.
			touched[c.ID] = true
			r.changes = append(r.changes, c)
			continue
		}
		switch {
		case r.made(c):
		case r.rebased(&c):
			r.changes = append(r.changes, c)
			touched[c.ID] = true
		case !r.rules.has(keepBoth):
			c.Base = r.records[c.ID].Revision
			r.changes = append(r.changes, c)
		default:
			r.conflict(c)
		}
	}
}
