package pep

import (
	"context"
	"errors"
	"slices"

	"pepvault/vault"
)

// Usage sums up what an account has stored.
func (e *Engine) Usage(ctx context.Context, account vault.Account) (vault.Usage, error) {
	var usage vault.Usage
	err := e.store.View(ctx, func(v vault.View) (err error) {
		usage, err = v.Usage(account)
		return err
	})
	return usage, err
}

// errVaultsChanged says that an account got or lost a vault between two looks.
var errVaultsChanged = errors.New("the account's vaults changed meanwhile")

// Erase removes all that the service has of an account, in one transaction:
// its vaults, its affiliations and subscriptions in the vaults of others, its
// known resources. Everybody concerned is told that the vaults are deleted,
// the account's own resources before they are forgotten. The outcome's answer
// is Erased; done is called as in Do.
func (e *Engine) Erase(ctx context.Context, account vault.Account, done func(Outcome)) error {
	defer e.interest.conceal(account)()
	for {
		keys, err := e.keysOf(ctx, account)
		if err != nil {
			return err
		}
		err = e.updateAll(ctx, keys, func(tx vault.Tx, told func(func())) error {
			erased, tell, err := e.erase(tx, account, keys)
			if err != nil {
				return err
			}
			told(func() {
				out := Outcome{Answer: erased, Notices: tell()}
				e.interest.forgetAccount(account)
				done(out)
			})
			return nil
		})
		// Its turn among what is told of a vault has to be taken before the
		// transaction, so a vault that was made meanwhile needs another go.
		if !errors.Is(err, errVaultsChanged) {
			return err
		}
	}
}

// keysOf names the vaults of an account.
func (e *Engine) keysOf(ctx context.Context, account vault.Account) (keys []vault.Key, err error) {
	err = e.store.View(ctx, func(v vault.View) error {
		vaults, err := v.Vaults(account)
		keys = make([]vault.Key, len(vaults))
		for i, state := range vaults {
			keys[i] = state.Key
		}
		return err
	})
	return keys, err
}

// erase removes what there is of an account; tell gives the notices of it when
// that is announced.
func (e *Engine) erase(tx vault.Tx, account vault.Account, keys []vault.Key) (erased Erased, tell func() []Notice, err error) {
	vaults, err := tx.Vaults(account)
	if err != nil {
		return erased, nil, err
	}
	same := slices.EqualFunc(vaults, keys, func(v vault.Vault, key vault.Key) bool { return v.Key == key })
	if !same {
		return erased, nil, errVaultsChanged
	}
	var each []func() []Notice
	for _, v := range vaults {
		c := &change{engine: e, tx: tx, vault: v, previous: e.sign(v)}
		tell, err := c.remove()
		if err != nil {
			return erased, nil, err
		}
		each = append(each, tell)
		erased.Vaults++
		erased.Records += v.Records
	}
	if _, err := tx.Withdraw(account); err != nil {
		return erased, nil, err
	}
	return erased, func() (notices []Notice) {
		for _, tell := range each {
			notices = append(notices, tell()...)
		}
		return notices
	}, tx.ForgetResources(account)
}
