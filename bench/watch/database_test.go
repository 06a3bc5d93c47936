package watch

import (
	"database/sql"
	"os"
	"path/filepath"
	"testing"

	_ "modernc.org/sqlite" // makes the database
)

func TestDatabaseBytes(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	for name, size := range map[string]int{"db": 100, "db-wal": 20, "db-shm": 3, "other": 1} {
		if err := os.WriteFile(filepath.Join(folder, name), make([]byte, size), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for path, want := range map[string][2]int64{filepath.Join(folder, "db"): {100, 20}, folder: {101, 20}, filepath.Join(folder, "none"): {}} {
		if data, log := DatabaseBytes(path); data != want[0] || log != want[1] {
			t.Errorf("%s: got %d and %d, want %v", filepath.Base(path), data, log, want)
		}
	}
}

// TestSizeByWriteAheadLog compares what is read of the log with what SQLite
// says, before and after the log was copied into the database, and when it is
// used from its start again.
func TestSizeByWriteAheadLog(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "db")
	db, err := sql.Open("sqlite", "file:"+path+"?_pragma=journal_mode(WAL)")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	db.SetMaxOpenConns(1)
	do := func(statement string) {
		t.Helper()
		if _, err := db.ExecContext(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	do("CREATE TABLE t (x BLOB)")
	for _, step := range []string{
		"INSERT INTO t VALUES (randomblob(300000))", "PRAGMA wal_checkpoint(RESTART)", "INSERT INTO t VALUES (randomblob(10000))",
		"PRAGMA wal_checkpoint(TRUNCATE)", "INSERT INTO t VALUES (randomblob(3000))",
	} {
		do(step)
		var pages, size int64
		if err := db.QueryRowContext(t.Context(), "SELECT page_count, page_size FROM pragma_page_count, pragma_page_size").Scan(&pages, &size); err != nil {
			t.Fatal(err)
		}
		data, log := DatabaseBytes(path)
		info, err := os.Stat(path + "-wal")
		if err != nil {
			t.Fatal(err)
		}
		if data != pages*size || log != info.Size() {
			t.Errorf("%s: got %d and %d, want %d and %d", step, data, log, pages*size, info.Size())
		}
	}
}
