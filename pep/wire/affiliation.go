package wire

import (
	"slices"

	"pepvault/pep"
	"pepvault/vault"
)

// Affiliations (XEP-0060 §5.7, §8.9).

// affiliationNames are the names of affiliations, by their value.
var affiliationNames = [...]string{
	vault.NotAffiliated: "none",
	vault.Outcast:       "outcast",
	vault.Member:        "member",
	vault.Publisher:     "publisher",
	vault.Owner:         "owner",
}

func decodeAffiliations(e *element, _ extensions) (Call, error) {
	node, err := filterOf(e)
	return pep.ListAffiliations{Node: node}, err
}

func decodeVaultAffiliations(e *element, x extensions) (Call, error) {
	node, err := nodeOf(e)
	switch {
	case err != nil:
		return nil, err
	case x.kind == get && len(e.children) > 0:
		return nil, pep.Refuse(pep.ErrBadRequest, "who asks for a list sends an empty element")
	case x.kind == get:
		return pep.ReadAffiliations{Node: node}, nil
	}
	op := pep.SetAffiliations{Node: node}
	for _, c := range e.children {
		change := pep.AffiliationChange{JID: c.attr("jid"), Affiliation: c.attr("affiliation")}
		if c.name != (name{nsPubsubOwner, "affiliation"}) || !c.empty() || change.JID == "" || change.Affiliation == "" {
			return nil, pep.Refuse(pep.ErrBadRequest, "each change is an empty element with a jid and an affiliation")
		}
		op.Changes = append(op.Changes, change)
	}
	if len(op.Changes) == 0 {
		return nil, pep.Refuse(pep.ErrBadRequest, "the request holds no change")
	}
	return op, nil
}

func askAffiliation(call Call) (kind string, ask func(dst []byte) []byte) {
	switch c := call.(type) {
	case pep.ListAffiliations:
		return "get", func(dst []byte) []byte { return askFilter(dst, "affiliations", c.Node) }
	case pep.ReadAffiliations:
		return "get", func(dst []byte) []byte { return askOwner(dst, "affiliations", c.Node) }
	case pep.SetAffiliations:
		return "set", func(dst []byte) []byte {
			dst = append(appendAttr(append(dst, ownerOpen+"<affiliations"...), "node", c.Node), '>')
			for _, change := range c.Changes {
				dst = appendAffiliation(dst, "jid", change.JID, change.Affiliation)
			}
			return append(dst, "</affiliations></pubsub>"...)
		}
	}
	return "", nil
}

func appendAffiliation(dst []byte, of, who, what string) []byte {
	return append(appendAttr(appendAttr(append(dst, "<affiliation"...), of, who), "affiliation", what), "/>"...)
}

func appendAffiliationResult(dst []byte, _ string, answer any) ([]byte, bool) {
	switch a := answer.(type) {
	case pep.AffiliationList:
		dst = appendAttrIf(append(dst, pubsubOpen+"<affiliations"...), "node", a.Node)
		if len(a.List) == 0 {
			return append(dst, "/></pubsub>"...), true
		}
		dst = append(dst, '>')
		for _, one := range a.List {
			dst = appendAffiliation(dst, "node", one.Node, affiliationNames[one.Affiliation])
		}
		return append(dst, "</affiliations></pubsub>"...), true
	case pep.VaultAffiliations:
		return appendVaultAffiliations(dst, a.Node, a.List), true
	case pep.AffiliationsSet:
		return dst, true
	}
	return dst, false
}

func appendVaultAffiliations(dst []byte, node string, list []vault.Affiliated) []byte {
	dst = appendAttr(append(dst, ownerOpen+"<affiliations"...), "node", node)
	if len(list) == 0 {
		return append(dst, "/></pubsub>"...)
	}
	dst = append(dst, '>')
	for _, one := range list {
		dst = appendAffiliation(dst, "jid", string(one.Account), affiliationNames[one.Affiliation])
	}
	return append(dst, "</affiliations></pubsub>"...)
}

func decodeAffiliationReply(iq *element, call Call) (any, error) {
	switch call.(type) {
	case pep.ListAffiliations:
		return decodeAffiliationList(iq)
	case pep.ReadAffiliations:
		node, list, err := decodeAffiliated(iq)
		return pep.VaultAffiliations{Node: node, List: list}, err
	case pep.SetAffiliations:
		return pep.AffiliationsSet{}, nil
	}
	return nil, nil
}

func decodeAffiliationList(iq *element) (any, error) {
	e, err := within(iq, name{nsPubsub, "pubsub"}, name{nsPubsub, "affiliations"})
	if err != nil {
		return nil, err
	}
	a := pep.AffiliationList{Node: e.attr("node")}
	for _, c := range e.children {
		affiliation, err := affiliationOf(c)
		if err != nil {
			return nil, err
		}
		a.List = append(a.List, pep.NodeAffiliation{Node: c.attr("node"), Affiliation: affiliation})
	}
	return a, nil
}

// decodeAffiliated reads who is affiliated with a node.
func decodeAffiliated(stanza *element) (node string, list []vault.Affiliated, err error) {
	e, err := within(stanza, name{nsPubsubOwner, "pubsub"}, name{nsPubsubOwner, "affiliations"})
	if err != nil {
		return "", nil, err
	}
	for _, c := range e.children {
		affiliation, err := affiliationOf(c)
		if err != nil {
			return "", nil, err
		}
		list = append(list, vault.Affiliated{Account: vault.Account(c.attr("jid")), Affiliation: affiliation})
	}
	return e.attr("node"), list, nil
}

func affiliationOf(e *element) (vault.Affiliation, error) {
	i := slices.Index(affiliationNames[:], e.attr("affiliation"))
	if i < 0 {
		return vault.NotAffiliated, badReply("affiliation is %q", e.attr("affiliation"))
	}
	return vault.Affiliation(i), nil
}
