package pep

import (
	"context"
	"hash/maphash"
	"sync"

	"pepvault/vault"
)

// turnstile keeps the answers of one vault in the order of the states that
// they show. A commit passes it when it is announced; a reader passes only if
// no commit has done so since the reader began, else what it read is old news
// and it reads again.
//
// Vaults share gates, which costs a reader of another vault a second reading
// now and then.
type turnstile struct {
	seed  maphash.Seed
	once  sync.Once
	gates [256]gate
}

type gate struct {
	mu      sync.Mutex
	commits uint64
}

func (t *turnstile) gate(key vault.Key) *gate {
	t.once.Do(func() { t.seed = maphash.MakeSeed() })
	return &t.gates[maphash.Comparable(t.seed, key)%uint64(len(t.gates))]
}

// commit announces a commit.
func (g *gate) commit(announce func()) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.commits++
	announce()
}

func (g *gate) passed() uint64 {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.commits
}

// read announces what was read when passed gave since, unless a commit has
// passed in the meantime.
func (g *gate) read(since uint64, announce func()) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.commits != since {
		return false
	}
	announce()
	return true
}

// readingTries is how often a reader tries to pass beside the commits before
// it queues up among them.
const readingTries = 3

// ordered reads a state of the vault and announces the outcome in its turn.
// read may run several times.
func (e *Engine) ordered(ctx context.Context, key vault.Key, read func(vault.View) (Outcome, error), done func(Outcome)) error {
	gate := e.turns.gate(key)
	for range readingTries {
		since := gate.passed()
		var out Outcome
		err := e.store.View(ctx, func(v vault.View) (err error) {
			out, err = read(v)
			return err
		})
		if err != nil {
			return err
		}
		if gate.read(since, func() { done(out) }) {
			return nil
		}
	}
	return e.store.Update(ctx, key, func(tx vault.Tx) error {
		out, err := read(tx)
		if err != nil {
			return err
		}
		tx.AfterCommit(func() { gate.commit(func() { done(out) }) })
		return nil
	})
}
