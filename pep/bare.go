package pep

import (
	"context"
	"errors"
	"slices"

	"pepvault/vault"
)

// BareState tells an account's bare JID where a vault stands that it
// subscribed, unless a resource of the account is there for that vault: this
// one is told by itself. It is for an event to the bare JID that could not be
// sent.
func (e *Engine) BareState(ctx context.Context, account vault.Account, key vault.Key, tell func([]Notice)) error {
	err := e.ordered(ctx, key, func(v vault.View) (Outcome, error) {
		stored, err := v.Subscriptions(key)
		if err != nil || !slices.Contains(stored, vault.Subscription{Account: account}) {
			return Outcome{}, err
		}
		state, err := v.Vault(key)
		if err != nil {
			return Outcome{}, err
		}
		event, err := e.standing(v, state, false)
		return Outcome{Notices: []Notice{{To: string(account), Account: account, Event: event, Quiet: true}}}, err
	}, func(out Outcome) {
		if len(out.Notices) > 0 && !e.interest.anyThere(account, key.Account) {
			tell(out.Notices)
		}
	})
	if errors.Is(err, vault.ErrNoVault) {
		return nil
	}
	return err
}

// anyThere reports whether a resource of the account is there for an owner's
// vaults.
func (i *interest) anyThere(account, owner vault.Account) bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	for _, r := range i.accounts[account] {
		if r.there(owner) {
			return true
		}
	}
	return false
}
