package wire

import (
	"testing"

	"pepvault/pep"
)

func TestForeignForm(t *testing.T) {
	t.Parallel()
	const ps = "http://jabber.org/protocol/pubsub"
	tests := map[string]struct{ raw, want string }{
		"own namespace":       {foreign(`<note xmlns="u"></note>`), "<note xmlns='u'/>"},
		"inherits pubsub":     {foreign(`<note/>`), "<note xmlns='" + ps + "'/>"},
		"no namespace":        {foreign(`<note xmlns=''><a/></note>`), "<note xmlns=''><a/></note>"},
		"namespace taken off": {foreign(`<note xmlns='u'><a xmlns=''><b/></a><c/></note>`), "<note xmlns='u'><a xmlns=''><b/></a><c/></note>"},
		"doubled declaration": {foreign(`<note xmlns='u'><a xmlns='u'/></note>`), "<note xmlns='u'><a/></note>"},
		"prefixed root":       {foreign(`<p:note xmlns:p='u'><a/></p:note>`), "<p:note xmlns='" + ps + "' xmlns:p='u'><a/></p:note>"},
		"prefix from outside": {
			"<iq type='set' xmlns:o='out'>" + pubsub("<publish node='n' xmlns:m='mid'><item id='a' xmlns:i='in'><o:x m:a='1'/></item></publish>") + "</iq>",
			"<o:x xmlns='" + ps + "' xmlns:i='in' xmlns:m='mid' xmlns:o='out' m:a='1'/>"},
		"prefix only in content": {
			"<iq type='set' xmlns:o='out'>" + pubsub("<publish node='n'><item id='a'><x xmlns='u' type='o:t'>o:v</x></item></publish>") + "</iq>",
			"<x xmlns='u' xmlns:o='out' type='o:t'>o:v</x>"},
		"prefix moved inside": {
			"<iq type='set' xmlns:o='out'>" + pubsub("<publish node='n'><item id='a'><x xmlns='u' xmlns:o='in'><o:y xmlns:o='out'/></x></item></publish>") + "</iq>",
			"<x xmlns='u' xmlns:o='in'><o:y xmlns:o='out'/></x>"},
		"prefix of the stream":           {foreign(`<x xmlns='u' xmlns:a='v' xmlns:z='w'><stream:y/></x>`), "<x xmlns='u' xmlns:a='v' xmlns:stream='http://etherx.jabber.org/streams' xmlns:z='w'><stream:y/></x>"},
		"prefix of the stream at root":   {foreign(`<stream:x/>`), "<stream:x xmlns='" + ps + "' xmlns:stream='http://etherx.jabber.org/streams'/>"},
		"prefix of the stream repeated":  {foreign(`<x xmlns='u' xmlns:stream='http://etherx.jabber.org/streams'/>`), "<x xmlns='u'/>"},
		"prefix of the stream rebound":   {foreign(`<stream:x xmlns:stream='v'/>`), "<stream:x xmlns='" + ps + "' xmlns:stream='v'/>"},
		"default of the stream":          {"<iq type='set'><p:pubsub xmlns:p='" + ps + "'><p:publish node='n'><p:item><x/></p:item></p:publish></p:pubsub></iq>", "<x xmlns='jabber:client' xmlns:p='" + ps + "'/>"},
		"default of the stream repeated": {"<iq xmlns='jabber:component:accept' type='set'><p:pubsub xmlns:p='" + ps + "'><p:publish node='n'><p:item><x/></p:item></p:publish></p:pubsub></iq>", "<x xmlns='jabber:client' xmlns:p='" + ps + "'/>"},
		"attributes are sorted":          {foreign(`<x b='1' xmlns:q='v' a='2' xmlns='u' q:c='3' xml:lang='de'/>`), "<x xmlns='u' xmlns:q='v' a='2' b='1' xml:lang='de' q:c='3'/>"},
		"nested declarations are sorted": {foreign(`<x xmlns='u'><y xmlns:q='v' xmlns:p='w' xmlns='z'/></x>`), "<x xmlns='u'><y xmlns='z' xmlns:p='w' xmlns:q='v'/></x>"},
		"xml declared":                   {foreign(`<x xmlns='u' xmlns:xml='http://www.w3.org/XML/1998/namespace' xml:lang='de'/>`), "<x xmlns='u' xml:lang='de'/>"},
		"escapes": {
			foreign(`<x xmlns="u" a="&lt;&gt;&amp;&apos;&quot;'>">&lt;&gt;&amp;&apos;&quot;'"]]&gt;</x>`),
			`<x xmlns='u' a='&lt;&gt;&amp;&apos;"&apos;&gt;'>&lt;&gt;&amp;'"'"]]&gt;</x>`},
		"white space":         {foreign("<x xmlns='u'> a\t\n <y/> </x>"), "<x xmlns='u'> a\t\n <y/> </x>"},
		"references":          {foreign("<x xmlns='u'>&#65;&#x1F600;&#10;&#9;</x>"), "<x xmlns='u'>A😀\n\t</x>"},
		"CDATA":               {foreign("<x xmlns='u'>a<![CDATA[<&#xD800;]]]>b<![CDATA[]]></x>"), "<x xmlns='u'>a&lt;&amp;#xD800;]b</x>"},
		"only empty CDATA":    {foreign("<x xmlns='u'><![CDATA[]]></x>"), "<x xmlns='u'/>"},
		"CR between":          {foreign("\r\n<x\r\nxmlns='u'\r/>\r"), "<x xmlns='u'/>"},
		"our record inside":   {foreign("<x xmlns='u'><record xmlns='urn:pepvault:record:0'/></x>"), "<x xmlns='u'><record xmlns='urn:pepvault:record:0'/></x>"},
		"an item as payload":  {foreign("<item><item/>x</item>"), "<item xmlns='" + ps + "'><item/>x</item>"},
		"component namespace": {foreign("<x xmlns='jabber:component:accept'/>"), "<x xmlns='jabber:component:accept'/>"},
	}
	for what, test := range tests {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			call, err := DecodeRequest([]byte(test.raw), Limits{Foreign: true})
			if err != nil {
				t.Fatalf("%v for %s", err, test.raw)
			}
			got := string(call.(pep.Publish).Items[0].Payload.Data)
			if got != test.want {
				t.Errorf("\n got %s\nwant %s", got, test.want)
			}
			again, _, err := ForeignPayload([]byte(got))
			if err != nil || string(again.Data) != got {
				t.Errorf("its form is %s, %v\nnot itself  %s", again.Data, err, got)
			}
		})
	}
}

func TestForeignKeyVersion(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]uint32{
		"": 0, "0": 0, "7": 7, "+7": 7, "007": 7, "-0": 0, "2147483647": 1<<31 - 1,
		"7.0": 0, "seven": 0, " 7": 0, "7 ": 0, "1e3": 0, "+": 0, "-": 0, "+-7": 0, "--7": 0, "1a2": 0, "٣": 0,
	} {
		_, got, err := ForeignPayload([]byte("<x xmlns='u' key-version='" + text + "'/>"))
		if err != nil || got != want {
			t.Errorf("%q: got %d, %v; want %d", text, got, err, want)
		}
	}
	_, got, err := ForeignPayload([]byte("<x xmlns='u' xmlns:p='v' p:key-version='7'/>"))
	if err != nil || got != 0 {
		t.Errorf("an attribute of another namespace: got %d, %v", got, err)
	}
}

func TestForeignPayloadStandsAlone(t *testing.T) {
	t.Parallel()
	for _, raw := range []string{
		"", "x", "<x", "<x xmlns='u'/><y/>", "<x xmlns='u'/>t", "<record xmlns='urn:pepvault:record:0' key-version='1'>aGVs</record>",
	} {
		if p, _, err := ForeignPayload([]byte(raw)); err == nil {
			t.Errorf("%q gave %s", raw, p.Data)
		}
	}
}

// What one payload of a stanza uses says nothing about the next.
func TestForeignFormsAreApart(t *testing.T) {
	t.Parallel()
	raw := publish("<item id='a'><x xmlns='u'><stream:y/></x></item><item id='b'><x xmlns='u'>t</x></item>")
	call, err := DecodeRequest([]byte(raw), Limits{Foreign: true})
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{
		"<x xmlns='u' xmlns:stream='http://etherx.jabber.org/streams'><stream:y/></x>", "<x xmlns='u'>t</x>",
	} {
		if got := string(call.(pep.Publish).Items[i].Payload.Data); got != want {
			t.Errorf("item %d\n got %s\nwant %s", i, got, want)
		}
	}
}
