package wire

import (
	"strconv"

	"pepvault/pep"
	"pepvault/vault"
)

// Publish, retract and items as a device has them.

func askItem(call Call) (kind string, ask func(dst []byte) []byte) {
	switch c := call.(type) {
	case pep.Publish:
		return "set", func(dst []byte) []byte { return askPublish(dst, c) }
	case pep.Retract:
		return "set", func(dst []byte) []byte { return askRetract(dst, c) }
	case pep.Items:
		return "get", func(dst []byte) []byte { return askItems(dst, c) }
	}
	return "", nil
}

const askState = "<state xmlns='" + nsSync + "'/>"

func askPublish(dst []byte, op pep.Publish) []byte {
	dst = append(appendAttr(append(dst, pubsubOpen+"<publish"...), "node", op.Node), '>')
	for _, item := range op.Items {
		dst = append(appendAttrIf(append(dst, "<item"...), "id", item.ID), '>')
		dst = append(appendPayload(dst, item.Payload, item.KeyVersion), "</item>"...)
	}
	dst = append(dst, "</publish>"...)
	if op.Options != nil {
		dst = append(appendForm(append(dst, "<publish-options>"...), "submit", op.Options), "</publish-options>"...)
	}
	dst = askBatchRef(askExpect(dst, op.Expect), op.Batch)
	if op.State {
		dst = append(dst, askState...)
	}
	return append(dst, "</pubsub>"...)
}

func askRetract(dst []byte, op pep.Retract) []byte {
	dst = appendAttr(append(dst, pubsubOpen+"<retract"...), "node", op.Node)
	if op.Notify {
		dst = append(dst, " notify='true'"...)
	}
	dst = append(askIDs(append(dst, '>'), op.IDs), "</retract>"...)
	dst = askBatchRef(askExpect(dst, op.Expect), op.Batch)
	if op.State {
		dst = append(dst, askState...)
	}
	if op.Confirm {
		dst = append(dst, "<confirm xmlns='"+nsBatch+"'/>"...)
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

func decodeItemReply(iq *element, call Call) (any, error) {
	switch call.(type) {
	case pep.Publish:
		return decodePublished(iq)
	case pep.Retract:
		return decodeRetracted(iq)
	case pep.Items:
		return decodeItemsPage(iq)
	}
	return nil, nil
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
