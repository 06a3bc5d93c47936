package pep

import (
	"context"
	"errors"
	"slices"

	"pepvault/vault"
)

// States tells a known resource where the vaults stand that it hears of: one
// notice a vault, each in its turn among what is told of that vault
// (PROTOCOL §6). It is what a device needs after either side was away.
func (e *Engine) States(ctx context.Context, s Sender, tell func([]Notice)) error {
	return e.greet(ctx, s, e.interest.greetings(s, true), false, tell)
}

// Greet is States for the vaults that are new to the resource since it came:
// it told their owner of its presence, or its client's features became known.
// The record that changed last comes with the state where the vault is
// configured so. Called again it tells nothing until something is new again.
func (e *Engine) Greet(ctx context.Context, s Sender, tell func([]Notice)) error {
	news := e.interest.greetings(s, false)
	err := e.greet(ctx, s, news, true, tell)
	if err != nil {
		e.interest.ungreet(s, news)
	}
	return err
}

// greeting is what a resource has to be told of one owner's vaults.
type greeting struct {
	owner vault.Account
	all   bool      // all that it hears of
	had   *features // else only nodes that are not in here
	can   *features // what its client can do; of what it learns to do meanwhile, another greeting tells
}

// greet tells a resource what it has to be told. last adds the records that
// changed last.
func (e *Engine) greet(ctx context.Context, s Sender, greetings []greeting, last bool, tell func([]Notice)) error {
	for _, g := range greetings {
		keys, err := e.concerned(ctx, s, g)
		if err != nil {
			return err
		}
		for _, key := range keys {
			if err := e.greetOf(ctx, s, g, key, last, tell); err != nil && !errors.Is(err, vault.ErrNoVault) {
				return err
			}
		}
	}
	return nil
}

// concerned lists the vaults that a greeting is about.
func (e *Engine) concerned(ctx context.Context, s Sender, g greeting) (keys []vault.Key, err error) {
	err = e.store.View(ctx, func(v vault.View) error {
		vaults, err := v.Vaults(g.owner)
		if err != nil {
			return err
		}
		for _, of := range vaults {
			concerns, err := e.concerns(v, s, g, of.Key)
			if err != nil {
				return err
			}
			if concerns {
				keys = append(keys, of.Key)
			}
		}
		return nil
	})
	return keys, err
}

// concerns reports whether a greeting is about a vault: the sender may read
// it, hears of it, and did not yet.
func (e *Engine) concerns(v vault.View, s Sender, g greeting, key vault.Key) (bool, error) {
	if key.Account != s.Account {
		a, err := affiliationOf(v, s.Account, key)
		if err != nil || !may(a, read) {
			return false, err
		}
	}
	stored, err := v.Subscriptions(key)
	bare := slices.Contains(stored, vault.Subscription{Account: s.Account})
	return err == nil && e.interest.concerns(s, g, key, bare), err
}

func (e *Engine) greetOf(ctx context.Context, s Sender, g greeting, key vault.Key, last bool, tell func([]Notice)) error {
	return e.ordered(ctx, key, func(v vault.View) (Outcome, error) {
		// What was so in concerned may have changed meanwhile.
		concerns, err := e.concerns(v, s, g, key)
		if err != nil || !concerns {
			return Outcome{}, err
		}
		state, err := v.Vault(key)
		if err != nil {
			return Outcome{}, err
		}
		event, err := e.standing(v, state, last && state.Config.SendLast == vault.SendOnSubscriptionAndPresence)
		return Outcome{Notices: []Notice{{To: s.Address, Account: s.Account, Event: event}}}, err
	}, func(out Outcome) {
		if len(out.Notices) > 0 {
			tell(out.Notices)
		}
	})
}

// standing tells where a vault stands, with the record that changed last if
// that is wanted and there is one.
func (e *Engine) standing(v vault.View, state vault.Vault, last bool) (*Event, error) {
	key := state.Key
	event := &Event{
		Owner: key.Account, Node: key.Node,
		State: State{Owner: key.Account, Node: key.Node, Cursor: e.sign(state)},
	}
	if !last || state.Config.MuteAll {
		return event, nil
	}
	page, err := v.Latest(key, 0, vault.PageLimit{Records: 1, Cost: e.answer})
	if len(page.Changes) > 0 {
		event.Changes, event.Past, event.Bare = page.Changes, true, state.Config.MutePayloads
	}
	return event, err
}

// greetings lists what a resource has to be told, and notes that it is told.
func (i *interest) greetings(s Sender, all bool) (list []greeting) {
	i.mu.Lock()
	defer i.mu.Unlock()
	r := i.find(s)
	if r == nil {
		return nil
	}
	for owner := range r.owners {
		had, greeted := r.greeted[owner]
		if all || !greeted || !r.can.within(had) {
			list = append(list, greeting{owner: owner, all: all || !greeted, had: had, can: r.can})
			r.greeted[owner] = r.can
		}
	}
	slices.SortFunc(list, func(a, b greeting) int {
		if a.owner == s.Account || b.owner != s.Account && a.owner < b.owner {
			return -1
		}
		return 1
	})
	return list
}

// ungreet has a resource told again what it could not be told.
func (i *interest) ungreet(s Sender, list []greeting) {
	i.mu.Lock()
	defer i.mu.Unlock()
	r := i.find(s)
	if r == nil {
		return
	}
	for _, g := range list {
		if _, greeted := r.greeted[g.owner]; !greeted {
			continue
		}
		if g.all {
			delete(r.greeted, g.owner)
		} else {
			r.greeted[g.owner] = g.had.both(r.can)
		}
	}
}

// concerns reports whether a greeting is about a vault, whose bare
// subscription the account has or has not.
func (i *interest) concerns(s Sender, g greeting, key vault.Key, bare bool) bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	r := i.find(s)
	if r == nil || !r.there(key.Account) {
		return false
	}
	_, full := r.vaults[key]
	wants := r.can.wants(key.Node) && g.can.wants(key.Node)
	if g.all {
		return bare || full || wants
	}
	return !bare && !full && wants && !g.had.wants(key.Node)
}
