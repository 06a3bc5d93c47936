package pep

import "pepvault/vault"

// Subscriptions by full JID.

// add subscribes a resource by its full JID, if it is there for the owner and
// the vault has room for so many of them.
func (i *interest) add(s Sender, key vault.Key, room int) error {
	i.mu.Lock()
	defer i.mu.Unlock()
	if err := i.checkAdd(s, key, room); err != nil {
		return err
	}
	r := i.find(s)
	if _, had := r.vaults[key]; !had {
		r.vaults[key] = struct{}{}
		insert(i.subscribed, key, r)
		r.changed(i)
	}
	return nil
}

// mayAdd returns the error that add would.
func (i *interest) mayAdd(s Sender, key vault.Key, room int) error {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.checkAdd(s, key, room)
}

func (i *interest) checkAdd(s Sender, key vault.Key, room int) error {
	r := i.find(s)
	if r == nil || !r.there(key.Account) {
		return Refuse(ErrPresenceRequired, "a full JID is subscribed only while its directed presence is known: send that first")
	}
	_, had := r.vaults[key]
	if !had && len(i.subscribed[key]) >= room {
		return errNoRoom()
	}
	return nil
}

// drop ends a subscription by full JID and reports whether there was one.
func (i *interest) drop(s Sender, key vault.Key) bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	r := i.find(s)
	if r == nil {
		return false
	}
	_, had := r.vaults[key]
	if had {
		i.unlink(r, key)
		r.changed(i)
	}
	return had
}

func (i *interest) unlink(r *resource, key vault.Key) {
	delete(r.vaults, key)
	remove(i.subscribed, key, r)
}

// has reports whether the resource is there for the vault's owner, and whether
// it subscribed.
func (i *interest) has(s Sender, key vault.Key) (there, subscribed bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	r := i.find(s)
	if r == nil || !r.there(key.Account) {
		return false, false
	}
	_, subscribed = r.vaults[key]
	return true, subscribed
}

// count tells how many resources subscribed to a vault by full JID.
func (i *interest) count(key vault.Key) int {
	i.mu.Lock()
	defer i.mu.Unlock()
	return len(i.subscribed[key])
}

// forget ends all subscriptions by full JID to a vault.
func (i *interest) forget(key vault.Key) { i.end(key, func(*resource) bool { return true }) }

// revoke ends those of one account.
func (i *interest) revoke(key vault.Key, account vault.Account) {
	i.end(key, func(r *resource) bool { return r.sender.Account == account })
}

func (i *interest) end(key vault.Key, of func(*resource) bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	for r := range i.subscribed[key] {
		if of(r) {
			i.unlink(r, key)
			r.changed(i)
		}
	}
}

// subscribers returns the resources of an account that subscribed to a vault,
// in no order.
func (i *interest) subscribers(account vault.Account, key vault.Key) (resources []string) {
	i.mu.Lock()
	defer i.mu.Unlock()
	for r := range i.subscribed[key] {
		if r.sender.Account == account {
			resources = append(resources, r.sender.Resource)
		}
	}
	return resources
}

// fullJID is the prepared account with the resource part, verbatim.
func fullJID(s Sender) string { return string(s.Account) + "/" + s.Resource }
