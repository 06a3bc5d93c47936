package device

import (
	"slices"

	"pepvault/pep"
	"pepvault/pep/wire"
)

// Step is what a device asks the service for.
type Step uint8

const (
	Idle       Step = iota // nothing
	Syncing                // a page of what changed
	Offering               // one change
	Creating               // an empty vault, for a batch
	Beginning              // a batch
	Staging                // changes in it
	Unstaging              // some of them taken out
	Committing             // all of it made
	Aborting               // it dropped
)

// Request is what a device asked and what is not answered, as plain data: it can
// be repeated byte for byte.
type Request struct {
	Step   Step
	Cursor string // that it names
	Max    int    // changes on a page
	// Changes are the one that is offered, or those that are staged; of those
	// that are taken out, the ids.
	Changes []Change
	// Whole says that the change relies on the whole vault: that there is none,
	// or that it is empty still.
	Whole    bool
	Batch    string
	RotateTo uint32
	Count    int  // of the changes that are committed
	Confirm  bool // their removals were confirmed
	Repeated bool // the answer to the same was lost
}

// op makes the request; nil if there is none.
func (q Request) op(node string) pep.Op {
	switch q.Step {
	case Syncing:
		return pep.Sync{Node: node, Cursor: q.Cursor, Max: q.Max}
	case Offering:
		return q.change(node, q.expect(), nil)
	case Creating:
		return pep.Create{Node: node}
	case Beginning:
		return pep.BeginBatch{Node: node, ID: q.Batch, Cursor: q.Cursor, RotateTo: q.RotateTo}
	case Staging:
		return q.change(node, nil, &pep.BatchRef{ID: q.Batch, Cursor: q.Cursor})
	case Unstaging:
		return pep.Unstage{ID: q.Batch, IDs: q.ids()}
	case Committing:
		return pep.CommitBatch{ID: q.Batch, Cursor: q.Cursor, Changes: q.Count, Confirm: q.Confirm}
	case Aborting:
		return pep.AbortBatch{ID: q.Batch}
	}
	return nil
}

// change publishes or retracts: all of the changes are of one kind.
func (q Request) change(node string, expect *pep.Expect, batch *pep.BatchRef) pep.Op {
	if q.Changes[0].Gone {
		return pep.Retract{Node: node, IDs: q.ids(), Expect: expect, State: batch == nil, Batch: batch}
	}
	op := pep.Publish{Node: node, Expect: expect, State: batch == nil, Batch: batch}
	for _, c := range q.Changes {
		op.Items = append(op.Items, pep.Item{ID: c.ID, KeyVersion: c.KeyVersion, Payload: c.Payload})
	}
	return op
}

// expect is what a change relies on; nil = nothing, which no device should say.
func (q Request) expect() *pep.Expect {
	if q.Cursor == "" {
		return nil
	}
	expect := &pep.Expect{Cursor: q.Cursor}
	if !q.Whole {
		expect.Items = []pep.Expected{{ID: q.Changes[0].ID, Revision: q.Changes[0].Base}}
	}
	return expect
}

func (q Request) ids() []string {
	ids := make([]string, len(q.Changes))
	for i, c := range q.Changes {
		ids[i] = c.ID
	}
	return ids
}

// Answered takes in the answer to the latest request of Ask.
func (r *Replica) Answered(answer any) {
	request := r.request
	if request.Step == Idle {
		return
	}
	switch a := answer.(type) {
	case pep.SyncPage:
		r.page(a)
		return
	case pep.DownloadBegun: // its chunks follow
		return
	}
	r.request = Request{}
	switch a := answer.(type) {
	case pep.Published:
		r.stored(request, a.State)
	case pep.Retracted:
		r.stored(request, a.State)
	case pep.Created:
		r.stale = true
	case pep.Begun:
		r.within(request, func(b *Batch) { b.Begun = true })
	case pep.Unstaged:
		r.within(request, func(b *Batch) {
			for _, c := range request.Changes {
				delete(b.Staged, c.ID)
			}
		})
	case pep.Committed:
		// What it made is read by a sync, like everything that others make.
		r.within(request, func(b *Batch) { b.Committed = true })
		r.stale = true
	case pep.Aborted:
		r.aborted(request)
	}
}

// stored takes in that changes were made, or staged.
func (r *Replica) stored(request Request, state *pep.State) {
	if request.Step == Offering {
		r.acknowledged(state)
		return
	}
	r.within(request, func(b *Batch) {
		for _, c := range request.Changes {
			b.Staged[c.ID] = c.mark()
		}
	})
}

// within has fn see the batch that a request was about, if that is under way
// still.
func (r *Replica) within(request Request, fn func(*Batch)) {
	if r.batch != nil && r.batch.name() == request.Batch {
		fn(r.batch)
	}
}

// Refused takes in that the service refused the latest request of Ask, err; nil
// stands for an answer that can't be read. A refused change is never sent again
// unasked: once the device knows what there is, it is a conflict (PROTOCOL §8).
// Where the service wants a pause, the same is asked after [Replica.Again].
func (r *Replica) Refused(err *wire.StanzaError) {
	if err == nil {
		err = new(wire.StanzaError)
	}
	request := r.request
	switch {
	case request.Step == Idle:
		return
	case err.Own == "too-many-batches":
		r.request = Request{}
		r.within(request, func(b *Batch) { b.Tried, b.Full = false, true })
		return
	case err.Type == "wait":
		r.paused, r.repeat, r.request.Repeated = true, request.Step != Syncing, true
		if request.Step == Syncing {
			r.endSync()
		}
		return
	}
	r.request = Request{}
	switch request.Step {
	case Syncing:
		r.endSync()
	case Offering:
		r.refusedChange(request, err)
	case Creating:
		r.stale = true
	case Aborting:
		r.aborted(request)
	default:
		r.stale = true
		r.within(request, func(b *Batch) { r.refusedBatch(b, request, err) })
	}
}

// endSync gives up a sync; it begins anew.
func (r *Replica) endSync() {
	r.request, r.pass, r.noted, r.push = Request{}, nil, "", push{}
	r.stale = true
}

// refusedChange judges the change that was refused.
func (r *Replica) refusedChange(request Request, err *wire.StanzaError) {
	r.stale = true
	c := r.take()
	switch {
	case !r.rules.has(keepBoth):
		r.changes = slices.Insert(r.changes, 0, c)
	case err.Own == "key-version-too-low":
		// What it relies on holds: only its key is that of yesterday.
		r.raise(err.Floor)
		c.Unsealed = r.rules.has(sealAgain)
		r.putBack(c)
	case request.Whole && err.Own == "revision-mismatch" && !request.Repeated:
		// Nobody has touched the record: the vault is not empty any more. Of a
		// repeat nothing is known.
		c.Unsealed = c.Unsealed || c.Doubted
		r.putBack(c)
	default:
		r.refused = append(r.refused, c)
	}
}

// putBack has a change that was on its way wait again. One that its author made
// of it since takes its place.
func (r *Replica) putBack(c Change) {
	i := slices.IndexFunc(r.changes, func(later Change) bool { return later.ID == c.ID })
	if i >= 0 {
		r.changes[i].Base = c.Base
		r.changes[i].Doubted = r.changes[i].Doubted || c.Doubted
		return
	}
	r.changes = slices.Insert(r.changes, 0, c)
}

// aborted drops a batch from those that have to be aborted: it is, or there is
// none.
func (r *Replica) aborted(request Request) {
	r.aborts = slices.DeleteFunc(r.aborts, func(name string) bool { return name == request.Batch })
}
