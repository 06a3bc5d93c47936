package sqlite

import (
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"pepvault/vault"
)

func TestCutSlices(t *testing.T) {
	t.Parallel()
	row := func(bytes int64) wasteRow { return wasteRow{bytes: bytes} }
	many := make([]wasteRow, 2*sliceRows+1)
	for name, test := range map[string]struct {
		rows []wasteRow
		want []int
	}{
		"nothing":   {nil, nil},
		"few":       {many[:3], []int{3}},
		"many":      {many, []int{sliceRows, sliceRows, 1}},
		"large":     {[]wasteRow{row(sliceBytes), row(1), row(sliceBytes - 1), row(1)}, []int{1, 2, 1}},
		"too large": {[]wasteRow{row(3 * sliceBytes), row(3 * sliceBytes)}, []int{1, 1}},
	} {
		var got []int
		for _, slice := range cutSlices(test.rows) {
			got = append(got, len(slice))
		}
		if fmt.Sprint(got) != fmt.Sprint(test.want) {
			t.Errorf("%s: %v, want %v", name, got, test.want)
		}
	}
}

// count counts the rows that there are, in sight or not.
func count(t *testing.T, s *Store, table string) (n int) {
	t.Helper()
	if err := s.submit(t.Context(), func(tx *tx) error {
		return tx.conn.sql.QueryRowContext(t.Context(), "SELECT count(*) FROM "+table).Scan(&n)
	}); err != nil {
		t.Fatal(err)
	}
	return n
}

// What is large is out of sight and out of the account's sum at once, its rows
// untouched; they go in slices, between which others are served.
func TestSweepInSlices(t *testing.T) {
	t.Parallel()
	key := vault.Key{Account: "fill@example.org", Node: "fill"}
	const records, staged = 600, 300
	for name, test := range map[string]struct {
		remove func(vault.Tx) error
		table  string
		rows   int
		left   int // after the clean-up
	}{
		"delete": {func(tx vault.Tx) error { return tx.Delete(key) }, "record", records, 0},
		"purge":  {func(tx vault.Tx) error { _, err := tx.Purge(key); return err }, "record", records, 0},
		"prune": {func(tx vault.Tx) error {
			for i := range records {
				if _, err := tx.Retract(key, sample(i).ID); err != nil {
					return err
				}
			}
			return tx.Prune(key, 10)
		}, "tombstone", records, 10},
		"prune a purge": {func(tx vault.Tx) error {
			if _, err := tx.Purge(key); err != nil {
				return err
			}
			return tx.Prune(key, 10)
		}, "burial", (records + burialNames - 1) / burialNames, 1},
		"drop": {func(tx vault.Tx) error { return tx.DropBatch(filledBatch) }, "staged", staged, 0},
		"end": {func(tx vault.Tx) error {
			return tx.EndBatch(filledBatch, vault.BatchOutcome{End: vault.BatchAborted})
		}, "staged", staged, 0},
		"expire": {func(tx vault.Tx) error { _, err := tx.Expire(expiry, 9); return err }, "staged", staged, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			watch := &slicesOf{T: t, table: test.table, left: test.rows}
			s := still(openWith(t, Options{Path: filepath.Join(t.TempDir(), "vault.db"), Committed: watch.committed}))
			fill(t, s, records)
			fillStaged(t, s, key, staged)
			mustUpdate(t, s, test.remove)
			if n := count(t, s, test.table); n != test.rows {
				t.Errorf("%d rows in %s after the transaction, want %d: it removed some itself", n, test.table, test.rows)
			}
			checkRemoved(t, s, key, test.table == "staged")
			observe := func(on *Store) {
				if err := s.submit(t.Context(), func(*tx) error { watch.store = on; return nil }); err != nil {
					t.Fatal(err)
				}
			}
			observe(s)
			before := s.seq
			if err := s.cleaner.sweep(t.Context()); err != nil {
				t.Fatal(err)
			}
			observe(nil)
			if n := count(t, s, test.table); n != test.left {
				t.Errorf("%d rows in %s after the clean-up, want %d", n, test.table, test.left)
			}
			if commits := int(s.seq - before); commits < (test.rows-test.left)/sliceRows {
				t.Errorf("%d commits for %d rows", commits, test.rows)
			}
		})
	}
}

var filledBatch = vault.BatchKey{Account: "fill@example.org", ID: "batch"}

func fillStaged(t *testing.T, s *Store, key vault.Key, n int) {
	t.Helper()
	mustUpdate(t, s, func(tx vault.Tx) error {
		if err := tx.BeginBatch(vault.Batch{BatchKey: filledBatch, Vault: key, Expires: expiry}); err != nil {
			return err
		}
		for i := range n {
			if err := tx.Stage(filledBatch, vault.Staged{ID: fmt.Sprint(i)}, sample(i).Payload); err != nil {
				return err
			}
		}
		return nil
	})
}

// checkRemoved looks at what everybody sees, from memory and from the rows.
func checkRemoved(t *testing.T, s *Store, key vault.Key, staged bool) {
	t.Helper()
	for range 2 {
		err := s.View(t.Context(), func(v vault.View) error {
			u, err := v.Usage(key.Account)
			if !staged && (u.Records != 0 || u.Bytes != 0) {
				t.Errorf("the account is said to have %+v", u)
			}
			if found, err := v.Records(key, []string{"record-1"}); !staged && len(found) > 0 {
				t.Errorf("a record is there, %v", err)
			}
			if changes, err := v.Staged(filledBatch); staged && err == nil && len(changes) > 0 {
				t.Errorf("%d changes are staged", len(changes))
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		s.vaults.drop(key, s.seq)
		s.accounts.drop(key.Account, s.seq)
	}
}

// slicesOf watches a table: after each commit it counts the rows that are left,
// and has a job of somebody else wait.
type slicesOf struct {
	*testing.T
	store   *Store
	table   string
	left    int
	waiting chan struct{} // closed when the job was served; nil: there is none
}

// committed runs in the commit loop.
func (w *slicesOf) committed(int, time.Duration) {
	if w.store == nil {
		return
	}
	var n int
	if err := w.store.writer.sql.QueryRowContext(w.store.ctx, "SELECT count(*) FROM "+w.table).Scan(&n); err != nil {
		w.Error(err)
	}
	if w.left-n > sliceRows {
		w.Errorf("one commit removed %d rows, want at most %d", w.left-n, sliceRows)
	}
	w.left = n
	if w.waiting != nil {
		select {
		case <-w.waiting:
		default:
			w.Error("a slice came before a job that waited already")
		}
	}
	served := make(chan struct{})
	w.store.jobs <- &job{fn: func(*tx) error { close(served); return nil }, done: make(chan struct{})}
	w.waiting = served
}
