package sqlite

import (
	"cmp"
	"fmt"
	"slices"

	"pepvault/vault"
)

// subscribe adds a subscriber and reports whether it is new.
func (ix *index) subscribe(account vault.Account) bool {
	i, found := slices.BinarySearch(ix.subscribers, account)
	if found {
		return false
	}
	ix.subscribers = slices.Insert(slices.Clone(ix.subscribers), i, account)
	ix.memory += 16 + len(account)
	return true
}

// unsubscribe removes a subscriber and reports whether there was one.
func (ix *index) unsubscribe(account vault.Account) bool {
	i, found := slices.BinarySearch(ix.subscribers, account)
	if !found {
		return false
	}
	ix.subscribers = slices.Delete(slices.Clone(ix.subscribers), i, i+1)
	ix.memory -= 16 + len(account)
	return true
}

// affiliate sets what an account is to the vault and reports whether that is
// new. NotAffiliated removes it.
func (ix *index) affiliate(a vault.Affiliated) bool {
	i, found := slices.BinarySearchFunc(ix.affiliated, a, func(a, b vault.Affiliated) int {
		return cmp.Compare(a.Account, b.Account)
	})
	switch {
	case !found && a.Affiliation == vault.NotAffiliated, found && ix.affiliated[i] == a:
		return false
	case !found:
		ix.affiliated = slices.Insert(slices.Clone(ix.affiliated), i, a)
		ix.memory += 32 + len(a.Account)
	case a.Affiliation == vault.NotAffiliated:
		ix.affiliated = slices.Delete(slices.Clone(ix.affiliated), i, i+1)
		ix.memory -= 32 + len(a.Account)
	default:
		ix.affiliated = slices.Clone(ix.affiliated)
		ix.affiliated[i] = a
	}
	return true
}

// Subscriptions implements vault.View.
func (r *reading) Subscriptions(key vault.Key) ([]vault.Subscription, error) {
	ix, err := r.source.find(key)
	if err != nil {
		return nil, err
	}
	found := make([]vault.Subscription, len(ix.subscribers))
	for i, account := range ix.subscribers {
		found[i] = vault.Subscription{Account: account}
	}
	return found, nil
}

// Affiliations implements vault.View.
func (r *reading) Affiliations(key vault.Key) ([]vault.Affiliated, error) {
	ix, err := r.source.find(key)
	if err != nil {
		return nil, err
	}
	return slices.Clone(ix.affiliated), nil
}

// Subscribe implements vault.Tx.
func (t *tx) Subscribe(key vault.Key, s vault.Subscription) error {
	ix, u, err := t.change(key)
	if err != nil || !ix.subscribe(s.Account) {
		return err
	}
	if _, err := t.write("subscribe", insertSubscription, ix.id, string(s.Account)); err != nil {
		return err
	}
	t.keep(key, ix, u)
	return nil
}

// Unsubscribe implements vault.Tx.
func (t *tx) Unsubscribe(key vault.Key, s vault.Subscription) (bool, error) {
	ix, u, err := t.change(key)
	if err != nil || !ix.unsubscribe(s.Account) {
		return false, err
	}
	if _, err := t.write("unsubscribe", deleteSubscription, ix.id, string(s.Account)); err != nil {
		return false, err
	}
	t.keep(key, ix, u)
	return true, nil
}

// Affiliate implements vault.Tx.
func (t *tx) Affiliate(key vault.Key, a vault.Affiliated) error {
	if a.Affiliation >= vault.Owner {
		panic(fmt.Sprintf("affiliation %d is not for the store", a.Affiliation))
	}
	ix, u, err := t.change(key)
	if err != nil {
		return err
	}
	ends := a.Affiliation == vault.NotAffiliated || a.Affiliation == vault.Outcast
	if ended := ends && ix.unsubscribe(a.Account); ended {
		if _, err := t.write("end a subscription", deleteSubscription, ix.id, string(a.Account)); err != nil {
			return err
		}
		t.keep(key, ix, u)
	}
	if a.Affiliation != vault.Publisher {
		if _, err := t.write("end batches", endAccountsBatches, ix.id, string(a.Account)); err != nil {
			return err
		}
	}
	if !ix.affiliate(a) {
		return nil
	}
	if a.Affiliation == vault.NotAffiliated {
		_, err = t.write("end an affiliation", deleteAffiliation, ix.id, string(a.Account))
	} else {
		_, err = t.write("affiliate", keepAffiliation, ix.id, string(a.Account), int64(a.Affiliation))
	}
	if err != nil {
		return err
	}
	t.keep(key, ix, u)
	return nil
}

// Withdraw implements vault.Tx.
func (t *tx) Withdraw(account vault.Account) ([]vault.Key, error) {
	var owner, node string
	var keys []vault.Key
	name := string(account)
	err := t.each("find an account's vaults", elsewhere, []any{name, name, name}, []any{&owner, &node}, func() {
		keys = append(keys, vault.Key{Account: vault.Account(owner), Node: node})
	})
	if err != nil {
		return nil, err
	}
	for _, s := range []statement{withdrawBatches, withdrawSubscriptions, withdrawAffiliations} {
		if _, err := t.write("end an account's rights", s, name); err != nil {
			return nil, err
		}
	}
	for _, key := range keys {
		if err := t.withdrawn(key, account); err != nil {
			return nil, err
		}
	}
	return keys, nil
}

// withdrawn takes an account out of the index of a vault. One that is not in
// memory is not built for that: it need only be known as changed.
func (t *tx) withdrawn(key vault.Key, account vault.Account) error {
	if !t.remembered(key) {
		t.own.unknown[key] = true
		return nil
	}
	ix, u, err := t.change(key)
	if err != nil {
		return err
	}
	ix.unsubscribe(account)
	ix.affiliate(vault.Affiliated{Account: account})
	t.keep(key, ix, u)
	return nil
}
