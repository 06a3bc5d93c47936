// Package cache keeps what a device holds of a vault in a folder of its own:
// sealed, replaced as a whole, for one process at a time.
//
// The file begins with what it takes to open it: a [seal.Lock], and the file's
// key twice, under the lock's root and under a key that comes from the vault's
// [seal.NameKey]. So a device whose pass phrase was changed elsewhere gets at what
// it had not offered yet with the new one, by way of the vault.
package cache

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/gofrs/flock"

	"pepvault/vault/seal"
)

var (
	// ErrInUse says that another process has the folder.
	ErrInUse = errors.New("another pepvault-device is using it")
	// ErrNone says that nothing is kept there.
	ErrNone = errors.New("nothing is kept there")
	// ErrDamaged says that a file is not as it was written.
	ErrDamaged = errors.New("the file is damaged; once it is removed, init gets from the vault all that was offered")
)

const (
	stateFile = "vault.sealed"
	passFile  = "pass.sealed"
	lockFile  = "lock"

	format    = 1
	slotBytes = 24 + seal.KeyBytes + 16
)

// Store is a folder. One goroutine uses it; its methods wait for the disk.
type Store struct {
	dir   string
	held  *flock.Flock // nil: it is only looked at
	lock  seal.Lock
	key   seal.FileKey
	slots []byte // the key under the root, and under that of the names
	body  []byte // sealed, as it was read
	pass  pass
}

// Acquire takes a folder, which is made if it is absent. The error may be
// [ErrInUse].
func Acquire(dir string) (*Store, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	held := flock.New(filepath.Join(dir, lockFile), flock.SetPermissions(0o600))
	switch got, err := held.TryLock(); {
	case err != nil:
		return nil, fmt.Errorf("%s: %w", dir, err)
	case !got:
		return nil, fmt.Errorf("%s: %w", dir, ErrInUse)
	}
	return &Store{dir: dir, held: held}, nil
}

// Look opens a folder for reading, whoever has it: it shows the state that was
// kept last.
func Look(dir string) *Store { return &Store{dir: dir} }

// Writable reports whether the folder is this process's.
func (s *Store) Writable() bool { return s.held != nil }

// Close gives the folder free. It can be called again.
func (s *Store) Close() error {
	err := s.closePass()
	if s.held != nil {
		err = errors.Join(err, s.held.Unlock())
	}
	return err
}

// Lock reads the lock of what is kept. The error is [ErrNone], [ErrDamaged] or of
// the disk.
func (s *Store) Lock() (seal.Lock, error) {
	text, err := os.ReadFile(filepath.Join(s.dir, stateFile))
	if errors.Is(err, fs.ErrNotExist) {
		return seal.Lock{}, fmt.Errorf("%s: %w", s.dir, ErrNone)
	}
	if err != nil {
		return seal.Lock{}, err
	}
	if len(text) == 0 || text[0] != format {
		return seal.Lock{}, fmt.Errorf("%s: %w", filepath.Join(s.dir, stateFile), ErrDamaged)
	}
	lock, rest, err := seal.ReadLock(text[1:])
	if err != nil || len(rest) < 2*slotBytes {
		return seal.Lock{}, fmt.Errorf("%s: %w", filepath.Join(s.dir, stateFile), ErrDamaged)
	}
	s.lock, s.slots, s.body = lock, rest[:2*slotBytes], rest[2*slotBytes:]
	return lock, nil
}

// Unlock opens what Lock has read. The error is [seal.ErrWrongSecret] or
// [ErrDamaged].
func (s *Store) Unlock(root seal.Root) (state []byte, err error) {
	return s.unlock(root.FileKey(), "key", s.slots[:slotBytes])
}

// UnlockByNames is Unlock with a key of the vault.
func (s *Store) UnlockByNames(names seal.NameKey) (state []byte, err error) {
	return s.unlock(names.FileKey(), "key by names", s.slots[slotBytes:])
}

func (s *Store) unlock(by seal.FileKey, what string, slot []byte) ([]byte, error) {
	kept, err := by.Open(what, slot)
	if err != nil {
		return nil, err
	}
	key, whole := seal.FileKeyFrom(kept)
	if !whole {
		return nil, fmt.Errorf("%s: %w", filepath.Join(s.dir, stateFile), ErrDamaged)
	}
	state, err := key.Open("state", s.body)
	if err != nil { // the key is right
		return nil, fmt.Errorf("%s: %w", filepath.Join(s.dir, stateFile), ErrDamaged)
	}
	s.key = key
	return state, nil
}

// Relock has what is kept from now on opened by another root, and by another key
// of names. A store that was neither unlocked nor relocked gets its key here.
func (s *Store) Relock(lock seal.Lock, root seal.Root, names seal.NameKey) {
	if s.key == (seal.FileKey{}) {
		s.key = seal.NewFileKey()
	}
	s.lock = lock
	s.slots = append(root.FileKey().Seal("key", s.key.Bytes()), names.FileKey().Seal("key by names", s.key.Bytes())...)
}

// Save replaces what is kept. When it returns, the new one is on the disk; before
// that, a crash leaves the old one.
func (s *Store) Save(state []byte) error {
	text := s.lock.Append([]byte{format})
	text = append(append(text, s.slots...), s.key.Seal("state", state)...)
	return replace(s.dir, stateFile, text)
}

// Remove forgets what is kept.
func (s *Store) Remove() error {
	err := os.Remove(filepath.Join(s.dir, stateFile))
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return errors.Join(err, s.DropPass())
}

// replace writes a file that is there as a whole or not at all.
func replace(dir, name string, text []byte) (err error) {
	path := filepath.Join(dir, name)
	f, err := os.OpenFile(path+".new", os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return errors.Join(err, os.Remove(path+".new"))
	}
	if err := os.Rename(path+".new", path); err != nil {
		return err
	}
	return syncFolder(dir)
}

// syncFolder has a rename outlive a power cut.
func syncFolder(dir string) error {
	folder, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(folder.Sync(), folder.Close())
}

// WriteFile replaces a file beside the state that is no secret.
func (s *Store) WriteFile(name string, text []byte) error { return replace(s.dir, name, text) }

// ReadFile reads it; the error may be [fs.ErrNotExist].
func (s *Store) ReadFile(name string) ([]byte, error) {
	return os.ReadFile(filepath.Join(s.dir, name))
}
