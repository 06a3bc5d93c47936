package wire

import (
	"slices"
	"time"

	"pepvault/pep"
)

// The features besides those of pubsub.
var commonFeatures = []string{nsDiscoInfo, nsDiscoItems, nsPubsub, nsVersion, nsPing}

const metaData = nsPubsub + "#meta-data" // XEP-0060 §5.4

func appendServiceInfo(dst []byte, a pep.ServiceInfo) []byte {
	dst = append(dst, "<query xmlns='"+nsDiscoInfo+"'><identity category='pubsub' type='service'"...)
	dst = append(appendAttrIf(dst, "name", a.Name), "/>"...)
	for _, f := range commonFeatures {
		dst = appendFeature(dst, f)
	}
	if slices.Contains(a.Features, "rsm") {
		dst = appendFeature(dst, nsRSM)
	}
	for _, f := range a.Features {
		dst = appendFeature(dst, nsPubsub+"#"+f)
	}
	return append(dst, "</query>"...)
}

func appendFeature(dst []byte, feature string) []byte {
	return append(appendAttr(append(dst, "<feature"...), "var", feature), "/>"...)
}

func appendVaultInfo(dst []byte, a pep.VaultInfo) []byte {
	v := a.Vault
	dst = appendAttr(append(dst, "<query xmlns='"+nsDiscoInfo+"'"...), "node", v.Key.Node)
	dst = append(dst, "><identity category='pubsub' type='leaf'"...)
	dst = append(appendAttrIf(dst, "name", v.Config.Title), "/>"...)
	dst = appendFeature(dst, nsPubsub)
	dst = append(dst, "<x xmlns='"+nsForm+"' type='result'>"...)
	dst = appendField(dst, "FORM_TYPE", "hidden", metaData)
	dst = appendField(dst, "pubsub#owner", "jid-multi", string(v.Key.Account))
	dst = appendField(dst, "pubsub#creation_date", "text-single", v.Created.UTC().Format(time.RFC3339Nano))
	if v.Config.Title != "" {
		dst = appendField(dst, "pubsub#title", "text-single", v.Config.Title)
	}
	return append(dst, "</x></query>"...)
}

func appendField(dst []byte, name, kind, value string) []byte {
	dst = appendAttr(appendAttr(append(dst, "<field"...), "var", name), "type", kind)
	dst = appendText(append(dst, "><value>"...), value)
	return append(dst, "</value></field>"...)
}

// appendVaultList appends the vaults as nodes of the address that was asked.
func appendVaultList(dst []byte, address string, a pep.VaultList) []byte {
	dst = append(dst, "<query xmlns='"+nsDiscoItems+"'"...)
	if len(a.Vaults) == 0 {
		return append(dst, "/>"...)
	}
	dst = append(dst, '>')
	for _, v := range a.Vaults {
		dst = appendAttr(append(dst, "<item"...), "jid", address)
		dst = appendAttr(dst, "node", v.Key.Node)
		dst = append(appendAttrIf(dst, "name", v.Config.Title), "/>"...)
	}
	return append(dst, "</query>"...)
}

// appendItemNames appends records as XEP-0060 §5.5 has it: by name, without a
// node.
func appendItemNames(dst []byte, address string, page pep.ItemsPage) []byte {
	dst = appendAttr(append(dst, "<query xmlns='"+nsDiscoItems+"'"...), "node", page.Node)
	dst = append(dst, '>')
	for _, r := range page.Records {
		dst = appendAttr(append(dst, "<item"...), "jid", address)
		dst = append(appendAttr(dst, "name", r.ID), "/>"...)
	}
	return append(appendSet(dst, page.Set), "</query>"...)
}
