package pep

import (
	"slices"

	"pepvault/vault"
)

// notices addresses an event of a vault that has these stored subscriptions
// and affiliations. Everybody who may read hears of it if it wants to, in one
// copy each, in the order of arrivals: a resource that is there for the owner
// and asked for this node or subscribed to it, and all that are there of an
// account whose bare JID is subscribed. Where none of these is there, one
// quiet copy goes to the bare JID (XEP-0163 §4.3.2).
//
// It runs in the commit loop, for every save.
func (i *interest) notices(key vault.Key, subscribed []vault.Subscription, affiliated []vault.Affiliated, event *Event) []Notice {
	i.mu.Lock()
	defer i.mu.Unlock()
	a := audience{key: key, subscribed: subscribed}
	a.add(i, key.Account)
	for _, other := range affiliated {
		if may(other.Affiliation, read) {
			a.add(i, other.Account)
		}
	}
	byArrival(a.resources)
	list := make([]Notice, 0, len(a.resources)+len(a.absent))
	for _, r := range a.resources {
		list = append(list, Notice{
			To: r.sender.Address, Account: r.sender.Account, Event: event,
			StateOnly: (event.Batch || len(event.Changes) > 1) && r.can.follows(),
		})
	}
	for _, account := range a.absent {
		list = append(list, Notice{To: string(account), Account: account, Event: event, Quiet: true})
	}
	return list
}

// audience is who hears of one event.
type audience struct {
	key        vault.Key
	subscribed []vault.Subscription
	resources  []*resource
	absent     []vault.Account // subscribed, but not there
}

// add looks at the resources of an account that may read.
func (a *audience) add(i *interest, account vault.Account) {
	bare := slices.Contains(a.subscribed, vault.Subscription{Account: account})
	there := false
	known := i.accounts[account]
	a.resources = slices.Grow(a.resources, len(known))
	for _, r := range known {
		if !r.there(a.key.Account) {
			continue
		}
		there = true
		if bare || r.asksFor(a.key) {
			a.resources = append(a.resources, r)
		}
	}
	if bare && !there {
		a.absent = append(a.absent, account)
	}
}

// there reports whether a resource is there for an owner's vaults.
func (r *resource) there(owner vault.Account) bool {
	_, ok := r.owners[owner]
	return ok
}

// asksFor reports whether a resource that is there wants the events of a vault
// by itself, not by its account's bare JID.
func (r *resource) asksFor(key vault.Key) bool {
	if r.can.wants(key.Node) {
		return true
	}
	_, full := r.vaults[key]
	return full
}
