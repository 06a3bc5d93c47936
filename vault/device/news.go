package device

import (
	"slices"

	"pepvault/pep"
	"pepvault/pep/wire"
	"pepvault/vault"
)

// Heard takes in a message of the service about the vault (PROTOCOL §6).
func (r *Replica) Heard(n wire.Notification) {
	s := n.State
	if s == nil || n.Node != r.node {
		return
	}
	now := s.Cursor
	if now == "" {
		now = pep.NoCursor // the vault was deleted
	}
	switch {
	case r.request.Step == Syncing && r.rules.has(waitForEnd):
		r.noted = now
	case now == r.cursor:
	case r.rules.has(followChain) && s.Previous != r.cursor, r.rules.has(wholeChange) && !whole(n):
		r.stale = true
	default:
		r.adopt(n, now)
	}
}

// whole reports whether a message carries every change that its state names.
func whole(n wire.Notification) bool {
	if n.Past || n.State.Previous == "" {
		return false
	}
	if n.Purged || n.Deleted {
		return true
	}
	for _, item := range n.State.Items {
		i := slices.IndexFunc(n.Changes, func(c vault.Change) bool { return c.ID == item.ID })
		if i < 0 || n.Changes[i].Gone != item.Gone || !item.Gone && n.Changes[i].Payload.Form == 0 {
			return false
		}
	}
	// What a rotation changed beside the records comes with the state of all.
	return len(n.State.Items) > 0 || n.Config != nil
}

// adopt carries out what a message tells.
func (r *Replica) adopt(n wire.Notification, now string) {
	version := r.KeyVersion()
	if n.Purged || n.Deleted {
		clear(r.records)
	}
	if n.Deleted {
		r.floor = 0
		r.carryOver(nil)
	}
	for _, c := range n.Changes {
		r.apply(c)
	}
	r.cursor = now
	r.adopted(version, n.Deleted, n.Changes)
}

// adopted looks at what is not acknowledged after a new state was adopted; before
// is the key version until then, lost says that this ended the vault's history,
// changes are what is new.
func (r *Replica) adopted(before uint32, lost bool, changes []vault.Change) {
	r.reseal(before, lost || !r.keyShown(changes), r.sent())
	r.settleBatch(lost, nil)
	r.settleChanges(r.sent())
}

func (r *Replica) apply(c vault.Change) {
	if c.Gone {
		delete(r.records, c.ID)
		return
	}
	r.records[c.ID] = Record{
		Revision: c.Revision, KeyVersion: c.KeyVersion, Payload: c.Payload, RotatedFrom: c.RotatedFrom,
	}
}

// acknowledged takes in that the first change was made. Its answer made every
// change that its state names.
func (r *Replica) acknowledged(s *pep.State) {
	done := r.take()
	revision := vault.Revision(0)
	for _, item := range s.Items {
		if item.ID == done.ID {
			revision = item.Revision
		}
	}
	switch {
	case s.Cursor == r.cursor: // the event came first
		r.follow(done, revision)
	case r.rules.has(ownChain) && s.Previous != r.cursor:
		// It may be one of another epoch. That is known when a sync goes on from a
		// cursor; to a device that knew of no vault nothing tells.
		if done.Base = revision; r.cursor == pep.NoCursor {
			done.Base = 0
		}
		r.follow(done, 0)
		r.stale = true
	default:
		r.follow(done, revision)
		version := r.KeyVersion()
		for _, item := range s.Items {
			c := vault.Change{Record: vault.Record{ID: item.ID, Revision: item.Revision}, Gone: item.Gone}
			if item.ID == done.ID {
				c.KeyVersion, c.Payload = done.KeyVersion, done.Payload
			}
			r.apply(c)
		}
		r.cursor = s.Cursor
		r.adopted(version, false, nil) // the key is the device's own
	}
}

// follow has the change that waited for one stand on what that made. Where the
// revision is not known (0), the sync that follows tells it.
func (r *Replica) follow(done Change, revision vault.Revision) {
	for i := range r.changes {
		if r.changes[i].ID != done.ID {
			continue
		}
		switch {
		case done.Gone:
			r.changes[i].Base = 0
		case revision == 0:
			r.changes[i].Base = unknown
			r.onto = append(r.onto, done)
		default:
			r.changes[i].Base = revision
		}
		return
	}
}
