package sqlite

import (
	"context"
	"errors"

	"pepvault/vault"
)

// view is a read transaction.
//
// The database alone makes it one consistent state; the cached indexes only
// save scans, so a cached one counts only if it surely is of this state. That
// is so because a transaction begins while no commit is announced or
// published (Store.turn): it sees all commits up to seq, perhaps also the one
// that was under way just then (doubt), and none after that.
type view struct {
	reading
	store *Store

	pinned bool
	seq    sequence
	doubt  *changes
	// scanned has the indexes that were built for this view alone.
	scanned map[vault.Key]*index

	// swift is tried first: there is no transaction, only cached indexes that
	// are valid as of commit seq, and rows that are read one statement at a
	// time and must be as the index says. Whatever does not fit (not cached,
	// or changed since) makes the view missed: it is done again as a
	// transaction.
	swift, missed bool
}

// errMissed ends what a swift view can't do.
var errMissed = errors.New("a swift view missed")

// View implements vault.Store.
func (s *Store) View(ctx context.Context, fn func(vault.View) error) error {
	if err := s.enter(); err != nil {
		return err
	}
	defer s.active.Done()
	return s.view(ctx, func(v *view) error { return fn(v) })
}

// Glance implements vault.Store.
func (s *Store) Glance(ctx context.Context, fn func(vault.View) error) error {
	if err := s.enter(); err != nil {
		return err
	}
	defer s.active.Done()
	v := &view{store: s, swift: true}
	err := v.run(ctx, func(v *view) error { return fn(v) })
	if !v.missed {
		return err
	}
	return s.view(ctx, func(v *view) error { return fn(v) })
}

// view runs fn in a read transaction.
func (s *Store) view(ctx context.Context, fn func(*view) error) error {
	return (&view{store: s}).run(ctx, fn)
}

func (v *view) run(ctx context.Context, fn func(*view) error) error {
	s := v.store
	v.ctx, v.source, v.recent = context.WithoutCancel(ctx), v, s.recent
	var err error
	if v.conn, err = s.takeReader(ctx); err != nil {
		return err
	}
	defer v.end()
	return fn(v)
}

// end gives the connection back.
func (v *view) end() {
	c := v.conn
	v.conn = nil // who kept v finds nothing to disturb
	if v.pinned && !v.swift {
		if _, err := c.exec(v.ctx, commit); err != nil {
			v.failed = failure("end a read", err)
		}
	}
	if v.failed != nil {
		c.close()
		c = nil
	}
	v.store.readers <- c
}

func (v *view) pin(query func() error) error {
	if v.pinned || v.swift {
		return query()
	}
	v.store.turn.RLock()
	defer v.store.turn.RUnlock()
	if _, err := v.conn.exec(v.ctx, begin); err != nil {
		return err
	}
	v.pinned = true
	v.seq, v.doubt = v.store.seq, v.store.pending
	return query() // this fixes the state that the transaction sees
}

// begun makes sure that the transaction sees a fixed state.
func (v *view) begun() error {
	if v.pinned {
		return v.failed
	}
	if v.swift {
		v.store.turn.RLock()
		defer v.store.turn.RUnlock()
		v.pinned, v.seq = true, v.store.seq
		return nil
	}
	var only int
	return v.row("read", touch, nil, &only)
}

func (v *view) find(key vault.Key) (*index, error) {
	if err := v.begun(); err != nil {
		return nil, err
	}
	if v.swift {
		if ix, found := v.store.vaults.get(key, v.seq); found {
			return ix, nil
		}
		return nil, v.miss()
	}
	if ix, found := v.scanned[key]; found {
		return ix, nil
	}
	certain := !v.doubt.touchesVault(key)
	if certain {
		if ix, found := v.store.vaults.get(key, v.seq); found {
			return ix, nil
		}
	}
	ix, err := v.scan(key)
	if err == nil && certain {
		v.store.vaults.offer(key, ix, v.seq)
	}
	return ix, err
}

func (v *view) scan(key vault.Key) (*index, error) {
	ix, err := v.load(key)
	if err != nil {
		return nil, err
	}
	if ix == nil {
		return nil, vault.ErrNoVault
	}
	if v.scanned == nil {
		v.scanned = map[vault.Key]*index{}
	}
	v.scanned[key] = ix
	return ix, nil
}

// miss ends a swift view.
func (v *view) miss() error {
	v.missed = true
	return errMissed
}

func (v *view) rebuild(key vault.Key) (*index, error) {
	if v.swift {
		return nil, v.miss()
	}
	v.store.mismatch(key)
	return v.scan(key)
}

func (v *view) account(account vault.Account) (usage, error) {
	if err := v.begun(); err != nil {
		return usage{}, err
	}
	if v.swift {
		if u, found := v.store.accounts.get(account, v.seq); found {
			return u, nil
		}
		return usage{}, v.miss()
	}
	certain := !v.doubt.touchesAccount(account)
	if certain {
		if u, found := v.store.accounts.get(account, v.seq); found {
			return u, nil
		}
	}
	u, err := v.loadAccount(account)
	if err == nil && certain {
		v.store.accounts.offer(account, u, v.seq)
	}
	return u, err
}

func (v *view) swiftly() bool { return v.swift }

func (v *view) guess(key vault.Key) (int64, bool) {
	ix, known := v.store.vaults.get(key, latest)
	if !known {
		return 0, false
	}
	return ix.id, true
}
