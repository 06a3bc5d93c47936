// Package client is a whole device: the sync rules of package device, the seals of
// package seal, and the folder of package cache, over a connection that its user
// makes. cmd/pepvault-device is a command line around it; another program can
// follow it line by line.
//
// What a person changes is kept at once and offered when there is a connection.
// What the service says is verified before it is shown: a record that no device
// sealed for its place with the vault's key, one that went back to an older text,
// and a key that went back, are [ErrTampered]; what was there before is kept.
package client

import (
	"errors"
	"fmt"
	"log/slog"

	"pepvault/vault"
	"pepvault/vault/device"
	"pepvault/vault/device/cache"
	"pepvault/vault/seal"
)

var (
	// ErrTampered says that records are not what a device made of them.
	ErrTampered = errors.New("tampered with")
	// ErrConflict says that a change can't be made any more, since somebody else
	// changed the record: both versions are kept.
	ErrConflict = errors.New("both versions are kept")
	// ErrNoVault says that the vault was deleted, or was never made.
	ErrNoVault = errors.New("there is no such vault any more; what was not offered is kept here, and init begins a new one")
	// ErrForeign says that a vault is used by another program.
	ErrForeign = errors.New("the vault has records of another program; choose another one")
	// ErrOtherVault says that what is kept in a store is not of the vault that it
	// is opened as.
	ErrOtherVault = errors.New("what is kept here is of another vault; name another --state")
	// ErrPassPhraseChanged says that the vault's key can't be unwrapped any more.
	ErrPassPhraseChanged = errors.New("the pass phrase was changed on another device; run init with the new one")
	// ErrNoRecord says that there is no record of a name.
	ErrNoRecord = errors.New("there is no such record")
)

// Options say which vault, and how its keys are unlocked.
type Options struct {
	Account vault.Account
	Service string // JID
	Node    string
	Store   *cache.Store
	// Secret returns the pass phrase or the content of the key file; it is called
	// whenever a lock has to be opened, once for each.
	Secret func(kind seal.LockKind) ([]byte, error)
	Source Source // of Secret, which is kept
	Logger *slog.Logger
}

// Device holds a vault. One goroutine uses it; only [Device.Run] waits for the
// network.
type Device struct {
	Options
	at    seal.Place
	r     *device.Replica
	state *state
	root  seal.Root // of lock
	lock  seal.Lock

	held   map[string]device.Record // as of the last look
	cursor string                   // likewise
	other  bool                     // what comes now is of another history
	locked error                    // why the vault's key record can't be opened
	// joining is set until the device has, or has made, the vault's keys.
	joining bool
	back    bool     // the service went back to an older state
	news    []Change // that Changed was not told
	// Changed is called with each record that somebody changed, once that is kept;
	// nil = nobody wants to know.
	Changed func(Change)
	// Progress is called with how much of a download has come; nil likewise.
	Progress func(done, total int)
}

// Change is a record that is not as it was.
type Change struct {
	Name     string
	Gone     bool
	Tampered string // why it is not what a device made; "" = it is
}

func (d *Device) begin(s *state) {
	d.at = seal.Place{Owner: d.Account, Node: d.Node}
	d.state = s
	d.r = device.Load(s.Memory)
	d.other = s.Memory.Lost
	d.held, d.cursor = d.r.Records(), "" // all is looked at
	if d.Logger == nil {
		d.Logger = slog.New(slog.DiscardHandler)
	}
}

// Open unlocks what is kept in the store. The error may be [cache.ErrNone],
// [cache.ErrDamaged], [seal.ErrWrongSecret] or [ErrOtherVault].
func Open(o Options) (*Device, error) {
	d := &Device{Options: o}
	lock, err := o.Store.Lock()
	if err != nil {
		return nil, err
	}
	root, err := d.rootOf(lock)
	if err != nil {
		return nil, err
	}
	text, err := o.Store.Unlock(root)
	if err != nil {
		return nil, err
	}
	return d, d.opened(text, lock, root)
}

func (d *Device) opened(text []byte, lock seal.Lock, root seal.Root) error {
	s, err := decodeState(text)
	if err != nil {
		return err
	}
	if s.Owner != string(d.Account) || s.Memory.Node != d.Node {
		return fmt.Errorf("%w (%s of %s)", ErrOtherVault, s.Memory.Node, s.Owner)
	}
	d.lock, d.root = lock, root
	d.begin(s)
	d.look()
	return nil
}

// Join is a device of which nothing is kept: its first [Device.Run] finds the
// vault's keys, or makes a vault. Nothing is kept before that.
func Join(o Options) *Device {
	d := &Device{Options: o, joining: true}
	s := &state{Memory: device.New(o.Node).Memory()}
	s.fill()
	d.begin(s)
	return d
}

func (d *Device) rootOf(lock seal.Lock) (seal.Root, error) {
	if lock == d.lock && d.root != (seal.Root{}) {
		return d.root, nil
	}
	text, err := d.Secret(lock.Kind)
	if err != nil {
		return seal.Root{}, err
	}
	return lock.Root(text)
}

// save keeps all, as [device.Memory] wants it.
func (d *Device) save() error {
	if d.joining {
		return nil
	}
	d.state.Owner, d.state.Memory = string(d.Account), d.r.Memory()
	text, err := d.state.encode()
	if err != nil {
		return err
	}
	return d.Store.Save(text)
}

// isOurs reports whether a payload may be one of this program's.
func isOurs(p vault.Payload) bool { return p.Form == vault.Native }

// open opens a payload with whatever key it was sealed with.
func (d *Device) open(id string, version uint32, p vault.Payload) (seal.Record, error) {
	if !isOurs(p) {
		return seal.Record{}, seal.ErrTampered
	}
	named, err := seal.KeyOf(p.Data)
	if err != nil {
		return seal.Record{}, err
	}
	key, known := d.state.key(named)
	if !known {
		return seal.Record{}, fmt.Errorf("%w, %s", seal.ErrUnknownKey, named)
	}
	return seal.Open(key, d.at, id, version, p.Data)
}

// openIn opens a record that has to be sealed with the vault's key.
func (d *Device) openIn(id string, r device.Record) (seal.Record, error) {
	if isOurs(r.Payload) {
		if named, err := seal.KeyOf(r.Payload.Data); err == nil && (named != d.state.KeyID || r.KeyVersion != d.state.KeyVersion) {
			if _, known := d.state.key(named); known {
				return seal.Record{}, errors.New("it is sealed with an older key than the vault has")
			}
			return seal.Record{}, errors.New("it is sealed with a key that the vault does not have")
		}
	}
	return d.open(id, r.KeyVersion, r.Payload)
}
