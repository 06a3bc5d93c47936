package pep

import (
	"cmp"
	"slices"
	"sync"
	"time"

	"pepvault/vault"
)

// interest knows the resources that have sent directed presence, and which
// vaults each of them subscribed with its full JID: such a subscription ends
// with the presence (XEP-0060 §12.5). Nothing is decided by what is stored of
// it: that is read once, at the start.
type interest struct {
	perAccount int // bound of the resources known of one account
	now        func() time.Time

	mu       sync.Mutex
	accounts map[vault.Account]map[string]*resource // by resource part
	arrivals uint64
	unsaved  map[name]struct{}
}

// name is that of a resource, known or not.
type name struct {
	account  vault.Account
	resource string
}

type resource struct {
	sender  Sender
	arrived uint64 // in the order of arrivals
	seen    time.Time
	vaults  map[vault.Key]struct{}
	stored  bool // there may be something of it in the store
}

func newInterest(perAccount int, now func() time.Time) *interest {
	return &interest{
		perAccount: perAccount, now: now,
		accounts: map[vault.Account]map[string]*resource{}, unsaved: map[name]struct{}{},
	}
}

// unsavedLimit bounds what waits to be stored while the store fails. What is
// left out costs little: a resource that is not stored comes back by itself, and
// one that is stored but gone is found out at the next start.
const unsavedLimit = 1 << 16

// changed notes that what is stored of a resource is not true any more.
func (i *interest) changed(account vault.Account, resource string) {
	n := name{account, resource}
	if _, noted := i.unsaved[n]; noted || len(i.unsaved) < unsavedLimit {
		i.unsaved[n] = struct{}{}
	}
}

// gone takes a resource out of those that are known. One that came and went
// since the last time that they were stored leaves no trace.
func (i *interest) gone(known map[string]*resource, r *resource) {
	account, resource := r.sender.Account, r.sender.Resource
	delete(known, resource)
	if r.stored {
		i.changed(account, resource)
	} else {
		delete(i.unsaved, name{account, resource})
	}
}

// Arrival is what a directed presence leads to.
type Arrival struct {
	// New says that the resource was not known.
	New bool
	// Crowded says that the account has more resources than may be known: see
	// Engine.Stalest.
	Crowded bool
	// Forgotten is the address of a resource that had to be forgotten at
	// once, since there were twice as many as may be known; else "".
	Forgotten string
}

// Arrive notes a device's directed presence.
func (e *Engine) Arrive(s Sender) Arrival { return e.interest.arrive(s) }

// Leave forgets a resource, and what it subscribed to with its full JID.
func (e *Engine) Leave(account vault.Account, resource string) {
	e.interest.leave(account, resource)
}

// Known returns all resources that are known, in no order.
func (e *Engine) Known() []Sender { return e.interest.known(time.Time{}) }

// Unseen returns the resources that were not heard of since a time.
func (e *Engine) Unseen(since time.Time) []Sender { return e.interest.known(since) }

// Heard notes a sign of life of a resource, if it is known.
func (e *Engine) Heard(s Sender) { e.interest.heard(s) }

// Stalest returns the resource of a crowded account that was heard of longest
// ago; false if the account is not crowded.
func (e *Engine) Stalest(account vault.Account) (Sender, bool) { return e.interest.stalest(account) }

func (i *interest) arrive(s Sender) Arrival {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.arrivals++
	known := i.accounts[s.Account]
	if known == nil {
		known = map[string]*resource{}
		i.accounts[s.Account] = known
	}
	_, stored := i.unsaved[name{s.Account, s.Resource}] // what it left behind is still there
	i.changed(s.Account, s.Resource)
	if r, ok := known[s.Resource]; ok {
		r.sender, r.arrived, r.seen = s, i.arrivals, i.now()
		return Arrival{}
	}
	arrival := Arrival{New: true}
	if len(known) >= 2*i.perAccount {
		r := oldest(known)
		arrival.Forgotten = r.sender.Address
		i.gone(known, r)
	}
	known[s.Resource] = &resource{
		sender: s, arrived: i.arrivals, seen: i.now(), vaults: map[vault.Key]struct{}{}, stored: stored,
	}
	arrival.Crowded = len(known) > i.perAccount
	return arrival
}

func oldest(known map[string]*resource) (first *resource) {
	for _, r := range known {
		if first == nil || r.arrived < first.arrived {
			first = r
		}
	}
	return first
}

func (i *interest) stalest(account vault.Account) (Sender, bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	known := i.accounts[account]
	if len(known) <= i.perAccount {
		return Sender{}, false
	}
	return oldest(known).sender, true
}

// known returns the resources that were not heard of since a time; all for
// the zero time.
func (i *interest) known(unseen time.Time) []Sender {
	i.mu.Lock()
	defer i.mu.Unlock()
	var found []Sender
	for _, known := range i.accounts {
		for _, r := range known {
			if unseen.IsZero() || r.seen.Before(unseen) {
				found = append(found, r.sender)
			}
		}
	}
	return found
}

func (i *interest) heard(s Sender) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if r, ok := i.accounts[s.Account][s.Resource]; ok {
		r.seen = i.now()
		i.changed(s.Account, s.Resource)
	}
}

func (i *interest) leave(account vault.Account, resource string) {
	i.mu.Lock()
	defer i.mu.Unlock()
	known := i.accounts[account]
	r, ok := known[resource]
	if !ok {
		return
	}
	i.gone(known, r)
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
		i.changed(s.Account, s.Resource)
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
	i.changed(s.Account, s.Resource)
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
		if _, ok := r.vaults[key]; ok {
			delete(r.vaults, key)
			i.changed(key.Account, r.sender.Resource)
		}
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
		list[n] = Notice{To: r.sender.Address, Event: event}
	}
	return list
}
