package main_test

import "strings"

// hostileCase is something that a device may say to its host.
type hostileCase struct {
	name string
	raw  string
	// want is what the device hears from the service, see outcomes.
	want string
	// orNothing says that it may go unanswered too: Prosody shuffles attributes,
	// and of a start tag without end the service reads only so much.
	orNothing bool
	// at names the host that alone can be asked: the other dies of it.
	at kind
	// but says where a host deals with it by itself, and how.
	but map[kind]string
}

// closed says that the host ends the device's stream.
const closed = "stream ended"

const (
	oddTo  = "' id='odd' to='" + hostileJID + "'>"
	oddGet = "<iq type='get" + oddTo
	oddSet = "<iq type='set" + oddTo
	endIQ  = "</iq>"
	aPing  = "<ping xmlns='urn:xmpp:ping'/>"

	malformed  = "modify/bad-request"
	badPayload = "modify/bad-request invalid-payload"
	tooBig     = "modify/not-acceptable payload-too-big"
	unknown    = "cancel/service-unavailable"
	refused    = "modify/policy-violation"
)

func storing(payload string) string { return oddSet + publish("notes", "a", payload) + endIQ }

func nested(n int) string { return strings.Repeat("<x>", n) + strings.Repeat("</x>", n) }

// hostileCases are said to both hosts, Prosody (0.12 and 13.0) and ejabberd
// (23.01). Of what these do not pass on, Prosody refuses IQs without exactly
// one child and drops declarations that no name uses; ejabberd leaves out
// comments, instructions, text beside elements, and attributes of stanzas that
// it does not know; elements that are no stanzas end the stream on Prosody and
// are dropped by ejabberd. Some thousand levels end ejabberd's own process.
var hostileCases = []hostileCase{
	{name: "stream element as request", raw: oddGet + "<stream:features/>" + endIQ, want: unknown},
	{name: "stream element with its own prefix", raw: oddGet + "<x:error xmlns:x='http://etherx.jabber.org/streams'><x:stream/></x:error>" + endIQ, want: unknown},
	{name: "stream error as request", raw: oddGet + "<stream:error><conflict xmlns='urn:ietf:params:xml:ns:xmpp-streams'/></stream:error>" + endIQ, want: unknown},
	{name: "stream element as payload", raw: storing("<stream:stream to='a'><stream:error/></stream:stream>"), want: "result"},
	{name: "stream element in a payload", raw: storing("<n xmlns='urn:example'><stream:error/><error xmlns='http://etherx.jabber.org/streams'/></n>"), want: "result"},
	{name: "stream element beside a publish", raw: oddSet + publish("notes", "a", "<n xmlns='urn:example'/>") + "<stream:error/>" + endIQ, want: malformed},
	{name: "stream element in a presence", raw: "<presence to='" + hostileJID + "'><stream:error/></presence>", want: ""},
	{name: "stream element in a message", raw: "<message to='" + hostileJID + "'><stream:error/></message>", want: ""},
	{name: "end of the stream in a stanza", raw: oddGet + "<x></stream:stream>" + endIQ, want: closed},
	{name: "stanza in a stanza", raw: oddGet + oddGet + endIQ + endIQ, want: unknown},
	{name: "handshake as request", raw: oddGet + "<handshake/>" + endIQ, want: unknown},
	{name: "handshake as stanza", raw: "<handshake to='" + hostileJID + "'>abc</handshake>", want: closed, but: map[kind]string{ejabberd: ""}},

	{name: "CDATA in a payload", raw: storing("<n xmlns='urn:example'><![CDATA[</iq><b>&]]]]><![CDATA[>]]></n>"), want: "result"},
	{name: "CDATA instead of a payload", raw: storing("<![CDATA[<n/>]]>"), want: badPayload},
	{name: "CDATA beside a request", raw: oddGet + "<![CDATA[ ]]>" + aPing + endIQ, want: "result"},
	{name: "references in an id", raw: "<iq id='&#x6f;&lt;&quot;&apos;&#x1F600;' type='get' to='" + hostileJID + "'>" + aPing + endIQ, want: "result"},
	{name: "reference to NUL", raw: storing("<n xmlns='urn:example'>&#0;</n>"), want: closed},
	{name: "reference to a surrogate", raw: storing("<n xmlns='urn:example'>&#xD800;</n>"), want: closed},
	{name: "entity that nobody defined", raw: storing("<n xmlns='urn:example'>&nbsp;</n>"), want: closed},
	{name: "control character", raw: storing("<n xmlns='urn:example'>\x01</n>"), want: closed},
	{name: "bytes that are no UTF-8", raw: storing("<n xmlns='urn:example'>\xc3\x28\xff</n>"), want: closed},
	{name: "characters that are none", raw: storing("<n xmlns='urn:example' a='\ufffe'>\uffff</n>"), want: closed},
	{name: "end of CDATA in text", raw: storing("<n xmlns='urn:example'>]]></n>"), want: closed},
	{name: "comment in a payload", raw: storing("<n xmlns='urn:example'><!-- </iq> --></n>"), want: closed, but: map[kind]string{ejabberd: "result"}},
	{name: "comment between stanzas", raw: "<!-- <iq> -->", want: closed, but: map[kind]string{ejabberd: ""}},
	{name: "instruction in a payload", raw: storing("<n xmlns='urn:example'><?x </iq>?></n>"), want: closed, but: map[kind]string{ejabberd: "result"}},
	{name: "document type between stanzas", raw: "<!DOCTYPE x [<!ENTITY a 'b'>]>", want: closed},
	{name: "undeclared prefix", raw: storing("<p:n p:a='1'/>"), want: closed},
	{name: "attribute twice by two prefixes", raw: storing("<n xmlns='urn:example' xmlns:p='u' xmlns:q='u' p:a='1' q:a='2'/>"), want: closed},
	{name: "prefix xmlns bound", raw: storing("<n xmlns:xmlns='urn:example' xmlns='urn:example'/>"), want: closed},

	{name: "no child", raw: "<iq type='get' id='odd' to='" + hostileJID + "'/>", want: malformed},
	{name: "text alone", raw: oddSet + "text" + endIQ, want: malformed},
	{name: "two children", raw: oddGet + aPing + aPing + endIQ, want: malformed},
	{name: "text beside the child", raw: oddGet + "text" + aPing + endIQ, want: malformed, but: map[kind]string{ejabberd: "result"}},
	{name: "unknown type", raw: "<iq type='subscribe" + oddTo + aPing + endIQ, want: malformed},
	{name: "no type", raw: "<iq id='odd' to='" + hostileJID + "'>" + aPing + endIQ, want: malformed},
	{name: "no id, which hosts refuse", raw: "<iq type='get' to='" + hostileJID + "'>" + aPing + endIQ, want: malformed},
	{name: "empty id", raw: "<iq id='' type='get' to='" + hostileJID + "'>" + aPing + endIQ, want: "result"},
	{name: "id of 20 KB", raw: "<iq type='get' to='" + hostileJID + "' id='" + strings.Repeat("x", 20_000) + "'>" + aPing + endIQ, want: "result"},
	{name: "id of 200 KB", raw: "<iq type='get' to='" + hostileJID + "' id='" + strings.Repeat("x", 200_000) + "'>" + aPing + endIQ, want: ""},
	{name: "resource of ours", raw: "<iq type='get' id='odd' to='" + hostileJID + "/x'>" + aPing + endIQ, want: "result"},
	{name: "account of ours", raw: "<iq type='get' id='odd' to='x@" + hostileJID + "'>" + items("notes", "", "") + endIQ, want: "modify/jid-malformed"},
	{name: "domain in upper case", raw: "<iq type='get' id='odd' to='" + strings.ToUpper(hostileJID) + "'>" + aPing + endIQ, want: "result"},
	{name: "sender that is somebody else", raw: "<iq from='" + bob + "/desk' type='get" + oddTo + items("witness", "", "") + endIQ, want: "cancel/item-not-found", but: map[kind]string{ejabberd: closed}},
	{name: "other language, attributes of no meaning", raw: "<iq xml:lang='de' xmlns:p='urn:p' p:type='set' more='' type='get" + oddTo + aPing + endIQ, want: "result"},
	{name: "stanza in another namespace", raw: "<iq xmlns='urn:example' type='get" + oddTo + aPing + endIQ, want: "", but: map[kind]string{prosody: closed, ejabberd: malformed}},
	{name: "stanza of components", raw: "<iq xmlns='jabber:component:accept' type='get" + oddTo + aPing + endIQ, want: "", but: map[kind]string{prosody: closed, ejabberd: "result"}},

	{name: "result never asked for", raw: "<iq type='result' id='odd' to='" + hostileJID + "'/>", want: ""},
	{name: "result with a request in it", raw: "<iq type='result" + oddTo + aPing + endIQ, want: ""},
	{name: "error never asked for", raw: "<iq type='error" + oddTo + "<error type='cancel'><gone xmlns='urn:ietf:params:xml:ns:xmpp-stanzas'/></error></iq>", want: ""},
	{name: "error without a condition", raw: "<iq type='error' id='odd' to='" + hostileJID + "'/>", want: ""},

	{name: "250 KB of apostrophes in a payload", raw: storing("<n xmlns='urn:example'>" + strings.Repeat("'", 250_000) + "</n>"), want: tooBig},
	{name: "250 KB of apostrophes in an attribute", raw: storing(`<n xmlns='urn:example' a="` + strings.Repeat("'", 250_000) + `"/>`), want: tooBig},
	{name: "250 KB of apostrophes in a ping", raw: oddGet + "<ping xmlns='urn:xmpp:ping'>" + strings.Repeat("'", 250_000) + "</ping>" + endIQ, want: malformed},
	{name: "250 KB of apostrophes in a start tag", raw: `<iq type='get' id='odd' to='` + hostileJID + `' more="` + strings.Repeat("'", 250_000) + `">` + aPing + endIQ, want: refused, orNothing: true, but: map[kind]string{ejabberd: "result"}},
	{name: "250 KB of text in a status", raw: "<presence to='" + hostileJID + "'><status>" + strings.Repeat("x", 250_000) + "</status></presence>", want: ""},
	{name: "400 KB of text", raw: storing("<n xmlns='urn:example'>" + strings.Repeat("x", 400_000) + "</n>"), want: closed}, // Prosody counts what it had before its last read
	{name: "many elements", raw: storing("<n xmlns='urn:example'>" + strings.Repeat("<x/>", 21_000) + "</n>"), want: tooBig},
	{name: "many elements in a ping", raw: oddGet + "<ping xmlns='urn:xmpp:ping'>" + strings.Repeat("<x/>", 21_000) + "</ping>" + endIQ, want: refused},
	{name: "many children", raw: oddGet + strings.Repeat("<x/>", 21_000) + endIQ, want: refused, but: map[kind]string{prosody: malformed}},
	{name: "many attributes", raw: oddGet + "<x" + manyAttributes(15_000) + "/>" + endIQ, want: malformed},
	{name: "many declarations", raw: oddGet + "<x" + strings.ReplaceAll(manyAttributes(10_000), " a", " xmlns:a") + "/>" + endIQ, want: malformed, but: map[kind]string{prosody: unknown}},
	{name: "many items", raw: oddSet + "<pubsub xmlns='" + nsPubsub + "'><publish node='notes'>" + strings.Repeat("<item><n xmlns='urn:example'/></item>", 5_000) + "</publish></pubsub>" + endIQ,
		want: "cancel/not-allowed max-items-exceeded"},
	{name: "many ids", raw: oddGet + items("notes", "", strings.Repeat("<item id='a'/>", 15_000)) + endIQ, want: refused},
	{name: "100 levels", raw: storing("<n xmlns='urn:example'>" + nested(100) + "</n>"), want: "result"},
	{name: "200 levels", raw: storing(nested(200)), want: tooBig},
	{name: "1,000 levels", raw: storing(nested(1_000)), want: tooBig},
	{name: "3,000 levels", raw: storing(nested(3_000)), want: tooBig},
	{name: "10,000 levels", at: prosody, raw: storing(nested(10_000)), want: tooBig},
	{name: "1,000 levels in a ping", raw: oddGet + "<ping xmlns='urn:xmpp:ping'>" + nested(1_000) + "</ping>" + endIQ, want: refused},
	{name: "1,000 levels in a presence", raw: "<presence to='" + hostileJID + "'>" + nested(1_000) + "</presence>", want: ""},

	{name: "presence of no known type, which hosts refuse", raw: "<presence type='weird' to='" + hostileJID + "'/>", want: "presence modify/bad-request"},
	{name: "presence of anything", raw: "<presence to='" + hostileJID + "'><c xmlns='http://jabber.org/protocol/caps' hash='sha-1' node='' ver=''/><c/><priority>x</priority><status>&lt;</status><![CDATA[</presence>]]></presence>", want: "", but: map[kind]string{ejabberd: "presence modify/bad-request"}},
	{name: "presence error", raw: "<presence type='error' to='" + hostileJID + "'/>", want: ""},
	{name: "presence to an account of ours", raw: "<presence to='bob\\40localhost@" + hostileJID + "'/><presence type='unavailable' to='bob\\40localhost@" + hostileJID + "'/>", want: ""},
	{name: "unavailable", raw: "<presence type='unavailable' to='" + hostileJID + "'/><presence type='unavailable' to='" + hostileJID + "'/>", want: ""},
	{name: "chat", raw: "<message type='chat' to='" + hostileJID + "'><body>hello</body></message>", want: ""},
	{name: "message of no known type", raw: "<message type='weird' to='" + hostileJID + "'/>", want: ""},
	{name: "event", raw: "<message to='" + hostileJID + "'><event xmlns='" + nsEvent + "'><items node='notes'><item id='a'/></items></event></message>", want: ""},
	{name: "message error", raw: "<message type='error' to='" + hostileJID + "'><error><gone xmlns='urn:ietf:params:xml:ns:xmpp-stanzas'/><conflict xmlns='urn:ietf:params:xml:ns:xmpp-stanzas'/></error></message>", want: ""},
	{name: "message error without an error", raw: "<message type='error' to='" + hostileJID + "'/>", want: ""},
	{name: "message to a resource of ours", raw: "<message to='" + hostileJID + "/x'>text</message>", want: ""},
	{name: "unknown stanza", raw: "<route to='" + hostileJID + "'>" + oddGet + aPing + endIQ + "</route>", want: "", but: map[kind]string{prosody: closed}},
	{name: "white space between stanzas", raw: " \r\n\t " + oddGet + aPing + endIQ + strings.Repeat("\n", 10_000), want: "result"},
}
