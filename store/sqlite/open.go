package sqlite

import (
	"context"
	"crypto/rand"
	"database/sql"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"time"

	"github.com/gofrs/flock"

	"pepvault/vault"
)

// quickCheckAbove is the size from which the check at start skips the indexes.
const quickCheckAbove = 1 << 30

// Open opens a database, or makes a new one, and locks it against other
// processes. Its errors are for an operator: one line that names the file.
// Among them are vault.ErrInUse, vault.ErrNewerSchema and vault.ErrStorage.
func Open(ctx context.Context, o Options) (_ *Store, err error) {
	path, err := Locate(o.Path)
	if err != nil {
		return nil, err
	}
	lock, err := takeLock(path)
	if err != nil {
		return nil, err
	}
	s := &Store{
		ctx:      context.WithoutCancel(ctx),
		logger:   o.Logger,
		lock:     lock,
		run:      newRun(),
		readers:  make(chan *conn, readers),
		jobs:     make(chan *job, maxWaiting),
		pauses:   make(chan func()),
		stopped:  make(chan struct{}),
		vaults:   newCache[vault.Key, *index](indexBytes(o)),
		accounts: newCache[vault.Account, usage](indexBytes(o) / 16),
		recent:   newCache[place, recentRecord](indexBytes(o) / 16),

		committed: o.Committed,
	}
	if s.committed == nil {
		s.committed = func(int, time.Duration) {}
	}
	if err := s.open(ctx, path); err != nil {
		s.giveUp()
		return nil, err
	}
	go s.loop()
	s.firstWrite(ctx)
	s.cleaner.start(s.ctx)
	return s, nil
}

func indexBytes(o Options) int {
	if o.IndexBytes == 0 {
		return DefaultIndexBytes
	}
	return o.IndexBytes
}

// open does the work of Open under the lock.
func (s *Store) open(ctx context.Context, path string) error {
	if err := makeFile(path); err != nil {
		return err
	}
	if err := check(ctx, path); err != nil {
		return err
	}
	explain := func(err error) error {
		return fmt.Errorf("database %s: %w", path, failure("open", err))
	}
	var err error
	if s.writeDB, err = sql.Open("sqlite", writerDSN(path)); err != nil {
		return explain(err)
	}
	s.writeDB.SetMaxOpenConns(1)
	if err := migrate(ctx, s.writeDB, path); err != nil {
		return err
	}
	if s.writer, err = connect(ctx, s.writeDB, allStatements); err != nil {
		return explain(err)
	}
	if s.readDB, err = sql.Open("sqlite", readerDSN(path)); err != nil {
		return explain(err)
	}
	s.readDB.SetMaxOpenConns(readers)
	s.readDB.SetMaxIdleConns(readers)
	for range readers {
		c, err := connect(ctx, s.readDB, readStatements)
		if err != nil {
			return explain(err)
		}
		s.readers <- c
	}
	var key []byte
	var tidy bool
	row := s.writer.sql.QueryRowContext(ctx, "SELECT cursor_key, tidy FROM meta")
	if err := row.Scan(&key, &tidy); err != nil {
		return explain(err)
	}
	if s.cleaner, err = newCleaner(ctx, s, path, tidy); err != nil {
		return explain(err)
	}
	s.key = vault.CursorKey(key)
	return nil
}

// giveUp undoes an Open that failed.
func (s *Store) giveUp() {
	for len(s.readers) > 0 {
		(<-s.readers).close()
	}
	if s.cleaner != nil {
		s.cleaner.close()
	}
	if s.readDB != nil {
		s.readDB.Close()
	}
	if s.writer != nil {
		s.writer.close()
	}
	if s.writeDB != nil {
		s.writeDB.Close()
	}
	s.lock.Close()
}

// firstWrite lets Health know from the start whether the file can be written;
// a store that can't is still good for reading.
func (s *Store) firstWrite(ctx context.Context) {
	s.submit(context.WithoutCancel(ctx), (*tx).tryWrite)
}

func newRun() vault.Run {
	var token [8]byte
	rand.Read(token[:])
	return vault.Run(binary.BigEndian.Uint64(token[:]))
}

// Locate returns the absolute path of the database file itself, so that two names of
// one database have one lock.
func Locate(path string) (string, error) {
	if path == "" {
		return "", errors.New("the path of the database is empty: set store.path")
	}
	path, err := filepath.Abs(path)
	if err != nil {
		return "", fmt.Errorf("database %s: %w", path, err)
	}
	folder, err := filepath.EvalSymlinks(filepath.Dir(path))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "", fmt.Errorf("database %s: there is no folder %s: create it or change store.path", path, filepath.Dir(path))
	case err != nil:
		return "", fmt.Errorf("database %s: %w", path, err)
	}
	file := filepath.Join(folder, filepath.Base(path))
	if target, err := filepath.EvalSymlinks(file); err == nil {
		file = target
	}
	info, err := os.Stat(file)
	if err == nil && !info.Mode().IsRegular() {
		return "", fmt.Errorf("database %s: not a regular file: change store.path", path)
	}
	return file, nil
}

func takeLock(path string) (*flock.Flock, error) {
	lock := flock.New(path+".lock", flock.SetPermissions(0o600))
	locked, err := lock.TryLock()
	if errors.Is(err, fs.ErrPermission) {
		lock.Close()
		return nil, fmt.Errorf("database %s: no right to use it: run this as the user to whom the folder belongs", path)
	}
	if err != nil {
		lock.Close()
		return nil, fmt.Errorf("database %s: can't lock it: %w: make the folder writable", path, err)
	}
	if !locked {
		lock.Close()
		return nil, fmt.Errorf("database %s: %w: stop that one or change store.path", path, vault.ErrInUse)
	}
	if err := adopt(lock.Path(), filepath.Dir(path)); err != nil {
		lock.Close()
		return nil, fmt.Errorf("database %s: %w", path, err)
	}
	return lock, nil
}

// makeFile creates a missing file with the mode that SQLite's own files copy.
func makeFile(path string) error {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("database %s: can't create it: %w: make the folder writable", path, err)
	}
	return file.Close()
}

func dsn(path, options string) string {
	return (&url.URL{Scheme: "file", Path: path, RawQuery: options}).String()
}

func writerDSN(path string) string {
	return dsn(path, "_journal_mode=WAL&_synchronous=FULL&_txlock=immediate&_busy_timeout=5000&_foreign_keys=1"+
		"&_pragma=cache_size(-4000)&_pragma=journal_size_limit(67108864)&_pragma=secure_delete(1)"+
		// The cleaner moves the log; what a statement may have to undo is no
		// business of the folder for temporary files.
		"&_pragma=wal_autocheckpoint(0)&_pragma=temp_store(2)")
}

// cleanerDSN is for what moves the log. The writer may wait for it, so it waits
// for readers no longer than that.
func cleanerDSN(path string) string {
	return dsn(path, "mode=rw&_busy_timeout=10&_synchronous=FULL&_pragma=cache_size(-500)&_pragma=wal_autocheckpoint(0)")
}

func readerDSN(path string) string {
	return dsn(path, "mode=ro&_busy_timeout=5000&_query_only=1&_pragma=cache_size(-1000)")
}
