package client

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"pepvault/vault"
	"pepvault/vault/device"
	"pepvault/vault/seal"
)

// MaxSealed bounds a sealed record, in bytes: with it, a stanza stays below the
// 262144 bytes that servers take from a client as a rule. One that a server does not
// take ends the connection, each time that it is offered, and nothing else would be
// offered any more.
const MaxSealed = 180 << 10

// Entry is a record as a person sees it.
type Entry struct {
	Name    string
	Content []byte
	Removed bool // by this device, which has not offered that yet
	// Waiting says that the content is the device's own and not offered yet.
	Waiting bool
	// Conflict is set where a change of this device can't be made any more:
	// Content is that of the service, the device's own is in it. Where there are
	// several, the next one is shown once this one is settled.
	Conflict *Conflict
	// Tampered says why the service's record is none of the vault's devices; ""
	// = it is. Content is the last good one then, nil if there was none.
	Tampered string
	id       string
}

// Conflict is what a device changed and could not store.
type Conflict struct {
	Content []byte // nil if it was a removal
	Removal bool
	Gone    bool   // the service has no such record any more
	Why     string // the service refused it, other than for a change of others
}

// visible returns what stands in the place of a record: the device's own change,
// or what the service has.
func (d *Device) visible(id string) (device.Record, *device.Change, bool) {
	batch, _ := d.r.Batch()
	for _, c := range slices.Backward(slices.Concat(batch.Changes, d.r.Changes())) {
		if c.ID == id {
			return device.Record{KeyVersion: c.KeyVersion, Payload: c.Payload}, &c, !c.Gone
		}
	}
	record, there := d.r.Records()[id]
	return record, nil, there
}

// ids lists all records that there is something to say of.
func (d *Device) ids() []string {
	var ids []string
	for id := range d.r.Records() {
		ids = append(ids, id)
	}
	m := d.r.Memory()
	changes := slices.Concat(m.Changes, m.Refused)
	if m.Batch != nil {
		changes = append(changes, m.Batch.Changes...)
	}
	for _, x := range m.Conflicts {
		changes = append(changes, x.Mine)
	}
	for _, c := range changes {
		ids = append(ids, c.ID)
	}
	slices.Sort(ids)
	return slices.DeleteFunc(slices.Compact(ids), func(id string) bool { return id == KeyRecord })
}

// List returns all records, by name. Contents are in it. What can't be opened for
// want of its key is left out, and counted.
func (d *Device) List() (list []Entry, locked int) {
	for _, id := range d.ids() {
		e, err := d.entry(id)
		if err != nil {
			locked++
			continue
		}
		list = append(list, e)
	}
	slices.SortStableFunc(list, func(a, b Entry) int { return cmp.Compare(a.Name, b.Name) })
	return list, locked
}

// entry shows one record.
func (d *Device) entry(id string) (Entry, error) {
	e := Entry{id: id}
	record, change, there := d.visible(id)
	e.Waiting = change != nil
	if bad, spoiled := d.state.Tampered[id]; spoiled && change == nil {
		e.Tampered, e.Name = bad.Reason, cmp.Or(bad.Name, id)
		if bad.Good != nil {
			record = *bad.Good
		} else {
			there = false
		}
	}
	e.Removed = change != nil && change.Gone
	found := e.Tampered != ""
	if e.Removed {
		record, there = d.r.Records()[id], true // its name is wanted
	}
	if there && record.Payload.Data != nil {
		r, err := d.open(id, record.KeyVersion, record.Payload)
		if err != nil {
			return Entry{}, err
		}
		e.Name, found = r.Name, true
		if !e.Removed {
			e.Content = r.Content
		}
	}
	return e, d.addConflict(&e, found)
}

// conflictOf returns the place of a record's conflict, and what is in it: there
// may be several, and then it is the latest content.
func (d *Device) conflictOf(id string) (place int, mine seal.Record, err error) {
	place = -1
	all := d.r.Conflicts()
	for i, x := range all {
		if x.Mine.ID != id {
			continue
		}
		if x.Mine.Gone {
			if place < 0 {
				place = i
			}
			continue
		}
		r, err := d.open(id, x.Mine.KeyVersion, x.Mine.Payload)
		if err != nil {
			return i, r, err
		}
		if place < 0 || all[place].Mine.Gone || r.Generation >= mine.Generation {
			place, mine = i, r
		}
	}
	return place, mine, nil
}

func (d *Device) addConflict(e *Entry, found bool) error {
	place, mine, err := d.conflictOf(e.id)
	switch {
	case err != nil:
		return err
	case place < 0 && !found:
		return ErrNoRecord
	case place < 0:
		return nil
	}
	_, there := d.r.Records()[e.id]
	e.Conflict = &Conflict{Content: mine.Content, Removal: d.r.Conflicts()[place].Mine.Gone, Gone: !there, Why: d.state.Refusals[e.id]}
	switch {
	case !e.Conflict.Removal:
		e.Name = mine.Name
	case !found:
		return ErrNoRecord
	}
	return nil
}

// Get returns the record of that name. The error is [ErrNoRecord], or about a key
// that is missing.
func (d *Device) Get(name string) (Entry, error) {
	list, locked := d.List()
	i := slices.IndexFunc(list, func(e Entry) bool { return e.Name == name })
	switch {
	case i >= 0:
		return list[i], nil
	case locked > 0 && d.locked != nil:
		return Entry{}, fmt.Errorf("%q: %w", name, d.Locked())
	}
	return Entry{}, fmt.Errorf("%q: %w", name, ErrNoRecord)
}

// idOf is the id of the record of that name, or the one that it gets.
func (d *Device) idOf(name string) string {
	list, _ := d.List()
	for _, e := range list {
		if e.Name == name {
			return e.id
		}
	}
	return d.state.names().RecordID(d.at, name)
}

// Put changes a record, or makes it. When it returns, that is kept on this device.
// The error may be [seal.ErrTooLong].
func (d *Device) Put(name string, content []byte) error {
	id := d.idOf(name)
	r := seal.Record{Name: name, Content: content, Birth: seal.NewBirth(), Generation: 1}
	if now, _, there := d.visible(id); there {
		if before, err := d.open(id, now.KeyVersion, now.Payload); err == nil {
			r.Birth, r.Generation = before.Birth, before.Generation+1
		}
	}
	if last, known := d.state.Seen[id]; known && last.Birth == r.Birth {
		r.Generation = max(r.Generation, last.Generation+1)
	}
	if err := d.store(id, r); err != nil {
		return err
	}
	return d.save()
}

// store has the replica change a record.
func (d *Device) store(id string, r seal.Record) error {
	key, known := d.state.key(d.state.KeyID)
	if !known {
		return ErrNoVault
	}
	text, err := seal.Seal(key, d.at, id, d.state.KeyVersion, r)
	if err != nil {
		return fmt.Errorf("%q: %w", r.Name, err)
	}
	if len(text) > MaxSealed {
		return fmt.Errorf("%q: %w", r.Name, seal.ErrTooLong)
	}
	d.r.Save(id, d.state.KeyVersion, vault.Payload{Form: vault.Native, Data: text})
	return nil
}

// Remove removes a record. The error is [ErrNoRecord].
func (d *Device) Remove(name string) error {
	e, err := d.Get(name)
	if err != nil {
		return err
	}
	if _, _, there := d.visible(e.id); !there {
		return fmt.Errorf("%q: %w", name, ErrNoRecord)
	}
	d.r.Remove(e.id)
	return d.save()
}

// Settle ends the conflict of a record that [Device.Get] shows: with mine, what this device wanted is
// offered again, in the place of what the service has; else it is dropped.
func (d *Device) Settle(name string, mine bool) error {
	e, err := d.Get(name)
	if err != nil {
		return err
	}
	if e.Conflict == nil {
		return fmt.Errorf("%q has no conflict", name)
	}
	place, _, err := d.conflictOf(e.id)
	if err != nil {
		return err
	}
	if mine {
		switch _, _, there := d.visible(e.id); {
		case !e.Conflict.Removal:
			if err := d.Put(name, e.Conflict.Content); err != nil {
				return err
			}
		case there:
			d.r.Remove(e.id)
		}
	}
	d.r.Settle(place)
	delete(d.state.Refusals, e.id)
	return d.save()
}

// Withdraw drops a change that the service refused for what it is, say for its
// size, and returns why; "" = it did not.
func (d *Device) Withdraw(name string) (why string, err error) {
	e, err := d.Get(name)
	if err != nil || e.Conflict == nil || e.Conflict.Why == "" {
		return "", nil // there is nothing to withdraw
	}
	return e.Conflict.Why, d.Settle(name, false)
}

// Conflicts names the records of which both versions are kept.
func (d *Device) Conflicts() (names []string) {
	list, _ := d.List()
	for _, e := range list {
		if e.Conflict != nil {
			names = append(names, e.Name)
		}
	}
	return names
}

// Tampered tells which records are not what a device made, and why.
func (d *Device) Tampered() (lines []string) {
	for id, bad := range d.state.Tampered {
		if id == KeyRecord {
			lines = append(lines, bad.Reason)
			continue
		}
		lines = append(lines, fmt.Sprintf("%q: %s", cmp.Or(bad.Name, id), bad.Reason))
	}
	slices.Sort(lines)
	return lines
}

// Locked says why the vault's key can't be unwrapped: [ErrPassPhraseChanged] or
// [ErrTampered]; nil = it can.
func (d *Device) Locked() error {
	if d.locked == nil || errors.Is(d.locked, ErrPassPhraseChanged) {
		return d.locked
	}
	return fmt.Errorf("%w: %w", ErrTampered, d.locked)
}

// WentBack reports whether the service has said, since the device was opened, that
// it has not all of the history that the device knows: a backup was restored, or so
// it says. Then it may also have older versions, and an older key.
func (d *Device) WentBack() bool { return d.back }

// Waiting is how many changes have not been offered yet.
func (d *Device) Waiting() int {
	batch, _ := d.r.Batch()
	return len(d.r.Changes()) + len(batch.Changes)
}

func isAny(err error, targets ...error) bool {
	return slices.ContainsFunc(targets, func(t error) bool { return errors.Is(err, t) })
}
