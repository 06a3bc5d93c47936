package vault

import (
	"log/slog"
	"strconv"
	"time"
	"unicode/utf8"
)

const (
	// MaxNameBytes bounds a record id and a node name; the least is one byte.
	MaxNameBytes = 512
	// MaxKeyVersion is the highest key version that a record may state.
	MaxKeyVersion = 1<<31 - 1
)

// ValidName reports whether name may be a record id or a node name: 1 to
// [MaxNameBytes] bytes of UTF-8 without control characters. Names are compared
// byte for byte.
func ValidName(name string) bool {
	if name == "" || len(name) > MaxNameBytes || !utf8.ValidString(name) {
		return false
	}
	for _, r := range name {
		// U+FFFE and U+FFFF are no XML characters: no answer could carry them.
		if isControl(r) || (r >= 0x80 && r <= 0x9f) || r == 0xfffe || r == 0xffff {
			return false
		}
	}
	return true
}

// Revision counts the changes of one vault; the first change is 1. Each
// changed record, each tombstone and each configuration takes one.
type Revision uint64

func (r Revision) String() string { return strconv.FormatUint(uint64(r), 10) }

// Form says how a payload came and has to go out again.
type Form uint8

const (
	// Native is the ciphertext of our own record element, kept as bytes.
	Native Form = iota + 1
	// Foreign is any other payload element, kept in its canonical form.
	Foreign
)

// Payload is what a device stored. It hides itself from logs.
type Payload struct {
	Form Form
	// Data is the decoded ciphertext of a native payload, or the serialised
	// element of a foreign one. Nobody changes it after it has been handed on.
	Data []byte
}

// LogValue gives the size only.
func (p Payload) LogValue() slog.Value { return slog.IntValue(len(p.Data)) }

// String gives the size only, so that a payload can't slip into an error.
func (p Payload) String() string { return strconv.Itoa(len(p.Data)) + " bytes" }

// GoString is String, for %#v.
func (p Payload) GoString() string { return p.String() }

// Record is one item of a vault.
type Record struct {
	ID         string
	Revision   Revision
	KeyVersion uint32 // at most MaxKeyVersion
	Payload    Payload
	Publisher  Account
	Published  time.Time // UTC, whole milliseconds
	// RotatedFrom is the revision that a key rotation replaced: what the record
	// holds is the same, sealed anew. 0 for one that was written since.
	RotatedFrom Revision
}

// recordFrame is at least what the elements around a payload take on the
// wire, without the names in them.
const recordFrame = 128

// Cost bounds from above the bytes that the record takes in any stanza, with
// its names escaped and a native payload in base64.
func (r Record) Cost() int {
	payload := len(r.Payload.Data)
	if r.Payload.Form == Native {
		payload = (payload + 2) / 3 * 4
	}
	return payload + escapedLen(r.ID) + escapedLen(string(r.Publisher)) + recordFrame
}

// escapedLen is the length of s as an XML attribute, at most: five characters
// have to be written as references of up to six bytes.
func escapedLen(s string) int {
	n := len(s)
	for i := range len(s) {
		switch s[i] {
		case '&', '<', '>', '\'', '"':
			n += 5
		}
	}
	return n
}

// Change is a record as it now is, or the tombstone of one that is gone.
type Change struct {
	Record
	// Gone marks a tombstone: only ID and Revision are set.
	Gone bool
}

// Head is what the order of a vault knows of a record id.
type Head struct {
	ID         string
	Revision   Revision // 0 = neither a record nor a tombstone
	Gone       bool     // a tombstone
	KeyVersion uint32
	Bytes      int // of the payload; 0 for a tombstone
	Cost       int // Record.Cost; 0 for a tombstone
	// RotatedFrom is that of the record.
	RotatedFrom Revision
}
