package wire

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"pepvault/pep"
	"pepvault/vault"
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
	switch call.(type) {
	case pep.Publish:
		return decodePublished(iq)
	case pep.Retract:
		return decodeRetracted(iq)
	case pep.Items:
		return decodeItemsPage(iq)
	case pep.Subscribe:
		return decodeSubscribed(iq)
	case pep.Delete:
		return pep.Deleted{}, nil
	case pep.Unsubscribe:
		return pep.Unsubscribed{}, nil
	case pep.DescribeService:
		return decodeServiceInfo(iq)
	case pep.DescribeVault:
		return decodeVaultInfo(iq)
	case pep.ListVaults:
		return decodeVaultList(iq)
	case ItemNames:
		return decodeItemNames(iq)
	case Version:
		return decodeVersion(iq)
	case Ping:
		return Pong{}, nil
	}
	panic(fmt.Sprintf("wire: nothing answers a %T", call))
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

func decodePublished(iq *element) (any, error) {
	publish, err := within(iq, name{nsPubsub, "pubsub"}, name{nsPubsub, "publish"})
	if err != nil {
		return nil, err
	}
	a := pep.Published{Node: publish.attr("node")}
	for _, c := range publish.children {
		a.IDs = append(a.IDs, c.attr("id"))
	}
	a.State, err = decodeState(iq.child(name{nsPubsub, "pubsub"}))
	return a, err
}

func decodeRetracted(iq *element) (any, error) {
	pubsub := iq.child(name{nsPubsub, "pubsub"})
	if pubsub == nil {
		return pep.Retracted{}, nil
	}
	state, err := decodeState(pubsub)
	return pep.Retracted{State: state}, err
}

// decodeState reads the <state/> in parent, nil if there is none.
func decodeState(parent *element) (*pep.State, error) {
	e := parent.child(name{nsSync, "state"})
	if e == nil {
		return nil, nil
	}
	s := pep.State{
		Owner: vault.Account(e.attr("owner")), Node: e.attr("node"),
		Previous: e.attr("previous"), Cursor: e.attr("cursor"),
	}
	for _, c := range e.children {
		revision, ok := parseCount(c.attr("revision"), 1<<63)
		if c.name != (name{nsSync, "item"}) || !ok {
			return nil, badReply("<state/> without a revision")
		}
		s.Items = append(s.Items, pep.StateItem{
			ID: c.attr("id"), Revision: vault.Revision(revision), Gone: c.attr("gone") == "true",
		})
	}
	return &s, nil
}

func decodeItemsPage(iq *element) (any, error) {
	items, err := within(iq, name{nsPubsub, "pubsub"}, name{nsPubsub, "items"})
	if err != nil {
		return nil, err
	}
	page := pep.ItemsPage{Node: items.attr("node")}
	for _, c := range items.children {
		if len(c.payloads) == 0 {
			return nil, badReply("an item without payload")
		}
		page.Records = append(page.Records, recordOf(c))
	}
	page.Set, err = decodeSet(iq.child(name{nsPubsub, "pubsub"}))
	return page, err
}

// recordOf reads an item of a result or an event.
func recordOf(item *element) vault.Record {
	r := vault.Record{ID: item.attr("id"), Publisher: vault.Account(item.attr("publisher"))}
	if len(item.payloads) > 0 {
		r.KeyVersion, r.Payload = item.payloads[0].keyVersion, item.payloads[0].payload
	}
	return r
}

func decodeSet(parent *element) (*pep.ResultSet, error) {
	e := parent.child(name{nsRSM, "set"})
	if e == nil {
		return nil, nil
	}
	count, err := strconv.Atoi(textOf(e, name{nsRSM, "count"}))
	if err != nil {
		return nil, badReply("<set/> without a count")
	}
	return &pep.ResultSet{First: textOf(e, name{nsRSM, "first"}), Last: textOf(e, name{nsRSM, "last"}), Count: count}, nil
}

// textOf returns the text of a child, "" if it is absent.
func textOf(e *element, n name) string {
	if e = e.child(n); e == nil {
		return ""
	}
	return string(e.text)
}

func decodeSubscribed(iq *element) (any, error) {
	e, err := within(iq, name{nsPubsub, "pubsub"}, name{nsPubsub, "subscription"})
	if err != nil {
		return nil, err
	}
	if e.attr("subscription") != "subscribed" {
		return nil, badReply("subscription is %q", e.attr("subscription"))
	}
	return pep.Subscribed{Node: e.attr("node"), JID: e.attr("jid")}, nil
}

func decodeServiceInfo(iq *element) (any, error) {
	query, err := within(iq, name{nsDiscoInfo, "query"})
	if err != nil {
		return nil, err
	}
	var a pep.ServiceInfo
	for _, c := range query.children {
		if c.name == (name{nsDiscoInfo, "identity"}) && c.attr("category") == "pubsub" {
			a.Name = c.attr("name")
		}
		feature, isPubsub := strings.CutPrefix(c.attr("var"), nsPubsub+"#")
		if c.name == (name{nsDiscoInfo, "feature"}) && isPubsub {
			a.Features = append(a.Features, feature)
		}
	}
	return a, nil
}

func decodeVaultInfo(iq *element) (any, error) {
	query, err := within(iq, name{nsDiscoInfo, "query"})
	if err != nil {
		return nil, err
	}
	if !slices.ContainsFunc(query.children, func(c *element) bool {
		return c.name == name{nsDiscoInfo, "identity"} && c.attr("category") == "pubsub" && c.attr("type") == "leaf"
	}) {
		return nil, badReply("not a vault")
	}
	v := vault.Vault{Key: vault.Key{Node: query.attr("node")}}
	form := query.child(name{nsForm, "x"})
	if form == nil {
		return pep.VaultInfo{Vault: v}, nil
	}
	for _, field := range form.children {
		value := textOf(field, name{nsForm, "value"})
		switch field.attr("var") {
		case "pubsub#owner":
			v.Key.Account = vault.Account(value)
		case "pubsub#title":
			v.Config.Title = value
		case "pubsub#creation_date":
			if v.Created, err = time.Parse(time.RFC3339Nano, value); err != nil {
				return nil, badReply("creation date")
			}
		}
	}
	return pep.VaultInfo{Vault: v}, nil
}

func decodeVaultList(iq *element) (any, error) {
	query, err := within(iq, name{nsDiscoItems, "query"})
	if err != nil {
		return nil, err
	}
	var a pep.VaultList
	for _, c := range query.children {
		a.Vaults = append(a.Vaults, vault.Vault{
			Key: vault.Key{Node: c.attr("node")}, Config: vault.Config{Title: c.attr("name")},
		})
	}
	return a, nil
}

func decodeItemNames(iq *element) (any, error) {
	query, err := within(iq, name{nsDiscoItems, "query"})
	if err != nil {
		return nil, err
	}
	page := pep.ItemsPage{Node: query.attr("node")}
	for _, c := range query.children {
		if c.name == (name{nsDiscoItems, "item"}) {
			page.Records = append(page.Records, vault.Record{ID: c.attr("name")})
		}
	}
	page.Set, err = decodeSet(query)
	return ItemNamesPage{page}, err
}

func decodeVersion(iq *element) (any, error) {
	query, err := within(iq, name{nsVersion, "query"})
	if err != nil {
		return nil, err
	}
	return VersionInfo{Name: textOf(query, name{nsVersion, "name"}), Version: textOf(query, name{nsVersion, "version"})}, nil
}
