package pep

import (
	"slices"
	"strings"
	"sync"
	"time"

	"pepvault/vault"
)

// interest knows the resources that have sent directed presence, for whose
// vaults, what they announced, and which vaults each of them subscribed with
// its full JID: such a subscription ends with the presence (XEP-0060 §12.5).
// Nothing is decided by what is stored of it: that is read once, at the start.
type interest struct {
	perAccount int // bound of the resources known of one account
	now        func() time.Time
	soon       chan struct{} // holds a value if something should be stored soon

	mu         sync.Mutex
	accounts   map[vault.Account]map[string]*resource   // by resource part
	visitors   map[vault.Account]map[*resource]struct{} // of other accounts, by the owner whom they told
	subscribed map[vault.Key]map[*resource]struct{}     // by full JID
	arrivals   uint64
	caps       capabilities
	unsaved    map[name]struct{}
	concealed  map[vault.Account]int // see conceal
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
	stored  bool // there may be something of it in the store

	owners map[vault.Account]struct{} // for whose vaults it is there
	vaults map[vault.Key]struct{}     // that it subscribed; their owners are among owners
	// promised are those that it is about to have subscribed: they are stored, and
	// count when that is committed.
	promised []vault.Key

	announcement
	// greeted holds, for each owner of whose vaults it was told, what it then
	// wanted to hear of and still does.
	greeted map[vault.Account]*features
}

// maxOwners bounds for how many owners a resource can be there: whether it
// may see anything of theirs is not known when it comes.
const maxOwners = 64

func newInterest(limits vault.Limits, now func() time.Time) *interest {
	return &interest{
		perAccount: limits.Resources, now: now, soon: make(chan struct{}, 1),
		accounts:   map[vault.Account]map[string]*resource{},
		visitors:   map[vault.Account]map[*resource]struct{}{},
		subscribed: map[vault.Key]map[*resource]struct{}{},
		caps:       newCapabilities(limits.Capabilities),
		unsaved:    map[name]struct{}{},
		concealed:  map[vault.Account]int{},
	}
}

// unsavedLimit bounds what waits to be stored while the store fails. What is
// left out costs little: a resource that is not stored comes back by itself, and
// one that is stored but gone is found out at the next start.
const unsavedLimit = 1 << 16

// changed notes that what is stored of a resource is not true any more.
func (i *interest) changed(account vault.Account, resource string) {
	i.touched(account, resource)
	i.hurry()
}

// touched is changed for what may be lost with the process.
func (i *interest) touched(account vault.Account, resource string) {
	n := name{account, resource}
	if _, noted := i.unsaved[n]; noted || len(i.unsaved) < unsavedLimit {
		i.unsaved[n] = struct{}{}
	}
}

// hurry has what is unsaved stored soon.
func (i *interest) hurry() {
	select {
	case i.soon <- struct{}{}:
	default:
	}
}

func (r *resource) changed(i *interest) { i.changed(r.sender.Account, r.sender.Resource) }

// find returns a known resource, or nil.
func (i *interest) find(s Sender) *resource { return i.accounts[s.Account][s.Resource] }

func (i *interest) arrive(p Presence) Arrival {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.arrivals++
	r, arrival := i.meet(p.Sender)
	i.touched(p.Sender.Account, p.Sender.Resource)
	r.arrived, r.seen = i.arrivals, i.now()
	if r.sender.Address != p.Sender.Address {
		r.sender = p.Sender
		r.changed(i)
	}
	if _, there := r.owners[p.Owner]; !there && len(r.owners) < maxOwners {
		i.enter(r, p.Owner)
		r.changed(i)
		arrival.Greet = true
	}
	if !p.Silent && i.announce(r, p.Caps) {
		arrival.Greet = true
	}
	arrival.Ask = i.ask(nil, r, false)
	return arrival
}

// meet finds a resource or makes it known.
func (i *interest) meet(s Sender) (*resource, Arrival) {
	known := i.accounts[s.Account]
	if r, ok := known[s.Resource]; ok {
		return r, Arrival{}
	}
	if known == nil {
		known = map[string]*resource{}
		i.accounts[s.Account] = known
	}
	arrival := Arrival{New: true}
	if len(known) >= 2*i.perAccount {
		r := oldest(known)
		arrival.Forgotten = r.sender.Address
		i.gone(r)
	}
	_, stored := i.unsaved[name{s.Account, s.Resource}] // what it left behind is still there
	r := newResource(s)
	r.stored = stored
	known[s.Resource] = r
	arrival.Crowded = len(known) > i.perAccount
	return r, arrival
}

func newResource(s Sender) *resource {
	// The strings are kept for long: they must not keep a whole stanza.
	s.Address, s.Resource = strings.Clone(s.Address), strings.Clone(s.Resource)
	return &resource{
		sender: s, owners: map[vault.Account]struct{}{}, vaults: map[vault.Key]struct{}{},
		greeted: map[vault.Account]*features{},
	}
}

// enter has a resource be there for an owner's vaults.
func (i *interest) enter(r *resource, owner vault.Account) {
	r.owners[owner] = struct{}{}
	if owner != r.sender.Account {
		insert(i.visitors, owner, r)
	}
}

// exit ends what enter began, and the subscriptions that stand on it.
func (i *interest) exit(r *resource, owner vault.Account) {
	delete(r.owners, owner)
	delete(r.greeted, owner)
	remove(i.visitors, owner, r)
	for key := range r.vaults {
		if key.Account == owner {
			i.unlink(r, key)
		}
	}
}

// gone takes a resource out of those that are known. One that came and went
// since the last time that they were stored leaves no trace.
func (i *interest) gone(r *resource) {
	for owner := range r.owners {
		i.exit(r, owner)
	}
	i.settle(r)
	account, resource := r.sender.Account, r.sender.Resource
	known := i.accounts[account]
	delete(known, resource)
	if len(known) == 0 {
		delete(i.accounts, account)
	}
	if r.stored {
		i.changed(account, resource)
	} else {
		delete(i.unsaved, name{account, resource})
	}
}

func (i *interest) leave(account vault.Account, resource string) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if r, ok := i.accounts[account][resource]; ok {
		i.gone(r)
	}
}

func (i *interest) arrived() uint64 {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.arrivals
}

func (i *interest) leaveSince(s Sender, arrivals uint64) (kept bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	r := i.find(s)
	if r == nil {
		return false
	}
	if r.arrived > arrivals {
		return true
	}
	i.gone(r)
	return false
}

func (i *interest) absent(s Sender, owner vault.Account) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if r := i.find(s); r != nil {
		i.withdraw(r, owner)
	}
}

// withdraw is exit for a resource that may have no other owner.
func (i *interest) withdraw(r *resource, owner vault.Account) {
	if _, there := r.owners[owner]; !there {
		return
	}
	i.exit(r, owner)
	if len(r.owners) == 0 {
		i.gone(r)
		return
	}
	r.changed(i)
}

// forgetAccount forgets the resources of an account, and that others are
// there for its vaults.
func (i *interest) forgetAccount(account vault.Account) {
	i.mu.Lock()
	defer i.mu.Unlock()
	for _, r := range i.accounts[account] {
		i.gone(r)
	}
	for r := range i.visitors[account] {
		i.withdraw(r, account)
	}
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
	if r := i.find(s); r != nil {
		r.seen = i.now()
		i.touched(s.Account, s.Resource)
	}
}

// insert puts a resource into one of the sets of an index; remove takes it
// out, and the set with the last one.
func insert[K comparable](index map[K]map[*resource]struct{}, key K, r *resource) {
	set := index[key]
	if set == nil {
		set = map[*resource]struct{}{}
		index[key] = set
	}
	set[r] = struct{}{}
}

func remove[K comparable](index map[K]map[*resource]struct{}, key K, r *resource) {
	set := index[key]
	delete(set, r)
	if len(set) == 0 {
		delete(index, key)
	}
}

// byArrival puts resources into the order in which they came.
func byArrival(list []*resource) {
	slices.SortFunc(list, func(a, b *resource) int {
		if a.arrived < b.arrived {
			return -1
		}
		return 1
	})
}
