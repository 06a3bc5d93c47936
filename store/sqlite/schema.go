package sqlite

import (
	"context"
	"crypto/rand"
	"database/sql"
	"embed"
	"fmt"
	"io/fs"
	"os"

	"pepvault/vault"
)

// applicationID marks a database file as ours ("pepv").
const applicationID = 0x70657076

// Migration n brings a database from version n-1 to n. What has been released
// is never changed; testdata holds each version as it was frozen.
//
//go:embed migrations/*.sql
var migrations embed.FS

// schemaVersion is the version that this program writes.
const schemaVersion = 5

// overwrites is the first version whose programs overwrote what they deleted.
const overwrites = 4

// buries is the first version that has the table burial.
const buries = 5

func migration(version int) (string, error) {
	text, err := fs.ReadFile(migrations, fmt.Sprintf("migrations/%03d.sql", version))
	return string(text), err
}

// check looks at a database before it is used, on a connection of its own:
// the pages that this reads don't stay in a cache.
func check(ctx context.Context, path string) error {
	db, err := sql.Open("sqlite", dsn(path, "_busy_timeout=5000&_pragma=cache_size(-2000)"))
	if err != nil {
		return fmt.Errorf("database %s: %w", path, failure("open", err))
	}
	defer db.Close()
	db.SetMaxOpenConns(1)
	fresh, err := identify(ctx, db, path)
	if err != nil || fresh {
		return err
	}
	return checkIntegrity(ctx, db, path)
}

// identify says whether the database is empty, and refuses what is not ours
// or too new.
func identify(ctx context.Context, db *sql.DB, path string) (fresh bool, err error) {
	h, err := readHeader(ctx, db)
	switch {
	case err != nil:
		return false, fmt.Errorf("database %s: %w: change store.path or restore a backup", path, failure("open", err))
	case h.empty():
		return true, nil
	case h.application != applicationID:
		return false, fmt.Errorf("database %s: it belongs to another program: change store.path", path)
	case h.version > schemaVersion:
		return false, tooNew(path, h.version)
	}
	return false, nil
}

// header is what a database says of itself.
type header struct{ version, application, tables int }

func (h header) empty() bool { return h == header{} }

func readHeader(ctx context.Context, db *sql.DB) (h header, err error) {
	err = db.QueryRowContext(ctx, `SELECT
		(SELECT user_version FROM pragma_user_version),
		(SELECT application_id FROM pragma_application_id),
		(SELECT count(*) FROM sqlite_schema)`).Scan(&h.version, &h.application, &h.tables)
	return h, err
}

func tooNew(path string, version int) error {
	return fmt.Errorf("database %s: %w (schema %d, this one knows %d): install that version",
		path, vault.ErrNewerSchema, version, schemaVersion)
}

func checkIntegrity(ctx context.Context, db *sql.DB, path string) error {
	query := "PRAGMA integrity_check(1)"
	if info, err := os.Stat(path); err == nil && info.Size() > quickCheckAbove {
		query = "PRAGMA quick_check(1)"
	}
	var finding string
	if err := db.QueryRowContext(ctx, query).Scan(&finding); err != nil {
		return fmt.Errorf("database %s: %w: restore a backup", path, failure("check", err))
	}
	if finding != "ok" {
		return fmt.Errorf("database %s: %w: restore a backup", path,
			&storageError{doing: "check", text: "the database is damaged"})
	}
	return nil
}

// migrate brings the database of a store that is opened to schemaVersion.
func migrate(ctx context.Context, db *sql.DB, path string) error {
	var mode string
	if err := db.QueryRowContext(ctx, "PRAGMA journal_mode").Scan(&mode); err != nil {
		return fmt.Errorf("database %s: %w", path, failure("open", err))
	}
	if mode != "wal" {
		return fmt.Errorf("database %s: its file system can't do SQLite's WAL mode: use a local disk", path)
	}
	return upgrade(ctx, db, path)
}

// upgrade brings a database to schemaVersion, one version a transaction.
func upgrade(ctx context.Context, db *sql.DB, path string) error {
	var version int
	if err := db.QueryRowContext(ctx, "PRAGMA user_version").Scan(&version); err != nil {
		return fmt.Errorf("database %s: %w", path, failure("open", err))
	}
	before := version
	for version < schemaVersion {
		version++
		if err := migrateTo(ctx, db, version); err != nil {
			return fmt.Errorf("database %s: %w", path, failure(fmt.Sprintf("migrate to schema %d", version), err))
		}
	}
	if before == 0 || before >= overwrites {
		return nil
	}
	// What was deleted until now was not overwritten.
	if _, err := db.ExecContext(ctx, "VACUUM"); err != nil {
		return fmt.Errorf("database %s: %w", path, failure("compact it after the migration", err))
	}
	return nil
}

func migrateTo(ctx context.Context, db *sql.DB, version int) error {
	text, err := migration(version)
	if err != nil {
		return err
	}
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	if _, err := tx.ExecContext(ctx, text); err != nil {
		return err
	}
	if version == 1 {
		if err := found(ctx, tx); err != nil {
			return err
		}
	}
	// A PRAGMA takes no parameters.
	if _, err := tx.ExecContext(ctx, fmt.Sprintf("PRAGMA user_version = %d", version)); err != nil {
		return err
	}
	return tx.Commit()
}

// found writes what a new store is made with.
func found(ctx context.Context, tx *sql.Tx) error {
	store, key := make([]byte, 16), make([]byte, len(vault.CursorKey{}))
	rand.Read(store)
	rand.Read(key)
	if _, err := tx.ExecContext(ctx, fmt.Sprintf("PRAGMA application_id = %d", applicationID)); err != nil {
		return err
	}
	_, err := tx.ExecContext(ctx, "INSERT INTO meta (only, store, cursor_key) VALUES (1, ?, ?)", store, key)
	return err
}

// checkpoint moves the whole log into the database file and empties it.
func (s *Store) checkpoint() error {
	var busy, pages, moved int
	row := s.writer.sql.QueryRowContext(s.ctx, "PRAGMA wal_checkpoint(TRUNCATE)")
	if err := row.Scan(&busy, &pages, &moved); err != nil {
		return failure("checkpoint", err)
	}
	return nil
}
