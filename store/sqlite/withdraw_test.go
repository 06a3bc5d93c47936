package sqlite

import (
	"fmt"
	"testing"

	"pepvault/vault"
)

// An account that leaves costs no index of the vaults that it leaves, and what
// is seen of them is right afterwards.
func TestWithdrawBuildsNoIndex(t *testing.T) {
	t.Parallel()
	s := openAt(t, t.TempDir())
	bob := vault.Account("bob@example.org")
	key := func(i int) vault.Key { return vault.Key{Account: "alice@example.org", Node: fmt.Sprint(i)} }
	for i := range 3 {
		mustUpdate(t, s, func(tx vault.Tx) error {
			if _, err := tx.Create(key(i), vault.Config{}); err != nil {
				return err
			}
			if err := tx.Affiliate(key(i), vault.Affiliated{Account: bob, Affiliation: vault.Publisher}); err != nil {
				return err
			}
			return tx.Subscribe(key(i), vault.Subscription{Account: bob})
		})
	}
	for _, i := range []int{0, 1} {
		s.vaults.drop(key(i), s.seq)
	}
	mustUpdate(t, s, func(tx vault.Tx) error {
		keys, err := tx.Withdraw(bob)
		if len(keys) != 3 {
			t.Errorf("withdrawn from %v", keys)
		}
		if left, err := tx.Affiliations(key(1)); len(left) > 0 || err != nil {
			t.Errorf("in the transaction: %v, %v", left, err)
		}
		return err
	})
	if _, known := s.vaults.get(key(0), latest); known {
		t.Error("an index was built")
	}
	for i := range 3 {
		err := s.View(t.Context(), func(v vault.View) error {
			affiliated, err := v.Affiliations(key(i))
			subscribed, err2 := v.Subscriptions(key(i))
			if len(affiliated)+len(subscribed) > 0 || err2 != nil {
				t.Errorf("vault %d: %v, %v, %v", i, affiliated, subscribed, err2)
			}
			return err
		})
		if err != nil {
			t.Error(err)
		}
	}
}

// An index that a reader built from the rows before does not come back.
func TestWithdrawEndsOldIndexes(t *testing.T) {
	t.Parallel()
	s := openAt(t, t.TempDir())
	mustUpdate(t, s, func(tx vault.Tx) error {
		if _, err := tx.Create(faultKey, vault.Config{}); err != nil {
			return err
		}
		return tx.Affiliate(faultKey, vault.Affiliated{Account: "bob@example.org", Affiliation: vault.Member})
	})
	s.vaults.drop(faultKey, s.seq)
	affiliations := func(v vault.View) int {
		found, err := v.Affiliations(faultKey)
		if err != nil {
			t.Error(err)
		}
		return len(found)
	}
	err := s.View(t.Context(), func(v vault.View) error {
		if _, err := v.Ended(vault.Epoch{}); err != nil { // its state is fixed now
			return err
		}
		of := vault.Key{Account: "bob@example.org"} // the store prepares what an Update is about
		if err := s.Update(t.Context(), of, func(tx vault.Tx) error { _, err := tx.Withdraw(of.Account); return err }); err != nil {
			return err
		}
		if n := affiliations(v); n != 1 {
			t.Errorf("%d affiliated in the state before", n)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	err = s.View(t.Context(), func(v vault.View) error {
		if n := affiliations(v); n != 0 {
			t.Errorf("%d affiliated afterwards", n)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
