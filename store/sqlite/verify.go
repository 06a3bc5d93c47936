package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/gofrs/flock"

	"pepvault/vault"
)

// companions are what SQLite may put beside a database; what they hold belongs
// to that file alone.
var companions = []string{"-wal", "-shm", "-journal"}

// Verify reads a whole database that nobody has open, a copy or a store at
// rest, and looks for damage: SQLite's own check, references, and what a store
// holds to beside that. It changes neither the file nor its folder. The error
// is one line for an operator; among them are vault.ErrDamaged, which names
// what is wrong, vault.ErrInUse and vault.ErrNewerSchema.
func Verify(ctx context.Context, path string) (vault.Contents, error) {
	var contents vault.Contents
	err := withStill(ctx, path, func(still string) (err error) {
		contents, err = inspect(ctx, still, path)
		return err
	})
	return contents, err
}

// withStill calls use with a file that holds all of a database and does not
// change: the database itself, or a copy with its log taken in.
func withStill(ctx context.Context, path string, use func(still string) error) error {
	file, err := existing(path)
	if err != nil {
		return err
	}
	unlock, err := shutOut(file, path)
	if err != nil {
		return err
	}
	defer unlock()
	before, err := os.Stat(file)
	if err != nil {
		return fmt.Errorf("database %s: %w", path, err)
	}
	still, forget, err := settledCopy(ctx, file, path)
	if err != nil {
		return err
	}
	defer forget()
	if err := use(still); err != nil {
		return err
	}
	after, err := os.Stat(file)
	if err != nil || after.Size() != before.Size() || !after.ModTime().Equal(before.ModTime()) {
		return fmt.Errorf("database %s: %w: it was changed meanwhile; make a backup and use that", path, vault.ErrInUse)
	}
	return nil
}

// existing returns the absolute path of a file itself.
func existing(path string) (string, error) {
	file, err := filepath.Abs(path)
	if err == nil {
		file, err = filepath.EvalSymlinks(file)
	}
	var info fs.FileInfo
	if err == nil {
		info, err = os.Stat(file)
	}
	var pathError *fs.PathError
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "", fmt.Errorf("database %s: there is no such file", path)
	case errors.As(err, &pathError):
		return "", fmt.Errorf("database %s: %w", path, pathError.Err)
	case err != nil:
		return "", fmt.Errorf("database %s: %w", path, err)
	case !info.Mode().IsRegular():
		return "", fmt.Errorf("database %s: not a regular file", path)
	}
	return file, nil
}

// shutOut takes the lock of a database if it has one, and makes none.
func shutOut(file, path string) (unlock func(), err error) {
	lock := flock.New(file+".lock", flock.SetFlag(os.O_RDONLY))
	locked, err := lock.TryLock()
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return func() {}, nil
	case err != nil:
		return nil, fmt.Errorf("database %s: can't lock it: %w", path, err)
	case !locked:
		lock.Close()
		return nil, fmt.Errorf("database %s: %w: make a backup and use that, or stop the service", path, vault.ErrInUse)
	}
	return func() { lock.Close() }, nil
}

// settledCopy returns the file itself if it holds everything, else a copy of
// it with what its log has.
func settledCopy(ctx context.Context, file, path string) (still string, forget func(), err error) {
	complete := true
	for _, suffix := range companions {
		if info, err := os.Stat(file + suffix); err == nil && info.Size() > 0 && suffix != "-shm" {
			complete = false
		}
	}
	if complete {
		return file, func() {}, nil
	}
	dir, err := os.MkdirTemp("", "pepvault-verify-")
	if err != nil {
		return "", nil, fmt.Errorf("database %s: can't copy it: %w", path, err)
	}
	forget = func() { os.RemoveAll(dir) }
	still = filepath.Join(dir, "copy")
	for _, suffix := range []string{"", "-wal", "-journal"} {
		if err := copyFile(file+suffix, still+suffix); err != nil && (suffix == "" || !errors.Is(err, fs.ErrNotExist)) {
			forget()
			return "", nil, fmt.Errorf("database %s: can't copy it: %w", path, err)
		}
	}
	if err := takeInLog(ctx, still); err != nil {
		forget()
		return "", nil, fmt.Errorf("database %s: %w", path, failure("read its log", err))
	}
	return still, forget, nil
}

// copyFile makes a new file with the content of another, on disk.
func copyFile(from, to string) error {
	source, err := os.Open(from)
	if err != nil {
		return err
	}
	defer source.Close()
	target, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(target, source)
	return errors.Join(err, target.Sync(), target.Close())
}

// errBusy says that somebody else has a database open.
var errBusy = errors.New("another program has it open")

// takeInLog moves what the log of a database holds into the file itself, after
// which the file alone is the database.
func takeInLog(ctx context.Context, file string) error {
	db, err := sql.Open("sqlite", dsn(file, "mode=rw&_busy_timeout=1000"))
	if err != nil {
		return err
	}
	defer db.Close()
	var busy, pages, moved int
	if err := db.QueryRowContext(ctx, "PRAGMA wal_checkpoint(TRUNCATE)").Scan(&busy, &pages, &moved); err != nil {
		return err
	}
	if busy != 0 {
		return errBusy
	}
	return db.Close()
}

// mostFindings bounds what is told of a damaged database.
const mostFindings = 5

// wrong says what is wrong with a database.
func wrong(path string, findings []string) error {
	more := ""
	if n := len(findings) - mostFindings; n > 0 {
		more = fmt.Sprintf("; and %d more", n)
		findings = findings[:mostFindings]
	}
	return fmt.Errorf("database %s: %w: %s%s", path, vault.ErrDamaged, strings.Join(findings, "; "), more)
}
