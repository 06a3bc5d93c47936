// Package store opens the store that the configuration names.
package store

import (
	"context"
	"log/slog"
	"time"

	"pepvault/store/sqlite"
	"pepvault/vault"
)

// Options say which store to open.
type Options struct {
	Driver string // "sqlite"
	Path   string // of the database file
	Logger *slog.Logger
	// Committed hears of each commit: how many transactions shared it, and how
	// long it took from its beginning until it was on disk. It must not block.
	// nil: nobody listens.
	Committed func(transactions int, took time.Duration)
}

// Open opens a store, or makes a new one. Its errors are one line for an
// operator; for those to compare see [sqlite.Open].
func Open(ctx context.Context, o Options) (vault.Store, error) {
	if err := o.known(); err != nil {
		return nil, err
	}
	s, err := sqlite.Open(ctx, sqlite.Options{Path: o.Path, Logger: o.Logger, Committed: o.Committed})
	if err != nil {
		return nil, err // not a nil *sqlite.Store in an interface
	}
	return s, nil
}
