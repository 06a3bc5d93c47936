package device

import (
	"maps"
	"slices"

	"pepvault/vault"
)

// Memory is all that a device keeps of a vault, as plain data. Nobody changes
// what is in it.
//
// Whoever keeps it, replaces all of it at once:
//   - after each call of Save, Remove, Settle, Rotate, Together, Seal, Confirm and
//     Abandon, before a person is told that it is done;
//   - after each call of Ask that returned another request than a [pep.Sync],
//     before that request is sent. Else a repeat could pass for something new, and
//     undo what others did since.
//
// All other calls may be kept at any later time, or never. A device that comes
// back with an older memory is like one that slept: it repeats what was on its
// way, and a sync tells it the rest.
type Memory struct {
	Node      string
	Cursor    string
	Records   map[string]Record // by id
	Changes   []Change
	Conflicts []Conflict
	Refused   []Change // conflicts of which the other side is not known yet
	Onto      []Change // acknowledged, without the revision that others stand on
	Request   Request  // on its way; Idle for a sync, which begins anew
	Batch     *Batch   // nil = none
	Aborts    []string // names of batches that have to be aborted
	Ended     BatchResult
	// Lost says that a pass began, and has not ended, that found the device's
	// history lost behind Fork. What the service has up to Shared was there before.
	Lost         bool
	Fork, Shared vault.Revision
}

// Memory returns what has to be kept. It shares payloads with the replica, which
// never change.
func (r *Replica) Memory() Memory {
	m := Memory{
		Node: r.node, Cursor: r.cursor, Records: maps.Clone(r.records), Changes: slices.Clone(r.changes),
		Conflicts: slices.Clone(r.conflicts), Refused: slices.Clone(r.refused), Onto: slices.Clone(r.onto),
		Aborts: slices.Clone(r.aborts), Ended: r.ended, Batch: r.batch.clone(),
	}
	if r.request.Step != Syncing {
		m.Request = r.request
	}
	if r.lost != nil {
		m.Lost, m.Fork, m.Shared = true, r.lost.fork, r.lost.shared
	}
	return m
}

func (b *Batch) clone() *Batch {
	if b == nil {
		return nil
	}
	c := *b
	c.Changes, c.Sealed = slices.Clone(b.Changes), maps.Clone(b.Sealed)
	c.Staged, c.Sent = maps.Clone(b.Staged), maps.Clone(b.Sent)
	return &c
}

// Load returns a replica with that memory, which is the replica's from then on.
// It begins as after a lost connection.
func Load(m Memory) *Replica {
	r := New(m.Node)
	r.cursor, r.records = m.Cursor, m.Records
	r.changes, r.conflicts, r.refused, r.onto = m.Changes, m.Conflicts, m.Refused, m.Onto
	r.request, r.batch, r.aborts, r.ended = m.Request, m.Batch, m.Aborts, m.Ended
	if m.Lost {
		r.lost = &loss{fork: m.Fork, shared: m.Shared}
	}
	if r.records == nil {
		r.records = map[string]Record{}
	}
	if b := r.batch; b != nil {
		if b.Sealed == nil {
			b.Sealed = map[string]Sealed{}
		}
		if b.Staged == nil {
			b.Staged = map[string]uint64{}
		}
		if b.Sent == nil {
			b.Sent = map[string]uint64{}
		}
	}
	r.Disconnected()
	return r
}
