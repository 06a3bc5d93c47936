package wire

import (
	"strings"

	"pepvault/pep"
	"pepvault/vault"
)

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
	return op.decodeAs(child, extensions{kind: kind, set: child.child(name{nsRSM, "set"})})
}

func unknownCall(n name) error {
	for _, table := range []map[name]operation{queries, operations} {
		for k := range table {
			if k.space == n.space {
				return pep.Refuse(pep.ErrBadRequest, "no such element in this namespace")
			}
		}
	}
	return pep.ErrUnknownNamespace
}

func unsupported(feature string) error {
	return &pep.Refusal{Err: pep.ErrUnsupported, Text: "this service does not offer it", Feature: feature}
}

// operation is how one kind of request is read.
type operation struct {
	kinds   kinds
	feature string // what is missing, if decode is nil
	change  bool   // changes records: may ask for a <state/>, rely on one, and be staged
	paged   bool   // may ask for a page
	decode  func(*element, extensions) (Call, error)
}

// extensions are what stands around an operation: the type of its iq, and the
// elements beside it.
type extensions struct {
	kind      kinds
	state     bool
	expect    *pep.Expect
	batch     *pep.BatchRef
	unstage   []string // out of batch
	confirm   bool
	set       *element
	companion *element // nil = none
}

// operations are the children of the two <pubsub/>.
var operations = map[name]operation{
	{nsPubsub, "publish"}:       {kinds: set, change: true, decode: decodePublish},
	{nsPubsub, "retract"}:       {kinds: set, change: true, decode: decodeRetract},
	{nsPubsub, "items"}:         {kinds: get, paged: true, decode: decodeItems},
	{nsPubsub, "create"}:        {kinds: set, decode: decodeCreate},
	{nsPubsub, "subscribe"}:     {kinds: set, decode: decodeSubscribe},
	{nsPubsub, "unsubscribe"}:   {kinds: set, decode: decodeUnsubscribe},
	{nsPubsub, "subscriptions"}: {kinds: get, decode: decodeSubscriptions},
	{nsPubsub, "options"}:       {kinds: get | set, decode: decodeOptions},
	{nsPubsub, "default"}:       {kinds: get, decode: decodeDefaultOptions},
	{nsPubsub, "affiliations"}:  {kinds: get, decode: decodeAffiliations},

	{nsPubsubOwner, "configure"}:     {kinds: get | set, decode: decodeConfigure},
	{nsPubsubOwner, "default"}:       {kinds: get, decode: decodeDefaultConfig},
	{nsPubsubOwner, "purge"}:         {kinds: set, decode: decodePurge},
	{nsPubsubOwner, "delete"}:        {kinds: set, decode: decodeDelete},
	{nsPubsubOwner, "affiliations"}:  {kinds: get | set, decode: decodeVaultAffiliations},
	{nsPubsubOwner, "subscriptions"}: {kinds: get | set, feature: "manage-subscriptions"},
}

// companions stand behind an operation and say how it is meant; each goes with
// one.
var companions = map[name]string{
	{nsPubsub, "publish-options"}: "publish",
	{nsPubsub, "configure"}:       "create",
	{nsPubsub, "options"}:         "subscribe",
}

// queries are the children of <iq/> that ask by themselves.
var queries = map[name]operation{
	{nsPing, "ping"}:        {kinds: get, decode: constant(Ping{})},
	{nsVersion, "query"}:    {kinds: get, decode: constant(Version{})},
	{nsDiscoInfo, "query"}:  {kinds: get, decode: decodeDiscoInfo},
	{nsDiscoItems, "query"}: {kinds: get, paged: true, decode: decodeDiscoItems},
	{nsCommands, "command"}: {kinds: set, decode: decodeCommand},
	{nsAccount, "erase"}:    {kinds: set, decode: decodeErase},
	{nsSync, "sync"}:        {kinds: get, decode: decodeSync},
	{nsSync, "download"}:    {kinds: set, decode: decodeDownload},
	{nsBatch, "begin"}:      {kinds: set, decode: decodeBegin},
	{nsBatch, "batch"}:      {kinds: set, decode: decodeUnstage},
	{nsBatch, "commit"}:     {kinds: set, decode: decodeCommit},
	{nsBatch, "abort"}:      {kinds: set, decode: decodeAbort},
}

func constant(c Call) func(*element, extensions) (Call, error) {
	return func(*element, extensions) (Call, error) { return c, nil }
}

func (op operation) decodeAs(e *element, x extensions) (Call, error) {
	switch {
	case op.kinds&x.kind == 0:
		return nil, pep.Refuse(pep.ErrBadRequest, "the iq is of the wrong type for this operation")
	case op.decode == nil:
		return nil, unsupported(op.feature)
	case (x.state || x.expect != nil || x.batch != nil || x.confirm) && !op.change:
		return nil, pep.Refuse(pep.ErrBadRequest, "<state/>, <expect/>, <batch/> and <confirm/> go with publish and retract")
	case x.unstage != nil:
		return nil, pep.Refuse(pep.ErrBadRequest, "<unstage/> goes with no other operation")
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
	x.kind = kind
	var main *element
	for _, c := range pubsub.children {
		if c.name.space != pubsub.name.space {
			continue
		}
		of, companion := companions[c.name]
		switch {
		case main == nil:
			main = c
		case !companion:
			return nil, pep.Refuse(pep.ErrBadRequest, "a request holds one operation")
		case main.name.local != of || x.companion != nil:
			return nil, pep.Refuse(pep.ErrBadRequest, "<%s/> stands once, behind <%s/>", c.name.local, of)
		default:
			x.companion = c
		}
	}
	if main == nil && x.unstage != nil && kind == set {
		return unstageOf(x.batch, x.unstage)
	}
	if main == nil {
		return nil, pep.Refuse(pep.ErrBadRequest, "no operation")
	}
	if op, ok := operations[main.name]; ok {
		return op.decodeAs(main, x)
	}
	if of, companion := companions[main.name]; companion {
		return nil, pep.Refuse(pep.ErrBadRequest, "<%s/> stands behind <%s/>", main.name.local, of)
	}
	return nil, pep.Refuse(pep.ErrUnsupported, "no such operation")
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
		case c.name == name{nsSync, "expect"}:
			if x.expect != nil {
				return x, pep.Refuse(pep.ErrBadRequest, "<expect/> stands there twice")
			}
			var err error
			if x.expect, err = decodeExpect(c); err != nil {
				return x, err
			}
		case c.name == name{nsBatch, "batch"}:
			if x.batch != nil {
				return x, pep.Refuse(pep.ErrBadRequest, "<batch/> stands there twice")
			}
			var err error
			if x.batch, x.unstage, err = decodeBatchRef(c); err != nil {
				return x, err
			}
		case c.name == name{nsBatch, "confirm"}:
			if x.confirm || !c.empty() {
				return x, pep.Refuse(pep.ErrBadRequest, "<confirm/> is empty and stands there once")
			}
			x.confirm = true
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
