package wire

// Namespaces, each with the paper that defines it.
const (
	nsXML       = "http://www.w3.org/XML/1998/namespace"
	nsXMLNS     = "http://www.w3.org/2000/xmlns/"
	nsStreams   = "http://etherx.jabber.org/streams"
	nsClient    = "jabber:client"
	nsComponent = "jabber:component:accept" // XEP-0114
	nsStanzas   = "urn:ietf:params:xml:ns:xmpp-stanzas"

	nsPubsub       = "http://jabber.org/protocol/pubsub" // XEP-0060
	nsPubsubOwner  = nsPubsub + "#owner"
	nsPubsubEvent  = nsPubsub + "#event"
	nsPubsubErrors = nsPubsub + "#errors"
	nsRSM          = "http://jabber.org/protocol/rsm"         // XEP-0059
	nsDiscoInfo    = "http://jabber.org/protocol/disco#info"  // XEP-0030
	nsDiscoItems   = "http://jabber.org/protocol/disco#items" // XEP-0030
	nsForm         = "jabber:x:data"                          // XEP-0004
	nsPing         = "urn:xmpp:ping"                          // XEP-0199
	nsVersion      = "jabber:iq:version"                      // XEP-0092
	nsCommands     = "http://jabber.org/protocol/commands"    // XEP-0050
	nsCaps         = "http://jabber.org/protocol/caps"        // XEP-0115
	nsHashSets     = "urn:xmpp:caps"                          // XEP-0390
	nsHashes       = "urn:xmpp:hashes:2"                      // XEP-0300
	nsDelay        = "urn:xmpp:delay"                         // XEP-0203

	nsOurs    = "urn:pepvault:" // the beginning of all of ours
	nsRecord  = nsOurs + "record:0"
	nsSync    = nsOurs + "sync:0"
	nsBatch   = nsOurs + "batch:0"
	nsAccount = nsOurs + "account:0"
	nsErrors  = nsOurs + "errors:0"
)

// known reports whether the content of elements in this namespace is read; of
// others only the start tag is.
func known(space string) bool {
	switch space {
	case nsClient, nsStanzas, nsPubsub, nsPubsubOwner, nsPubsubEvent, nsPubsubErrors, nsRSM,
		nsDiscoInfo, nsDiscoItems, nsForm, nsPing, nsVersion, nsCommands, nsCaps, nsHashSets, nsHashes,
		nsDelay, nsSync, nsBatch, nsAccount, nsErrors:
		return true
	}
	return false
}

// name is the expanded name of an element.
type name struct{ space, local string }
