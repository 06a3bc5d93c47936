package sqlite

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"pepvault/vault"
)

// marks makes payloads that can be told from all others in a file.
type marks struct{ n int }

// payload is full of a new mark.
func (m *marks) payload(size int) (mark string, p vault.Payload) {
	m.n++
	mark = fmt.Sprintf("<mark-%06d>", m.n)
	return mark, vault.Payload{Form: vault.Native, Data: []byte(strings.Repeat(mark, 1+size/len(mark)))}
}

// holding returns the marks that are in any file of a folder whose name begins
// with prefix.
func holding(t *testing.T, prefix string, marks []string) (found []string) {
	t.Helper()
	files, err := filepath.Glob(prefix + "*")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, mark := range marks {
			if bytes.Contains(raw, []byte(mark)) {
				found = append(found, filepath.Base(file)+": "+mark)
			}
		}
	}
	return found
}

func mustClean(t *testing.T, s *Store) {
	t.Helper()
	for range 20 {
		done, err := s.cleaner.clean(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if done {
			return
		}
	}
	t.Fatal("the clean-up came to no end")
}

// still stops the clean-up that a store does by itself.
func still(s *Store) *Store {
	s.cleaner.end()
	return s
}

// forgetting are the ways in which what was stored is deleted, in a vault with
// the records first and second.
var forgetting = map[string]func(tx vault.Tx, m *marks) error{
	"retract": func(tx vault.Tx, _ *marks) error { _, err := tx.Retract(faultKey, "first"); return err },
	"shorter": func(tx vault.Tx, m *marks) error {
		_, p := m.payload(1)
		_, err := tx.Put(faultKey, vault.Record{ID: "first", Payload: p})
		return err
	},
	"longer": func(tx vault.Tx, m *marks) error {
		_, p := m.payload(90_000)
		_, err := tx.Put(faultKey, vault.Record{ID: "first", Payload: p})
		return err
	},
	"purge": func(tx vault.Tx, _ *marks) error { _, err := tx.Purge(faultKey); return err },
	"purge and save": func(tx vault.Tx, m *marks) error {
		if _, err := tx.Purge(faultKey); err != nil {
			return err
		}
		_, p := m.payload(10)
		_, err := tx.Put(faultKey, vault.Record{ID: "second", Payload: p}) // in the place of the first
		return err
	},
	"delete": func(tx vault.Tx, _ *marks) error { return tx.Delete(faultKey) },
	"delete and create": func(tx vault.Tx, _ *marks) error {
		if err := tx.Delete(faultKey); err != nil {
			return err
		}
		_, err := tx.Create(faultKey, vault.Config{})
		return err
	},
}

var (
	keptBatch = vault.BatchKey{Account: faultKey.Account, ID: "batch"}
	expiry    = time.UnixMilli(1770000000000).UTC()
)

// stagedAway are the ways in which what was staged is dropped, from the batch
// keptBatch.
var stagedAway = map[string]func(vault.Tx) error{
	"unstage": func(tx vault.Tx) error { return tx.Unstage(keptBatch, []string{"first", "second"}) },
	"drop":    func(tx vault.Tx) error { return tx.DropBatch(keptBatch) },
	"end": func(tx vault.Tx) error {
		return tx.EndBatch(keptBatch, vault.BatchOutcome{End: vault.BatchAborted})
	},
	"expire": func(tx vault.Tx) error { _, err := tx.Expire(expiry, 9); return err },
	"fork":   func(tx vault.Tx) error { _, err := tx.Fork(faultKey, 0); return err },
	"delete": func(tx vault.Tx) error { return tx.Delete(faultKey) },
	"restage": func(tx vault.Tx) error {
		for _, id := range []string{"first", "second"} {
			if err := stageIn(tx, vault.Staged{ID: id, Gone: true}, vault.Payload{}); err != nil {
				return err
			}
		}
		return nil
	},
}

// stageIn stages a change in keptBatch, by a device that knows the vault.
func stageIn(tx vault.Tx, s vault.Staged, p vault.Payload) error {
	state, err := tx.Vault(faultKey)
	if err != nil {
		return err
	}
	s.Epoch, s.Held = state.Epoch, state.Revision
	return tx.Stage(keptBatch, s, p)
}

// prepared is a store that does not clean up by itself, with two records and a
// batch; it returns the marks of the records and of what is staged.
func prepared(t *testing.T, path string, m *marks, sizes ...int) (s *Store, first, second string, staged []string) {
	t.Helper()
	s = still(openWith(t, Options{Path: path}))
	mustUpdate(t, s, func(tx vault.Tx) error { _, err := tx.Create(faultKey, vault.Config{}); return err })
	ids := []string{"first", "second"}
	var saved []string
	for i, id := range ids {
		mark, p := m.payload(sizes[i])
		saved = append(saved, mark)
		mustUpdate(t, s, func(tx vault.Tx) error { _, err := tx.Put(faultKey, vault.Record{ID: id, Payload: p}); return err })
	}
	mustUpdate(t, s, func(tx vault.Tx) error {
		return tx.BeginBatch(vault.Batch{BatchKey: keptBatch, Vault: faultKey, Expires: expiry})
	})
	for i, id := range ids {
		mark, p := m.payload(sizes[i])
		staged = append(staged, mark)
		mustUpdate(t, s, func(tx vault.Tx) error { return stageIn(tx, vault.Staged{ID: id}, p) })
	}
	return s, saved[0], saved[1], staged
}

// Whatever way something is deleted in, no byte of it is in the database or its
// log after the clean-up; what was not deleted is.
func TestForgets(t *testing.T) {
	t.Parallel()
	for name, forget := range forgetting {
		for _, sizes := range [][]int{{900, 700}, {60_000, 100}} {
			t.Run(fmt.Sprint(name, "/", sizes[0]), func(t *testing.T) {
				t.Parallel()
				m := &marks{}
				path := filepath.Join(t.TempDir(), "vault.db")
				s, first, second, staged := prepared(t, path, m, sizes...)
				mustUpdate(t, s, func(tx vault.Tx) error { return forget(tx, m) })
				if len(holding(t, path, []string{first})) == 0 {
					t.Error("it is gone before the clean-up: this test shows nothing")
				}
				mustClean(t, s)
				gone, left := []string{first}, append(staged, second)
				switch {
				case strings.HasPrefix(name, "delete"):
					gone, left = append(left, first), nil
				case strings.HasPrefix(name, "purge"):
					gone, left = append(gone, second), staged
				}
				if found := holding(t, path, gone); len(found) > 0 {
					t.Errorf("still there: %q", found)
				}
				if found := holding(t, path, left); len(found) != len(left) {
					t.Errorf("only %q are there of %q", found, left)
				}
				if err := s.Close(); err != nil {
					t.Fatal(err)
				}
				mustVerify(t, path)
			})
		}
	}
}

func TestForgetsStaged(t *testing.T) {
	t.Parallel()
	for name, forget := range stagedAway {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "vault.db")
			s, first, second, staged := prepared(t, path, &marks{}, 900, 60_000)
			mustUpdate(t, s, forget)
			mustClean(t, s)
			if found := holding(t, path, staged); len(found) > 0 {
				t.Errorf("still there: %q", found)
			}
			left := 2
			if name == "delete" {
				left = 0
			}
			if found := holding(t, path, []string{first, second}); len(found) != left {
				t.Errorf("records: %q", found)
			}
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			mustVerify(t, path)
		})
	}
}

// A reader that keeps an old state open keeps what was in it in the log; the
// clean-up says that it is not done, and is as soon as the reader has ended.
func TestForgetsAfterReader(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "vault.db")
	s, first, _, _ := prepared(t, path, &marks{}, 900, 700)
	entered, release, ended := make(chan struct{}), make(chan struct{}), make(chan error)
	go func() {
		ended <- s.View(t.Context(), func(v vault.View) error {
			_, err := v.Records(faultKey, []string{"first"})
			close(entered)
			<-release
			return err
		})
	}()
	<-entered
	mustUpdate(t, s, func(tx vault.Tx) error { return tx.Delete(faultKey) })
	if done, err := s.cleaner.clean(t.Context()); done || err != nil {
		t.Errorf("done %v, %v with a reader in the way", done, err)
	}
	mustUpdate(t, s, func(tx vault.Tx) error { _, err := tx.Create(faultKey, vault.Config{}); return err }) // nobody waits
	close(release)
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	mustClean(t, s)
	if found := holding(t, path, []string{first}); len(found) > 0 {
		t.Errorf("still there: %q", found)
	}
}

// What a service that was killed left to clean up, the next one does by itself.
func TestForgetsAfterKill(t *testing.T) {
	t.Parallel()
	for name, forget := range forgetting {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := &marks{}
			path := filepath.Join(t.TempDir(), "vault.db")
			s, first, _, staged := prepared(t, path, m, 900, 60_000)
			mustUpdate(t, s, func(tx vault.Tx) error { return forget(tx, m) })
			copied := filepath.Join(t.TempDir(), "vault.db") // as a kill leaves it
			for _, suffix := range []string{"", "-wal"} {
				if err := copyFile(path+suffix, copied+suffix); err != nil {
					t.Fatal(err)
				}
			}
			gone := []string{first}
			if strings.HasPrefix(name, "delete") {
				gone = append(gone, staged...)
			}
			next := still(openWith(t, Options{Path: copied}))
			if next.cleaner.touched.n == 0 {
				t.Error("no page is to be looked at")
			}
			mustClean(t, next)
			if found := holding(t, copied, gone); len(found) > 0 {
				t.Errorf("still there: %q", found)
			}
		})
	}
}

// A backup never holds what was deleted before it, cleaned up or not.
func TestBackupForgets(t *testing.T) {
	t.Parallel()
	for name, forget := range forgetting {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := &marks{}
			path, to := filepath.Join(t.TempDir(), "vault.db"), filepath.Join(t.TempDir(), "copy.db")
			s, first, second, staged := prepared(t, path, m, 60_000, 900)
			mustUpdate(t, s, func(tx vault.Tx) error { return forget(tx, m) })
			contents, err := BackupOnline(t.Context(), path, to)
			if err != nil {
				t.Fatal(err)
			}
			gone := []string{first}
			switch {
			case strings.HasPrefix(name, "delete"):
				gone = append(gone, append(staged, second)...)
			case strings.HasPrefix(name, "purge"):
				gone = append(gone, second)
			}
			if found := holding(t, to, gone); len(found) > 0 {
				t.Errorf("the copy has %q", found)
			}
			mustClean(t, s)
			again, err := BackupOnline(t.Context(), path, to+"2")
			if err != nil || again != contents {
				t.Errorf("%+v after the clean-up, %v, %+v before", again, err, contents)
			}
		})
	}
}

// A store that an older program wrote overwrites what that one left.
func TestForgetsOlder(t *testing.T) {
	t.Parallel()
	path := frozen(t, 3, `INSERT INTO record VALUES (7 << 16 | 9, 7, 'z', 9, 0, 1, 'a', 1, 0, CAST('<mark-000001>' AS BLOB)),
		(7 << 16 | 8, 7, 'y', 8, 0, 1, 'a', 1, 0, CAST(replace(hex(zeroblob(5000)), '00', '<mark-000002>') AS BLOB));
		PRAGMA secure_delete = 0; DELETE FROM record WHERE item > 'x'; PRAGMA wal_checkpoint(TRUNCATE);`)
	gone := []string{"<mark-000001>", "<mark-000002>"}
	if found := holding(t, path, gone); len(found) == 0 {
		t.Error("the older program left nothing: this test shows nothing")
	}
	s := still(openWith(t, Options{Path: path}))
	mustClean(t, s)
	if found := holding(t, path, gone); len(found) > 0 {
		t.Errorf("still there: %q", found)
	}
}
