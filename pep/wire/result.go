package wire

import (
	"fmt"
	"strconv"

	"pepvault/pep"
	"pepvault/vault"
)

// AppendResult appends the answer to the request with header request, from
// where that went and to where it came from. answer is any pep.Answer but
// pep.Later, or [Pong], [VersionInfo] or [ItemNamesPage]; others panic.
func AppendResult(dst []byte, request Header, answer any) []byte {
	dst = append(dst, "<iq type='result'"...)
	dst = appendRoute(dst, request.To, request.From, request.ID)
	start := len(dst)
	dst = append(dst, '>')
	switch a := answer.(type) {
	case pep.Published:
		dst = appendPublished(dst, a)
	case pep.Retracted:
		dst = appendRetracted(dst, a)
	case pep.ItemsPage:
		dst = appendItemsPage(dst, a)
	case pep.Subscribed:
		dst = appendSubscribed(dst, a)
	case pep.ServiceInfo:
		dst = appendServiceInfo(dst, a)
	case pep.VaultInfo:
		dst = appendVaultInfo(dst, a)
	case pep.VaultList:
		dst = appendVaultList(dst, request.To, a)
	case ItemNamesPage:
		dst = appendItemNames(dst, request.To, a.Page)
	case VersionInfo:
		dst = appendVersion(dst, a)
	case pep.Deleted, pep.Unsubscribed, Pong:
	default:
		panic(fmt.Sprintf("wire: no result is written for a %T", answer))
	}
	if len(dst) == start+1 {
		return append(dst[:start], "/>"...)
	}
	return append(dst, "</iq>"...)
}

// appendRoute appends the attributes that every stanza of ours has: without a
// from of its own a host closes the stream.
func appendRoute(dst []byte, from, to, id string) []byte {
	return appendAttr(appendAttr(appendAttr(dst, "from", from), "to", to), "id", id)
}

const pubsubOpen = "<pubsub xmlns='" + nsPubsub + "'>"

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

// appendState appends a <state/> (PROTOCOL §6).
func appendState(dst []byte, s pep.State) []byte {
	dst = appendAttr(append(dst, "<state xmlns='"+nsSync+"'"...), "owner", string(s.Owner))
	dst = appendAttr(dst, "node", s.Node)
	dst = appendAttrIf(dst, "previous", s.Previous)
	dst = appendAttrIf(dst, "cursor", s.Cursor)
	if len(s.Items) == 0 {
		return append(dst, "/>"...)
	}
	dst = append(dst, '>')
	for _, item := range s.Items {
		dst = appendAttr(append(dst, "<item"...), "id", item.ID)
		dst = strconv.AppendUint(append(dst, " revision='"...), uint64(item.Revision), 10)
		if item.Gone {
			dst = append(dst, "' gone='true"...)
		}
		dst = append(dst, "'/>"...)
	}
	return append(dst, "</state>"...)
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

// appendItem appends a record as the item of a result or an event.
func appendItem(dst []byte, r *vault.Record, quiet bool) []byte {
	dst = appendAttr(append(dst, "<item"...), "id", r.ID)
	dst = appendAttrIf(dst, "publisher", string(r.Publisher))
	if quiet {
		return append(dst, "/>"...)
	}
	dst = appendPayload(append(dst, '>'), r.Payload, r.KeyVersion)
	return append(dst, "</item>"...)
}

// appendSet appends the <set/> of a page (XEP-0059). An index is never given:
// it would be wrong as soon as somebody else writes.
func appendSet(dst []byte, set *pep.ResultSet) []byte {
	if set == nil {
		return dst
	}
	dst = append(dst, "<set xmlns='"+nsRSM+"'>"...)
	if set.First != "" {
		dst = append(appendText(append(dst, "<first>"...), set.First), "</first>"...)
	}
	if set.Last != "" {
		dst = append(appendText(append(dst, "<last>"...), set.Last), "</last>"...)
	}
	dst = strconv.AppendInt(append(dst, "<count>"...), int64(set.Count), 10)
	return append(dst, "</count></set>"...)
}

func appendSubscribed(dst []byte, a pep.Subscribed) []byte {
	dst = appendAttr(append(dst, pubsubOpen+"<subscription"...), "node", a.Node)
	dst = appendAttr(appendAttr(dst, "jid", a.JID), "subscription", "subscribed")
	return append(dst, "/></pubsub>"...)
}

func appendVersion(dst []byte, a VersionInfo) []byte {
	dst = appendText(append(dst, "<query xmlns='"+nsVersion+"'><name>"...), a.Name)
	dst = appendText(append(dst, "</name><version>"...), a.Version)
	return append(dst, "</version></query>"...)
}
