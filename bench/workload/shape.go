// Package workload says what a benchmark's devices do: who there is, what their
// records hold, and in which order they ask for what. All of it follows from a
// seed, so two targets are given the same work, and whoever reads a record can
// tell whether it is the right one.
package workload

import (
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
)

const (
	// RecordBytes is the size of a record that takes about 1.3 KB on the wire.
	RecordBytes = 924
	// MaxDevices bounds the devices of one user: who has heard of a save is
	// noted in one word.
	MaxDevices = 64

	maxUsers   = 1 << 20
	maxRecords = 1 << 16
	// headBytes is how much of a record says whose it is.
	headBytes = 16
)

// ErrForeign says that a record is none that this workload has ever written.
var ErrForeign = errors.New("not a record of this workload")

// Shape is a population: every user has the same number of devices, and a vault
// with the same number of records.
type Shape struct {
	Seed    uint64 `json:"seed"`
	Users   int    `json:"users"`
	Devices int    `json:"devices"` // of one user, 1 to MaxDevices
	Records int    `json:"records"` // of one user
	Bytes   int    `json:"bytes"`   // of a record's ciphertext, at least 16
}

// Check returns what is wrong with the shape, or nil.
func (s Shape) Check() error {
	for _, bound := range []struct {
		what             string
		got, least, most int
	}{
		{"users", s.Users, 1, maxUsers},
		{"devices", s.Devices, 1, MaxDevices},
		{"records", s.Records, 1, maxRecords},
		{"bytes of a record", s.Bytes, headBytes, 1 << 17},
	} {
		if bound.got < bound.least || bound.got > bound.most {
			return fmt.Errorf("%d %s: must be %d to %d", bound.got, bound.what, bound.least, bound.most)
		}
	}
	return nil
}

// RecordID names a user's record; it looks like the UUIDs that devices make.
func (s Shape) RecordID(record int) string {
	return fmt.Sprintf("%08x-0000-4000-8000-%012x", uint32(s.Seed), record)
}

// Record is the number that an id of RecordID was made of.
func (s Shape) Record(id string) (record int, ok bool) {
	if len(id) != 36 {
		return 0, false
	}
	n, err := strconv.ParseUint(id[24:], 16, 31)
	record = int(n)
	return record, err == nil && record < s.Records && s.RecordID(record) == id
}

// Content is what a record's ciphertext stands for.
type Content struct {
	User, Record int
	// Version is 0 for what was there at the beginning; each save has one of
	// its own above.
	Version uint32
}

// AppendRecord appends the ciphertext of a content.
func (s Shape) AppendRecord(dst []byte, c Content) []byte {
	start := len(dst)
	dst = binary.BigEndian.AppendUint32(dst, uint32(s.Seed))
	dst = binary.BigEndian.AppendUint32(dst, uint32(c.User))
	dst = binary.BigEndian.AppendUint32(dst, uint32(c.Record))
	dst = binary.BigEndian.AppendUint32(dst, c.Version)
	random := rand.NewPCG(s.Seed, uint64(c.User)<<48^uint64(c.Record)<<32^uint64(c.Version))
	for len(dst)-start+8 <= s.Bytes {
		dst = binary.LittleEndian.AppendUint64(dst, random.Uint64())
	}
	for last := random.Uint64(); len(dst)-start < s.Bytes; last >>= 8 {
		dst = append(dst, byte(last))
	}
	return dst
}

// Judge tells what content a ciphertext is, after a look at every byte of it.
// Any other is ErrForeign. scratch is overwritten and returned for the next
// time.
func (s Shape) Judge(ciphertext, scratch []byte) (Content, []byte, error) {
	if len(ciphertext) != s.Bytes || binary.BigEndian.Uint32(ciphertext) != uint32(s.Seed) {
		return Content{}, scratch, fmt.Errorf("%w: %d bytes that begin with %s",
			ErrForeign, len(ciphertext), hex.EncodeToString(ciphertext[:min(4, len(ciphertext))]))
	}
	c := Content{
		User:    int(binary.BigEndian.Uint32(ciphertext[4:])),
		Record:  int(binary.BigEndian.Uint32(ciphertext[8:])),
		Version: binary.BigEndian.Uint32(ciphertext[12:]),
	}
	scratch = s.AppendRecord(scratch[:0], c)
	if c.User < 0 || c.User >= s.Users || c.Record < 0 || c.Record >= s.Records || string(scratch) != string(ciphertext) {
		return Content{}, scratch, fmt.Errorf("%w: it was changed on its way", ErrForeign)
	}
	return c, scratch, nil
}
