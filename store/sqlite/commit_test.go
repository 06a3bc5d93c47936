package sqlite

import (
	"errors"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"pepvault/vault"
)

// TestFailedCommit has COMMIT itself fail, by a foreign key that is checked
// only then: nothing that the batch touched is trusted afterwards, and those
// that are not to blame are carried out all the same.
func TestFailedCommit(t *testing.T) {
	t.Parallel()
	s := faulty(t)
	poison := func(v vault.Tx) error {
		t := v.(*tx)
		if err := putting("poisoned", 1)(t); err != nil {
			return err
		}
		if _, err := t.conn.sql.ExecContext(t.ctx, "PRAGMA defer_foreign_keys = 1"); err != nil {
			return err
		}
		_, err := t.conn.exec(t.ctx, insertTombstone, 4711, 1, "of no vault")
		return err
	}
	before := s.seq
	errs := together(t, s, putting("a", 1), poison, putting("b", 1))
	wantStorageError(t, errs[1], "commit")
	if errs[0] != nil || errs[2] != nil {
		t.Errorf("the others: %v, %v", errs[0], errs[2])
	}
	// The batch and the culprit failed, the two others made a commit each.
	if s.pending != nil || s.seq != before+4 {
		t.Errorf("pending %v, %d commits counted, want 4", s.pending, s.seq-before)
	}
	wantIDs(t, s, "first", "a", "b")

	wantStorageError(t, s.Update(t.Context(), faultKey, poison), "commit")
	if s.pending != nil {
		t.Error("a failed commit is still announced")
	}
	if _, known := s.vaults.get(faultKey, latest); known {
		t.Error("the index is trusted after a failed commit")
	}
	mustUpdate(t, s, putting("c", 1))
	wantIDs(t, s, "first", "a", "b", "c")
}

// TestCommitsAreHeardOf: each commit is, once, with all that shared it, before
// anybody is answered; what changes nothing makes none.
func TestCommitsAreHeardOf(t *testing.T) {
	t.Parallel()
	var heard []int // in the commit loop, until an Update returns
	s := openWith(t, Options{Path: filepath.Join(t.TempDir(), "vault.db"), Committed: func(n int, took time.Duration) {
		if took <= 0 {
			t.Errorf("a commit took %v", took)
		}
		heard = append(heard, n)
	}})
	mustUpdate(t, s, func(tx vault.Tx) error {
		_, err := tx.Create(faultKey, vault.Config{})
		return err
	})
	heard = nil
	refused := errors.New("refused")
	refuse := func(vault.Tx) error { return refused }
	together(t, s, putting("a", 1), putting("b", 1), refuse)
	if want := []int{3}; !slices.Equal(heard, want) {
		t.Errorf("heard of commits of %v, want %v", heard, want)
	}
	if err := s.Update(t.Context(), faultKey, refuse); !errors.Is(err, refused) {
		t.Fatal(err)
	}
	mustUpdate(t, s, putting("c", 1))
	if want := []int{3, 1}; !slices.Equal(heard, want) {
		t.Errorf("heard of commits of %v, want %v", heard, want)
	}
}
