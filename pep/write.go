package pep

import (
	"context"
	"errors"
	"time"

	"pepvault/vault"
)

// change is one write to one vault, from its rules to its announcement.
type change struct {
	engine *Engine
	tx     vault.Tx
	told   func(announce func())
	vault  vault.Vault // before the change
	state  State       // Previous is set; the rest follows in announce
	made   []vault.Change
}

// begin reads the vault that a write is about; ErrNoVault.
func (e *Engine) begin(tx vault.Tx, told func(func()), req Request, node string) (*change, error) {
	if err := admit(req); err != nil {
		return nil, err
	}
	key := vault.Key{Account: req.Owner, Node: node}
	v, err := tx.Vault(key)
	c := &change{engine: e, tx: tx, told: told, vault: v, state: State{Owner: key.Account, Node: node, Previous: NoCursor}}
	c.vault.Key = key
	if err == nil {
		c.state.Previous = e.sign(v)
	}
	return c, err
}

// announce has the outcome of the change called out after the commit: the
// answer, then the event to everybody concerned.
func (c *change) announce(answer func(*State) Answer, done func(Outcome)) error {
	e, key := c.engine, c.vault.Key
	after, err := c.tx.Vault(key)
	if err != nil {
		return err
	}
	c.state.Cursor = e.sign(after)
	for _, made := range c.made {
		c.state.Items = append(c.state.Items, StateItem{ID: made.ID, Revision: made.Revision, Gone: made.Gone})
	}
	subscribed, err := c.tx.Subscriptions(key)
	if err != nil {
		return err
	}
	event := &Event{Owner: key.Account, Node: key.Node, Changes: c.made, State: c.state}
	out := Outcome{Answer: answer(&event.State)}
	c.told(func() {
		out.Notices = e.interest.notices(key, subscribed, event)
		done(out)
	})
	return nil
}

// checkNames bounds the ids of one change: its answer and its event, each one
// stanza, name every record twice at most.
func (e *Engine) checkNames(ids []string) error {
	bytes := 0
	for _, id := range ids {
		bytes += 2 * vault.Record{ID: id}.Cost()
	}
	if bytes > e.answer {
		return Refuse(ErrPolicy, "the record ids are too long together: change fewer records at once")
	}
	return nil
}

func (e *Engine) publish(ctx context.Context, req Request, op Publish, done func(Outcome)) error {
	if err := e.checkItems(op.Items); err != nil {
		return err
	}
	records := make([]vault.Record, len(op.Items))
	ids := make([]string, len(op.Items))
	now := e.now().UTC().Truncate(time.Millisecond)
	for i, item := range op.Items {
		if item.ID == "" {
			item.ID = newRecordID()
		}
		ids[i] = item.ID
		records[i] = vault.Record{
			ID: item.ID, KeyVersion: item.KeyVersion, Payload: item.Payload,
			Publisher: req.Sender.Account, Published: now,
		}
	}
	if err := e.checkNames(ids); err != nil {
		return err
	}
	key := vault.Key{Account: req.Owner, Node: op.Node}
	return e.update(ctx, key, func(tx vault.Tx, told func(func())) error {
		c, err := e.begin(tx, told, req, op.Node)
		if errors.Is(err, vault.ErrNoVault) {
			err = c.create()
		}
		if err != nil {
			return err
		}
		if err := c.put(records, ids); err != nil {
			return err
		}
		return c.announce(func(s *State) Answer {
			return Published{Node: op.Node, IDs: ids, State: wanted(s, op.State)}
		}, done)
	})
}

// checkItems checks what does not depend on the store.
func (e *Engine) checkItems(items []Item) error {
	if len(items) > e.limits.Records {
		return Refuse(ErrMaxItemsExceeded, "a vault holds at most %d records", e.limits.Records)
	}
	for _, item := range items {
		switch {
		case item.ID != "" && !vault.ValidName(item.ID):
			return Refuse(ErrBadName, "a record id has 1 to %d bytes and no control characters", vault.MaxNameBytes)
		case len(item.Payload.Data) > e.limits.RecordBytes:
			return Refuse(ErrPayloadTooBig, "a record holds at most %d bytes", e.limits.RecordBytes)
		case item.Payload.Form == vault.Foreign && !e.limits.ForeignPayloads:
			return Refuse(ErrInvalidPayload, "this service takes only its own record element")
		}
	}
	return nil
}

// create makes the vault that the change is about.
func (c *change) create() error {
	usage, err := c.tx.Usage(c.vault.Key.Account)
	if err != nil {
		return err
	}
	if limit := c.engine.limits.Vaults; usage.Vaults >= limit {
		return Refuse(ErrTooManyVaults, "an account has at most %d vaults", limit)
	}
	c.vault, err = c.tx.Create(c.vault.Key, vault.Config{})
	return err
}

// put stores records, within the bounds of the vault and of the account.
func (c *change) put(records []vault.Record, ids []string) error {
	key, limits := c.vault.Key, c.engine.limits
	heads, err := c.tx.Heads(key, ids)
	if err != nil {
		return err
	}
	count, grown := c.vault.Records, int64(0)
	for i, head := range heads {
		if head.Revision == 0 || head.Gone {
			count++
		}
		grown += int64(len(records[i].Payload.Data) - head.Bytes)
	}
	if count > limits.Records && count > c.vault.Records {
		return Refuse(ErrNodeFull, "this vault holds at most %d records", limits.Records)
	}
	usage, err := c.tx.Usage(key.Account)
	if err != nil {
		return err
	}
	if grown > 0 && usage.Bytes+grown > limits.AccountBytes {
		return &Refusal{
			Err: ErrQuotaExceeded, Text: "this account has no room left",
			Bytes: usage.Bytes, Limit: limits.AccountBytes,
		}
	}
	for _, r := range records {
		if r.Revision, err = c.tx.Put(key, r); err != nil {
			return err
		}
		c.made = append(c.made, vault.Change{Record: r})
	}
	return nil
}

func (e *Engine) retract(ctx context.Context, req Request, op Retract, done func(Outcome)) error {
	if err := e.checkNames(op.IDs); err != nil {
		return err
	}
	key := vault.Key{Account: req.Owner, Node: op.Node}
	return e.update(ctx, key, func(tx vault.Tx, told func(func())) error {
		c, err := e.begin(tx, told, req, op.Node)
		if err != nil {
			return err
		}
		for _, id := range op.IDs {
			revision, err := tx.Retract(key, id)
			if err != nil {
				return err
			}
			c.made = append(c.made, vault.Change{Record: vault.Record{ID: id, Revision: revision}, Gone: true})
		}
		if err := tx.Prune(key, e.limits.TombstonesFactor*e.limits.Records); err != nil {
			return err
		}
		return c.announce(func(s *State) Answer { return Retracted{State: wanted(s, op.State)} }, done)
	})
}

func (e *Engine) delete(ctx context.Context, req Request, op Delete, done func(Outcome)) error {
	key := vault.Key{Account: req.Owner, Node: op.Node}
	return e.update(ctx, key, func(tx vault.Tx, told func(func())) error {
		c, err := e.begin(tx, told, req, op.Node)
		if err != nil {
			return err
		}
		subscribed, err := tx.Subscriptions(key)
		if err != nil {
			return err
		}
		if err := tx.Delete(key); err != nil {
			return err
		}
		event := &Event{Owner: key.Account, Node: key.Node, Deleted: true, State: c.state}
		told(func() {
			notices := e.interest.notices(key, subscribed, event)
			e.interest.forget(key)
			done(Outcome{Answer: Deleted{}, Notices: notices})
		})
		return nil
	})
}

func wanted(s *State, want bool) *State {
	if !want {
		return nil
	}
	return s
}
