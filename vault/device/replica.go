package device

import (
	"bytes"
	"maps"
	"slices"

	"pepvault/pep"
	"pepvault/vault"
)

// Record is a record as a device holds it.
type Record struct {
	Revision   vault.Revision
	KeyVersion uint32
	Payload    vault.Payload
	// RotatedFrom is the revision that a key rotation sealed anew; 0 for what
	// was written since, and where the device did not hear of it.
	RotatedFrom vault.Revision
}

// Conflict is a change that can't be made any more, since the record was
// changed by somebody else. Both versions are there. After a key rotation both
// may say the same: only who has the keys can tell.
type Conflict struct {
	Mine   Change
	Theirs *Record // as it now is; nil = it was removed
}

// Replica is what a device holds of one vault, and what it wants of it. It does
// nothing by itself: its user brings it what the service says, sends what it
// asks for, and keeps its [Memory]. One goroutine uses it; no method blocks.
type Replica struct {
	node    string
	cursor  string            // of records; pep.NoCursor = there is no vault
	records map[string]Record // by id
	changes []Change          // in their order; one of an id waits for those before it
	// conflicts are for a person to settle.
	conflicts []Conflict

	// request was sent and is not answered. After a lost connection a change and
	// a commit are repeated, byte for byte, before anything else (PROTOCOL §8).
	request Request
	repeat  bool
	paused  bool     // the service wants a pause
	onto    []Change // acknowledged without a revision; another change stands on each
	refused []Change // conflicts, once it is known with what

	batch  *Batch // under way; nil = none
	aborts []string
	ended  BatchResult // of the latest one

	// floor is the key version below which the service refused something in this
	// session: an older file may come back between two.
	floor uint32
	// lost is set while a pass is not finished that found the device's history
	// lost. It outlives the pass.
	lost *loss

	stale bool   // it has to sync
	pass  *pass  // the sync under way
	push  push   // the download that brings it
	noted string // the last cursor that was heard of meanwhile

	pageBy  int // changes a page of a sync; 0 = as many as fit
	stageBy int // changes a request stages; 0 = as many as fit
	rules   rules
}

// New returns the replica of a vault of which nothing is held.
func New(node string) *Replica {
	return &Replica{node: node, cursor: pep.NoCursor, records: map[string]Record{}, stale: true, rules: allRules}
}

// PageBy bounds the pages of a sync that begins later: at most n changes each,
// 0 = as many as fit.
func (r *Replica) PageBy(n int) { r.pageBy = n }

// StageBy bounds what one request stages in a batch: at most n changes, 0 = as
// many as fit.
func (r *Replica) StageBy(n int) { r.stageBy = n }

const (
	// unknown stands for a revision that an answer or the next sync tells.
	unknown = ^vault.Revision(0)
	// gone stands for that of a record of another epoch.
	gone = unknown - 1
)

// Cursor is the state that the records are of.
func (r *Replica) Cursor() string { return r.cursor }

// Records returns what the service has, as far as the device knows.
func (r *Replica) Records() map[string]Record { return maps.Clone(r.records) }

// Changes returns what is not acknowledged, in its order, but for that of a
// batch.
func (r *Replica) Changes() []Change { return slices.Clone(r.changes) }

// Conflicts returns what a person has to settle.
func (r *Replica) Conflicts() []Conflict { return slices.Clone(r.conflicts) }

// Settle removes a conflict; a person has decided.
func (r *Replica) Settle(i int) { r.conflicts = slices.Delete(r.conflicts, i, i+1) }

// KeyVersion is the highest key version of the vault, as far as the device
// knows; 0 = it knows of none. A save has it, or 1 if it is 0: only a rotation
// goes beyond.
func (r *Replica) KeyVersion() uint32 {
	version := r.floor
	for _, record := range r.records {
		version = max(version, record.KeyVersion)
	}
	return version
}

// Ask returns the next request, or nil if there is none to send now. It has to
// be answered by Answered, Refused or Disconnected before the next one. What
// waits to be sealed ([Replica.Unsealed]), for a rotation ([Replica.Due]), for a
// person ([Replica.Confirming]) or for [Replica.Again] is not asked for.
func (r *Replica) Ask() pep.Op {
	switch {
	case r.paused:
		return nil
	case r.repeat:
		r.repeat = false
		return r.request.op(r.node)
	case r.request.Step != Idle:
		return nil
	case r.stale:
		r.pass, r.noted = &pass{}, ""
		r.request = Request{Step: Syncing, Cursor: r.cursor, Max: r.pageBy}
	default:
		if r.request = r.offer(); r.request.Step == Idle {
			r.request = r.stepBatch()
		}
	}
	return r.request.op(r.node)
}

// Again has what the service put off asked again: the pause that it wanted is
// over ([wire.StanzaError] has it), or another batch of the account may have
// ended.
func (r *Replica) Again() {
	r.paused = false
	if r.batch != nil {
		r.batch.Full = false
	}
}

// PutOff reports whether something waits for Again.
func (r *Replica) PutOff() bool { return r.paused || r.batch != nil && r.batch.Full }

// Disconnected has what was not answered asked again. On each session a device
// looks whether it missed something; it is a new one, too, when the service sends
// presence, since it was away then.
func (r *Replica) Disconnected() {
	r.stale = true
	r.doubt()
	r.pass, r.noted, r.push, r.floor = nil, "", push{}, 0
	r.Again()
	switch r.request.Step {
	case Offering, Committing:
		if r.rules.has(repeatSame) {
			r.repeat, r.request.Repeated = true, true
			return
		}
	}
	// The rest changes nothing, or may be asked twice.
	r.request, r.repeat = Request{}, false
}

// alike reports whether two records say the same, whatever their revisions.
func (r Record) alike(o Record) bool {
	return r.KeyVersion == o.KeyVersion && r.Payload.Form == o.Payload.Form && bytes.Equal(r.Payload.Data, o.Payload.Data)
}
