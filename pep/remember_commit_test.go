package pep_test

import (
	"context"
	"errors"
	"sync"
	"testing"

	"pepvault/pep"
	"pepvault/vault"
)

// inOne is a store that commits an armed Update together with the next one about
// no vault, as a commit loop does with what waits.
type inOne struct {
	vault.Store
	armed   bool
	refused bool // both fail then
	behind  chan func(vault.Tx) error
}

var errRefused = errors.New("refused by the test")

func (s *inOne) Update(ctx context.Context, key vault.Key, fn func(vault.Tx) error) error {
	switch {
	case !s.armed:
		return s.Store.Update(ctx, key, fn)
	case key == vault.Key{}:
		s.behind <- fn
		return nil
	}
	return s.Store.Update(ctx, key, func(tx vault.Tx) error {
		if err := fn(tx); err != nil {
			return err
		}
		if err := (<-s.behind)(tx); err != nil || !s.refused {
			return err
		}
		return errRefused
	})
}

// What is stored of a resource behind its subscription, in the same commit,
// does not take that back.
func TestAcknowledgedSubscriptionsStayStored(t *testing.T) {
	t.Parallel()
	together := &inOne{behind: make(chan func(vault.Tx) error)}
	w := newWorld(t, func(o *pep.Options) { together.Store, o.Store = o.Store, together })
	w.must(laptop, publish("a"))
	w.here(phone)
	together.armed = true
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	var saving sync.WaitGroup
	saving.Go(func() { w.KeepRemembering(ended, func(err error) { t.Error(err) }) })
	w.must(phone, pep.Subscribe{Node: "notes", JID: phone})
	saving.Wait()
	stored := resources(t, w.store)
	if len(stored) != 1 || len(stored[0].Vaults) != 1 || stored[0].Vaults[0].Node != "notes" {
		t.Errorf("stored are %+v", stored)
	}
}

// A subscription that was refused in the end does not stay stored.
func TestRefusedSubscriptionsAreNotStored(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.must(laptop, publish("a"))
	w.here(phone)
	if _, err := w.ask(phone, pep.Subscribe{Node: "none", JID: phone}); err == nil {
		t.Fatal("a vault that is not there was subscribed")
	}
	w.remembering(func(err error) { t.Error(err) })()
	if stored := resources(t, w.store); len(stored) != 1 || len(stored[0].Vaults) != 0 {
		t.Errorf("stored are %+v", stored)
	}
}

// Nor does it bring back a resource of an account that was erased; of one that was
// not, after all, nothing is lost.
func TestErasedResourcesStayErased(t *testing.T) {
	t.Parallel()
	for name, refused := range map[string]bool{"erased": false, "not erased": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			together := &inOne{behind: make(chan func(vault.Tx) error)}
			w := newWorld(t, func(o *pep.Options) { together.Store, o.Store = o.Store, together })
			w.must(laptop, publish("a"))
			w.here(phone)
			together.armed, together.refused = true, refused
			ended, cancel := context.WithCancel(t.Context())
			cancel()
			var saving sync.WaitGroup
			saving.Go(func() { w.KeepRemembering(ended, func(err error) { t.Error(err) }) })
			if _, err := w.ask(laptop, pep.Erase{}); (err != nil) != refused {
				t.Errorf("erase: %v", err)
			}
			saving.Wait()
			together.armed = false
			want := 0
			if refused {
				want = 1
				w.KeepRemembering(ended, func(err error) { t.Error(err) })
			}
			if stored := resources(t, w.store); len(stored) != want {
				t.Errorf("stored are %+v, want %d", stored, want)
			}
		})
	}
}
