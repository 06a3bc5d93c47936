package pep

import (
	"errors"
	"fmt"

	"pepvault/vault"
)

// Why a request is refused. Package wire has the stanza error of each, and of
// the sentinels of package vault. Compare with errors.Is.
var (
	ErrForbidden            = errors.New("forbidden")
	ErrClosedNode           = errors.New("closed node")
	ErrBadRequest           = errors.New("bad request")
	ErrNodeRequired         = errors.New("node id required")
	ErrItemRequired         = errors.New("item required")
	ErrPayloadRequired      = errors.New("payload required")
	ErrInvalidPayload       = errors.New("invalid payload")
	ErrPayloadTooBig        = errors.New("payload too big")
	ErrBadName              = errors.New("name not acceptable")
	ErrNodeFull             = errors.New("vault is full")
	ErrMaxItemsExceeded     = errors.New("more items than a vault may hold")
	ErrTooManyVaults        = errors.New("too many vaults")
	ErrQuotaExceeded        = errors.New("quota exceeded")
	ErrJIDRequired          = errors.New("subscriber JID required")
	ErrInvalidJID           = errors.New("subscription for somebody else")
	ErrMalformedJID         = errors.New("malformed JID")
	ErrNotSubscribed        = errors.New("not subscribed")
	ErrPresenceRequired     = errors.New("directed presence required")
	ErrTooManySubscriptions = errors.New("too many subscriptions")
	ErrUnknownPage          = errors.New("unknown page position")
	ErrBadConfig            = errors.New("configuration not acceptable")
	ErrAccessModel          = errors.New("access model not supported")
	ErrPrecondition         = errors.New("precondition not met")
	ErrInvalidOptions       = errors.New("invalid subscription options")
	ErrBadAffiliation       = errors.New("affiliation not acceptable")
	ErrRevisionMismatch     = errors.New("expected another revision")
	ErrKeyVersionTooLow     = errors.New("key version below the floor")
	ErrStale                = errors.New("changed since the device looked")
	ErrConfirmRequired      = errors.New("removes nearly all")
	ErrTooManyBatches       = errors.New("too many open batches")
	ErrUnsupported          = errors.New("operation not supported")
	ErrUnknownNamespace     = errors.New("unknown namespace")
	ErrPolicy               = errors.New("beyond what the service takes")
	ErrOverloaded           = errors.New("overloaded")
	ErrRate                 = errors.New("asks too often")
)

// Refusal is an error with a sentence for the person at the device, which
// names no secret and no payload.
type Refusal struct {
	Err  error  // one of the sentinels
	Text string // plain English
	// Feature names what is missing where Err is ErrUnsupported, as in
	// XEP-0060 §10, without the namespace.
	Feature string
	// Bytes and Limit are set where Err is ErrQuotaExceeded, Limit where it is
	// ErrTooManyBatches.
	Bytes, Limit int64
	// Records is set where Err is ErrConfirmRequired: those that would go.
	Records int
	// Cursor, of the vault, and Items are set where Err is
	// ErrRevisionMismatch or ErrStale: the records that are not as expected, or
	// that have to be staged again.
	Cursor string
	Items  []StateItem
	// Floor is set where Err is ErrKeyVersionTooLow.
	Floor uint32
	// Node and Affiliations are set where Err is ErrBadAffiliation: the
	// accounts whose change was refused, as they now are.
	Node         string
	Affiliations []vault.Affiliated
	// RetryAfter is the pause in seconds where Err is ErrOverloaded or ErrRate.
	RetryAfter int
}

func (r *Refusal) Error() string { return r.Err.Error() + ": " + r.Text }

// Unwrap gives the sentinel.
func (r *Refusal) Unwrap() error { return r.Err }

// Refuse makes a Refusal of a sentinel and a sentence.
func Refuse(err error, format string, args ...any) error {
	return &Refusal{Err: err, Text: fmt.Sprintf(format, args...)}
}
