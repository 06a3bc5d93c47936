package pep

import (
	"context"

	"pepvault/vault"
)

// Sender is the device that asks, as the host stamped it.
type Sender struct {
	Account  vault.Account // prepared
	Address  string        // the full JID, verbatim: answers and events go there
	Resource string        // the part behind the "/", verbatim; never empty
}

// Request is one get or set of a device.
type Request struct {
	Sender Sender
	// Owner is whose vaults are meant: the sender's account, or the account
	// that an explicit address names (XEP-0106).
	Owner vault.Account
	Op    Op
}

// Op is one of the operations below.
type Op interface {
	// target tells which vault the sender needs which right to.
	target() (node string, act action)
	// do is Engine.Do for this operation, which is that of req.
	do(ctx context.Context, e *Engine, req Request, done func(Outcome)) error
}

// Publish stores records, all or none (XEP-0060 §7.1, §12.11). The vault is
// made if it is absent.
type Publish struct {
	Node  string
	Items []Item // at least one
	// Options are preconditions, and the configuration of a vault that is
	// made (publish-options, XEP-0060 §7.1.5); nil = none.
	Options *Form
	// Expect is what the change relies on; nil = nothing.
	Expect *Expect
	// State asks for the <state/> of the change in the answer; Expect does too.
	State bool
	// Batch has the records staged, and nothing else is set; nil = stored.
	Batch *BatchRef
}

// Item is a record that a device wants stored.
type Item struct {
	ID         string // "" = the service makes one
	KeyVersion uint32
	Namespace  string // of the payload element
	Payload    vault.Payload
}

// Retract removes records, all or none (XEP-0060 §7.2).
type Retract struct {
	Node string
	IDs  []string // at least one
	// Notify has the removal told even where the vault mutes that.
	Notify bool
	// Expect is what the change relies on; nil = nothing.
	Expect *Expect
	// State asks for the <state/> of the change in the answer; Expect does too.
	State bool
	// Confirm says that the removal of nearly the whole vault is meant.
	Confirm bool
	// Batch has the removals staged, and nothing else is set; nil = made.
	Batch *BatchRef
}

// Items reads records (XEP-0060 §6.5): those of IDs, or the Max latest, or
// all of them, in pages where Page is set or the vault is larger than a
// stanza may be. With Max and Page, the pages are of the Max latest.
type Items struct {
	Node string
	IDs  []string // nil = all
	Max  int      // 0 = all
	Page *PageRequest
}

// PageRequest asks for a page of a result set (XEP-0059). At most one of
// After, Before, Last and Index is set.
type PageRequest struct {
	Max    int    // at most so many; negative = as many as fit; 0 = only the count (§2.7)
	After  string // the UID that the page follows; "" = from the start
	Before string // the UID that the page precedes; "" = not set
	Last   bool   // the last page: an empty <before/> (§2.5)
	Index  *int   // where the page begins, from 0 (§2.6)
}

// Create makes an empty vault (XEP-0060 §8.1).
type Create struct {
	Node   string // "" = the service makes up a name (an instant node)
	Config *Form  // nil = the default
}

// ReadConfig asks for the configuration of a vault, as a form to fill in
// (XEP-0060 §8.2.1).
type ReadConfig struct{ Node string }

// DefaultConfig asks for the configuration that a new vault has (XEP-0060
// §8.3).
type DefaultConfig struct{}

// Configure changes the configuration of a vault (XEP-0060 §8.2.4). Fields
// that are left out stay as they are.
type Configure struct {
	Node string
	Form Form
	// Cancel says that the owner closed the form: nothing changes.
	Cancel bool
}

// Purge removes all records of a vault (XEP-0060 §8.5).
type Purge struct{ Node string }

// Delete removes a vault and all that is in it (XEP-0060 §8.4).
type Delete struct{ Node string }

// Subscribe asks for the events of a vault (XEP-0060 §6.1). Asked again, it
// changes nothing and is answered the same.
type Subscribe struct {
	Node    string
	JID     string // as the device wrote it: its own bare or full JID
	Options *Form  // nil = none (§6.3.7)
}

// Unsubscribe ends a subscription (XEP-0060 §6.2).
type Unsubscribe struct {
	Node string
	JID  string
}

// ListSubscriptions asks which subscriptions the sender's account has to the
// owner's vaults, or to one of them (XEP-0060 §5.6).
type ListSubscriptions struct{ Node string } // "" = to any

// ReadOptions asks for the options of a subscription (XEP-0060 §6.3.2), or for
// those that a new one has (§6.4) if JID is "".
type ReadOptions struct{ Node, JID string }

// SetOptions changes the options of a subscription (XEP-0060 §6.3.5).
type SetOptions struct {
	Node, JID string
	Form      Form
	Cancel    bool
}

// ListAffiliations asks what the sender's account is to the owner's vaults, or
// to one of them (XEP-0060 §5.7).
type ListAffiliations struct{ Node string } // "" = to any

// ReadAffiliations asks who is affiliated with a vault (XEP-0060 §8.9.1).
type ReadAffiliations struct{ Node string }

// SetAffiliations changes who is affiliated with a vault, all or none
// (XEP-0060 §8.9.2).
type SetAffiliations struct {
	Node    string
	Changes []AffiliationChange // at least one
}

// AffiliationChange is one of a SetAffiliations.
type AffiliationChange struct {
	JID         string // as the device wrote it
	Affiliation string // likewise: "owner", "publisher", "member", "outcast", "none" or what is refused
}

// BatchRef names the open batch in which a change is staged (PROTOCOL §9).
type BatchRef struct {
	ID string
	// Cursor is the state that the device holds: the change is stale if its
	// record has changed since.
	Cursor string
}

// BeginBatch opens a batch: changes of a vault that are staged out of sight,
// with Publish and Retract, and made together (PROTOCOL §9). Asked again, it
// changes nothing and is answered the same.
type BeginBatch struct {
	Node   string
	ID     string // chosen by the device; see vault.ValidBatchID
	Cursor string // the state that the device holds
	// RotateTo makes the batch a key rotation: the key version that every record
	// has after it. 0 = it is none.
	RotateTo uint32
}

// Unstage takes changes out of a batch, as far as they are in it.
type Unstage struct {
	ID  string
	IDs []string // at least one
}

// CommitBatch makes all changes of a batch, or none. Asked again, it is answered
// the same until the batch expires.
type CommitBatch struct {
	ID      string
	Cursor  string // of the vault now: nothing may have changed since
	Changes int    // that are staged, as far as the device knows; 0 = not said
	Confirm bool   // the removal of nearly the whole vault is meant
}

// AbortBatch drops a batch. Asked again, it is answered the same until the
// batch expires.
type AbortBatch struct{ ID string }

// Erase removes all that the service has of the sender's account (PROTOCOL
// §10).
type Erase struct{}

// ListVaults lists the vaults of the owner that the sender may see (XEP-0060
// §5.2).
type ListVaults struct{ Page *PageRequest } // nil = all

// DescribeVault asks what a node is (XEP-0060 §5.3).
type DescribeVault struct{ Node string }

// DescribeService asks what the service is (XEP-0060 §5.1). The answer is the
// same for everybody.
type DescribeService struct{}
