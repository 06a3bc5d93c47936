package wire

import (
	"pepvault/pep"
	"pepvault/vault"
)

// Publish, retract and items (XEP-0060 §6.5, §7.1, §7.2) as the service has
// them.

func decodePublish(e *element, x extensions) (Call, error) {
	node, err := nodeOf(e)
	if err != nil {
		return nil, err
	}
	if x.confirm {
		return nil, pep.Refuse(pep.ErrBadRequest, "<confirm/> goes with a retract")
	}
	op := pep.Publish{Node: node, Expect: x.expect, State: x.state, Batch: x.batch}
	for _, c := range e.children {
		if c.name != (name{nsPubsub, "item"}) {
			return nil, pep.Refuse(pep.ErrBadRequest, "only items are published")
		}
		item, err := decodeItem(c)
		if err != nil {
			return nil, err
		}
		op.Items = append(op.Items, item)
	}
	if len(op.Items) == 0 {
		return nil, pep.Refuse(pep.ErrItemRequired, "the request holds no item")
	}
	ids := make([]string, 0, len(op.Items))
	for _, item := range op.Items {
		if item.ID != "" {
			ids = append(ids, item.ID)
		}
	}
	if err := checkUnique(ids); err != nil || x.companion == nil {
		return op, err
	}
	if op.Options, err = companionForm(x.companion); err == nil && op.Options == nil {
		err = pep.Refuse(pep.ErrBadRequest, "<publish-options/> without a form")
	}
	return op, err
}

// decodeItem reads an item of a publish. Its publisher is for the service to
// say, so what the device writes there is not read (XEP-0060 §7.1.2.3).
func decodeItem(e *element) (pep.Item, error) {
	id := e.attr("id")
	if e.has("id") {
		if err := checkName("record id", id); err != nil {
			return pep.Item{}, err
		}
	}
	if len(e.payloads) == 0 {
		return pep.Item{}, pep.Refuse(pep.ErrPayloadRequired, "an item holds no payload")
	}
	c := e.payloads[0]
	return pep.Item{ID: id, KeyVersion: c.keyVersion, Namespace: c.space, Payload: c.payload}, nil
}

func checkUnique(ids []string) error {
	if len(ids) < 2 {
		return nil
	}
	seen := make(map[string]struct{}, len(ids))
	for _, id := range ids {
		if _, twice := seen[id]; twice {
			return pep.Refuse(pep.ErrBadRequest, "one id stands there twice")
		}
		seen[id] = struct{}{}
	}
	return nil
}

func decodeRetract(e *element, x extensions) (Call, error) {
	node, err := nodeOf(e)
	if err != nil {
		return nil, err
	}
	op := pep.Retract{Node: node, Expect: x.expect, State: x.state, Confirm: x.confirm, Batch: x.batch}
	switch e.attr("notify") {
	case "", "false", "0":
	case "true", "1":
		op.Notify = true
	default:
		return nil, pep.Refuse(pep.ErrBadRequest, "notify is true or false")
	}
	if op.IDs, err = decodeIDs(e); err != nil {
		return nil, err
	}
	if len(op.IDs) == 0 {
		return nil, pep.Refuse(pep.ErrItemRequired, "the request names no item")
	}
	return op, checkUnique(op.IDs)
}

// decodeIDs reads the empty items of a retract or of a read.
func decodeIDs(e *element) ([]string, error) {
	var ids []string
	for _, c := range e.children {
		switch {
		case c.name != name{nsPubsub, "item"} || !c.empty():
			return nil, pep.Refuse(pep.ErrBadRequest, "the request names items by empty elements with an id")
		case c.attr("id") == "":
			return nil, pep.Refuse(pep.ErrItemRequired, "an item lacks its id")
		}
		if err := checkName("record id", c.attr("id")); err != nil {
			return nil, err
		}
		ids = append(ids, c.attr("id"))
	}
	return ids, nil
}

func decodeItems(e *element, x extensions) (Call, error) {
	node, err := nodeOf(e)
	if err != nil {
		return nil, err
	}
	if err := refuseSubID(e); err != nil {
		return nil, err
	}
	op := pep.Items{Node: node}
	if op.IDs, err = decodeIDs(e); err != nil {
		return nil, err
	}
	if e.has("max_items") {
		if op.Max, err = decodeMax(e.attr("max_items")); err != nil || op.Max == 0 {
			return nil, pep.Refuse(pep.ErrBadRequest, "max_items is a number from 1")
		}
	}
	if op.Page, err = decodePage(x.set); err != nil {
		return nil, err
	}
	if len(op.IDs) > 0 && (op.Page != nil || op.Max > 0) {
		return nil, pep.Refuse(pep.ErrBadRequest, "item ids go with neither max_items nor <set/>")
	}
	return op, nil
}

func appendItemResult(dst []byte, _ string, answer any) ([]byte, bool) {
	switch a := answer.(type) {
	case pep.Published:
		return appendPublished(dst, a), true
	case pep.Retracted:
		return appendRetracted(dst, a), true
	case pep.ItemsPage:
		return appendItemsPage(dst, a), true
	}
	return dst, false
}

func appendPublished(dst []byte, a pep.Published) []byte {
	dst = appendAttr(append(dst, pubsubOpen+"<publish"...), "node", a.Node)
	dst = append(dst, '>')
	for _, id := range a.IDs {
		dst = append(appendAttr(append(dst, "<item"...), "id", id), "/>"...)
	}
	dst = append(dst, "</publish>"...)
	if a.State != nil {
		dst = appendState(dst, *a.State)
	}
	return append(dst, "</pubsub>"...)
}

func appendRetracted(dst []byte, a pep.Retracted) []byte {
	if a.State == nil {
		return dst
	}
	return append(appendState(append(dst, pubsubOpen...), *a.State), "</pubsub>"...)
}

func appendItemsPage(dst []byte, a pep.ItemsPage) []byte {
	dst = appendAttr(append(dst, pubsubOpen+"<items"...), "node", a.Node)
	if len(a.Records) == 0 {
		dst = append(dst, "/>"...)
	} else {
		dst = append(dst, '>')
		for i := range a.Records {
			dst = appendItem(dst, &a.Records[i], false)
		}
		dst = append(dst, "</items>"...)
	}
	return append(appendSet(dst, a.Set), "</pubsub>"...)
}

// appendItem appends a record as the item of a result or an event; bare leaves
// the payload out.
func appendItem(dst []byte, r *vault.Record, bare bool) []byte {
	dst = appendAttr(append(dst, "<item"...), "id", r.ID)
	dst = appendAttrIf(dst, "publisher", string(r.Publisher))
	if bare {
		return append(dst, "/>"...)
	}
	dst = appendPayload(append(dst, '>'), r.Payload, r.KeyVersion)
	return append(dst, "</item>"...)
}
