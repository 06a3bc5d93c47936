package pep

import (
	"context"
	"errors"

	"pepvault/vault"
)

// States tells a known resource where the vaults stand that it hears of: one
// notice a vault, each in its turn among what is told of that vault
// (PROTOCOL §6). It is what a device needs after either side was away.
func (e *Engine) States(ctx context.Context, s Sender, tell func([]Notice)) error {
	var vaults []vault.Vault
	err := e.store.View(ctx, func(v vault.View) (err error) {
		vaults, err = v.Vaults(s.Account)
		return err
	})
	if err != nil {
		return err
	}
	for _, v := range vaults {
		if err := e.stateOf(ctx, s, v.Key, tell); err != nil && !errors.Is(err, vault.ErrNoVault) {
			return err
		}
	}
	return nil
}

func (e *Engine) stateOf(ctx context.Context, s Sender, key vault.Key, tell func([]Notice)) error {
	return e.ordered(ctx, key, func(v vault.View) (Outcome, error) {
		stored, err := v.Subscriptions(key)
		if err != nil {
			return Outcome{}, err
		}
		known, full := e.interest.has(s, key)
		if !known || !full && len(stored) == 0 {
			return Outcome{}, nil
		}
		state, err := v.Vault(key)
		if err != nil {
			return Outcome{}, err
		}
		event := &Event{
			Owner: key.Account, Node: key.Node,
			State: State{Owner: key.Account, Node: key.Node, Cursor: e.sign(state)},
		}
		return Outcome{Notices: []Notice{{To: s.Address, Event: event}}}, nil
	}, func(out Outcome) { tell(out.Notices) })
}
