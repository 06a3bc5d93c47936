package pep

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"pepvault/vault"
)

func (e *Engine) publish(ctx context.Context, req Request, op Publish, done func(Outcome)) error {
	if op.Batch != nil {
		return e.stagePublish(ctx, req, op, done)
	}
	options, err := readPublishOptions(op.Options)
	if err != nil {
		return err
	}
	if err := e.checkItems(op.Items); err != nil {
		return err
	}
	ids, records := e.newRecords(req.Sender, op.Items)
	key := vault.Key{Account: req.Owner, Node: op.Node}
	return e.update(ctx, key, func(tx vault.Tx, told func(func())) error {
		c, err := e.begin(tx, told, req)
		exists := err == nil
		if !exists && !errors.Is(err, vault.ErrNoVault) {
			return err
		}
		answer := func(s *State) Answer {
			return Published{Node: op.Node, IDs: ids, State: wanted(s, op.State || op.Expect != nil)}
		}
		there, err := c.expect(op.Expect, exists, func() (bool, error) { return c.stored(ids, records) })
		if err != nil {
			return err
		}
		if there {
			return c.settled(answer, done)
		}
		if err := c.meet(options, exists); err != nil {
			return err
		}
		if err := c.fits(op.Items, ids); err != nil {
			return err
		}
		if err := c.put(records, ids); err != nil {
			return err
		}
		event := Event{Changes: c.made, Muted: c.vault.Config.MuteAll, Bare: c.vault.Config.MutePayloads}
		return c.announce(event, answer, done)
	})
}

// newRecords makes the records of a publish, with an id for each that came
// without.
func (e *Engine) newRecords(s Sender, items []Item) (ids []string, records []vault.Record) {
	ids, records = make([]string, len(items)), make([]vault.Record, len(items))
	now := e.now().UTC().Truncate(time.Millisecond)
	for i, item := range items {
		if item.ID == "" {
			item.ID = newRecordID()
		}
		ids[i] = item.ID
		records[i] = vault.Record{
			ID: item.ID, KeyVersion: item.KeyVersion, Payload: item.Payload,
			Publisher: s.Account, Published: now,
		}
	}
	return ids, records
}

// fault is why some items of a publish can't be stored.
type fault struct {
	refuse func() error // a Refusal
	hits   func(Item) bool
}

// checkItems checks what does not depend on the store.
func (e *Engine) checkItems(items []Item) error {
	if len(items) > e.limits.Records {
		return Refuse(ErrMaxItemsExceeded, "a vault holds at most %d records", e.limits.Records)
	}
	seen := make(map[string]struct{}, len(items))
	return firstFault(items, nil, []fault{
		{
			func() error { return Refuse(ErrBadRequest, "one id stands there twice") },
			func(i Item) bool {
				_, twice := seen[i.ID]
				seen[i.ID] = struct{}{}
				return twice && i.ID != ""
			},
		},
		{
			func() error {
				return Refuse(ErrBadName, "a record id has 1 to %d bytes and no control characters", vault.MaxNameBytes)
			},
			func(i Item) bool { return i.ID != "" && !vault.ValidName(i.ID) },
		},
		{
			func() error { return Refuse(ErrPayloadTooBig, "a record holds at most %d bytes", e.limits.RecordBytes) },
			func(i Item) bool { return len(i.Payload.Data) > e.limits.RecordBytes },
		},
		{
			func() error { return Refuse(ErrInvalidPayload, "this service takes only its own record element") },
			func(i Item) bool { return i.Payload.Form == vault.Foreign && !e.limits.ForeignPayloads },
		},
	})
}

// fits checks the items against the vault's configuration.
func (c *change) fits(items []Item, ids []string) error {
	config := c.vault.Config
	if most := maxItems(config, c.engine.limits); len(items) > most {
		return Refuse(ErrMaxItemsExceeded, "this vault holds at most %d records", most)
	}
	low := func() error {
		return &Refusal{
			Err: ErrKeyVersionTooLow, Text: "the key has changed: this vault takes newer key versions only",
			Floor: config.KeyVersionFloor,
		}
	}
	return firstFault(items, ids, []fault{
		{
			func() error {
				return Refuse(ErrInvalidPayload, "this vault takes payloads of the namespace %s only", quote(config.Type))
			},
			func(i Item) bool { return config.Type != "" && i.Namespace != config.Type },
		},
		{low, func(i Item) bool { return i.KeyVersion < config.KeyVersionFloor }},
	})
}

// firstFault returns the first of the faults that there is, with the names of
// all items that have it where there are several items (XEP-0060 §12.11).
func firstFault(items []Item, ids []string, faults []fault) error {
	for _, f := range faults {
		var failing []string
		for i, item := range items {
			if !f.hits(item) {
				continue
			}
			name := item.ID
			if ids != nil {
				name = ids[i]
			}
			failing = append(failing, name)
		}
		if len(failing) == 0 {
			continue
		}
		err := f.refuse()
		var refusal *Refusal
		if errors.As(err, &refusal) && len(items) > 1 {
			refusal.Text += "; nothing is stored, because of " + quoteAll(failing)
		}
		return err
	}
	return nil
}

// quotedMost bounds the names in one sentence, in bytes.
const quotedMost = 1000

// quoteAll shows names of a device's in a sentence, as many as fit.
func quoteAll(names []string) string {
	var text strings.Builder
	for i, name := range names {
		quoted := quote(name)
		if text.Len()+len(quoted) > quotedMost {
			text.WriteString(" and others")
			break
		}
		if i > 0 {
			text.WriteString(", ")
		}
		text.WriteString(quoted)
	}
	return text.String()
}

// meet holds the vault that a publish is about to its options, or makes it as
// they want it.
func (c *change) meet(options []submitted, exists bool) error {
	if exists {
		return c.engine.fulfils(c.vault.Config, options)
	}
	config, err := c.engine.configFrom(options)
	if err != nil {
		return err
	}
	return c.create(config)
}

// create makes the vault that the change is about.
func (c *change) create(config vault.Config) error {
	key := c.vault.Key
	if !vault.ValidName(key.Node) {
		return Refuse(ErrBadName, "a node name has 1 to %d bytes and no control characters", vault.MaxNameBytes)
	}
	if key.Node == CommandsNode || strings.HasPrefix(key.Node, CommandPrefix) {
		return Refuse(ErrBadName, "the node is the service's own, for its commands")
	}
	usage, err := c.tx.Usage(key.Account)
	if err != nil {
		return err
	}
	if limit := c.engine.limits.Vaults; usage.Vaults >= limit {
		return Refuse(ErrTooManyVaults, "an account has at most %d vaults", limit)
	}
	c.vault, err = c.tx.Create(key, config)
	return err
}

// put stores records, within the bounds of the vault and of the account.
func (c *change) put(records []vault.Record, ids []string) error {
	if err := c.makeRoom(ids, func(i int) int { return len(records[i].Payload.Data) }); err != nil {
		return err
	}
	for _, r := range records {
		if err := c.store(r); err != nil {
			return err
		}
	}
	return c.checkNames()
}

// store stores one record.
func (c *change) store(r vault.Record) (err error) {
	if r.Revision, err = c.tx.Put(c.vault.Key, r); err == nil {
		c.made = append(c.made, vault.Change{Record: r})
	}
	return err
}

// makeRoom holds the records that are about to be stored, with the sizes of
// their payloads, to the bounds of the vault and of the account.
func (c *change) makeRoom(ids []string, bytes func(i int) int) error {
	key, limits := c.vault.Key, c.engine.limits
	now, err := c.tx.Vault(key)
	if err != nil {
		return err
	}
	heads, err := c.tx.Heads(key, ids)
	if err != nil {
		return err
	}
	count, grown := now.Records, int64(0)
	for i, head := range heads {
		if head.Revision == 0 || head.Gone {
			count++
		}
		grown += int64(bytes(i) - head.Bytes)
	}
	if most := maxItems(c.vault.Config, limits); count > most && count > c.vault.Records {
		if !c.vault.Config.EvictOldest || len(ids) > most {
			return Refuse(ErrNodeFull, "this vault holds at most %d records", most)
		}
		if err := c.evict(count-most, ids); err != nil {
			return err
		}
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
	return nil
}

// evict retracts the n records that changed longest ago, but for those that
// are about to be stored (XEP-0060 §7.1.3.4).
func (c *change) evict(n int, stored []string) error {
	after := vault.Revision(0)
	var oldest []string
	for len(oldest) < n {
		// One payload is read at a time.
		page, err := c.tx.Changes(c.vault.Key, after, vault.PageLimit{Records: 1, Cost: 1, Live: true})
		if err != nil {
			return err
		}
		if len(page.Changes) == 0 {
			break
		}
		for _, old := range page.Changes {
			after = old.Revision
			if !slices.Contains(stored, old.ID) {
				oldest = append(oldest, old.ID)
			}
		}
	}
	if err := c.bury(oldest); err != nil {
		return err
	}
	return c.prune()
}
