package pep

import (
	"context"
	"time"

	"pepvault/vault"
)

const (
	// expireEvery is how long what belongs to an expired batch may stay; for
	// devices the batch is gone at once.
	expireEvery = time.Minute
	// expiredAtOnce bounds how many batches one transaction drops: a save of a
	// device may have to wait for it.
	expiredAtOnce = 16
)

// Expire removes what belongs to expired batches, in small pieces.
func (e *Engine) Expire(ctx context.Context) error {
	for more := true; more; {
		if err := e.store.Update(ctx, vault.Key{}, func(tx vault.Tx) (err error) {
			more, err = tx.Expire(e.now(), expiredAtOnce)
			return err
		}); err != nil {
			return err
		}
	}
	return nil
}

// KeepExpiring calls Expire every minute until ctx ends. failed hears of what
// could not be removed; that is tried again.
func (e *Engine) KeepExpiring(ctx context.Context, failed func(error)) {
	tick := time.NewTicker(expireEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			if err := e.Expire(ctx); err != nil && ctx.Err() == nil {
				failed(err)
			}
		case <-ctx.Done():
			return
		}
	}
}
