package wire

import "pepvault/pep"

// Subscriptions and their options (XEP-0060 §5.6, §6.1-6.4).

func decodeSubscribe(e *element, x extensions) (Call, error) {
	node, jid, err := subscriber(e)
	if err != nil {
		return nil, err
	}
	op := pep.Subscribe{Node: node, JID: jid}
	op.Options, err = companionForm(x.companion)
	return op, err
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

// refuseSubID refuses subscription ids: the service gives none, so one names
// nothing.
func refuseSubID(e *element) error {
	if e.attr("subid") != "" {
		return pep.Refuse(pep.ErrNotSubscribed, "the service gives no subscription ids")
	}
	return nil
}

func decodeSubscriptions(e *element, _ extensions) (Call, error) {
	node, err := filterOf(e)
	return pep.ListSubscriptions{Node: node}, err
}

// filterOf reads the node of a list of one's own, "" if it is of all nodes.
func filterOf(e *element) (string, error) {
	if len(e.children) > 0 {
		return "", pep.Refuse(pep.ErrBadRequest, "who asks for a list sends an empty element")
	}
	if e.attr("node") == "" {
		return "", nil
	}
	return nodeOf(e)
}

func decodeOptions(e *element, x extensions) (Call, error) {
	node, err := nodeOf(e)
	if err == nil {
		err = refuseSubID(e)
	}
	jid := e.attr("jid")
	switch {
	case err != nil:
		return nil, err
	case jid == "":
		return nil, pep.Refuse(pep.ErrJIDRequired, "the request does not say whose subscription")
	case x.kind == get && len(e.children) > 0:
		return nil, pep.Refuse(pep.ErrBadRequest, "who asks for options sends an empty element")
	case x.kind == get:
		return pep.ReadOptions{Node: node, JID: jid}, nil
	}
	form, cancel, err := submission(e)
	switch {
	case err != nil:
		return nil, err
	case form == nil:
		return nil, pep.Refuse(pep.ErrBadRequest, "the request holds no form")
	}
	return pep.SetOptions{Node: node, JID: jid, Form: *form, Cancel: cancel}, nil
}

func decodeDefaultOptions(e *element, _ extensions) (Call, error) {
	node, err := filterOf(e)
	return pep.ReadOptions{Node: node}, err
}

func askSubscription(call Call) (kind string, ask func(dst []byte) []byte) {
	switch c := call.(type) {
	case pep.Subscribe:
		return "set", func(dst []byte) []byte { return askSubscribe(dst, c) }
	case pep.Unsubscribe:
		return "set", func(dst []byte) []byte {
			return append(askSubscriber(dst, "unsubscribe", c.Node, c.JID), "/></pubsub>"...)
		}
	case pep.ListSubscriptions:
		return "get", func(dst []byte) []byte { return askFilter(dst, "subscriptions", c.Node) }
	case pep.ReadOptions:
		if c.JID == "" {
			return "get", func(dst []byte) []byte { return askFilter(dst, "default", c.Node) }
		}
		return "get", func(dst []byte) []byte {
			return append(askSubscriber(dst, "options", c.Node, c.JID), "/></pubsub>"...)
		}
	case pep.SetOptions:
		return "set", func(dst []byte) []byte {
			dst = append(askSubscriber(dst, "options", c.Node, c.JID), '>')
			return append(appendSubmission(dst, &c.Form, c.Cancel), "</options></pubsub>"...)
		}
	}
	return "", nil
}

func askSubscribe(dst []byte, op pep.Subscribe) []byte {
	dst = append(askSubscriber(dst, "subscribe", op.Node, op.JID), "/>"...)
	if op.Options != nil {
		dst = append(appendForm(append(dst, "<options>"...), "submit", op.Options), "</options>"...)
	}
	return append(dst, "</pubsub>"...)
}

// askSubscriber appends an operation without the end of its start tag.
func askSubscriber(dst []byte, local, node, jid string) []byte {
	dst = append(append(dst, pubsubOpen+"<"...), local...)
	return appendAttr(appendAttrIf(dst, "node", node), "jid", jid)
}

func askFilter(dst []byte, local, node string) []byte {
	dst = append(append(dst, pubsubOpen+"<"...), local...)
	return append(appendAttrIf(dst, "node", node), "/></pubsub>"...)
}

func appendSubscriptionResult(dst []byte, _ string, answer any) ([]byte, bool) {
	switch a := answer.(type) {
	case pep.Subscribed:
		return append(appendSubscribed(append(dst, pubsubOpen...), a), "</pubsub>"...), true
	case pep.SubscriptionList:
		dst = appendAttrIf(append(dst, pubsubOpen+"<subscriptions"...), "node", a.Node)
		if len(a.List) == 0 {
			return append(dst, "/></pubsub>"...), true
		}
		dst = append(dst, '>')
		for _, s := range a.List {
			dst = appendSubscribed(dst, s)
		}
		return append(dst, "</subscriptions></pubsub>"...), true
	case pep.OptionsForm:
		return appendOptionsForm(dst, a), true
	case pep.Unsubscribed, pep.OptionsSet:
		return dst, true
	}
	return dst, false
}

func appendSubscribed(dst []byte, s pep.Subscribed) []byte {
	dst = appendAttr(append(dst, "<subscription"...), "node", s.Node)
	return append(appendAttr(dst, "jid", s.JID), " subscription='subscribed'/>"...)
}

func appendOptionsForm(dst []byte, a pep.OptionsForm) []byte {
	local := "options"
	if a.JID == "" {
		local = "default"
	}
	dst = append(append(dst, pubsubOpen+"<"...), local...)
	dst = append(appendAttrIf(appendAttrIf(dst, "node", a.Node), "jid", a.JID), '>')
	dst = append(appendForm(dst, "form", &a.Form), "</"...)
	return append(append(dst, local...), "></pubsub>"...)
}

func decodeSubscriptionReply(iq *element, call Call) (any, error) {
	switch c := call.(type) {
	case pep.Subscribe:
		e, err := within(iq, name{nsPubsub, "pubsub"}, name{nsPubsub, "subscription"})
		if err != nil {
			return nil, err
		}
		return decodeSubscribed(e, "")
	case pep.ListSubscriptions:
		return decodeSubscriptionList(iq)
	case pep.ReadOptions:
		if c.JID == "" {
			return decodeOptionsForm(iq, "default")
		}
		return decodeOptionsForm(iq, "options")
	case pep.Unsubscribe:
		return pep.Unsubscribed{}, nil
	case pep.SetOptions:
		return pep.OptionsSet{}, nil
	}
	return nil, nil
}

// decodeSubscribed reads a subscription; node is the one of the list that it
// stands in.
func decodeSubscribed(e *element, node string) (pep.Subscribed, error) {
	if e.attr("subscription") != "subscribed" {
		return pep.Subscribed{}, badReply("subscription is %q", e.attr("subscription"))
	}
	if e.has("node") {
		node = e.attr("node")
	}
	return pep.Subscribed{Node: node, JID: e.attr("jid")}, nil
}

func decodeSubscriptionList(iq *element) (any, error) {
	e, err := within(iq, name{nsPubsub, "pubsub"}, name{nsPubsub, "subscriptions"})
	if err != nil {
		return nil, err
	}
	a := pep.SubscriptionList{Node: e.attr("node")}
	for _, c := range e.children {
		s, err := decodeSubscribed(c, a.Node)
		if err != nil {
			return nil, err
		}
		a.List = append(a.List, s)
	}
	return a, nil
}

func decodeOptionsForm(iq *element, local string) (any, error) {
	e, err := within(iq, name{nsPubsub, "pubsub"}, name{nsPubsub, local})
	if err != nil {
		return nil, err
	}
	form, err := formIn(e)
	if err == nil && form == nil {
		err = badReply("options without a form")
	}
	if err != nil {
		return nil, err
	}
	return pep.OptionsForm{Node: e.attr("node"), JID: e.attr("jid"), Form: *form}, nil
}
