package storetest

import (
	"cmp"
	"maps"
	"slices"

	"pepvault/vault"
)

// Model is a vault.Tx without a disk, as plain as can be: what a real store
// does is compared with it. One goroutine uses it.
type Model struct {
	Run    vault.Run // of the store that it is compared with
	vaults map[vault.Key]*modelVault

	resources []vault.Resource // sorted
}

type modelVault struct {
	state       vault.Vault // without what is counted from changes
	changes     map[string]vault.Change
	subscribers []vault.Subscription
}

// NewModel returns a model without vaults.
func NewModel(run vault.Run) *Model {
	return &Model{Run: run, vaults: map[vault.Key]*modelVault{}}
}

// Update is vault.Store.Update.
func (m *Model) Update(fn func(vault.Tx) error) error {
	vaults, resources := m.clone(), slices.Clone(m.resources)
	err := fn(m)
	if err != nil {
		m.vaults, m.resources = vaults, resources
	}
	return err
}

func (m *Model) clone() map[vault.Key]*modelVault {
	vaults := map[vault.Key]*modelVault{}
	for key, v := range m.vaults {
		c := *v
		c.changes, c.subscribers = maps.Clone(v.changes), slices.Clone(v.subscribers)
		vaults[key] = &c
	}
	return vaults
}

// Adopt gives a vault what a store chose at random when it created it.
func (m *Model) Adopt(made vault.Vault) {
	state := &m.vaults[made.Key].state
	state.Epoch, state.Created = made.Epoch, made.Created
}

func (m *Model) find(key vault.Key) (*modelVault, error) {
	if v, found := m.vaults[key]; found {
		return v, nil
	}
	return nil, vault.ErrNoVault
}

func (m *Model) advance(v *modelVault) vault.Revision {
	v.state.Revision++
	v.state.Run = m.Run
	return v.state.Revision
}

// sorted returns the changes above a revision in their order.
func (v *modelVault) sorted(after vault.Revision, keep func(vault.Change) bool) []vault.Change {
	var found []vault.Change
	for _, c := range v.changes {
		if c.Revision > after && keep(c) {
			found = append(found, c)
		}
	}
	slices.SortFunc(found, func(a, b vault.Change) int { return cmp.Compare(a.Revision, b.Revision) })
	return found
}

func isGone(c vault.Change) bool { return c.Gone }
func isLive(c vault.Change) bool { return !c.Gone }
func isAny(vault.Change) bool    { return true }

// fitting returns how many of the changes a page holds.
func fitting(changes []vault.Change, limit vault.PageLimit) int {
	n, cost := 0, 0
	for _, c := range changes {
		cost += c.Cost()
		if n > 0 && (n == limit.Records || cost > limit.Cost) {
			break
		}
		n++
	}
	return n
}

// Vault implements vault.View.
func (m *Model) Vault(key vault.Key) (vault.Vault, error) {
	v, err := m.find(key)
	if err != nil {
		return vault.Vault{}, err
	}
	state := v.state
	for _, c := range v.sorted(0, isLive) {
		state.Records++
		state.Bytes += int64(len(c.Payload.Data))
		state.Cost += int64(c.Cost())
	}
	return state, nil
}

// Vaults implements vault.View.
func (m *Model) Vaults(account vault.Account) ([]vault.Vault, error) {
	var found []vault.Vault
	for key := range m.vaults {
		if key.Account == account {
			state, _ := m.Vault(key)
			found = append(found, state)
		}
	}
	slices.SortFunc(found, func(a, b vault.Vault) int { return cmp.Compare(a.Key.Node, b.Key.Node) })
	return found, nil
}

// Usage implements vault.View.
func (m *Model) Usage(account vault.Account) (vault.Usage, error) {
	var usage vault.Usage
	vaults, err := m.Vaults(account)
	for _, v := range vaults {
		usage.Vaults++
		usage.Bytes += v.Bytes
	}
	return usage, err
}

// Records implements vault.View.
func (m *Model) Records(key vault.Key, ids []string) ([]vault.Record, error) {
	v, err := m.find(key)
	if err != nil {
		return nil, err
	}
	var found []vault.Record
	for i, id := range ids {
		if c, there := v.changes[id]; there && !c.Gone && !slices.Contains(ids[:i], id) {
			found = append(found, c.Record)
		}
	}
	return found, nil
}

// Heads implements vault.View.
func (m *Model) Heads(key vault.Key, ids []string) ([]vault.Head, error) {
	v, err := m.find(key)
	if err != nil {
		return nil, err
	}
	heads := make([]vault.Head, len(ids))
	for i, id := range ids {
		c := v.changes[id]
		heads[i] = vault.Head{ID: id, Revision: c.Revision, Gone: c.Gone}
		if c.Revision != 0 && !c.Gone {
			heads[i].KeyVersion, heads[i].Bytes, heads[i].Cost = c.KeyVersion, len(c.Payload.Data), c.Cost()
		}
	}
	return heads, nil
}

// Latest implements vault.View.
func (m *Model) Latest(key vault.Key, limit vault.PageLimit) (vault.Page, error) {
	v, err := m.find(key)
	if err != nil {
		return vault.Page{}, err
	}
	all := v.sorted(0, isLive)
	slices.Reverse(all)
	n := fitting(all, limit)
	page := slices.Clone(all[:n])
	slices.Reverse(page)
	return vault.Page{Changes: page, More: n < len(all)}, nil
}

// Changes implements vault.View.
func (m *Model) Changes(key vault.Key, after vault.Revision, limit vault.PageLimit) (vault.Page, error) {
	v, err := m.find(key)
	if err != nil {
		return vault.Page{}, err
	}
	keep := isAny
	if limit.Live {
		keep = isLive
	}
	all := v.sorted(after, keep)
	n := fitting(all, limit)
	return vault.Page{Changes: all[:n], More: n < len(all)}, nil
}

// Subscriptions implements vault.View.
func (m *Model) Subscriptions(key vault.Key) ([]vault.Subscription, error) {
	v, err := m.find(key)
	if err != nil {
		return nil, err
	}
	return slices.Clone(v.subscribers), nil
}

// Create implements vault.Tx.
func (m *Model) Create(key vault.Key, config vault.Config) (vault.Vault, error) {
	if _, err := m.find(key); err == nil {
		return vault.Vault{}, vault.ErrVaultExists
	}
	v := &modelVault{state: vault.Vault{Key: key, Config: config}, changes: map[string]vault.Change{}}
	m.advance(v)
	m.vaults[key] = v
	return v.state, nil
}

// Configure implements vault.Tx.
func (m *Model) Configure(key vault.Key, config vault.Config) (vault.Revision, error) {
	v, err := m.find(key)
	if err != nil {
		return 0, err
	}
	v.state.Config = config
	return m.advance(v), nil
}

// Delete implements vault.Tx.
func (m *Model) Delete(key vault.Key) error {
	_, err := m.find(key)
	delete(m.vaults, key)
	return err
}

// Put implements vault.Tx.
func (m *Model) Put(key vault.Key, record vault.Record) (vault.Revision, error) {
	v, err := m.find(key)
	if err != nil {
		return 0, err
	}
	record.Revision = m.advance(v)
	v.changes[record.ID] = vault.Change{Record: record}
	return record.Revision, nil
}

// Retract implements vault.Tx.
func (m *Model) Retract(key vault.Key, id string) (vault.Revision, error) {
	v, err := m.find(key)
	if err != nil {
		return 0, err
	}
	if c, there := v.changes[id]; !there || c.Gone {
		return 0, vault.ErrNoRecord
	}
	revision := m.advance(v)
	v.changes[id] = vault.Change{Record: vault.Record{ID: id, Revision: revision}, Gone: true}
	return revision, nil
}

// Prune implements vault.Tx.
func (m *Model) Prune(key vault.Key, keep int) error {
	v, err := m.find(key)
	if err != nil {
		return err
	}
	for tombs := v.sorted(0, isGone); len(tombs) > keep; tombs = tombs[1:] {
		delete(v.changes, tombs[0].ID)
		v.state.Pruned = tombs[0].Revision
	}
	return nil
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

// AfterCommit implements vault.Tx; nothing is ever committed here.
func (m *Model) AfterCommit(func()) {}

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

func (m *Model) findResource(account vault.Account, name string) (int, bool) {
	return slices.BinarySearchFunc(m.resources, vault.Resource{Account: account, Name: name}, func(a, b vault.Resource) int {
		return cmp.Or(cmp.Compare(a.Account, b.Account), cmp.Compare(a.Name, b.Name))
	})
}
