package storetest

import (
	"errors"
	"fmt"
	"sync"

	"pepvault/vault"
)

// testConcurrent has 64 devices of 16 accounts at work, some of whose
// transactions fail.
func testConcurrent(f *fixture) {
	const devices, accounts, rounds = 64, 16, 12
	refused := errors.New("refused")
	key := func(i int) vault.Key {
		return vault.Key{Account: vault.Account(fmt.Sprintf("u%d@example.org", i%accounts)), Node: "notes"}
	}
	for i := range accounts {
		f.create(key(i))
	}
	var done sync.WaitGroup
	for i := range devices {
		done.Go(func() {
			for n := range rounds {
				id := fmt.Sprint(i, "-", n)
				err := f.store.Update(f.deadline(), key(i), func(tx vault.Tx) error {
					if _, err := tx.Put(key(i), record(id, id)); err != nil {
						return err
					}
					if n%3 == 2 {
						return refused
					}
					return nil
				})
				if (n%3 == 2) != errors.Is(err, refused) || n%3 != 2 && err != nil {
					f.Error("update:", err)
					return
				}
				// The answer has come, so every View shows it.
				look := f.view
				if n%2 == 1 {
					look = f.glance
				}
				look(func(v vault.View) error {
					records, err := v.Records(key(i), []string{id})
					if err == nil && len(records) != 1 != (n%3 == 2) {
						f.Errorf("%s: %d records", id, len(records))
					}
					return err
				})
			}
		})
	}
	done.Wait()
	kept := devices / accounts * rounds * 2 / 3
	for i := range accounts {
		state := f.vault(key(i))
		if state.Records != kept || state.Revision != vault.Revision(1+kept) {
			f.Errorf("vault %d: %d records, revision %v, want %d", i, state.Records, state.Revision, kept)
		}
		for n, c := range f.changes(key(i), 0, unlimited).Changes {
			if c.Revision != vault.Revision(2+n) {
				f.Errorf("vault %d: change %d has revision %v", i, n, c.Revision)
			}
		}
	}
}

// testCommitOrder has many callers change one vault: the calls after the
// commit come in the order of the revisions, one by one, before the answer,
// and show in every View.
func testCommitOrder(f *fixture) {
	const callers, rounds = 32, 10
	f.create(notes)
	var order []vault.Revision // written by the calls alone, which never overlap
	var done sync.WaitGroup
	for i := range callers {
		done.Go(func() {
			for n := range rounds {
				var revision vault.Revision
				called := false
				err := f.store.Update(f.deadline(), notes, func(tx vault.Tx) (err error) {
					if revision, err = tx.Put(notes, record(fmt.Sprint(i, n), "x")); err != nil {
						return err
					}
					now := revision
					tx.AfterCommit(func() {
						called = true
						order = append(order, now)
					})
					return nil
				})
				if err != nil || !called {
					f.Errorf("update: %v; called %v", err, called)
					return
				}
				f.view(func(v vault.View) error {
					state, err := v.Vault(notes)
					if state.Revision < revision {
						f.Errorf("a view shows revision %v after %v was answered", state.Revision, revision)
					}
					return err
				})
			}
		})
	}
	done.Wait()
	for i, revision := range order {
		if revision != vault.Revision(2+i) {
			f.Fatalf("call %d was for revision %v", i, revision)
		}
	}
	f.equal(len(order), callers*rounds)
}

// testConsistentView has writers keep two vaults in step, and readers find
// them in step, whichever methods they ask, in whichever order.
func testConsistentView(f *fixture) {
	f.create(notes)
	f.create(far)
	step := func(n int) {
		f.update(func(tx vault.Tx) error {
			for _, key := range []vault.Key{notes, far} {
				id := fmt.Sprint(n % 7)
				heads, err := tx.Heads(key, []string{id})
				if err != nil {
					return err
				}
				if heads[0].Revision != 0 && !heads[0].Gone && n%3 == 0 {
					_, err = tx.Retract(key, id)
				} else {
					_, err = tx.Put(key, record(id, fmt.Sprintf("%0*d", 1+n%50, n)))
				}
				if err != nil {
					return err
				}
				if n%17 == 16 {
					if _, err := tx.Purge(key); err != nil {
						return err
					}
				}
				if err := tx.Prune(key, 3); err != nil {
					return err
				}
				what := vault.Affiliation(n % int(vault.Owner))
				if err := tx.Affiliate(key, vault.Affiliated{Account: carol, Affiliation: what}); err != nil {
					return err
				}
				if err := tx.Subscribe(key, vault.Subscription{Account: carol}); err != nil {
					return err
				}
			}
			if n%5 == 4 {
				_, err := tx.Withdraw(carol)
				return err
			}
			return nil
		})
	}
	step(0)
	stop := make(chan struct{})
	var writers, readers sync.WaitGroup
	for w := range 3 {
		writers.Go(func() {
			for n := w; ; n += 3 {
				select {
				case <-stop:
					return
				default:
					step(n)
				}
			}
		})
	}
	for i := range 6 {
		readers.Go(func() {
			for n := range 150 {
				look := f.view
				if n%2 == 1 {
					look = f.glance
				}
				look(func(v vault.View) error { return inStep(f, v, notes, far, i+n) })
			}
		})
	}
	readers.Wait()
	close(stop)
	writers.Wait()
}

// inStep compares two vaults by what different methods say of them.
func inStep(f *fixture, v vault.View, one, two vault.Key, way int) error {
	if way%2 == 1 {
		one, two = two, one
	}
	a, err := v.Vault(one)
	if err != nil {
		return err
	}
	page, err := v.Changes(two, 0, unlimited)
	if err != nil {
		return err
	}
	latest, err := v.Latest(one, 0, unlimited)
	if err != nil {
		return err
	}
	b, err := v.Vault(two)
	if err != nil {
		return err
	}
	usage, err := v.Usage(one.Account)
	if err != nil {
		return err
	}
	if err := peopleInStep(f, v, one, two); err != nil {
		return err
	}
	b.Key, b.Epoch, b.Created, b.Run = a.Key, a.Epoch, a.Created, a.Run
	f.equal(b, a)
	var records []vault.Change
	for _, c := range page.Changes {
		if !c.Gone {
			records = append(records, c)
		}
	}
	f.equal(latest.Changes, records)
	f.equal(usage, vault.Usage{Vaults: 1, Records: a.Records, Bytes: a.Bytes})
	if n := len(page.Changes); n > 0 && a.Revision != page.Changes[n-1].Revision {
		f.Errorf("revision %v, but the last change is %v", a.Revision, page.Changes[n-1].Revision)
	}
	ids := []string{"0", "1", "2", "3", "4", "5", "6"}
	found, err := v.Records(one, ids)
	if err != nil {
		return err
	}
	f.equal(len(found), a.Records)
	return nil
}

// peopleInStep compares who is affiliated with two vaults and subscribed.
func peopleInStep(f *fixture, v vault.View, one, two vault.Key) error {
	affiliated, err1 := v.Affiliations(one)
	others, err2 := v.Affiliations(two)
	subscribers, err3 := v.Subscriptions(two)
	same, err4 := v.Subscriptions(one)
	// A Glance that goes on as a View has nothing to compare.
	if err := errors.Join(err1, err2, err3, err4); err != nil {
		return err
	}
	f.equal(others, affiliated)
	f.equal(same, subscribers)
	return nil
}

// testViewDuringWrites keeps a View open while others write: it stays at its
// state, and nobody waits for it.
func testViewDuringWrites(f *fixture) {
	f.fill()
	for _, first := range []func(vault.View) error{
		func(v vault.View) error { _, err := v.Vault(notes); return err },
		func(v vault.View) error { _, err := v.Records(tasks, []string{"a"}); return err },
		func(v vault.View) error { _, err := v.Usage(bob); return err },
		func(v vault.View) error { _, err := v.Affiliations(notes); return err },
		func(v vault.View) error { _, err := v.Rank(tasks, 3); return err },
	} {
		before := look(f, everything)
		f.view(func(v vault.View) error {
			if err := first(v); err != nil {
				return err
			}
			f.put(notes, record("a", "other"))
			f.put(notes, record("z", "more"))
			f.retract(notes, "z")
			f.update(func(tx vault.Tx) error { return tx.Delete(tasks) })
			f.create(tasks)
			f.put(tasks, record("a", "a new vault"))
			f.affiliate(notes, carol, vault.Outcast)
			f.affiliate(tasks, carol, vault.Publisher)
			f.subscribe(tasks, carol)
			f.update(func(tx vault.Tx) error {
				_, err1 := tx.Withdraw(bob)
				_, err2 := tx.Purge(notes)
				return errors.Join(err1, err2)
			})
			got, err := everything(v)
			f.equal(got, before)
			return err
		})
	}
}
