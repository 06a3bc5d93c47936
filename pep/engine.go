package pep

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"

	"pepvault/vault"
)

// Options are what an Engine works with.
type Options struct {
	Store  vault.Store
	Limits vault.Limits
	// AnswerBytes bounds the records of one answer, as a sum of
	// vault.Record.Cost.
	AnswerBytes int
	// InlineBytes is the cost up to which an answer is read at once; a larger
	// one becomes Later.
	InlineBytes int
	// Now is the clock for the times of records and resources; nil = time.Now.
	Now func() time.Time
}

// Engine carries out requests. All methods may be called by many goroutines
// at once.
type Engine struct {
	store    vault.Store
	limits   vault.Limits
	answer   int
	inline   int
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
		answer:   o.AnswerBytes,
		inline:   o.InlineBytes,
		now:      o.Now,
		interest: newInterest(o.Limits.Resources, o.Now),
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
	switch op := req.Op.(type) {
	case DescribeService:
		done(Outcome{Answer: ServiceInfo{Features: features()}})
		return nil
	case ListVaults:
		return e.listVaults(ctx, req, done)
	case DescribeVault:
		return e.describeVault(ctx, req, op, done)
	case Items:
		return e.items(ctx, req, op, done)
	case Publish:
		return e.publish(ctx, req, op, done)
	case Retract:
		return e.retract(ctx, req, op, done)
	case Delete:
		return e.delete(ctx, req, op, done)
	case Subscribe:
		return e.subscribe(ctx, req, op, done)
	case Unsubscribe:
		return e.unsubscribe(ctx, req, op, done)
	default:
		panic(fmt.Sprintf("pep: no rule for %T", req.Op))
	}
}

// features are those of XEP-0060 §10 that the operations above make true.
func features() []string {
	return []string{
		"access-whitelist",
		"auto-create",
		"delete-items",
		"delete-nodes",
		"item-ids",
		"multi-items",
		"persistent-items",
		"publish",
		"retract-items",
		"retrieve-items",
		"subscribe",
	}
}

// admit is authorize for a request.
func admit(req Request) error {
	return authorize(affiliationOf(req.Sender.Account, req.Owner), req.Op.action())
}

// newRecordID makes an id for an item that came without one: ids that were
// made later sort later (RFC 9562 §5.7).
func newRecordID() string { return uuid.Must(uuid.NewV7()).String() }

// sign gives the text of a vault's cursor.
func (e *Engine) sign(v vault.Vault) string { return e.store.CursorKey().Sign(v.Cursor()) }
