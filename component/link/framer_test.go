package link

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
)

// small limits, so that every one of them is met by short inputs.
var small = Limits{Bytes: 400, Depth: 5, Tag: 120}

// frames cuts the whole input; window is the size of the reader's buffer.
func frames(r io.Reader, window int, limits Limits) ([]Stanza, error) {
	f := NewFramer(bufio.NewReaderSize(r, window), limits, nil)
	var all []Stanza
	for {
		s, err := f.Next()
		if err != nil {
			return all, err
		}
		all = append(all, s)
	}
}

func nest(levels int) string {
	return strings.Repeat("<a>", levels) + strings.Repeat("</a>", levels)
}

func TestFramer(t *testing.T) {
	t.Parallel()
	const pubsub = "http://jabber.org/protocol/pubsub"
	iq := Name{NSComponent, "iq"}
	tests := map[string]struct {
		in   string
		want []Stanza // Raw, Offset and RawBytes are checked against in
		err  error    // default io.EOF
	}{
		"nothing":     {in: ""},
		"white space": {in: " \t\r\n \n"},
		"one": {
			in:   `<iq type='get' from='a@b/c' to='v' id='1'><query xmlns='q'/></iq>`,
			want: []Stanza{{Name: iq, Type: "get", From: "a@b/c", To: "v", ID: "1", Child: Name{"q", "query"}}},
		},
		"attributes in another order and in both quotes": {
			in:   "<iq id=\"1'\" to='\"v' type='get' from=\"a@b/c\"></iq>",
			want: []Stanza{{Name: iq, Type: "get", From: "a@b/c", To: `"v`, ID: "1'"}},
		},
		"white space in tags": {
			in:   "<iq \n id \t=\r\n '1' to\n='v'\t><q\n/\t></iq \n>",
			err:  ErrNotWellFormed, // nothing may stand between '/' and '>'
			want: nil,
		},
		"white space where it is legal": {
			in:   "<iq \n id \t=\r\n '1' to\n='v'\t><q\n/></iq \n>\n<iq\t/>",
			want: []Stanza{{Name: iq, ID: "1", To: "v", Child: Name{NSComponent, "q"}}, {Name: iq}},
		},
		"missing and empty attributes": {
			in:   `<message id='' from=""/><presence/>`,
			want: []Stanza{{Name: Name{NSComponent, "message"}}, {Name: Name{NSComponent, "presence"}}},
		},
		"xml:lang and foreign attributes": {
			in: `<message xml:lang='de' x:from='evil' xmlns:x='u' x:id="2" fromage='brie' from='a@b'/>`,
			want: []Stanza{{
				Name: Name{NSComponent, "message"}, Lang: "de", From: "a@b",
			}},
		},
		"entities and references": {
			in: `<iq from='a@b/&lt;&gt;&amp;&apos;&quot;&#9829;&#x2665;&#x1F600;' id='&amp;lt;'/>`,
			want: []Stanza{{
				Name: iq, From: "a@b/<>&'\"♥♥😀", ID: "&lt;",
			}},
		},
		"what is no reference stays": {
			in:   `<iq from='&nbsp;&#0;&#xD800;&#x110000;&;&' id='&#;&#x;&amp'/>`,
			want: []Stanza{{Name: iq, From: "&nbsp;&#0;&#xD800;&#x110000;&;&", ID: "&#;&#x;&amp"}},
		},
		"white space in attributes is kept": {
			in:   "<iq id='a\n\tb&#10;c'/>",
			want: []Stanza{{Name: iq, ID: "a\n\tb\nc"}},
		},
		"markup in attributes": {
			in:   `<iq id='/>' from="-->]]>?>>'" ><a b='/' c="'>"/></iq>`,
			want: []Stanza{{Name: iq, ID: "/>", From: "-->]]>?>>'", Child: Name{NSComponent, "a"}}},
		},
		"CDATA": {
			in:   `<iq><a><![CDATA[</a></iq><b>]] > ]><!-- ]]]]></a></iq>`,
			want: []Stanza{{Name: iq, Child: Name{NSComponent, "a"}}},
		},
		"empty CDATA": {in: `<iq><![CDATA[]]></iq>`, want: []Stanza{{Name: iq}}},
		"CDATA that ends in brackets": {
			in: `<iq><![CDATA[]]]></iq>]]]></iq>`, err: ErrNotWellFormed, want: []Stanza{{Name: iq}},
		},
		"comments": {
			in:   `<iq><!----><!--></iq>--><!-- > -> --><b/><!---></iq>--></iq>`,
			want: []Stanza{{Name: iq, Child: Name{NSComponent, "b"}}},
		},
		"instructions": {
			in:   `<iq><?x </iq> > ? ?><?></iq>?><b/></iq>`,
			want: []Stanza{{Name: iq, Child: Name{NSComponent, "b"}}},
		},
		"between stanzas": {
			in:   "\n<!-- <iq> --> <?xml version='1.0'?>\n<iq/>\n\n<!---->\t<iq id='2'/>  ",
			want: []Stanza{{Name: iq}, {Name: iq, ID: "2"}},
		},
		"text that looks like markup": {
			in:   `<iq><a>]]> --> ?> /> > " ' &lt;iq&gt;</a></iq>`,
			want: []Stanza{{Name: iq, Child: Name{NSComponent, "a"}}},
		},
		"child and grandchild": {
			in: `<iq>text<p:pubsub xmlns:p='` + pubsub + `'><p:publish node='n'><x/></p:publish><y/></p:pubsub><z><zz/></z></iq>`,
			want: []Stanza{{
				Name: iq, Child: Name{pubsub, "pubsub"}, Grand: Name{pubsub, "publish"},
			}},
		},
		"the second child's child is no grandchild": {
			in:   `<iq><a/><b><c/></b></iq>`,
			want: []Stanza{{Name: iq, Child: Name{NSComponent, "a"}}},
		},
		"prefixed names": {
			in: `<c:iq xmlns:c='jabber:component:accept' id='1'><c:a/></c:iq><x:iq xmlns='y'/><iq xmlns='jabber:client'/>`,
			want: []Stanza{
				{Name: iq, ID: "1", Child: Name{NSComponent, "a"}},
				{Name: Name{"x", "iq"}},
				{Name: Name{"jabber:client", "iq"}},
			},
		},
		"the stream namespace inside": {
			in:   `<iq><stream:stream><stream:error/></stream:stream></iq><message><x xmlns='` + NSStream + `'/></message>`,
			want: []Stanza{{Name: iq, Child: Name{NSStream, "stream"}, Grand: Name{NSStream, "error"}}, {Name: Name{NSComponent, "message"}, Child: Name{NSStream, "x"}}},
		},
		"stream error and end": {
			in:   `<iq/> <stream:error><conflict xmlns='urn:ietf:params:xml:ns:xmpp-streams'/></stream:error></stream:stream ><iq/>`,
			want: []Stanza{{Name: iq}, {Name: Name{NSStream, "error"}, Child: Name{"urn:ietf:params:xml:ns:xmpp-streams", "conflict"}}},
			err:  ErrStreamEnd,
		},
		"just short enough": {
			in:   `<iq>` + strings.Repeat("x", 400-9) + `</iq><iq/>`,
			want: []Stanza{{Name: iq}, {Name: iq}},
		},
		"too big": {
			in: `<iq id='1'><a><b/>` + strings.Repeat("'", 1000) + `<c/></a></iq><iq/>`,
			want: []Stanza{
				{Name: iq, ID: "1", Skipped: TooBig, Child: Name{NSComponent, "a"}, Grand: Name{NSComponent, "b"}},
				{Name: iq},
			},
		},
		"too big by one": {
			in:   `<iq>` + strings.Repeat("x", 401-9) + `</iq><iq/>`,
			want: []Stanza{{Name: iq, Skipped: TooBig}, {Name: iq}},
		},
		"too big before its first child": {
			in:   `<iq>` + strings.Repeat(" ", 400) + `<a/></iq>`,
			want: []Stanza{{Name: iq, Skipped: TooBig}},
		},
		"just deep enough": {in: `<iq>` + nest(4) + `</iq>`, want: []Stanza{{Name: iq, Child: Name{NSComponent, "a"}, Grand: Name{NSComponent, "a"}}}},
		"too deep": {
			in: `<iq id='1'>` + nest(1000) + `</iq><iq/>`,
			want: []Stanza{
				{Name: iq, ID: "1", Skipped: TooDeep, Child: Name{NSComponent, "a"}, Grand: Name{NSComponent, "a"}},
				{Name: iq},
			},
		},
		"too deep by an empty element": {
			in:   `<iq><a><b><c><d/><d><e/></d></c></b></a></iq>`,
			want: []Stanza{{Name: iq, Skipped: TooDeep, Child: Name{NSComponent, "a"}, Grand: Name{NSComponent, "b"}}},
		},
		"huge start tag": {
			in: `<iq id='1' from='` + strings.Repeat("x", 200) + `' to='v'><a/></iq><iq/>`,
			want: []Stanza{
				{Name: iq, ID: "1", Skipped: HugeStart},
				{Name: iq},
			},
		},
		"huge name": {
			in:   `<` + strings.Repeat("x", 200) + ` id='1'/><iq/>`,
			want: []Stanza{{Skipped: HugeStart}, {Name: iq}},
		},
		"skipped with markup that looks like its end": {
			in: `<iq>` + strings.Repeat("x", 400) + `<a b="/iq>"/><![CDATA[</iq>]]><!--</iq>--><?x </iq>?></iq><iq/>`,
			want: []Stanza{
				{Name: iq, Skipped: TooBig}, {Name: iq},
			},
		},
		"endless comment between stanzas": {in: `<!--` + strings.Repeat("-- >", 500) + `--><iq/>`, want: []Stanza{{Name: iq}}},

		"document type":            {in: `<!DOCTYPE x><iq/>`, err: ErrNotWellFormed},
		"document type inside":     {in: `<iq><!DOCTYPE x></iq>`, err: ErrNotWellFormed},
		"text between":             {in: `<iq/>x<iq/>`, want: []Stanza{{Name: iq}}, err: ErrNotWellFormed},
		"CDATA between":            {in: `<![CDATA[ ]]>`, err: ErrNotWellFormed},
		"end without start":        {in: `</iq>`, err: ErrNotWellFormed},
		"end of another":           {in: `<iq></message>`, err: ErrNotWellFormed},
		"endless end":              {in: `</` + strings.Repeat("x", 1000), err: ErrNotWellFormed},
		"no name":                  {in: `<iq>< a/></iq>`, err: ErrNotWellFormed},
		"tag in tag":               {in: `<iq <a/>`, err: ErrNotWellFormed},
		"tag in attribute":         {in: `<iq a='<'/>`, err: ErrNotWellFormed},
		"tag in end tag":           {in: `<iq></iq <`, err: ErrNotWellFormed},
		"attribute without value":  {in: `<iq from/>`, err: ErrNotWellFormed},
		"attribute without quotes": {in: `<iq from=a>`, err: ErrNotWellFormed},
		"attribute twice":          {in: `<iq from='a' from='b'/>`, err: ErrNotWellFormed},
		"stream in the stream":     {in: `<stream:stream><iq/>`, err: ErrNotWellFormed},
		"broken CDATA":             {in: `<iq><![CDATE[</iq>`, err: ErrNotWellFormed},
		"broken comment":           {in: `<iq><!-x</iq>`, err: ErrNotWellFormed},
		"cut in a tag":             {in: `<iq fro`, err: io.ErrUnexpectedEOF},
		"cut in text":              {in: `<iq>abc`, err: io.ErrUnexpectedEOF},
		"cut in CDATA":             {in: `<iq><![CDATA[]]`, err: io.ErrUnexpectedEOF},
		"cut behind the first <":   {in: `<iq/><`, want: []Stanza{{Name: iq}}, err: io.ErrUnexpectedEOF},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if tc.err == nil {
				tc.err = io.EOF
			}
			readers := map[string]func(io.Reader) io.Reader{
				"whole":      func(r io.Reader) io.Reader { return r },
				"bytes":      iotest.OneByteReader,
				"half reads": iotest.HalfReader,
			}
			for how, reader := range readers {
				got, err := frames(reader(strings.NewReader(tc.in)), 64, small)
				if !errors.Is(err, tc.err) {
					t.Errorf("%s: error: got %v, want %v", how, err, tc.err)
				}
				checkRaw(t, tc.in, got)
				for i := range got {
					got[i].Raw, got[i].Offset, got[i].RawBytes = nil, 0, 0
				}
				if diff := cmp.Diff(tc.want, got); diff != "" {
					t.Errorf("%s: -want +got:\n%s", how, diff)
				}
			}
		})
	}
}

// checkRaw holds the stanzas' bytes and places against the input.
func checkRaw(t interface{ Errorf(string, ...any) }, in string, got []Stanza) {
	end := int64(0)
	for i, s := range got {
		if s.Offset < end || s.Offset+s.RawBytes > int64(len(in)) {
			t.Errorf("stanza %d at %d+%d of %d, the last one ended at %d", i, s.Offset, s.RawBytes, len(in), end)
			return
		}
		gap := in[end:s.Offset]
		if !strings.ContainsAny(gap, "!?") && strings.Trim(gap, " \t\r\n") != "" {
			t.Errorf("before stanza %d: %q was lost", i, gap)
		}
		end = s.Offset + s.RawBytes
		want := in[s.Offset:end]
		if s.Skipped == Whole && string(s.Raw) != want {
			t.Errorf("stanza %d: got %q, want %q", i, s.Raw, want)
		}
		if s.Skipped != Whole && s.Raw != nil {
			t.Errorf("stanza %d is skipped, but has its bytes", i)
		}
	}
}

// TestFramerBuffer: a big stanza leaves no big buffer behind, and a skipped one
// never needs it.
func TestFramerBuffer(t *testing.T) {
	t.Parallel()
	in := io.MultiReader(
		strings.NewReader("<iq><a>"+strings.Repeat("x", 1<<20)+"</a></iq>"),
		strings.NewReader("<iq><a>"), io.LimitReader(endless{}, 100<<20), strings.NewReader("</a></iq>"),
		strings.NewReader("<iq>"+nest(1_000_000)+"</iq>"),
		strings.NewReader("<iq/>"),
	)
	f := NewFramer(bufio.NewReaderSize(in, 64<<10), Limits{}, nil)
	for i, want := range []Reason{Whole, TooBig, TooDeep, Whole} {
		s, err := f.Next()
		if err != nil || s.Skipped != want {
			t.Fatalf("stanza %d: %v, %v; want %v", i, s.Skipped, err, want)
		}
		if cap(f.kept) > keepBytes {
			t.Errorf("stanza %d leaves a buffer of %d bytes", i, cap(f.kept))
		}
	}
}

// endless is the worst text that a client can send: it reaches us escaped.
type endless struct{}

var quotes = bytes.Repeat([]byte("&apos;"), 10<<10)

func (endless) Read(p []byte) (int, error) {
	return copy(p, quotes), nil
}

func BenchmarkFramer(b *testing.B) {
	payload := strings.Repeat("QUJD", 310)
	stanza := fmt.Sprintf(`<iq xml:lang='en' from='alice@example.org/phone' id='0f3a9c' type='set' to='vault.example.org'>`+
		`<pubsub xmlns='http://jabber.org/protocol/pubsub'><publish node='notes'><item id='a1'>`+
		`<record xmlns='urn:pepvault:record:0' key-version='3'>%s</record></item></publish></pubsub></iq>`, payload)
	f := NewFramer(bufio.NewReaderSize(&repeat{s: stanza}, 64<<10), Limits{}, nil)
	b.SetBytes(int64(len(stanza)))
	b.ReportAllocs()
	for b.Loop() {
		if s, err := f.Next(); err != nil || len(s.Raw) != len(stanza) || s.ID != "0f3a9c" {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "stanzas/s")
}

// repeat reads s again and again.
type repeat struct {
	s  string
	at int
}

func (r *repeat) Read(p []byte) (n int, err error) {
	for n < len(p) {
		c := copy(p[n:], r.s[r.at:])
		n += c
		r.at = (r.at + c) % len(r.s)
	}
	return n, nil
}
