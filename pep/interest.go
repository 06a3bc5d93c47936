package pep

import (
	"cmp"
	"slices"
	"sync"

	"pepvault/vault"
)

// interest knows the resources that have sent directed presence, and which
// vaults each of them subscribed with its full JID. It is in memory only: a
// full JID's subscription ends with its presence (XEP-0060 §12.5).
type interest struct {
	perAccount int // bound of the resources known of one account

	mu       sync.Mutex
	accounts map[vault.Account]map[string]*resource // by resource part
	arrivals uint64
}

type resource struct {
	address string // the full JID, verbatim
	arrived uint64 // in the order of arrivals
	vaults  map[vault.Key]struct{}
}

func newInterest(perAccount int) *interest {
	return &interest{perAccount: perAccount, accounts: map[vault.Account]map[string]*resource{}}
}

// Arrive notes a device's directed presence. Where an account has more
// resources than may be known, the one that was heard of longest ago is
// forgotten; its address is returned, so that it can be told.
func (e *Engine) Arrive(s Sender) (forgotten string) { return e.interest.arrive(s) }

// Leave forgets a resource, and what it subscribed to with its full JID.
func (e *Engine) Leave(account vault.Account, resource string) {
	e.interest.leave(account, resource)
}

func (i *interest) arrive(s Sender) (forgotten string) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.arrivals++
	known := i.accounts[s.Account]
	if known == nil {
		known = map[string]*resource{}
		i.accounts[s.Account] = known
	}
	if r, ok := known[s.Resource]; ok {
		r.address, r.arrived = s.Address, i.arrivals
		return ""
	}
	if len(known) >= i.perAccount {
		forgotten = oldest(known)
		address := known[forgotten].address
		delete(known, forgotten)
		forgotten = address
	}
	known[s.Resource] = &resource{address: s.Address, arrived: i.arrivals, vaults: map[vault.Key]struct{}{}}
	return forgotten
}

func oldest(known map[string]*resource) (name string) {
	first := uint64(0)
	for n, r := range known {
		if first == 0 || r.arrived < first {
			name, first = n, r.arrived
		}
	}
	return name
}

func (i *interest) leave(account vault.Account, resource string) {
	i.mu.Lock()
	defer i.mu.Unlock()
	known := i.accounts[account]
	delete(known, resource)
	if len(known) == 0 {
		delete(i.accounts, account)
	}
}

// add subscribes a resource by its full JID, if its presence is known.
func (i *interest) add(s Sender, key vault.Key) bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	r, ok := i.accounts[s.Account][s.Resource]
	if ok {
		r.vaults[key] = struct{}{}
	}
	return ok
}

// drop ends a subscription by full JID and reports whether there was one.
func (i *interest) drop(s Sender, key vault.Key) bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	r, ok := i.accounts[s.Account][s.Resource]
	if !ok {
		return false
	}
	_, had := r.vaults[key]
	delete(r.vaults, key)
	return had
}

// has reports whether the resource is known, and whether it subscribed.
func (i *interest) has(s Sender, key vault.Key) (known, subscribed bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	r, known := i.accounts[s.Account][s.Resource]
	if !known {
		return false, false
	}
	_, subscribed = r.vaults[key]
	return true, subscribed
}

// count tells how many resources subscribed to a vault by full JID.
func (i *interest) count(key vault.Key) (n int) {
	i.mu.Lock()
	defer i.mu.Unlock()
	for _, r := range i.accounts[key.Account] {
		if _, ok := r.vaults[key]; ok {
			n++
		}
	}
	return n
}

// forget ends all subscriptions by full JID to a vault.
func (i *interest) forget(key vault.Key) {
	i.mu.Lock()
	defer i.mu.Unlock()
	for _, r := range i.accounts[key.Account] {
		delete(r.vaults, key)
	}
}

// notices addresses an event: one copy for each resource that subscribed by
// its full JID, or that is known while the bare JID is subscribed. Where the
// bare JID is and no resource is known, one quiet copy goes there (XEP-0163
// §4.3.2).
func (i *interest) notices(key vault.Key, stored []vault.Subscription, event *Event) []Notice {
	i.mu.Lock()
	defer i.mu.Unlock()
	known := i.accounts[key.Account]
	bare := len(stored) > 0
	if bare && len(known) == 0 {
		return []Notice{{To: string(key.Account), Event: event, Quiet: true}}
	}
	concerned := make([]*resource, 0, len(known))
	for _, r := range known {
		if _, full := r.vaults[key]; bare || full {
			concerned = append(concerned, r)
		}
	}
	slices.SortFunc(concerned, func(a, b *resource) int { return cmp.Compare(a.arrived, b.arrived) })
	list := make([]Notice, len(concerned))
	for n, r := range concerned {
		list[n] = Notice{To: r.address, Event: event}
	}
	return list
}
