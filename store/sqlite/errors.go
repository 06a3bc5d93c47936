package sqlite

import (
	"errors"
	"fmt"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"pepvault/vault"
)

// storageError is a failure of the store: [vault.ErrStorage] with a plain text
// that holds neither SQL nor anything that was stored. The cause stays in the
// chain for errors.As, but is not printed.
type storageError struct {
	doing string
	text  string
	cause error
}

func (e *storageError) Error() string {
	return fmt.Sprintf("%v: %s: %s", vault.ErrStorage, e.doing, e.text)
}

func (e *storageError) Unwrap() []error { return []error{vault.ErrStorage, e.cause} }

// failure wraps an error of the database as a storageError, once.
func failure(doing string, err error) error {
	var already *storageError
	if err == nil || errors.As(err, &already) {
		return err
	}
	return &storageError{doing: doing, text: describe(err), cause: err}
}

// primaryCode returns SQLite's primary result code, or 0.
func primaryCode(err error) int {
	var fault *sqlite.Error
	if errors.As(err, &fault) {
		return fault.Code() & 0xff
	}
	return 0
}

// describe says what happened in words for an operator.
func describe(err error) string {
	var fault *sqlite.Error
	if !errors.As(err, &fault) {
		return "the connection to the database is broken"
	}
	switch fault.Code() & 0xff {
	case sqlite3.SQLITE_FULL:
		return "the disk is full"
	case sqlite3.SQLITE_READONLY:
		return "the database is read-only"
	case sqlite3.SQLITE_IOERR:
		return fmt.Sprintf("the disk failed (I/O error, code %d)", fault.Code())
	case sqlite3.SQLITE_CORRUPT:
		return "the database is damaged"
	case sqlite3.SQLITE_NOTADB:
		return "the file is not a database"
	case sqlite3.SQLITE_CANTOPEN:
		return "the database file can't be opened"
	case sqlite3.SQLITE_PERM, sqlite3.SQLITE_AUTH:
		return "access to the database file is denied"
	case sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_PROTOCOL:
		return "another program keeps the database locked"
	case sqlite3.SQLITE_NOMEM:
		return "out of memory"
	case sqlite3.SQLITE_TOOBIG:
		return "a value is too big for the database"
	default:
		return fmt.Sprintf("unexpected database error, code %d", fault.Code())
	}
}

func isBusy(err error) bool { return primaryCode(err) == sqlite3.SQLITE_BUSY }
