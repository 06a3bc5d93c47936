package pep

import (
	"time"

	"pepvault/vault"
)

// Answer is one of the answers below.
type Answer interface{ answer() }

// Published answers Publish.
type Published struct {
	Node  string
	IDs   []string // in the order of the request
	State *State   // if asked for
}

// Retracted answers Retract.
type Retracted struct {
	State *State // if asked for
}

// Deleted answers Delete.
type Deleted struct{}

// ItemsPage answers Items.
type ItemsPage struct {
	Node    string
	Records []vault.Record // the oldest change first
	// Set is there if the request named a page, or if the records are only
	// the first page of a vault that is larger than a stanza may be.
	Set *ResultSet
}

// ResultSet tells where a page stands (XEP-0059 §2).
type ResultSet struct {
	First, Last string // UIDs; "" on an empty page
	Index       int    // of First in the whole set; not read on an empty page
	Count       int    // of the whole set
}

// Created answers Create.
type Created struct{ Node string }

// ConfigForm answers ReadConfig and DefaultConfig.
type ConfigForm struct {
	Node string // "" for the default
	Form Form
}

// Configured answers Configure.
type Configured struct{}

// Purged answers Purge.
type Purged struct{}

// Subscribed answers Subscribe.
type Subscribed struct {
	Node string
	JID  string // prepared bare part, verbatim resource
}

// Unsubscribed answers Unsubscribe.
type Unsubscribed struct{}

// SubscriptionList answers ListSubscriptions.
type SubscriptionList struct {
	Node string       // as asked
	List []Subscribed // sorted by node and JID
}

// OptionsForm answers ReadOptions.
type OptionsForm struct {
	Node, JID string // as asked
	Form      Form
}

// OptionsSet answers SetOptions.
type OptionsSet struct{}

// AffiliationList answers ListAffiliations: what the sender is to each vault.
type AffiliationList struct {
	Node string            // as asked
	List []NodeAffiliation // sorted by node
}

// NodeAffiliation is the sender's affiliation to one vault.
type NodeAffiliation struct {
	Node        string
	Affiliation vault.Affiliation
}

// VaultAffiliations answers ReadAffiliations; the owner is in it.
type VaultAffiliations struct {
	Node string
	List []vault.Affiliated // sorted by account
}

// AffiliationsSet answers SetAffiliations.
type AffiliationsSet struct{}

// VaultList answers ListVaults.
type VaultList struct {
	Vaults []vault.Vault // sorted by node
	Set    *ResultSet    // if the request named a page, or not all fit
}

// VaultInfo answers DescribeVault.
type VaultInfo struct {
	Node  string
	Title string // "" = none
	Forms []Form // pubsub#meta-data and urn:pepvault:usage:0 (XEP-0128)
}

// ServiceInfo answers DescribeService.
type ServiceInfo struct {
	// Name is the service's name for people; the engine leaves it to whoever
	// answers.
	Name string
	// Features are those of XEP-0060 §10 that work, without the prefix
	// "http://jabber.org/protocol/pubsub#", sorted.
	Features []string
	// Others are further features, in full, sorted.
	Others []string
	Forms  []Form // urn:pepvault:limits:0; whoever answers may add some
}

// Begun answers BeginBatch.
type Begun struct {
	ID      string
	Expires time.Time // UTC, whole seconds
}

// Unstaged answers Unstage.
type Unstaged struct{}

// Committed answers CommitBatch. Its state names no records: the device reads
// what it made by a sync from State.Previous.
type Committed struct{ State State }

// Aborted answers AbortBatch.
type Aborted struct{}

// Erased answers Erase, and Engine.Erase.
type Erased struct{ Vaults, Records int }

// Later answers a request whose answer is large: Read reads it when the turn
// of bulk traffic has come, and again from the state of that moment. Its
// error is one that Engine.Do could have given.
type Later struct {
	Cost int // about how many bytes the answer will take
	Read func() (Answer, error)
}

func (Published) answer()         {}
func (Retracted) answer()         {}
func (Created) answer()           {}
func (ConfigForm) answer()        {}
func (Configured) answer()        {}
func (Purged) answer()            {}
func (Deleted) answer()           {}
func (ItemsPage) answer()         {}
func (Subscribed) answer()        {}
func (Unsubscribed) answer()      {}
func (SubscriptionList) answer()  {}
func (OptionsForm) answer()       {}
func (OptionsSet) answer()        {}
func (AffiliationList) answer()   {}
func (VaultAffiliations) answer() {}
func (AffiliationsSet) answer()   {}
func (VaultList) answer()         {}
func (VaultInfo) answer()         {}
func (ServiceInfo) answer()       {}
func (Erased) answer()            {}
func (Begun) answer()             {}
func (Unstaged) answer()          {}
func (Committed) answer()         {}
func (Aborted) answer()           {}
func (Later) answer()             {}

// NoCursor is the cursor of a device that holds nothing.
const NoCursor = "none"

// State is the <state/> of a commit: which vault went from which cursor to
// which, and by what changes.
type State struct {
	Owner    vault.Account
	Node     string
	Previous string // signed cursor, NoCursor for a vault that the commit made
	Cursor   string // signed cursor; "" if the commit deleted the vault
	Items    []StateItem
}

// StateItem names one record of a change.
type StateItem struct {
	ID       string
	Revision vault.Revision
	Gone     bool
}

// Event is what one commit did to a vault: Changes, Purged, Config or Deleted
// says what; a key rotation has Changes and Config. With none of them it tells
// the state alone: that of a vault that was made empty or, without a Previous,
// where a vault stands.
type Event struct {
	Owner   vault.Account
	Node    string
	Changes []vault.Change // in the order of revisions
	Purged  bool
	Config  *Form // the new configuration
	Deleted bool
	// Batch marks the changes of a batch: a device that follows states gets the
	// state alone, even of a single one.
	Batch bool
	// Muted has the vault's configuration keep the event back: everybody gets
	// the state alone.
	Muted bool
	// Bare has the configuration keep the payloads back.
	Bare bool
	// Past marks the last record of a vault, which is sent to who comes: it was
	// published earlier (XEP-0203), at Changes[0].Published.
	Past  bool
	State State
}

// Notice is an event on its way to one address.
type Notice struct {
	To      string        // a full JID, verbatim, or a bare one
	Account vault.Account // whose address that is
	Event   *Event        // shared by the notices of a commit
	// Quiet leaves the payloads out: a bare JID may belong to clients that
	// have nothing to do with vaults.
	Quiet bool
	// StateOnly leaves the event out: the device follows states, and nobody
	// should show a part of a change of several records (PROTOCOL §6).
	StateOnly bool
}
