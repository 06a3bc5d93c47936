package pep

import (
	"context"
	"errors"

	"pepvault/vault"
)

// create makes an empty vault (XEP-0060 §8.1), which takes its first revision.
// XEP-0060 has no event for that: who follows states is told by the state
// alone, or the next one would show it a gap.
func (e *Engine) create(ctx context.Context, req Request, op Create, done func(Outcome)) error {
	if op.Node == "" {
		op.Node = newRecordID()
		req.Op = op
	}
	var config vault.Config
	if op.Config != nil {
		var err error
		if config, err = e.configured(config, op.Config); err != nil {
			return err
		}
	}
	key := vault.Key{Account: req.Owner, Node: op.Node}
	return e.update(ctx, key, func(tx vault.Tx, told func(func())) error {
		c, err := e.begin(tx, told, req)
		switch {
		case err == nil:
			return vault.ErrVaultExists
		case !errors.Is(err, vault.ErrNoVault):
			return err
		}
		if err := c.create(config); err != nil {
			return err
		}
		return c.announce(Event{}, func(*State) Answer { return Created{Node: op.Node} }, done)
	})
}

func (e *Engine) readConfig(ctx context.Context, req Request, op ReadConfig, done func(Outcome)) error {
	key := vault.Key{Account: req.Owner, Node: op.Node}
	return e.ordered(ctx, key, func(v vault.View) (Outcome, error) {
		if err := admit(v, req); err != nil {
			return Outcome{}, err
		}
		state, err := v.Vault(key)
		return Outcome{Answer: ConfigForm{Node: op.Node, Form: e.configForm(state.Config)}}, err
	}, done)
}

// configure changes a configuration. What changes nothing takes no revision,
// so devices that submit whole forms cause no events.
func (e *Engine) configure(ctx context.Context, req Request, op Configure, done func(Outcome)) error {
	key := vault.Key{Account: req.Owner, Node: op.Node}
	return e.update(ctx, key, func(tx vault.Tx, told func(func())) error {
		c, err := e.begin(tx, told, req)
		if err != nil {
			return err
		}
		config := c.vault.Config
		if !op.Cancel {
			if config, err = e.reconfigured(c.vault, &op.Form); err != nil {
				return err
			}
		}
		if e.alike(config, c.vault.Config) {
			told(func() { done(Outcome{Answer: Configured{}}) })
			return nil
		}
		if _, err := tx.Configure(key, config); err != nil {
			return err
		}
		event := Event{Config: e.configEvent(config), Muted: config.MuteAll || config.MuteConfig, Bare: config.MutePayloads}
		return c.announce(event, func(*State) Answer { return Configured{} }, done)
	})
}

// configEvent is a configuration as an event tells it: there is nothing to
// choose.
func (e *Engine) configEvent(config vault.Config) *Form {
	form := e.configForm(config)
	for i := range form.Fields {
		form.Fields[i].Choices = nil
	}
	return &form
}

// purge removes all records (XEP-0060 §8.5). Its one event says so, whether
// its state has room for the names or not.
func (e *Engine) purge(ctx context.Context, req Request, op Purge, done func(Outcome)) error {
	key := vault.Key{Account: req.Owner, Node: op.Node}
	return e.update(ctx, key, func(tx vault.Tx, told func(func())) error {
		c, err := e.begin(tx, told, req)
		if err != nil {
			return err
		}
		if c.vault.Records == 0 {
			told(func() { done(Outcome{Answer: Purged{}}) })
			return nil
		}
		gone, err := tx.Purge(key)
		if err != nil {
			return err
		}
		if err := c.prune(); err != nil {
			return err
		}
		if e.namesFit(gone) {
			c.made = gone
		}
		event := Event{Purged: true, Muted: c.vault.Config.MuteAll || c.vault.Config.MuteRetract}
		return c.announce(event, func(*State) Answer { return Purged{} }, done)
	})
}

func (e *Engine) delete(ctx context.Context, req Request, op Delete, done func(Outcome)) error {
	key := vault.Key{Account: req.Owner, Node: op.Node}
	return e.update(ctx, key, func(tx vault.Tx, told func(func())) error {
		c, err := e.begin(tx, told, req)
		if err != nil {
			return err
		}
		tell, err := c.remove()
		if err != nil {
			return err
		}
		told(func() { done(Outcome{Answer: Deleted{}, Notices: tell()}) })
		return nil
	})
}

// remove deletes the vault that the change is about. What it returns, called
// when that is announced, tells everybody concerned, and ends their
// subscriptions by full JID.
func (c *change) remove() (tell func() []Notice, err error) {
	e, key := c.engine, c.vault.Key
	address, err := e.addresser(c.tx, key)
	if err != nil {
		return nil, err
	}
	if err := c.tx.Delete(key); err != nil {
		return nil, err
	}
	event := &Event{
		Owner: key.Account, Node: key.Node, Deleted: true,
		Muted: c.vault.Config.MuteAll || c.vault.Config.MuteDelete,
		State: State{Owner: key.Account, Node: key.Node, Previous: c.previous},
	}
	return func() []Notice {
		notices := address(event)
		e.interest.forget(key)
		return notices
	}, nil
}
