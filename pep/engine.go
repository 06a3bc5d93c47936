package pep

import (
	"cmp"
	"context"
	"time"

	"github.com/google/uuid"

	"pepvault/vault"
)

// Options are what an Engine works with.
type Options struct {
	Store  vault.Store
	Limits vault.Limits
	// Domains are those whose accounts are served, prepared: nobody else can be
	// affiliated with a vault.
	Domains []string
	// AnswerBytes bounds the records of one answer, as a sum of
	// vault.Record.Cost.
	AnswerBytes int
	// InlineBytes is the cost up to which an answer is read at once; a larger
	// one becomes Later.
	InlineBytes int
	// BatchRecords bounds the changes in one batch.
	BatchRecords int
	// StanzaBytes is a bound of others that the service tells devices.
	StanzaBytes int
	// ChunkBytes bounds the records of a chunk, like AnswerBytes; 0 =
	// AnswerBytes. A single one may be larger.
	ChunkBytes int
	// Window bounds the chunks that a device has not acknowledged; 0 = 1.
	Window int
	// Now is the clock for the times of records and resources; nil = time.Now.
	Now func() time.Time
}

// Engine carries out requests. All methods may be called by many goroutines
// at once.
type Engine struct {
	store    vault.Store
	limits   vault.Limits
	inBatch  int // changes, at most
	domains  []string
	told     []Field // of the limits form
	answer   int
	inline   int
	chunk    int
	window   int
	now      func() time.Time
	interest *interest
	turns    turnstile
}

// New makes an Engine on an open store.
func New(o Options) *Engine {
	if o.Now == nil {
		o.Now = time.Now
	}
	return &Engine{
		store:    o.Store,
		limits:   o.Limits,
		inBatch:  o.BatchRecords,
		domains:  o.Domains,
		told:     limitFields(o),
		answer:   o.AnswerBytes,
		inline:   o.InlineBytes,
		chunk:    cmp.Or(o.ChunkBytes, o.AnswerBytes),
		window:   max(o.Window, 1),
		now:      o.Now,
		interest: newInterest(o.Limits, o.Now),
	}
}

// Outcome is what a request leads to.
type Outcome struct {
	Answer  Answer
	Notices []Notice // in the order in which they have to leave
}

// Do carries out a request. It returns nil after it has called done exactly
// once, or an error without having called it: a *Refusal, a sentinel of
// package vault, or the error of ctx.
//
// For one vault, the calls of done come in the order of the states that their
// outcomes show. done may run in the store's commit loop: it must not block.
func (e *Engine) Do(ctx context.Context, req Request, done func(Outcome)) error {
	if err := e.screen(ctx, req); err != nil {
		return err
	}
	return req.Op.do(ctx, e, req, done)
}

// newRecordID makes an id for an item that came without one: ids that were
// made later sort later (RFC 9562 §5.7).
func newRecordID() string { return uuid.Must(uuid.NewV7()).String() }

// sign gives the text of a vault's cursor.
func (e *Engine) sign(v vault.Vault) string { return e.store.CursorKey().Sign(v.Cursor()) }
