package pep

import (
	"cmp"
	"context"
	"slices"
	"time"

	"pepvault/vault"
)

// Known resources outlive the process, so that a restart of the service costs
// no device its events: they are stored a little later than they change, read
// at the start, and verified before they count for anything but that.

const (
	// saveSoon is how long what changed about the known resources waits to be
	// stored, so that those of a storm go together.
	saveSoon = 200 * time.Millisecond
	// saveSlow bounds that wait while the store is slow or fails.
	saveSlow = 5 * time.Second
	// saveShare is how many times longer than storing the last ones took it
	// waits: a tenth of the store's time is for this at most.
	saveShare = 9
	// saveLate is how long signs of life wait, which are lost without harm.
	saveLate = time.Minute
	// savedAtOnce bounds how many resources one transaction stores: a save of
	// a device may have to wait for it.
	savedAtOnce = 64
)

// Remember reads the resources that were known when the service ended, and
// the capabilities that are known. It is called once, before anything else.
func (e *Engine) Remember(ctx context.Context) error {
	var resources []vault.Resource
	var caps []vault.Capabilities
	err := e.store.View(ctx, func(v vault.View) (err error) {
		if resources, err = v.Resources(); err != nil {
			return err
		}
		caps, err = v.Capabilities()
		return err
	})
	if err != nil {
		return err
	}
	// In the order of their signs of life, which is that of arrivals.
	slices.SortStableFunc(resources, func(a, b vault.Resource) int { return a.Seen.Compare(b.Seen) })
	slices.SortStableFunc(caps, func(a, b vault.Capabilities) int { return a.Used.Compare(b.Used) })
	e.interest.restore(resources, caps)
	return nil
}

// KeepRemembering stores what changes about the known resources and the
// capabilities, soon after it changed, until ctx ends and a last time then.
// failed hears of what could not be stored; that is tried again later.
func (e *Engine) KeepRemembering(ctx context.Context, failed func(error)) {
	late := time.NewTicker(saveLate)
	defer late.Stop()
	wait := saveSoon
	for ended := false; !ended; {
		select {
		case <-e.interest.soon:
			pause := time.NewTimer(wait)
			select {
			case <-pause.C:
			case <-ctx.Done():
				pause.Stop()
				ended = true
			}
		case <-late.C:
		case <-ctx.Done():
			ended = true
		}
		begun := time.Now()
		err := e.save(context.WithoutCancel(ctx))
		wait = min(max(saveSoon, saveShare*time.Since(begun)), saveSlow)
		if err != nil {
			wait = saveSlow
			failed(err)
		}
	}
}

// save stores what is unsaved now. What changes meanwhile waits its time, lest
// a slow store does nothing else.
func (e *Engine) save(ctx context.Context) error {
	for left := e.interest.countUnsaved(); left > 0; {
		names, hashes := e.interest.takeUnsaved(min(left, savedAtOnce))
		left -= len(names) + len(hashes)
		if len(names)+len(hashes) == 0 {
			return nil
		}
		err := e.store.Update(ctx, vault.Key{}, func(tx vault.Tx) error {
			for _, hash := range hashes {
				if err := e.saveCapabilities(tx, hash); err != nil {
					return err
				}
			}
			for _, n := range names {
				if err := e.saveResource(tx, n); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			e.interest.giveBack(names, hashes)
			return err
		}
	}
	return nil
}

func (i *interest) countUnsaved() int {
	i.mu.Lock()
	defer i.mu.Unlock()
	return len(i.unsaved) + len(i.caps.unsaved)
}

// keepSubscribed stores a resource together with a subscription that it is about
// to get: the answer promises that.
func (e *Engine) keepSubscribed(tx vault.Tx, s Sender, key vault.Key) error {
	r, known := e.interest.promise(s, key)
	if !known {
		return nil // it left just now, and the subscription with it
	}
	return tx.KeepResource(r)
}

func sortKeys(keys []vault.Key) {
	slices.SortFunc(keys, func(a, b vault.Key) int {
		return cmp.Or(cmp.Compare(a.Account, b.Account), cmp.Compare(a.Node, b.Node))
	})
}

func (e *Engine) saveResource(tx vault.Tx, n name) error {
	r, known := e.interest.describe(n)
	if !known {
		return tx.DropResource(n.account, n.resource)
	}
	return tx.KeepResource(r)
}

func (e *Engine) saveCapabilities(tx vault.Tx, hash string) error {
	c, known := e.interest.describeCaps(hash)
	if !known {
		return tx.DropCapabilities(hash)
	}
	return tx.KeepCapabilities(c)
}

// restore takes over what was stored, the oldest first.
func (i *interest) restore(resources []vault.Resource, caps []vault.Capabilities) {
	i.mu.Lock()
	defer i.mu.Unlock()
	for _, s := range caps {
		can, _ := newFeatures(Announced{Nodes: s.Nodes, Sync: s.Sync})
		i.caps.known[s.Hash] = i.caps.order.PushFront(&capability{hash: s.Hash, can: can, used: s.Used})
	}
	i.caps.trim()
	for _, s := range resources {
		i.arrivals++
		r := newResource(Sender{Account: s.Account, Address: s.Address, Resource: s.Name})
		r.arrived, r.seen, r.stored = i.arrivals, s.Seen, true
		if e, ok := i.caps.known[s.Caps]; ok {
			r.hash, r.can = s.Caps, e.Value.(*capability).can
		}
		if len(s.Owners) == 0 {
			s.Owners = []vault.Account{s.Account}
		}
		for _, owner := range s.Owners {
			i.enter(r, owner)
			// It was told when it came: now its state is enough.
			r.greeted[owner] = r.can
		}
		for _, key := range s.Vaults {
			if r.there(key.Account) {
				r.vaults[key] = struct{}{}
				insert(i.subscribed, key, r)
			}
		}
		known := i.accounts[s.Account]
		if known == nil {
			known = map[string]*resource{}
			i.accounts[s.Account] = known
		}
		known[s.Name] = r
	}
}

// takeUnsaved takes at most so many names and hashes together.
func (i *interest) takeUnsaved(most int) (names []name, hashes []string) {
	i.mu.Lock()
	defer i.mu.Unlock()
	hashes = take(i.caps.unsaved, most)
	return take(i.unsaved, most-len(hashes)), hashes
}

func take[K comparable](set map[K]struct{}, most int) []K {
	taken := make([]K, 0, min(most, len(set)))
	for k := range set {
		if len(taken) == most {
			break
		}
		taken = append(taken, k)
		delete(set, k)
	}
	return taken
}

func (i *interest) giveBack(names []name, hashes []string) {
	i.mu.Lock()
	defer i.mu.Unlock()
	for _, n := range names {
		i.touched(n.account, n.resource)
	}
	for _, hash := range hashes {
		i.caps.touched(hash)
	}
	i.hurry()
}

func (i *interest) describe(n name) (vault.Resource, bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	r, known := i.accounts[n.account][n.resource]
	if !known || i.concealed[n.account] > 0 {
		return vault.Resource{}, false
	}
	return r.describe(), true
}

// conceal has nothing stored of an account's resources until reveal: the account
// is being erased, and what is stored behind that, in the same commit, would stay.
func (i *interest) conceal(account vault.Account) (reveal func()) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.concealed[account]++
	return func() {
		i.mu.Lock()
		defer i.mu.Unlock()
		if i.concealed[account]--; i.concealed[account] == 0 {
			delete(i.concealed, account)
		}
		for _, r := range i.accounts[account] { // it was not erased, or they came since
			r.changed(i)
		}
	}
}

// promise describes a resource with a subscription that it is about to get. Who
// describes it in the meantime, in a transaction behind this one, does so too.
func (i *interest) promise(s Sender, key vault.Key) (vault.Resource, bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	r := i.find(s)
	if r == nil {
		return vault.Resource{}, false
	}
	if !slices.Contains(r.promised, key) {
		r.promised = append(r.promised, key)
	}
	return r.describe(), true
}

// settled ends a promise: the subscription counts by now, or never will.
func (i *interest) settled(s Sender, key vault.Key) {
	i.mu.Lock()
	defer i.mu.Unlock()
	r := i.find(s)
	if r == nil || !slices.Contains(r.promised, key) {
		return
	}
	r.promised = slices.DeleteFunc(r.promised, func(k vault.Key) bool { return k == key })
	if _, counts := r.vaults[key]; !counts {
		r.changed(i) // it may have been stored
	}
}

// describe is what is stored of a resource. It needs the lock of interest.
func (r *resource) describe() vault.Resource {
	r.stored = true
	described := vault.Resource{
		Account: r.sender.Account, Name: r.sender.Resource, Address: r.sender.Address,
		Seen: r.seen.UTC().Truncate(time.Millisecond),
		Caps: r.hash,
	}
	for owner := range r.owners {
		described.Owners = append(described.Owners, owner)
	}
	slices.Sort(described.Owners)
	for key := range r.vaults {
		described.Vaults = append(described.Vaults, key)
	}
	for _, key := range r.promised {
		if _, counts := r.vaults[key]; !counts {
			described.Vaults = append(described.Vaults, key)
		}
	}
	sortKeys(described.Vaults)
	return described
}

func (i *interest) describeCaps(hash string) (vault.Capabilities, bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	e, known := i.caps.known[hash]
	if !known {
		return vault.Capabilities{}, false
	}
	c := e.Value.(*capability)
	return vault.Capabilities{
		Hash: hash, Nodes: c.can.sorted(), Sync: c.can.sync,
		Used: c.used.UTC().Truncate(time.Millisecond),
	}, true
}
