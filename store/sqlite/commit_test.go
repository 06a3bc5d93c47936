package sqlite

import (
	"testing"

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
