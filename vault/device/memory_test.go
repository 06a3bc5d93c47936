package device

import (
	"context"
	"encoding/binary"
	"math/rand/v2"

	"pepvault/store/storetest"
	"pepvault/vault"
)

// memory is a store without a disk, so that a great many histories can be
// tried. It can be copied, and a copy be put in its place.
type memory struct {
	model  *storetest.Model
	run    vault.Run
	key    vault.CursorKey
	chance *rand.Rand
	// changed hears of each commit that changed something; nil = nobody does.
	changed func()
}

var _ vault.Store = (*memory)(nil)

func newMemory(chance *rand.Rand) *memory {
	m := &memory{chance: chance, key: vault.CursorKey{1}}
	m.model = storetest.NewModel(0)
	m.restart()
	return m
}

// restart is a new start of the service on the store.
func (m *memory) restart() {
	m.run = vault.Run(m.chance.Uint64())
	m.model.Run = m.run
}

// putBack puts a copy in the place of the store. renewed is what the restore
// command does: every vault gets a new epoch.
func (m *memory) putBack(saved *storetest.Model, renewed bool) {
	m.model = saved.Clone()
	m.restart()
	m.changed()
	if !renewed {
		return
	}
	_ = m.Update(context.Background(), vault.Key{}, func(tx vault.Tx) error {
		vaults, err := tx.Vaults(owner)
		for _, v := range vaults {
			_, err = tx.Fork(v.Key, v.Revision)
		}
		return err
	})
}

// memoryTx draws what the model leaves open, and keeps the hooks. Before the
// first change it copies the model, which most that is refused never needs.
type memoryTx struct {
	*storetest.Model
	store  *memory
	before *storetest.Model // nil = nothing is changed
	hooks  []func()
}

func (t *memoryTx) changing() {
	if t.before == nil {
		t.before = t.Clone()
	}
}

func (t *memoryTx) AfterCommit(f func()) { t.hooks = append(t.hooks, f) }

func (t *memoryTx) Create(key vault.Key, config vault.Config) (vault.Vault, error) {
	t.changing()
	return t.drawn(t.Model.Create(key, config))
}

func (t *memoryTx) Fork(key vault.Key, shared vault.Revision) (vault.Vault, error) {
	t.changing()
	return t.drawn(t.Model.Fork(key, shared))
}

func (t *memoryTx) drawn(v vault.Vault, err error) (vault.Vault, error) {
	if err == nil {
		binary.BigEndian.PutUint64(v.Epoch[:], t.store.chance.Uint64())
		t.Adopt(v)
	}
	return v, err
}

func (m *memory) Update(_ context.Context, _ vault.Key, fn func(vault.Tx) error) error {
	tx := &memoryTx{Model: m.model, store: m}
	if err := fn(tx); err != nil {
		if tx.before != nil {
			m.model = tx.before
		}
		return err
	}
	if tx.before != nil && m.changed != nil {
		m.changed()
	}
	for _, f := range tx.hooks {
		f()
	}
	return nil
}

func (m *memory) View(_ context.Context, fn func(vault.View) error) error   { return fn(m.model) }
func (m *memory) Glance(_ context.Context, fn func(vault.View) error) error { return fn(m.model) }
func (m *memory) CursorKey() vault.CursorKey                                { return m.key }
func (m *memory) Run() vault.Run                                            { return m.run }
func (m *memory) Health(context.Context) error                              { return nil }
func (m *memory) Close() error                                              { return nil }
