package sqlite

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"pepvault/vault"
)

// What is forgotten of a purge leaves the files and no backup has it; what is not
// stays as it was, although some of both lies in one row.
func TestForgetsNamesOfPurge(t *testing.T) {
	t.Parallel()
	const records, keep = burialNames + 50, 10
	path := filepath.Join(t.TempDir(), "vault.db")
	s := still(openWith(t, Options{Path: path}))
	var names []string
	mustUpdate(t, s, func(tx vault.Tx) error { _, err := tx.Create(faultKey, vault.Config{}); return err })
	mustUpdate(t, s, func(tx vault.Tx) error {
		for i := range records {
			record := sample(i)
			record.ID = fmt.Sprintf("name-%04d-", i)
			names = append(names, record.ID)
			if _, err := tx.Put(faultKey, record); err != nil {
				return err
			}
		}
		return nil
	})
	mustUpdate(t, s, func(tx vault.Tx) error {
		if _, err := tx.Purge(faultKey); err != nil {
			return err
		}
		return tx.Prune(faultKey, keep)
	})
	check := func(file, when string) {
		t.Helper()
		if found := holding(t, file, names[:records-keep]); len(found) > 0 {
			t.Errorf("%s: still there: %d, %s", when, len(found), found[0])
		}
		if found := holding(t, file, names[records-keep:]); len(found) != keep {
			t.Errorf("%s: only %q are there", when, found)
		}
	}
	to := filepath.Join(t.TempDir(), "copy.db")
	if copied, err := BackupOnline(t.Context(), path, to); err != nil || copied.Tombstones != keep {
		t.Errorf("copied %+v, %v", copied, err)
	}
	check(to, "the copy")
	mustClean(t, s)
	check(path, "after the clean-up")
	for range 2 {
		if err := s.View(t.Context(), func(v vault.View) error {
			page, err := v.Changes(faultKey, 0, vault.PageLimit{Records: records, Cost: 1 << 30})
			if len(page.Changes) != keep || page.Changes[0].ID != names[records-keep] {
				t.Errorf("%d changes, %+v", len(page.Changes), page.Changes)
			}
			return err
		}); err != nil {
			t.Fatal(err)
		}
		s.vaults.drop(faultKey, s.seq)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if got := mustVerify(t, path); got.Tombstones != keep {
		t.Errorf("%+v", got)
	}
}

// A row that is not there is a failure of the store: its records would come back
// to devices that did not hear of the purge. No backup passes over it either.
func TestMissingBurial(t *testing.T) {
	t.Parallel()
	for _, at := range []string{"min", "max"} {
		path := filepath.Join(t.TempDir(), "vault.db")
		s := still(openWith(t, Options{Path: path}))
		fill(t, s, 3*burialNames)
		key := vault.Key{Account: "fill@example.org", Node: "fill"}
		mustUpdate(t, s, func(tx vault.Tx) error {
			if _, err := tx.Purge(key); err != nil {
				return err
			}
			return tx.Prune(key, 2*burialNames-5)
		})
		execSQL(t, path, "DELETE FROM burial WHERE first = (SELECT "+at+"(first) FROM burial)")
		s.vaults.drop(key, s.seq)
		err := s.View(t.Context(), func(v vault.View) error { _, err := v.Vault(key); return err })
		wantStorageError(t, err, "missing")
		if _, err := BackupOnline(t.Context(), path, filepath.Join(t.TempDir(), "copy.db")); err == nil {
			t.Error(at, "a backup was made of it")
		}
	}
}

// What waits for the clean-up is none of a later transaction's work.
func TestPruneAgainLeavesWaste(t *testing.T) {
	t.Parallel()
	s := still(openAt(t, t.TempDir()))
	fill(t, s, 600)
	key := vault.Key{Account: "fill@example.org", Node: "fill"}
	mustUpdate(t, s, func(tx vault.Tx) error {
		for i := range 600 {
			if _, err := tx.Retract(key, sample(i).ID); err != nil {
				return err
			}
		}
		return nil
	})
	for keep := 60; keep > 50; keep-- {
		mustUpdate(t, s, func(tx vault.Tx) error { return tx.Prune(key, keep) })
	}
	if n := count(t, s, "tombstone"); n != 600 {
		t.Errorf("%d rows are left, want all 600", n)
	}
	mustClean(t, s)
	if n := count(t, s, "tombstone"); n != 51 {
		t.Errorf("%d rows after the clean-up", n)
	}
	mustUpdate(t, s, func(tx vault.Tx) error { return tx.Prune(key, 50) })
	if n := count(t, s, "tombstone"); n != 50 {
		t.Errorf("%d rows after the last", n)
	}
}

// What the disk refused is told, although the system tells it only once.
func TestFlushedFails(t *testing.T) {
	t.Parallel()
	// It takes all that is written, and no sync.
	if err := flushed(os.DevNull, func() error { return nil }); err == nil {
		t.Error("no error")
	}
}

// Names that can't be read are a failure of the store, not a vault without them.
func TestDamagedBurial(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "vault.db")
	s := still(openWith(t, Options{Path: path}))
	fill(t, s, 3)
	key := vault.Key{Account: "fill@example.org", Node: "fill"}
	mustUpdate(t, s, func(tx vault.Tx) error { _, err := tx.Purge(key); return err })
	execSQL(t, path, "UPDATE burial SET items = '['")
	s.vaults.drop(key, s.seq)
	err := s.View(t.Context(), func(v vault.View) error { _, err := v.Vault(key); return err })
	wantStorageError(t, err, "damaged")
}
