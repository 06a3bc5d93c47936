package storetest

import (
	"errors"
	"time"

	"pepvault/vault"
)

var (
	carol = vault.Account("carol@example.org")
	far   = vault.Key{Account: bob, Node: "far"}
	away  = vault.Key{Account: bob, Node: "away"}
)

func (f *fixture) affiliate(key vault.Key, account vault.Account, what vault.Affiliation) {
	f.Helper()
	f.update(func(tx vault.Tx) error {
		return tx.Affiliate(key, vault.Affiliated{Account: account, Affiliation: what})
	})
}

func (f *fixture) subscribe(key vault.Key, account vault.Account) {
	f.Helper()
	f.update(func(tx vault.Tx) error { return tx.Subscribe(key, vault.Subscription{Account: account}) })
}

func (f *fixture) affiliations(key vault.Key) []vault.Affiliated {
	f.Helper()
	return look(f, func(v vault.View) ([]vault.Affiliated, error) { return v.Affiliations(key) })
}

func (f *fixture) subscriptions(key vault.Key) []vault.Subscription {
	f.Helper()
	return look(f, func(v vault.View) ([]vault.Subscription, error) { return v.Subscriptions(key) })
}

func testShared(f *fixture) {
	second := vault.Key{Account: alice, Node: "second"}
	for _, key := range []vault.Key{notes, tasks, second, far} {
		f.create(key)
		f.put(key, record("a", "1"))
		f.affiliate(key, carol, vault.Member)
	}
	f.affiliate(tasks, carol, vault.NotAffiliated)
	f.affiliate(second, carol, vault.Outcast)
	shared := func(owner, with vault.Account) []vault.Key {
		f.Helper()
		return look(f, func(v vault.View) ([]vault.Key, error) { return v.Shared(owner, with) })
	}
	check := func() {
		f.Helper()
		f.equal(shared(alice, carol), []vault.Key{notes, second})
		f.equal(shared(bob, carol), []vault.Key{far})
		f.equal(shared(alice, bob), []vault.Key{})
		f.equal(shared(carol, alice), []vault.Key{})
		f.equal(shared(alice, alice), []vault.Key{})
		f.equal(look(f, func(v vault.View) (vault.Totals, error) { return v.Totals() }), vault.Totals{Vaults: 4, Records: 4})
	}
	check()
	f.reopen()
	check()
	f.update(func(tx vault.Tx) error { return tx.Delete(second) })
	f.equal(shared(alice, carol), []vault.Key{notes})
	f.equal(look(f, func(v vault.View) (vault.Totals, error) { return v.Totals() }), vault.Totals{Vaults: 3, Records: 3})
}

func testAffiliations(f *fixture) {
	f.create(notes)
	f.create(tasks)
	f.equal(f.affiliations(notes), []vault.Affiliated{})
	f.affiliate(notes, carol, vault.Member)
	f.affiliate(notes, bob, vault.Outcast)
	f.affiliate(notes, carol, vault.Publisher)
	f.affiliate(notes, "never@example.org", vault.NotAffiliated)
	both := []vault.Affiliated{{Account: bob, Affiliation: vault.Outcast}, {Account: carol, Affiliation: vault.Publisher}}
	check := func(want []vault.Affiliated) {
		f.Helper()
		f.equal(f.affiliations(notes), want)
		f.equal(f.affiliations(tasks), []vault.Affiliated{})
		if state := f.vault(notes); state.Revision != 1 {
			f.Errorf("an affiliation took revision %v", state.Revision)
		}
	}
	check(both)
	f.reopen()
	check(both)
	f.affiliate(notes, bob, vault.NotAffiliated)
	check(both[1:])
	f.reopen()
	check(both[1:])
	// What a caller does to the list is not the store's.
	f.view(func(v vault.View) error {
		list, err := v.Affiliations(notes)
		list[0].Affiliation = vault.Outcast
		return err
	})
	check(both[1:])
	f.update(func(tx vault.Tx) error { return tx.Delete(notes) })
	f.create(notes)
	check(nil)
}

// testAffiliationEndsSubscription: who may not read any more hears nothing.
func testAffiliationEndsSubscription(f *fixture) {
	f.create(notes)
	f.create(tasks)
	for _, test := range []struct {
		what vault.Affiliation
		ends bool
	}{
		{vault.Member, false},
		{vault.Publisher, false},
		{vault.Outcast, true},
		{vault.Outcast, true}, // it was one, but a subscription came since
		{vault.NotAffiliated, true},
		{vault.NotAffiliated, true},
	} {
		f.subscribe(notes, bob)
		f.subscribe(notes, carol)
		f.subscribe(tasks, bob)
		f.affiliate(notes, bob, test.what)
		want := []vault.Subscription{{Account: bob}, {Account: carol}}
		if test.ends {
			want = want[1:]
		}
		f.equal(f.subscriptions(notes), want)
		f.equal(f.subscriptions(tasks), []vault.Subscription{{Account: bob}})
		f.reopen()
		f.equal(f.subscriptions(notes), want)
	}
}

// testAffiliateOwner: the owner of a vault has no row that could be lost.
func testAffiliateOwner(f *fixture) {
	f.create(notes)
	func() {
		defer func() {
			if recover() == nil {
				f.Error("no panic")
			}
		}()
		f.store.Update(f.Context(), notes, func(tx vault.Tx) error {
			return tx.Affiliate(notes, vault.Affiliated{Account: bob, Affiliation: vault.Owner})
		})
	}()
	f.equal(f.affiliations(notes), []vault.Affiliated{})
}

func testWithdraw(f *fixture) {
	for _, key := range []vault.Key{notes, tasks, far, away, {Account: carol, Node: "own"}, {Account: carol, Node: "other"}} {
		f.create(key)
	}
	withdraw := func(account vault.Account) (keys []vault.Key) {
		f.Helper()
		f.update(func(tx vault.Tx) (err error) {
			keys, err = tx.Withdraw(account)
			return err
		})
		return keys
	}
	f.equal(withdraw(carol), []vault.Key{})
	f.affiliate(far, carol, vault.Member)
	f.subscribe(far, carol)
	f.affiliate(notes, carol, vault.Outcast)
	f.subscribe(tasks, carol)
	f.affiliate(tasks, bob, vault.Publisher)
	f.subscribe(tasks, bob)
	own := vault.Key{Account: carol, Node: "own"}
	f.subscribe(own, carol)
	f.affiliate(own, bob, vault.Member)
	f.reopen() // nothing is in memory
	f.equal(withdraw(carol), []vault.Key{notes, tasks, far})
	check := func() {
		f.Helper()
		for _, key := range []vault.Key{notes, far, away} {
			f.equal(f.affiliations(key), []vault.Affiliated{})
			f.equal(f.subscriptions(key), []vault.Subscription{})
		}
		f.equal(f.affiliations(tasks), []vault.Affiliated{{Account: bob, Affiliation: vault.Publisher}})
		f.equal(f.subscriptions(tasks), []vault.Subscription{{Account: bob}})
		f.equal(f.affiliations(own), []vault.Affiliated{{Account: bob, Affiliation: vault.Member}})
		f.equal(f.subscriptions(own), []vault.Subscription{{Account: carol}})
	}
	check()
	f.equal(withdraw(carol), []vault.Key{})
	// It counts what its own transaction did before.
	f.update(func(tx vault.Tx) error {
		if err := tx.Affiliate(away, vault.Affiliated{Account: carol, Affiliation: vault.Member}); err != nil {
			return err
		}
		if err := tx.Subscribe(far, vault.Subscription{Account: carol}); err != nil {
			return err
		}
		keys, err := tx.Withdraw(carol)
		f.equal(keys, []vault.Key{away, far})
		return err
	})
	check()
	// Refused, it has not happened.
	mine := errors.New("mine")
	err := f.store.Update(f.Context(), tasks, func(tx vault.Tx) error {
		if _, err := tx.Withdraw(bob); err != nil {
			return err
		}
		return mine
	})
	f.wantErr(err, mine)
	check()
	f.reopen()
	check()
}

func testCapabilities(f *fixture) {
	check := func(when string, want ...vault.Capabilities) {
		f.Helper()
		f.Log(when)
		f.equal(look(f, func(v vault.View) ([]vault.Capabilities, error) { return v.Capabilities() }), want)
	}
	check("at first")
	full := vault.Capabilities{Hash: "sha-256:BBBB", Nodes: []string{"notes", "<tasks> & \"more\""}, Sync: true, Used: at}
	plain := vault.Capabilities{Hash: "sha-1:AAAA", Used: at}
	f.update(func(tx vault.Tx) error { return errors.Join(tx.KeepCapabilities(full), tx.KeepCapabilities(plain)) })
	check("kept", plain, full)
	full.Used, full.Sync, full.Nodes = at.Add(time.Hour), false, []string{"notes"}
	f.update(func(tx vault.Tx) error { return tx.KeepCapabilities(full) })
	check("replaced", plain, full)
	f.reopen()
	check("reopened", plain, full)
	f.update(func(tx vault.Tx) error {
		return errors.Join(tx.DropCapabilities(full.Hash), tx.DropCapabilities("never:there"))
	})
	check("dropped", plain)
}
