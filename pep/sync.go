package pep

import (
	"context"
	"errors"
	"math"

	"pepvault/vault"
)

// Sync asks for what changed in a vault since a cursor: one page (PROTOCOL
// §7).
type Sync struct {
	Node   string
	Cursor string // "" or NoCursor: the device holds nothing
	Max    int    // changes on the page, at most; 0 = as many as fit
	Bytes  int    // that they take, at most, if more than one; 0 = as many as fit
}

// SyncPage answers Sync.
type SyncPage struct {
	Owner   vault.Account
	Node    string
	Cursor  string // signed: of the last change if More, else of the vault; NoCursor if there is none
	More    bool
	Records int // in the vault
	// Reset is set on every page of a pass through the whole vault, First on
	// the first one.
	Reset   vault.Reset
	First   bool
	Fork    vault.Revision // of vault.ResetLost: up to here the history of the device's cursor is the vault's
	Changes []vault.Change // in the order of revisions
}

func (SyncPage) answer() {}

// errOwnEpochLost says that the vault's epoch has two histories: the vault
// needs another one before anything is said about it.
var errOwnEpochLost = errors.New("the epoch of the vault has two histories")

func (e *Engine) sync(ctx context.Context, req Request, op Sync, done func(Outcome)) error {
	key := vault.Key{Account: req.Owner, Node: op.Node}
	return e.inOneHistory(ctx, req, key, op.Cursor, func() error {
		return e.planned(ctx, key, func(v vault.View) (plan, error) {
			p, err := e.place(v, req, key, op.Cursor)
			if err != nil {
				return plan{}, err
			}
			return e.planChanges(v, p, op), nil
		}, done)
	})
}

// inOneHistory carries out what looks for the place of a device. If the epoch
// of the vault has two histories, the vault gets another one first: then the
// same question finds the old epoch among those before.
func (e *Engine) inOneHistory(ctx context.Context, req Request, key vault.Key, cursor string, ask func() error) error {
	err := ask()
	if !errors.Is(err, errOwnEpochLost) {
		return err
	}
	if err := e.update(ctx, key, func(tx vault.Tx, _ func(func())) error {
		_, err := e.place(tx, req, key, cursor)
		if errors.Is(err, errOwnEpochLost) {
			_, err = tx.Fork(key, 0)
		}
		return err
	}); err != nil {
		return err
	}
	return e.inOneHistory(ctx, req, key, cursor, ask)
}

// place is where a device stands in a vault.
type place struct {
	head   SyncPage // what its next page says beside changes; all of it if there is no vault
	absent bool
	state  vault.Vault
	runs   vault.Runs
	from   vault.Cursor // it goes on from here
}

// place decides where a device stands. errOwnEpochLost.
func (e *Engine) place(v vault.View, req Request, key vault.Key, cursor string) (p place, err error) {
	if err := admit(v, req); err != nil {
		return p, err
	}
	var held vault.Cursor
	holds := cursor != "" && cursor != NoCursor
	if holds {
		if held, err = e.store.CursorKey().Verify(cursor); err != nil {
			return p, err
		}
	}
	p.state, err = v.Vault(key)
	if errors.Is(err, vault.ErrNoVault) {
		return placeOfNone(v, key, held, holds)
	}
	if err != nil {
		return p, err
	}
	if p.runs, err = v.Runs(key); err != nil {
		return p, err
	}
	p.from = vault.Cursor{Pass: vault.Pass{Reset: vault.ResetNew}}
	if holds {
		if p.from, err = standing(v, p.state, p.runs, held); err != nil {
			return p, err
		}
	}
	p.head = SyncPage{
		Owner: key.Account, Node: key.Node, Records: p.state.Records,
		Reset: p.from.Pass.Reset, Fork: p.from.Pass.Fork,
	}
	if p.head.Reset != vault.NoReset && p.from.Epoch == (vault.Epoch{}) {
		p.head.First = true
		p.from.Pass.Start = p.state.Revision
	}
	return p, nil
}

// standing returns the cursor from which a device goes on: its own, or the
// beginning of a pass, which has no epoch.
func standing(v vault.View, state vault.Vault, runs vault.Runs, held vault.Cursor) (vault.Cursor, error) {
	pass := func(p vault.Pass) (vault.Cursor, error) { return vault.Cursor{Pass: p}, nil }
	if held.Epoch == state.Epoch {
		switch reset := runs.Judge(held, state); reset {
		case vault.NoReset:
			return held, nil
		case vault.ResetLost:
			return vault.Cursor{}, errOwnEpochLost
		default:
			return pass(vault.Pass{Reset: reset})
		}
	}
	fork, known, err := v.Forked(state.Key, held.Epoch)
	if err != nil {
		return vault.Cursor{}, err
	}
	if known {
		return pass(vault.Pass{Reset: vault.ResetLost, Fork: runs.Forked(held, fork, state.Revision)})
	}
	ended, err := v.Ended(held.Epoch)
	if err != nil {
		return vault.Cursor{}, err
	}
	if ended {
		return pass(vault.Pass{Reset: vault.ResetEnded})
	}
	return pass(vault.Pass{Reset: vault.ResetLost})
}

// placeOfNone is that in a vault that is not there: an empty pass, after which
// the device holds nothing. What it held counts as ended only if that is known:
// a store may have been rolled back to before the vault.
func placeOfNone(v vault.View, key vault.Key, held vault.Cursor, holds bool) (place, error) {
	page := SyncPage{Owner: key.Account, Node: key.Node, Cursor: NoCursor, Reset: vault.ResetNew, First: true}
	if holds {
		ended, err := v.Ended(held.Epoch)
		if err != nil {
			return place{}, err
		}
		page.Reset = vault.ResetLost
		if ended {
			page.Reset = vault.ResetEnded
		}
	}
	return place{head: page, absent: true}, nil
}

// planChanges makes the page that follows a place.
func (e *Engine) planChanges(v vault.View, p place, op Sync) plan {
	if p.absent {
		return plan{read: func() (Answer, error) { return p.head, nil }}
	}
	limit := vault.PageLimit{Records: math.MaxInt32, Cost: e.answer, GoneAbove: p.from.Pass.Start}
	if op.Max > 0 {
		limit.Records = op.Max
	}
	if op.Bytes > 0 {
		limit.Cost = min(op.Bytes, e.answer)
	}
	changes := int(min(p.changes(), vault.Revision(limit.Records)))
	return plan{cost: min(e.costOfChanges(p.state, changes), limit.Cost), read: func() (Answer, error) {
		page, err := e.readChanges(v, p, limit)
		if err != nil {
			return nil, err
		}
		return page, nil
	}}
}

// changes bounds those to come from above.
func (p place) changes() vault.Revision {
	// Every change has a revision of its own, so there are no more of them
	// than revisions; removals before a pass do not count in it.
	most := p.state.Revision - p.from.Revision
	if p.head.Reset != vault.NoReset {
		most = min(most, vault.Revision(p.state.Records)+p.state.Revision-p.from.Pass.Start)
	}
	return most
}

// readChanges reads the page that follows a place in a vault.
func (e *Engine) readChanges(v vault.View, p place, limit vault.PageLimit) (SyncPage, error) {
	found, err := v.Changes(p.state.Key, p.from.Revision, limit)
	if err != nil {
		return SyncPage{}, err
	}
	page := p.head
	page.Changes, page.More = found.Changes, found.More
	page.Cursor = e.sign(p.state)
	if page.More {
		last := page.Changes[len(page.Changes)-1].Revision
		run, _ := p.runs.Of(last)
		page.Cursor = e.store.CursorKey().Sign(vault.Cursor{
			Epoch: p.state.Epoch, Revision: last, Run: run, Pass: p.from.Pass,
		})
	}
	return page, nil
}

// costOfChanges estimates n changes, of which some may be removals.
func (e *Engine) costOfChanges(state vault.Vault, n int) int {
	return e.costOf(state, n) + max(n-state.Records, 0)*vault.Record{}.Cost()
}
