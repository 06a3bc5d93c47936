package c2s

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
)

func TestCutter(t *testing.T) {
	t.Parallel()
	const big = 200_000
	tests := []struct {
		name, stream string
		want         []Stanza
		ended        string // part of the error's text
	}{
		{
			name:   "several, with keep-alives between",
			stream: " \n<iq type='result' id='1' from='a@b/c' to=\"x@y/z\"/>\n<message><body>hi</body></message> ",
			want: []Stanza{
				{Name: "iq", Type: "result", ID: "1", From: "a@b/c", To: "x@y/z", Raw: []byte(`<iq type='result' id='1' from='a@b/c' to="x@y/z"/>`)},
				{Name: "message", Raw: []byte("<message><body>hi</body></message>")},
			},
			ended: "connection lost",
		},
		{
			name:   "attributes are unescaped, prefixed ones are not ours",
			stream: `<presence x:from='no' xmlns:x='urn:x' from='q&amp;a@b/&lt;&#x2665;'><message type='inner'/></presence></stream:stream>`,
			want: []Stanza{{Name: "presence", From: "q&a@b/<♥", Raw: []byte(
				`<presence x:from='no' xmlns:x='urn:x' from='q&amp;a@b/&lt;&#x2665;'><message type='inner'/></presence>`)}},
			ended: "good-bye",
		},
		{
			name:   "text that looks like an end",
			stream: `<message a='/>&lt;/message>'><![CDATA[</message>]]><b>]]&gt;</b></message></stream:stream>`,
			want:   []Stanza{{Name: "message", Raw: []byte(`<message a='/>&lt;/message>'><![CDATA[</message>]]><b>]]&gt;</b></message>`)}},
			ended:  "good-bye",
		},
		{
			name:   "a long one leaves the next whole",
			stream: "<message>" + strings.Repeat("x", big) + "</message><presence/>",
			want: []Stanza{
				{Name: "message", Raw: []byte("<message>" + strings.Repeat("x", big) + "</message>")},
				{Name: "presence", Raw: []byte("<presence/>")},
			},
			ended: "connection lost",
		},
		{
			name:   "stream error",
			stream: `<stream:error><conflict xmlns='urn:ietf:params:xml:ns:xmpp-streams'/><text xmlns='urn:ietf:params:xml:ns:xmpp-streams'>Replaced</text></stream:error></stream:stream>`,
			ended:  "conflict (Replaced)",
		},
		{name: "comment", stream: "<!-- no --><presence/>", ended: "not the XML"},
		{name: "processing instruction", stream: "<?no?><presence/>", ended: "not the XML"},
		{name: "CDATA between stanzas", stream: "<![CDATA[no]]><presence/>", ended: "not the XML"},
		{name: "cut inside", stream: "<iq type='result'><a>", ended: "connection lost"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			c := newCutter(iotest.OneByteReader(strings.NewReader(test.stream)))
			var got []Stanza
			for {
				s, err := c.next()
				if err == nil {
					got = append(got, s)
					continue
				}
				if !errors.Is(err, ErrEnded) && !errors.Is(err, errXML) || !strings.Contains(err.Error(), test.ended) {
					t.Errorf("ended with %v, want %q", err, test.ended)
				}
				break
			}
			if diff := cmp.Diff(test.want, got, cmp.Comparer(bytes.Equal)); diff != "" {
				t.Errorf("stanzas (-want +got):\n%s", diff)
			}
			if cap(c.buf) > keepBuffer {
				t.Errorf("a quiet connection holds on to %d bytes", cap(c.buf))
			}
		})
	}
}

func TestCutterBoundsStanza(t *testing.T) {
	t.Parallel()
	endless := strings.NewReader("<message>" + strings.Repeat("x", 2*maxStanza))
	if _, err := newCutter(endless).next(); !errors.Is(err, errTooBig) {
		t.Errorf("got %v, want %v", err, errTooBig)
	}
}

func FuzzCutter(f *testing.F) {
	f.Add("<iq type='result' id='1'/><message><body>hi</body></message></stream:stream>")
	f.Add("<a><![CDATA[<b>]]></a> <b c='>'/>")
	f.Fuzz(func(t *testing.T, stream string) {
		c := newCutter(strings.NewReader(stream))
		at := 0 // stanzas lie in the stream one behind the other, unchanged
		for {
			s, err := c.next()
			if err != nil {
				return
			}
			i := strings.Index(stream[at:], string(s.Raw))
			if i < 0 || len(s.Raw) == 0 {
				t.Fatalf("stanza %q is not in what is left of the stream: %q", s.Raw, stream[at:])
			}
			at += i + len(s.Raw)
		}
	})
}

func BenchmarkCutter(b *testing.B) {
	stanza := "<iq type='result' id='1'><items>" + strings.Repeat("<item id='abc'><record>"+strings.Repeat("QUJD", 300)+"</record></item>", 256) + "</items></iq>"
	b.SetBytes(int64(len(stanza)))
	for b.Loop() {
		if _, err := newCutter(strings.NewReader(stanza)).next(); err != nil {
			b.Fatal(err)
		}
	}
}
