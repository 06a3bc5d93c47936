package pep

import (
	"context"
	"errors"

	"pepvault/vault"
)

// action is a kind of operation, as far as rights go.
type action uint8

const (
	anybody   action = iota // the answer holds no more than the sender may know
	read                    // of records
	write                   // of records
	subscribe               // to a vault's events
	describe                // what a node is
	own                     // all that is the owner's alone
)

// target says on which node an operation works, "" for none or a new one, and
// what kind of operation it is.
func (op Publish) target() (string, action)           { return op.Node, write }
func (op Retract) target() (string, action)           { return op.Node, write }
func (op Items) target() (string, action)             { return op.Node, read }
func (op Sync) target() (string, action)              { return op.Node, read }
func (op Download) target() (string, action)          { return op.Node, read }
func (op Create) target() (string, action)            { return op.Node, own }
func (op ReadConfig) target() (string, action)        { return op.Node, own }
func (op DefaultConfig) target() (string, action)     { return "", anybody }
func (op Configure) target() (string, action)         { return op.Node, own }
func (op Purge) target() (string, action)             { return op.Node, own }
func (op Delete) target() (string, action)            { return op.Node, own }
func (op Subscribe) target() (string, action)         { return op.Node, subscribe }
func (op Unsubscribe) target() (string, action)       { return op.Node, subscribe }
func (op ReadOptions) target() (string, action)       { return op.Node, subscribe }
func (op SetOptions) target() (string, action)        { return op.Node, subscribe }
func (op ListSubscriptions) target() (string, action) { return op.Node, anybody }
func (op ListAffiliations) target() (string, action)  { return op.Node, anybody }
func (op ReadAffiliations) target() (string, action)  { return op.Node, own }
func (op SetAffiliations) target() (string, action)   { return op.Node, own }
func (op BeginBatch) target() (string, action) {
	if op.RotateTo > 0 {
		return op.Node, own
	}
	return op.Node, write
}

// These name no node: who began a batch, and what that account may do to its
// vault, is looked up with the batch.
func (op Unstage) target() (string, action)     { return "", anybody }
func (op CommitBatch) target() (string, action) { return "", anybody }
func (op AbortBatch) target() (string, action)  { return "", anybody }

func (op Erase) target() (string, action)           { return "", own }
func (op DescribeVault) target() (string, action)   { return op.Node, describe }
func (op ListVaults) target() (string, action)      { return "", anybody }
func (op DescribeService) target() (string, action) { return "", anybody }

// rights says which affiliation may do what. What is not here is refused.
var rights = map[vault.Affiliation]map[action]bool{
	vault.Owner:         {anybody: true, read: true, write: true, subscribe: true, describe: true, own: true},
	vault.Publisher:     {anybody: true, read: true, write: true, subscribe: true, describe: true},
	vault.Member:        {anybody: true, read: true, subscribe: true, describe: true},
	vault.Outcast:       {anybody: true},
	vault.NotAffiliated: {anybody: true},
}

// refusals says how an action is refused, whether the vault exists or not
// (PROTOCOL §2: rights come before existence). What is not here is forbidden.
var refusals = map[action]error{
	read:      ErrClosedNode,
	subscribe: ErrClosedNode,
	describe:  ErrClosedNode,
}

// may is the one place that decides about rights.
func may(a vault.Affiliation, act action) bool { return rights[a][act] }

// authorize is may for a request. It returns nil, or the refusal.
func authorize(a vault.Affiliation, act action) error {
	if may(a, act) {
		return nil
	}
	err, ok := refusals[act]
	if !ok {
		err = ErrForbidden
	}
	return Refuse(err, "this vault belongs to somebody else")
}

// affiliationOf tells what an account is to a vault: nothing to one that is
// absent, but for its own.
func affiliationOf(v vault.View, account vault.Account, key vault.Key) (vault.Affiliation, error) {
	if account == key.Account {
		return vault.Owner, nil
	}
	list, err := v.Affiliations(key)
	if errors.Is(err, vault.ErrNoVault) {
		return vault.NotAffiliated, nil
	}
	for _, a := range list {
		if a.Account == account {
			return a.Affiliation, err
		}
	}
	return vault.NotAffiliated, err
}

// admit is authorize for a request, in the view or the transaction that
// carries it out.
func admit(v vault.View, req Request) error {
	node, act := req.Op.target()
	return admitTo(v, req.Sender.Account, vault.Key{Account: req.Owner, Node: node}, act)
}

// admitTo is authorize for an account and a vault.
func admitTo(v vault.View, account vault.Account, key vault.Key, act action) error {
	a, err := affiliationOf(v, account, key)
	if err != nil {
		return err
	}
	return authorize(a, act)
}

// screen refuses a stranger before a place among the writers is taken. It
// decides nothing for good: a transaction admits again.
func (e *Engine) screen(ctx context.Context, req Request) error {
	if _, act := req.Op.target(); act == anybody || req.Sender.Account == req.Owner {
		return nil
	}
	return e.store.Glance(ctx, func(v vault.View) error { return admit(v, req) })
}
