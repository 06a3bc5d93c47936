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
	// Pass is set while the device goes through the whole vault: then it holds
	// what changed last at or before Revision, and nothing behind.
	Pass Pass
}

// Pass is a way through the whole vault, page by page. The zero value stands
// for none.
type Pass struct {
	Reset Reset
	Start Revision // of the vault when the pass began: the removals behind it count
	Fork  Revision // of ResetLost
}

// Reset says why a device has to go through the whole vault (PROTOCOL §7).
type Reset uint8

const (
	NoReset     Reset = iota
	ResetNew          // it holds nothing yet
	ResetPruned       // removals that it has not seen are forgotten
	ResetEnded        // the history of its cursor was ended on purpose
	ResetLost         // the history of its cursor is not the vault's
)

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

// The first byte of a cursor says which layout follows.
const (
	cursorPlain  = 1
	cursorPass   = 2
	cursorFields = 1 + len(Epoch{}) + 8 + 8
	passFields   = cursorFields + 1 + 8 + 8
	cursorMAC    = 12
)

// Sign returns the opaque text of c. Equal cursors have equal texts.
func (k CursorKey) Sign(c Cursor) string {
	raw := make([]byte, 0, passFields+cursorMAC)
	raw = append(raw, cursorPlain)
	raw = append(raw, c.Epoch[:]...)
	raw = binary.BigEndian.AppendUint64(raw, uint64(c.Revision))
	raw = binary.BigEndian.AppendUint64(raw, uint64(c.Run))
	if c.Pass != (Pass{}) {
		raw[0] = cursorPass
		raw = append(raw, byte(c.Pass.Reset))
		raw = binary.BigEndian.AppendUint64(raw, uint64(c.Pass.Start))
		raw = binary.BigEndian.AppendUint64(raw, uint64(c.Pass.Fork))
	}
	raw = append(raw, k.mac(raw)...)
	return base64.RawURLEncoding.EncodeToString(raw)
}

// Verify reads a text that [CursorKey.Sign] made under the same key; anything
// else is [ErrBadCursor].
func (k CursorKey) Verify(text string) (Cursor, error) {
	raw, err := base64.RawURLEncoding.Strict().DecodeString(text)
	// The decoder passes over line breaks.
	if err != nil || base64.RawURLEncoding.EncodeToString(raw) != text || len(raw) <= cursorMAC {
		return Cursor{}, ErrBadCursor
	}
	fields, mac := raw[:len(raw)-cursorMAC], raw[len(raw)-cursorMAC:]
	inPass := fields[0] == cursorPass
	switch {
	case !inPass && (fields[0] != cursorPlain || len(fields) != cursorFields),
		inPass && len(fields) != passFields,
		!hmac.Equal(mac, k.mac(fields)):
		return Cursor{}, ErrBadCursor
	}
	c := Cursor{Epoch: Epoch(fields[1 : 1+len(Epoch{})])}
	rest := fields[1+len(Epoch{}):]
	c.Revision = Revision(binary.BigEndian.Uint64(rest))
	c.Run = Run(binary.BigEndian.Uint64(rest[8:]))
	if inPass {
		c.Pass.Reset = Reset(rest[16])
		c.Pass.Start = Revision(binary.BigEndian.Uint64(rest[17:]))
		c.Pass.Fork = Revision(binary.BigEndian.Uint64(rest[25:]))
	}
	return c, nil
}

func (k CursorKey) mac(fields []byte) []byte {
	h := hmac.New(sha256.New, k[:])
	h.Write(fields)
	return h.Sum(nil)[:cursorMAC]
}
