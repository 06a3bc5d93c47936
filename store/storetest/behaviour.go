package storetest

import (
	"errors"
	"fmt"
	"time"

	"pepvault/vault"
)

func testCreate(f *fixture) {
	before := time.Now().Truncate(time.Millisecond)
	made := f.create(notes)
	want := vault.Vault{
		Key: notes, Epoch: made.Epoch, Revision: 1, Run: f.store.Run(), Created: made.Created,
	}
	f.equal(made, want)
	f.equal(f.vault(notes), want)
	if made.Epoch == (vault.Epoch{}) {
		f.Error("the epoch is not random")
	}
	if made.Created.Before(before) || made.Created.After(time.Now()) || made.Created.Location() != time.UTC ||
		!made.Created.Equal(made.Created.Truncate(time.Millisecond)) {
		f.Errorf("created %v", made.Created)
	}
	err := f.store.Update(f.Context(), notes, func(tx vault.Tx) error {
		_, err := tx.Create(notes, vault.Config{Title: "other"})
		return err
	})
	f.wantErr(err, vault.ErrVaultExists)
	f.equal(f.vault(notes), want)
	if other := f.create(tasks); other.Epoch == made.Epoch {
		f.Error("two vaults have one epoch")
	}
}

func testConfigure(f *fixture) {
	f.create(notes)
	f.put(notes, record("a", "1"))
	config := vault.Config{
		Title: "My <notes>", Type: "urn:example:note", MaxItems: 17, EvictOldest: true,
		SendLast: vault.SendOnSubscriptionAndPresence, KeyVersionFloor: vault.MaxKeyVersion,
		MuteRetract: true, MuteDelete: true, MuteConfig: true, MutePayloads: true, MuteAll: true,
	}
	var revision vault.Revision
	f.update(func(tx vault.Tx) (err error) {
		revision, err = tx.Configure(notes, config)
		return err
	})
	check := func() {
		f.Helper()
		got := f.vault(notes)
		if revision != 3 || got.Revision != 3 || got.Records != 1 {
			f.Errorf("revision %v, vault %+v", revision, got)
		}
		f.equal(got.Config, config)
	}
	check()
	f.reopen()
	check()
	f.equal(f.changes(notes, 2, unlimited), vault.Page{}) // a configuration is no change of a record
	if next := f.put(notes, record("b", "1")); next != 4 {
		f.Errorf("next revision is %v, want 4", next)
	}
	f.update(func(tx vault.Tx) error { _, err := tx.Configure(notes, vault.Config{}); return err })
	f.equal(f.vault(notes).Config, vault.Config{}) // replaced, not merged
}

func testPut(f *fixture) {
	f.create(notes)
	first, second := record("a", "one"), record("b", "two")
	second.Payload.Form, second.KeyVersion, second.Publisher = vault.Foreign, vault.MaxKeyVersion, bob
	if r := f.put(notes, first); r != 2 {
		f.Errorf("first revision %v", r)
	}
	if r := f.put(notes, second); r != 3 {
		f.Errorf("second revision %v", r)
	}
	again := record("a", "one and a half")
	again.Revision = 77 // not read
	if r := f.put(notes, again); r != 4 {
		f.Errorf("third revision %v", r)
	}
	again, second = numbered(4, again), numbered(3, second)
	f.equal(f.changes(notes, 0, unlimited), vault.Page{Changes: []vault.Change{live(second), live(again)}})
	state := f.vault(notes)
	want := state
	want.Revision, want.Records = 4, 2
	want.Bytes = int64(len(again.Payload.Data) + len(second.Payload.Data))
	want.Cost = int64(again.Cost() + second.Cost())
	f.equal(state, want)
}

func testPutTimes(f *fixture) {
	f.create(notes)
	r := record("a", "")
	r.Published = time.Date(2026, 5, 4, 5, 2, 1, 987_654_321, time.FixedZone("CEST", 2*60*60))
	f.put(notes, r)
	got := look(f, func(v vault.View) ([]vault.Record, error) { return v.Records(notes, []string{"a"}) })
	if len(got) != 1 || got[0].Published != at || len(got[0].Payload.Data) != 0 {
		f.Errorf("got %+v", got)
	}
}

func testRetract(f *fixture) {
	f.create(notes)
	f.put(notes, record("a", "1"))
	f.put(notes, record("b", "2"))
	if r := f.retract(notes, "a"); r != 4 {
		f.Errorf("revision %v, want 4", r)
	}
	b := numbered(3, record("b", "2"))
	f.equal(f.changes(notes, 0, unlimited).Changes, []vault.Change{live(b), gone(4, "a")})
	f.equal(f.changes(notes, 0, vault.PageLimit{Records: 9, Cost: 1 << 20, Live: true}).Changes,
		[]vault.Change{live(b)})
	state := f.vault(notes)
	if state.Records != 1 || state.Bytes != 1 || state.Cost != int64(b.Cost()) || state.Revision != 4 {
		f.Errorf("vault %+v", state)
	}
	for _, id := range []string{"a", "never"} {
		err := f.store.Update(f.Context(), notes, func(tx vault.Tx) error {
			_, err := tx.Retract(notes, id)
			return err
		})
		f.wantErr(err, vault.ErrNoRecord)
	}
	// Publishing the id again replaces its tombstone.
	f.put(notes, record("a", "3"))
	f.equal(f.changes(notes, 0, unlimited).Changes,
		[]vault.Change{live(b), live(numbered(5, record("a", "3")))})
}

func testPrune(f *fixture) {
	f.create(notes)
	for _, id := range []string{"a", "b", "c", "d"} {
		f.put(notes, record(id, "x"))
	}
	for _, id := range []string{"a", "b", "c"} {
		f.retract(notes, id)
	}
	prune := func(keep int) {
		f.update(func(tx vault.Tx) error { return tx.Prune(notes, keep) })
	}
	prune(3)
	if p := f.vault(notes).Pruned; p != 0 {
		f.Errorf("pruned %v, though nothing was", p)
	}
	prune(1)
	d := live(numbered(5, record("d", "x")))
	f.equal(f.changes(notes, 0, unlimited).Changes, []vault.Change{d, gone(8, "c")})
	if state := f.vault(notes); state.Pruned != 7 || state.Revision != 8 {
		f.Errorf("pruned %v, revision %v", state.Pruned, state.Revision)
	}
	prune(0)
	f.equal(f.changes(notes, 0, unlimited).Changes, []vault.Change{d})
	f.reopen() // the highest revision is only in Pruned now
	if state := f.vault(notes); state.Pruned != 8 || state.Revision != 8 {
		f.Errorf("pruned %v, revision %v", state.Pruned, state.Revision)
	}
	if next := f.put(notes, record("a", "y")); next != 9 {
		f.Errorf("next revision %v, want 9", next)
	}
}

func testDelete(f *fixture) {
	f.create(notes)
	f.create(tasks)
	f.put(notes, record("a", "12345"))
	f.put(tasks, record("a", "12"))
	f.update(func(tx vault.Tx) error { return tx.Delete(notes) })
	f.wantErr(lookErr(f, func(v vault.View) error { _, err := v.Vault(notes); return err }), vault.ErrNoVault)
	f.equal(look(f, func(v vault.View) (vault.Usage, error) { return v.Usage(alice) }), vault.Usage{Vaults: 1, Records: 1, Bytes: 2})
	vaults := look(f, func(v vault.View) ([]vault.Vault, error) { return v.Vaults(alice) })
	f.equal(vaults, []vault.Vault{f.vault(tasks)})
	f.equal(f.changes(tasks, 0, unlimited).Changes, []vault.Change{live(numbered(2, record("a", "12")))})
	f.wantErr(f.store.Update(f.Context(), notes, func(tx vault.Tx) error { return tx.Delete(notes) }), vault.ErrNoVault)
}

func testCreateAgain(f *fixture) {
	old := f.create(notes)
	for i := range 5 {
		f.put(notes, record(fmt.Sprint(i), "old"))
	}
	f.retract(notes, "0")
	f.update(func(tx vault.Tx) error { return tx.Subscribe(notes, vault.Subscription{Account: bob}) })
	old = f.vault(notes)
	f.update(func(tx vault.Tx) error { return tx.Delete(notes) })
	check := func(made vault.Vault) {
		f.Helper()
		if made.Epoch == old.Epoch {
			f.Error("the epoch is the old one")
		}
		key := f.store.CursorKey()
		if key.Sign(made.Cursor()) == key.Sign(old.Cursor()) {
			f.Error("the cursor is the old one")
		}
		f.equal(f.vault(notes), vault.Vault{
			Key: notes, Epoch: made.Epoch, Revision: 1, Run: f.store.Run(), Created: made.Created,
		})
		f.equal(f.changes(notes, 0, unlimited), vault.Page{})
		f.equal(look(f, func(v vault.View) ([]vault.Subscription, error) { return v.Subscriptions(notes) }),
			[]vault.Subscription{})
	}
	check(f.create(notes))
	// In one transaction, and after the numbers of rows could begin anew.
	f.update(func(tx vault.Tx) error { return tx.Delete(notes) })
	f.reopen()
	f.create(notes)
	f.put(notes, record("again", "old"))
	old = f.vault(notes)
	var made vault.Vault
	f.update(func(tx vault.Tx) (err error) {
		if err = tx.Delete(notes); err == nil {
			made, err = tx.Create(notes, vault.Config{})
		}
		return err
	})
	check(made)
}

func testSubscriptions(f *fixture) {
	f.create(notes)
	subscribe := func(account vault.Account) {
		f.update(func(tx vault.Tx) error { return tx.Subscribe(notes, vault.Subscription{Account: account}) })
	}
	subscribe(bob)
	subscribe(alice)
	subscribe(bob)
	read := func() []vault.Subscription {
		return look(f, func(v vault.View) ([]vault.Subscription, error) { return v.Subscriptions(notes) })
	}
	both := []vault.Subscription{{Account: alice}, {Account: bob}}
	f.equal(read(), both)
	if state := f.vault(notes); state.Revision != 1 {
		f.Errorf("a subscription took revision %v", state.Revision)
	}
	f.reopen()
	f.equal(read(), both)
	for _, want := range []bool{true, false} {
		var had bool
		f.update(func(tx vault.Tx) (err error) {
			had, err = tx.Unsubscribe(notes, vault.Subscription{Account: alice})
			return err
		})
		f.equal(had, want)
	}
	f.equal(read(), both[1:])
}

// testAbsentVault calls every method on a vault that is not there.
func testAbsentVault(f *fixture) {
	f.create(tasks)
	views := map[string]func(vault.View) error{
		"Vault":         func(v vault.View) error { _, err := v.Vault(notes); return err },
		"Records":       func(v vault.View) error { _, err := v.Records(notes, []string{"a"}); return err },
		"no Records":    func(v vault.View) error { _, err := v.Records(notes, nil); return err },
		"Heads":         func(v vault.View) error { _, err := v.Heads(notes, []string{"a"}); return err },
		"Latest":        func(v vault.View) error { _, err := v.Latest(notes, 0, unlimited); return err },
		"Changes":       func(v vault.View) error { _, err := v.Changes(notes, 0, unlimited); return err },
		"Rank":          func(v vault.View) error { _, err := v.Rank(notes, 1); return err },
		"Nth":           func(v vault.View) error { _, err := v.Nth(notes, 0); return err },
		"Inventory":     func(v vault.View) error { _, err := v.Inventory(notes); return err },
		"KeyVersions":   func(v vault.View) error { _, _, err := v.KeyVersions(notes); return err },
		"Subscriptions": func(v vault.View) error { _, err := v.Subscriptions(notes); return err },
		"Affiliations":  func(v vault.View) error { _, err := v.Affiliations(notes); return err },
	}
	writes := map[string]func(vault.Tx) error{
		"Configure": func(tx vault.Tx) error { _, err := tx.Configure(notes, vault.Config{}); return err },
		"Delete":    func(tx vault.Tx) error { return tx.Delete(notes) },
		"Put":       func(tx vault.Tx) error { _, err := tx.Put(notes, record("a", "1")); return err },
		"Retract":   func(tx vault.Tx) error { _, err := tx.Retract(notes, "a"); return err },
		"Purge":     func(tx vault.Tx) error { _, err := tx.Purge(notes); return err },
		"Affiliate": func(tx vault.Tx) error {
			return tx.Affiliate(notes, vault.Affiliated{Account: bob, Affiliation: vault.Member})
		},
		"Disaffiliate": func(tx vault.Tx) error { return tx.Affiliate(notes, vault.Affiliated{Account: bob}) },
		"Prune":        func(tx vault.Tx) error { return tx.Prune(notes, 1) },
		"Subscribe":    func(tx vault.Tx) error { return tx.Subscribe(notes, vault.Subscription{Account: bob}) },
		"Unsubscribe":  func(tx vault.Tx) error { _, err := tx.Unsubscribe(notes, vault.Subscription{Account: bob}); return err },
	}
	check := func(state string) {
		for name, call := range views {
			if err := lookErr(f, call); !errors.Is(err, vault.ErrNoVault) {
				f.Errorf("%s: View.%s: %v", state, name, err)
			}
			err := f.store.Update(f.Context(), notes, func(tx vault.Tx) error { return call(tx) })
			if !errors.Is(err, vault.ErrNoVault) {
				f.Errorf("%s: Tx.%s: %v", state, name, err)
			}
		}
		for name, call := range writes {
			if err := f.store.Update(f.Context(), notes, call); !errors.Is(err, vault.ErrNoVault) {
				f.Errorf("%s: %s: %v", state, name, err)
			}
		}
		f.equal(look(f, func(v vault.View) (vault.Usage, error) { return v.Usage(bob) }), vault.Usage{})
		f.equal(look(f, func(v vault.View) ([]vault.Vault, error) { return v.Vaults(bob) }), []vault.Vault{})
	}
	check("never made")
	f.create(notes)
	f.put(notes, record("a", "1"))
	f.update(func(tx vault.Tx) error { return tx.Delete(notes) })
	check("deleted")
}
