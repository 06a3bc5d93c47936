package pep

import "pepvault/vault"

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
type Op interface{ action() action }

// Publish stores records, all or none (XEP-0060 §7.1, §12.11). The vault is
// made if it is absent.
type Publish struct {
	Node  string
	Items []Item // at least one
	// State asks for the <state/> of the change in the answer.
	State bool
}

// Item is a record that a device wants stored.
type Item struct {
	ID         string // "" = the service makes one
	KeyVersion uint32
	Payload    vault.Payload
}

// Retract removes records, all or none (XEP-0060 §7.2).
type Retract struct {
	Node string
	IDs  []string // at least one
	// State asks for the <state/> of the change in the answer.
	State bool
}

// Items reads records (XEP-0060 §6.5): those of IDs, or the Max latest, or
// all of them, in pages where Page is set or the vault is larger than a
// stanza may be.
type Items struct {
	Node string
	IDs  []string // nil = all
	Max  int      // 0 = all
	Page *PageRequest
}

// PageRequest asks for a page of a result set (XEP-0059).
type PageRequest struct {
	Max   int    // at most so many; negative = as many as fit
	After string // the UID that the page follows; "" = from the start
}

// Delete removes a vault and all that is in it (XEP-0060 §8.4).
type Delete struct{ Node string }

// Subscribe asks for the events of a vault (XEP-0060 §6.1).
type Subscribe struct {
	Node string
	JID  string // as the device wrote it: its own bare or full JID
}

// Unsubscribe ends a subscription (XEP-0060 §6.2).
type Unsubscribe struct {
	Node string
	JID  string
}

// ListVaults lists the vaults of the owner that the sender may see (XEP-0060
// §5.2).
type ListVaults struct{}

// DescribeVault asks what a node is (XEP-0060 §5.3).
type DescribeVault struct{ Node string }

// DescribeService asks what the service is (XEP-0060 §5.1). The answer is the
// same for everybody.
type DescribeService struct{}
