package storetest

import (
	"cmp"
	"slices"

	"pepvault/vault"
)

// Subscriptions implements vault.View.
func (m *Model) Subscriptions(key vault.Key) ([]vault.Subscription, error) {
	v, err := m.find(key)
	if err != nil {
		return nil, err
	}
	return slices.Clone(v.subscribers), nil
}

// Affiliations implements vault.View.
func (m *Model) Affiliations(key vault.Key) ([]vault.Affiliated, error) {
	v, err := m.find(key)
	if err != nil {
		return nil, err
	}
	return slices.Clone(v.affiliated), nil
}

// Subscribe implements vault.Tx.
func (m *Model) Subscribe(key vault.Key, s vault.Subscription) error {
	v, err := m.find(key)
	if err != nil || slices.Contains(v.subscribers, s) {
		return err
	}
	v.subscribers = append(v.subscribers, s)
	slices.SortFunc(v.subscribers, func(a, b vault.Subscription) int { return cmp.Compare(a.Account, b.Account) })
	return nil
}

// Unsubscribe implements vault.Tx.
func (m *Model) Unsubscribe(key vault.Key, s vault.Subscription) (bool, error) {
	v, err := m.find(key)
	if err != nil {
		return false, err
	}
	i := slices.Index(v.subscribers, s)
	if i < 0 {
		return false, nil
	}
	v.subscribers = slices.Delete(v.subscribers, i, i+1)
	return true, nil
}

// Affiliate implements vault.Tx.
func (m *Model) Affiliate(key vault.Key, a vault.Affiliated) error {
	v, err := m.find(key)
	if err != nil {
		return err
	}
	v.affiliated = slices.DeleteFunc(v.affiliated, func(old vault.Affiliated) bool { return old.Account == a.Account })
	if a.Affiliation != vault.NotAffiliated {
		v.affiliated = append(v.affiliated, a)
		slices.SortFunc(v.affiliated, func(a, b vault.Affiliated) int { return cmp.Compare(a.Account, b.Account) })
	}
	if a.Affiliation != vault.Publisher {
		m.dropBatches(func(b vault.Batch) bool { return b.Vault == key && b.Account == a.Account })
	}
	if a.Affiliation == vault.NotAffiliated || a.Affiliation == vault.Outcast {
		_, err = m.Unsubscribe(key, vault.Subscription{Account: a.Account})
	}
	return err
}

// Withdraw implements vault.Tx.
func (m *Model) Withdraw(account vault.Account) ([]vault.Key, error) {
	var keys []vault.Key
	for key, v := range m.vaults {
		if key.Account != account && v.knows(account) {
			keys = append(keys, key)
		}
	}
	slices.SortFunc(keys, func(a, b vault.Key) int {
		return cmp.Or(cmp.Compare(a.Account, b.Account), cmp.Compare(a.Node, b.Node))
	})
	for _, key := range keys {
		if err := m.Affiliate(key, vault.Affiliated{Account: account}); err != nil {
			return nil, err
		}
	}
	return keys, nil
}

// knows reports whether an account is affiliated or subscribed.
func (v *modelVault) knows(account vault.Account) bool {
	return slices.Contains(v.subscribers, vault.Subscription{Account: account}) ||
		slices.ContainsFunc(v.affiliated, func(a vault.Affiliated) bool { return a.Account == account })
}

// Resources implements vault.View.
func (m *Model) Resources() ([]vault.Resource, error) { return slices.Clone(m.resources), nil }

// KeepResource implements vault.Tx.
func (m *Model) KeepResource(r vault.Resource) error {
	i, found := m.findResource(r.Account, r.Name)
	if found {
		m.resources[i] = r
	} else {
		m.resources = slices.Insert(m.resources, i, r)
	}
	return nil
}

// DropResource implements vault.Tx.
func (m *Model) DropResource(account vault.Account, name string) error {
	if i, found := m.findResource(account, name); found {
		m.resources = slices.Delete(m.resources, i, i+1)
	}
	return nil
}

// ForgetResources implements vault.Tx.
func (m *Model) ForgetResources(account vault.Account) error {
	m.resources = slices.DeleteFunc(slices.Clone(m.resources), func(r vault.Resource) bool { return r.Account == account })
	return nil
}

func (m *Model) findResource(account vault.Account, name string) (int, bool) {
	return slices.BinarySearchFunc(m.resources, vault.Resource{Account: account, Name: name}, func(a, b vault.Resource) int {
		return cmp.Or(cmp.Compare(a.Account, b.Account), cmp.Compare(a.Name, b.Name))
	})
}

// Capabilities implements vault.View.
func (m *Model) Capabilities() ([]vault.Capabilities, error) {
	return slices.Clone(m.capabilities), nil
}

// KeepCapabilities implements vault.Tx.
func (m *Model) KeepCapabilities(c vault.Capabilities) error {
	m.DropCapabilities(c.Hash)
	m.capabilities = append(m.capabilities, c)
	slices.SortFunc(m.capabilities, func(a, b vault.Capabilities) int { return cmp.Compare(a.Hash, b.Hash) })
	return nil
}

// DropCapabilities implements vault.Tx.
func (m *Model) DropCapabilities(hash string) error {
	m.capabilities = slices.DeleteFunc(m.capabilities, func(c vault.Capabilities) bool { return c.Hash == hash })
	return nil
}
