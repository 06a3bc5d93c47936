package wire

import (
	"strings"

	"pepvault/pep"
	"pepvault/vault"
)

// ItemNames asks for the names of a vault's records by service discovery
// (XEP-0060 §5.5). Do its Items as any other operation, under the same
// rights, and answer with [ItemNamesPage].
type ItemNames struct{ Items pep.Items }

// ItemNamesPage answers [ItemNames].
type ItemNamesPage struct{ Page pep.ItemsPage }

// DecodeRequest reads one whole <iq/> of type get or set. Prefixes and default
// namespace are those of the stream (jabber:component:accept or jabber:client,
// and "stream"); raw is not kept.
//
// The error is a sentinel of package pep or a *pep.Refusal, ready for
// [AppendError]. An extension of a foreign namespace inside a request is
// ignored, as RFC 6120 §8.4 has it; one of ours that does not work yet is
// refused, since the device relies on it.
func DecodeRequest(raw []byte, limits Limits) (Call, error) {
	iq, err := newReader(raw, limits).tree()
	if err != nil {
		return nil, err
	}
	// A host may give the stream's namespace a prefix on the stanza itself.
	if iq.name != (name{nsClient, "iq"}) && iq.name != (name{nsComponent, "iq"}) {
		return nil, pep.Refuse(pep.ErrBadRequest, "only an iq asks for something")
	}
	var kind kinds
	switch iq.attr("type") {
	case "get":
		kind = get
	case "set":
		kind = set
	default:
		return nil, pep.Refuse(pep.ErrBadRequest, "a request is of type get or set")
	}
	if len(iq.children) != 1 || iq.mixed() {
		return nil, pep.Refuse(pep.ErrBadRequest, "a request holds exactly one element")
	}
	return decodeCall(iq.children[0], kind)
}

// kinds is a set of IQ types.
type kinds uint8

const (
	get kinds = 1 << iota
	set
)

func decodeCall(child *element, kind kinds) (Call, error) {
	if child.name == (name{nsPubsub, "pubsub"}) || child.name == (name{nsPubsubOwner, "pubsub"}) {
		return decodeOperation(child, kind)
	}
	op, ok := queries[child.name]
	if !ok {
		return nil, unknownCall(child.name)
	}
	return op.decodeAs(kind, child, extensions{set: child.child(name{nsRSM, "set"})})
}

func unknownCall(n name) error {
	if feature, ours := laterNamespaces[n.space]; ours {
		return unsupported(feature)
	}
	for _, table := range []map[name]operation{queries, operations} {
		for k := range table {
			if k.space == n.space {
				return pep.Refuse(pep.ErrBadRequest, "no such element in this namespace")
			}
		}
	}
	return pep.ErrUnknownNamespace
}

// laterNamespaces are ours; each names the feature that is missing.
var laterNamespaces = map[string]string{nsSync: "sync", nsBatch: "batch", nsAccount: "erase"}

func unsupported(feature string) error {
	return &pep.Refusal{Err: pep.ErrUnsupported, Text: "this service does not offer it", Feature: feature}
}

// operation is how one kind of request is read.
type operation struct {
	kinds   kinds
	feature string // what is missing, if decode is nil
	state   bool   // may ask for a <state/>
	paged   bool   // may ask for a page
	decode  func(*element, extensions) (Call, error)
}

// extensions are the elements beside an operation.
type extensions struct {
	state bool
	set   *element
}

// operations are the children of the two <pubsub/>.
var operations = map[name]operation{
	{nsPubsub, "publish"}:     {kinds: set, state: true, decode: decodePublish},
	{nsPubsub, "retract"}:     {kinds: set, state: true, decode: decodeRetract},
	{nsPubsub, "items"}:       {kinds: get, paged: true, decode: decodeItems},
	{nsPubsub, "subscribe"}:   {kinds: set, decode: decodeSubscribe},
	{nsPubsub, "unsubscribe"}: {kinds: set, decode: decodeUnsubscribe},
	{nsPubsubOwner, "delete"}: {kinds: set, decode: decodeDelete},

	{nsPubsub, "create"}:             {kinds: set, feature: "create-nodes"},
	{nsPubsub, "options"}:            {kinds: get | set, feature: "subscription-options"},
	{nsPubsub, "default"}:            {kinds: get, feature: "retrieve-default-sub"},
	{nsPubsub, "subscriptions"}:      {kinds: get, feature: "retrieve-subscriptions"},
	{nsPubsub, "affiliations"}:       {kinds: get, feature: "retrieve-affiliations"},
	{nsPubsubOwner, "configure"}:     {kinds: get | set, feature: "config-node"},
	{nsPubsubOwner, "default"}:       {kinds: get, feature: "retrieve-default"},
	{nsPubsubOwner, "purge"}:         {kinds: set, feature: "purge-nodes"},
	{nsPubsubOwner, "subscriptions"}: {kinds: get | set, feature: "manage-subscriptions"},
	{nsPubsubOwner, "affiliations"}:  {kinds: get | set, feature: "modify-affiliations"},
}

// companions stand beside an operation and change what it means.
var companions = map[name]string{
	{nsPubsub, "publish-options"}: "publish-options",
	{nsPubsub, "configure"}:       "create-and-configure",
	{nsPubsub, "options"}:         "subscription-options",
}

// queries are the children of <iq/> that ask by themselves.
var queries = map[name]operation{
	{nsPing, "ping"}:        {kinds: get, decode: constant(Ping{})},
	{nsVersion, "query"}:    {kinds: get, decode: constant(Version{})},
	{nsDiscoInfo, "query"}:  {kinds: get, decode: decodeDiscoInfo},
	{nsDiscoItems, "query"}: {kinds: get, paged: true, decode: decodeDiscoItems},
}

func constant(c Call) func(*element, extensions) (Call, error) {
	return func(*element, extensions) (Call, error) { return c, nil }
}

func (op operation) decodeAs(kind kinds, e *element, x extensions) (Call, error) {
	switch {
	case op.kinds&kind == 0:
		return nil, pep.Refuse(pep.ErrBadRequest, "the iq is of the wrong type for this operation")
	case op.decode == nil:
		return nil, unsupported(op.feature)
	case x.state && !op.state:
		return nil, pep.Refuse(pep.ErrBadRequest, "<state/> goes with publish and retract")
	case x.set != nil && !op.paged:
		return nil, pep.Refuse(pep.ErrBadRequest, "this operation has no pages")
	case e.mixed():
		return nil, pep.Refuse(pep.ErrBadRequest, "text where only elements belong")
	}
	return op.decode(e, x)
}

// decodeOperation reads a <pubsub/>: exactly one operation, and extensions.
func decodeOperation(pubsub *element, kind kinds) (Call, error) {
	if pubsub.mixed() {
		return nil, pep.Refuse(pep.ErrBadRequest, "text where only elements belong")
	}
	x, err := decodeExtensions(pubsub)
	if err != nil {
		return nil, err
	}
	var main *element
	for _, c := range pubsub.children {
		feature, companion := companions[c.name]
		_, alone := operations[c.name]
		switch {
		case c.name.space != pubsub.name.space:
		case companion && (main != nil || !alone):
			return nil, unsupported(feature)
		case main == nil:
			main = c
		default:
			return nil, pep.Refuse(pep.ErrBadRequest, "a request holds one operation")
		}
	}
	if main == nil {
		return nil, pep.Refuse(pep.ErrBadRequest, "no operation")
	}
	op, ok := operations[main.name]
	if !ok {
		return nil, pep.Refuse(pep.ErrUnsupported, "no such operation")
	}
	return op.decodeAs(kind, main, x)
}

func decodeExtensions(pubsub *element) (extensions, error) {
	var x extensions
	for _, c := range pubsub.children {
		switch {
		case c.name == name{nsRSM, "set"}:
			if x.set != nil {
				return x, pep.Refuse(pep.ErrBadRequest, "<set/> stands there twice")
			}
			x.set = c
		case c.name == name{nsSync, "state"}:
			if x.state || !c.empty() || len(c.attrs) > 0 {
				return x, pep.Refuse(pep.ErrBadRequest, "<state/> is empty in a request and stands there once")
			}
			x.state = true
		case strings.HasPrefix(c.name.space, nsOurs):
			return x, unsupported(c.name.local)
		}
	}
	return x, nil
}

func nodeOf(e *element) (string, error) {
	node := e.attr("node")
	if node == "" {
		return "", pep.Refuse(pep.ErrNodeRequired, "the request names no node")
	}
	return node, checkName("node name", node)
}

func checkName(what, name string) error {
	if !vault.ValidName(name) {
		return pep.Refuse(pep.ErrBadName, "a %s is 1 to %d bytes without control characters", what, vault.MaxNameBytes)
	}
	return nil
}

// refuseSubID refuses subscription ids: the service gives none, so one names
// nothing.
func refuseSubID(e *element) error {
	if e.attr("subid") != "" {
		return pep.Refuse(pep.ErrNotSubscribed, "the service gives no subscription ids")
	}
	return nil
}
