package seal

import (
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base32"
	"encoding/binary"
	"encoding/hex"
	"log/slog"

	"pepvault/vault"
)

// KeyBytes is the length of every key.
const KeyBytes = 32

// Place is the vault that a record belongs to.
type Place struct {
	Owner vault.Account
	Node  string
}

// secret hides itself from logs and errors.
type secret [KeyBytes]byte

// LogValue says nothing.
func (secret) LogValue() slog.Value { return slog.StringValue("(secret)") }

// String says nothing.
func (secret) String() string { return "(secret)" }

// GoString says nothing.
func (secret) GoString() string { return "(secret)" }

// derive makes a key for one purpose.
func (s secret) derive(purpose string) []byte {
	key, err := hkdf.Expand(sha256.New, s[:], "pepvault/"+purpose, KeyBytes)
	if err != nil { // of a constant length
		panic(err)
	}
	return key
}

// Key seals the records of a vault for as long as the vault has one key version.
type Key struct{ secret }

// NewKey makes a key at random.
func NewKey() Key {
	var k Key
	_, _ = rand.Read(k.secret[:]) // it never fails
	return k
}

// Bytes returns the key itself, for who keeps it.
func (k Key) Bytes() []byte { return k.secret[:] }

// KeyFrom is a key that was kept; false if it hasn't the length of one.
func KeyFrom(kept []byte) (k Key, ok bool) {
	return k, copy(k.secret[:], kept) == KeyBytes && len(kept) == KeyBytes
}

// KeyID names a key without telling it. Two keys of one key version, as two
// histories of a vault may have them, have different ids.
type KeyID [16]byte

// String is hexadecimal.
func (id KeyID) String() string { return hex.EncodeToString(id[:]) }

// ID names the key.
func (k Key) ID() KeyID { return KeyID(k.derive("key id")[:len(KeyID{})]) }

// NameKey makes the ids of records.
type NameKey struct{ secret }

// NewNameKey makes one at random.
func NewNameKey() NameKey { return NameKey(NewKey()) }

// idCode spells ids: in lower case, sorted as the bytes are.
var idCode = base32.NewEncoding("0123456789abcdefghijklmnopqrstuv").WithPadding(base32.NoPadding)

// RecordID derives the id of the record that a person calls name: 128 bits, so
// that no two names of a vault meet.
func (k NameKey) RecordID(at Place, name string) string {
	mac := hmac.New(sha256.New, k.derive("record ids"))
	mac.Write(at.bind("name", 0))
	mac.Write([]byte(name))
	return idCode.EncodeToString(mac.Sum(nil)[:16])
}

// FileKey is a key for what lies on the device itself in the place of name: who
// gets the vault's keys by a new pass phrase can read that, too.
func (k NameKey) FileKey() FileKey { return FileKey{secret(k.derive("file"))} }

// bind begins what is authenticated with a text: what it is, and where.
func (p Place) bind(kind string, version uint32, parts ...string) []byte {
	var text []byte
	for _, part := range append([]string{"pepvault", kind, string(p.Owner), p.Node}, parts...) {
		text = binary.BigEndian.AppendUint32(text, uint32(len(part)))
		text = append(text, part...)
	}
	return binary.BigEndian.AppendUint32(text, version)
}
