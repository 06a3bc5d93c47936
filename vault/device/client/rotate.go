package client

import (
	"bytes"
	"crypto/rand"
	"errors"

	"pepvault/vault/device"
	"pepvault/vault/seal"
)

// ErrNotRotated says that a rotation did not come to its end.
var ErrNotRotated = errors.New("the vault has its old key still")

// Rotating reports whether a rotation is under way, and to which key version.
// Every session goes on with it.
func (d *Device) Rotating() (to uint32, under bool) {
	batch, found := d.r.Batch()
	return batch.RotateTo, found && batch.RotateTo > 0
}

// Brings reports whether the rotation under way locks the vault with this secret.
func (d *Device) Brings(secret []byte) bool {
	n := d.state.Next
	if n == nil || n.Root == nil {
		return false
	}
	root, err := n.Lock.Root(secret)
	return err == nil && bytes.Equal(n.Root, seal.Key(root).Bytes())
}

// KeyVersion is the key version of the vault.
func (d *Device) KeyVersion() uint32 { return d.state.KeyVersion }

// Rotate begins a rotation to a new key, if none is under way; [Device.Run]
// carries it out, now or after any interruption. With a new secret, the vault is
// locked with that from then on. It is kept when Rotate returns.
//
// The error is ErrTampered where a record can't be sealed anew.
func (d *Device) Rotate(secret []byte, source Source) error {
	if _, under := d.Rotating(); under {
		return nil
	}
	if len(d.state.Tampered) > 0 {
		return ErrTampered
	}
	key := seal.NewKey()
	n := &next{Version: d.r.KeyVersion() + 1, Key: bytes.Clone(key.Bytes())}
	if secret != nil {
		n.Lock, n.Source = seal.NewLock(source.Kind), source
		root, err := n.Lock.Root(secret)
		if err != nil {
			return err
		}
		n.Root = bytes.Clone(seal.Key(root).Bytes())
	}
	if !d.r.Rotate(rand.Text(), n.Version) {
		return ErrNotRotated
	}
	d.state.addKey(key)
	d.state.Next = n
	return d.save()
}

// Rotated reports how the latest rotation ended: made by this device; or by
// another one first, whose key the vault has then; or not at all.
func (d *Device) Rotated() (made, beaten bool) {
	ended := d.r.Ended()
	return ended.End == device.BatchMade, ended.End == device.BatchLost
}
