package sqlite

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"pepvault/vault"
)

// Restore makes the database at path that of the backup from, which it verifies
// first and does not change. vault.ErrInUse says that a process has the store;
// all errors are one line for an operator.
//
// Every vault gets a new epoch, with the one before in its lineage: a device
// that knows more than the backup has to be told so. An older schema is brought
// up to date. All else is as in the backup, known resources too.
//
// The database that was there keeps all that it has and is given the name kept
// ("" if there was none). Whatever happens on the way, path is the old database
// in full or the new one.
func Restore(ctx context.Context, from, path string) (contents vault.Contents, kept string, err error) {
	file, err := Locate(path)
	if err != nil {
		return contents, "", err
	}
	lock, err := takeLock(file)
	if err != nil {
		return contents, "", err
	}
	defer lock.Close()
	if same, err := existing(from); err == nil && same == file {
		return contents, "", fmt.Errorf("restore %s: it is the database of the store itself", from)
	}
	renewed := file + ".restoring" // under the lock it can only be left over
	discard(renewed)
	defer discard(renewed)
	err = withStill(ctx, from, func(still string) (err error) {
		contents, err = renew(ctx, still, from, renewed)
		return err
	})
	if err != nil {
		return vault.Contents{}, "", err
	}
	kept, err = exchange(ctx, renewed, file)
	if err != nil {
		return vault.Contents{}, "", err
	}
	return contents, kept, nil
}

// renew makes the database that is to be put in place.
func renew(ctx context.Context, still, from, renewed string) (vault.Contents, error) {
	contents, err := inspect(ctx, still, from)
	if err != nil {
		return contents, err
	}
	explain := func(err error) error { return fmt.Errorf("restore %s: %w", from, stopped(ctx, err)) }
	if err := makeFile(renewed); err != nil {
		return contents, err
	}
	if err := vacuumInto(ctx, dsn(still, "mode=ro&immutable=1"), from, renewed); err != nil {
		return contents, explain(err)
	}
	if err := dropWaste(ctx, renewed); err != nil {
		return contents, explain(err)
	}
	if err := beginEpochs(ctx, renewed); err != nil {
		return contents, explain(failure("begin new epochs", err))
	}
	if err := syncFile(renewed); err != nil {
		return contents, explain(err)
	}
	after, err := inspect(ctx, renewed, renewed)
	if err == nil && after != contents {
		err = fmt.Errorf("%w: the new database does not hold what the backup does", vault.ErrDamaged)
	}
	if err != nil {
		return contents, explain(err)
	}
	return contents, nil
}

// beginEpochs brings a database to the present schema and gives each of its
// vaults a new epoch, in one transaction.
func beginEpochs(ctx context.Context, path string) error {
	db, err := sql.Open("sqlite", dsn(path, "mode=rw&_journal_mode=DELETE&_synchronous=FULL&_txlock=immediate&_foreign_keys=1&_pragma=secure_delete(1)"))
	if err != nil {
		return err
	}
	defer db.Close()
	db.SetMaxOpenConns(1)
	if err := upgrade(ctx, db, path); err != nil {
		return err
	}
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	if _, err := tx.ExecContext(ctx, `INSERT INTO lineage (vault, epoch, fork)
		SELECT v.id, v.epoch, l.revision FROM vault v JOIN (`+latestRevisions+`) l ON l.vault = v.id`); err != nil {
		return err
	}
	if err := drawEpochs(ctx, tx); err != nil {
		return err
	}
	// What they rely on is of the epoch before.
	if _, err := tx.ExecContext(ctx, "DELETE FROM batch WHERE outcome = 0"); err != nil {
		return err
	}
	return errors.Join(tx.Commit(), db.Close())
}

func drawEpochs(ctx context.Context, tx *sql.Tx) error {
	rows, err := tx.QueryContext(ctx, "SELECT id FROM vault")
	if err != nil {
		return err
	}
	defer rows.Close()
	var ids []int64
	for rows.Next() {
		var id int64
		if err := rows.Scan(&id); err != nil {
			return err
		}
		ids = append(ids, id)
	}
	if err := rows.Err(); err != nil {
		return err
	}
	update, err := tx.PrepareContext(ctx, statementText[forkVault])
	if err != nil {
		return err
	}
	defer update.Close()
	for _, id := range ids {
		var epoch vault.Epoch
		rand.Read(epoch[:])
		if _, err := update.ExecContext(ctx, epoch[:], id); err != nil {
			return err
		}
	}
	return nil
}

// exchange puts a finished database in the place of the one at file, and keeps
// that one under another name. Until the last step the old one is complete at
// its place, after it the new one; what SQLite put beside the old one is gone
// before, since it would take that for the new one's.
func exchange(ctx context.Context, renewed, file string) (kept string, err error) {
	explain := func(err error) error { return fmt.Errorf("restore to %s: %w", file, stopped(ctx, err)) }
	owner := filepath.Dir(file)
	if _, err := os.Stat(file); err == nil {
		owner = file
		kept = file + ".before-restore-" + time.Now().UTC().Format("20060102T150405.000Z")
		if err := keep(ctx, file, kept); err != nil {
			return "", explain(err)
		}
	} else if !errors.Is(err, fs.ErrNotExist) {
		return "", explain(err)
	}
	for _, suffix := range companions {
		if err := os.Remove(file + suffix); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return "", explain(err)
		}
	}
	if err := adopt(renewed, owner); err != nil {
		return "", explain(err)
	}
	if err := os.Rename(renewed, file); err != nil {
		return "", explain(err)
	}
	if err := syncFolder(filepath.Dir(file)); err != nil {
		return "", explain(err)
	}
	return kept, nil
}

// keep gives the old database a second name under which it stays. It takes its
// log in first; one that is too damaged for that keeps its log beside it.
func keep(ctx context.Context, file, kept string) error {
	if err := refuseForeign(ctx, file); err != nil {
		return err
	}
	err := takeInLog(ctx, file)
	switch {
	case errors.Is(err, errBusy), isBusy(err):
		return fmt.Errorf("%w: end that program first", vault.ErrInUse)
	case ctx.Err() != nil:
		return err
	case err == nil:
		if info, err := os.Stat(file + "-wal"); err == nil && info.Size() > 0 {
			return fmt.Errorf("%w: end that program first", vault.ErrInUse)
		}
	}
	if err := secondName(file, kept); err != nil {
		return err
	}
	for _, suffix := range []string{"-wal", "-journal"} {
		if err := secondName(file+suffix, kept+suffix); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return syncFolder(filepath.Dir(file))
}

// refuseForeign keeps another program's database from being replaced.
func refuseForeign(ctx context.Context, file string) error {
	db, err := sql.Open("sqlite", dsn(file, "mode=rw&_busy_timeout=1000"))
	if err != nil {
		return err
	}
	defer db.Close()
	h, err := readHeader(ctx, db)
	if err == nil && !h.empty() && h.application != applicationID {
		return errors.New("it belongs to another program: change store.path")
	}
	return nil // what can't be read is put aside
}

// secondName gives a file another name beside its own; where the disk can't do
// that, the other is a copy.
func secondName(file, name string) error {
	err := os.Link(file, name)
	if err == nil || errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrExist) {
		return err
	}
	return copyFile(file, name)
}
