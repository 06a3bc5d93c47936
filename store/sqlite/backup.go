package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/gofrs/flock"

	"pepvault/vault"
)

// Backup copies the database at path into the new file to, and keeps others
// from opening it meanwhile; vault.ErrInUse says that a process has it. Its
// other errors are one line for an operator.
//
// The copy has every transaction that was on disk when Backup was called. It is
// one file without a log, mode 0600, written beside to, checked as Verify does,
// and given its name when it is on disk; a file that exists is never touched.
// After an error or the end of ctx nothing is left behind.
func Backup(ctx context.Context, path, to string) (vault.Contents, error) {
	file, err := existing(path)
	if err != nil {
		return vault.Contents{}, err
	}
	lock, err := takeLock(file)
	if err != nil {
		return vault.Contents{}, err
	}
	defer lock.Close()
	return backup(ctx, file, path, to)
}

// BackupOnline is Backup of a database that a running process has open, this
// one or another: that one goes on reading and writing.
func BackupOnline(ctx context.Context, path, to string) (vault.Contents, error) {
	file, err := existing(path)
	if err != nil {
		return vault.Contents{}, err
	}
	return backup(ctx, file, path, to)
}

func backup(ctx context.Context, file, path, to string) (contents vault.Contents, err error) {
	target, err := fresh(to)
	if err != nil {
		return contents, err
	}
	// The name ends at random: others may be at the same.
	partial, err := os.CreateTemp(filepath.Dir(target), partialPrefix(target)+"*")
	if err != nil {
		return contents, unwritable(to, err)
	}
	defer discard(partial.Name())
	if err := partial.Close(); err != nil {
		return contents, unwritable(to, err)
	}
	// Under its lock the file is in the making; without it is left over.
	lock := flock.New(partial.Name())
	if _, err := lock.TryLock(); err != nil {
		return contents, unwritable(to, err)
	}
	defer lock.Close()
	discardPartials(target)
	if err := flushed(partial.Name(), func() error {
		return vacuumInto(ctx, dsn(file, "mode=rw&_busy_timeout=5000&_pragma=cache_size(-2000)"), path, partial.Name())
	}); err != nil {
		return contents, fmt.Errorf("backup %s: %w", to, stopped(ctx, err))
	}
	if err := dropWaste(ctx, partial.Name()); err != nil {
		return contents, fmt.Errorf("backup %s: %w", to, stopped(ctx, err))
	}
	if contents, err = inspect(ctx, partial.Name(), to); err != nil {
		return vault.Contents{}, err
	}
	if err := publishFile(partial.Name(), target); err != nil {
		return vault.Contents{}, unwritable(to, err)
	}
	return contents, nil
}

// fresh returns the absolute path of a file that does not exist yet.
func fresh(to string) (string, error) {
	target, err := filepath.Abs(to)
	if err != nil {
		return "", unwritable(to, err)
	}
	for _, suffix := range append([]string{""}, companions...) {
		_, err := os.Lstat(target + suffix)
		switch {
		case err == nil:
			return "", fmt.Errorf("backup %s: %s exists already, and no file is ever overwritten: choose another name", to, target+suffix)
		case !errors.Is(err, fs.ErrNotExist):
			return "", unwritable(to, err)
		}
	}
	return target, nil
}

// discardPartials removes what backups under the same name left that were
// killed.
func discardPartials(target string) {
	// The name may hold what a pattern gives a meaning to, so it is compared.
	entries, err := os.ReadDir(filepath.Dir(target))
	if err != nil {
		return
	}
	for _, e := range entries {
		suffix, found := strings.CutPrefix(e.Name(), partialPrefix(target))
		if !found || suffix == "" || strings.Trim(suffix, "0123456789") != "" {
			continue
		}
		name := filepath.Join(filepath.Dir(target), e.Name())
		lock := flock.New(name, flock.SetFlag(os.O_RDONLY))
		if locked, err := lock.TryLock(); err == nil && locked {
			discard(name)
		}
		lock.Close()
	}
}

// partialPrefix is how the names begin that a backup has until it is complete.
func partialPrefix(target string) string { return "." + filepath.Base(target) + ".partial-" }

func unwritable(to string, err error) error {
	var path *fs.PathError
	var link *os.LinkError
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("backup %s: there is no folder %s: create it first", to, filepath.Dir(to))
	case errors.Is(err, fs.ErrExist):
		return fmt.Errorf("backup %s: it exists already, and no file is ever overwritten: choose another name", to)
	case errors.As(err, &path):
		err = path.Err
	case errors.As(err, &link):
		err = link.Err
	}
	return fmt.Errorf("backup %s: can't write it: %w", to, err)
}

// vacuumInto writes the database behind a DSN into an empty file, as one
// transaction sees it, and waits until that is on disk.
func vacuumInto(ctx context.Context, source, path, target string) error {
	db, err := sql.Open("sqlite", source)
	if err != nil {
		return failure("copy", err)
	}
	defer db.Close()
	db.SetMaxOpenConns(1)
	if isFresh, err := identify(ctx, db, path); err != nil {
		return err
	} else if isFresh {
		return fmt.Errorf("database %s: the file is empty, there is no store in it", path)
	}
	if _, err := db.ExecContext(ctx, "VACUUM INTO ?", target); err != nil {
		return failure("copy", err)
	}
	return syncFile(target)
}

// dropWaste removes from a file that nobody else has open what was deleted
// before it was copied.
func dropWaste(ctx context.Context, file string) error {
	const doing = "clean up the copy"
	db, err := sql.Open("sqlite", dsn(file, "mode=rw&_journal_mode=DELETE&_synchronous=FULL&_foreign_keys=1&_pragma=secure_delete(1)"))
	if err != nil {
		return failure(doing, err)
	}
	defer db.Close()
	db.SetMaxOpenConns(1)
	h, err := readHeader(ctx, db)
	if err != nil || h.version < overwrites {
		return failure(doing, err)
	}
	var waste int
	if err := db.QueryRowContext(ctx, countWaste).Scan(&waste); err != nil || waste == 0 {
		return failure(doing, err)
	}
	var steps []string
	if h.version >= buries {
		steps = []string{
			`UPDATE vault SET burials = burials - (
				SELECT count(*) FROM burial b WHERE b.vault = vault.id AND b.last <= pruned) WHERE waste = 1`,
			"DELETE FROM burial WHERE EXISTS (SELECT 1 FROM vault v WHERE v.id = burial.vault AND v.waste = 1 AND burial.last <= v.pruned)",
			`UPDATE burial SET first = v.pruned + 1, items = (
				SELECT json_group_array(value ORDER BY key) FROM json_each(items) WHERE first + key > v.pruned)
				FROM vault v WHERE v.id = burial.vault AND v.waste = 1 AND burial.first <= v.pruned`,
		}
	}
	steps = append(steps,
		"DELETE FROM vault WHERE account = ''", // with all that is in it
		"DELETE FROM record WHERE EXISTS (SELECT 1 FROM vault v WHERE v.id = record.vault AND v.waste = 1 AND record.revision <= v.purged)",
		"DELETE FROM tombstone WHERE EXISTS (SELECT 1 FROM vault v WHERE v.id = tombstone.vault AND v.waste = 1 AND tombstone.revision <= v.pruned)",
		"DELETE FROM staged WHERE batch IN (SELECT id FROM batch WHERE waste = 1)",
		"DELETE FROM batch WHERE account = ''",
		"UPDATE vault SET waste = 0 WHERE waste = 1",
		"UPDATE batch SET waste = 0 WHERE waste = 1",
		"VACUUM",
	)
	for _, statement := range steps {
		if _, err := db.ExecContext(ctx, statement); err != nil {
			return failure(doing, err)
		}
	}
	if err := db.Close(); err != nil {
		return failure(doing, err)
	}
	return failure(doing, syncFile(file))
}

// stopped gives the end of ctx as what it is.
func stopped(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return err
}

func syncFile(path string) error {
	file, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	return errors.Join(file.Sync(), file.Close())
}

// publishFile gives a finished file its name, unless there is one already. Where the
// disk can't give a file a second name, it is reserved first.
func publishFile(partial, target string) error {
	err := os.Link(partial, target)
	if err != nil && !errors.Is(err, fs.ErrExist) {
		var reserved *os.File
		if reserved, err = os.OpenFile(target, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600); err != nil {
			return err
		}
		reserved.Close()
		if err = os.Rename(partial, target); err != nil {
			os.Remove(target)
		}
	}
	if err != nil {
		return err
	}
	return syncFolder(filepath.Dir(target))
}

// syncFolder has the names in a folder on disk. Not every system can do that.
func syncFolder(dir string) error {
	folder, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer folder.Close()
	if err := folder.Sync(); err != nil && !errors.Is(err, errors.ErrUnsupported) && !errors.Is(err, fs.ErrInvalid) {
		return err
	}
	return nil
}

// discard removes an unfinished database.
func discard(path string) {
	for _, suffix := range append([]string{""}, companions...) {
		os.Remove(path + suffix)
	}
}
