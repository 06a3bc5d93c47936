package wire

import (
	"strconv"

	"pepvault/pep"
)

func decodePublish(e *element, x extensions) (Call, error) {
	node, err := nodeOf(e)
	if err != nil {
		return nil, err
	}
	op := pep.Publish{Node: node, State: x.state}
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
	return op, checkUnique(ids)
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
	return pep.Item{ID: id, KeyVersion: c.keyVersion, Payload: c.payload}, nil
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

// decodeRetract does not read notify: a retract is always told.
func decodeRetract(e *element, x extensions) (Call, error) {
	node, err := nodeOf(e)
	if err != nil {
		return nil, err
	}
	ids, err := decodeIDs(e)
	if err != nil {
		return nil, err
	}
	if len(ids) == 0 {
		return nil, pep.Refuse(pep.ErrItemRequired, "the request names no item")
	}
	return pep.Retract{Node: node, IDs: ids, State: x.state}, checkUnique(ids)
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
	if x.set != nil {
		if op.Page, err = decodePage(x.set); err != nil {
			return nil, err
		}
	}
	if len(op.IDs) > 0 && op.Max > 0 || op.Page != nil && (len(op.IDs) > 0 || op.Max > 0) {
		return nil, pep.Refuse(pep.ErrBadRequest, "item ids, max_items and <set/> exclude each other")
	}
	return op, nil
}

// decodeMax reads a number; one that no vault can reach stands for the most
// that fits.
func decodeMax(text string) (int, error) {
	n, err := strconv.ParseUint(text, 10, 31)
	if err != nil && n == 0 { // above the range, n is the highest number
		return 0, pep.Refuse(pep.ErrBadRequest, "a bound is a number from 0")
	}
	return int(n), nil
}

// decodePage reads the <set/> of a request (XEP-0059). Only paging forwards
// is offered.
func decodePage(set *element) (*pep.PageRequest, error) {
	page := pep.PageRequest{Max: -1}
	seen := make(map[string]bool, 2)
	for _, c := range set.children {
		if c.name.space != nsRSM {
			continue
		}
		if seen[c.name.local] || len(c.children) > 0 {
			return nil, pep.Refuse(pep.ErrBadRequest, "<set/> is not as XEP-0059 has it")
		}
		seen[c.name.local] = true
		switch c.name.local {
		case "max":
			n, err := decodeMax(string(c.text))
			if err != nil {
				return nil, err
			}
			page.Max = n
		case "after":
			page.After = string(c.text)
		case "before", "index":
			return nil, unsupported("rsm")
		default:
			return nil, pep.Refuse(pep.ErrBadRequest, "<set/> is not as XEP-0059 has it")
		}
	}
	if set.mixed() {
		return nil, pep.Refuse(pep.ErrBadRequest, "<set/> is not as XEP-0059 has it")
	}
	return &page, nil
}

func decodeSubscribe(e *element, _ extensions) (Call, error) {
	node, jid, err := subscriber(e)
	return pep.Subscribe{Node: node, JID: jid}, err
}

func decodeUnsubscribe(e *element, _ extensions) (Call, error) {
	node, jid, err := subscriber(e)
	if err == nil {
		err = refuseSubID(e)
	}
	return pep.Unsubscribe{Node: node, JID: jid}, err
}

func subscriber(e *element) (node, jid string, err error) {
	if node, err = nodeOf(e); err != nil {
		return "", "", err
	}
	if len(e.children) > 0 {
		return "", "", pep.Refuse(pep.ErrBadRequest, "a subscription is an empty element")
	}
	if e.attr("jid") == "" {
		return "", "", pep.Refuse(pep.ErrInvalidJID, "the request does not say who subscribes")
	}
	return node, e.attr("jid"), nil
}

func decodeDelete(e *element, _ extensions) (Call, error) {
	node, err := nodeOf(e)
	switch {
	case err != nil:
		return nil, err
	case e.child(name{nsPubsubOwner, "redirect"}) != nil:
		return nil, unsupported("redirect")
	case len(e.children) > 0:
		return nil, pep.Refuse(pep.ErrBadRequest, "a delete is an empty element")
	}
	return pep.Delete{Node: node}, nil
}

func decodeDiscoInfo(e *element, _ extensions) (Call, error) {
	if e.attr("node") == "" {
		return pep.DescribeService{}, nil
	}
	node, err := nodeOf(e)
	return pep.DescribeVault{Node: node}, err
}

// decodeDiscoItems reads a request for vaults, which is answered in one piece
// whatever page it asks for, or for the names of the records of one.
func decodeDiscoItems(e *element, x extensions) (Call, error) {
	if e.attr("node") == "" {
		return pep.ListVaults{}, nil
	}
	node, err := nodeOf(e)
	if err != nil {
		return nil, err
	}
	op := pep.Items{Node: node}
	if x.set != nil {
		op.Page, err = decodePage(x.set)
	}
	return ItemNames{op}, err
}
