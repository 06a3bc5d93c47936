package sqlite

import (
	"database/sql"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"pepvault/vault"
)

var faultKey = vault.Key{Account: "alice@example.org", Node: "notes"}

// secret must never show in an error.
const secret = "SECRET-PAYLOAD"

func putting(id string, size int) func(vault.Tx) error {
	return func(tx vault.Tx) error {
		r := sample(0)
		r.ID, r.Payload.Data = id, []byte(strings.Repeat(secret, 1+size/len(secret)))
		_, err := tx.Put(faultKey, r)
		return err
	}
}

// faulty is a store with one vault that holds the record "first".
func faulty(t *testing.T) *Store {
	t.Helper()
	s := openAt(t, t.TempDir())
	mustUpdate(t, s, func(tx vault.Tx) error {
		_, err := tx.Create(faultKey, vault.Config{})
		return err
	})
	mustUpdate(t, s, putting("first", 10))
	return s
}

func mustUpdate(t *testing.T, s *Store, fn func(vault.Tx) error) {
	t.Helper()
	if err := s.Update(t.Context(), faultKey, fn); err != nil {
		t.Fatal(err)
	}
}

// pragma sets something on the writer's connection while the writer waits.
func pragma(t *testing.T, s *Store, text string) {
	t.Helper()
	if _, err := s.writer.sql.ExecContext(t.Context(), "PRAGMA "+text); err != nil {
		t.Fatal(err)
	}
}

// wantIDs checks what a View shows, and that what is in memory agrees with a
// store that has just been opened.
func wantIDs(t *testing.T, s *Store, want ...string) {
	t.Helper()
	ids := func() (got []string) {
		err := s.View(t.Context(), func(v vault.View) error {
			page, err := v.Changes(faultKey, 0, vault.PageLimit{Records: 1 << 20, Cost: 1 << 30})
			for _, c := range page.Changes {
				got = append(got, c.ID)
			}
			return err
		})
		if err != nil {
			t.Error("view:", err)
		}
		return got
	}
	if got := ids(); fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("records %v, want %v", got, want)
	}
	s.vaults.drop(faultKey, s.seq)
	if got := ids(); fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("without the cache: records %v, want %v", got, want)
	}
}

func wantStorageError(t *testing.T, err error, text string) {
	t.Helper()
	if !errors.Is(err, vault.ErrStorage) {
		t.Errorf("got %v, want %v", err, vault.ErrStorage)
		return
	}
	message := err.Error()
	if !strings.Contains(message, text) || strings.Contains(message, secret) || strings.Contains(message, "\n") ||
		strings.Contains(strings.ToUpper(message), "INSERT") || strings.Contains(message, "record.") {
		t.Errorf("message %q, want one with %q", message, text)
	}
}

// healed lets Health try a write at once.
func healed(t *testing.T, s *Store) error {
	t.Helper()
	if f := s.fault.Load(); f != nil {
		s.fault.Store(&fault{err: f.err})
	}
	return s.Health(t.Context())
}

// TestWriteFaults has writes fail in several ways: each is a storage error,
// leaves nothing behind, lets reads go on, shows in Health, and heals.
func TestWriteFaults(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name      string
		fail, fix string
		text      string
	}{
		{"full", "max_page_count = 1", "max_page_count = 1000000", "the disk is full"},
		{"read-only", "query_only = 1", "query_only = 0", "read-only"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			s := faulty(t)
			pragma(t, s, test.fail)
			for range 3 {
				wantStorageError(t, s.Update(t.Context(), faultKey, putting("second", 100_000)), test.text)
				wantStorageError(t, s.Health(t.Context()), test.text)
			}
			wantIDs(t, s, "first")
			pragma(t, s, test.fix)
			if err := s.Health(t.Context()); !errors.Is(err, vault.ErrStorage) {
				t.Error("Health tried again at once:", err)
			}
			if err := healed(t, s); err != nil {
				t.Error("Health did not heal:", err)
			}
			mustUpdate(t, s, putting("third", 100_000))
			wantIDs(t, s, "first", "third")
			state := s.fault.Load()
			if state != nil {
				t.Errorf("fault %v after a write", state.err)
			}
		})
	}
}

// TestPurgeFault: a purge for which there is no room changes nothing.
func TestPurgeFault(t *testing.T) {
	t.Parallel()
	s := openAt(t, t.TempDir())
	fill(t, s, 500)
	key := vault.Key{Account: "fill@example.org", Node: "fill"}
	state := func() (got vault.Vault, u vault.Usage) {
		t.Helper()
		err := s.View(t.Context(), func(v vault.View) (err error) {
			if got, err = v.Vault(key); err == nil {
				u, err = v.Usage(key.Account)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		return got, u
	}
	purge := func() (purged []vault.Change, err error) {
		err = s.Update(t.Context(), key, func(tx vault.Tx) error { purged, err = tx.Purge(key); return err })
		return purged, err
	}
	before, used := state()
	pragma(t, s, "max_page_count = 1")
	_, err := purge()
	wantStorageError(t, err, "the disk is full")
	for range 2 { // from memory and from the rows
		if after, u := state(); after != before || u != used {
			t.Errorf("vault %+v, was %+v", after, before)
		}
		s.vaults.drop(key, s.seq)
		s.accounts.drop(key.Account, s.seq)
	}
	pragma(t, s, "max_page_count = 1000000")
	purged, err := purge()
	if err != nil || len(purged) != 500 {
		t.Errorf("%d purged, %v", len(purged), err)
	}
	if after, u := state(); after.Records != 0 || u.Records != 0 || after.Revision != before.Revision+500 {
		t.Errorf("vault %+v", after)
	}
}

// TestFaultHealsByTraffic: a write that works ends a fault, without Health.
func TestFaultHealsByTraffic(t *testing.T) {
	t.Parallel()
	s := faulty(t)
	pragma(t, s, "query_only = 1")
	wantStorageError(t, s.Update(t.Context(), faultKey, putting("second", 1)), "read-only")
	pragma(t, s, "query_only = 0")
	mustUpdate(t, s, putting("third", 1))
	if err := s.Health(t.Context()); err != nil {
		t.Error(err)
	}
	wantIDs(t, s, "first", "third")
}

// together has the functions run in one batch, and returns their errors.
func together(t *testing.T, s *Store, fns ...func(vault.Tx) error) []error {
	t.Helper()
	started, release := make(chan struct{}), make(chan struct{})
	go s.submit(t.Context(), func(*tx) error { close(started); <-release; return nil })
	<-started
	jobs := make([]*job, len(fns))
	for i, fn := range fns {
		jobs[i] = &job{fn: func(t *tx) error { return fn(t) }, done: make(chan struct{})}
		s.jobs <- jobs[i]
	}
	close(release)
	errs := make([]error, len(fns))
	for i, j := range jobs {
		<-j.done
		errs[i] = j.err
		if j.panicked != nil {
			errs[i] = j.panicked
		}
	}
	return errs
}

// TestBatchIsolation: of the transactions that share a commit, those that are
// refused or panic are dropped alone.
func TestBatchIsolation(t *testing.T) {
	t.Parallel()
	s := faulty(t)
	refused := errors.New("refused")
	var order []string
	hook := func(name string, fn func(vault.Tx) error) func(vault.Tx) error {
		return func(tx vault.Tx) error {
			tx.AfterCommit(func() { order = append(order, name) })
			return fn(tx)
		}
	}
	before := s.seq
	errs := together(t, s,
		hook("a", putting("a", 1)),
		hook("b", func(tx vault.Tx) error { putting("b", 1)(tx); return refused }),
		hook("c", putting("c", 1)),
		hook("d", func(tx vault.Tx) error { putting("d", 1)(tx); panic("mine") }),
		hook("e", putting("e", 1)),
		hook("f", func(tx vault.Tx) error {
			return tx.Delete(vault.Key{Account: "nobody@example.org", Node: "x"})
		}),
	)
	if s.seq != before+1 {
		t.Errorf("%d commits, want 1", s.seq-before)
	}
	for i, want := range []error{nil, refused, nil, &Panic{}, nil, vault.ErrNoVault} {
		var panicked *Panic
		switch {
		case i == 3 && !errors.As(errs[i], &panicked):
			t.Errorf("job %d: %v, want a panic", i, errs[i])
		case i != 3 && !errors.Is(errs[i], want):
			t.Errorf("job %d: %v, want %v", i, errs[i], want)
		}
	}
	if fmt.Sprint(order) != "[a c e]" {
		t.Errorf("calls after the commit %v", order)
	}
	wantIDs(t, s, "first", "a", "c", "e")
}

// TestBatchFault: when the disk fills in the middle of a batch, only the
// transactions that don't fit fail.
func TestBatchFault(t *testing.T) {
	t.Parallel()
	s := faulty(t)
	var pages int
	if err := s.writer.sql.QueryRowContext(t.Context(), "PRAGMA page_count").Scan(&pages); err != nil {
		t.Fatal(err)
	}
	pragma(t, s, fmt.Sprintf("max_page_count = %d", pages+20))
	calls := 0
	errs := together(t, s,
		putting("small1", 100),
		func(tx vault.Tx) error { calls++; putting("large", 400_000)(tx); return nil }, // it ignores the error
		putting("small2", 100),
	)
	wantStorageError(t, errs[1], "the disk is full")
	if errs[0] != nil || errs[2] != nil {
		t.Errorf("the others: %v, %v", errs[0], errs[2])
	}
	if calls != 2 {
		t.Errorf("the large one ran %d times, want 2", calls)
	}
	wantIDs(t, s, "first", "small1", "small2")
	if err := s.Health(t.Context()); err != nil {
		t.Error("a write has worked since:", err)
	}
}

// TestBrokenWriter: the store gets itself a new connection.
func TestBrokenWriter(t *testing.T) {
	t.Parallel()
	s := faulty(t)
	s.submit(t.Context(), func(tx *tx) error { tx.conn.close(); return nil })
	errs := []error{s.Update(t.Context(), faultKey, putting("second", 1)), s.Update(t.Context(), faultKey, putting("third", 1))}
	if errs[1] != nil {
		t.Errorf("still broken: %v", errs)
	}
	if err := s.Health(t.Context()); err != nil {
		t.Error(err)
	}
}

// TestBrokenReaders: each broken connection costs one View.
func TestBrokenReaders(t *testing.T) {
	t.Parallel()
	s := faulty(t)
	for range readers {
		c := <-s.readers
		c.close()
		s.readers <- c
	}
	for range readers {
		err := s.View(t.Context(), func(v vault.View) error { _, err := v.Vault(faultKey); return err })
		wantStorageError(t, err, "broken")
	}
	wantIDs(t, s, "first")
}

// TestDamagedPage damages the file under an open store: what lies there
// fails, the rest is served.
func TestDamagedPage(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "vault.db")
	s := still(openWith(t, Options{Path: path})) // the log may have what is damaged here
	mustUpdate(t, s, func(tx vault.Tx) error { _, err := tx.Create(faultKey, vault.Config{}); return err })
	mustUpdate(t, s, putting("first", 10))
	fill(t, s, 2000) // far more than the readers' caches hold
	if err := s.checkpoint(); err != nil {
		t.Fatal(err)
	}
	damage(t, path)
	defer s.mismatches.Store(0) // what is damaged may be seen by that
	filled := vault.Key{Account: "fill@example.org", Node: "fill"}
	err := s.View(t.Context(), func(v vault.View) error {
		_, err := v.Changes(filled, 0, vault.PageLimit{Records: 1 << 20, Cost: 1 << 30})
		return err
	})
	wantStorageError(t, err, "damaged")
	wantIDs(t, s, "first")
	mustUpdate(t, s, putting("first", 20))
}

// TestRowsPassedOver damages the root of a tree in a way that has SQLite pass
// over rows without an error: what is missing must not look deleted.
func TestRowsPassedOver(t *testing.T) {
	t.Parallel()
	for table, look := range map[string]func(v vault.View) error{
		"record": func(v vault.View) error {
			_, err := v.Changes(faultKey, 0, vault.PageLimit{Records: 1 << 20, Cost: 1 << 30})
			return err
		},
		"staged": func(v vault.View) error { _, err := v.Staged(filledBatch); return err },
	} {
		for _, remembered := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, remembered %t", table, remembered), func(t *testing.T) {
				t.Parallel()
				path := filepath.Join(t.TempDir(), "vault.db")
				s := still(openWith(t, Options{Path: path}))
				mustUpdate(t, s, func(tx vault.Tx) error { _, err := tx.Create(faultKey, vault.Config{}); return err })
				for i := range 300 {
					mustUpdate(t, s, func(tx vault.Tx) error { _, err := tx.Put(faultKey, sample(i)); return err })
				}
				fillStaged(t, s, faultKey, 300)
				if err := s.View(t.Context(), look); err != nil {
					t.Fatal(err)
				}
				if err := s.checkpoint(); err != nil {
					t.Fatal(err)
				}
				halveRoot(t, s, path, table)
				for range readers { // which may have the page as it was
					c := <-s.readers
					c.close()
					s.readers <- nil
				}
				s.recent = newCache[place, recentRecord](0)
				if !remembered {
					s.vaults.drop(faultKey, s.seq)
				}
				for range 2 {
					wantStorageError(t, s.View(t.Context(), look), "damaged")
				}
				s.mismatches.Store(0)
			})
		}
	}
}

// halveRoot has the root page of a table name half of its children only.
func halveRoot(t *testing.T, s *Store, path, table string) {
	t.Helper()
	var root int64
	row := s.writer.sql.QueryRowContext(t.Context(), "SELECT rootpage FROM sqlite_schema WHERE name = ?", table)
	if err := row.Scan(&root); err != nil {
		t.Fatal(err)
	}
	file, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	const pageSize, tableNode = 4096, 5
	head := make([]byte, 5) // kind, first free block, cells
	if _, err := file.ReadAt(head, (root-1)*pageSize); err != nil {
		t.Fatal(err)
	}
	cells := binary.BigEndian.Uint16(head[3:])
	if head[0] != tableNode || cells < 4 {
		t.Fatalf("page %d is of kind %d with %d cells: this is no test of it", root, head[0], cells)
	}
	binary.BigEndian.PutUint16(head[3:], cells/2)
	if _, err := file.WriteAt(head, (root-1)*pageSize); err != nil {
		t.Fatal(err)
	}
}

// TestBusy: another program's lock is waited out.
func TestBusy(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "vault.db")
	s := openWith(t, Options{Path: path})
	mustUpdate(t, s, func(tx vault.Tx) error { _, err := tx.Create(faultKey, vault.Config{}); return err })
	other, err := sql.Open("sqlite", dsn(path, ""))
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	other.SetMaxOpenConns(1)
	if _, err := other.Exec("BEGIN IMMEDIATE"); err != nil {
		t.Fatal(err)
	}
	done := make(chan error)
	go func() { done <- s.Update(t.Context(), faultKey, putting("a", 1)) }()
	select {
	case err := <-done:
		t.Fatalf("answered under the lock: %v", err)
	case <-time.After(6 * time.Second): // longer than SQLite itself waits
	}
	wantIDs(t, s) // reads go on
	if _, err := other.Exec("COMMIT"); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
	wantIDs(t, s, "a")
}

// TestGoexit: a function that ends its goroutine (t.FailNow does) takes
// neither the writer nor its caller with it.
func TestGoexit(t *testing.T) {
	t.Parallel()
	s := faulty(t)
	func() {
		defer func() {
			if recover() == nil {
				t.Error("no panic in the caller")
			}
		}()
		s.Update(t.Context(), faultKey, func(tx vault.Tx) error {
			putting("lost", 1)(tx)
			runtime.Goexit()
			return nil
		})
	}()
	mustUpdate(t, s, putting("next", 1))
	wantIDs(t, s, "first", "next")
}

// TestCloseAfterFault: a store whose disk is full still closes, and the
// file opens again.
func TestCloseAfterFault(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "vault.db")
	s := openWith(t, Options{Path: path})
	mustUpdate(t, s, func(tx vault.Tx) error { _, err := tx.Create(faultKey, vault.Config{}); return err })
	pragma(t, s, "max_page_count = 1")
	wantStorageError(t, s.Update(t.Context(), faultKey, putting("a", 100_000)), "full")
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(path); err != nil {
		t.Error(err)
	}
	s = openWith(t, Options{Path: path})
	wantIDs(t, s)
}
