package storetest

import (
	"errors"
	"slices"
	"time"

	"pgregory.net/rapid"

	"pepvault/vault"
)

// modelBatch is a batch with what is staged in it.
type modelBatch struct {
	vault.Batch
	staged   []vault.Staged
	payloads map[string]vault.Payload
}

func cloneBatches(batches []modelBatch) []modelBatch {
	batches = slices.Clone(batches)
	for i := range batches {
		b := &batches[i]
		b.staged = slices.Clone(b.staged)
		payloads := map[string]vault.Payload{}
		for id, p := range b.payloads {
			payloads[id] = p
		}
		b.payloads = payloads
	}
	return batches
}

func (m *Model) dropBatches(drop func(vault.Batch) bool) {
	m.batches = slices.DeleteFunc(m.batches, func(b modelBatch) bool { return drop(b.Batch) })
}

func (m *Model) findBatch(key vault.BatchKey) (*modelBatch, error) {
	for i := range m.batches {
		if m.batches[i].BatchKey == key {
			return &m.batches[i], nil
		}
	}
	return nil, vault.ErrNoBatch
}

func (m *Model) openBatch(key vault.BatchKey) (*modelBatch, error) {
	b, err := m.findBatch(key)
	if err == nil && b.Outcome.End != vault.BatchOpen {
		return nil, vault.ErrNoBatch
	}
	return b, err
}

// sum counts what is staged.
func (b *modelBatch) sum() {
	b.Changes, b.Bytes = len(b.staged), 0
	for _, s := range b.staged {
		b.Bytes += int64(s.Bytes)
	}
}

func (b *modelBatch) unstage(id string) {
	b.staged = slices.DeleteFunc(b.staged, func(s vault.Staged) bool { return s.ID == id })
	delete(b.payloads, id)
	b.sum()
}

// Batch implements vault.View.
func (m *Model) Batch(key vault.BatchKey) (vault.Batch, error) {
	b, err := m.findBatch(key)
	if err != nil {
		return vault.Batch{}, err
	}
	return b.Batch, nil
}

// Batches implements vault.View.
func (m *Model) Batches(account vault.Account) (found []vault.Batch, err error) {
	for _, b := range m.batches {
		if b.Account == account {
			found = append(found, b.Batch)
		}
	}
	return found, nil
}

// Staged implements vault.View.
func (m *Model) Staged(key vault.BatchKey) ([]vault.Staged, error) {
	b, err := m.findBatch(key)
	if err != nil {
		return nil, err
	}
	return slices.Clone(b.staged), nil
}

// StagedPayload implements vault.View.
func (m *Model) StagedPayload(key vault.BatchKey, id string) (vault.Payload, error) {
	b, err := m.findBatch(key)
	if err != nil {
		return vault.Payload{}, err
	}
	p, found := b.payloads[id]
	if !found {
		return vault.Payload{}, vault.ErrNoRecord
	}
	return p, nil
}

// BeginBatch implements vault.Tx.
func (m *Model) BeginBatch(b vault.Batch) error {
	if _, err := m.find(b.Vault); err != nil {
		return err
	}
	if _, err := m.findBatch(b.BatchKey); err == nil {
		return vault.ErrBatchExists
	}
	b.Changes, b.Bytes, b.Outcome = 0, 0, vault.BatchOutcome{}
	m.batches = append(m.batches, modelBatch{Batch: b, payloads: map[string]vault.Payload{}})
	return nil
}

// Stage implements vault.Tx.
func (m *Model) Stage(key vault.BatchKey, s vault.Staged, p vault.Payload) error {
	b, err := m.openBatch(key)
	if err != nil {
		return err
	}
	s.Bytes = len(p.Data)
	delete(b.payloads, s.ID)
	if s.Gone {
		s.KeyVersion, s.Bytes = 0, 0
	} else {
		b.payloads[s.ID] = p
	}
	i := slices.IndexFunc(b.staged, func(old vault.Staged) bool { return old.ID == s.ID })
	if i < 0 {
		b.staged = append(b.staged, s)
	} else {
		b.staged[i] = s
	}
	b.sum()
	return nil
}

// Unstage implements vault.Tx.
func (m *Model) Unstage(key vault.BatchKey, ids []string) error {
	b, err := m.openBatch(key)
	if err != nil {
		return err
	}
	for _, id := range ids {
		b.unstage(id)
	}
	return nil
}

// EndBatch implements vault.Tx.
func (m *Model) EndBatch(key vault.BatchKey, outcome vault.BatchOutcome) error {
	b, err := m.openBatch(key)
	if err != nil {
		return err
	}
	b.staged, b.payloads, b.Outcome = nil, nil, outcome
	b.sum()
	return nil
}

// DropBatch implements vault.Tx.
func (m *Model) DropBatch(key vault.BatchKey) error {
	m.dropBatches(func(b vault.Batch) bool { return b.BatchKey == key })
	return nil
}

// Expire implements vault.Tx. Which part goes first is for the store to say, so
// the model knows only the end of it.
func (m *Model) Expire(now time.Time, _ int) (bool, error) {
	m.dropBatches(func(b vault.Batch) bool { return !b.Expires.After(now) })
	return false, nil
}

// expireAll calls Expire until nothing is left.
func expireAll(tx vault.Tx, now time.Time, n int) error {
	for {
		if more, err := tx.Expire(now, n); err != nil || !more {
			return err
		}
	}
}

var someBatches = []vault.BatchKey{{Account: alice, ID: "x"}, {Account: alice, ID: "y"}, {Account: bob, ID: "x"}}

func drawBatchSteps(t *rapid.T, key vault.Key, record vault.Record, id string) []step {
	batch := rapid.SampledFrom(someBatches).Draw(t, "batch")
	soon := time.UnixMilli(int64(rapid.IntRange(1, 5).Draw(t, "expires"))).UTC()
	now := time.UnixMilli(int64(rapid.IntRange(0, 3).Draw(t, "now")))
	few := rapid.IntRange(1, 3).Draw(t, "at once")
	made := vault.Batch{BatchKey: batch, Vault: key, RotateTo: record.KeyVersion, Expires: soon}
	staged := vault.Staged{
		ID: record.ID, Gone: rapid.Bool().Draw(t, "gone"), KeyVersion: record.KeyVersion,
		Epoch: vault.Epoch{byte(few)}, Held: record.RotatedFrom,
	}
	outcome := vault.BatchOutcome{End: vault.BatchCommitted, Previous: id, Cursor: "c"}
	begin := step{"begin a batch", func(tx vault.Tx) (any, error) { return nil, tx.BeginBatch(made) }}
	stage := step{"stage", func(tx vault.Tx) (any, error) { return nil, tx.Stage(batch, staged, record.Payload) }}
	return []step{
		begin, begin, stage, stage, stage,
		{"unstage", func(tx vault.Tx) (any, error) { return nil, tx.Unstage(batch, []string{id, record.ID, id}) }},
		{"end a batch", func(tx vault.Tx) (any, error) { return nil, tx.EndBatch(batch, outcome) }},
		{"drop a batch", func(tx vault.Tx) (any, error) { return nil, tx.DropBatch(batch) }},
		{"expire", func(tx vault.Tx) (any, error) { return nil, expireAll(tx, now, few) }},
	}
}

// everyBatch reads all that there is of batches.
func everyBatch(v vault.View) (all []any, err error) {
	for _, account := range someAccounts {
		batches, err := v.Batches(account)
		if err != nil {
			return nil, err
		}
		all = append(all, batches)
	}
	for _, key := range someBatches {
		batch, err1 := v.Batch(key)
		staged, err2 := v.Staged(key)
		all = append(all, batch, staged, sentinel(err1), sentinel(err2))
		for _, id := range someIDs {
			payload, err := v.StagedPayload(key, id)
			all = append(all, payload, sentinel(err))
		}
		if err := errors.Join(err1, err2); err != nil && !errors.Is(err, vault.ErrNoBatch) {
			return nil, err
		}
	}
	return all, nil
}
