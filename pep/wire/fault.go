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
	pubsub    string // XEP-0060's condition, "" = none
}

// faults has a row for every sentinel of pep and vault (PROTOCOL §12).
var faults = []fault{
	{pep.ErrForbidden, "auth", "forbidden", ""},
	{pep.ErrClosedNode, "cancel", "not-allowed", "closed-node"},
	{pep.ErrBadRequest, "modify", "bad-request", ""},
	{pep.ErrNodeRequired, "modify", "bad-request", "nodeid-required"},
	{pep.ErrItemRequired, "modify", "bad-request", "item-required"},
	{pep.ErrPayloadRequired, "modify", "bad-request", "payload-required"},
	{pep.ErrInvalidPayload, "modify", "bad-request", "invalid-payload"},
	{pep.ErrPayloadTooBig, "modify", "not-acceptable", "payload-too-big"},
	{pep.ErrBadName, "modify", "not-acceptable", ""},
	{pep.ErrNodeFull, "cancel", "conflict", "node-full"},
	{pep.ErrMaxItemsExceeded, "cancel", "not-allowed", "max-items-exceeded"},
	{pep.ErrTooManyVaults, "cancel", "conflict", "max-nodes-exceeded"},
	{pep.ErrQuotaExceeded, "cancel", "not-allowed", ""},
	{pep.ErrInvalidJID, "modify", "bad-request", "invalid-jid"},
	{pep.ErrMalformedJID, "modify", "jid-malformed", ""},
	{pep.ErrNotSubscribed, "cancel", "unexpected-request", "not-subscribed"},
	{pep.ErrPresenceRequired, "auth", "not-authorized", "presence-subscription-required"},
	{pep.ErrTooManySubscriptions, "wait", "policy-violation", "too-many-subscriptions"},
	{pep.ErrUnknownPage, "cancel", "item-not-found", ""},
	{pep.ErrUnsupported, "cancel", "feature-not-implemented", "unsupported"},
	{pep.ErrUnknownNamespace, "cancel", "service-unavailable", ""},
	{pep.ErrPolicy, "modify", "policy-violation", ""},
	{pep.ErrOverloaded, "wait", "resource-constraint", ""},

	{vault.ErrMalformedAddress, "modify", "jid-malformed", ""},
	{vault.ErrBadCursor, "modify", "bad-request", ""},
	{vault.ErrNoVault, "cancel", "item-not-found", ""},
	{vault.ErrNoRecord, "cancel", "item-not-found", ""},
	{vault.ErrVaultExists, "cancel", "conflict", ""},
	{vault.ErrStorage, "wait", "internal-server-error", ""},
	{vault.ErrClosed, "wait", "internal-server-error", ""},
	{vault.ErrInUse, "wait", "internal-server-error", ""},
	{vault.ErrNewerSchema, "wait", "internal-server-error", ""},
}

// failure stands for an error without a row: a fault of ours, not the
// device's.
var failure = fault{nil, "wait", "internal-server-error", ""}

func faultOf(err error) fault {
	for _, f := range faults {
		if errors.Is(err, f.err) {
			return f
		}
	}
	return failure
}

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
	dst = appendAttr(append(dst, "><error"...), "type", f.kind)
	dst = append(append(append(dst, "><"...), f.condition...), " xmlns='"+nsStanzas+"'/>"...)
	if refusal.Text != "" {
		dst = append(dst, "<text xmlns='"+nsStanzas+"' xml:lang='en'>"...)
		dst = append(appendText(dst, refusal.Text), "</text>"...)
	}
	dst = appendPubsubCondition(dst, f, refusal)
	dst = appendOwnCondition(dst, f, refusal)
	return append(dst, "</error></iq>"...)
}

// appendPubsubCondition leaves "unsupported" out where no feature has a name
// for what is missing: XEP-0060 wants one there.
func appendPubsubCondition(dst []byte, f fault, refusal *pep.Refusal) []byte {
	if f.pubsub == "" || f.err == pep.ErrUnsupported && refusal.Feature == "" {
		return dst
	}
	dst = append(append(append(dst, '<'), f.pubsub...), " xmlns='"+nsPubsubErrors+"'"...)
	if f.err == pep.ErrUnsupported {
		dst = appendAttr(dst, "feature", refusal.Feature)
	}
	return append(dst, "/>"...)
}

func appendOwnCondition(dst []byte, f fault, refusal *pep.Refusal) []byte {
	switch f.err {
	case pep.ErrQuotaExceeded:
		dst = append(dst, "<quota-exceeded xmlns='"+nsErrors+"' bytes='"...)
		dst = strconv.AppendInt(dst, refusal.Bytes, 10)
		dst = strconv.AppendInt(append(dst, "' limit='"...), refusal.Limit, 10)
		dst = append(dst, "'/>"...)
	case pep.ErrOverloaded:
		dst = append(dst, "<retry xmlns='"+nsErrors+"' after='"...)
		dst = strconv.AppendInt(dst, int64(refusal.RetryAfter), 10)
		dst = append(dst, "'/>"...)
	}
	return dst
}
