package wire

import (
	"errors"
	"strconv"

	"pepvault/pep"
	"pepvault/vault"
)

// fault is how an error looks on the wire.
type fault struct {
	err       error
	kind      string // RFC 6120 §8.3.2
	condition string // RFC 6120 §8.3.3
	special   name   // the condition of XEP-0060 or XEP-0050 beside it
}

// Why a command is refused (XEP-0050 §4.4); the rest of its errors are those of
// package pep.
var (
	ErrMalformedAction = errors.New("unknown action")
	ErrBadAction       = errors.New("action not possible now")
	ErrBadPayload      = errors.New("form of the command not acceptable")
	ErrBadSession      = errors.New("not a session of this command")
	ErrSessionExpired  = errors.New("session of the command has ended")
	ErrNoCommand       = errors.New("no such command")
)

// ErrUnknownChunk is why a device refuses a chunk: it is of no download of its
// own, or not the next one.
var ErrUnknownChunk = errors.New("not the chunk that comes next")

var none name

func inPubsub(local string) name { return name{nsPubsubErrors, local} }

func inCommands(local string) name { return name{nsCommands, local} }

// faults has a row for every sentinel of pep and vault (PROTOCOL §12), and for
// those above.
var faults = []fault{
	{pep.ErrForbidden, "auth", "forbidden", none},
	{pep.ErrClosedNode, "cancel", "not-allowed", inPubsub("closed-node")},
	{pep.ErrBadRequest, "modify", "bad-request", none},
	{pep.ErrNodeRequired, "modify", "bad-request", inPubsub("nodeid-required")},
	{pep.ErrItemRequired, "modify", "bad-request", inPubsub("item-required")},
	{pep.ErrPayloadRequired, "modify", "bad-request", inPubsub("payload-required")},
	{pep.ErrInvalidPayload, "modify", "bad-request", inPubsub("invalid-payload")},
	{pep.ErrPayloadTooBig, "modify", "not-acceptable", inPubsub("payload-too-big")},
	{pep.ErrBadName, "modify", "not-acceptable", none},
	{pep.ErrNodeFull, "cancel", "conflict", inPubsub("node-full")},
	{pep.ErrMaxItemsExceeded, "cancel", "not-allowed", inPubsub("max-items-exceeded")},
	{pep.ErrTooManyVaults, "cancel", "conflict", inPubsub("max-nodes-exceeded")},
	{pep.ErrQuotaExceeded, "cancel", "not-allowed", none},
	{pep.ErrJIDRequired, "modify", "bad-request", inPubsub("jid-required")},
	{pep.ErrInvalidJID, "modify", "bad-request", inPubsub("invalid-jid")},
	{pep.ErrMalformedJID, "modify", "jid-malformed", none},
	{pep.ErrNotSubscribed, "cancel", "unexpected-request", inPubsub("not-subscribed")},
	{pep.ErrPresenceRequired, "auth", "not-authorized", inPubsub("presence-subscription-required")},
	{pep.ErrTooManySubscriptions, "wait", "policy-violation", inPubsub("too-many-subscriptions")},
	{pep.ErrUnknownPage, "cancel", "item-not-found", none},
	{pep.ErrBadConfig, "modify", "not-acceptable", none},
	{pep.ErrAccessModel, "modify", "not-acceptable", inPubsub("unsupported-access-model")},
	{pep.ErrPrecondition, "cancel", "conflict", inPubsub("precondition-not-met")},
	{pep.ErrInvalidOptions, "modify", "bad-request", inPubsub("invalid-options")},
	{pep.ErrBadAffiliation, "modify", "not-acceptable", none},
	{pep.ErrRevisionMismatch, "cancel", "conflict", none},
	{pep.ErrKeyVersionTooLow, "cancel", "conflict", none},
	{pep.ErrStale, "cancel", "conflict", none},
	{pep.ErrConfirmRequired, "cancel", "conflict", none},
	{pep.ErrTooManyBatches, "wait", "policy-violation", none},
	{pep.ErrUnsupported, "cancel", "feature-not-implemented", inPubsub("unsupported")},
	{pep.ErrUnknownNamespace, "cancel", "service-unavailable", none},
	{pep.ErrPolicy, "modify", "policy-violation", none},
	{pep.ErrOverloaded, "wait", "resource-constraint", none},
	{pep.ErrRate, "wait", "policy-violation", none},

	{vault.ErrMalformedAddress, "modify", "jid-malformed", none},
	{vault.ErrBadCursor, "modify", "bad-request", none},
	{vault.ErrNoVault, "cancel", "item-not-found", none},
	{vault.ErrNoRecord, "cancel", "item-not-found", none},
	{vault.ErrNoBatch, "cancel", "item-not-found", none},
	{vault.ErrBatchExists, "cancel", "conflict", none},
	{vault.ErrVaultExists, "cancel", "conflict", none},
	{vault.ErrStorage, "wait", "internal-server-error", none},
	{vault.ErrClosed, "wait", "internal-server-error", none},
	{vault.ErrInUse, "wait", "internal-server-error", none},
	{vault.ErrNewerSchema, "wait", "internal-server-error", none},
	{vault.ErrDamaged, "wait", "internal-server-error", none},

	{ErrMalformedAction, "modify", "bad-request", inCommands("malformed-action")},
	{ErrBadAction, "modify", "bad-request", inCommands("bad-action")},
	{ErrBadPayload, "modify", "bad-request", inCommands("bad-payload")},
	{ErrBadSession, "modify", "bad-request", inCommands("bad-sessionid")},
	{ErrSessionExpired, "cancel", "not-allowed", inCommands("session-expired")},
	{ErrNoCommand, "cancel", "item-not-found", none},

	{ErrUnknownChunk, "cancel", "item-not-found", none},
}

// failure stands for an error without a row: a fault of ours, not the
// device's.
var failure = fault{nil, "wait", "internal-server-error", none}

func faultOf(err error) fault {
	for _, f := range faults {
		if errors.Is(err, f.err) {
			return f
		}
	}
	return failure
}

// Condition is the stanza error (RFC 6120 §8.3.3) as which [AppendError] sends
// err: one of the few that the table has.
func Condition(err error) string { return faultOf(err).condition }

// AppendError appends the error answer to the request with header request,
// from where that went and to where it came from. Only the text of a
// *pep.Refusal is sent; an error that has no row in the table goes out as a
// failure of the service.
func AppendError(dst []byte, request Header, err error) []byte {
	f := faultOf(err)
	refusal := new(pep.Refusal)
	errors.As(err, &refusal)
	dst = append(dst, "<iq type='error'"...)
	dst = appendRoute(dst, request.To, request.From, request.ID)
	dst = append(dst, '>')
	if f.err == pep.ErrBadAffiliation && len(refusal.Affiliations) > 0 {
		dst = appendVaultAffiliations(dst, refusal.Node, refusal.Affiliations)
	}
	dst = appendAttr(append(dst, "<error"...), "type", f.kind)
	dst = append(append(append(dst, "><"...), f.condition...), " xmlns='"+nsStanzas+"'/>"...)
	if refusal.Text != "" {
		dst = append(dst, "<text xmlns='"+nsStanzas+"' xml:lang='en'>"...)
		dst = append(appendText(dst, refusal.Text), "</text>"...)
	}
	dst = appendSpecialCondition(dst, f, refusal)
	dst = appendOwnCondition(dst, f, refusal)
	return append(dst, "</error></iq>"...)
}

// appendSpecialCondition leaves "unsupported" out where no feature has a name
// for what is missing: XEP-0060 wants one there.
func appendSpecialCondition(dst []byte, f fault, refusal *pep.Refusal) []byte {
	if f.special == none || f.err == pep.ErrUnsupported && refusal.Feature == "" {
		return dst
	}
	dst = append(append(dst, '<'), f.special.local...)
	dst = append(append(append(dst, " xmlns='"...), f.special.space...), '\'')
	if f.err == pep.ErrUnsupported {
		dst = appendAttr(dst, "feature", refusal.Feature)
	}
	return append(dst, "/>"...)
}

func appendOwnCondition(dst []byte, f fault, refusal *pep.Refusal) []byte {
	switch f.err {
	case pep.ErrRevisionMismatch:
		dst = appendMismatch(dst, "revision-mismatch", refusal)
	case pep.ErrStale:
		dst = appendMismatch(dst, "stale", refusal)
	case pep.ErrConfirmRequired:
		dst = append(dst, "<confirm-required xmlns='"+nsErrors+"' records='"...)
		dst = append(strconv.AppendInt(dst, int64(refusal.Records), 10), "'/>"...)
	case pep.ErrTooManyBatches:
		dst = append(dst, "<too-many-batches xmlns='"+nsErrors+"' limit='"...)
		dst = append(strconv.AppendInt(dst, refusal.Limit, 10), "'/>"...)
	case pep.ErrQuotaExceeded:
		dst = append(dst, "<quota-exceeded xmlns='"+nsErrors+"' bytes='"...)
		dst = strconv.AppendInt(dst, refusal.Bytes, 10)
		dst = strconv.AppendInt(append(dst, "' limit='"...), refusal.Limit, 10)
		dst = append(dst, "'/>"...)
	case pep.ErrKeyVersionTooLow:
		dst = append(dst, "<key-version-too-low xmlns='"+nsErrors+"' floor='"...)
		dst = append(strconv.AppendUint(dst, uint64(refusal.Floor), 10), "'/>"...)
	case pep.ErrOverloaded, pep.ErrRate:
		dst = append(dst, "<retry xmlns='"+nsErrors+"' after='"...)
		dst = strconv.AppendInt(dst, int64(refusal.RetryAfter), 10)
		dst = append(dst, "'/>"...)
	}
	return dst
}
