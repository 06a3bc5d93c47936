package wire

import (
	"slices"
	"strings"

	"pepvault/pep"
	"pepvault/vault"
)

// Service discovery (XEP-0030) of the service, of vaults and of records
// (XEP-0060 §5.1-5.5).

// ItemNames asks for the names of a vault's records by service discovery
// (XEP-0060 §5.5). Do its Items as any other operation, under the same
// rights, and answer with [ItemNamesPage].
type ItemNames struct{ Items pep.Items }

// ItemNamesPage answers [ItemNames].
type ItemNamesPage struct{ Page pep.ItemsPage }

// The features besides those of pubsub.
var commonFeatures = []string{nsDiscoInfo, nsDiscoItems, nsPubsub, nsVersion, nsPing}

func decodeDiscoInfo(e *element, _ extensions) (Call, error) {
	node := e.attr("node")
	switch {
	case node == "":
		return pep.DescribeService{}, nil
	case node == CommandsNode:
		return DescribeCommands{}, nil
	case strings.HasPrefix(node, CommandPrefix):
		return DescribeCommand{Node: node}, nil
	}
	return pep.DescribeVault{Node: node}, checkName("node name", node)
}

// decodeDiscoItems reads a request for vaults, for commands, or for the names
// of the records of a vault.
func decodeDiscoItems(e *element, x extensions) (Call, error) {
	node := e.attr("node")
	page, err := decodePage(x.set)
	switch {
	case err != nil:
		return nil, err
	case node == "":
		return pep.ListVaults{Page: page}, nil
	case node == CommandsNode, strings.HasPrefix(node, CommandPrefix):
		return ListCommands{Node: node}, nil
	}
	return ItemNames{pep.Items{Node: node, Page: page}}, checkName("node name", node)
}

func askDisco(call Call) (kind string, ask func(dst []byte) []byte) {
	space, node, page := nsDiscoInfo, "", (*pep.PageRequest)(nil)
	switch c := call.(type) {
	case pep.DescribeService:
	case pep.DescribeVault:
		node = c.Node
	case DescribeCommands:
		node = CommandsNode
	case DescribeCommand:
		node = c.Node
	case pep.ListVaults:
		space, page = nsDiscoItems, c.Page
	case ItemNames:
		space, node, page = nsDiscoItems, c.Items.Node, c.Items.Page
	case ListCommands:
		space, node = nsDiscoItems, c.Node
	default:
		return "", nil
	}
	return "get", func(dst []byte) []byte { return askQuery(dst, space, node, page) }
}

func askQuery(dst []byte, space, node string, page *pep.PageRequest) []byte {
	dst = appendAttr(append(dst, "<query"...), "xmlns", space)
	dst = append(appendAttrIf(dst, "node", node), '>')
	return append(askPage(dst, page), "</query>"...)
}

// address is where the request went: what is listed is found there.
func appendDiscoResult(dst []byte, address string, answer any) ([]byte, bool) {
	switch a := answer.(type) {
	case pep.ServiceInfo:
		return appendServiceInfo(dst, a), true
	case pep.VaultInfo:
		return appendVaultInfo(dst, a), true
	case pep.VaultList:
		return appendVaultList(dst, address, a), true
	case ItemNamesPage:
		return appendItemNames(dst, address, a.Page), true
	}
	return dst, false
}

func appendServiceInfo(dst []byte, a pep.ServiceInfo) []byte {
	dst = append(dst, "<query xmlns='"+nsDiscoInfo+"'><identity category='pubsub' type='service'"...)
	dst = append(appendAttrIf(dst, "name", a.Name), "/>"...)
	for _, f := range commonFeatures {
		dst = appendFeature(dst, f)
	}
	for _, f := range a.Others {
		if !slices.Contains(commonFeatures, f) {
			dst = appendFeature(dst, f)
		}
	}
	if slices.Contains(a.Features, "rsm") && !slices.Contains(a.Others, nsRSM) {
		dst = appendFeature(dst, nsRSM)
	}
	for _, f := range a.Features {
		dst = appendFeature(dst, nsPubsub+"#"+f)
	}
	return append(appendForms(dst, "result", a.Forms), "</query>"...)
}

func appendFeature(dst []byte, feature string) []byte {
	return append(appendAttr(append(dst, "<feature"...), "var", feature), "/>"...)
}

func appendVaultInfo(dst []byte, a pep.VaultInfo) []byte {
	dst = appendAttr(append(dst, "<query xmlns='"+nsDiscoInfo+"'"...), "node", a.Node)
	dst = append(dst, "><identity category='pubsub' type='leaf'"...)
	dst = append(appendAttrIf(dst, "name", a.Title), "/>"...)
	dst = appendFeature(dst, nsPubsub)
	return append(appendForms(dst, "result", a.Forms), "</query>"...)
}

// appendVaultList appends the vaults as nodes of the address that was asked.
func appendVaultList(dst []byte, address string, a pep.VaultList) []byte {
	dst = append(dst, "<query xmlns='"+nsDiscoItems+"'"...)
	if len(a.Vaults) == 0 && a.Set == nil {
		return append(dst, "/>"...)
	}
	dst = append(dst, '>')
	for _, v := range a.Vaults {
		dst = appendDiscoItem(dst, address, v.Key.Node, v.Config.Title)
	}
	return append(appendSet(dst, a.Set), "</query>"...)
}

func appendDiscoItem(dst []byte, address, node, title string) []byte {
	dst = appendAttr(append(dst, "<item"...), "jid", address)
	return append(appendAttrIf(appendAttrIf(dst, "node", node), "name", title), "/>"...)
}

// appendItemNames appends records as XEP-0060 §5.5 has it: by name, without a
// node.
func appendItemNames(dst []byte, address string, page pep.ItemsPage) []byte {
	dst = appendAttr(append(dst, "<query xmlns='"+nsDiscoItems+"'"...), "node", page.Node)
	dst = append(dst, '>')
	for _, r := range page.Records {
		dst = appendDiscoItem(dst, address, "", r.ID)
	}
	return append(appendSet(dst, page.Set), "</query>"...)
}

func decodeDiscoReply(iq *element, call Call) (any, error) {
	space, decode := nsDiscoInfo, decodeServiceInfo
	switch call.(type) {
	case pep.DescribeService:
	case pep.DescribeVault:
		decode = decodeVaultInfo
	case pep.ListVaults:
		space, decode = nsDiscoItems, decodeVaultList
	case ItemNames:
		space, decode = nsDiscoItems, decodeItemNames
	default:
		return nil, nil
	}
	query, err := within(iq, name{space, "query"})
	if err != nil {
		return nil, err
	}
	return decode(query)
}

func decodeServiceInfo(query *element) (any, error) {
	var a pep.ServiceInfo
	for _, c := range query.children {
		if c.name == (name{nsDiscoInfo, "identity"}) && c.attr("category") == "pubsub" {
			a.Name = c.attr("name")
		}
		if c.name != (name{nsDiscoInfo, "feature"}) {
			continue
		}
		feature, isPubsub := strings.CutPrefix(c.attr("var"), nsPubsub+"#")
		switch {
		case isPubsub:
			a.Features = append(a.Features, feature)
		case feature != nsRSM && !slices.Contains(commonFeatures, feature):
			a.Others = append(a.Others, feature)
		}
	}
	var err error
	a.Forms, err = formsIn(query)
	return a, err
}

func decodeVaultInfo(query *element) (any, error) {
	for _, c := range query.children {
		if c.name == (name{nsDiscoInfo, "identity"}) && c.attr("category") == "pubsub" && c.attr("type") == "leaf" {
			forms, err := formsIn(query)
			return pep.VaultInfo{Node: query.attr("node"), Title: c.attr("name"), Forms: forms}, err
		}
	}
	return nil, badReply("not a vault")
}

func decodeVaultList(query *element) (any, error) {
	var a pep.VaultList
	for _, c := range query.children {
		if c.name == (name{nsDiscoItems, "item"}) {
			a.Vaults = append(a.Vaults, vault.Vault{
				Key: vault.Key{Node: c.attr("node")}, Config: vault.Config{Title: c.attr("name")},
			})
		}
	}
	var err error
	a.Set, err = decodeSet(query)
	return a, err
}

func decodeItemNames(query *element) (any, error) {
	page := pep.ItemsPage{Node: query.attr("node")}
	for _, c := range query.children {
		if c.name == (name{nsDiscoItems, "item"}) {
			page.Records = append(page.Records, vault.Record{ID: c.attr("name")})
		}
	}
	var err error
	page.Set, err = decodeSet(query)
	return ItemNamesPage{page}, err
}
