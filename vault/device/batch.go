package device

import (
	"maps"
	"slices"
	"strconv"

	"pepvault/pep"
	"pepvault/vault"
)

// Batch is a batch that the device has under way, as plain data (PROTOCOL §9).
type Batch struct {
	ID      string
	Attempt int // how often it had to begin anew; each time it has another name
	// RotateTo is the key version to which a rotation brings the whole vault; 0 =
	// it is none.
	RotateTo uint32
	// Raises is the key version that the service was told to raise the vault to,
	// without records as it was, for changes that are no rotation; 0 = none.
	Raises  uint32
	Changes []Change          // of one that is no rotation: what is still to be made
	Sealed  map[string]Sealed // of a rotation, by record id
	// Staged says what the service holds of it, by record id: a mark of the
	// content and of what that was made of. 0 = something that has to go.
	Staged    map[string]uint64
	Sent      map[string]uint64 // what was sent to be staged, answered or not
	Rewritten bool              // some of that was replaced, or taken out again
	Tried     bool              // begin was asked for, so the service may have it
	Begun     bool
	Full      bool // the account has too many: begin waits for Again
	Removals  int  // a person has to confirm that so many records go; 0 = no
	Confirmed bool
	Committed bool // what it made has to be read
	Unsure    bool // it may have been committed: nothing of it is sent again
	Strayed   bool // the vault's history ended while the commit was on its way
}

// Sealed is what a rotation has of a record.
type Sealed struct {
	Of      vault.Revision // that it is the same as, sealed anew
	Payload vault.Payload
}

// BatchEnd says how a batch ended.
type BatchEnd uint8

const (
	NoBatch        BatchEnd = iota // none has
	BatchMade                      // it was committed
	BatchLost                      // a rotation came too late: another device's holds, or there is nothing to rotate
	BatchRefused                   // it can't be made, for lack of room or since others changed something: what waited for it are conflicts
	BatchAbandoned                 // by a person
)

// BatchResult is how the latest batch of the device ended.
type BatchResult struct {
	ID       string
	RotateTo uint32
	End      BatchEnd
}

// pieceCost bounds what one request stages, as a sum of [vault.Record.Cost]:
// hosts cut off a client whose stanza has more than 256 KiB.
const pieceCost = 100_000

// Rotate begins a rotation of the vault to a key version, with a batch id of 128
// random bits. Its contents are asked for by [Replica.Unsealed]; Ask stages them
// in several requests and commits. Whatever others do meanwhile is sealed and
// staged again; it may be resumed after any loss.
//
// Where another device rotates to the same version first, this one has lost, with
// all that it sealed: [BatchLost]. It returns false, and does nothing, if a batch
// is under way, if the vault has that key version, or if there is nothing to
// rotate: neither a record nor a change for which a rotation is [Replica.Due].
func (r *Replica) Rotate(batch string, to uint32) bool {
	if r.batch != nil || to <= r.KeyVersion() || !r.rotatable() {
		return false
	}
	r.batch = &Batch{ID: batch, RotateTo: to, Sealed: map[string]Sealed{}, Staged: map[string]uint64{}, Sent: map[string]uint64{}}
	return true
}

// rotatable reports whether a rotation has something to make.
func (r *Replica) rotatable() bool { return len(r.records) > 0 || r.waitsAbove() }

// Together begins a batch of changes that are made at once or not at all, with a
// batch id of 128 random bits; their Base is not read. Where one of them can't
// be made any more, all of them become conflicts ([BatchRefused]). It returns
// false, and does nothing, if a batch is under way, if there is no change, two of
// one record, or another one of such a record that is not acknowledged.
func (r *Replica) Together(batch string, changes []Change) bool {
	if r.batch != nil || len(changes) == 0 {
		return false
	}
	b := &Batch{ID: batch, Staged: map[string]uint64{}, Sent: map[string]uint64{}}
	for _, c := range changes {
		if r.waits(c.ID) || b.change(c.ID) != nil {
			return false
		}
		c.Base, c.Doubted = r.records[c.ID].Revision, false
		c.Unsealed = r.mustSeal(c)
		b.Changes = append(b.Changes, c)
	}
	r.batch = b
	r.align()
	return true
}

// Batch returns the batch under way; the user does not change what is in it.
// false = there is none.
func (r *Replica) Batch() (Batch, bool) {
	if r.batch == nil {
		return Batch{}, false
	}
	return *r.batch, true
}

// Ended tells how the latest batch ended.
func (r *Replica) Ended() BatchResult { return r.ended }

// Confirming returns how many records a batch removes, if that are nearly all of
// the vault and a person has to say that it is meant; else 0.
func (r *Replica) Confirming() int {
	if r.batch == nil || r.batch.Confirmed {
		return 0
	}
	return r.batch.Removals
}

// Confirm says that a person means it.
func (r *Replica) Confirm() {
	if r.Confirming() > 0 {
		r.batch.Confirmed = true
	}
}

// Abandon drops the batch under way, and what was to be changed with it. It
// returns false if there is none, or if it may have been committed.
func (r *Replica) Abandon() bool {
	if r.batch == nil || r.batch.Committed || r.batch.Unsure || r.request.Step == Committing {
		return false
	}
	r.end(BatchAbandoned)
	return true
}

func (b *Batch) name() string {
	if b.Attempt == 0 {
		return b.ID
	}
	return b.ID + "." + strconv.Itoa(b.Attempt)
}

// change returns the batch's change of a record, or nil.
func (b *Batch) change(id string) *Change {
	if b == nil {
		return nil
	}
	for i := range b.Changes {
		if b.Changes[i].ID == id {
			return &b.Changes[i]
		}
	}
	return nil
}

// sealed reports whether a rotation has a record as it is now.
func (b *Batch) sealed(r *Replica, id string) bool {
	s, found := b.Sealed[id]
	return found && (s.Of == r.records[id].Revision || !r.rules.has(stageAgain))
}

// end ends the batch under way; a person hears of it by Ended.
func (r *Replica) end(how BatchEnd) {
	b := r.batch
	if !r.rules.has(takeWinner) && how == BatchLost {
		how = BatchMade
	}
	r.ended = BatchResult{ID: b.ID, RotateTo: b.RotateTo, End: how}
	r.forsake()
	r.batch = nil
}

// forsake has the service drop what it holds of the batch.
func (r *Replica) forsake() {
	if r.batch.Tried && !r.batch.Committed {
		r.aborts = append(r.aborts, r.batch.name())
	}
}

// sends notes what the service will hold of the batch, or may.
func (b *Batch) sends(request Request) {
	b.Rewritten = b.Rewritten || request.Step == Unstaging
	for _, c := range request.Changes {
		if request.Step == Unstaging {
			continue
		}
		if sent, found := b.Sent[c.ID]; found && sent != c.mark() {
			b.Rewritten = true
		}
		b.Sent[c.ID] = c.mark()
	}
}

// doubt takes in that the service may have got an older file back since it was
// last heard of. Of a batch that only grew it holds fewer changes then, and says so
// when they are committed; of one that was rewritten it may hold others.
func (r *Replica) doubt() {
	b := r.batch
	switch {
	case b == nil || !b.Rewritten || b.Committed || !r.rules.has(beginAnew):
	case r.request.Step == Committing:
		r.request, b.Unsure = Request{}, true
	default:
		r.renew()
	}
}

// renew begins the batch anew, since it is in doubt what the service holds of it.
func (r *Replica) renew() {
	b := r.batch
	if !r.rules.has(beginAnew) {
		b.Begun = false
		return
	}
	r.forsake()
	b.Attempt++
	b.Tried, b.Begun, b.Full, b.Rewritten = false, false, false, false
	b.Staged, b.Sent = map[string]uint64{}, map[string]uint64{}
}

// stepBatch is the next request of the batch; none if it waits for something.
func (r *Replica) stepBatch() Request {
	if len(r.aborts) > 0 {
		return Request{Step: Aborting, Batch: r.aborts[0]}
	}
	b := r.batch
	if b == nil || b.Full || b.Committed {
		return Request{}
	}
	wanted, ready := r.wanted()
	switch {
	case !ready:
		return Request{}
	case r.cursor == pep.NoCursor:
		return Request{Step: Creating}
	}
	request := Request{Batch: b.name(), Cursor: r.cursor}
	switch {
	case !b.Begun:
		b.Tried = true
		if b.Raises = 0; slices.ContainsFunc(b.Changes, r.above) {
			b.Raises = r.batchVersion()
		}
		request.Step, request.RotateTo = Beginning, max(b.RotateTo, b.Raises)
		return request
	case b.superfluous(wanted, &request), b.piece(wanted, r.stageBy, &request):
		b.sends(request)
		return request
	case r.Confirming() > 0:
		return Request{}
	}
	request.Step, request.Count, request.Confirm = Committing, len(wanted), b.Confirmed
	if !r.rules.has(askFirst) {
		request.Confirm = true
	}
	return request
}

// wanted lists what the commit has to make; ready says that all of it is sealed.
func (r *Replica) wanted() (list []Change, ready bool) {
	b := r.batch
	if b.RotateTo == 0 {
		unsealed := func(c Change) bool { return c.Unsealed }
		return b.Changes, !slices.ContainsFunc(b.Changes, unsealed)
	}
	for _, id := range slices.Sorted(maps.Keys(r.records)) {
		if !b.sealed(r, id) {
			return nil, false
		}
		list = append(list, Change{ID: id, Base: r.records[id].Revision, KeyVersion: b.RotateTo, Payload: b.Sealed[id].Payload})
	}
	for _, c := range r.changes {
		// What is in the place of a record is offered when that is sealed anew:
		// others take all that a rotation makes of a record for the same content.
		if _, there := r.records[c.ID]; there || !r.above(c) {
			continue
		}
		if c.Unsealed || c.KeyVersion != b.RotateTo {
			return nil, false
		}
		list = append(list, c)
	}
	return list, true
}

// superfluous makes the request that takes out what is not wanted, if there is
// something.
func (b *Batch) superfluous(wanted []Change, request *Request) bool {
	for _, id := range slices.Sorted(maps.Keys(b.Staged)) {
		if !slices.ContainsFunc(wanted, func(c Change) bool { return c.ID == id }) {
			request.Changes = append(request.Changes, Change{ID: id})
		}
	}
	request.Step = Unstaging
	return len(request.Changes) > 0
}

// piece makes the request that stages what is not staged yet, as much of it as
// fits, if there is something.
func (b *Batch) piece(wanted []Change, most int, request *Request) bool {
	cost := 0
	for _, c := range wanted {
		if b.Staged[c.ID] == c.mark() {
			continue
		}
		cost += vault.Record{ID: c.ID, Payload: c.Payload}.Cost()
		if n := len(request.Changes); n > 0 && (cost > pieceCost || n == most || request.Changes[0].Gone != c.Gone) {
			break
		}
		request.Changes = append(request.Changes, c)
	}
	request.Step = Staging
	return len(request.Changes) > 0
}
