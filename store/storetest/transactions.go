package storetest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"pepvault/vault"
)

// testOwnWrites reads in a transaction what it has written so far.
func testOwnWrites(f *fixture) {
	f.update(func(tx vault.Tx) error {
		made, err := tx.Create(notes, vault.Config{Title: "t"})
		if err != nil {
			return err
		}
		got, err := tx.Vault(notes)
		if err != nil {
			return err
		}
		f.equal(got, made)
		for _, id := range []string{"a", "b", "c"} {
			if _, err := tx.Put(notes, record(id, "x")); err != nil {
				return err
			}
		}
		if _, err := tx.Retract(notes, "b"); err != nil {
			return err
		}
		if err := tx.Subscribe(notes, vault.Subscription{Account: bob}); err != nil {
			return err
		}
		a, c := numbered(2, record("a", "x")), numbered(4, record("c", "x"))
		page, err := tx.Changes(notes, 0, unlimited)
		f.equal(page, vault.Page{Changes: []vault.Change{live(a), live(c), gone(5, "b")}})
		if err != nil {
			return err
		}
		records, err := tx.Records(notes, []string{"c", "b", "a"})
		f.equal(records, []vault.Record{c, a})
		if err != nil {
			return err
		}
		usage, err := tx.Usage(alice)
		f.equal(usage, vault.Usage{Vaults: 1, Records: 2, Bytes: 2})
		if err != nil {
			return err
		}
		if err := tx.Affiliate(notes, vault.Affiliated{Account: carol, Affiliation: vault.Member}); err != nil {
			return err
		}
		affiliated, err := tx.Affiliations(notes)
		f.equal(affiliated, []vault.Affiliated{{Account: carol, Affiliation: vault.Member}})
		if err != nil {
			return err
		}
		subscribers, err := tx.Subscriptions(notes)
		f.equal(subscribers, []vault.Subscription{{Account: bob}})
		if err != nil {
			return err
		}
		vaults, err := tx.Vaults(alice)
		f.equal(len(vaults), 1)
		return err
	})
}

// everything is what a View shows of two accounts.
func everything(v vault.View) (all []any, err error) {
	for _, account := range []vault.Account{alice, bob} {
		usage, err := v.Usage(account)
		if err != nil {
			return nil, err
		}
		vaults, err := v.Vaults(account)
		if err != nil {
			return nil, err
		}
		all = append(all, usage, vaults)
		for _, state := range vaults {
			page, err := v.Changes(state.Key, 0, unlimited)
			if err != nil {
				return nil, err
			}
			subscribers, err := v.Subscriptions(state.Key)
			if err != nil {
				return nil, err
			}
			affiliated, err := v.Affiliations(state.Key)
			if err != nil {
				return nil, err
			}
			all = append(all, page, subscribers, affiliated)
		}
	}
	resources, err := v.Resources()
	if err != nil {
		return nil, err
	}
	capabilities, err := v.Capabilities()
	return append(all, resources, capabilities), err
}

// changeEverything uses every way to change the store.
func changeEverything(tx vault.Tx) error {
	_, err1 := tx.Put(notes, record("a", "changed"))
	_, err2 := tx.Put(notes, record("new", "new"))
	_, err3 := tx.Retract(notes, "b")
	err4 := tx.Prune(notes, 0)
	err5 := tx.Subscribe(notes, vault.Subscription{Account: alice})
	_, err6 := tx.Unsubscribe(notes, vault.Subscription{Account: bob})
	_, err7 := tx.Configure(notes, vault.Config{Title: "changed"})
	err8 := tx.Delete(tasks)
	_, err9 := tx.Create(vault.Key{Account: bob, Node: "new"}, vault.Config{})
	err10 := tx.Affiliate(notes, vault.Affiliated{Account: carol, Affiliation: vault.Publisher})
	_, err11 := tx.Withdraw(bob)
	_, err12 := tx.Purge(notes)
	err13 := tx.KeepResource(vault.Resource{Account: bob, Name: "tablet", Seen: at, Vaults: []vault.Key{notes}})
	err14 := tx.DropResource(alice, "phone")
	err15 := tx.KeepCapabilities(vault.Capabilities{Hash: "sha-1:BBBB", Used: at})
	err16 := tx.DropCapabilities("sha-1:AAAA")
	return errors.Join(err1, err2, err3, err4, err5, err6, err7, err8, err9, err10, err11, err12, err13, err14, err15, err16)
}

func (f *fixture) fill() {
	f.create(notes)
	f.create(tasks)
	for _, id := range []string{"a", "b", "c", "d"} {
		f.put(notes, record(id, id))
		f.put(tasks, record(id, id))
	}
	f.retract(notes, "d")
	f.subscribe(notes, bob)
	f.affiliate(notes, bob, vault.Member)
	f.affiliate(notes, carol, vault.Member)
	f.update(func(tx vault.Tx) error {
		return errors.Join(
			tx.KeepResource(vault.Resource{Account: alice, Name: "phone", Seen: at, Owners: []vault.Account{alice}}),
			tx.KeepCapabilities(vault.Capabilities{Hash: "sha-1:AAAA", Nodes: []string{"notes"}, Used: at}))
	})
}

func testError(f *fixture) {
	f.fill()
	before := look(f, everything)
	mine := errors.New("mine")
	err := f.store.Update(f.Context(), notes, func(tx vault.Tx) error {
		tx.AfterCommit(func() { f.Error("AfterCommit of a transaction that failed") })
		if err := changeEverything(tx); err != nil {
			f.Error(err)
		}
		return mine
	})
	if err != mine {
		f.Errorf("got %v, want the very error", err)
	}
	f.equal(look(f, everything), before)
	f.reopen()
	f.equal(look(f, everything), before)
	f.update(changeEverything)
}

func testPanic(f *fixture) {
	f.fill()
	before := look(f, everything)
	mine := errors.New("my value")
	func() {
		defer func() {
			value := recover()
			err, _ := value.(error)
			if !errors.Is(err, mine) || !strings.Contains(fmt.Sprint(value), "testPanic") {
				f.Errorf("recovered %v, want my value and where it came from", value)
			}
		}()
		f.store.Update(f.Context(), notes, func(tx vault.Tx) error {
			tx.AfterCommit(func() { f.Error("AfterCommit of a transaction that panicked") })
			changeEverything(tx)
			panic(mine)
		})
		f.Error("the panic did not reach the caller")
	}()
	f.equal(look(f, everything), before)
	func() {
		defer func() { recover() }()
		f.store.View(f.Context(), func(v vault.View) error {
			v.Vault(notes)
			panic("in a view")
		})
	}()
	for range 20 { // no connection is lost to it
		f.equal(look(f, everything), before)
	}
	f.update(changeEverything)
}

func testAfterCommit(f *fixture) {
	f.create(notes)
	var calls []string
	f.update(func(tx vault.Tx) error {
		calls = nil // the function may run again
		tx.AfterCommit(func() { calls = append(calls, "first") })
		_, err := tx.Put(notes, record("a", "1"))
		tx.AfterCommit(func() { calls = append(calls, "second") })
		return err
	})
	f.equal(calls, []string{"first", "second"})
	f.update(func(tx vault.Tx) error { // one that changes nothing has them too
		tx.AfterCommit(func() { calls = append(calls, "third") })
		return nil
	})
	f.equal(calls, []string{"first", "second", "third"})
}

func testContext(f *fixture) {
	f.create(notes)
	ctx, cancel := context.WithCancel(f.Context())
	cancel()
	err := f.store.Update(ctx, notes, func(tx vault.Tx) error {
		_, err := tx.Put(notes, record("a", "1"))
		return err
	})
	f.wantErr(err, context.Canceled)
	f.wantErr(f.store.View(ctx, func(vault.View) error { return nil }), context.Canceled)

	// What has begun is carried out.
	ctx, cancel = context.WithCancel(f.Context())
	defer cancel()
	err = f.store.Update(ctx, notes, func(tx vault.Tx) error {
		cancel()
		_, err := tx.Put(notes, record("b", "1"))
		return err
	})
	if err != nil {
		f.Error(err)
	}
	f.equal(f.changes(notes, 0, unlimited).Changes, []vault.Change{live(numbered(2, record("b", "1")))})
}

func testClosed(f *fixture) {
	f.create(notes)
	if err := f.store.Health(f.Context()); err != nil {
		f.Error("health:", err)
	}
	if err := f.store.Close(); err != nil {
		f.Error("close:", err)
	}
	f.wantErr(f.store.Close(), vault.ErrClosed)
	f.wantErr(f.store.Health(f.Context()), vault.ErrClosed)
	f.wantErr(f.store.View(f.Context(), func(vault.View) error { return nil }), vault.ErrClosed)
	f.wantErr(f.store.Update(f.Context(), notes, func(vault.Tx) error { return nil }), vault.ErrClosed)
}

// testCloseWaits closes a store in the middle of work: each transaction is
// either refused or kept.
func testCloseWaits(f *fixture) {
	f.create(notes)
	var done sync.WaitGroup
	var mu sync.Mutex
	kept := []string{}
	started := make(chan struct{}, 64)
	for i := range 16 {
		done.Go(func() {
			for n := 0; ; n++ {
				id := fmt.Sprint(i, "-", n)
				err := f.store.Update(f.Context(), notes, func(tx vault.Tx) error {
					_, err := tx.Put(notes, record(id, "x"))
					return err
				})
				if errors.Is(err, vault.ErrClosed) {
					return
				}
				if err != nil {
					f.Error(err)
					return
				}
				mu.Lock()
				kept = append(kept, id)
				mu.Unlock()
				select {
				case started <- struct{}{}:
				default:
				}
			}
		})
	}
	for range cap(started) {
		<-started
	}
	if err := f.store.Close(); err != nil {
		f.Error("close:", err)
	}
	done.Wait()
	f.open()
	var there []string
	for _, c := range f.changes(notes, 0, unlimited).Changes {
		there = append(there, c.ID)
	}
	slices.Sort(kept)
	slices.Sort(there)
	f.equal(there, kept)
}
