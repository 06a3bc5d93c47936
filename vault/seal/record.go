package seal

import (
	"crypto/cipher"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"math/bits"

	"golang.org/x/crypto/chacha20poly1305"

	"pepvault/vault"
)

var (
	// ErrTampered says that a text is not what a device sealed for this place
	// with this key.
	ErrTampered = errors.New("it is not what a device sealed for this place")
	// ErrUnknownKey says that a text was sealed with a key that is not at hand.
	ErrUnknownKey = errors.New("it was sealed with an unknown key")
	// ErrTooLong says that a record can't be sealed: its name isn't a name
	// ([vault.ValidName]), or its content has more than [MaxContent] bytes.
	ErrTooLong = errors.New("name or content is too long, or the name is not plain text")
)

const (
	// MaxContent bounds a content, in bytes. A service admits less.
	MaxContent = 1 << 28
	// Overhead is what sealing adds to name and content, in bytes, without
	// padding.
	Overhead = recordHead + bodyHead + chacha20poly1305.Overhead

	recordFormat = 1
	recordHead   = 1 + len(KeyID{}) + chacha20poly1305.NonceSizeX
	bodyHead     = len(Birth{}) + 8 + 2 + 4
	leastBytes   = 256
)

// Birth tells records apart that had the same name one after the other: it is
// drawn when a record is made, and kept while it is changed.
type Birth [16]byte

// NewBirth draws one.
func NewBirth() (b Birth) {
	_, _ = rand.Read(b[:]) // it never fails
	return b
}

// Record is what a person sees of a record.
type Record struct {
	Name    string
	Content []byte
	Birth   Birth
	// Generation counts the changes since its birth. A rotation doesn't change
	// it. A record never goes back to a lower one within one history.
	Generation uint64
}

// Seal seals a record with a nonce that was never used: it has 192 random bits.
// The length of the result is rounded up; powers of two are steps, so that what
// fits below one without padding does so with it. The error is [ErrTooLong].
func Seal(k Key, at Place, id string, keyVersion uint32, r Record) ([]byte, error) {
	var nonce [chacha20poly1305.NonceSizeX]byte
	_, _ = rand.Read(nonce[:]) // it never fails
	return sealWith(nonce, k, at, id, keyVersion, r)
}

func sealWith(nonce [chacha20poly1305.NonceSizeX]byte, k Key, at Place, id string, keyVersion uint32, r Record) ([]byte, error) {
	if !vault.ValidName(r.Name) || len(r.Content) > MaxContent {
		return nil, ErrTooLong
	}
	total := padded(Overhead + len(r.Name) + len(r.Content))
	sealed := make([]byte, 0, total)
	sealed = append(sealed, recordFormat)
	name := k.ID()
	sealed = append(append(sealed, name[:]...), nonce[:]...)

	body := make([]byte, 0, total-recordHead-chacha20poly1305.Overhead)
	body = append(body, r.Birth[:]...)
	body = binary.BigEndian.AppendUint64(body, r.Generation)
	body = binary.BigEndian.AppendUint16(body, uint16(len(r.Name)))
	body = binary.BigEndian.AppendUint32(body, uint32(len(r.Content)))
	body = append(append(body, r.Name...), r.Content...)
	body = body[:cap(body)] // zeros
	return k.aead().Seal(sealed, nonce[:], body, at.bind("record", keyVersion, id, string(sealed[:recordHead]))), nil
}

// KeyOf tells which key a record was sealed with. It is not known to be true
// before the record is opened. The error is [ErrTampered].
func KeyOf(sealed []byte) (KeyID, error) {
	if len(sealed) < leastBytes || sealed[0] != recordFormat {
		return KeyID{}, ErrTampered
	}
	return KeyID(sealed[1:]), nil
}

// Open opens what [Seal] made of a record with the same key, place, id and key
// version. Any other text is [ErrTampered], or [ErrUnknownKey] if another key is
// named in it.
func Open(k Key, at Place, id string, keyVersion uint32, sealed []byte) (Record, error) {
	named, err := KeyOf(sealed)
	switch {
	case err != nil:
		return Record{}, err
	case named != k.ID():
		return Record{}, fmt.Errorf("%w, %s", ErrUnknownKey, named)
	}
	head := sealed[:recordHead]
	nonce := head[1+len(KeyID{}):]
	body, err := k.aead().Open(nil, nonce, sealed[recordHead:], at.bind("record", keyVersion, id, string(head)))
	if err != nil {
		return Record{}, ErrTampered
	}
	return readBody(body, len(sealed))
}

// readBody takes only what sealWith writes.
func readBody(body []byte, total int) (Record, error) {
	if len(body) < bodyHead {
		return Record{}, ErrTampered
	}
	r := Record{Birth: Birth(body), Generation: binary.BigEndian.Uint64(body[len(Birth{}):])}
	rest := body[len(Birth{})+8:]
	name, content := uint64(binary.BigEndian.Uint16(rest)), uint64(binary.BigEndian.Uint32(rest[2:]))
	rest = rest[6:]
	if name+content > uint64(len(rest)) || content > MaxContent || padded(Overhead+int(name+content)) != total {
		return Record{}, ErrTampered
	}
	r.Name, r.Content = string(rest[:name]), rest[name:name+content:name+content]
	for _, b := range rest[name+content:] {
		if b != 0 {
			return Record{}, ErrTampered
		}
	}
	if !vault.ValidName(r.Name) {
		return Record{}, ErrTampered
	}
	return r, nil
}

func (k Key) aead() cipher.AEAD { return aeadOf(k.derive("records")) }

func aeadOf(key []byte) cipher.AEAD {
	aead, err := chacha20poly1305.NewX(key)
	if err != nil { // of a key of another length
		panic(err)
	}
	return aead
}

// padded rounds a length up so far that only O(log log n) bits of it show
// (Padmé: Nikitin et al., Reducing Metadata Leakage from Encrypted Files, §4).
func padded(n int) int {
	n = max(n, leastBytes)
	exponent := bits.Len(uint(n)) - 1
	mask := 1<<(exponent-bits.Len(uint(exponent))) - 1
	return (n + mask) &^ mask
}
