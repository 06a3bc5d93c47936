package storetest

import "pepvault/vault"

func testReopen(f *fixture) {
	f.fill()
	f.update(func(tx vault.Tx) error {
		if _, err := tx.Retract(notes, "c"); err != nil {
			return err
		}
		return tx.Prune(notes, 1)
	})
	f.update(func(tx vault.Tx) error {
		_, err := tx.Configure(tasks, vault.Config{Title: "Tasks"})
		return err
	})
	before, key, run := look(f, everything), f.store.CursorKey(), f.store.Run()
	for range 3 {
		f.reopen()
		f.equal(look(f, everything), before) // with the run of each vault
		if f.store.CursorKey() != key {
			f.Error("the cursor key is another one")
		}
		if f.store.Run() == run {
			f.Error("the run is the same")
		}
		run = f.store.Run()
	}
	f.update(changeEverything)
}

// testRuns follows who committed a vault's latest revision.
func testRuns(f *fixture) {
	first := f.store.Run()
	f.create(notes)
	f.create(tasks)
	f.reopen()
	second := f.store.Run()
	if second == first || second == 0 {
		f.Fatalf("runs %v and %v", first, second)
	}
	f.put(notes, record("a", "1"))
	f.put(notes, record("b", "1"))
	f.equal(f.vault(notes).Run, second)
	f.equal(f.vault(tasks).Run, first)
	// A failed transaction leaves it as it was.
	f.store.Update(f.Context(), tasks, func(tx vault.Tx) error {
		if _, err := tx.Put(tasks, record("a", "1")); err != nil {
			return err
		}
		return vault.ErrNoRecord
	})
	f.equal(f.vault(tasks).Run, first)
	f.reopen()
	f.equal(f.vault(notes).Run, second)
	f.equal(f.vault(tasks).Run, first)
	f.update(func(tx vault.Tx) error { return tx.Subscribe(tasks, vault.Subscription{Account: bob}) })
	f.equal(f.vault(tasks).Run, first) // no revision, no run
	f.put(tasks, record("a", "1"))
	f.equal(f.vault(tasks).Run, f.store.Run())
}
