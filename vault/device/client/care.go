package client

import (
	"bytes"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"

	"pepvault/vault"
	"pepvault/vault/device"
	"pepvault/vault/seal"
)

// care does what the replica waits for (device.Replica.Ask), and keeps it.
func (s *session) care() error {
	if s.joining {
		return nil
	}
	moved := s.rotated()
	if to := s.r.Due(); to > 0 && s.rotateDue(to) {
		moved = true
	}
	for _, wanted := range s.r.Unsealed() {
		payload, err := s.sealed(wanted)
		switch {
		case errors.Is(err, errNoKey): // it waits for it
		case errors.Is(err, ErrTampered): // it waits for a good content; that is offered
			s.Logger.Debug("can't seal a record anew", "why", err)
		case err != nil:
			return err
		default:
			s.r.Seal(wanted, payload)
			moved = true
		}
	}
	for _, tidy := range []func() bool{s.settleAlike, s.keyFirst} {
		moved = tidy() || moved
	}
	if moved {
		return s.save()
	}
	return nil
}

var errNoKey = errors.New("the key is not here yet")

// keyFor is the key that seals with a key version now.
func (d *Device) keyFor(version uint32) (seal.Keys, bool) {
	current, known := d.state.keys()
	batch, _ := d.r.Batch()
	if n := d.state.Next; n != nil && n.Version == version && batch.RotateTo == version && version > d.r.KeyVersion() {
		key, ok := seal.KeyFrom(n.Key)
		return seal.Keys{Records: key, Names: current.Names}, ok && known
	}
	// Where the vault is empty, the keys are the device's to name.
	return current, known && d.locked == nil && (version == d.state.KeyVersion || len(d.r.Records()) == 0)
}

// sealed seals a content with the key that it has to have.
func (d *Device) sealed(s device.Sealing) (vault.Payload, error) {
	keys, ok := d.keyFor(s.To)
	if !ok {
		return vault.Payload{}, errNoKey
	}
	if s.ID == KeyRecord {
		return d.sealedKey(s, keys), nil
	}
	if named, err := seal.KeyOf(s.Payload.Data); err == nil && named == keys.Records.ID() && s.From == s.To {
		return s.Payload, nil
	}
	r, err := d.open(s.ID, s.From, s.Payload)
	if err != nil {
		return vault.Payload{}, fmt.Errorf("%w: %w", ErrTampered, err)
	}
	text, err := seal.Seal(keys.Records, d.at, s.ID, s.To, r)
	return vault.Payload{Form: vault.Native, Data: text}, err
}

// sealedKey makes the key record that has to be beside what is sealed with these
// keys.
func (d *Device) sealedKey(s device.Sealing, keys seal.Keys) vault.Payload {
	id := keys.Records.ID()
	same := func(version uint32, p vault.Payload) bool {
		if version != s.To || !isOurs(p) {
			return false
		}
		read, err := seal.ReadKeyRecord(p.Data)
		return err == nil && read.Key == id
	}
	// What there is with that key already, is taken as it is: the replica sees
	// that the two are alike then.
	if record, there := d.r.Records()[KeyRecord]; there && same(record.KeyVersion, record.Payload) {
		return record.Payload
	}
	for _, c := range d.r.Changes() {
		if c.ID == KeyRecord && !c.Gone && same(c.KeyVersion, c.Payload) {
			return c.Payload
		}
	}
	lock, root := d.lock, d.root
	if n := d.state.Next; n != nil && n.Root != nil && n.Version == s.To {
		if key, ok := seal.KeyFrom(n.Root); ok {
			lock, root = n.Lock, seal.Root(key)
		}
	}
	var previous *seal.Key
	if current, known := d.state.key(d.state.KeyID); known && d.state.KeyID != id {
		previous = &current
	}
	return vault.Payload{Form: vault.Native, Data: seal.Wrap(root, lock, d.at, s.To, keys, previous)}
}

// rotateDue begins the rotation that some changes wait for, to the key that they
// were sealed with in a history that is lost.
func (d *Device) rotateDue(to uint32) bool {
	for _, c := range d.r.Changes() {
		if c.KeyVersion != to || c.Gone {
			continue
		}
		named, err := seal.KeyOf(c.Payload.Data)
		if c.ID == KeyRecord {
			read, bad := seal.ReadKeyRecord(c.Payload.Data)
			named, err = read.Key, bad
		}
		if err != nil {
			continue
		}
		if key, known := d.state.key(named); known && d.r.Rotate(rand.Text(), to) {
			d.state.Next = &next{Version: to, Key: bytes.Clone(key.Bytes())}
			return true
		}
	}
	return false
}

// rotated takes in that a rotation has ended, one way or another.
func (d *Device) rotated() bool {
	batch, under := d.r.Batch()
	if d.state.Next == nil || under && batch.RotateTo == d.state.Next.Version {
		return false
	}
	d.state.Next = nil
	return true
}

// settleAlike settles the conflicts whose two sides say the same, or of which this
// device's version is one that the device itself replaced later: only who has the
// keys can compare them.
func (d *Device) settleAlike() (moved bool) {
	for i, x := range slices.Backward(d.r.Conflicts()) {
		alike := x.Mine.ID == KeyRecord || x.Mine.Gone && x.Theirs == nil || d.replaced(x.Mine)
		if !alike && !x.Mine.Gone && x.Theirs != nil {
			mine, err := d.open(x.Mine.ID, x.Mine.KeyVersion, x.Mine.Payload)
			theirs, bad := d.open(x.Mine.ID, x.Theirs.KeyVersion, x.Theirs.Payload)
			alike = err == nil && bad == nil && mine.Name == theirs.Name && bytes.Equal(mine.Content, theirs.Content)
		}
		if alike {
			d.r.Settle(i)
			delete(d.state.Refusals, x.Mine.ID)
			moved = true
		}
	}
	return moved
}

// replaced reports whether a change in a conflict was followed by another one of
// this device, which is in conflict too.
func (d *Device) replaced(c device.Change) bool {
	place, latest, err := d.conflictOf(c.ID)
	if err != nil || place < 0 || c.Gone {
		return false
	}
	r, err := d.open(c.ID, c.KeyVersion, c.Payload)
	return err == nil && r.Birth == latest.Birth && r.Generation < latest.Generation
}

// keyFirst has the device's own key record offered before what is sealed with its
// key: others must never see that without it.
func (d *Device) keyFirst() bool {
	if _, there := d.r.Records()[KeyRecord]; there || !d.offersKey() {
		return false
	}
	m := d.r.Memory()
	i := slices.IndexFunc(m.Changes, func(c device.Change) bool { return c.ID == KeyRecord })
	if i == 0 || m.Request.Step != device.Idle {
		return false
	}
	key := m.Changes[i]
	m.Changes = slices.Insert(slices.Delete(m.Changes, i, i+1), 0, key)
	d.r = device.Load(m)
	return true
}
