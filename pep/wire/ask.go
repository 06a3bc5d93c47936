package wire

import (
	"fmt"
	"strconv"

	"pepvault/pep"
)

// AppendRequest appends the request for call, which is one that
// [DecodeRequest] returns; others panic. header.From may be "": a client's
// server stamps it. header.Name and header.Type are not read.
func AppendRequest(dst []byte, header Header, call Call) []byte {
	ask, kind := questionOf(call)
	dst = append(append(append(dst, "<iq type='"...), kind...), '\'')
	dst = appendAttrIf(dst, "from", header.From)
	dst = appendAttrIf(dst, "to", header.To)
	dst = append(appendAttr(dst, "id", header.ID), '>')
	return append(ask(dst), "</iq>"...)
}

// Ask returns the type and the child of the <iq/> that asks for call, for who
// writes stanzas by other means than [AppendRequest].
func Ask(call Call) (kind string, payload []byte) {
	ask, kind := questionOf(call)
	return kind, ask(nil)
}

// questionOf returns what writes the element of a call, and the type of its iq.
func questionOf(call Call) (ask func(dst []byte) []byte, kind string) {
	switch c := call.(type) {
	case pep.Publish:
		return func(dst []byte) []byte { return askPublish(dst, c) }, "set"
	case pep.Retract:
		return func(dst []byte) []byte { return askRetract(dst, c) }, "set"
	case pep.Items:
		return func(dst []byte) []byte { return askItems(dst, c) }, "get"
	case pep.Delete:
		return func(dst []byte) []byte { return askDelete(dst, c) }, "set"
	case pep.Subscribe:
		return func(dst []byte) []byte { return askSubscription(dst, "subscribe", c.Node, c.JID) }, "set"
	case pep.Unsubscribe:
		return func(dst []byte) []byte { return askSubscription(dst, "unsubscribe", c.Node, c.JID) }, "set"
	case pep.DescribeService:
		return func(dst []byte) []byte { return askQuery(dst, nsDiscoInfo, "", nil) }, "get"
	case pep.DescribeVault:
		return func(dst []byte) []byte { return askQuery(dst, nsDiscoInfo, c.Node, nil) }, "get"
	case pep.ListVaults:
		return func(dst []byte) []byte { return askQuery(dst, nsDiscoItems, "", nil) }, "get"
	case ItemNames:
		return func(dst []byte) []byte { return askQuery(dst, nsDiscoItems, c.Items.Node, c.Items.Page) }, "get"
	case Version:
		return func(dst []byte) []byte { return askQuery(dst, nsVersion, "", nil) }, "get"
	case Ping:
		return func(dst []byte) []byte { return append(dst, "<ping xmlns='"+nsPing+"'/>"...) }, "get"
	}
	panic(fmt.Sprintf("wire: no request is written for a %T", call))
}

const askState = "<state xmlns='" + nsSync + "'/>"

func askPublish(dst []byte, op pep.Publish) []byte {
	dst = append(appendAttr(append(dst, pubsubOpen+"<publish"...), "node", op.Node), '>')
	for _, item := range op.Items {
		dst = append(appendAttrIf(append(dst, "<item"...), "id", item.ID), '>')
		dst = append(appendPayload(dst, item.Payload, item.KeyVersion), "</item>"...)
	}
	dst = append(dst, "</publish>"...)
	if op.State {
		dst = append(dst, askState...)
	}
	return append(dst, "</pubsub>"...)
}

func askRetract(dst []byte, op pep.Retract) []byte {
	dst = append(appendAttr(append(dst, pubsubOpen+"<retract"...), "node", op.Node), '>')
	dst = append(askIDs(dst, op.IDs), "</retract>"...)
	if op.State {
		dst = append(dst, askState...)
	}
	return append(dst, "</pubsub>"...)
}

func askIDs(dst []byte, ids []string) []byte {
	for _, id := range ids {
		dst = append(appendAttr(append(dst, "<item"...), "id", id), "/>"...)
	}
	return dst
}

func askItems(dst []byte, op pep.Items) []byte {
	dst = appendAttr(append(dst, pubsubOpen+"<items"...), "node", op.Node)
	if op.Max > 0 {
		dst = appendAttr(dst, "max_items", strconv.Itoa(op.Max))
	}
	dst = append(askIDs(append(dst, '>'), op.IDs), "</items>"...)
	return append(askPage(dst, op.Page), "</pubsub>"...)
}

func askPage(dst []byte, page *pep.PageRequest) []byte {
	if page == nil {
		return dst
	}
	dst = append(dst, "<set xmlns='"+nsRSM+"'>"...)
	if page.Max >= 0 {
		dst = strconv.AppendInt(append(dst, "<max>"...), int64(page.Max), 10)
		dst = append(dst, "</max>"...)
	}
	if page.After != "" {
		dst = append(appendText(append(dst, "<after>"...), page.After), "</after>"...)
	}
	return append(dst, "</set>"...)
}

func askDelete(dst []byte, op pep.Delete) []byte {
	dst = appendAttr(append(dst, "<pubsub xmlns='"+nsPubsubOwner+"'><delete"...), "node", op.Node)
	return append(dst, "/></pubsub>"...)
}

func askSubscription(dst []byte, local, node, jid string) []byte {
	dst = appendAttr(append(append(dst, pubsubOpen+"<"...), local...), "node", node)
	return append(appendAttr(dst, "jid", jid), "/></pubsub>"...)
}

func askQuery(dst []byte, space, node string, page *pep.PageRequest) []byte {
	dst = appendAttr(append(dst, "<query"...), "xmlns", space)
	dst = append(appendAttrIf(dst, "node", node), '>')
	return append(askPage(dst, page), "</query>"...)
}
