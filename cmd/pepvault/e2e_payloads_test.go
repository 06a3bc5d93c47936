package main_test

import "strings"

// payloadCase is a payload on its way from one device through the host to the
// service, and back to all devices.
type payloadCase struct {
	name    string
	payload string // the only child of the item
	// Attributes, declarations above all, of what stands around the payload.
	iq, pubsub, publish, item string
	// arrives is the payload that devices get, if not the one that was sent:
	// what XML itself says that it means.
	arrives string
	// prefixes are those whose binding must arrive too, since the content
	// names them.
	prefixes []string
	// but says what arrives instead where a host makes something else of it on
	// the way, "" if that is no payload anymore and refused.
	but map[kind]string
	// refused is the service's answer to what could not survive.
	refused fault
}

const unsurvivable fault = "modify/bad-request invalid-payload"

// payloadCases are published behind both hosts. What these change by
// themselves has been found to be this alone: Prosody (0.12 and 13.0) forgets
// prefixes, declares each element's namespace as the default one and makes up
// prefixes for attributes, so that a prefix in text or in an attribute's value
// names nothing anymore; ejabberd (23.01) forgets what is declared on the
// stanza's own element, so that a prefix from there is undeclared. Both
// write carriage returns in text, and tabs and line feeds in attributes, as
// they are, so that the next reader takes them for something else: these are
// refused.
var payloadCases = []payloadCase{
	{name: "empty element", payload: `<n xmlns='urn:example'/>`},
	{name: "element that is empty in two tags", payload: `<n xmlns='urn:example'></n>`},
	{name: "white space alone", payload: `<n xmlns='urn:example'>  </n>`},
	{name: "white space around the payload", payload: "\n\t <n xmlns='urn:example'/> \n", arrives: `<n xmlns='urn:example'/>`},
	{name: "namespace of the item", payload: `<n><m/></n>`},
	{name: "no namespace", payload: `<n xmlns=''><m xmlns='urn:example'><o xmlns=''/></m></n>`},
	{name: "namespace of clients", payload: `<n xmlns='jabber:client'><body>x</body></n>`},
	{name: "namespace of components", payload: `<n xmlns='jabber:component:accept'><handshake/></n>`},
	{name: "namespace of streams", payload: `<x:error xmlns:x='http://etherx.jabber.org/streams'><x:stream/></x:error>`},
	{name: "namespace of items", payload: `<item xmlns='` + nsPubsub + `' id='x'><item id='y'/></item>`},
	{name: "a stanza", payload: `<iq xmlns='jabber:client' type='get' id='x' to='` + payloadJID + `'><ping xmlns='urn:xmpp:ping'/></iq>`},
	{name: "namespace with special characters", payload: `<n xmlns='urn:a&amp;b?c=&quot;d&quot;&apos;&lt;'/>`},

	{name: "prefix", payload: `<p:n xmlns:p='urn:example'><p:m><o/></p:m></p:n>`},
	{name: "two prefixes of one namespace", payload: `<p:n xmlns:p='urn:example' xmlns:q='urn:example'><q:m p:a='1' q:b='2'/></p:n>`},
	{name: "prefix bound anew", payload: `<p:n xmlns:p='urn:one'><p:m xmlns:p='urn:two' p:a='1'><p:o/></p:m><p:o/></p:n>`},
	{name: "prefix and default of one namespace", payload: `<n xmlns='urn:example' xmlns:p='urn:example' a='1' p:a='2'><p:m/><m/></n>`},
	{name: "prefix declared on the iq", iq: ` xmlns:p='urn:example'`, payload: `<p:n p:a='1'><p:m/></p:n>`, but: map[kind]string{ejabberd: ""}},
	{name: "prefix declared on pubsub", pubsub: ` xmlns:p='urn:example'`, payload: `<p:n p:a='1'><p:m/></p:n>`},
	{name: "prefix declared on publish", publish: ` xmlns:p='urn:example'`, payload: `<p:n p:a='1'><p:m/></p:n>`},
	{name: "prefix declared on the item", item: ` xmlns:p='urn:example'`, payload: `<p:n p:a='1'><p:m/></p:n>`},
	{name: "prefix declared on each", iq: ` xmlns:p='urn:1'`, pubsub: ` xmlns:p='urn:2'`, publish: ` xmlns:p='urn:3'`, item: ` xmlns:p='urn:4'`,
		payload: `<p:n p:a='1'><m xmlns='urn:m' p:a='2'/></p:n>`},
	{name: "prefix of hosts", payload: `<ns1:n xmlns:ns1='urn:1' xmlns:ns2='urn:2' ns2:a='2' ns1:a='1'><m xmlns:ns1='urn:3' ns1:a='3' ns2:a='4'/></ns1:n>`},
	{name: "prefix stream", payload: `<stream:n xmlns:stream='urn:example'><stream:m stream:a='1'/></stream:n>`},
	{name: "prefix in content", payload: `<n xmlns='urn:example' xmlns:p='urn:p' type='p:t'>p:x<m xmlns:p='urn:q'>p:y</m></n>`, prefixes: []string{"p"},
		but: map[kind]string{prosody: `<n xmlns='urn:example' type='p:t'>p:x<m>p:y</m></n>`}},
	{name: "prefix in content and in use", payload: `<n xmlns='urn:example' xmlns:p='urn:p' type='p:t' p:a='1'><p:m/></n>`, prefixes: []string{"p"},
		but: map[kind]string{prosody: `<n xmlns='urn:example' xmlns:ns1='urn:p' type='p:t' ns1:a='1'><ns1:m/></n>`}},
	{name: "prefix in content, declared on the item", item: ` xmlns:p='urn:p'`, payload: `<n xmlns='urn:example' type='p:t'/>`, prefixes: []string{"p"},
		but: map[kind]string{prosody: `<n xmlns='urn:example' xmlns:p='' type='p:t'/>`}},
	{name: "nested defaults", payload: `<a xmlns='urn:a'><b xmlns='urn:b'><c xmlns='urn:a'/><c xmlns=''><d/></c></b><b/></a>`},

	{name: "attributes", payload: `<n xmlns='urn:example' xmlns:p='urn:p' z='' a=' b  c ' p:a='2' id='3' type='4' from='5' to='6' key-version='7'/>`},
	{name: "language", payload: `<n xmlns='urn:example' xml:lang='de'><m xml:lang='de'/><m xml:lang=''/><m xml:lang='en' lang='fr'/></n>`},
	{name: "space to be kept", payload: `<n xmlns='urn:example' xml:space='preserve'> <m/>  </n>`},
	{name: "xml:id", payload: `<n xmlns='urn:example' xml:id='a'/>`},
	{name: "tab and line feed in an attribute, raw", payload: "<n xmlns='urn:example' a='x\ty\nz'/>", arrives: `<n xmlns='urn:example' a='x y z'/>`},
	{name: "tab in an attribute", payload: `<n xmlns='urn:example' a='x&#9;y'/>`, refused: unsurvivable},
	{name: "line feed in an attribute", payload: `<n xmlns='urn:example' a='x&#xA;y'/>`, refused: unsurvivable},
	{name: "carriage return in an attribute", payload: `<n xmlns='urn:example' a='x&#13;y'/>`, refused: unsurvivable},
	{name: "tab in an attribute further in", payload: `<n xmlns='urn:example'><m/><m xmlns:p='urn:p' p:a='&#9;'/></n>`, refused: unsurvivable},

	{name: "mixed text", payload: `<n xmlns='urn:example'> a <m> b </m>  c<o/>d </n>`},
	{name: "tab and line feed in text", payload: "<n xmlns='urn:example'>\ta\n\tb&#9;c&#10;d\n</n>"},
	{name: "line ends in text, raw", payload: "<n xmlns='urn:example'>a\r\nb\rc</n>", arrives: "<n xmlns='urn:example'>a\nb\nc</n>"},
	{name: "carriage return in text", payload: `<n xmlns='urn:example'>a&#13;b</n>`, refused: unsurvivable},
	{name: "carriage return and line feed in text", payload: `<n xmlns='urn:example'><m>a&#xD;&#xA;</m></n>`, refused: unsurvivable},
	{name: "special characters", payload: `<n xmlns='urn:example' a='&lt;&gt;&amp;&quot;&apos;' b="'" c='"'>&lt;&gt;&amp;&quot;&apos;'">` + `</n>`},
	{name: "references", payload: `<n xmlns='urn:example' a='&#65;&#x42;&#32;'>&#65;&#x42;&#xfc;&#x2665;&#x1F600;&#32;</n>`},
	{name: "what looks like a reference", payload: `<n xmlns='urn:example' a='&amp;amp;'>&amp;lt;&amp;#65;&amp;amp;amp;</n>`},
	{name: "end of CDATA", payload: `<n xmlns='urn:example' a=']]>'>]]&gt; ]]&gt;]]]]&gt;</n>`},
	{name: "CDATA", payload: `<n xmlns='urn:example'>a<![CDATA[<b>&amp;</b>]]]]><![CDATA[>]]>c<![CDATA[]]></n>`},
	{name: "plain characters", payload: `<n xmlns='urn:example' a='` + printable + `'>` + printable + `</n>`},
	{name: "characters of two to four bytes", payload: "<n xmlns='urn:example' a='\u00e9\u20ac\U0001F600'>\u00a0\u00ad\u0660\u20ac\u2028\ufeff\ufffd\U0001F469\u200d\U0001F4BB\U00010000\U0010fffd</n>"},
	{name: "both normal forms", payload: "<n xmlns='urn:example' a='\u00e9e\u0301'>e\u0301\u00e9\u212b\u00c5</n>"},
	{name: "controls of the second kind", payload: "<n xmlns='urn:example'>\u007f\u0085\u009f</n>"},
	{name: "names beyond ASCII", payload: "<\u00fcn xmlns='urn:\u00fc' \u00e4='1'><n-._1/></\u00fcn>"},

	{name: "100 children", payload: `<n xmlns='urn:example'>` + strings.Repeat(`<m a='1'>x</m><p:o xmlns:p='urn:p' p:a='2'/>y`, 50) + `</n>`},
	{name: "100 levels", payload: `<n xmlns='urn:example'>` + strings.Repeat(`<m>x`, 99) + strings.Repeat(`</m>`, 99) + `</n>`},
	{name: "100 attributes", payload: `<n xmlns='urn:example'` + manyAttributes(100) + `/>`},
	{name: "60 KB of text", payload: `<n xmlns='urn:example'>` + strings.Repeat("0123456789abcde\n", 60_000/16) + `</n>`},
	{name: "60 KB of characters that are escaped", payload: `<n xmlns='urn:example'>` + strings.Repeat(`'&quot;&amp;`, 3_000) + `</n>`},
	{name: "60 KB of emoji", payload: `<n xmlns='urn:example'>` + strings.Repeat("\U0001F600", 15_000) + `</n>`},
	{name: "60 KB in an attribute", payload: `<n xmlns='urn:example' a='` + strings.Repeat("0123456789abcdef", 60_000/16) + `'/>`},

	{name: "record of every byte", payload: sealed(everyByte())},
	{name: "record of one byte", payload: sealed([]byte{0})},
	{name: "record of 48 KB", payload: sealed([]byte(strings.Repeat(string(everyByte()), 192)))},
}

// printable are the characters of ASCII that need no escaping.
const printable = " !#$%()*+,-./0123456789:;=?@ABCDEFGHIJKLMNOPQRSTUVWXYZ[\\]^_`abcdefghijklmnopqrstuvwxyz{|}~"

// oddIDs are record ids and node names that mean something elsewhere.
var oddIDs = []string{
	"../../etc/passwd", "/", ".", "C:\\x", "https://vault.localhost/x?a=b#c", "xmpp:alice@localhost?pubsub",
	`'; DROP TABLE record;--`, `" OR 1=1 --`, "%", "_", "*", "NULL", "0", "-1",
	"%s%n", "{{.}}", "${HOME}", "`reboot`", "]]>", "<![CDATA[", "&amp;", "&#0;", "<iq/>", `a"b'c`,
	" ", "  a  ", "\u00a0", "\ufeff", "\U0001F600", "\u202eabc", "e\u0301", "\u00e9", "\u2028", "\ufffd",
	strings.Repeat("n", 512), strings.Repeat("'", 512), strings.Repeat("\U0001F600", 128),
}
