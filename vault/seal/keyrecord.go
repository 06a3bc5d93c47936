package seal

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"

	"golang.org/x/crypto/chacha20poly1305"
)

// KeyRecordID is the id of the record that holds a vault's keys. It sorts before
// all that [NameKey.RecordID] makes.
const KeyRecordID = "-key"

const (
	keyFormat   = 2
	proofBytes  = sha256.Size
	keyHead     = 1 + lockBytes + 2*len(KeyID{})
	wrappedAt   = keyHead + proofBytes + chacha20poly1305.NonceSizeX
	keyRecBytes = wrappedAt + 2*KeyBytes + chacha20poly1305.Overhead
)

// Keys are those of a vault.
type Keys struct {
	Records Key
	Names   NameKey
}

// KeyRecord is a vault's key record as everybody can read it. What it says is not
// known to be true before [Unwrap].
type KeyRecord struct {
	Lock Lock
	Key  KeyID // that is wrapped in it
	// Previous is the key that was there before a rotation; zero = none.
	Previous KeyID
	proof    [proofBytes]byte
	head     []byte
}

// Wrap makes the key record of a key version: keys, under the root of a lock.
// After a rotation previous is the key before, and the record proves that whoever
// made it had that, so that others can tell a changed pass phrase from a forged
// record; else it is nil.
func Wrap(root Root, lock Lock, at Place, keyVersion uint32, keys Keys, previous *Key) []byte {
	var nonce [chacha20poly1305.NonceSizeX]byte
	_, _ = rand.Read(nonce[:]) // it never fails
	return wrapWith(nonce, root, lock, at, keyVersion, keys, previous)
}

func wrapWith(nonce [chacha20poly1305.NonceSizeX]byte, root Root, lock Lock, at Place, keyVersion uint32, keys Keys, previous *Key) []byte {
	text := lock.Append([]byte{keyFormat})
	id, before, proof := keys.Records.ID(), KeyID{}, [proofBytes]byte{}
	if previous != nil {
		before = previous.ID()
	}
	text = append(append(text, id[:]...), before[:]...)
	if previous != nil {
		proof = previous.proves(at, keyVersion, text)
	}
	text = append(append(text, proof[:]...), nonce[:]...)
	both := append(keys.Records.Bytes(), keys.Names.secret[:]...)
	return root.aead().Seal(text, nonce[:], both, at.bind("keys", keyVersion, KeyRecordID, string(text)))
}

// ReadKeyRecord reads a key record. The error is [ErrTampered].
func ReadKeyRecord(sealed []byte) (KeyRecord, error) {
	if len(sealed) != keyRecBytes || sealed[0] != keyFormat {
		return KeyRecord{}, ErrTampered
	}
	lock, rest, err := ReadLock(sealed[1:])
	if err != nil {
		return KeyRecord{}, err
	}
	return KeyRecord{
		Lock: lock, Key: KeyID(rest), Previous: KeyID(rest[len(KeyID{}):]),
		proof: [proofBytes]byte(sealed[keyHead:]), head: sealed[:keyHead],
	}, nil
}

// Follows reports whether whoever made the record had the key before.
func (r KeyRecord) Follows(previous Key, at Place, keyVersion uint32) bool {
	want := previous.proves(at, keyVersion, r.head)
	return r.Previous == previous.ID() && hmac.Equal(want[:], r.proof[:])
}

// Unwrap opens what [Wrap] made for the same place and key version. With another
// root it is [ErrWrongSecret], also where the text was changed; a text that can't
// be a key record is [ErrTampered].
func Unwrap(root Root, at Place, keyVersion uint32, sealed []byte) (Keys, error) {
	r, err := ReadKeyRecord(sealed)
	if err != nil {
		return Keys{}, err
	}
	open := sealed[:wrappedAt]
	both, err := root.aead().Open(nil, open[wrappedAt-chacha20poly1305.NonceSizeX:], sealed[wrappedAt:], at.bind("keys", keyVersion, KeyRecordID, string(open)))
	if err != nil {
		return Keys{}, ErrWrongSecret
	}
	keys := Keys{Records: Key{secret(both)}, Names: NameKey{secret(both[KeyBytes:])}}
	if keys.Records.ID() != r.Key {
		return Keys{}, ErrTampered
	}
	return keys, nil
}

func (k Key) proves(at Place, keyVersion uint32, head []byte) [proofBytes]byte {
	mac := hmac.New(sha256.New, k.derive("next key"))
	mac.Write(at.bind("next key", keyVersion, string(head)))
	return [proofBytes]byte(mac.Sum(nil))
}
