package wire

import (
	"bytes"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"pepvault/pep"
)

// Whatever is accepted means the same when it is asked again.
func FuzzDecodeRequest(f *testing.F) {
	for _, seed := range []string{
		iq("get", "<ping xmlns='urn:xmpp:ping'/>"),
		iq("get", pubsub("<items node='n' max_items='3'/>")),
		iq("get", pubsub("<items node='n'/>"+rsmSet+"<max>3</max><after>u</after></set>")),
		iq("get", "<query xmlns='http://jabber.org/protocol/disco#items' node='n'/>"),
		iq("set", owner("<delete node='n'/>")),
		iq("set", pubsub("<subscribe node='n' jid='a@b/c'/>")),
		iq("set", pubsub("<retract node='n'><item id='a'/></retract><state xmlns='urn:pepvault:sync:0'/>")),
		record(" key-version='3'", "aGVsbG8="),
		iq("set", "<download xmlns='urn:pepvault:sync:0' id='d' node='n' cursor='c' chunk-bytes='4096' window='2'/>"),
		iq("set", "<begin xmlns='urn:pepvault:batch:0' id='i' node='n' cursor='c' rotate-to='4'/>"),
		iq("set", "<commit xmlns='urn:pepvault:batch:0' id='i' cursor='c' confirm='1'/>"),
		iq("set", "<abort xmlns='urn:pepvault:batch:0' id='i'/>"),
		iq("set", "<batch xmlns='urn:pepvault:batch:0' id='i'><unstage><item id='a'/></unstage></batch>"),
		iq("set", pubsub("<batch xmlns='urn:pepvault:batch:0' id='i' cursor='c'><unstage><item id='a'/></unstage></batch>")),
		iq("set", pubsub("<retract node='n'><item id='a'/></retract><batch xmlns='urn:pepvault:batch:0' id='i' cursor='c'/>")),
		iq("set", pubsub("<retract node='n'><item id='a'/></retract><confirm xmlns='urn:pepvault:batch:0'/>")),
		foreign("<p:x xmlns:p='u' a='&#65;' xml:lang='de'>t<![CDATA[<]]><y xmlns=''/></p:x>"),
		foreign("<x><stream:y/></x>"),
		iq("get", pubsub("<items node='n' max_items='9'/>"+rsmSet+"<max>3</max><before/></set>")),
		iq("get", pubsub("<items node='n'/>"+rsmSet+"<index>3</index></set>")),
		iq("set", pubsub("<retract node='n' notify='1'><item id='a'/></retract>")),
		iq("set", pubsub("<publish node='n'><item><x xmlns='u'/></item></publish><publish-options>"+form("submit", field("FORM_TYPE", "t")+field("a", "1", "", "2"))+"</publish-options>")),
		iq("set", pubsub("<create/><configure>"+form("submit", field("a", "1"))+"</configure>")),
		iq("set", pubsub("<create node='n'/><configure/>")),
		iq("get", owner("<configure node='n'/>")),
		iq("set", owner("<configure node='n'>"+form("submit", "<field type='fixed'/>"+field("a", "1")+"<field var='b'/>")+"</configure>")),
		iq("set", owner("<configure node='n'>"+form("cancel", "")+"</configure>")),
		iq("get", owner("<default/>")),
		iq("set", owner("<purge node='n'/>")),
		iq("set", pubsub("<subscribe node='n' jid='j'/><options>"+form("submit", "")+"</options>")),
		iq("get", pubsub("<subscriptions/>")),
		iq("get", pubsub("<options node='n' jid='j'/>")),
		iq("set", pubsub("<options node='n' jid='j'>"+form("submit", field("a", "1"))+"</options>")),
		iq("get", pubsub("<default node='n'/>")),
		iq("get", pubsub("<affiliations node='n'/>")),
		iq("get", owner("<affiliations node='n'/>")),
		iq("set", owner("<affiliations node='n'><affiliation jid='j' affiliation='member'/></affiliations>")),
		iq("get", "<query xmlns='http://jabber.org/protocol/disco#items'>"+rsmSet+"<before>u</before></set></query>"),
		iq("get", "<query xmlns='http://jabber.org/protocol/disco#items' node='http://jabber.org/protocol/commands'/>"),
		iq("get", "<query xmlns='http://jabber.org/protocol/disco#info' node='urn:pepvault:command:x'/>"),
		command("node='c' sessionid='s' action='complete'", form("submit", field("a", "1"))),
	} {
		f.Add([]byte(seed))
	}
	limits := Limits{RecordBytes: 4096, Foreign: true}
	f.Fuzz(func(t *testing.T, raw []byte) {
		call, err := DecodeRequest(raw, limits)
		if err != nil {
			checkStanza(t, AppendError(nil, request, err))
			return
		}
		asked := AppendRequest(nil, request, call)
		checkStanza(t, asked)
		again, err := DecodeRequest(asked, limits)
		if err != nil {
			t.Fatalf("%v for %q, asked again as %q", err, raw, asked)
		}
		if diff := cmp.Diff(call, again); diff != "" {
			t.Fatalf("%q asked again as %q\n%s", raw, asked, diff)
		}
	})
}

// Of any presence: each hash names its digest and the question for it.
func FuzzDecodePresence(f *testing.F) {
	for _, seed := range []string{
		presence(""), presence("<show>away</show>"), presence(c115("node='n' ver='1.0'")),
		presence(c115("hash='sha-1' node='n' ver='" + ver115 + "'")),
		presence(c390("sha-256", set256, "sha3-256", set3_256, "sha-1", ver115, "x", "y")),
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		caps, silent, err := DecodePresence(raw)
		if (err != nil || silent) != (len(caps) == 0) {
			t.Fatalf("%v, silent %v, %v", caps, silent, err)
		}
		for _, c := range caps {
			if c == (pep.CapsHash{}) && len(caps) == 1 {
				continue
			}
			digest := c.Hash[strings.LastIndexByte(c.Hash, ':')+1:]
			if digest == "" || !strings.HasSuffix(c.Node, digest) {
				t.Fatalf("%+v of %q", c, raw)
			}
			if kind, ask := AskInfo(c.Node); kind != "get" {
				t.Fatalf("%s %s", kind, ask)
			}
		}
	})
}

// A chunk that is sent on says the same.
func FuzzDecodeChunk(f *testing.F) {
	for _, seed := range []string{
		"download='d' seq='0' cursor='c' reset='new' first='true'><item id='a' revision='1' key-version='3'>aGVsbG8=</item>",
		"download='d' seq='7' cursor='c' last='true' reset='lost' fork='3'><retract id='b' revision='2'/>",
		"download='d' seq='1' cursor='c'><item id='z' revision='4'><note xmlns='urn:example'>t</note></item>",
	} {
		f.Add([]byte(iq("set", "<chunk xmlns='urn:pepvault:sync:0' "+seed+"</chunk>")))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		chunk, err := DecodeChunk(raw)
		if err != nil {
			return
		}
		sent := AppendChunk(nil, request, chunk)
		checkStanza(t, sent)
		again, err := DecodeChunk(sent)
		if err != nil {
			t.Fatalf("%v for %q, sent on as %q", err, raw, sent)
		}
		if diff := cmp.Diff(chunk, again); diff != "" {
			t.Fatalf("%q sent on as %q\n%s", raw, sent, diff)
		}
	})
}

// An info that is sent on has the same hashes, and announces the same.
func FuzzDecodeInfo(f *testing.F) {
	for _, content := range []string{
		"", "<feature var='a+notify'/>", "<identity category='a' type='b' xml:lang='c' name='d'/>",
		form("result", "<field var='FORM_TYPE' type='hidden'><value>t</value></field>"+field("a", "2", "1")),
		form("result", "<reported/>"), "<x xmlns='u'/>",
	} {
		f.Add([]byte(iq("result", "<query xmlns='http://jabber.org/protocol/disco#info'>"+content+"</query>")))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		info, err := DecodeInfo(raw)
		if err != nil || info.odd {
			return
		}
		again, err := DecodeInfo(append(AppendInfo([]byte("<iq type='result'>"), "", info), "</iq>"...))
		if err != nil {
			t.Fatalf("%v for %q", err, raw)
		}
		if diff := cmp.Diff(info.Announced(), again.Announced()); diff != "" {
			t.Fatalf("%q\n%s", raw, diff)
		}
		for _, hash := range hashesOf(info) {
			if !again.Verify(pep.CapsHash{Hash: hash}) {
				t.Fatalf("%s of %q is not that of %+v", hash, raw, again)
			}
		}
	})
}

// The form of a form is itself, and means what it was made of.
func FuzzForeign(f *testing.F) {
	for _, seed := range []string{
		"<x xmlns='u'/>", "<p:x xmlns:p='u' q:a='1' xmlns:q='v'>t</p:x>", "<x xmlns=''><y xmlns='u'><z xmlns=''/></y></x>",
		"<x a='&lt;&#38;'>]]&gt;<![CDATA[a]]></x>", "<stream:x><x xml:lang='e' key-version='7'/></stream:x>",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		form, _, err := ForeignPayload(raw)
		if err != nil {
			return
		}
		again, _, err := ForeignPayload(form.Data)
		if err != nil || !bytes.Equal(again.Data, form.Data) {
			t.Fatalf("%v: %q\nhas the form %q\nand that     %q", err, raw, form.Data, again.Data)
		}
		scope := map[string]string{"": nsClient}
		want, err := pieces(raw, 0, scope)
		if err != nil {
			t.Fatalf("accepted, but encoding/xml says %v: %q", err, raw)
		}
		got, err := pieces(form.Data, 0, scope)
		if err != nil {
			t.Fatalf("%v in the form %q of %q", err, form.Data, raw)
		}
		dropBuiltIn(want)
		dropBuiltIn(got)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("%q\nhas the form %q\n%s", raw, form.Data, diff)
		}
	})
}

// dropBuiltIn leaves out of the scopes what need not be declared.
func dropBuiltIn(all []piece) {
	for _, p := range all {
		delete(p.Scope, "xml")
		if p.Scope["stream"] == nsStreams {
			delete(p.Scope, "stream")
		}
		// encoding/xml leaves a prefix that the stream declares as it is.
		for name, value := range p.Attrs {
			if name.Space == "stream" {
				delete(p.Attrs, name)
				name.Space = nsStreams
				p.Attrs[name] = value
			}
		}
	}
	for i := range all {
		if all[i].Name.Space == "stream" {
			all[i].Name.Space = nsStreams
		}
	}
}
