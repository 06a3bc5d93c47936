package sqlite

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gofrs/flock"

	"pepvault/vault"
)

// filled makes a closed store with n records and returns its path.
func filled(t *testing.T, n int) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "vault.db")
	s := openWith(t, Options{Path: path})
	fill(t, s, n)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}

func mustVerify(t *testing.T, path string) vault.Contents {
	t.Helper()
	contents, err := Verify(context.WithoutCancel(t.Context()), path) // also in a Cleanup
	if err != nil {
		t.Fatal(err)
	}
	return contents
}

// snapshot is what a folder has: names, modes, times and bytes.
func snapshot(t *testing.T, dir string) map[string]string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]string{}
	for _, e := range entries {
		info, err := e.Info()
		if err != nil {
			t.Fatal(err)
		}
		raw, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		found[e.Name()] = fmt.Sprint(info.Mode(), info.ModTime(), len(raw), string(raw))
	}
	return found
}

func names(t *testing.T, dir string) (found []string) {
	t.Helper()
	for name := range snapshot(t, dir) {
		found = append(found, name)
	}
	slices.Sort(found)
	return found
}

// C31: a backup during writes has all that was acknowledged before it began,
// and is whole.
func TestC31BackupDuringWrites(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "vault.db")
	s := openWith(t, Options{Path: path})
	fill(t, s, 2000) // so that it takes a while
	const writers = 4
	var acknowledged [writers]atomic.Int64
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	warm := make(chan struct{}, writers)
	var busy sync.WaitGroup
	for writer := range writers {
		busy.Go(func() {
			key := victimKey(writer)
			for n := 0; ctx.Err() == nil; n++ {
				err := s.Update(t.Context(), key, func(tx vault.Tx) error {
					if _, err := tx.Vault(key); err != nil {
						if _, err := tx.Create(key, vault.Config{}); err != nil {
							return err
						}
					}
					record := sample(n)
					record.ID = fmt.Sprint("record-", n%10000)
					_, err := tx.Put(key, record)
					return err
				})
				if err != nil {
					t.Error(err)
					return
				}
				acknowledged[writer].Store(int64(n) + 1)
				if n == 20 {
					warm <- struct{}{}
				}
			}
		})
	}
	for range writers {
		<-warm
	}
	var before, after [writers]int64
	var to string
	var contents vault.Contents
	var err error
	// Nothing says that a writer gets on while one is made, only that it may.
	for total := int64(0); total == 0 && err == nil; {
		for i := range acknowledged {
			before[i] = acknowledged[i].Load()
		}
		to = filepath.Join(t.TempDir(), "copy.db")
		contents, err = BackupOnline(t.Context(), path, to)
		for i := range acknowledged {
			after[i] = acknowledged[i].Load()
			total += after[i] - before[i]
		}
	}
	stop()
	busy.Wait()
	if err != nil {
		t.Fatal(err)
	}
	if got := mustVerify(t, to); got != contents {
		t.Errorf("the copy holds %+v, the backup said %+v", got, contents)
	}

	restored := filepath.Join(t.TempDir(), "vault.db")
	if _, kept, err := Restore(t.Context(), to, restored); err != nil || kept != "" {
		t.Fatal(kept, err)
	}
	r := openWith(t, Options{Path: restored})
	for writer, n := range before {
		err := r.View(t.Context(), func(v vault.View) error {
			state, err := v.Vault(victimKey(writer))
			if int64(state.Records) < min(n, 10000) {
				t.Errorf("%d writes were acknowledged, %d records are there", n, state.Records)
			}
			return err
		})
		if err != nil {
			t.Error(err)
		}
	}
}

// A backup is the store at that moment, and says so by the same hash.
func TestBackupIsTheStore(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "vault.db")
	s := openWith(t, Options{Path: path})
	fill(t, s, 300)
	dir := t.TempDir()
	if _, err := Backup(t.Context(), path, filepath.Join(dir, "closed.db")); !errors.Is(err, vault.ErrInUse) {
		t.Errorf("of an open store: %v, want %v", err, vault.ErrInUse)
	}
	online, err := BackupOnline(t.Context(), path, filepath.Join(dir, "online.db"))
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	closed, err := Backup(t.Context(), path, filepath.Join(dir, "closed.db"))
	if err != nil {
		t.Fatal(err)
	}
	want := vault.Contents{Accounts: 1, Vaults: 1, Records: 300, Bytes: 300 * 924, Hash: closed.Hash}
	for what, got := range map[string]vault.Contents{
		"online": online, "closed": closed, "verified": mustVerify(t, filepath.Join(dir, "online.db")), "store": mustVerify(t, path),
	} {
		if got != want {
			t.Errorf("%s: %+v, want %+v", what, got, want)
		}
	}
	for _, name := range names(t, dir) {
		if info, err := os.Stat(filepath.Join(dir, name)); err != nil || info.Mode() != 0o600 {
			t.Errorf("%s: mode %v, %v", name, info.Mode(), err)
		}
	}
	if got := names(t, dir); !slices.Equal(got, []string{"closed.db", "online.db"}) {
		t.Errorf("the folder has %q", got)
	}
	if got := names(t, filepath.Dir(path)); !slices.Equal(got, []string{"vault.db", "vault.db.lock"}) {
		t.Errorf("the folder of the store has %q", got)
	}
}

func TestBackupRefuses(t *testing.T) {
	t.Parallel()
	path := filled(t, 10)
	write := func(name string) string {
		file := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(file, []byte("precious"), 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	existing, wal := write("copy.db"), write("copy.db-wal")
	folder := filepath.Join(t.TempDir(), "copy.db")
	if err := os.Symlink(t.TempDir(), folder); err != nil {
		t.Fatal(err)
	}
	ended, end := context.WithCancel(t.Context())
	end()
	damaged := filled(t, 300)
	corrupt(t, damaged)
	for name, test := range map[string]struct {
		ctx        context.Context
		path, to   string
		want, hint string
	}{
		"existing":        {t.Context(), path, existing, "exists already", "choose another name"},
		"existing log":    {t.Context(), path, strings.TrimSuffix(wal, "-wal"), "-wal exists already", "choose another name"},
		"the store":       {t.Context(), path, path, "exists already", "choose another name"},
		"no folder":       {t.Context(), path, filepath.Join(t.TempDir(), "none", "copy.db"), "there is no folder", "create it"},
		"folder":          {t.Context(), path, folder, "exists already", "choose another name"},
		"no store":        {t.Context(), filepath.Join(t.TempDir(), "none.db"), filepath.Join(t.TempDir(), "copy.db"), "there is no such file", ""},
		"cancelled":       {ended, path, filepath.Join(t.TempDir(), "copy.db"), context.Canceled.Error(), ""},
		"a damaged store": {t.Context(), damaged, filepath.Join(t.TempDir(), "copy.db"), "damaged", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := filepath.Dir(test.to)
			before, _ := os.ReadDir(dir) // there may be none
			_, err := Backup(test.ctx, test.path, test.to)
			if err == nil || !strings.Contains(err.Error(), test.want) || !strings.Contains(err.Error(), test.hint) || strings.Contains(err.Error(), "\n") {
				t.Errorf("got %v, want %s … %s", err, test.want, test.hint)
			}
			if after, _ := os.ReadDir(dir); len(after) != len(before) {
				t.Errorf("the folder has %v, it had %v", after, before)
			}
		})
	}
	t.Cleanup(func() {
		for _, file := range []string{existing, wal} {
			if got, err := os.ReadFile(file); err != nil || string(got) != "precious" {
				t.Errorf("%s: %q, %v", file, got, err)
			}
		}
	})
}

// A backup that is told to stop, at any moment, leaves a whole file or none.
func TestBackupStops(t *testing.T) {
	t.Parallel()
	path, dir := filled(t, 300), t.TempDir()
	want := mustVerify(t, path)
	for n := range 20 {
		ctx, stop := context.WithTimeout(t.Context(), time.Duration(n)*time.Millisecond)
		to := filepath.Join(dir, "copy.db")
		_, err := Backup(ctx, path, to)
		stop()
		if err != nil && !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
		if left := names(t, dir); err != nil && len(left) > 0 {
			t.Fatalf("left behind: %q", left)
		}
		if err == nil {
			if got := mustVerify(t, to); got != want {
				t.Errorf("it holds %+v, want %+v", got, want)
			}
			if err := os.Remove(to); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// corrupt spoils pages in the middle of a database.
func corrupt(t *testing.T, path string) {
	t.Helper()
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for i := len(raw) / 2; i < len(raw)/2+8192; i++ {
		raw[i] = 0xa5
	}
	if err := os.WriteFile(path, raw, 0o600); err != nil {
		t.Fatal(err)
	}
}

// What a killed backup left goes with the next of that name; one that is in the
// making, and what looks alike, stays.
func TestBackupRemovesLeftOvers(t *testing.T) {
	t.Parallel()
	path, dir := filled(t, 3), t.TempDir()
	to := filepath.Join(dir, "copy[1].db")
	for _, name := range []string{".copy[1].db.partial-1234", ".copy[1].db.partial-77", ".copy[1].db.partial-x", ".copy1.db.partial-1234"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("half a copy"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	busy := flock.New(filepath.Join(dir, ".copy[1].db.partial-77"))
	if locked, err := busy.TryLock(); !locked || err != nil {
		t.Fatal(err)
	}
	defer busy.Close()
	if _, err := Backup(t.Context(), path, to); err != nil {
		t.Fatal(err)
	}
	want := []string{".copy1.db.partial-1234", ".copy[1].db.partial-77", ".copy[1].db.partial-x", "copy[1].db"}
	if got := names(t, dir); !slices.Equal(got, want) {
		t.Errorf("the folder has %q, want %q", got, want)
	}
}
