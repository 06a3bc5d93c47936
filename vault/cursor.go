package vault

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"log/slog"
)

// ErrBadCursor says that a text is no cursor of this store.
var ErrBadCursor = errors.New("not a cursor of this service")

// Cursor is the state of a vault that a device holds: all changes up to
// Revision, which Run committed, in the history Epoch.
type Cursor struct {
	Epoch    Epoch
	Revision Revision
	Run      Run
}

// Cursor returns the vault's state as a cursor.
func (v Vault) Cursor() Cursor {
	return Cursor{Epoch: v.Epoch, Revision: v.Revision, Run: v.Run}
}

// CursorKey signs cursors, so that none can be made up. It hides itself from
// logs.
type CursorKey [32]byte

// LogValue says nothing.
func (CursorKey) LogValue() slog.Value { return slog.StringValue("(secret)") }

// String says nothing.
func (CursorKey) String() string { return "(secret)" }

// GoString says nothing.
func (CursorKey) GoString() string { return "(secret)" }

const (
	cursorPlain  = 1 // the first byte: which layout follows
	cursorFields = 1 + len(Epoch{}) + 8 + 8
	cursorMAC    = 12
)

// Sign returns the opaque text of c. Equal cursors have equal texts.
func (k CursorKey) Sign(c Cursor) string {
	raw := make([]byte, 0, cursorFields+cursorMAC)
	raw = append(raw, cursorPlain)
	raw = append(raw, c.Epoch[:]...)
	raw = binary.BigEndian.AppendUint64(raw, uint64(c.Revision))
	raw = binary.BigEndian.AppendUint64(raw, uint64(c.Run))
	raw = append(raw, k.mac(raw)...)
	return base64.RawURLEncoding.EncodeToString(raw)
}

// Verify reads a text that [CursorKey.Sign] made under the same key; anything
// else is [ErrBadCursor].
func (k CursorKey) Verify(text string) (Cursor, error) {
	raw, err := base64.RawURLEncoding.Strict().DecodeString(text)
	if err != nil || len(raw) != cursorFields+cursorMAC || raw[0] != cursorPlain {
		return Cursor{}, ErrBadCursor
	}
	// The decoder passes over line breaks.
	if base64.RawURLEncoding.EncodeToString(raw) != text {
		return Cursor{}, ErrBadCursor
	}
	fields, mac := raw[:cursorFields], raw[cursorFields:]
	if !hmac.Equal(mac, k.mac(fields)) {
		return Cursor{}, ErrBadCursor
	}
	c := Cursor{Epoch: Epoch(fields[1 : 1+len(Epoch{})])}
	rest := fields[1+len(Epoch{}):]
	c.Revision = Revision(binary.BigEndian.Uint64(rest))
	c.Run = Run(binary.BigEndian.Uint64(rest[8:]))
	return c, nil
}

func (k CursorKey) mac(fields []byte) []byte {
	h := hmac.New(sha256.New, k[:])
	h.Write(fields)
	return h.Sum(nil)[:cursorMAC]
}
