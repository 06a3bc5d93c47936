package pep

import (
	"context"
	"errors"

	"pepvault/vault"
)

// change is one write to one vault, from its rules to its announcement.
type change struct {
	engine   *Engine
	tx       vault.Tx
	told     func(announce func())
	vault    vault.Vault // before the change
	previous string      // signed cursor, or NoCursor
	made     []vault.Change
	there    []StateItem // what a repeat finds made
}

// begin reads the vault that a write is about; ErrNoVault.
func (e *Engine) begin(tx vault.Tx, told func(func()), req Request) (*change, error) {
	node, act := req.Op.target()
	return e.beginOn(tx, told, req.Sender.Account, vault.Key{Account: req.Owner, Node: node}, act)
}

// beginOn is begin for what an account does to a vault.
func (e *Engine) beginOn(tx vault.Tx, told func(func()), account vault.Account, key vault.Key, act action) (*change, error) {
	if err := admitTo(tx, account, key, act); err != nil {
		return nil, err
	}
	c := &change{engine: e, tx: tx, told: told, previous: NoCursor}
	v, err := tx.Vault(key)
	if err == nil {
		c.previous = e.sign(v)
	}
	c.vault = v
	c.vault.Key = key
	return c, err
}

// announce has the outcome of the change called out after the commit: the
// answer, then the event to everybody concerned.
func (c *change) announce(event Event, answer func(*State) Answer, done func(Outcome)) error {
	e, key := c.engine, c.vault.Key
	after, err := c.tx.Vault(key)
	if err != nil {
		return err
	}
	event.Owner, event.Node = key.Account, key.Node
	event.State = State{Owner: key.Account, Node: key.Node, Previous: c.previous, Cursor: e.sign(after)}
	for _, made := range c.made {
		event.State.Items = append(event.State.Items, StateItem{ID: made.ID, Revision: made.Revision, Gone: made.Gone})
	}
	address, err := e.addresser(c.tx, key)
	if err != nil {
		return err
	}
	out := Outcome{Answer: answer(&event.State)}
	c.told(func() {
		out.Notices = address(&event)
		done(out)
	})
	return nil
}

// addresser reads who is concerned by what happens to a vault. What it returns
// addresses an event to them, when that is announced.
func (e *Engine) addresser(v vault.View, key vault.Key) (func(*Event) []Notice, error) {
	subscribed, err := v.Subscriptions(key)
	if err != nil {
		return nil, err
	}
	affiliated, err := v.Affiliations(key)
	if err != nil {
		return nil, err
	}
	return func(event *Event) []Notice { return e.interest.notices(key, subscribed, affiliated, event) }, nil
}

// prune forgets tombstones beyond their bound.
func (c *change) prune() error {
	return c.tx.Prune(c.vault.Key, c.engine.limits.TombstonesFactor*c.engine.limits.Records)
}

// namesFit tells whether the ids of one change fit: its answer and its event,
// each one stanza, name every record twice at most.
func (e *Engine) namesFit(changes []vault.Change) bool {
	bytes := 0
	for _, c := range changes {
		bytes += 2 * vault.Record{ID: c.ID}.Cost()
	}
	return bytes <= e.answer
}

// checkNames refuses a change whose ids do not fit.
func (c *change) checkNames() error {
	if !c.engine.namesFit(c.made) {
		return Refuse(ErrPolicy, "the record ids are too long together: change fewer records at once")
	}
	return nil
}

func (e *Engine) retract(ctx context.Context, req Request, op Retract, done func(Outcome)) error {
	if op.Batch != nil {
		return e.stageRetract(ctx, req, op, done)
	}
	key := vault.Key{Account: req.Owner, Node: op.Node}
	return e.update(ctx, key, func(tx vault.Tx, told func(func())) error {
		c, err := e.begin(tx, told, req)
		if err != nil {
			return err
		}
		answer := func(s *State) Answer { return Retracted{State: wanted(s, op.State || op.Expect != nil)} }
		there, err := c.expect(op.Expect, true, func() (bool, error) { return c.removed(op.IDs) })
		if err != nil {
			return err
		}
		if there {
			return c.settled(answer, done)
		}
		if err := c.retract(op.IDs); err != nil {
			return err
		}
		if len(op.IDs) > 1 && !op.Confirm {
			if err := c.guard(len(op.IDs)); err != nil {
				return err
			}
		}
		if err := c.prune(); err != nil {
			return err
		}
		event := Event{Changes: c.made, Muted: c.vault.Config.MuteAll || c.vault.Config.MuteRetract && !op.Notify}
		return c.announce(event, answer, done)
	})
}

// retract removes records, all or none: the error names every one that is not
// there.
func (c *change) retract(ids []string) error {
	if err := c.bury(ids); err != nil {
		return err
	}
	return c.checkNames()
}

// guard refuses a removal of nearly the whole vault that is not confirmed.
func (c *change) guard(removed int) error {
	limits := c.engine.limits
	if removed <= limits.MassDeleteMin || limits.MassDeleteShare == 0 ||
		float64(removed) <= limits.MassDeleteShare*float64(c.vault.Records) {
		return nil
	}
	return &Refusal{
		Err: ErrConfirmRequired, Text: "this removes nearly all records: confirm it",
		Records: removed,
	}
}

// bury is retract without a bound on the names.
func (c *change) bury(ids []string) error {
	var absent []string
	for _, id := range ids {
		revision, err := c.tx.Retract(c.vault.Key, id)
		if errors.Is(err, vault.ErrNoRecord) {
			absent = append(absent, id)
			continue
		}
		if err != nil {
			return err
		}
		c.made = append(c.made, vault.Change{Record: vault.Record{ID: id, Revision: revision}, Gone: true})
	}
	if len(absent) > 0 {
		return Refuse(vault.ErrNoRecord, "nothing is removed: there is no record %s", quoteAll(absent))
	}
	return nil
}

func wanted(s *State, want bool) *State {
	if !want {
		return nil
	}
	return s
}
