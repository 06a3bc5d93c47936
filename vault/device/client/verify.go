package client

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"errors"
	"fmt"

	"pepvault/vault/device"
	"pepvault/vault/seal"
)

// look verifies what is new since the last look. It is called after everything
// that the service says.
func (d *Device) look() {
	if d.r.Cursor() == d.cursor || d.joining {
		return
	}
	before := d.held
	d.held, d.cursor = d.r.Records(), d.r.Cursor()
	d.lookAtKey(before)
	if d.locked == nil {
		for id, record := range d.held {
			if id != KeyRecord {
				d.lookAt(id, record, before)
			}
		}
	}
	for id, old := range before {
		if _, there := d.held[id]; !there && id != KeyRecord {
			d.tell(id, old, true)
			delete(d.state.Seen, id)
			delete(d.state.Tampered, id)
		}
	}
	d.other = false
}

// KeyRecord is the id of the record with the vault's keys.
const KeyRecord = seal.KeyRecordID

func (d *Device) lookAt(id string, record device.Record, before map[string]device.Record) {
	digest := sha256.Sum256(record.Payload.Data)
	last, known := d.state.Seen[id]
	if known && last.Revision == record.Revision && last.Digest == digest && d.state.Tampered[id].Reason == "" {
		return
	}
	r, err := d.openIn(id, record)
	if err == nil && known && !d.other && last.Birth == r.Birth && r.Generation < last.Generation {
		err = errors.New("it went back to an older version")
	}
	if err == nil && known && !d.other && record.Revision < last.Revision {
		err = errors.New("its revision went back")
	}
	if err != nil {
		d.spoiled(id, err, before)
		return
	}
	delete(d.state.Tampered, id)
	d.state.Seen[id] = seen{Revision: record.Revision, Birth: r.Birth, Generation: r.Generation, Digest: digest}
	if !known || record.RotatedFrom == 0 || last.Generation != r.Generation {
		d.tellName(r.Name, false)
	}
}

// spoiled notes a record that was tampered with, and keeps what was there.
func (d *Device) spoiled(id string, reason error, before map[string]device.Record) {
	bad := tampered{Reason: reason.Error()}
	if held, was := d.state.Tampered[id]; was {
		bad.Name, bad.Good = held.Name, held.Good
	} else if good, was := before[id]; was {
		if r, err := d.open(id, good.KeyVersion, good.Payload); err == nil {
			bad.Name, bad.Good = r.Name, &good
		}
	}
	if d.state.Tampered[id].Reason == "" {
		d.news = append(d.news, Change{Name: cmp.Or(bad.Name, id), Tampered: bad.Reason})
	}
	d.state.Tampered[id] = bad
}

func (d *Device) tell(id string, old device.Record, gone bool) {
	if r, err := d.open(id, old.KeyVersion, old.Payload); err == nil {
		d.tellName(r.Name, gone)
	}
}

func (d *Device) tellName(name string, gone bool) {
	d.news = append(d.news, Change{Name: name, Gone: gone})
}

// keepLook looks, keeps what is new, and then tells of it.
func (d *Device) keepLook() error {
	if d.r.Cursor() == d.cursor {
		return nil
	}
	d.look()
	if err := d.save(); err != nil {
		return err
	}
	news := d.news
	d.news = nil
	for _, change := range news {
		if d.Changed != nil {
			d.Changed(change)
		}
	}
	return nil
}

// lookAtKey takes in the vault's key record.
func (d *Device) lookAtKey(before map[string]device.Record) {
	record, there := d.held[KeyRecord]
	if !there {
		d.locked = nil
		delete(d.state.Tampered, KeyRecord)
		if len(d.held) > 0 && !d.offersKey() {
			d.spoiled(KeyRecord, errors.New("the record with the vault's keys is gone"), before)
		}
		return
	}
	if bytes.Equal(record.Payload.Data, d.state.KeyRecord) && record.KeyVersion == d.state.KeyVersion {
		d.locked, d.state.Confirmed = nil, true
		delete(d.state.Tampered, KeyRecord)
		return
	}
	err := d.adoptKey(record)
	switch {
	case err == nil:
		d.locked = nil
		delete(d.state.Tampered, KeyRecord)
	case errors.Is(err, ErrPassPhraseChanged):
		d.locked = err
	default:
		d.locked = err
		d.spoiled(KeyRecord, err, before)
	}
}

// offersKey reports whether a key record is among the device's own changes.
func (d *Device) offersKey() bool {
	for _, c := range d.r.Changes() {
		if c.ID == KeyRecord && !c.Gone {
			return true
		}
	}
	return false
}

// adoptKey takes the vault's keys from a key record that is not the one that the
// device knows.
func (d *Device) adoptKey(record device.Record) error {
	if !isOurs(record.Payload) {
		return errors.New("the record with the vault's keys is none of this program")
	}
	keys, lock, root, err := d.unwrap(record)
	if err != nil {
		return err
	}
	id := keys.Records.ID()
	if !d.other && d.state.KeyVersion > 0 {
		switch {
		case !d.state.Confirmed: // another device made the vault first
		case record.KeyVersion < d.state.KeyVersion:
			return fmt.Errorf("the vault's key went back from version %d to %d", d.state.KeyVersion, record.KeyVersion)
		case record.KeyVersion == d.state.KeyVersion && id != d.state.KeyID:
			return fmt.Errorf("the vault has another key of version %d", record.KeyVersion)
		}
	}
	d.state.addKey(keys.Records)
	d.state.Names = bytes.Clone(seal.Key(keys.Names).Bytes())
	d.state.KeyID, d.state.KeyVersion, d.state.KeyRecord = id, record.KeyVersion, record.Payload.Data
	d.state.Confirmed = true
	if n := d.state.Next; n != nil && n.Root != nil && n.Lock == lock {
		d.Source = n.Source
	}
	d.lock, d.root = lock, root
	d.Store.Relock(lock, root, keys.Names)
	return nil
}

// unwrap finds the root that opens a key record: the device's own, that of its
// rotation, or one of the secret that a person gives.
func (d *Device) unwrap(record device.Record) (seal.Keys, seal.Lock, seal.Root, error) {
	read, err := seal.ReadKeyRecord(record.Payload.Data)
	if err != nil {
		return seal.Keys{}, seal.Lock{}, seal.Root{}, errors.New("the record with the vault's keys is damaged")
	}
	root, err := d.rootFor(read.Lock)
	var keys seal.Keys
	if err == nil {
		keys, err = seal.Unwrap(root, d.at, record.KeyVersion, record.Payload.Data)
	}
	if err == nil {
		return keys, read.Lock, root, nil
	}
	current, known := d.state.key(d.state.KeyID)
	switch {
	case d.joining:
	case read.Lock == d.lock: // it is the device's pass phrase
		err = errors.New("the record with the vault's keys was changed")
	case known && read.Previous == d.state.KeyID && !read.Follows(current, d.at, record.KeyVersion):
		err = errors.New("the record with the vault's keys was forged")
	default:
		err = ErrPassPhraseChanged
	}
	return seal.Keys{}, seal.Lock{}, seal.Root{}, err
}

func (d *Device) rootFor(lock seal.Lock) (seal.Root, error) {
	if n := d.state.Next; n != nil && n.Root != nil && n.Lock == lock {
		if key, ok := seal.KeyFrom(n.Root); ok {
			return seal.Root(key), nil
		}
	}
	return d.rootOf(lock)
}
