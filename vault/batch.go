package vault

import (
	"errors"
	"time"
)

var (
	// ErrNoBatch says that an account has no such batch, or that it has ended.
	ErrNoBatch = errors.New("no such batch")
	// ErrBatchExists says that an account has a batch of that id.
	ErrBatchExists = errors.New("batch exists")
)

// MaxBatchIDBytes bounds the id of a batch; the least is one byte.
const MaxBatchIDBytes = 64

// ValidBatchID reports whether id may be that of a batch: a [ValidName] of at
// most [MaxBatchIDBytes] bytes.
func ValidBatchID(id string) bool { return len(id) <= MaxBatchIDBytes && ValidName(id) }

// BatchKey names a batch: every account has a name space of its own.
type BatchKey struct {
	Account Account // whose device began it
	ID      string  // chosen by that device
}

// Batch holds changes of one vault that are staged out of sight, to be made
// together (PROTOCOL §9). It ends with the vault, with its account's right to
// write, and when it expires.
type Batch struct {
	BatchKey
	Vault Key
	// RotateTo is the key version that every record has after the commit; 0 =
	// this is no rotation.
	RotateTo uint32
	Expires  time.Time // UTC, whole milliseconds
	Changes  int       // that are staged
	Bytes    int64     // sum of their payloads
	Outcome  BatchOutcome
}

// BatchOutcome is how a batch ended; the zero value is that of an open one.
type BatchOutcome struct {
	End BatchEnd
	// Previous and Cursor are set after a commit: the signed cursors of the
	// vault before it and after it.
	Previous, Cursor string
}

// BatchEnd is a way in which a batch ends that is remembered.
type BatchEnd uint8

const (
	BatchOpen BatchEnd = iota
	BatchCommitted
	BatchAborted
)

// Staged is a change in a batch, without its payload.
type Staged struct {
	ID         string
	Gone       bool   // a removal
	KeyVersion uint32 // 0 for a removal
	Bytes      int    // of the payload; 0 for a removal
	// Epoch and Held are those of the cursor that it was staged with: what is
	// newer, the device has not seen.
	Epoch Epoch
	Held  Revision
}
