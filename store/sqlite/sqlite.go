// Package sqlite keeps vaults in one SQLite database. It holds the schema and
// its migrations, the SQL, the order index and the commit loop, and no rules.
//
// One goroutine writes (commit.go); a few read-only connections read (view.go).
// Lock order: Store.turn before a cache's own lock; neither is held across a
// commit.
package sqlite

import (
	"context"
	"database/sql"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gofrs/flock"

	"pepvault/vault"
)

// readers is how many read-only connections there are.
const readers = 4

// DefaultIndexBytes is the bound of Options.IndexBytes if that is 0.
const DefaultIndexBytes = 32 << 20

// Options say what to open.
type Options struct {
	// Path names the database file; its folder must exist. Beside it lie the
	// lock file (Path + ".lock") and SQLite's own files while it is open.
	Path   string
	Logger *slog.Logger // required
	// IndexBytes bounds about how much memory the order indexes of the
	// recently used vaults take; 0 means DefaultIndexBytes. A sixteenth of it
	// more goes to the usage of accounts, and one to records read lately.
	IndexBytes int
	// Committed hears of each commit: how many transactions shared it, and how
	// long it took from its beginning until it was on disk. It is called in the
	// commit loop, so it does not block. nil: nobody listens.
	Committed func(transactions int, took time.Duration)
}

// Store implements [vault.Store].
type Store struct {
	ctx    context.Context // of the writer; never cancelled
	logger *slog.Logger
	lock   *flock.Flock
	key    vault.CursorKey
	run    vault.Run

	life   sync.RWMutex // guards closed
	closed bool
	active sync.WaitGroup // callers inside

	readDB  *sql.DB
	readers chan *conn // nil stands for one to be opened again

	writeDB *sql.DB
	writer  *conn // used by the loop alone; nil: to be opened again
	jobs    chan *job
	pauses  chan func() // to be called between two commits
	cleaner *cleaner
	stopped chan struct{} // closed when the loop has ended

	// turn orders the beginning of read transactions and the announcing and
	// publishing of commits; it guards seq and pending.
	turn    sync.RWMutex
	seq     sequence
	pending *changes // what the commit under way changes

	committed func(transactions int, took time.Duration) // never nil

	vaults   *cache[vault.Key, *index]
	accounts *cache[vault.Account, usage]
	recent   *cache[place, recentRecord]

	fault      atomic.Pointer[fault] // nil: the latest write worked
	mismatches atomic.Int64          // see mismatch; tests want 0
}

var _ vault.Store = (*Store)(nil)

// CursorKey implements vault.Store.
func (s *Store) CursorKey() vault.CursorKey { return s.key }

// Run implements vault.Store.
func (s *Store) Run() vault.Run { return s.run }
