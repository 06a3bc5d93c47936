package pep

import (
	"bytes"

	"pepvault/vault"
)

// Expect is what a change relies on: it is made only if that still holds
// (PROTOCOL §8). Repeated after a lost answer, with the same expectation, a
// change that is there already succeeds again.
type Expect struct {
	// Cursor is the state that the device holds; NoCursor: the vault must not
	// exist, and is made.
	Cursor string
	// Items are the records that must be as they were. Without any, nothing at
	// all may have changed since the cursor.
	Items []Expected
}

// Expected is a record that must still have a revision.
type Expected struct {
	ID       string
	Revision vault.Revision // 0 = not there, and not removed since the cursor
}

// expect checks what a change relies on, if it does. repeated tells whether all
// of the change is there already: then that is enough. The error is
// vault.ErrNoVault or a Refusal.
func (c *change) expect(x *Expect, exists bool, repeated func() (bool, error)) (there bool, err error) {
	if x == nil {
		return false, nil
	}
	if exists {
		if there, err = repeated(); there || err != nil {
			return there, err
		}
	}
	return false, c.expectState(*x, exists)
}

func (c *change) expectState(x Expect, exists bool) error {
	switch {
	case x.Cursor == NoCursor && exists:
		return c.mismatch("the vault exists", nil)
	case x.Cursor == NoCursor:
		return nil
	}
	held, err := c.engine.store.CursorKey().Verify(x.Cursor)
	if err != nil {
		return err
	}
	if !exists {
		return vault.ErrNoVault
	}
	runs, err := c.tx.Runs(c.vault.Key)
	if err != nil {
		return err
	}
	if held.Epoch != c.vault.Epoch || runs.Judge(held, c.vault) == vault.ResetLost {
		return c.mismatch("the state that this change relies on is not one of the vault: sync first", nil)
	}
	if len(x.Items) == 0 && held.Revision != c.vault.Revision {
		return c.mismatch("the vault has changed: sync first", nil)
	}
	return c.expectItems(held, x.Items)
}

func (c *change) expectItems(held vault.Cursor, items []Expected) error {
	ids := make([]string, len(items))
	for i, item := range items {
		ids[i] = item.ID
	}
	heads, err := c.tx.Heads(c.vault.Key, ids)
	if err != nil {
		return err
	}
	var changed []StateItem
	size := 0
	for i, head := range heads {
		if c.holds(items[i], head, held) {
			continue
		}
		// All that are named have to fit in one stanza.
		if size += (vault.Record{ID: head.ID}).Cost(); size > c.engine.answer {
			break
		}
		changed = append(changed, StateItem{ID: head.ID, Revision: head.Revision, Gone: head.Gone})
	}
	if len(changed) == 0 {
		return nil
	}
	return c.mismatch("a record has changed: sync first", changed)
}

// holds tells whether a record is as the device expects it. What a key rotation
// sealed anew is the same still.
func (c *change) holds(want Expected, head vault.Head, held vault.Cursor) bool {
	if want.Revision > 0 {
		return !head.Gone && (head.Revision == want.Revision || head.RotatedFrom == want.Revision)
	}
	if head.Revision == 0 {
		// It may have been here, and its removal forgotten.
		return held.Revision >= c.vault.Pruned
	}
	return head.Gone && head.Revision <= held.Revision
}

func (c *change) mismatch(text string, changed []StateItem) error {
	return &Refusal{Err: ErrRevisionMismatch, Text: text, Cursor: c.previous, Items: changed}
}

// stored tells whether all the records are there already, to the byte.
func (c *change) stored(ids []string, records []vault.Record) (bool, error) {
	stored, err := c.tx.Records(c.vault.Key, ids)
	if err != nil || len(stored) < len(records) {
		return false, err
	}
	c.there = nil
	for i, s := range stored {
		want := records[i]
		c.there = append(c.there, StateItem{ID: s.ID, Revision: s.Revision})
		if s.ID != want.ID || s.KeyVersion != want.KeyVersion || s.Payload.Form != want.Payload.Form ||
			!bytes.Equal(s.Payload.Data, want.Payload.Data) {
			return false, nil
		}
	}
	return true, nil
}

// removed tells whether all the records have been removed already.
func (c *change) removed(ids []string) (bool, error) {
	heads, err := c.tx.Heads(c.vault.Key, ids)
	c.there = nil
	for _, head := range heads {
		if !head.Gone {
			return false, err
		}
		c.there = append(c.there, StateItem{ID: head.ID, Revision: head.Revision, Gone: true})
	}
	return err == nil, err
}

// settled announces a change that is there already: its state names it, and has
// no Previous, since nothing led to it now.
func (c *change) settled(answer func(*State) Answer, done func(Outcome)) error {
	state := State{Owner: c.vault.Key.Account, Node: c.vault.Key.Node, Cursor: c.previous, Items: c.there}
	c.told(func() { done(Outcome{Answer: answer(&state)}) })
	return nil
}
