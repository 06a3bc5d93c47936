package device

import (
	"time"

	"pepvault/vault"
)

// Every way to change the model copies it first.

func (t *memoryTx) Configure(key vault.Key, config vault.Config) (vault.Revision, error) {
	t.changing()
	return t.Model.Configure(key, config)
}

func (t *memoryTx) Delete(key vault.Key) error {
	t.changing()
	return t.Model.Delete(key)
}

func (t *memoryTx) Put(key vault.Key, record vault.Record) (vault.Revision, error) {
	t.changing()
	return t.Model.Put(key, record)
}

func (t *memoryTx) Retract(key vault.Key, id string) (vault.Revision, error) {
	t.changing()
	return t.Model.Retract(key, id)
}

func (t *memoryTx) Purge(key vault.Key) ([]vault.Change, error) {
	t.changing()
	return t.Model.Purge(key)
}

func (t *memoryTx) Prune(key vault.Key, keep int) error {
	t.changing()
	return t.Model.Prune(key, keep)
}

func (t *memoryTx) BeginBatch(b vault.Batch) error {
	t.changing()
	return t.Model.BeginBatch(b)
}

func (t *memoryTx) Stage(key vault.BatchKey, s vault.Staged, p vault.Payload) error {
	t.changing()
	return t.Model.Stage(key, s, p)
}

func (t *memoryTx) Unstage(key vault.BatchKey, ids []string) error {
	t.changing()
	return t.Model.Unstage(key, ids)
}

func (t *memoryTx) EndBatch(key vault.BatchKey, outcome vault.BatchOutcome) error {
	t.changing()
	return t.Model.EndBatch(key, outcome)
}

func (t *memoryTx) DropBatch(key vault.BatchKey) error {
	t.changing()
	return t.Model.DropBatch(key)
}

func (t *memoryTx) Expire(now time.Time, n int) (bool, error) {
	t.changing()
	return t.Model.Expire(now, n)
}

func (t *memoryTx) Affiliate(key vault.Key, a vault.Affiliated) error {
	t.changing()
	return t.Model.Affiliate(key, a)
}

func (t *memoryTx) Withdraw(account vault.Account) ([]vault.Key, error) {
	t.changing()
	return t.Model.Withdraw(account)
}

func (t *memoryTx) Subscribe(key vault.Key, s vault.Subscription) error {
	t.changing()
	return t.Model.Subscribe(key, s)
}

func (t *memoryTx) Unsubscribe(key vault.Key, s vault.Subscription) (bool, error) {
	t.changing()
	return t.Model.Unsubscribe(key, s)
}

func (t *memoryTx) KeepResource(r vault.Resource) error {
	t.changing()
	return t.Model.KeepResource(r)
}

func (t *memoryTx) DropResource(account vault.Account, name string) error {
	t.changing()
	return t.Model.DropResource(account, name)
}

func (t *memoryTx) ForgetResources(account vault.Account) error {
	t.changing()
	return t.Model.ForgetResources(account)
}

func (t *memoryTx) KeepCapabilities(c vault.Capabilities) error {
	t.changing()
	return t.Model.KeepCapabilities(c)
}

func (t *memoryTx) DropCapabilities(hash string) error {
	t.changing()
	return t.Model.DropCapabilities(hash)
}
