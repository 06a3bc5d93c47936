package sqlite

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"pepvault/vault"
)

func TestVerifyFinds(t *testing.T) {
	t.Parallel()
	// The filled vault has the row 1, the records revisions from 2 on.
	const rows = `UPDATE record SET revision = 900 WHERE item = 'record-1';`
	for name, test := range map[string]struct {
		change string
		want   string
	}{
		"range":       {`PRAGMA ignore_check_constraints = 1; UPDATE record SET id = (9 << 16) WHERE item = 'record-1'`, "records outside the range of their vault: 1"},
		"twice":       {`UPDATE record SET revision = 3 WHERE item = 'record-9'`, "revisions that occur twice in a vault: 1"},
		"zero":        {`UPDATE record SET revision = 0 WHERE item = 'record-9'`, "revisions below 1: 1"},
		"both":        {`INSERT INTO tombstone VALUES (1, 900, 'record-2')`, "ids with a record and a tombstone: 1"},
		"two":         {`INSERT INTO tombstone VALUES (1, 900, 'x'), (1, 901, 'x')`, "ids with two tombstones: 1"},
		"forgotten":   {`UPDATE vault SET pruned = 900; INSERT INTO tombstone VALUES (1, 899, 'x')`, "tombstones that should be forgotten: 1"},
		"form":        {`UPDATE record SET form = 3 WHERE item IN ('record-1', 'record-2')`, "payloads of an unknown form: 2"},
		"key version": {`UPDATE record SET key_version = -1 WHERE item = 'record-1'`, "key versions out of bounds: 1"},
		"run":         {`INSERT INTO run VALUES (1, 500, 9)`, "runs that begin above the revision of their vault: 1"},
		"fork":        {`INSERT INTO lineage VALUES (1, zeroblob(10), 500)`, "earlier epochs that fork above the revision of their vault: 1"},
		"epoch":       {`INSERT INTO ended_epoch SELECT epoch FROM vault`, "epochs of two histories: 1"},
		"orphan":      {`INSERT INTO run VALUES (77, 1, 9)`, "1 rows of the table run belong to nothing"},
		"config":      {`UPDATE vault SET config = '{"title":'`, `the configuration of vault "fill" of fill@example.org can't be read`},
		"node":        {`UPDATE vault SET node = ''`, `vault "" of "fill@example.org" has a name that is not allowed`},
		"floor":       {`UPDATE vault SET config = '{"key_version_floor":7}'; UPDATE record SET key_version = 7 WHERE item <> 'record-1'`, "records below the key version floor that are newer than it: 1"},
		"high floor":  {`UPDATE vault SET config = '{"key_version_floor":7}', revision = 900`, ""},
		"rotated":     {`UPDATE record SET rotated_from = revision WHERE item = 'record-1'`, "revisions that were rotated from later ones: 1"},
		"buried":      {`UPDATE vault SET burials = 1; INSERT INTO burial VALUES (1, 900, 901, '["x","record-2"]')`, "ids with a record and a tombstone: 1"},
		"buried once": {`UPDATE vault SET burials = 2; INSERT INTO burial VALUES (1, 900, 900, '["x"]'), (1, 901, 902, '["x","y"]'); INSERT INTO tombstone VALUES (1, 903, 'y')`, ""},
		"names":       {`INSERT INTO burial VALUES (1, 900, 901, '["x"]')`, "purges that list their tombstones wrong: 1"},
		"burial":      {`UPDATE vault SET pruned = 900; INSERT INTO burial VALUES (1, 900, 901, '["x","y"]')`, "forgotten tombstones that nobody will clean up: 1"},
		"lost burial": {`UPDATE vault SET burials = 1`, "vaults with missing rows of purges: 1"},
		"purged":      {`UPDATE vault SET purged = 3`, "deleted rows that nobody will clean up: 2"},
		"discarded":   {`UPDATE vault SET account = ''`, "deleted rows that nobody will clean up: 1"},
		"id":          {`UPDATE record SET item = '' WHERE item = 'record-1'`, "has a record with a name that is not allowed"},
		"key":         {`DELETE FROM meta`, "the key of the store is missing: 1"},
		"owner":       {`INSERT INTO affiliation VALUES (1, 'fill@example.org', 2)`, "owners who are affiliated with their own vault: 1"},
		"resource":    {`INSERT INTO resource VALUES ('a', 'b', 'c', 1, '[', '[]', '')`, "known resources that can't be read: 1"},
		"capability":  {`INSERT INTO capability VALUES ('h', '[', 1, 1)`, "capabilities that can't be read: 1"},
		"several":     {`UPDATE record SET form = 3, key_version = -1, revision = -id; UPDATE vault SET config = '', node = ''; DELETE FROM meta`, "; and 1 more"},
		"high":        {rows + `INSERT INTO run VALUES (1, 900, 9)`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := filled(t, 10)
			execSQL(t, path, test.change)
			_, err := Verify(t.Context(), path)
			if test.want == "" {
				if err != nil {
					t.Errorf("got %v, want nothing", err)
				}
				return
			}
			if !errors.Is(err, vault.ErrDamaged) || !strings.Contains(err.Error(), test.want) || !strings.Contains(err.Error(), path) {
				t.Errorf("got %v, want %s", err, test.want)
			}
		})
	}
}

// TestVerifyFindsInBatches damages what is staged: the vault 7 has an open
// rotation, 3, an ended batch, 4, and a dropped one, 5.
func TestVerifyFindsInBatches(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		change string
		want   string
	}{
		"nothing":     {"", ""},
		"no batch":    {`UPDATE staged SET batch = 99 WHERE id = 8`, "1 rows of the table staged belong to nothing"},
		"no vault":    {`UPDATE batch SET vault = 99 WHERE id = 4`, "1 rows of the table batch belong to nothing"},
		"changes":     {`UPDATE batch SET changes = 3 WHERE id = 3`, "batches that count their changes wrong: 1"},
		"bytes":       {`UPDATE batch SET bytes = 7 WHERE id = 3`, "batches that count their changes wrong: 1"},
		"lost":        {`DELETE FROM staged WHERE id = 9`, "batches that count their changes wrong: 1"},
		"ended":       {`UPDATE batch SET changes = 1 WHERE id = 4`, "batches that count their changes wrong: 1"},
		"no cursor":   {`UPDATE batch SET cursor = '' WHERE id = 4`, "batches whose outcome does not fit their cursors: 1"},
		"open cursor": {`UPDATE batch SET previous = 'x' WHERE id = 3`, "batches whose outcome does not fit their cursors: 1"},
		"expiry":      {`UPDATE batch SET expires = 0 WHERE id = 3`, "batches without a time of expiry: 1"},
		"name":        {`UPDATE batch SET name = printf('%065d', 1) WHERE id = 3`, "batches with a name that is not allowed: 1"},
		"no right":    {`DELETE FROM affiliation WHERE account = 'bob@example.org'`, "batches whose account may not write: 1"},
		"not owner":   {`UPDATE batch SET rotate_to = 9 WHERE id = 4`, "batches whose account may not write: 1"},
		"key version": {`UPDATE batch SET rotate_to = -1 WHERE id = 3`, "rotations to a key version out of bounds: 1"},
		"removal":     {`UPDATE staged SET key_version = 1 WHERE id = 9`, "staged changes that are no record and no removal: 1"},
		"form":        {`UPDATE staged SET form = 7 WHERE id = 8`, "staged changes that are no record and no removal: 1"},
		"rotation":    {`UPDATE staged SET key_version = 3 WHERE id = 8`, "staged records below the key version that their batch rotates to: 1"},
		"epoch":       {`UPDATE staged SET epoch = zeroblob(10) WHERE id = 8`, "staged changes that rely on what their vault never was: 1"},
		"ahead":       {`UPDATE staged SET held = 7 WHERE id = 8`, "staged changes that rely on what their vault never was: 1"},
		"no mark":     {`UPDATE batch SET waste = 0`, "deleted rows that nobody will clean up: 2"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := frozen(t, schemaVersion, "PRAGMA foreign_keys = 0;"+test.change)
			_, err := Verify(t.Context(), path)
			if test.want == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			if !errors.Is(err, vault.ErrDamaged) || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want %s", err, test.want)
			}
		})
	}
}

func TestVerifyRefuses(t *testing.T) {
	t.Parallel()
	file := func(content string) string {
		path := filepath.Join(t.TempDir(), "vault.db")
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	changed := func(change string) string {
		path := filled(t, 3)
		execSQL(t, path, change)
		return path
	}
	spoilt, short := filled(t, 300), filled(t, 300)
	corrupt(t, spoilt)
	if err := os.Truncate(short, 40960); err != nil {
		t.Fatal(err)
	}
	open := filepath.Join(t.TempDir(), "vault.db")
	openWith(t, Options{Path: open})
	for name, test := range map[string]struct{ path, want string }{
		"missing":       {filepath.Join(t.TempDir(), "none"), "there is no such file"},
		"folder":        {t.TempDir(), "not a regular file"},
		"empty":         {file(""), "the file is empty"},
		"text":          {file(strings.Repeat("no database at all\n", 100)), "the file is not a database"},
		"other program": {changed("PRAGMA application_id = 5"), "belongs to another program"},
		"newer":         {changed("PRAGMA user_version = 999"), "newer version"},
		"bad pages":     {spoilt, "damaged"},
		"cut off":       {short, "damaged"},
		"in use":        {open, "in use by another process"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := Verify(t.Context(), test.path)
			if err == nil || !strings.Contains(err.Error(), test.want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("got %v, want %s", err, test.want)
			}
		})
	}
}

// TestVerifyLeavesNoTrace: neither in a folder with a copy, nor beside a store
// whose service was killed, whose log has the newest changes.
func TestVerifyLeavesNoTrace(t *testing.T) {
	t.Parallel()
	want := mustVerify(t, filled(t, 50))
	for name, dir := range map[string]string{"at rest": filepath.Dir(filled(t, 50)), "killed": killed(t, 50)} {
		before := snapshot(t, dir)
		if got := mustVerify(t, filepath.Join(dir, "vault.db")); got != want {
			t.Errorf("%s: %+v, want %+v", name, got, want)
		}
		if diff := cmp.Diff(before, snapshot(t, dir)); diff != "" {
			t.Errorf("%s: the folder was changed", name)
		}
	}
	read := filled(t, 50)
	if err := os.Remove(read + ".lock"); err != nil {
		t.Fatal(err)
	}
	if mustVerify(t, read); len(names(t, filepath.Dir(read))) != 1 {
		t.Errorf("the folder has %q", names(t, filepath.Dir(read)))
	}
}

// killed makes a folder as a service leaves it that is killed: the newest
// changes are in the log alone.
func killed(t *testing.T, n int) (dir string) {
	t.Helper()
	live := t.TempDir()
	s := still(openAt(t, live)) // so that nobody moves the log
	fill(t, s, n)
	dir = t.TempDir()
	for _, suffix := range []string{"", "-wal", "-shm"} {
		if err := copyFile(filepath.Join(live, "vault.db"+suffix), filepath.Join(dir, "vault.db"+suffix)); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(live, "vault.db")); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(filepath.Join(dir, "vault.db-wal")); err != nil || info.Size() == 0 {
		t.Fatal("the log has nothing", err)
	}
	return dir
}

// The hash is that of the records, however they came to be there.
func TestVerifyHash(t *testing.T) {
	t.Parallel()
	keys := []vault.Key{{Account: "b@example.org", Node: "z"}, {Account: "a@example.org", Node: "z"}, {Account: "a@example.org", Node: "\u00e4"}}
	made := func(order []int, again bool, last int) vault.Contents {
		path := filepath.Join(t.TempDir(), "vault.db")
		s := openWith(t, Options{Path: path})
		for _, i := range order {
			err := s.Update(t.Context(), keys[i%3], func(tx vault.Tx) error {
				if _, err := tx.Vault(keys[i%3]); err != nil {
					if _, err := tx.Create(keys[i%3], vault.Config{}); err != nil {
						return err
					}
				}
				_, err := tx.Put(keys[i%3], sample(i))
				if again && err == nil {
					if _, err := tx.Retract(keys[i%3], sample(i).ID); err != nil {
						return err
					}
					if _, err := tx.Put(keys[i%3], sample(i+1)); err != nil {
						return err
					}
					if _, err := tx.Retract(keys[i%3], sample(i+1).ID); err != nil {
						return err
					}
					record := sample(i)
					record.KeyVersion = uint32(last)
					_, err = tx.Put(keys[i%3], record)
				}
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		return mustVerify(t, path)
	}
	first, second := made([]int{0, 10, 20, 30, 40, 50}, false, 0), made([]int{50, 30, 10, 40, 20, 0}, true, 0)
	if first.Hash != second.Hash || first.Accounts != 2 || first.Vaults != 3 || first.Tombstones != 0 || second.Tombstones != 6 {
		t.Errorf("%+v and %+v", first, second)
	}
	if other := made([]int{50, 30, 10, 40, 20, 0}, true, 1); other.Hash == first.Hash {
		t.Error("another key version has the same hash")
	}
}

// Every version of the schema can be verified as it is.
func TestVerifyOldSchema(t *testing.T) {
	t.Parallel()
	for version := range schemaVersion {
		path := frozen(t, version+1, "")
		if got := mustVerify(t, path); got.Records != 2 || got.Tombstones != 1 {
			t.Errorf("version %d: %+v", version+1, got)
		}
	}
}
