package pep

import (
	"cmp"
	"context"
	"slices"
	"time"

	"pepvault/vault"
)

func (e *Engine) commitBatch(ctx context.Context, req Request, op CommitBatch, done func(Outcome)) error {
	if _, err := e.store.CursorKey().Verify(op.Cursor); err != nil && op.Cursor != NoCursor {
		return err
	}
	return e.within(ctx, req, op.ID, func(c *change, b vault.Batch) error {
		switch b.Outcome.End {
		case vault.BatchCommitted: // the answer was lost
			answer := c.committed(b.Outcome)
			c.told(func() { done(Outcome{Answer: answer}) })
			return nil
		case vault.BatchAborted:
			return errNoBatch()
		}
		return c.commit(b, op, done)
	})
}

func (c *change) committed(o vault.BatchOutcome) Answer {
	key := c.vault.Key
	return Committed{State: State{Owner: key.Account, Node: key.Node, Previous: o.Previous, Cursor: o.Cursor}}
}

// commit makes all changes of a batch. The checks come in the order of PROTOCOL
// §8: cursor, what the changes rely on, floor, guard, limits.
func (c *change) commit(b vault.Batch, op CommitBatch, done func(Outcome)) error {
	staged, err := c.tx.Staged(b.BatchKey)
	if err != nil {
		return err
	}
	p, err := c.planBatch(b, staged)
	if err != nil {
		return err
	}
	if op.Changes > 0 && op.Changes != len(staged) { // an older file came back
		return c.stale(p.again)
	}
	if len(p.again) > 0 || op.Cursor != c.previous {
		return c.stale(p.again)
	}
	if err := c.checkFloor(b, p.puts); err != nil {
		return err
	}
	if !op.Confirm {
		if err := c.guard(len(p.removals)); err != nil {
			return err
		}
	}
	bare, err := c.apply(b, p)
	if err != nil {
		return err
	}
	event := Event{Bare: bare || c.vault.Config.MutePayloads}
	if b.RotateTo > 0 {
		if err := c.raiseFloor(b.RotateTo, &event); err != nil {
			return err
		}
	}
	return c.tellBatch(b, event, done)
}

// batchPlan is what a commit will do.
type batchPlan struct {
	again    []StateItem      // has to be staged first, or again
	removals []string         // of records that are there
	puts     []vault.Staged   // in the order in which they will be stored
	replaced []vault.Revision // by each of puts; 0 = it is new
}

// planBatch compares what is staged with the vault.
func (c *change) planBatch(b vault.Batch, staged []vault.Staged) (p batchPlan, err error) {
	ids := make([]string, len(staged))
	for i, s := range staged {
		ids[i] = s.ID
	}
	list, err := c.tx.Heads(c.vault.Key, ids)
	if err != nil {
		return p, err
	}
	heads := make(map[string]vault.Head, len(list))
	for i, s := range staged {
		head := list[i]
		heads[s.ID] = head
		overtaken := s.Epoch != c.vault.Epoch || s.Held < c.vault.Pruned || s.Held < head.Revision
		live := head.Revision > 0 && !head.Gone
		switch {
		case overtaken, b.RotateTo > 0 && !s.Gone && s.KeyVersion != b.RotateTo:
			p.again = append(p.again, StateItem{ID: s.ID, Revision: head.Revision, Gone: head.Gone})
		case !s.Gone:
			p.puts = append(p.puts, s)
		case live: // else it is gone already
			p.removals = append(p.removals, s.ID)
		}
	}
	if b.RotateTo > 0 {
		if err := c.findMissing(heads, &p); err != nil {
			return p, err
		}
	}
	c.sortPuts(heads, &p)
	return p, nil
}

// findMissing adds the records that a rotation leaves out.
func (c *change) findMissing(staged map[string]vault.Head, p *batchPlan) error {
	all, err := c.tx.Inventory(c.vault.Key)
	for _, head := range all {
		if _, found := staged[head.ID]; !found {
			p.again = append(p.again, StateItem{ID: head.ID, Revision: head.Revision})
		}
	}
	return err
}

// sortPuts keeps the order that the records have in the vault; new ones follow.
func (c *change) sortPuts(heads map[string]vault.Head, p *batchPlan) {
	replaced := func(s vault.Staged) vault.Revision {
		if head := heads[s.ID]; !head.Gone {
			return head.Revision
		}
		return 0
	}
	slices.SortStableFunc(p.puts, func(a, b vault.Staged) int {
		return cmp.Compare(replaced(a)-1, replaced(b)-1) // 0-1 is the highest of all
	})
	for _, s := range p.puts {
		p.replaced = append(p.replaced, replaced(s))
	}
}

// checkFloor looks at the floor again, which may have risen since the changes
// were staged.
func (c *change) checkFloor(b vault.Batch, puts []vault.Staged) error {
	if err := c.aboveFloor(b); err != nil {
		return err
	}
	floor := c.vault.Config.KeyVersionFloor
	if slices.ContainsFunc(puts, func(s vault.Staged) bool { return s.KeyVersion < floor }) {
		return &Refusal{
			Err: ErrKeyVersionTooLow, Text: "the key has changed: this vault takes newer key versions only",
			Floor: floor,
		}
	}
	return nil
}

// apply makes the changes. bare says that their payloads are together too large
// to be told.
func (c *change) apply(b vault.Batch, p batchPlan) (bare bool, err error) {
	if err := c.bury(p.removals); err != nil {
		return false, err
	}
	ids := make([]string, len(p.puts))
	for i, s := range p.puts {
		ids[i] = s.ID
	}
	if err := c.makeRoom(ids, func(i int) int { return p.puts[i].Bytes }); err != nil {
		return false, err
	}
	now := c.engine.now().UTC().Truncate(time.Millisecond)
	cost := 0
	for i, s := range p.puts {
		r := vault.Record{ID: s.ID, KeyVersion: s.KeyVersion, Publisher: b.Account, Published: now}
		if b.RotateTo > 0 {
			r.RotatedFrom = p.replaced[i]
		}
		if r.Payload, err = c.tx.StagedPayload(b.BatchKey, s.ID); err != nil {
			return false, err
		}
		cost += r.Cost()
		if err := c.store(r); err != nil {
			return false, err
		}
		if bare = bare || cost > c.engine.answer; bare {
			c.made[len(c.made)-1].Payload = vault.Payload{} // one payload is held at a time
		}
	}
	if bare {
		for i := range c.made {
			c.made[i].Payload = vault.Payload{}
		}
	}
	return bare, c.prune()
}

// raiseFloor ends a rotation. The configuration takes the last revision of the
// commit.
func (c *change) raiseFloor(floor uint32, event *Event) error {
	config := c.vault.Config
	config.KeyVersionFloor = floor
	if _, err := c.tx.Configure(c.vault.Key, config); err != nil {
		return err
	}
	if !config.MuteConfig {
		event.Config = c.engine.configEvent(config)
	}
	return nil
}

// tellBatch remembers the outcome of a batch and announces it.
func (c *change) tellBatch(b vault.Batch, event Event, done func(Outcome)) error {
	after, err := c.tx.Vault(c.vault.Key)
	if err != nil {
		return err
	}
	outcome := vault.BatchOutcome{End: vault.BatchCommitted, Previous: c.previous, Cursor: c.engine.sign(after)}
	if err := c.tx.EndBatch(b.BatchKey, outcome); err != nil {
		return err
	}
	answer := c.committed(outcome)
	if after.Revision == c.vault.Revision { // nothing was staged
		c.told(func() { done(Outcome{Answer: answer}) })
		return nil
	}
	config := c.vault.Config
	for _, made := range c.made {
		if !made.Gone || !config.MuteRetract {
			event.Changes = append(event.Changes, made)
		}
	}
	event.Batch = len(c.made) > 0
	event.Muted = config.MuteAll || len(event.Changes) == 0 && event.Config == nil
	c.made = c.made[:c.nameable(event)]
	return c.announce(event, func(*State) Answer { return answer }, done)
}

// nameable counts the changes that the state beside an event can name. One is
// named whatever is left out: a device that misses content knows so by that.
func (c *change) nameable(event Event) int {
	room := c.engine.answer
	if !event.Bare {
		largest := 0
		for i := range event.Changes {
			largest = max(largest, event.Changes[i].Cost())
		}
		room -= largest
	}
	for i, made := range c.made {
		if room -= (vault.Record{ID: made.ID}).Cost(); room < 0 {
			return max(i, 1)
		}
	}
	return len(c.made)
}
