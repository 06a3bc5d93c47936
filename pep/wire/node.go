package wire

import "pepvault/pep"

// The life of a node: create, configure, purge, delete (XEP-0060 §8.1-8.5).

// decodeCreate takes a node without a name for an instant one (XEP-0060
// §8.1.2), and an empty <configure/> for the default configuration.
func decodeCreate(e *element, x extensions) (Call, error) {
	op := pep.Create{Node: e.attr("node")}
	if op.Node != "" {
		if err := checkName("node name", op.Node); err != nil {
			return nil, err
		}
	}
	if len(e.children) > 0 {
		return nil, pep.Refuse(pep.ErrBadRequest, "a create is an empty element; its configuration stands behind it")
	}
	var err error
	op.Config, err = companionForm(x.companion)
	return op, err
}

func decodeConfigure(e *element, x extensions) (Call, error) {
	node, err := nodeOf(e)
	if err != nil {
		return nil, err
	}
	if x.kind == get {
		if len(e.children) > 0 {
			return nil, pep.Refuse(pep.ErrBadRequest, "who asks for the configuration sends an empty element")
		}
		return pep.ReadConfig{Node: node}, nil
	}
	form, cancel, err := submission(e)
	switch {
	case err != nil:
		return nil, err
	case form == nil:
		return nil, pep.Refuse(pep.ErrBadRequest, "the request holds no form")
	}
	return pep.Configure{Node: node, Form: *form, Cancel: cancel}, nil
}

func decodeDefaultConfig(e *element, _ extensions) (Call, error) {
	if len(e.children) > 0 {
		return nil, pep.Refuse(pep.ErrBadRequest, "who asks for the default configuration sends an empty element")
	}
	return pep.DefaultConfig{}, nil
}

func decodePurge(e *element, _ extensions) (Call, error) {
	node, err := nodeOf(e)
	if err == nil && len(e.children) > 0 {
		err = pep.Refuse(pep.ErrBadRequest, "a purge is an empty element")
	}
	return pep.Purge{Node: node}, err
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

const ownerOpen = "<pubsub xmlns='" + nsPubsubOwner + "'>"

func askNode(call Call) (kind string, ask func(dst []byte) []byte) {
	switch c := call.(type) {
	case pep.Create:
		return "set", func(dst []byte) []byte { return askCreate(dst, c) }
	case pep.ReadConfig:
		return "get", func(dst []byte) []byte { return askOwner(dst, "configure", c.Node) }
	case pep.DefaultConfig:
		return "get", func(dst []byte) []byte { return askOwner(dst, "default", "") }
	case pep.Configure:
		return "set", func(dst []byte) []byte { return askConfigure(dst, c) }
	case pep.Purge:
		return "set", func(dst []byte) []byte { return askOwner(dst, "purge", c.Node) }
	case pep.Delete:
		return "set", func(dst []byte) []byte { return askOwner(dst, "delete", c.Node) }
	}
	return "", nil
}

func askCreate(dst []byte, op pep.Create) []byte {
	dst = append(appendAttrIf(append(dst, pubsubOpen+"<create"...), "node", op.Node), "/>"...)
	if op.Config != nil {
		dst = append(appendForm(append(dst, "<configure>"...), "submit", op.Config), "</configure>"...)
	}
	return append(dst, "</pubsub>"...)
}

func askConfigure(dst []byte, op pep.Configure) []byte {
	dst = append(appendAttr(append(dst, ownerOpen+"<configure"...), "node", op.Node), '>')
	return append(appendSubmission(dst, &op.Form, op.Cancel), "</configure></pubsub>"...)
}

func appendSubmission(dst []byte, form *pep.Form, cancel bool) []byte {
	if cancel {
		return appendForm(dst, "cancel", &pep.Form{})
	}
	return appendForm(dst, "submit", form)
}

// askOwner appends an operation that is an empty element.
func askOwner(dst []byte, local, node string) []byte {
	dst = append(append(dst, ownerOpen+"<"...), local...)
	return append(appendAttrIf(dst, "node", node), "/></pubsub>"...)
}

func appendNodeResult(dst []byte, _ string, answer any) ([]byte, bool) {
	switch a := answer.(type) {
	case pep.Created:
		dst = appendAttr(append(dst, pubsubOpen+"<create"...), "node", a.Node)
		return append(dst, "/></pubsub>"...), true
	case pep.ConfigForm:
		local := "configure"
		if a.Node == "" {
			local = "default"
		}
		dst = append(append(dst, ownerOpen+"<"...), local...)
		dst = append(appendAttrIf(dst, "node", a.Node), '>')
		dst = append(appendForm(dst, "form", &a.Form), "</"...)
		return append(append(dst, local...), "></pubsub>"...), true
	case pep.Configured, pep.Purged, pep.Deleted:
		return dst, true
	}
	return dst, false
}

func decodeNodeReply(iq *element, call Call) (any, error) {
	switch c := call.(type) {
	case pep.Create:
		return decodeCreated(iq, c)
	case pep.ReadConfig:
		return decodeConfigForm(iq, "configure")
	case pep.DefaultConfig:
		return decodeConfigForm(iq, "default")
	case pep.Configure:
		return pep.Configured{}, nil
	case pep.Purge:
		return pep.Purged{}, nil
	case pep.Delete:
		return pep.Deleted{}, nil
	}
	return nil, nil
}

// decodeCreated reads the node's name, which a service may leave out if the
// request had one.
func decodeCreated(iq *element, call pep.Create) (any, error) {
	if len(iq.children) == 0 && call.Node != "" {
		return pep.Created{Node: call.Node}, nil
	}
	e, err := within(iq, name{nsPubsub, "pubsub"}, name{nsPubsub, "create"})
	if err != nil {
		return nil, err
	}
	if e.attr("node") == "" {
		return nil, badReply("a node without a name")
	}
	return pep.Created{Node: e.attr("node")}, nil
}

func decodeConfigForm(iq *element, local string) (any, error) {
	e, err := within(iq, name{nsPubsubOwner, "pubsub"}, name{nsPubsubOwner, local})
	if err != nil {
		return nil, err
	}
	form, err := formIn(e)
	if err == nil && form == nil {
		err = badReply("a configuration without a form")
	}
	if err != nil {
		return nil, err
	}
	return pep.ConfigForm{Node: e.attr("node"), Form: *form}, nil
}
