package client

import (
	"bytes"
	"fmt"

	"pepvault/vault"
	"pepvault/vault/device"
	"pepvault/vault/device/cache"
	"pepvault/vault/seal"
)

// join gets the vault's keys once it is known what there is, or makes them.
func (s *session) join() error {
	record, there := s.r.Records()[KeyRecord]
	switch {
	case there:
		if err := s.joinVault(record); err != nil {
			return err
		}
	case len(s.r.Records()) > 0:
		return ErrForeign
	default:
		if err := s.makeVault(); err != nil {
			return err
		}
	}
	s.joining = false
	s.look()
	return s.save()
}

// joinVault unwraps the keys of a vault that is there, and takes up again what a
// device with another pass phrase has kept.
func (s *session) joinVault(record device.Record) error {
	if !isOurs(record.Payload) {
		return ErrForeign
	}
	read, err := seal.ReadKeyRecord(record.Payload.Data)
	if err != nil {
		return fmt.Errorf("%w: the record with the vault's keys is damaged", ErrTampered)
	}
	if read.Lock.Kind != s.Source.Kind {
		return fmt.Errorf("%w: the vault is locked with a %s", seal.ErrWrongSecret, kindOf(read.Lock.Kind))
	}
	keys, lock, root, err := s.unwrap(record)
	if err != nil {
		return err
	}
	if _, err := s.Store.Lock(); err == nil { // what was kept under another pass phrase
		text, err := s.Store.UnlockByNames(keys.Names)
		if err != nil {
			return fmt.Errorf("%w: %w", ErrOtherVault, err)
		}
		if err := s.opened(text, lock, root); err != nil {
			return err
		}
		s.Store.Relock(lock, root, keys.Names)
		s.synced = false
		return nil
	}
	s.lock, s.root = lock, root
	s.Store.Relock(lock, root, keys.Names)
	return nil
}

func kindOf(kind seal.LockKind) string {
	if kind == seal.KeyFile {
		return "key file"
	}
	return "pass phrase"
}

// makeVault makes the keys of a vault, which is made when they are stored.
func (s *session) makeVault() error {
	lock := seal.NewLock(s.Source.Kind)
	root, err := s.rootOf(lock)
	if err != nil {
		return err
	}
	s.lock, s.root = lock, root
	s.found(seal.Keys{Records: seal.NewKey(), Names: seal.NewNameKey()})
	return nil
}

// found has the device offer keys as those of a new vault.
func (d *Device) found(keys seal.Keys) {
	d.state.addKey(keys.Records)
	d.state.Names = bytes.Clone(seal.Key(keys.Names).Bytes())
	d.state.KeyID, d.state.KeyVersion = keys.Records.ID(), max(d.r.KeyVersion(), 1)
	d.state.Confirmed = false
	d.state.KeyRecord = seal.Wrap(d.root, d.lock, d.at, d.state.KeyVersion, keys, nil)
	d.Store.Relock(d.lock, d.root, keys.Names)
	d.r.Save(KeyRecord, d.state.KeyVersion, vault.Payload{Form: vault.Native, Data: d.state.KeyRecord})
}

// Renew has a device whose vault was deleted begin a new one, with all that it had
// not offered. It does nothing while there is a vault. [Device.Run] offers it.
func (d *Device) Renew() error {
	if d.joining || len(d.r.Records()) > 0 || d.offersKey() {
		return nil
	}
	before := d.r.Memory()
	waiting := before.Changes
	if before.Batch != nil {
		waiting = append(waiting, before.Batch.Changes...)
	}
	type named struct {
		id string
		seal.Record
	}
	var contents []named
	for _, c := range append(waiting, before.Refused...) {
		if c.Gone || c.ID == KeyRecord {
			continue
		}
		r, err := d.open(c.ID, c.KeyVersion, c.Payload)
		if err != nil {
			return fmt.Errorf("what was changed can't be opened: %w", err)
		}
		contents = append(contents, named{c.ID, r})
	}
	d.r = device.Load(device.Memory{Node: d.Node, Cursor: before.Cursor, Conflicts: before.Conflicts})
	keys, known := d.state.keys()
	if !known {
		keys.Names = seal.NewNameKey()
	}
	d.found(seal.Keys{Records: seal.NewKey(), Names: keys.Names})
	for _, c := range contents {
		if err := d.store(c.id, c.Record); err != nil {
			return err
		}
	}
	return d.save()
}

// Unlockable reports whether what is kept in a store is opened by this secret:
// after a change of the pass phrase elsewhere it is not, and [Join] finds the way.
func Unlockable(o Options) (bool, error) {
	_, err := Open(o)
	switch {
	case err == nil:
		return true, nil
	case isAny(err, seal.ErrWrongSecret, cache.ErrNone):
		return false, nil
	}
	return false, err
}
