package wire

import (
	"bytes"
	"testing"

	"github.com/google/go-cmp/cmp"
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
		foreign("<p:x xmlns:p='u' a='&#65;' xml:lang='de'>t<![CDATA[<]]><y xmlns=''/></p:x>"),
		foreign("<x><stream:y/></x>"),
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
