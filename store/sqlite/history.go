package sqlite

import (
	"crypto/rand"
	"database/sql"
	"errors"
	"slices"

	"pepvault/vault"
)

// began notes the first revision of a run.
func (ix *index) began(s vault.RunStart) {
	ix.runs = append(slices.Clip(ix.runs), s)
	ix.state.Run = s.Run
	ix.memory += 16
}

func (r *reading) loadRuns(ix *index) error {
	var first, run int64
	return r.each("read a vault", vaultRuns, []any{ix.id}, []any{&first, &run}, func() {
		ix.began(vault.RunStart{First: vault.Revision(first), Run: vault.Run(run)})
	})
}

// Runs implements vault.View.
func (r *reading) Runs(key vault.Key) (vault.Runs, error) {
	ix, err := r.source.find(key)
	if err != nil {
		return nil, err
	}
	return ix.runs, nil
}

// Forked implements vault.View.
func (r *reading) Forked(key vault.Key, epoch vault.Epoch) (vault.Revision, bool, error) {
	if err := r.unswift(); err != nil {
		return 0, false, err
	}
	ix, err := r.source.find(key)
	if err != nil {
		return 0, false, err
	}
	var fork int64
	err = r.row("look for an epoch", forkOf, []any{ix.id, epoch[:]}, &fork)
	if errors.Is(err, sql.ErrNoRows) {
		return 0, false, nil
	}
	return vault.Revision(fork), err == nil, err
}

// Ended implements vault.View.
func (r *reading) Ended(epoch vault.Epoch) (bool, error) {
	if err := r.unswift(); err != nil {
		return false, err
	}
	var n int
	err := r.row("look for an epoch", hasEnded, []any{epoch[:]}, &n)
	return n > 0, err
}

// Fork implements vault.Tx.
func (t *tx) Fork(key vault.Key, shared vault.Revision) (vault.Vault, error) {
	const doing = "begin an epoch"
	ix, u, err := t.change(key)
	if err != nil {
		return vault.Vault{}, err
	}
	if _, err := t.write(doing, insertLineage, ix.id, ix.state.Epoch[:], int64(shared)); err != nil {
		return vault.Vault{}, err
	}
	rand.Read(ix.state.Epoch[:])
	if _, err := t.write(doing, forkVault, ix.state.Epoch[:], ix.id); err != nil {
		return vault.Vault{}, err
	}
	if _, err := t.write(doing, endOpenBatches, ix.id); err != nil {
		return vault.Vault{}, err
	}
	t.keep(key, ix, u)
	return ix.state, nil
}
