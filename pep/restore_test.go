package pep_test

import (
	"path/filepath"
	"testing"

	"pepvault/pep"
	"pepvault/store"
	"pepvault/vault"
)

// After a restore every device is told that its history is not the vault's, and
// up to which revision it is: also one that knows no more than the backup, and
// one that heard of a run that the backup never saw.
func TestSyncAfterARestore(t *testing.T) {
	t.Parallel()
	w := newFolder(t)
	w.must(laptop, publish("a"))
	var early, late, other follower
	w.sync(&early, pep.Sync{})
	options := store.Options{Driver: "sqlite", Path: filepath.Join(w.dir, "vault.db")}
	backup := filepath.Join(w.dir, "copy.db")
	if _, err := store.BackupOnline(t.Context(), options, backup); err != nil {
		t.Fatal(err)
	}
	w.must(laptop, publish("b"))
	w.sync(&late, pep.Sync{})
	w.close()
	w.open() // another run
	w.must(laptop, publish("c"))
	w.sync(&other, pep.Sync{})
	before := w.vault(laptop, "notes").Epoch
	w.close()
	if _, _, err := store.Restore(t.Context(), options, backup); err != nil {
		t.Fatal(err)
	}
	w.open()
	after := w.vault(laptop, "notes").Epoch
	if after == before {
		t.Error("the vault kept its epoch")
	}

	w.must(laptop, publish("d")) // takes the revision that b had
	for _, device := range []struct {
		name string
		*follower
		want vault.Revision
	}{{"early", &early, 2}, {"late", &late, 2}, {"of another run", &other, 2}} {
		w.sync(device.follower, pep.Sync{})
		equal(t, "reset: "+device.name, device.reset, vault.ResetLost)
		equal(t, "fork: "+device.name, device.fork, device.want)
		w.holds(device.follower, "a", "d")
		w.sync(device.follower, pep.Sync{})
		equal(t, "reset in the new epoch: "+device.name, device.reset, vault.NoReset)
	}
	equal(t, "epoch", w.vault(laptop, "notes").Epoch, after)
}
