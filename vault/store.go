package vault

import (
	"context"
	"errors"
	"time"
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
	// Accounts returns those that own a vault, sorted.
	Accounts() ([]Account, error)
	// Vaults returns the account's vaults, sorted by node.
	Vaults(account Account) ([]Vault, error)
	// Sizes tells what each of the account's vaults holds, sorted by node. It is
	// counted: unlike Vaults it takes nothing of the account into memory.
	Sizes(account Account) ([]Size, error)
	// Shared returns those of the owner's vaults with which another account is
	// affiliated, in whatever way, sorted by node. It costs no more the larger
	// they are.
	Shared(owner, with Account) ([]Key, error)
	// Totals counts what all accounts have together. It reads no payload, but
	// passes every record's name: it is for now and then.
	Totals() (Totals, error)
	// Usage sums up what the account has stored.
	Usage(account Account) (Usage, error)
	// Records returns those of the ids that exist, in the order of ids, each
	// once; ErrNoVault.
	Records(key Key, ids []string) ([]Record, error)
	// Heads tells what is known of each id, in the order of ids, without
	// reading a payload; ErrNoVault.
	Heads(key Key, ids []string) ([]Head, error)
	// Latest returns the records that changed last before revision below (0 =
	// up to now), the oldest change first; More says that older ones were left
	// out. limit.Live is not read: there are no tombstones in it. ErrNoVault.
	Latest(key Key, below Revision, limit PageLimit) (Page, error)
	// Changes returns what has a revision above after, in the order of
	// revisions; ErrNoVault.
	Changes(key Key, after Revision, limit PageLimit) (Page, error)
	// Rank tells how many records have a revision below r. ErrNoVault.
	Rank(key Key, r Revision) (int, error)
	// Nth returns the revision of the record that n others precede in the
	// order of revisions; 0 if there are not so many. ErrNoVault.
	Nth(key Key, n int) (Revision, error)
	// KeyVersions returns the lowest and the highest key version among the
	// records; 0 and 0 for an empty vault. ErrNoVault.
	KeyVersions(key Key) (low, high uint32, err error)
	// Subscriptions returns the stored subscriptions of a vault, sorted;
	// ErrNoVault. Every write asks for them, so an adapter keeps them in
	// memory beside the order of the records.
	Subscriptions(key Key) ([]Subscription, error)
	// Runs tells which run committed which revision of the vault; ErrNoVault.
	// They are in memory too.
	Runs(key Key) (Runs, error)
	// Forked looks for an earlier epoch of the vault: up to fork its history is
	// known to be the vault's. known is false if it never had that epoch. ErrNoVault.
	Forked(key Key, epoch Epoch) (fork Revision, known bool, err error)
	// Ended tells whether an epoch was ended by Delete, of whatever vault.
	Ended(epoch Epoch) (bool, error)
	// Affiliations returns who is affiliated with a vault beside its owner,
	// sorted by account; ErrNoVault. Like subscriptions they are in memory.
	Affiliations(key Key) ([]Affiliated, error)
	// Inventory returns the heads of all records, the oldest change first;
	// ErrNoVault.
	Inventory(key Key) ([]Head, error)
	// Batch returns a batch, also one that has ended or expired; ErrNoBatch.
	Batch(key BatchKey) (Batch, error)
	// Batches returns those that the account began, the oldest first.
	Batches(account Account) ([]Batch, error)
	// Staged returns the changes in a batch in the order in which they came,
	// none if it has ended; ErrNoBatch.
	Staged(key BatchKey) ([]Staged, error)
	// StagedPayload returns the payload of a staged record; ErrNoBatch,
	// ErrNoRecord.
	StagedPayload(key BatchKey, id string) (Payload, error)
	// Resources returns all stored resources, sorted by account and name.
	Resources() ([]Resource, error)
	// Capabilities returns all that are stored, sorted by hash.
	Capabilities() ([]Capabilities, error)
}

// PageLimit bounds a page. A page holds at least one change, whatever its
// size, unless there is none.
type PageLimit struct {
	Records   int      // at least 1
	Cost      int      // sum of Record.Cost, a tombstone counting as a record without payload; at least 1
	Live      bool     // leave tombstones out
	GoneAbove Revision // leave tombstones out that lie at or below this one
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
	// Fork gives the vault a new epoch and keeps the one before, with the
	// revision up to which its history is known to be the vault's, whoever asks
	// (0 = nothing is). Open batches of the vault are dropped. This takes no
	// revision. ErrNoVault.
	Fork(key Key, shared Revision) (Vault, error)
	// Delete removes the vault and all that belongs to it. Its epoch and those
	// before are kept as ended ones. It costs the same for every size of vault:
	// what is removed, here and elsewhere, is out of sight and counts no more; a
	// store frees the room for it in the background. ErrNoVault.
	Delete(key Key) error
	// Put stores a record under the next revision, which it returns;
	// record.Revision is not read. An older record or tombstone of that id is
	// replaced. ErrNoVault.
	Put(key Key, record Record) (Revision, error)
	// Retract replaces a record by a tombstone under the next revision.
	// ErrNoVault, ErrNoRecord.
	Retract(key Key, id string) (Revision, error)
	// Purge replaces every record by a tombstone, the oldest change first,
	// each under the next revision, and returns the tombstones. ErrNoVault.
	Purge(key Key) ([]Change, error)
	// Prune forgets the oldest tombstones until at most keep are left, and
	// remembers the highest one that it forgot. ErrNoVault.
	Prune(key Key, keep int) error
	// Subscribe stores a subscription, once. ErrNoVault.
	Subscribe(key Key, s Subscription) error
	// Unsubscribe removes a subscription and reports whether there was one.
	// ErrNoVault.
	Unsubscribe(key Key, s Subscription) (bool, error)

	// BeginBatch stores an empty, open batch; of b, Changes, Bytes and Outcome
	// are not read. ErrNoVault, ErrBatchExists.
	BeginBatch(b Batch) error
	// Stage adds a change to an open batch, in the place of one of that record
	// id; s.Bytes is not read, and a removal has no payload. ErrNoBatch.
	Stage(key BatchKey, s Staged, p Payload) error
	// Unstage removes those of the changes that are there. ErrNoBatch if the
	// batch is not open.
	Unstage(key BatchKey, ids []string) error
	// EndBatch drops what is staged in an open batch and remembers how it ended.
	// ErrNoBatch.
	EndBatch(key BatchKey, outcome BatchOutcome) error
	// DropBatch removes a batch and all that is staged in it, if it is there.
	DropBatch(key BatchKey) error
	// Expire removes batches that have expired at now, at most n of them. more
	// tells whether something is left.
	Expire(now time.Time, n int) (more bool, err error)

	// Affiliate sets what an account is to a vault. NotAffiliated and Outcast
	// end its subscription too, and all but Publisher end its batches there.
	// Owner is not for this: it panics. ErrNoVault.
	Affiliate(key Key, a Affiliated) error
	// Withdraw ends the account's affiliations and subscriptions everywhere
	// but in its own vaults, and returns the vaults concerned.
	Withdraw(account Account) ([]Key, error)

	// KeepResource stores a resource in the place of one of that account and
	// name.
	KeepResource(r Resource) error
	// DropResource removes a resource if it is there.
	DropResource(account Account, name string) error

	// ForgetResources removes all resources of an account.
	ForgetResources(account Account) error
	// KeepCapabilities stores capabilities in the place of those of that hash.
	KeepCapabilities(c Capabilities) error
	// DropCapabilities removes capabilities if they are there.
	DropCapabilities(hash string) error

	// AfterCommit has f called once the transaction is on disk and visible
	// to every View, before the Update that it belongs to returns; never if
	// it fails. All such calls are made one after another in the order of
	// the transactions. f must not block, panic or use the store.
	AfterCommit(f func())
}
