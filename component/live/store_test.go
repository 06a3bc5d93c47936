package live_test

import (
	"context"
	"sync"

	"pepvault/store/storetest"
	"pepvault/vault"
)

// memory is a vault.Store around storetest's model. SQLite would be measured
// by the fuzzer, too: its code is so large that each execution would take a
// hundred times as long.
type memory struct {
	mu    sync.Mutex
	model *storetest.Model
}

type memoryTx struct {
	*storetest.Model
	after []func()
}

func (tx *memoryTx) AfterCommit(f func()) { tx.after = append(tx.after, f) }

func (m *memory) Update(_ context.Context, _ vault.Key, fn func(vault.Tx) error) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	tx := &memoryTx{Model: m.model}
	if err := m.model.Update(func(vault.Tx) error { return fn(tx) }); err != nil {
		return err
	}
	for _, f := range tx.after {
		f()
	}
	return nil
}

func (m *memory) View(_ context.Context, fn func(vault.View) error) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	return fn(m.model)
}

func (m *memory) Glance(ctx context.Context, fn func(vault.View) error) error {
	return m.View(ctx, fn)
}

func (m *memory) CursorKey() vault.CursorKey     { return vault.CursorKey{1} }
func (m *memory) Run() vault.Run                 { return m.model.Run }
func (m *memory) Health(_ context.Context) error { return nil }
func (m *memory) Close() error                   { return nil }
