package component_test

import (
	"strings"
	"testing"
)

const (
	oddGet = `<iq type='get' id='odd' from='alice@localhost/phone' to='vault.localhost'>`
	oddSet = `<iq type='set' id='odd' from='alice@localhost/phone' to='vault.localhost'>`
	end    = `</iq>`
)

// storing is a publish by Alice as a host brings it.
func storing(payload string) string { return oddSet + publication("notes", "a", payload) + end }

const (
	malformed  = "modify/bad-request"
	badPayload = "modify/bad-request+invalid-payload"
	unknown    = "cancel/service-unavailable"
	missing    = "cancel/item-not-found"
)

// hostile is what some host could put on our stream because some user wanted
// it to.
var hostile = []struct {
	name string
	raw  string
	want string // outcomes of the answers to Alice, one at most
}{
	{"stream element as request", oddGet + `<stream:features/>` + end, unknown},
	{"stream element with its own prefix", oddGet + `<x:error xmlns:x='http://etherx.jabber.org/streams'><x:stream/></x:error>` + end, unknown},
	{"stream error as request", oddGet + `<stream:error><conflict xmlns='urn:ietf:params:xml:ns:xmpp-streams'/></stream:error>` + end, unknown},
	{"stream element as payload", storing(`<stream:stream to='a'><stream:error/></stream:stream>`), "result"},
	{"stream element in a payload", storing(`<n xmlns='urn:example'><stream:error/><error xmlns='http://etherx.jabber.org/streams'/></n>`), "result"},
	{"stream element beside a publish", oddSet + publication("notes", "a", `<n xmlns='urn:example'/>`) + `<stream:error/>` + end, malformed},
	{"end of the stream in a stanza", oddGet + `<x></stream:stream>` + end, malformed},
	{"stanza in a stanza", oddGet + oddGet + end + end, unknown},
	{"handshake as request", oddGet + `<handshake/>` + end, unknown},

	{"CDATA as payload text", storing(`<n xmlns='urn:example'><![CDATA[</iq><b>&]]]]><![CDATA[>]]></n>`), "result"},
	{"CDATA instead of a payload", storing(`<![CDATA[<n/>]]>`), badPayload},
	{"CDATA between payload and end", storing(`<n xmlns='urn:example'/><![CDATA[  ]]>`), "result"},
	{"references in a payload", storing(`<n xmlns='urn:example' a='&#65;&quot;&apos;'>&#x1F600;&lt;&gt;&amp;&#10;</n>`), "result"},
	{"references in an id", `<iq type='get' id='&#x6f;&#100;&lt;&quot;&apos;' from='alice@localhost/phone' to='vault.localhost'>` + ping + end, "result"},
	{"reference to NUL", storing(`<n xmlns='urn:example'>&#0;</n>`), malformed},
	{"reference to a surrogate", storing(`<n xmlns='urn:example'>&#xD800;</n>`), malformed},
	{"reference beyond Unicode", storing(`<n xmlns='urn:example'>&#x110000;</n>`), malformed},
	{"reference to CR", storing(`<n xmlns='urn:example'>&#13;</n>`), badPayload},
	{"reference to TAB in an attribute", storing(`<n xmlns='urn:example' a='&#9;'/>`), badPayload},
	{"undefined entity in a payload", storing(`<n xmlns='urn:example'>&nbsp;</n>`), malformed},
	{"undefined entity in an id", `<iq type='get' id='&nbsp;' from='alice@localhost/phone' to='vault.localhost'>` + ping + end, malformed},
	{"bare ampersand", storing(`<n xmlns='urn:example'>a & b</n>`), malformed},
	{"control character", storing("<n xmlns='urn:example'>\x01</n>"), malformed},
	{"bytes that are no UTF-8", storing("<n xmlns='urn:example'>\xc3\x28\xff</n>"), malformed},
	{"end of CDATA in text", storing(`<n xmlns='urn:example'>]]></n>`), malformed},
	{"comment in a payload", storing(`<n xmlns='urn:example'><!-- </iq> --></n>`), badPayload},
	{"instruction in a payload", storing(`<n xmlns='urn:example'><?x </iq>?></n>`), badPayload},
	{"comment between stanzas", `<!-- <iq> -->` + oddGet + ping + end, "result"},
	{"comment beside a request", oddGet + `<!-- a -->` + ping + end, malformed},
	{"crossed elements", storing(`<a xmlns='urn:example'><b></a></b>`), malformed},
	{"attribute twice", storing(`<n xmlns='urn:example' a='1' a='2'/>`), malformed},
	{"attribute twice by two prefixes", storing(`<n xmlns='urn:example' xmlns:p='u' xmlns:q='u' p:a='1' q:a='2'/>`), malformed},
	{"undeclared prefix", storing(`<p:n/>`), badPayload},
	{"xmlns bound", storing(`<n xmlns:xmlns='urn:example' xmlns='urn:example'/>`), badPayload},

	{"no child", `<iq type='get' id='odd' from='alice@localhost/phone' to='vault.localhost'/>`, malformed},
	{"text alone", oddSet + `text` + end, malformed},
	{"two children", oddGet + ping + ping + end, malformed},
	{"text beside the child", oddGet + `text` + ping + end, malformed},
	{"unknown type", `<iq type='subscribe' id='odd' from='alice@localhost/phone' to='vault.localhost'>` + ping + end, malformed},
	{"missing type", `<iq id='odd' from='alice@localhost/phone' to='vault.localhost'>` + ping + end, malformed},
	{"missing id", `<iq type='get' from='alice@localhost/phone' to='vault.localhost'>` + ping + end, "result"},
	{"missing to", `<iq type='get' id='odd' from='alice@localhost/phone'>` + ping + end, "result"},
	{"missing from", `<iq type='get' id='odd' to='vault.localhost'>` + ping + end, ""},
	{"empty from", `<iq type='get' id='odd' from='' to='vault.localhost'>` + ping + end, ""},
	{"resource of ours", `<iq type='get' id='odd' from='alice@localhost/phone' to='vault.localhost/x'>` + ping + end, "result"},
	{"wrong kind for the request", oddGet + publication("notes", "a", `<n xmlns='urn:example'/>`) + end, malformed},

	{"result never asked for", `<iq type='result' id='odd' from='alice@localhost/phone' to='vault.localhost'/>`, ""},
	{"result with a request in it", `<iq type='result' id='odd' from='alice@localhost/phone' to='vault.localhost'>` + ping + end, ""},
	{"error never asked for", `<iq type='error' id='odd' from='alice@localhost/phone' to='vault.localhost'><error type='cancel'><gone xmlns='urn:ietf:params:xml:ns:xmpp-stanzas'/></error></iq>`, ""},
	{"error without a condition", `<iq type='error' id='odd' from='alice@localhost/phone' to='vault.localhost'/>`, ""},

	{"any order of attributes, double quotes", `<iq  to = "vault.localhost"  xml:lang="de" id="odd"` + "\n" + `from="alice@localhost/phone" type="get" >` + ping + "</iq\n>", "result"},
	{"foreign attributes", `<iq xmlns:p='urn:p' p:from='bob@localhost/phone' p:type='set' type='get' id='odd' from='alice@localhost/phone' to='vault.localhost' more=''>` + ping + end, "result"},
	{"prefixed stanza", `<c:iq xmlns:c='jabber:component:accept' type='get' id='odd' from='alice@localhost/phone' to='vault.localhost'>` + ping + `</c:iq>`, "result"},
	{"stanza of a client's namespace", `<iq xmlns='jabber:client' type='get' id='odd' from='alice@localhost/phone' to='vault.localhost'>` + ping + end, "result"},
	{"stanza of another namespace", `<iq xmlns='urn:example' type='get' id='odd' from='alice@localhost/phone' to='vault.localhost'>` + ping + end, ""},
	{"unknown element", `<stream:features><x/></stream:features><route from='a'>` + oddGet + ping + end + `</route>`, ""},
	{"white space between stanzas", " \r\n\t " + oddGet + ping + end + strings.Repeat("\n", 100_000), "result"},

	{"huge id", `<iq id='` + strings.Repeat("x", 100_000) + `' type='get' from='alice@localhost/phone' to='vault.localhost'>` + ping + end, ""},
	{"huge id, all else before", `<iq type='get' from='alice@localhost/phone' to='vault.localhost' id='` + strings.Repeat("x", 100_000) + `'>` + ping + end, ""},
	{"huge attribute before to", `<iq type='get' from='alice@localhost/phone' id='odd' more='` + strings.Repeat("x", 100_000) + `' to='vault.localhost'>` + ping + end, "modify/policy-violation"},
	{"huge attribute before all", `<iq more='` + strings.Repeat("x", 100_000) + `' type='get' from='alice@localhost/phone' id='odd' to='vault.localhost'>` + ping + end, ""},
	{"huge attribute in a result", `<iq from='alice@localhost/phone' id='odd' more='` + strings.Repeat("x", 100_000) + `' type='result' to='vault.localhost'/>`, ""},
	{"id as long as a start tag may be", `<iq type='get' from='alice@localhost/phone' to='vault.localhost' id='` + strings.Repeat("&apos;", 10_000) + `'>` + ping + end, "result"},
	{"many attributes", oddGet + `<x` + attributes(30_000) + `/>` + end, malformed},
	{"many declarations", oddGet + `<x` + strings.ReplaceAll(attributes(30_000), " a", " xmlns:a") + `/>` + end, malformed},
	{"many children", oddGet + strings.Repeat(`<x/>`, 100_000) + end, "modify/policy-violation"},
	{"many elements in a payload", storing(`<n xmlns='urn:example'>` + strings.Repeat(`<x/>`, 100_000) + `</n>`), "modify/not-acceptable+payload-too-big"},
	{"many items", oddSet + `<pubsub xmlns='http://jabber.org/protocol/pubsub'><publish node='notes'>` + strings.Repeat(`<item><n xmlns='urn:example'/></item>`, 10_000) + `</publish></pubsub>` + end, "cancel/not-allowed+max-items-exceeded"},
	{"many ids", oddGet + `<pubsub xmlns='http://jabber.org/protocol/pubsub'><items node='notes'>` + strings.Repeat(`<item id='a'/>`, 20_000) + `</items></pubsub>` + end, "modify/policy-violation"},
	{"a payload of 256 KiB of quotes", storing(`<n xmlns='urn:example'>` + strings.Repeat(`&apos;`, 256<<10) + `</n>`), "modify/not-acceptable+payload-too-big"},
	{"3 MB of text in a publish", storing(`<n xmlns='urn:example'>` + strings.Repeat(`x`, 3<<20) + `</n>`), "modify/not-acceptable+payload-too-big"},
	{"3 MB of text in a ping", oddGet + `<ping xmlns='urn:xmpp:ping'>` + strings.Repeat(`x`, 3<<20) + `</ping>` + end, "modify/policy-violation"},
	{"200 levels in a publish", storing(nested(200)), "modify/not-acceptable+payload-too-big"},
	{"200 levels in a ping", oddGet + `<ping xmlns='urn:xmpp:ping'>` + nested(200) + `</ping>` + end, "modify/policy-violation"},
	{"100 levels in a payload", storing(`<n xmlns='urn:example'>` + nested(100) + `</n>`), "result"},
}

// attributes are n attributes.
func attributes(n int) string {
	var b strings.Builder
	for i := range n {
		b.WriteString(" a")
		for ; i > 0; i /= 26 {
			b.WriteByte(byte('a' + i%26))
		}
		b.WriteString("='1'")
	}
	return b.String()
}

// nested are elements n levels deep.
func nested(n int) string { return strings.Repeat("<x>", n) + strings.Repeat("</x>", n) }

// No stanza that a host can forward ends the stream, harms another account,
// or is answered more or less than once.
func TestHostileStanzas(t *testing.T) {
	t.Parallel()
	for _, row := range hostile {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			s := newStage(t, nil)
			s.host.Inject(row.raw)
			s.answered(row.want)
			s.survived()
		})
	}
}

// What ordinary devices can send goes through the host's own writing, too.
func TestHostileStanzasOfDevices(t *testing.T) {
	t.Parallel()
	s := newStage(t, func(s *setup) { s.limits.Vaults = 1000 })
	sent := 0
	for _, row := range hostile {
		if s.alice.Send([]byte(row.raw)) != nil {
			continue // the host would end the device's stream
		}
		sent++
		got := s.got(s.alice)
		for _, stanza := range got {
			if stanza.Name != "iq" || stanza.Type != "result" && stanza.Type != "error" {
				t.Errorf("%s: got %s", row.name, stanza)
			}
		}
		want := 1
		if row.want == "" || strings.HasPrefix(row.name, "huge ") {
			want = len(got) // the host has its own mind, and its own order of attributes
		}
		if len(got) != want || want > 1 {
			t.Errorf("%s: got %d answers, want %d: %s", row.name, len(got), want, got)
		}
	}
	if sent < 30 {
		t.Errorf("the host took %d of these stanzas only", sent)
	}
	s.survived()
}

// Presence and messages may hold anything. Nothing of it is answered but
// subscriptions and probes.
func TestHostilePresenceAndMessages(t *testing.T) {
	t.Parallel()
	const to = ` from='alice@localhost/phone' to='vault.localhost'`
	huge := strings.Repeat("x", 3<<20)
	for name, raw := range map[string]string{
		"presence of unknown type":      `<presence type='weird'` + to + `/>`,
		"presence of a host":            `<presence from='localhost' to='vault.localhost'/>`,
		"presence without resource":     `<presence from='alice@localhost' to='vault.localhost'/>`,
		"presence of nobody":            `<presence/><presence type='subscribe'/><presence type='probe' to='vault.localhost'/>`,
		"presence of a stranger":        `<presence from='eve@elsewhere.example/x' to='vault.localhost'/>`,
		"presence to an account":        `<presence from='alice@localhost/phone' to='bob\40localhost@vault.localhost'/>`,
		"unavailable without presence":  `<presence type='unavailable'` + to + `/>`,
		"presence error":                `<presence type='error'` + to + `/>`,
		"presence with stream elements": `<presence` + to + `><stream:error/><status>&#65;<![CDATA[</presence>]]></status></presence>`,
		"huge status":                   `<presence` + to + `><status>` + huge + `</status></presence>`,
		"deep presence":                 `<presence` + to + `>` + nested(1000) + `</presence>`,
		"malformed presence":            `<presence` + to + `><a></b>&nbsp;</presence>`,
		"subscribed":                    `<presence type='subscribed'` + to + `/><presence type='unsubscribed'` + to + `/>`,
		"chat":                          `<message type='chat'` + to + `><body>hello</body></message>`,
		"message of unknown type":       `<message type='weird'` + to + `/>`,
		"event":                         `<message` + to + `><event xmlns='http://jabber.org/protocol/pubsub#event'><items node='notes'><item id='a'/></items></event></message>`,
		"huge message":                  `<message` + to + `><body>` + huge + `</body></message>`,
		"huge error":                    `<message type='error'` + to + `><error>` + huge + `</error></message>`,
		"error without an error":        `<message type='error'` + to + `/>`,
		"error without a condition":     `<message type='error'` + to + `><error type='cancel'/></message>`,
		"error with two conditions":     `<message type='error'` + to + `><error type='cancel'><gone xmlns='urn:ietf:params:xml:ns:xmpp-stanzas'/><conflict xmlns='urn:ietf:params:xml:ns:xmpp-stanzas'/></error></message>`,
		"malformed error":               `<message type='error'` + to + `><error><a></b>&nbsp;</error></message>`,
		"error of nobody":               `<message type='error'><error type='cancel'><gone xmlns='urn:ietf:params:xml:ns:xmpp-stanzas'/></error></message>`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStage(t, nil)
			s.host.Inject(raw)
			s.answered("")
			s.survived()
		})
	}
}

// Hosts repeat a subscription request at every login until it is answered.
func TestSubscribeAtEveryLogin(t *testing.T) {
	t.Parallel()
	s := newStage(t, nil)
	send(t, s.alice, `<presence/>`)
	const logins = 200
	for range logins {
		send(t, s.alice, `<presence type='subscribe' to='vault.localhost'/>`)
	}
	for range logins {
		s.alice.Receives(`<presence type='unsubscribed' from='vault.localhost'/>`)
	}
	if known := s.service.engine.Known(); len(known) > 0 {
		t.Errorf("%d resources are known, want none", len(known))
	}
	s.survived()
}

// What hosts do not send at all: framing can't go on behind it. The service
// attaches again and nothing is lost.
func TestUnframeableStream(t *testing.T) {
	t.Parallel()
	for name, raw := range map[string]string{
		"document type in a stanza":      oddGet + `<!DOCTYPE x [<!ENTITY a "b">]>` + ping + end,
		"document type between stanzas":  `<!DOCTYPE x>`,
		"text between stanzas":           `text`,
		"end tag alone":                  `</iq>`,
		"another stanza's end":           oddGet + ping + `</message>`,
		"tag in a tag":                   `<iq <`,
		"tag in an attribute":            `<iq a='<x/>'/>`,
		"stream in the stream":           `<stream:stream>`,
		"attribute twice in a start tag": `<iq id='a' id='b'/>`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStage(t, nil)
			number := s.host.AwaitAttached()
			s.host.Inject(raw)
			s.host.AwaitReattached(number)
			s.same = s.host.SameConnection()
			s.answered("")
			s.survived()
		})
	}
}

// An answer that nobody can have been asked for does not count (PROTOCOL §6).
func TestForgedAnswers(t *testing.T) {
	t.Parallel()
	s := newStage(t, nil)
	mallory := s.host.Device("mallory/pc")
	s.alice.Asks("set", publishing("a"))
	subscribes(s.alice, "alice@localhost")
	send(t, s.alice, `<presence to='vault.localhost'/>`)
	s.alice.Receives(`<message type='headline' from='*' id='*'>*</message>`)
	number := s.host.AwaitAttached()
	s.host.Drop()
	s.host.AwaitReattached(number)
	s.same = s.host.SameConnection()
	s.alice.Receives(`<presence from='vault.localhost'/>`)
	query := s.alice.Receives(`<iq type='get' id='*' from='*'><query xmlns='http://jabber.org/protocol/disco#info'/></iq>`)

	for _, forge := range []error{
		mallory.Reply(query, ""), mallory.Refuse(query, "cancel", "gone"), // right id, wrong from
		s.bob.Refuse(query, "cancel", "gone"),
	} {
		if forge != nil {
			t.Fatal(forge)
		}
	}
	for _, id := range []string{"guessed", "", query.ID + "A"} { // right from, wrong id
		s.host.Inject(`<iq type='error' id='` + id + `' from='alice@localhost/phone' to='vault.localhost'/>`)
		s.host.Inject(`<iq type='result' id='` + id + `' from='alice@localhost/phone' to='vault.localhost'/>`)
	}
	s.host.Inject(`<iq type='error' id='` + escape(query.ID) + `' from='alice@localhost' to='vault.localhost'/>`)
	if got := s.got(s.alice); len(got) > 0 {
		t.Errorf("a forged answer led to %s", got)
	}
	if err := s.alice.Reply(query, ""); err != nil {
		t.Fatal(err)
	}
	s.alice.Receives(`<message type='headline' from='*' id='*'>*</message>`)
	s.survived()
}
