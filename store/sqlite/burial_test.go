package sqlite

import (
	"context"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"reflect"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"pepvault/store/storetest"
	"pepvault/vault"
)

// burying is a store and its model, while vaults are purged and pruned and the
// clean-up is stopped between any two of its commits.
type burying struct {
	*testing.T
	random *rand.Rand
	store  *Store
	path   string
	model  *storetest.Model
	stop   context.CancelFunc // belongs to the commit loop
	slices int                // until stop is called
}

// open opens what is at path, and does not clean up by itself.
func (b *burying) open(path string) {
	b.path = path
	b.store = still(openWith(b.T, Options{Path: path, Committed: func(int, time.Duration) {
		if b.slices--; b.slices == 0 && b.stop != nil {
			b.stop()
		}
	}}))
	pragma(b.T, b.store, "synchronous = OFF")
	b.model.Run = b.store.Run()
}

// update does the same to the store and to the model.
func (b *burying) update(fn func(vault.Tx) error) {
	b.Helper()
	mustUpdate(b.T, b.store, fn)
	if err := b.model.Update(fn); err != nil {
		b.Fatal(err)
	}
}

// step changes some of many records.
func (b *burying) step() {
	b.Helper()
	const ids = 3 * burialNames
	first, n, choice := b.random.IntN(ids), 1+b.random.IntN(ids), b.random.IntN(8)
	keep := b.random.IntN(ids)
	b.update(func(tx vault.Tx) error {
		switch choice {
		case 0, 1:
			_, err := tx.Purge(faultKey)
			return err
		case 2, 3:
			return tx.Prune(faultKey, keep)
		case 4: // one after the other is forgotten
			state, err := tx.Vault(faultKey)
			if err != nil {
				return err
			}
			return tx.Prune(faultKey, max(state.Tombstones-1, 0))
		case 5:
			for i := range min(n, 20) {
				if _, err := tx.Retract(faultKey, fmt.Sprint("id ", (first+i)%ids)); err != nil && err != vault.ErrNoRecord {
					return err
				}
			}
			return nil
		default:
			for i := range n {
				record := vault.Record{ID: fmt.Sprint("id ", (first+i)%ids), Publisher: faultKey.Account,
					Published: time.UnixMilli(0).UTC(), Payload: vault.Payload{Form: vault.Native, Data: []byte{1}}}
				if _, err := tx.Put(faultKey, record); err != nil {
					return err
				}
			}
			return nil
		}
	})
}

// sweep cleans up for some commits.
func (b *burying) sweep(commits int) {
	b.Helper()
	ctx, cancel := context.WithCancel(b.Context())
	defer cancel()
	if err := b.store.submit(b.Context(), func(*tx) error { b.slices, b.stop = commits, cancel; return nil }); err != nil {
		b.Fatal(err)
	}
	if err := b.store.cleaner.sweep(ctx); err != nil && ctx.Err() == nil {
		b.Fatal(err)
	}
	if err := b.store.submit(b.Context(), func(*tx) error { b.stop = nil; return nil }); err != nil {
		b.Fatal(err)
	}
}

// check compares what is in memory and what the rows give with the model.
func (b *burying) check(after string) {
	b.Helper()
	for _, from := range []string{"memory", "rows"} {
		err := b.store.View(b.Context(), func(v vault.View) error {
			for what, call := range map[string]func(vault.View) (any, error){
				"vault": func(v vault.View) (any, error) { return v.Vault(faultKey) },
				"sizes": func(v vault.View) (any, error) { return v.Sizes(faultKey.Account) },
				"changes": func(v vault.View) (any, error) {
					return v.Changes(faultKey, 0, vault.PageLimit{Records: 1 << 20, Cost: 1 << 30})
				},
			} {
				got, err := call(v)
				want, wantErr := call(b.model)
				if err == nil && wantErr == nil && reflect.DeepEqual(want, got) {
					continue // what follows takes long
				}
				if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); err != nil || wantErr != nil || diff != "" {
					b.Fatalf("after %s, from %s: %s: %v, %v (-model +store):\n%s", after, from, what, err, wantErr, diff)
				}
			}
			return nil
		})
		if err != nil {
			b.Fatal(err)
		}
		b.store.vaults.drop(faultKey, b.store.seq)
	}
}

// kill goes on with what a kill would leave.
func (b *burying) kill() {
	b.Helper()
	copied := filepath.Join(b.TempDir(), "vault.db")
	for _, suffix := range []string{"", "-wal"} {
		if err := copyFile(b.path+suffix, copied+suffix); err != nil {
			b.Fatal(err)
		}
	}
	before := mustVerify(b.T, copied)
	to := filepath.Join(b.TempDir(), "backup.db")
	if backup, err := BackupOnline(b.Context(), b.path, to); err != nil || backup != before {
		b.Fatalf("a backup has %+v, %v, the database %+v", backup, err, before)
	}
	b.open(copied)
}

// Purges over purges, records that come back, tombstones that are forgotten in
// part, at any moment of the clean-up, over kills: what is seen is what the model
// says, and every copy passes Verify.
func TestBurialsRandomly(t *testing.T) {
	t.Parallel()
	seed := rand.Uint64()
	t.Log("seed", seed)
	b := &burying{T: t, random: rand.New(rand.NewPCG(seed, 2)), model: storetest.NewModel(0)}
	b.open(filepath.Join(t.TempDir(), "vault.db"))
	var made vault.Vault
	mustUpdate(t, b.store, func(tx vault.Tx) (err error) { made, err = tx.Create(faultKey, vault.Config{}); return err })
	if err := b.model.Update(func(tx vault.Tx) error { _, err := tx.Create(faultKey, vault.Config{}); return err }); err != nil {
		t.Fatal(err)
	}
	b.model.Adopt(made)
	for range burialSteps {
		b.step()
		b.check("a step")
		switch b.random.IntN(6) {
		case 0, 1, 2:
			b.sweep(1 + b.random.IntN(4))
			b.check("a part of a sweep")
		case 3:
			b.sweep(1 << 20)
			b.check("a sweep")
		case 4:
			b.kill()
			b.check("a kill")
		}
	}
	b.kill()
	mustClean(t, b.store)
	b.check("the clean-up")
	if err := b.store.Close(); err != nil {
		t.Fatal(err)
	}
	mustVerify(t, b.path)
}
