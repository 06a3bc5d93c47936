package vault

import (
	"context"
	"errors"
)

// Faults that a store reports; compare with errors.Is.
var (
	ErrNoVault     = errors.New("no such vault")
	ErrNoRecord    = errors.New("no such record")
	ErrVaultExists = errors.New("vault exists")

	// ErrStorage is every failure of the store itself. Nothing of the
	// transaction is stored, and the store may work again later.
	ErrStorage = errors.New("storage failed")
	// ErrClosed says that the store has been closed.
	ErrClosed = errors.New("store is closed")
	// ErrInUse says that another process has the store.
	ErrInUse = errors.New("store is in use by another process")
	// ErrNewerSchema says that a newer version of the service wrote the store.
	ErrNewerSchema = errors.New("store was written by a newer version")
)

// Store keeps vaults. All methods may be called by many goroutines at once.
type Store interface {
	// Update runs fn in a write transaction and returns when that is on disk.
	// Transactions are serial; those of several callers may share one commit,
	// but each one's changes are kept or dropped alone.
	//
	// fn must be pure: it may run more than once, it does not wait, and it
	// does nothing but call tx, which it does not keep. An error of fn drops its changes and
	// is returned as it is; a panic of fn drops them and goes on in the
	// caller. A failure of the store is ErrStorage, also when it strikes after
	// fn has returned nil.
	//
	// key names the vault that fn is mostly about; the store prepares it
	// before the transaction begins. fn may touch others.
	//
	// ctx bounds only the wait for a place: a transaction that has begun is
	// carried out.
	Update(ctx context.Context, key Key, fn func(tx Tx) error) error

	// View runs fn on one consistent state that includes every Update that
	// has returned. fn does not keep v. It does not wait for writers.
	View(ctx context.Context, fn func(v View) error) error

	// Glance is View for an fn that is pure, since it may run more than once:
	// only its last run counts. For a few records it is much cheaper.
	Glance(ctx context.Context, fn func(v View) error) error

	// CursorKey signs the cursors of this store; it is made with the store.
	CursorKey() CursorKey

	// Run is the token of this opening of the store.
	Run() Run

	// Health returns nil if the store can be read and its latest write did
	// not fail, else why not. It heals by itself where that is possible.
	Health(ctx context.Context) error

	// Close waits for what has begun and closes the store. Later calls of any
	// method give ErrClosed.
	Close() error
}

// View reads a state of the store.
type View interface {
	// Vault returns the state of one vault, or ErrNoVault.
	Vault(key Key) (Vault, error)
	// Vaults returns the account's vaults, sorted by node.
	Vaults(account Account) ([]Vault, error)
	// Usage sums up what the account has stored.
	Usage(account Account) (Usage, error)
	// Records returns those of the ids that exist, in the order of ids, each
	// once; ErrNoVault.
	Records(key Key, ids []string) ([]Record, error)
	// Heads tells what is known of each id, in the order of ids, without
	// reading a payload; ErrNoVault.
	Heads(key Key, ids []string) ([]Head, error)
	// Latest returns the records that changed last, the oldest change first;
	// More says that older ones were left out. limit.Live is not read: there
	// are no tombstones in it. ErrNoVault.
	Latest(key Key, limit PageLimit) (Page, error)
	// Changes returns what has a revision above after, in the order of
	// revisions; ErrNoVault.
	Changes(key Key, after Revision, limit PageLimit) (Page, error)
	// Subscriptions returns the stored subscriptions of a vault, sorted;
	// ErrNoVault. Every write asks for them, so an adapter keeps them in
	// memory beside the order of the records.
	Subscriptions(key Key) ([]Subscription, error)
	// Resources returns all stored resources, sorted by account and name.
	Resources() ([]Resource, error)
}

// PageLimit bounds a page. A page holds at least one change, whatever its
// size, unless there is none.
type PageLimit struct {
	Records int  // at least 1
	Cost    int  // sum of Record.Cost, a tombstone counting as a record without payload; at least 1
	Live    bool // leave tombstones out
}

// Page is a run of changes.
type Page struct {
	Changes []Change
	More    bool // there are further ones
}

// Tx changes the store. It reads its own changes.
type Tx interface {
	View

	// Create makes an empty vault with a new epoch; this takes revision 1.
	// ErrVaultExists.
	Create(key Key, config Config) (Vault, error)
	// Configure replaces the configuration; this takes a revision. ErrNoVault.
	Configure(key Key, config Config) (Revision, error)
	// Delete removes the vault and all that belongs to it. Its epoch is kept
	// as an ended one. ErrNoVault.
	Delete(key Key) error
	// Put stores a record under the next revision, which it returns;
	// record.Revision is not read. An older record or tombstone of that id is
	// replaced. ErrNoVault.
	Put(key Key, record Record) (Revision, error)
	// Retract replaces a record by a tombstone under the next revision.
	// ErrNoVault, ErrNoRecord.
	Retract(key Key, id string) (Revision, error)
	// Prune forgets the oldest tombstones until at most keep are left, and
	// remembers the highest one that it forgot. ErrNoVault.
	Prune(key Key, keep int) error
	// Subscribe stores a subscription, once. ErrNoVault.
	Subscribe(key Key, s Subscription) error
	// Unsubscribe removes a subscription and reports whether there was one.
	// ErrNoVault.
	Unsubscribe(key Key, s Subscription) (bool, error)

	// KeepResource stores a resource in the place of one of that account and
	// name.
	KeepResource(r Resource) error
	// DropResource removes a resource if it is there.
	DropResource(account Account, name string) error

	// AfterCommit has f called once the transaction is on disk and visible
	// to every View, before the Update that it belongs to returns; never if
	// it fails. All such calls are made one after another in the order of
	// the transactions. f must not block, panic or use the store.
	AfterCommit(f func())
}
