package wire

import (
	"errors"
	"fmt"

	"pepvault/pep"
)

// ErrBadReply says that a stanza of the service is not as the protocol has it.
var ErrBadReply = errors.New("unreadable reply")

func badReply(format string, args ...any) error {
	return fmt.Errorf("%w: "+format, append([]any{ErrBadReply}, args...)...)
}

// ReadHeader reads the start tag of a stanza. The error is as of
// [DecodeRequest].
func ReadHeader(raw []byte) (Header, error) {
	r := newReader(raw, Limits{})
	kind, err := r.next()
	if err != nil {
		return Header{}, atEnd(err)
	}
	if kind != startToken || r.start.name.space != nsClient {
		return Header{}, malformed()
	}
	e := element{attrs: r.start.attrs}
	return Header{
		From: e.attr("from"), To: e.attr("to"), ID: e.attr("id"),
		Type: e.attr("type"), Name: r.start.name.local,
	}, nil
}

// decodeStanza reads a stanza of the service. One of type error is returned as
// a *StanzaError.
func decodeStanza(raw []byte, local string) (*element, error) {
	stanza, err := newReader(raw, Limits{Foreign: true}).tree()
	switch {
	case err != nil:
		return nil, fmt.Errorf("%w: %w", ErrBadReply, err)
	case stanza.name != name{nsClient, local}:
		return nil, badReply("not a stanza of this kind")
	case stanza.attr("type") == "error":
		return nil, decodeError(stanza)
	}
	return stanza, nil
}

// DecodeReply reads the <iq/> that answers call: the same values that
// [AppendResult] takes, as far as the wire carries them. An <iq/> of type error
// is a [*StanzaError]; other errors are [ErrBadReply].
func DecodeReply(raw []byte, call Call) (any, error) {
	iq, err := decodeStanza(raw, "iq")
	if err != nil {
		return nil, err
	}
	if iq.attr("type") != "result" {
		return nil, badReply("neither result nor error")
	}
	for _, decode := range answerers {
		if answer, err := decode(iq, call); answer != nil || err != nil {
			return answer, err
		}
	}
	panic(fmt.Sprintf("wire: nothing answers a %T", call))
}

// answerers each read the answers to some calls; nil and nil for others.
var answerers = [...]func(iq *element, call Call) (any, error){
	decodeItemReply, decodeNodeReply, decodeSubscriptionReply, decodeAffiliationReply,
	decodeDiscoReply, decodeSyncReply, decodeDownloadReply, decodeBatchReply, decodeCommandReply, decodeServiceReply,
}

func decodeServiceReply(iq *element, call Call) (any, error) {
	switch call.(type) {
	case Version:
		return decodeVersion(iq)
	case Ping:
		return Pong{}, nil
	case pep.Erase:
		return decodeErased(iq)
	}
	return nil, nil
}

func decodeErased(iq *element) (any, error) {
	e, err := within(iq, name{nsAccount, "erased"})
	if err != nil {
		return nil, err
	}
	vaults, isCount := parseCount(e.attr("vaults"), 1<<31-1)
	records, areCounted := parseCount(e.attr("records"), 1<<31-1)
	if !isCount || !areCounted {
		return nil, badReply("<erased/> without its counts")
	}
	return pep.Erased{Vaults: int(vaults), Records: int(records)}, nil
}

// within returns the element at the end of a path of names.
func within(e *element, path ...name) (*element, error) {
	for _, n := range path {
		if e = e.child(n); e == nil {
			return nil, badReply("no <%s xmlns='%s'/>", n.local, n.space)
		}
	}
	return e, nil
}

// textOf returns the text of a child, "" if it is absent.
func textOf(e *element, n name) string {
	if e = e.child(n); e == nil {
		return ""
	}
	return string(e.text)
}

func decodeVersion(iq *element) (any, error) {
	query, err := within(iq, name{nsVersion, "query"})
	if err != nil {
		return nil, err
	}
	return VersionInfo{Name: textOf(query, name{nsVersion, "name"}), Version: textOf(query, name{nsVersion, "version"})}, nil
}
