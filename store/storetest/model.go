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

	resources    []vault.Resource     // sorted
	capabilities []vault.Capabilities // sorted
	ended        map[vault.Epoch]bool
	batches      []modelBatch // in the order in which they began
}

type modelVault struct {
	state       vault.Vault // without what is counted from changes
	changes     map[string]vault.Change
	subscribers []vault.Subscription
	affiliated  []vault.Affiliated
	runs        vault.Runs
	lineage     map[vault.Epoch]vault.Revision
}

// NewModel returns a model without vaults.
func NewModel(run vault.Run) *Model {
	return &Model{Run: run, vaults: map[vault.Key]*modelVault{}, ended: map[vault.Epoch]bool{}}
}

// Update is vault.Store.Update.
func (m *Model) Update(fn func(vault.Tx) error) error {
	before := m.Clone()
	err := fn(m)
	if err != nil {
		*m = *before
	}
	return err
}

// Clone copies all that there is.
func (m *Model) Clone() *Model {
	c := *m
	c.vaults, c.ended = m.clone(), maps.Clone(m.ended)
	c.resources, c.capabilities = slices.Clone(m.resources), slices.Clone(m.capabilities)
	c.batches = cloneBatches(m.batches)
	return &c
}

func (m *Model) clone() map[vault.Key]*modelVault {
	vaults := map[vault.Key]*modelVault{}
	for key, v := range m.vaults {
		c := *v
		c.changes = maps.Clone(v.changes)
		c.subscribers, c.affiliated = slices.Clone(v.subscribers), slices.Clone(v.affiliated)
		c.runs, c.lineage = slices.Clone(v.runs), maps.Clone(v.lineage)
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
	if v.state.Run != m.Run {
		v.began(m.Run)
	}
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
	for _, c := range v.changes {
		if c.Gone {
			state.Tombstones++
			continue
		}
		state.Records++
		state.Bytes += int64(len(c.Payload.Data))
		state.Cost += int64(c.Cost())
	}
	return state, nil
}

// Accounts implements vault.View.
func (m *Model) Accounts() ([]vault.Account, error) {
	owners := map[vault.Account]bool{}
	for key := range m.vaults {
		owners[key.Account] = true
	}
	return slices.Sorted(maps.Keys(owners)), nil
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

// Sizes implements vault.View.
func (m *Model) Sizes(account vault.Account) ([]vault.Size, error) {
	vaults, err := m.Vaults(account)
	var sizes []vault.Size
	for _, v := range vaults {
		sizes = append(sizes, vault.Size{Key: v.Key, Revision: v.Revision, Records: v.Records, Bytes: v.Bytes, Tombstones: v.Tombstones})
	}
	return sizes, err
}

// Shared implements vault.View.
func (m *Model) Shared(owner, with vault.Account) ([]vault.Key, error) {
	vaults, err := m.Vaults(owner)
	var keys []vault.Key
	for _, state := range vaults {
		isWith := func(a vault.Affiliated) bool { return a.Account == with }
		if slices.ContainsFunc(m.vaults[state.Key].affiliated, isWith) {
			keys = append(keys, state.Key)
		}
	}
	return keys, err
}

// Totals implements vault.View.
func (m *Model) Totals() (t vault.Totals, err error) {
	for key := range m.vaults {
		state, _ := m.Vault(key)
		t.Vaults++
		t.Records += state.Records
	}
	return t, nil
}

// Usage implements vault.View.
func (m *Model) Usage(account vault.Account) (vault.Usage, error) {
	var usage vault.Usage
	vaults, err := m.Vaults(account)
	for _, v := range vaults {
		usage.Vaults++
		usage.Records += v.Records
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
			heads[i].RotatedFrom = c.RotatedFrom
		}
	}
	return heads, nil
}

// Inventory implements vault.View.
func (m *Model) Inventory(key vault.Key) ([]vault.Head, error) {
	v, err := m.find(key)
	if err != nil {
		return nil, err
	}
	var ids []string
	for _, c := range v.sorted(0, isLive) {
		ids = append(ids, c.ID)
	}
	return m.Heads(key, ids)
}

// Latest implements vault.View.
func (m *Model) Latest(key vault.Key, below vault.Revision, limit vault.PageLimit) (vault.Page, error) {
	v, err := m.find(key)
	if err != nil {
		return vault.Page{}, err
	}
	all := v.sorted(0, func(c vault.Change) bool { return !c.Gone && (below == 0 || c.Revision < below) })
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
	keep := func(c vault.Change) bool { return !c.Gone || !limit.Live && c.Revision > limit.GoneAbove }
	all := v.sorted(after, keep)
	n := fitting(all, limit)
	return vault.Page{Changes: all[:n], More: n < len(all)}, nil
}

// Rank implements vault.View.
func (m *Model) Rank(key vault.Key, r vault.Revision) (int, error) {
	v, err := m.find(key)
	if err != nil {
		return 0, err
	}
	return len(v.sorted(0, func(c vault.Change) bool { return !c.Gone && c.Revision < r })), nil
}

// Nth implements vault.View.
func (m *Model) Nth(key vault.Key, n int) (vault.Revision, error) {
	v, err := m.find(key)
	if err != nil {
		return 0, err
	}
	all := v.sorted(0, isLive)
	if n < 0 || n >= len(all) {
		return 0, nil
	}
	return all[n].Revision, nil
}

// KeyVersions implements vault.View.
func (m *Model) KeyVersions(key vault.Key) (low, high uint32, err error) {
	v, err := m.find(key)
	if err != nil {
		return 0, 0, err
	}
	for i, c := range v.sorted(0, isLive) {
		if i == 0 {
			low, high = c.KeyVersion, c.KeyVersion
		}
		low, high = min(low, c.KeyVersion), max(high, c.KeyVersion)
	}
	return low, high, nil
}

// Create implements vault.Tx.
func (m *Model) Create(key vault.Key, config vault.Config) (vault.Vault, error) {
	if _, err := m.find(key); err == nil {
		return vault.Vault{}, vault.ErrVaultExists
	}
	v := &modelVault{state: vault.Vault{Key: key, Config: config}, changes: map[string]vault.Change{}, lineage: map[vault.Epoch]vault.Revision{}}
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
	v, err := m.find(key)
	if err != nil {
		return err
	}
	m.end(v)
	m.dropBatches(func(b vault.Batch) bool { return b.Vault == key })
	delete(m.vaults, key)
	return nil
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

// Purge implements vault.Tx.
func (m *Model) Purge(key vault.Key) ([]vault.Change, error) {
	v, err := m.find(key)
	if err != nil {
		return nil, err
	}
	var purged []vault.Change
	for _, c := range v.sorted(0, isLive) {
		if _, err := m.Retract(key, c.ID); err != nil {
			return nil, err
		}
		purged = append(purged, v.changes[c.ID])
	}
	return purged, nil
}

// AfterCommit implements vault.Tx; nothing is ever committed here.
func (m *Model) AfterCommit(func()) {}
