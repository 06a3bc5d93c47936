package pep

import "pepvault/vault"

// affiliation is what an account is to a vault (XEP-0060 §4.1).
type affiliation uint8

const (
	none affiliation = iota // the zero value: a stranger
	owner
)

// action is a kind of operation, as far as rights go.
type action uint8

const (
	read action = iota + 1
	write
	remove
	subscribe
	list
	describe
)

func (Publish) action() action         { return write }
func (Retract) action() action         { return write }
func (Items) action() action           { return read }
func (Delete) action() action          { return remove }
func (Subscribe) action() action       { return subscribe }
func (Unsubscribe) action() action     { return subscribe }
func (DescribeVault) action() action   { return describe }
func (ListVaults) action() action      { return list }
func (DescribeService) action() action { return 0 } // the same for everybody

// rights says which affiliation may do what. What is not here is refused.
var rights = map[affiliation]map[action]bool{
	owner: {read: true, write: true, remove: true, subscribe: true, list: true, describe: true},
}

// refusals says how an action is refused, whether the vault exists or not
// (PROTOCOL §2: rights come before existence). What is not here is forbidden.
var refusals = map[action]error{
	read:      ErrClosedNode,
	subscribe: ErrClosedNode,
	describe:  ErrClosedNode,
}

// authorize is the one place that decides about rights. It returns nil, or
// the refusal.
func authorize(a affiliation, act action) error {
	if rights[a][act] {
		return nil
	}
	err, ok := refusals[act]
	if !ok {
		err = ErrForbidden
	}
	return Refuse(err, "this vault belongs to somebody else")
}

// affiliationOf tells what the sender is to the owner's vaults.
func affiliationOf(sender, of vault.Account) affiliation {
	if sender == of {
		return owner
	}
	return none
}
