package storetest

import (
	"slices"

	"pepvault/vault"
)

func (v *modelVault) began(run vault.Run) {
	v.state.Run = run
	v.runs = append(v.runs, vault.RunStart{First: v.state.Revision, Run: run})
}

// end notes the vault's epochs as ended, as far as they are known: see Adopt.
func (m *Model) end(v *modelVault) {
	m.ended[v.state.Epoch] = true
	for epoch := range v.lineage {
		m.ended[epoch] = true
	}
}

// Runs implements vault.View.
func (m *Model) Runs(key vault.Key) (vault.Runs, error) {
	v, err := m.find(key)
	if err != nil {
		return nil, err
	}
	return slices.Clone(v.runs), nil
}

// Forked implements vault.View.
func (m *Model) Forked(key vault.Key, epoch vault.Epoch) (vault.Revision, bool, error) {
	v, err := m.find(key)
	if err != nil {
		return 0, false, err
	}
	fork, known := v.lineage[epoch]
	return fork, known, nil
}

// Ended implements vault.View.
func (m *Model) Ended(epoch vault.Epoch) (bool, error) { return m.ended[epoch], nil }

// Fork implements vault.Tx. The new epoch is for Adopt to tell.
func (m *Model) Fork(key vault.Key, shared vault.Revision) (vault.Vault, error) {
	v, err := m.find(key)
	if err != nil {
		return vault.Vault{}, err
	}
	m.dropBatches(func(b vault.Batch) bool { return b.Vault == key && b.Outcome.End == vault.BatchOpen })
	v.lineage[v.state.Epoch] = shared
	v.state.Epoch = vault.Epoch{}
	return m.Vault(key)
}

// testFork begins new epochs and looks for the old ones.
func testFork(f *fixture) {
	f.fill()
	first := f.vault(notes)
	f.put(notes, record("more", "1"))
	var forked vault.Vault
	f.update(func(tx vault.Tx) (err error) {
		forked, err = tx.Fork(notes, first.Revision)
		return err
	})
	now := f.vault(notes)
	f.equal(now, forked)
	if now.Epoch == first.Epoch || now.Revision != first.Revision+1 || now.Records != first.Records+1 {
		f.Errorf("after the fork %+v, before %+v", now, first)
	}
	f.put(notes, record("later", "1"))
	f.reopen()
	f.equal(f.forked(notes, first.Epoch), first.Revision)
	f.equal(f.forked(notes, now.Epoch), vault.Revision(0))
	f.equal(f.forked(tasks, first.Epoch), vault.Revision(0)) // of another vault
	f.equal(f.ended(first.Epoch), false)

	// A transaction that fails leaves the epoch.
	f.store.Update(f.Context(), notes, func(tx vault.Tx) error {
		if _, err := tx.Fork(notes, 1); err != nil {
			return err
		}
		return vault.ErrNoRecord
	})
	f.equal(f.vault(notes).Epoch, now.Epoch)

	f.update(func(tx vault.Tx) error { return tx.Delete(notes) })
	for _, epoch := range []vault.Epoch{first.Epoch, now.Epoch} {
		f.equal(f.ended(epoch), true)
	}
	f.equal(f.ended(f.vault(tasks).Epoch), false)
	f.create(notes) // again: nothing of the old one is its own
	f.equal(f.forked(notes, first.Epoch), vault.Revision(0))
}

func (f *fixture) forked(key vault.Key, epoch vault.Epoch) (fork vault.Revision) {
	f.Helper()
	f.view(func(v vault.View) error {
		revision, known, err := v.Forked(key, epoch)
		if known != (revision != 0) {
			f.Errorf("fork %d of an epoch that is known: %v", revision, known)
		}
		fork = revision
		return err
	})
	return fork
}

func (f *fixture) ended(epoch vault.Epoch) (ended bool) {
	f.Helper()
	f.view(func(v vault.View) (err error) {
		ended, err = v.Ended(epoch)
		return err
	})
	return ended
}

// testLedger follows which run committed which revision.
func testLedger(f *fixture) {
	f.create(notes)
	want := vault.Runs{{First: 1, Run: f.store.Run()}}
	f.put(notes, record("a", "1"))
	f.reopen()
	f.reopen() // nothing was written: this run leaves no trace
	f.put(notes, record("b", "1"))
	want = append(want, vault.RunStart{First: 3, Run: f.store.Run()})
	f.put(notes, record("c", "1"))
	got := func() (runs vault.Runs) {
		f.view(func(v vault.View) (err error) {
			runs, err = v.Runs(notes)
			return err
		})
		return runs
	}
	f.equal(got(), want)
	f.reopen()
	f.equal(got(), want)
	f.update(func(tx vault.Tx) error { return tx.Delete(notes) })
	f.create(notes)
	f.equal(got(), vault.Runs{{First: 1, Run: f.store.Run()}})
}
