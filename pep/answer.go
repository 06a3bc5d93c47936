package pep

import "pepvault/vault"

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
	Count       int    // of the whole set
}

// Subscribed answers Subscribe.
type Subscribed struct {
	Node string
	JID  string // prepared bare part, verbatim resource
}

// Unsubscribed answers Unsubscribe.
type Unsubscribed struct{}

// VaultList answers ListVaults.
type VaultList struct {
	Vaults []vault.Vault // sorted by node
}

// VaultInfo answers DescribeVault.
type VaultInfo struct {
	Vault vault.Vault
}

// ServiceInfo answers DescribeService.
type ServiceInfo struct {
	// Name is the service's name for people; the engine leaves it to whoever
	// answers.
	Name string
	// Features are those of XEP-0060 §10 that work, without the prefix
	// "http://jabber.org/protocol/pubsub#", sorted.
	Features []string
}

// Later answers a request whose answer is large: Read reads it when the turn
// of bulk traffic has come, and again from the state of that moment. Its
// error is one that Engine.Do could have given.
type Later struct {
	Cost int // about how many bytes the answer will take
	Read func() (Answer, error)
}

func (Published) answer()    {}
func (Retracted) answer()    {}
func (Deleted) answer()      {}
func (ItemsPage) answer()    {}
func (Subscribed) answer()   {}
func (Unsubscribed) answer() {}
func (VaultList) answer()    {}
func (VaultInfo) answer()    {}
func (ServiceInfo) answer()  {}
func (Later) answer()        {}

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

// Event is what one commit did to a vault: Changes or Deleted says what. With
// neither it tells the state alone, which has then no Previous.
type Event struct {
	Owner   vault.Account
	Node    string
	Changes []vault.Change // in the order of revisions
	Deleted bool
	State   State
}

// Notice is an event on its way to one address.
type Notice struct {
	To    string // a full JID, verbatim, or a bare one
	Event *Event // shared by the notices of a commit
	// Quiet leaves the payloads out: a bare JID may belong to clients that
	// have nothing to do with vaults.
	Quiet bool
}
