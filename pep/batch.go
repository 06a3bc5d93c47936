package pep

import (
	"context"
	"errors"
	"time"

	"pepvault/vault"
)

// Batches (PROTOCOL §9). A batch is its account's: for everybody else there is
// none. Each step needs the right to write again, a rotation that of the owner.

// keptOutcomes bounds the ended batches of an account that are remembered for a
// repeat; no device has nearly as many answers outstanding.
const keptOutcomes = 64

func errNoBatch() error { return Refuse(vault.ErrNoBatch, "there is no such batch: begin one") }

func (e *Engine) beginBatch(ctx context.Context, req Request, op BeginBatch, done func(Outcome)) error {
	if !vault.ValidBatchID(op.ID) || op.RotateTo > vault.MaxKeyVersion {
		return Refuse(ErrBadRequest, "a batch has an id of 1 to %d bytes and rotates to a key version", vault.MaxBatchIDBytes)
	}
	b := vault.Batch{
		BatchKey: vault.BatchKey{Account: req.Sender.Account, ID: op.ID},
		Vault:    vault.Key{Account: req.Owner, Node: op.Node},
		RotateTo: op.RotateTo,
		Expires:  e.now().Add(e.limits.BatchExpiry).UTC().Truncate(time.Second),
	}
	return e.update(ctx, b.Vault, func(tx vault.Tx, told func(func())) error {
		c, err := e.begin(tx, told, req)
		if err != nil {
			return err
		}
		had, err := c.openBatch(b, op.Cursor)
		if err != nil {
			return err
		}
		told(func() { done(Outcome{Answer: Begun{ID: had.ID, Expires: had.Expires}}) })
		return nil
	})
}

// openBatch begins a batch, or returns the one that was begun like it.
func (c *change) openBatch(b vault.Batch, cursor string) (vault.Batch, error) {
	all, err := c.tx.Batches(b.Account)
	if err != nil {
		return b, err
	}
	open := 0
	var ended []vault.BatchKey
	for _, had := range all {
		switch {
		case !had.Expires.After(c.engine.now()):
			if had.BatchKey == b.BatchKey {
				err = c.tx.DropBatch(had.BatchKey)
			}
		case had.BatchKey != b.BatchKey && had.Outcome.End == vault.BatchOpen:
			open++
		case had.BatchKey != b.BatchKey:
			ended = append(ended, had.BatchKey)
		case had.Vault != b.Vault || had.RotateTo != b.RotateTo:
			return b, Refuse(ErrBadRequest, "another batch has this id")
		default:
			return had, nil
		}
		if err != nil {
			return b, err
		}
	}
	if err := c.mayBegin(b, cursor, open); err != nil {
		return b, err
	}
	if len(ended) >= keptOutcomes {
		if err := c.tx.DropBatch(ended[0]); err != nil {
			return b, err
		}
	}
	return b, c.tx.BeginBatch(b)
}

func (c *change) mayBegin(b vault.Batch, cursor string, open int) error {
	if _, err := c.holding(cursor); err != nil {
		return err
	}
	if err := c.aboveFloor(b); err != nil {
		return err
	}
	if most := c.engine.limits.Batches; open >= most {
		return &Refusal{
			Err: ErrTooManyBatches, Text: "this account has too many open batches: commit or abort one",
			Limit: int64(most),
		}
	}
	return nil
}

// aboveFloor refuses a rotation to a key version that was reached already.
func (c *change) aboveFloor(b vault.Batch) error {
	if floor := c.vault.Config.KeyVersionFloor; b.RotateTo > 0 && b.RotateTo <= floor {
		return Refuse(ErrBadRequest, "the vault has been rotated to key version %d already", floor)
	}
	return nil
}

// holding reads the cursor of a device. One that says nothing about the vault
// as it is now, is stale: ErrStale, vault.ErrBadCursor.
func (c *change) holding(cursor string) (held vault.Cursor, err error) {
	if cursor == NoCursor {
		return held, c.stale(nil)
	}
	if held, err = c.engine.store.CursorKey().Verify(cursor); err != nil {
		return held, err
	}
	runs, err := c.tx.Runs(c.vault.Key)
	if err != nil {
		return held, err
	}
	if held.Epoch != c.vault.Epoch || runs.Judge(held, c.vault) != vault.NoReset {
		return held, c.stale(nil)
	}
	return held, nil
}

// stale refuses what relies on a state that has passed, and names the records
// that are concerned, as many as fit in one stanza.
func (c *change) stale(items []StateItem) error {
	size := 0
	for i, item := range items {
		if size += (vault.Record{ID: item.ID}).Cost(); size > c.engine.answer {
			items = items[:i]
			break
		}
	}
	return &Refusal{Err: ErrStale, Text: "the vault has changed: sync, then stage these again", Cursor: c.previous, Items: items}
}

func (e *Engine) stagePublish(ctx context.Context, req Request, op Publish, done func(Outcome)) error {
	if op.Options != nil || op.Expect != nil || op.State {
		return Refuse(ErrBadRequest, "what is staged has no options, no expectation and no state")
	}
	if err := e.checkItems(op.Items); err != nil {
		return err
	}
	ids, records := e.newRecords(req.Sender, op.Items)
	put := func(c *change, b vault.Batch, held vault.Cursor) error {
		if err := c.fits(op.Items, ids); err != nil {
			return err
		}
		for _, r := range records {
			if r.KeyVersion < b.RotateTo {
				return &Refusal{
					Err: ErrKeyVersionTooLow, Text: "this batch rotates to a newer key version",
					Floor: b.RotateTo,
				}
			}
			s := vault.Staged{ID: r.ID, KeyVersion: r.KeyVersion, Epoch: held.Epoch, Held: held.Revision}
			if err := c.tx.Stage(b.BatchKey, s, r.Payload); err != nil {
				return err
			}
		}
		return nil
	}
	return e.stage(ctx, req, op.Node, *op.Batch, put, Published{Node: op.Node, IDs: ids}, done)
}

func (e *Engine) stageRetract(ctx context.Context, req Request, op Retract, done func(Outcome)) error {
	if op.Expect != nil || op.State || op.Notify || op.Confirm {
		return Refuse(ErrBadRequest, "what is staged has no expectation, no state and no notification; the commit is confirmed")
	}
	put := func(c *change, b vault.Batch, held vault.Cursor) error {
		for _, id := range op.IDs {
			s := vault.Staged{ID: id, Gone: true, Epoch: held.Epoch, Held: held.Revision}
			if err := c.tx.Stage(b.BatchKey, s, vault.Payload{}); err != nil {
				return err
			}
		}
		return nil
	}
	return e.stage(ctx, req, op.Node, *op.Batch, put, Retracted{}, done)
}

// stage has put stage changes in an open batch, within its bounds.
func (e *Engine) stage(ctx context.Context, req Request, node string, ref BatchRef,
	put func(*change, vault.Batch, vault.Cursor) error, answer Answer, done func(Outcome),
) error {
	key := vault.Key{Account: req.Owner, Node: node}
	return e.update(ctx, key, func(tx vault.Tx, told func(func())) error {
		if err := admit(tx, req); err != nil {
			return err
		}
		c, b, err := e.resume(tx, told, req.Sender, key, ref.ID)
		if err != nil {
			return err
		}
		if b.Outcome.End != vault.BatchOpen {
			return errNoBatch()
		}
		held, err := c.holding(ref.Cursor)
		if err != nil {
			return err
		}
		if err := put(c, b, held); err != nil {
			return err
		}
		if err := c.checkStaged(b.BatchKey); err != nil {
			return err
		}
		told(func() { done(Outcome{Answer: answer}) })
		return nil
	})
}

// checkStaged holds what is staged now to the bounds of a batch and of its
// account.
func (c *change) checkStaged(key vault.BatchKey) error {
	all, err := c.tx.Batches(key.Account)
	if err != nil {
		return err
	}
	var bytes int64
	for _, b := range all {
		if b.Expires.After(c.engine.now()) {
			bytes += b.Bytes
		}
		if b.BatchKey == key && b.Changes > c.engine.inBatch {
			return Refuse(ErrMaxItemsExceeded, "a batch holds at most %d changes", c.engine.inBatch)
		}
	}
	if limit := c.engine.limits.StagedBytes; bytes > limit {
		return &Refusal{Err: ErrQuotaExceeded, Text: "this account has staged too much", Bytes: bytes, Limit: limit}
	}
	return nil
}

// locate finds the vault of a batch.
func (e *Engine) locate(ctx context.Context, req Request, id string) (vault.Key, error) {
	var b vault.Batch
	err := e.store.View(ctx, func(v vault.View) (err error) {
		b, err = v.Batch(vault.BatchKey{Account: req.Sender.Account, ID: id})
		return err
	})
	if errors.Is(err, vault.ErrNoBatch) || err == nil && b.Vault.Account != req.Owner {
		err = errNoBatch()
	}
	return b.Vault, err
}

// resume reads a batch of the sender's account that has not expired, and begins
// a change of its vault.
func (e *Engine) resume(tx vault.Tx, told func(func()), s Sender, key vault.Key, id string) (*change, vault.Batch, error) {
	b, err := tx.Batch(vault.BatchKey{Account: s.Account, ID: id})
	if errors.Is(err, vault.ErrNoBatch) || err == nil && (b.Vault != key || !b.Expires.After(e.now())) {
		err = errNoBatch()
	}
	if err != nil {
		return nil, b, err
	}
	act := write
	if b.RotateTo > 0 {
		act = own
	}
	c, err := e.beginOn(tx, told, s.Account, key, act)
	return c, b, err
}

// within carries out what a device does to one of its batches.
func (e *Engine) within(ctx context.Context, req Request, id string, fn func(*change, vault.Batch) error) error {
	key, err := e.locate(ctx, req, id)
	if err != nil {
		return err
	}
	return e.update(ctx, key, func(tx vault.Tx, told func(func())) error {
		c, b, err := e.resume(tx, told, req.Sender, key, id)
		if err != nil {
			return err
		}
		return fn(c, b)
	})
}

func (e *Engine) unstage(ctx context.Context, req Request, op Unstage, done func(Outcome)) error {
	return e.within(ctx, req, op.ID, func(c *change, b vault.Batch) error {
		if b.Outcome.End != vault.BatchOpen {
			return errNoBatch()
		}
		if err := c.tx.Unstage(b.BatchKey, op.IDs); err != nil {
			return err
		}
		c.told(func() { done(Outcome{Answer: Unstaged{}}) })
		return nil
	})
}

func (e *Engine) abortBatch(ctx context.Context, req Request, op AbortBatch, done func(Outcome)) error {
	return e.within(ctx, req, op.ID, func(c *change, b vault.Batch) error {
		switch b.Outcome.End {
		case vault.BatchCommitted:
			return Refuse(vault.ErrNoBatch, "this batch has been committed")
		case vault.BatchOpen:
			if err := c.tx.EndBatch(b.BatchKey, vault.BatchOutcome{End: vault.BatchAborted}); err != nil {
				return err
			}
		}
		c.told(func() { done(Outcome{Answer: Aborted{}}) })
		return nil
	})
}
