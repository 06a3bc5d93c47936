package pep

import (
	"context"
	"slices"
	"time"

	"pepvault/vault"
)

// Known resources outlive the process, so that a restart of the service costs
// no device its events: they are stored a little later than they change, read
// at the start, and verified before they count for anything but that.

const (
	// saveEvery is how long a change of the known resources may be lost for.
	saveEvery = 5 * time.Second
	// savedAtOnce bounds how many resources one transaction stores.
	savedAtOnce = 512
)

// Remember reads the resources that were known when the service ended. It is
// called once, before anything else.
func (e *Engine) Remember(ctx context.Context) error {
	var stored []vault.Resource
	err := e.store.View(ctx, func(v vault.View) (err error) {
		stored, err = v.Resources()
		return err
	})
	if err != nil {
		return err
	}
	// In the order of their signs of life, which is that of arrivals.
	slices.SortStableFunc(stored, func(a, b vault.Resource) int { return a.Seen.Compare(b.Seen) })
	e.interest.restore(stored)
	return nil
}

// KeepRemembering stores what changes about the known resources, until ctx
// ends and a last time then. failed hears of what could not be stored; that is
// tried again later.
func (e *Engine) KeepRemembering(ctx context.Context, failed func(error)) {
	tick := time.NewTicker(saveEvery)
	defer tick.Stop()
	for ended := false; !ended; {
		select {
		case <-tick.C:
		case <-ctx.Done():
			ended = true
		}
		if err := e.saveResources(context.WithoutCancel(ctx)); err != nil {
			failed(err)
		}
	}
}

func (e *Engine) saveResources(ctx context.Context) error {
	for {
		names := e.interest.takeUnsaved(savedAtOnce)
		if len(names) == 0 {
			return nil
		}
		err := e.store.Update(ctx, vault.Key{}, func(tx vault.Tx) error {
			for _, n := range names {
				if err := e.saveResource(tx, n); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			e.interest.giveBack(names)
			return err
		}
	}
}

func (e *Engine) saveResource(tx vault.Tx, n name) error {
	r, known := e.interest.describe(n)
	if !known {
		return tx.DropResource(n.account, n.resource)
	}
	return tx.KeepResource(r)
}

func (i *interest) restore(stored []vault.Resource) {
	i.mu.Lock()
	defer i.mu.Unlock()
	for _, s := range stored {
		known := i.accounts[s.Account]
		if known == nil {
			known = map[string]*resource{}
			i.accounts[s.Account] = known
		}
		i.arrivals++
		r := &resource{
			sender:  Sender{Account: s.Account, Address: s.Address, Resource: s.Name},
			arrived: i.arrivals,
			seen:    s.Seen,
			vaults:  map[vault.Key]struct{}{},
			stored:  true,
		}
		for _, node := range s.Nodes {
			r.vaults[vault.Key{Account: s.Account, Node: node}] = struct{}{}
		}
		known[s.Name] = r
	}
}

func (i *interest) takeUnsaved(most int) []name {
	i.mu.Lock()
	defer i.mu.Unlock()
	names := make([]name, 0, min(most, len(i.unsaved)))
	for n := range i.unsaved {
		if len(names) == most {
			break
		}
		names = append(names, n)
		delete(i.unsaved, n)
	}
	return names
}

func (i *interest) giveBack(names []name) {
	i.mu.Lock()
	defer i.mu.Unlock()
	for _, n := range names {
		i.changed(n.account, n.resource)
	}
}

func (i *interest) describe(n name) (vault.Resource, bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	r, known := i.accounts[n.account][n.resource]
	if !known {
		return vault.Resource{}, false
	}
	r.stored = true
	described := vault.Resource{
		Account: n.account, Name: n.resource, Address: r.sender.Address,
		Seen: r.seen.UTC().Truncate(time.Millisecond),
	}
	for key := range r.vaults {
		described.Nodes = append(described.Nodes, key.Node)
	}
	slices.Sort(described.Nodes)
	return described, true
}
