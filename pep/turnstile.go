package pep

import (
	"context"
	"sync"

	"pepvault/vault"
)

// turnstile keeps what is told of one vault in the order of the states that it
// shows. A write passes when it is announced. A read passes only if no write
// of that vault was under way while it read: else it could show a state that
// is not announced yet, or one that is older than what was.
//
// The mutex of the turnstile is taken before that of a gate, never after it.
type turnstile struct {
	mu    sync.Mutex
	gates map[vault.Key]*gate // of the vaults in use
}

// gate is that of one vault.
type gate struct {
	users  int // guarded by the turnstile
	mu     sync.Mutex
	writes int    // under way
	passed uint64 // writes that were announced
}

// enter takes the gate of a vault; leave gives it back.
func (t *turnstile) enter(key vault.Key) *gate {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.gates == nil {
		t.gates = map[vault.Key]*gate{}
	}
	g := t.gates[key]
	if g == nil {
		g = new(gate)
		t.gates[key] = g
	}
	g.users++
	return g
}

func (t *turnstile) leave(key vault.Key, g *gate) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if g.users--; g.users == 0 {
		delete(t.gates, key)
	}
}

// writing counts a write as under way, or no longer so.
func (g *gate) writing(n int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.writes += n
}

// commit announces a write, of one vault or of several. Only the commit loop
// takes more than one gate at a time, and it does one thing after the other.
func commit(gates []*gate, announce func()) {
	for _, g := range gates {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.passed++
	}
	announce()
}

// look tells whether no write is under way, and what read needs.
func (g *gate) look() (since uint64, quiet bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.passed, g.writes == 0
}

// read announces what was read since look, unless a write got in between.
func (g *gate) read(since uint64, announce func()) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.passed != since || g.writes > 0 {
		return false
	}
	announce()
	return true
}

// update is Store.Update for the engine's rules: fn announces its outcome with
// told, which the commit loop does in its turn.
func (e *Engine) update(ctx context.Context, key vault.Key, fn func(tx vault.Tx, told func(announce func())) error) error {
	return e.updateAll(ctx, []vault.Key{key}, fn)
}

// updateAll is update for a write to several vaults, each named once.
func (e *Engine) updateAll(ctx context.Context, keys []vault.Key, fn func(tx vault.Tx, told func(announce func())) error) error {
	gates := make([]*gate, len(keys))
	var about vault.Key
	for i, key := range keys {
		g := e.turns.enter(key)
		defer e.turns.leave(key, g)
		g.writing(1)
		defer g.writing(-1)
		gates[i], about = g, key
	}
	return e.store.Update(ctx, about, func(tx vault.Tx) error {
		return fn(tx, func(announce func()) {
			tx.AfterCommit(func() { commit(gates, announce) })
		})
	})
}

// readingTries is how often a read tries to pass beside the writes before it
// queues up among them.
const readingTries = 2

// ordered reads a state of the vault and announces the outcome in its turn.
// read may run several times.
func (e *Engine) ordered(ctx context.Context, key vault.Key, read func(vault.View) (Outcome, error), done func(Outcome)) error {
	g := e.turns.enter(key)
	defer e.turns.leave(key, g)
	for range readingTries {
		since, quiet := g.look()
		if !quiet {
			break
		}
		var out Outcome
		err := e.store.Glance(ctx, func(v vault.View) (err error) {
			out, err = read(v)
			return err
		})
		if err != nil {
			return err
		}
		if g.read(since, func() { done(out) }) {
			return nil
		}
	}
	return e.update(ctx, key, func(tx vault.Tx, told func(func())) error {
		out, err := read(tx)
		if err != nil {
			return err
		}
		told(func() { done(out) })
		return nil
	})
}
