package sqlite

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pepvault/vault"
)

// backedUp makes a backup of a store with n records.
func backedUp(t *testing.T, n int) (file string, contents vault.Contents) {
	t.Helper()
	file = filepath.Join(t.TempDir(), "copy.db")
	contents, err := Backup(t.Context(), filled(t, n), file)
	if err != nil {
		t.Fatal(err)
	}
	return file, contents
}

func mustRestore(t *testing.T, from, to string) (vault.Contents, string) {
	t.Helper()
	contents, kept, err := Restore(t.Context(), from, to)
	if err != nil {
		t.Fatal(err)
	}
	return contents, kept
}

// TestRestore: over nothing, a store at rest, one whose service was killed, a
// damaged one. What was there is kept whole.
func TestRestore(t *testing.T) {
	t.Parallel()
	file, want := backedUp(t, 20)
	spoilt := filled(t, 300)
	corrupt(t, spoilt)
	garbage := filepath.Join(t.TempDir(), "vault.db")
	for _, suffix := range []string{"", "-wal", "-journal"} {
		if err := os.WriteFile(garbage+suffix, []byte(strings.Repeat("garbage", 1000)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	before := snapshot(t, filepath.Dir(file))
	for name, test := range map[string]struct {
		to       string
		kept     int  // records in what is kept; -1: there is nothing
		readable bool // what is kept
	}{
		"empty folder": {filepath.Join(t.TempDir(), "vault.db"), -1, false},
		"at rest":      {filled(t, 33), 33, true},
		"killed":       {filepath.Join(killed(t, 44), "vault.db"), 44, true},
		"damaged":      {spoilt, 0, false},
		"garbage":      {garbage, 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			contents, kept := mustRestore(t, file, test.to)
			if contents != want {
				t.Errorf("restored %+v, want %+v", contents, want)
			}
			if (kept == "") != (test.kept < 0) {
				t.Fatalf("kept %q", kept)
			}
			if got := mustVerify(t, test.to); got != want {
				t.Errorf("the store holds %+v, want %+v", got, want)
			}
			if test.readable {
				if got := mustVerify(t, kept); got.Records != test.kept {
					t.Errorf("%d records are kept, want %d", got.Records, test.kept)
				}
			}
			if info, err := os.Stat(test.to); err != nil || info.Mode() != 0o600 {
				t.Error(info, err)
			}
			s := openWith(t, Options{Path: test.to})
			err := s.View(t.Context(), func(v vault.View) error {
				u, err := v.Usage("fill@example.org")
				if u.Records != want.Records {
					t.Errorf("opened, it has %d records", u.Records)
				}
				return err
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
	t.Cleanup(func() {
		if after := snapshot(t, filepath.Dir(file)); len(after) != 1 || after["copy.db"] != before["copy.db"] {
			t.Error("the backup was changed")
		}
		if got, err := os.ReadFile(garbage); err != nil || strings.Contains(string(got), "garbage") {
			t.Error("the garbage is still there", err)
		}
	})
}

// A restored vault has another epoch, and knows the one of the backup with the
// revision up to which they are one.
func TestRestoreBeginsEpochs(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "vault.db")
	s := openWith(t, Options{Path: path})
	fill(t, s, 3)
	fillKey := vault.Key{Account: "fill@example.org", Node: "fill"}
	keys := []vault.Key{fillKey, faultKey}
	err := s.Update(t.Context(), faultKey, func(tx vault.Tx) error {
		_, err := tx.Create(faultKey, vault.Config{})
		_, err1 := tx.Put(faultKey, sample(1))
		_, err2 := tx.Retract(faultKey, "record-1")
		return errors.Join(err, err1, err2, tx.Prune(faultKey, 0)) // the revision is known by what was pruned
	})
	if err != nil {
		t.Fatal(err)
	}
	states := func(s *Store) (found []vault.Vault) {
		err := s.View(t.Context(), func(v vault.View) error {
			for _, key := range keys {
				state, err := v.Vault(key)
				if err != nil {
					return err
				}
				found = append(found, state)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		return found
	}
	old := states(s)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "copy.db")
	if _, err := Backup(t.Context(), path, file); err != nil {
		t.Fatal(err)
	}
	seen := []vault.Epoch{old[0].Epoch, old[1].Epoch}
	for range 2 {
		mustRestore(t, file, path)
		s := openWith(t, Options{Path: path})
		for i, state := range states(s) {
			if slices.Contains(seen, state.Epoch) {
				t.Errorf("%s: the epoch is an old one", state.Key.Node)
			}
			seen = append(seen, state.Epoch)
			want := old[i]
			want.Epoch = state.Epoch
			if state != want {
				t.Errorf("got %+v, want %+v", state, want)
			}
			err := s.View(t.Context(), func(v vault.View) error {
				fork, known, err := v.Forked(state.Key, old[i].Epoch)
				if !known || fork != old[i].Revision {
					t.Errorf("%s: fork %v, %v, want %v", state.Key.Node, fork, known, old[i].Revision)
				}
				return err
			})
			if err != nil {
				t.Error(err)
			}
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// A backup that an older version made is brought up to date.
func TestRestoreMigrates(t *testing.T) {
	t.Parallel()
	from, to := frozen(t, 1, ""), filepath.Join(t.TempDir(), "vault.db")
	mustRestore(t, from, to)
	db := openSQL(t, to)
	var version, resources int
	if err := db.QueryRow("SELECT (SELECT user_version FROM pragma_user_version), (SELECT count(*) FROM resource WHERE owners <> '')").Scan(&version, &resources); err != nil {
		t.Fatal(err)
	}
	if version != schemaVersion || resources != 1 {
		t.Errorf("schema %d, %d resources", version, resources)
	}
	if got := schemaOf(t, from); got != schemaOf(t, frozen(t, 1, "")) {
		t.Error("the backup was changed")
	}
}

func TestRestoreRefuses(t *testing.T) {
	t.Parallel()
	file, _ := backedUp(t, 5)
	open := filepath.Join(t.TempDir(), "vault.db")
	openWith(t, Options{Path: open})
	spoilt, _ := backedUp(t, 300)
	corrupt(t, spoilt)
	store, foreign := filled(t, 7), filepath.Join(t.TempDir(), "foreign.db")
	execSQL(t, foreign, "PRAGMA application_id = 9; CREATE TABLE x (y)")
	for name, test := range map[string]struct{ from, to, want string }{
		"in use":          {file, open, "in use by another process"},
		"from one in use": {open, store, "in use by another process"},
		"damaged":         {spoilt, store, "damaged"},
		"no backup":       {filepath.Join(t.TempDir(), "none"), store, "there is no such file"},
		"itself":          {store, store, "the database of the store itself"},
		"no folder":       {file, filepath.Join(t.TempDir(), "none", "vault.db"), "there is no folder"},
		"other program":   {file, foreign, "belongs to another program"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, _, err := Restore(t.Context(), test.from, test.to)
			if err == nil || !strings.Contains(err.Error(), test.want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("got %v, want %s", err, test.want)
			}
		})
	}
	t.Cleanup(func() {
		if got := mustVerify(t, store); got.Records != 7 || !slices.Equal(names(t, filepath.Dir(store)), []string{"vault.db", "vault.db.lock"}) {
			t.Errorf("the store has %+v, its folder %q", got, names(t, filepath.Dir(store)))
		}
	})
}

// A store that another program reads is not exchanged below it.
func TestRestoreWaitsForReaders(t *testing.T) {
	t.Parallel()
	file, _ := backedUp(t, 5)
	path := filepath.Join(killed(t, 9), "vault.db")
	db := openSQL(t, path)
	rows, err := db.Query("SELECT item FROM record")
	if err != nil || !rows.Next() {
		t.Fatal(err)
	}
	if _, _, err := Restore(t.Context(), file, path); !errors.Is(err, vault.ErrInUse) {
		t.Errorf("got %v, want %v", err, vault.ErrInUse)
	}
	if err := errors.Join(rows.Close(), db.Close()); err != nil {
		t.Fatal(err)
	}
	if got := mustVerify(t, path); got.Records != 9 {
		t.Errorf("%+v", got)
	}
	mustRestore(t, file, path)
}
