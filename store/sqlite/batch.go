package sqlite

import (
	"database/sql"
	"errors"
	"time"

	"pepvault/vault"
)

// batchRow is a row of batchFrom.
type batchRow struct {
	name, owner, node                          string
	rotateTo, expires, changes, bytes, outcome int64
	previous, cursor                           string
}

func (r *batchRow) dest() []any {
	return []any{&r.name, &r.owner, &r.node, &r.rotateTo, &r.expires, &r.changes, &r.bytes, &r.outcome, &r.previous, &r.cursor}
}

func (r *batchRow) batch(account vault.Account) vault.Batch {
	return vault.Batch{
		BatchKey: vault.BatchKey{Account: account, ID: r.name},
		Vault:    vault.Key{Account: vault.Account(r.owner), Node: r.node},
		RotateTo: uint32(r.rotateTo),
		Expires:  time.UnixMilli(r.expires).UTC(),
		Changes:  int(r.changes),
		Bytes:    r.bytes,
		Outcome:  vault.BatchOutcome{End: vault.BatchEnd(r.outcome), Previous: r.previous, Cursor: r.cursor},
	}
}

// Batch implements vault.View.
func (r *reading) Batch(key vault.BatchKey) (vault.Batch, error) {
	if err := r.unswift(); err != nil {
		return vault.Batch{}, err
	}
	var row batchRow
	err := r.row("find a batch", readBatch, []any{string(key.Account), key.ID}, row.dest()...)
	if errors.Is(err, sql.ErrNoRows) {
		return vault.Batch{}, vault.ErrNoBatch
	}
	if err != nil {
		return vault.Batch{}, err
	}
	return row.batch(key.Account), nil
}

// Batches implements vault.View.
func (r *reading) Batches(account vault.Account) (batches []vault.Batch, err error) {
	if err := r.unswift(); err != nil {
		return nil, err
	}
	var row batchRow
	err = r.each("list batches", readBatches, []any{string(account)}, row.dest(),
		func() { batches = append(batches, row.batch(account)) })
	return batches, err
}

// Staged implements vault.View.
func (r *reading) Staged(key vault.BatchKey) (staged []vault.Staged, err error) {
	const doing = "list staged changes"
	batch, err := r.Batch(key)
	if err != nil {
		return nil, err
	}
	var item string
	var gone bool
	var keyVersion, held, size int64
	var epoch []byte
	err = r.each(doing, readStaged, []any{string(key.Account), key.ID},
		[]any{&item, &gone, &keyVersion, &epoch, &held, &size}, func() {
			staged = append(staged, vault.Staged{
				ID: item, Gone: gone, KeyVersion: uint32(keyVersion), Bytes: int(size),
				Epoch: vault.Epoch(epoch), Held: vault.Revision(held),
			})
		})
	if err == nil && batch.Outcome.End == vault.BatchOpen && len(staged) != batch.Changes {
		err = r.missing(doing) // see loadRecords
	}
	return staged, err
}

// StagedPayload implements vault.View.
func (r *reading) StagedPayload(key vault.BatchKey, id string) (vault.Payload, error) {
	if err := r.unswift(); err != nil {
		return vault.Payload{}, err
	}
	var form int64
	var payload []byte
	err := r.row("read a staged record", readStagedPayload, []any{string(key.Account), key.ID, id}, &form, &payload)
	if errors.Is(err, sql.ErrNoRows) {
		if _, err := r.Batch(key); err != nil {
			return vault.Payload{}, err
		}
		return vault.Payload{}, vault.ErrNoRecord
	}
	return vault.Payload{Form: vault.Form(form), Data: payload}, err
}

// BeginBatch implements vault.Tx.
func (t *tx) BeginBatch(b vault.Batch) error {
	ix, err := t.find(b.Vault)
	if err != nil {
		return err
	}
	switch _, err := t.Batch(b.BatchKey); {
	case err == nil:
		return vault.ErrBatchExists
	case !errors.Is(err, vault.ErrNoBatch):
		return err
	}
	_, err = t.write("begin a batch", insertBatch, ix.id, string(b.Account), b.ID, int64(b.RotateTo), b.Expires.UnixMilli())
	return err
}

// open returns the row of an open batch.
func (t *tx) open(key vault.BatchKey) (id int64, err error) {
	err = t.row("find a batch", openBatch, []any{string(key.Account), key.ID}, &id)
	if errors.Is(err, sql.ErrNoRows) {
		return 0, vault.ErrNoBatch
	}
	return id, err
}

// staged returns the size of a staged payload, and whether the change is there.
func (t *tx) staged(batch int64, item string) (size int64, found bool, err error) {
	err = t.row("find a staged change", stagedBytes, []any{batch, item}, &size)
	if errors.Is(err, sql.ErrNoRows) {
		return 0, false, nil
	}
	return size, err == nil, err
}

// Stage implements vault.Tx.
func (t *tx) Stage(key vault.BatchKey, s vault.Staged, p vault.Payload) error {
	const doing = "stage a change"
	batch, err := t.open(key)
	if err != nil {
		return err
	}
	before, replaces, err := t.staged(batch, s.ID)
	if err != nil {
		return err
	}
	if s.Gone {
		s.KeyVersion, p = 0, vault.Payload{}
	}
	if p.Data == nil {
		p.Data = []byte{} // nil would be NULL
	}
	if _, err := t.write(doing, putStaged, batch, s.ID, s.Gone, int64(s.KeyVersion), s.Epoch[:], int64(s.Held),
		int64(p.Form), p.Data); err != nil {
		return err
	}
	more := 1
	if replaces {
		more = 0
	}
	_, err = t.write(doing, countStaged, more, int64(len(p.Data))-before, batch)
	return err
}

// Unstage implements vault.Tx.
func (t *tx) Unstage(key vault.BatchKey, ids []string) error {
	const doing = "unstage a change"
	batch, err := t.open(key)
	if err != nil {
		return err
	}
	for _, id := range ids {
		size, found, err := t.staged(batch, id)
		if err != nil {
			return err
		}
		if !found {
			continue
		}
		if _, err := t.write(doing, deleteStaged, batch, id); err != nil {
			return err
		}
		if _, err := t.write(doing, countStaged, -1, -size, batch); err != nil {
			return err
		}
	}
	return nil
}

// EndBatch implements vault.Tx.
func (t *tx) EndBatch(key vault.BatchKey, outcome vault.BatchOutcome) error {
	const doing = "end a batch"
	batch, err := t.open(key)
	if err != nil {
		return err
	}
	_, err = t.write(doing, endBatch, int64(outcome.End), outcome.Previous, outcome.Cursor, batch)
	return err
}

// DropBatch implements vault.Tx.
func (t *tx) DropBatch(key vault.BatchKey) error {
	_, err := t.write("drop a batch", discardBatch, string(key.Account), key.ID)
	return err
}

// Expire implements vault.Tx. What was staged is waste from then on.
func (t *tx) Expire(now time.Time, n int) (more bool, err error) {
	const doing = "drop expired batches"
	result, err := t.write(doing, expireBatches, now.UnixMilli(), n)
	if err != nil {
		return false, err
	}
	dropped, err := result.RowsAffected()
	if err != nil {
		return false, failure(doing, err)
	}
	return dropped >= int64(n), nil // or nothing is left: the next call will tell
}
