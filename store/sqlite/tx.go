package sqlite

import (
	"crypto/rand"
	"database/sql"
	"encoding/json"
	"errors"
	"maps"
	"time"

	"pepvault/vault"
)

// errWide says that a vault has no free slot. The limits of the service lie
// below that.
var errWide = errors.New("a vault holds at most 65536 records")

// changes are the states that a transaction gave to what it changed.
type changes struct {
	vaults   map[vault.Key]*index // nil: there is none any more
	accounts map[vault.Account]usage
	unknown  map[vault.Key]bool // they changed too, but nobody built their index
}

func newChanges() *changes {
	return &changes{vaults: map[vault.Key]*index{}, accounts: map[vault.Account]usage{}, unknown: map[vault.Key]bool{}}
}

func (c *changes) touchesVault(key vault.Key) bool {
	if c == nil {
		return false
	}
	_, found := c.vaults[key]
	return found || c.unknown[key]
}

func (c *changes) touchesAccount(account vault.Account) bool {
	if c == nil {
		return false
	}
	_, found := c.accounts[account]
	return found
}

// merge takes in the changes of a later transaction.
func (c *changes) merge(later *changes) {
	maps.Copy(c.vaults, later.vaults)
	maps.Copy(c.accounts, later.accounts)
	maps.Copy(c.unknown, later.unknown)
}

// tx is the transaction of one job, inside the one that its batch shares.
type tx struct {
	reading
	store *Store
	batch *changes // of the jobs before it
	own   *changes
	dirty bool // it has a savepoint, so there may be something to undo
	hooks []func()
}

func (t *tx) pin(query func() error) error { return query() }

func (t *tx) find(key vault.Key) (*index, error) {
	if t.failed != nil {
		return nil, t.failed
	}
	ix, known := t.own.vaults[key]
	if !known {
		ix, known = t.batch.vaults[key]
	}
	if !known {
		ix, known = t.store.vaults.get(key, latest)
	}
	if !known {
		var err error
		if ix, err = t.load(key); err != nil {
			return nil, err
		}
		switch {
		case ix == nil:
		case t.own.unknown[key]: // this transaction changed it, and may be dropped
			t.own.vaults[key] = ix
		default:
			// Nobody changed it in this batch, or it would have been there.
			t.batch.vaults[key] = ix
		}
	}
	if ix == nil {
		return nil, vault.ErrNoVault
	}
	return ix, nil
}

// remembered tells whether find needs no rows.
func (t *tx) remembered(key vault.Key) bool {
	_, own := t.own.vaults[key]
	_, before := t.batch.vaults[key]
	_, cached := t.store.vaults.get(key, latest)
	return own || before || cached
}

func (t *tx) rebuild(key vault.Key) (*index, error) {
	t.store.mismatch(key)
	return nil, t.settled(errMismatch)
}

func (t *tx) swiftly() bool { return false }

func (t *tx) guess(key vault.Key) (int64, bool) {
	ix, err := t.find(key)
	if err != nil {
		return 0, false
	}
	return ix.id, true
}

func (t *tx) account(account vault.Account) (usage, error) {
	if t.failed != nil {
		return usage{}, t.failed
	}
	if u, known := t.own.accounts[account]; known {
		return u, nil
	}
	if u, known := t.batch.accounts[account]; known {
		return u, nil
	}
	if u, known := t.store.accounts.get(account, latest); known {
		return u, nil
	}
	u, err := t.loadAccount(account)
	if err == nil {
		t.batch.accounts[account] = u
	}
	return u, err
}

// write carries out a statement that changes the database; the first one of
// the transaction sets its savepoint.
func (t *tx) write(doing string, s statement, args ...any) (result sql.Result, err error) {
	err = t.run(doing, func() error {
		if !t.dirty {
			if _, err := t.conn.exec(t.ctx, savepoint); err != nil {
				return err
			}
			t.dirty = true
		}
		result, err = t.conn.exec(t.ctx, s, args...)
		return err
	})
	return result, err
}

// change returns a copy of the vault's index to change, and the account's
// usage. Both count once keep has been called.
func (t *tx) change(key vault.Key) (*index, usage, error) {
	ix, err := t.find(key)
	if err != nil {
		return nil, usage{}, err
	}
	u, err := t.account(key.Account)
	if err != nil {
		return nil, usage{}, err
	}
	ix = ix.clone()
	ix.trim()
	return ix, u, nil
}

func (t *tx) keep(key vault.Key, ix *index, u usage) {
	t.own.vaults[key] = ix
	t.own.accounts[key.Account] = u
}

// advance gives a vault its next revision, and notes the first of this run.
func (t *tx) advance(ix *index) (vault.Revision, error) {
	revision := ix.state.Revision + 1
	if ix.state.Run != t.store.run {
		_, err := t.write("note the run", insertRun, ix.id, int64(revision), int64(t.store.run))
		if err != nil {
			return 0, err
		}
		ix.began(vault.RunStart{First: revision, Run: t.store.run})
	}
	ix.state.Revision = revision
	return revision, nil
}

// Create implements vault.Tx.
func (t *tx) Create(key vault.Key, config vault.Config) (vault.Vault, error) {
	switch _, err := t.find(key); {
	case err == nil:
		return vault.Vault{}, vault.ErrVaultExists
	case !errors.Is(err, vault.ErrNoVault):
		return vault.Vault{}, err
	}
	u, err := t.account(key.Account)
	if err != nil {
		return vault.Vault{}, err
	}
	text, err := json.Marshal(config)
	if err != nil {
		return vault.Vault{}, err
	}
	state := vault.Vault{Key: key, Config: config, Created: time.Now().UTC().Truncate(time.Millisecond)}
	rand.Read(state.Epoch[:])
	result, err := t.write("create a vault", insertVault, string(key.Account), key.Node,
		state.Epoch[:], string(text), state.Created.UnixMilli(), 1)
	if err != nil {
		return vault.Vault{}, err
	}
	id, err := result.LastInsertId()
	if err != nil {
		return vault.Vault{}, failure("create a vault", err)
	}
	ix := newIndex(id, state)
	if _, err := t.advance(ix); err != nil {
		return vault.Vault{}, err
	}
	u.Vaults++
	t.keep(key, ix, u)
	return ix.state, nil
}

// Configure implements vault.Tx.
func (t *tx) Configure(key vault.Key, config vault.Config) (vault.Revision, error) {
	ix, u, err := t.change(key)
	if err != nil {
		return 0, err
	}
	text, err := json.Marshal(config)
	if err != nil {
		return 0, err
	}
	revision, err := t.advance(ix)
	if err != nil {
		return 0, err
	}
	if _, err := t.write("configure a vault", configureVault, string(text), int64(revision), ix.id); err != nil {
		return 0, err
	}
	ix.configure(config)
	t.keep(key, ix, u)
	return revision, nil
}

// Delete implements vault.Tx.
func (t *tx) Delete(key vault.Key) error {
	ix, u, err := t.change(key)
	if err != nil {
		return err
	}
	for _, s := range []statement{endEpochs, discardVaultsBatches, deleteSubscribers, deleteAffiliated, discardVault} {
		if _, err := t.write("delete a vault", s, ix.id); err != nil {
			return err
		}
	}
	u.Vaults--
	u.follow(ix.state, vault.Vault{})
	t.keep(key, nil, u)
	return nil
}

// Put implements vault.Tx.
func (t *tx) Put(key vault.Key, record vault.Record) (vault.Revision, error) {
	ix, u, err := t.change(key)
	if err != nil {
		return 0, err
	}
	old, _ := ix.find(record.ID)
	slot, free := ix.freeSlot()
	if old != nil && !old.gone {
		slot, free = old.slot, true
	}
	if !free {
		return 0, errWide
	}
	if record.Revision, err = t.advance(ix); err != nil {
		return 0, err
	}
	if err := t.putRow(ix, old, slot, record); err != nil {
		return 0, err
	}
	before := ix.state
	if old != nil {
		ix.remove(old)
	}
	ix.add(live(slot, record))
	u.follow(before, ix.state)
	t.keep(key, ix, u)
	return record.Revision, nil
}

func (t *tx) putRow(ix *index, old *entry, slot uint16, record vault.Record) error {
	const doing = "save a record"
	payload := record.Payload.Data
	if payload == nil {
		payload = []byte{} // nil would be NULL
	}
	args := []any{int64(record.Revision), int64(record.KeyVersion), int64(record.Payload.Form),
		string(record.Publisher), record.Published.UnixMilli(),
		int64(record.RotatedFrom), payload, ix.row(slot)}
	if old != nil && !old.gone {
		_, err := t.write(doing, updateRecord, args...)
		return err
	}
	if old != nil {
		if _, err := t.write(doing, deleteTombstone, ix.id, int64(old.revision)); err != nil {
			return err
		}
	}
	if ix.purged > 0 {
		if _, err := t.write(doing, clearPlace, ix.row(slot), ix.id, record.ID, int64(ix.purged)); err != nil {
			return err
		}
	}
	_, err := t.write(doing, insertRecord, append(args, ix.id, record.ID)...)
	return err
}

// Retract implements vault.Tx.
func (t *tx) Retract(key vault.Key, id string) (vault.Revision, error) {
	const doing = "retract a record"
	ix, u, err := t.change(key)
	if err != nil {
		return 0, err
	}
	old, found := ix.find(id)
	if !found || old.gone {
		return 0, vault.ErrNoRecord
	}
	revision, err := t.advance(ix)
	if err != nil {
		return 0, err
	}
	if _, err := t.write(doing, deleteRecord, ix.row(old.slot)); err != nil {
		return 0, err
	}
	if _, err := t.write(doing, insertTombstone, ix.id, int64(revision), id); err != nil {
		return 0, err
	}
	before := ix.state
	ix.remove(old)
	ix.add(tombstone(id, revision))
	u.follow(before, ix.state)
	t.keep(key, ix, u)
	return revision, nil
}

// AfterCommit implements vault.Tx.
func (t *tx) AfterCommit(f func()) { t.hooks = append(t.hooks, f) }
