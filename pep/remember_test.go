package pep_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"pepvault/pep"
	"pepvault/vault"
)

// remembering runs KeepRemembering until stop.
func (w *world) remembering(failed func(error)) (stop func()) {
	ctx, cancel := context.WithCancel(w.t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		w.KeepRemembering(ctx, failed)
	}()
	return func() { cancel(); <-done }
}

func TestKnownResourcesSurviveARestart(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	stop := w.remembering(func(err error) { t.Error(err) })
	w.must(laptop, publish("a"))
	w.must(laptop, pep.Publish{Node: "other", Items: []pep.Item{item("x", "y")}})
	for _, d := range []string{laptop, phone, "alice@localhost/gone"} {
		w.arrive(d)
	}
	w.must(phone, pep.Subscribe{Node: "notes", JID: phone})
	w.must(laptop, pep.Subscribe{Node: "other", JID: "alice@localhost"})
	w.Leave("alice@localhost", "gone")
	stop()

	w.Engine = pep.New(pep.Options{Store: w.store, Limits: limits, AnswerBytes: 100_000, InlineBytes: 10_000})
	equal(t, "known before Remember", len(w.Known()), 0)
	if err := w.Remember(t.Context()); err != nil {
		t.Fatal(err)
	}
	equal(t, "known", len(w.Known()), 2)
	equal(t, "by full JID", told(w.must(laptop, publish("a"))), []string{phone})
	equal(t, "by bare JID", len(told(w.must(laptop, pep.Publish{Node: "other", Items: []pep.Item{item("x", "y")}}))), 2)
}

func TestUnseenResources(t *testing.T) {
	t.Parallel()
	now := time.UnixMilli(1_700_000_000_000)
	w := newWorld(t, func(o *pep.Options) { o.Now = func() time.Time { return now } })
	w.arrive(laptop)
	w.arrive(phone)
	now = now.Add(time.Hour)
	w.Heard(device(phone))
	unseen := w.Unseen(now)
	if len(unseen) != 1 || unseen[0].Address != laptop {
		t.Errorf("unseen for an hour: %v", unseen)
	}
	w.Heard(device("alice@localhost/unknown"))
	equal(t, "known", len(w.Known()), 2)
}

// failing is a store that fails for a while.
type failing struct {
	vault.Store
	fails atomic.Bool
}

func (f *failing) Update(ctx context.Context, key vault.Key, fn func(vault.Tx) error) error {
	if f.fails.Load() {
		return vault.ErrStorage
	}
	return f.Store.Update(ctx, key, fn)
}

func (f *failing) View(ctx context.Context, fn func(vault.View) error) error {
	if f.fails.Load() {
		return vault.ErrStorage
	}
	return f.Store.View(ctx, fn)
}

func TestRememberingIsTriedAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	f := &failing{Store: w.store}
	f.fails.Store(true)
	w.Engine = pep.New(pep.Options{Store: f, Limits: limits, AnswerBytes: 100_000, InlineBytes: 10_000})
	w.arrive(phone)
	var failures []error
	w.remembering(func(err error) { failures = append(failures, err) })()
	if len(failures) != 1 || !errors.Is(failures[0], vault.ErrStorage) {
		t.Errorf("failures: %v", failures)
	}
	f.fails.Store(false)
	w.remembering(func(err error) { t.Error(err) })()
	stored := resources(t, f)
	if len(stored) != 1 || stored[0].Address != phone {
		t.Errorf("stored: %v", stored)
	}
}

func resources(t *testing.T, s vault.Store) (stored []vault.Resource) {
	t.Helper()
	err := s.View(t.Context(), func(v vault.View) (err error) {
		stored, err = v.Resources()
		return err
	})
	if err != nil {
		t.Error(err)
	}
	return stored
}

// One that was stored and comes and goes again is not known after a restart.
func TestGoneResourcesAreNotRemembered(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	restart := func() {
		t.Helper()
		w.remembering(func(err error) { t.Error(err) })()
		w.Engine = pep.New(pep.Options{Store: w.store, Limits: limits, AnswerBytes: 100_000, InlineBytes: 10_000})
		if err := w.Remember(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	for _, row := range []struct {
		name string
		do   func()
		want int
	}{
		{"came", func() { w.arrive(phone) }, 1},
		{"nothing", func() {}, 1},
		{"went, came and went", func() {
			w.Leave("alice@localhost", "phone")
			w.arrive(phone)
			w.Leave("alice@localhost", "phone")
		}, 0},
		{"came and went", func() { w.arrive(phone); w.Leave("alice@localhost", "phone") }, 0},
		{"came, went and came", func() {
			w.arrive(phone)
			w.Leave("alice@localhost", "phone")
			w.arrive(phone)
		}, 1},
	} {
		row.do()
		restart()
		equal(t, row.name, len(w.Known()), row.want)
	}
}
