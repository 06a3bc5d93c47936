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
	// Tombstones counts the removals that are not forgotten yet.
	Tombstones int
}

// Size is what a vault holds, without what its records are.
type Size struct {
	Key        Key
	Revision   Revision // of the latest change
	Records    int
	Bytes      int64 // sum of the payloads
	Tombstones int
}

// Config is what the owner may set about a vault. The zero value is the
// default; a field that has no freedom is not here.
type Config struct {
	Title string `json:"title,omitempty"`
	// Type is the namespace that every payload must have; "" = any (XEP-0060
	// §7.1.3.6).
	Type string `json:"type,omitempty"`
	// MaxItems bounds the records; 0 = as many as the service allows. The
	// service's own bound holds beside it.
	MaxItems int `json:"max_items,omitempty"`
	// EvictOldest has a full vault make room for a new record by retracting
	// the one whose change is the oldest, instead of refusing the new one.
	EvictOldest bool `json:"evict_oldest,omitempty"`
	// SendLast says when a device is sent the record that changed last.
	SendLast SendLast `json:"send_last,omitempty"`
	// KeyVersionFloor is the lowest key version that may be stored. It never
	// falls.
	KeyVersionFloor uint32 `json:"key_version_floor,omitempty"`
	// What is muted is told by its state alone.
	MuteRetract  bool `json:"mute_retract,omitempty"`
	MuteDelete   bool `json:"mute_delete,omitempty"`
	MuteConfig   bool `json:"mute_config,omitempty"`
	MutePayloads bool `json:"mute_payloads,omitempty"` // events name the records only
	MuteAll      bool `json:"mute_all,omitempty"`      // every event
}

// SendLast says when the record that changed last is sent unasked
// (pubsub#send_last_published_item).
type SendLast uint8

const (
	SendNever SendLast = iota
	SendOnSubscription
	SendOnSubscriptionAndPresence
)

// Affiliation is what an account is to a vault (XEP-0060 §4.1).
type Affiliation uint8

const (
	NotAffiliated Affiliation = iota
	Outcast
	Member    // reads
	Publisher // reads and writes
	// Owner is the account whose vault it is. It is never stored.
	Owner
)

// Affiliated is an account with its affiliation to one vault.
type Affiliated struct {
	Account     Account
	Affiliation Affiliation
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
	// Owners are those for whose vaults it is present, sorted: its own account
	// if it told the service, others if it told their explicit addresses.
	Owners []Account
	Vaults []Key  // that it subscribed by full JID, sorted by account and node
	Caps   string // the Hash of its verified Capabilities; "" = not known
}

// Capabilities is what clients that announce one verified hash can do, as far
// as it matters here (XEP-0115, XEP-0390).
type Capabilities struct {
	Hash  string    // "0115:" or "0390:", the algorithm's name, a colon, and the digest in base64
	Nodes []string  // for which they want events ("+notify"), sorted
	Sync  bool      // whether they follow states: the feature urn:pepvault:sync:0
	Used  time.Time // when a client last announced it; UTC, whole milliseconds
}

// Usage is what an account has stored.
type Usage struct {
	Vaults  int
	Records int
	Bytes   int64 // sum of all payloads
}

// Totals is what all accounts have together.
type Totals struct{ Vaults, Records int }

// Limits are the bounds that the service sets; each is at least 1 unless it
// says otherwise.
type Limits struct {
	Records          int   // per vault
	RecordBytes      int   // per payload
	Vaults           int   // per account
	AccountBytes     int64 // sum of an account's payloads
	TombstonesFactor int   // tombstones per vault = factor × Records
	Subscriptions    int   // per vault
	Affiliations     int   // per vault, the owner's not counted
	Resources        int   // known at a time, per account
	Capabilities     int   // remembered, in all
	ForeignPayloads  bool  // whether payloads that are not ours are taken
	Batches          int   // open ones, per account that began them
	StagedBytes      int64 // sum of the payloads in an account's batches
	BatchExpiry      time.Duration
	// A change that removes more than MassDeleteShare of a vault, from 0 to 1,
	// and more than MassDeleteMin records has to be confirmed. A share of 0
	// stands for no such bound.
	MassDeleteShare float64
	MassDeleteMin   int
}
