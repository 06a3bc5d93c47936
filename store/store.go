// Package store opens the store that the configuration names.
package store

import (
	"context"
	"fmt"
	"log/slog"

	"pepvault/store/sqlite"
	"pepvault/vault"
)

// Options say which store to open.
type Options struct {
	Driver string // "sqlite"
	Path   string // of the database file
	Logger *slog.Logger
}

// Open opens a store, or makes a new one. Its errors are one line for an
// operator; for those to compare see [sqlite.Open].
func Open(ctx context.Context, o Options) (vault.Store, error) {
	switch o.Driver {
	case "sqlite":
		return openSQLite(ctx, o)
	case "postgres":
		return nil, fmt.Errorf("store.driver %q is not built yet: use \"sqlite\"", o.Driver)
	default:
		return nil, fmt.Errorf("store.driver %q is unknown: there is \"sqlite\"", o.Driver)
	}
}

func openSQLite(ctx context.Context, o Options) (vault.Store, error) {
	s, err := sqlite.Open(ctx, sqlite.Options{Path: o.Path, Logger: o.Logger})
	if err != nil {
		return nil, err // not a nil *sqlite.Store in an interface
	}
	return s, nil
}
