package vault

import "time"

// Key names a vault: every account has a name space of its own.
type Key struct {
	Account Account
	Node    string
}

// Epoch is a random token for one history of a vault: re-creation, erase,
// restore and rollback begin a new one.
type Epoch [10]byte

// Run is a random token for one start of the service on a store.
type Run uint64

// Vault is the state of a vault at one moment.
type Vault struct {
	Key      Key
	Epoch    Epoch
	Revision Revision // of the latest change
	Run      Run      // the run that committed Revision
	Pruned   Revision // the highest tombstone that was forgotten; 0 = none
	Config   Config
	Created  time.Time // UTC, whole milliseconds
	Records  int
	Bytes    int64 // sum of the payloads
	Cost     int64 // sum of the records' Cost
}

// Config is what the owner may set about a vault. The zero value is the
// default; a field that has no freedom is not here.
type Config struct {
	Title string `json:"title,omitempty"`
}

// Subscription asks for the events of a vault. Only subscriptions of a bare
// JID are kept in the store: one of a full JID ends with its presence.
type Subscription struct {
	Account Account
}

// Resource is a resource of an account that the service knows of: it has sent
// directed presence, and no word came that it is gone.
type Resource struct {
	Account Account
	Name    string    // the part behind the "/", verbatim
	Address string    // the full JID, verbatim
	Seen    time.Time // when it was last heard of; UTC, whole milliseconds
	Nodes   []string  // the account's vaults that it subscribed by full JID, sorted; nil = none
}

// Usage is what an account has stored.
type Usage struct {
	Vaults int
	Bytes  int64 // sum of all payloads
}

// Limits are the bounds that the service sets; all are at least 1.
type Limits struct {
	Records          int   // per vault
	RecordBytes      int   // per payload
	Vaults           int   // per account
	AccountBytes     int64 // sum of an account's payloads
	TombstonesFactor int   // tombstones per vault = factor × Records
	Subscriptions    int   // per vault
	Resources        int   // known at a time, per account
	ForeignPayloads  bool  // whether payloads that are not ours are taken
}
