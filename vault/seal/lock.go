package seal

import (
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"unicode/utf8"

	"golang.org/x/crypto/argon2"
	"golang.org/x/text/secure/precis"
)

var (
	// ErrBadSecret says that a pass phrase or key file can't be one.
	ErrBadSecret = errors.New("not fit as a secret")
	// ErrWrongSecret says that something was locked with another pass phrase or
	// key file, or has been changed since: the two can't be told apart.
	ErrWrongSecret = errors.New("wrong pass phrase or key file")
)

// LockKind says what a lock is opened with.
type LockKind uint8

const (
	PassPhrase LockKind = 1 // stretched by Argon2id
	KeyFile    LockKind = 2 // a file of at least [KeyBytes] bytes that nobody can guess
)

// Bounds of what a stored lock may ask of a device: a service could write them.
const (
	leastMemory, mostMemory = 8 << 10, 1 << 20 // KiB
	mostPasses              = 64
	mostLanes               = 64
	// MinKeyFile and MaxKeyFile bound a key file, in bytes.
	MinKeyFile, MaxKeyFile = KeyBytes, 1 << 20
)

// Lock says how a pass phrase or a key file becomes a [Root]. It is stored beside
// what it locks and is no secret.
type Lock struct {
	Kind   LockKind
	Memory uint32 // of Argon2id, in KiB; this and the next two are 0 for a key file
	Passes uint32
	Lanes  uint8
	Salt   [16]byte
}

const lockBytes = 1 + 4 + 4 + 1 + 16

// NewLock makes a lock with a salt of its own. A pass phrase is stretched with 64
// MiB of memory, in three passes and four lanes (RFC 9106 §4).
func NewLock(kind LockKind) Lock {
	l := Lock{Kind: kind}
	if kind == PassPhrase {
		l.Memory, l.Passes, l.Lanes = 64<<10, 3, 4
	}
	_, _ = rand.Read(l.Salt[:]) // it never fails
	return l
}

// Append writes the lock down.
func (l Lock) Append(dst []byte) []byte {
	dst = append(dst, byte(l.Kind))
	dst = binary.BigEndian.AppendUint32(dst, l.Memory)
	dst = binary.BigEndian.AppendUint32(dst, l.Passes)
	return append(append(dst, l.Lanes), l.Salt[:]...)
}

// ReadLock reads what Append wrote, from the beginning of text. The error is
// [ErrTampered]: a lock out of bounds would keep a device busy for hours.
func ReadLock(text []byte) (l Lock, rest []byte, err error) {
	if len(text) < lockBytes {
		return Lock{}, nil, ErrTampered
	}
	l = Lock{Kind: LockKind(text[0]), Memory: binary.BigEndian.Uint32(text[1:]), Passes: binary.BigEndian.Uint32(text[5:]), Lanes: text[9], Salt: [16]byte(text[10:])}
	if !l.valid() {
		return Lock{}, nil, ErrTampered
	}
	return l, text[lockBytes:], nil
}

func (l Lock) valid() bool {
	switch l.Kind {
	case KeyFile:
		return l.Memory == 0 && l.Passes == 0 && l.Lanes == 0
	case PassPhrase:
		return l.Memory >= leastMemory && l.Memory <= mostMemory && l.Passes >= 1 && l.Passes <= mostPasses && l.Lanes >= 1 && l.Lanes <= mostLanes
	}
	return false
}

// Root is what a pass phrase or a key file becomes.
type Root struct{ secret }

// Root stretches a secret; of a pass phrase that takes as long and as much memory
// as the lock says, a quarter of a second by default. Pass phrases that look the
// same are the same (RFC 8265 §4.2). The error is [ErrBadSecret].
func (l Lock) Root(text []byte) (Root, error) {
	if !l.valid() {
		return Root{}, fmt.Errorf("%w: no such lock", ErrBadSecret)
	}
	if l.Kind == KeyFile {
		if len(text) < MinKeyFile || len(text) > MaxKeyFile {
			return Root{}, fmt.Errorf("%w: a key file has %d to %d bytes", ErrBadSecret, MinKeyFile, MaxKeyFile)
		}
		root, err := hkdf.Extract(sha256.New, text, l.Salt[:])
		if err != nil {
			return Root{}, fmt.Errorf("%w: key file", ErrBadSecret)
		}
		return Root{secret(root)}, nil
	}
	phrase, err := precis.OpaqueString.Bytes(text)
	if err != nil || len(phrase) == 0 || !utf8.Valid(text) {
		return Root{}, fmt.Errorf("%w: a pass phrase is one line of text", ErrBadSecret)
	}
	return Root{secret(argon2.IDKey(phrase, l.Salt[:], l.Passes, l.Memory, l.Lanes, KeyBytes))}, nil
}

// FileKey is a key for what lies on the device itself.
func (r Root) FileKey() FileKey { return FileKey{secret(r.derive("file"))} }
