package vault

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"hash"
)

// ErrDamaged says that a store, or a copy of one, is not as it was written.
var ErrDamaged = errors.New("the store is damaged")

// Contents sums up a whole store.
type Contents struct {
	Accounts   int // that own a vault
	Vaults     int
	Records    int
	Tombstones int
	Bytes      int64 // sum of all payloads
	Hash       ContentHash
}

// ContentHash stands for all records of a store: two stores with the same hash
// hold the same payloads under the same names. It knows nothing of the order of
// changes, so a store keeps its hash when it is copied, restored or moved.
type ContentHash [sha256.Size]byte

// String gives it in hexadecimal.
func (h ContentHash) String() string { return hex.EncodeToString(h[:]) }

// ContentHasher makes a ContentHash.
type ContentHasher struct {
	sum   hash.Hash
	frame []byte
}

// NewContentHasher begins with an empty store.
func NewContentHasher() *ContentHasher { return &ContentHasher{sum: sha256.New()} }

// Add takes in a record. Records come in the order of account, node and id,
// each compared byte for byte.
func (h *ContentHasher) Add(key Key, r Record) {
	h.frame = h.frame[:0]
	h.text(string(key.Account))
	h.text(key.Node)
	h.text(r.ID)
	h.text(string(r.Publisher))
	h.frame = binary.BigEndian.AppendUint32(h.frame, r.KeyVersion)
	h.frame = append(h.frame, byte(r.Payload.Form))
	h.frame = binary.BigEndian.AppendUint64(h.frame, uint64(len(r.Payload.Data)))
	h.sum.Write(h.frame)
	h.sum.Write(r.Payload.Data)
}

// text adds a text with its length, so that no two records look alike.
func (h *ContentHasher) text(s string) {
	h.frame = binary.BigEndian.AppendUint64(h.frame, uint64(len(s)))
	h.frame = append(h.frame, s...)
}

// Sum returns the hash of what was added.
func (h *ContentHasher) Sum() ContentHash { return ContentHash(h.sum.Sum(nil)) }
