// Package loopback is an XMPP host in this process: it takes one external
// component over TCP (XEP-0114) and carries stanzas between it and virtual
// devices, as Prosody does. Tests, the demo and the benchmark use it in the
// place of a real server.
//
// The component's side is a real socket on 127.0.0.1. A device has no socket:
// [Host.Connect] gives it a full JID, [Device.Send] hands a stanza to the host
// and [Device.Recv] takes what the host delivered. The host stamps `from`, so
// a device can't forge it.
//
// # What the host does like Prosody 13
//
// It checks the handshake, refuses a second component (`conflict`), answers
// pings to its own domain and to accounts, bounces what a device sends while no
// component is attached, sends `unavailable` to whom a leaving device had sent
// directed presence, gives a headline for a bare JID to the available devices
// of priority 0 and more, lets results and headlines for gone resources vanish,
// and writes each stanza anew: attributes in random order, prefixes resolved,
// quotes escaped, `xml:lang` added.
//
// # Where it is stricter or simpler
//
// A stanza without `from` ends the stream as one with a foreign `from` does
// (Prosody 13 fills it in, ejabberd does not), the handshake must be lower-case
// hex, and text between stanzas ends the stream. JIDs are compared byte for
// byte and never normalised (ejabberd's way), every account of the host's
// domain exists, the host answers no query but pings, and there are no rosters:
// presence of the types subscribe, subscribed, unsubscribe and unsubscribed is
// only carried.
package loopback
