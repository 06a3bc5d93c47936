package link

import (
	"bufio"
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// element draws legal XML: an element with all that may stand in it.
func element(t *rapid.T, name string, levels int) string {
	space := func(least int) string {
		return rapid.StringOfN(rapid.SampledFrom([]rune(" \t\r\n")), least, 3, -1).Draw(t, "space")
	}
	var b strings.Builder
	b.WriteString("<" + name)
	keys := rapid.Permutation([]string{"from", "to", "id", "type", "xml:lang", "x", "xmlns:p", "xmlns"}).Draw(t, "keys")
	for _, key := range keys[:rapid.IntRange(0, len(keys)).Draw(t, "attributes")] {
		quote := rapid.SampledFrom([]string{`'`, `"`}).Draw(t, "quote")
		other := `"`
		if quote == other {
			other = `'`
		}
		value := rapid.SliceOfN(rapid.SampledFrom([]string{
			other, ">", "/>", "/", "=", "&lt;", "&#x3C;", "&amp;", "]]>", "-->", "?>", "a", " ", "ü",
		}), 0, 5).Draw(t, "value")
		if strings.HasPrefix(key, "xmlns") {
			value = []string{rapid.SampledFrom([]string{"u", NSStream, NSComponent}).Draw(t, "namespace")}
		}
		b.WriteString(space(1) + key + space(0) + "=" + space(0) + quote + strings.Join(value, "") + quote)
	}
	b.WriteString(space(0))
	if rapid.Bool().Draw(t, "empty") {
		b.WriteString("/>")
		return b.String()
	}
	b.WriteByte('>')
	for range rapid.IntRange(0, 4).Draw(t, "children") {
		switch {
		case levels > 0 && rapid.Bool().Draw(t, "element"):
			child := rapid.SampledFrom([]string{"a", "stream:error", "stream:stream", "iq"}).Draw(t, "child")
			b.WriteString(element(t, child, levels-1))
		default:
			b.WriteString(rapid.SampledFrom([]string{
				"text", " \n", ">", "/>", `"`, "'", "]]", "&amp;", "&#60;/iq>",
				"<![CDATA[]]>", "<![CDATA[]]]]>", "<![CDATA[</iq><iq>]>>]]>", "<![CDATA[<!--]]>",
				"<!---->", "<!-- </iq> <![CDATA[ -->", "<!-- > - -> -->",
				"<?p?>", "<?p </iq> ? > ?>", "<?p <!-- ?>",
			}).Draw(t, "content"))
		}
	}
	b.WriteString("</" + name + space(0) + ">")
	return b.String()
}

// TestFramerCuts: legal streams give the same stanzas however they are cut into
// reads, and these are what encoding/xml finds.
func TestFramerCuts(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var b strings.Builder
		for range rapid.IntRange(0, 5).Draw(t, "stanzas") {
			b.WriteString(rapid.SampledFrom([]string{"", " ", "\n\t", "<!-- <iq> -->", "<?p <iq> ?>"}).Draw(t, "gap"))
			name := rapid.SampledFrom([]string{"iq", "message", "presence", "stream:error"}).Draw(t, "name")
			b.WriteString(element(t, name, 6))
		}
		in := b.String()
		limits := rapid.SampledFrom([]Limits{{}, small, {Bytes: 60, Depth: 3, Tag: 20}}).Draw(t, "limits")
		want, err := frames(strings.NewReader(in), 1<<16, limits)
		if err != io.EOF {
			t.Fatalf("%q: %v", in, err)
		}
		checkRaw(t, in, want)
		checkXML(t, in, want)
		cuts := &cutReader{strings.NewReader(in), rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))}
		got, err := frames(cuts, rapid.IntRange(16, 200).Draw(t, "window"), limits)
		if diff := cmp.Diff(want, got); diff != "" || err != io.EOF {
			t.Fatalf("%q cut: %v, -want +got:\n%s", in, err, diff)
		}
	})
}

// cutReader returns a few bytes at a time.
type cutReader struct {
	r    io.Reader
	cuts *rand.Rand
}

func (c *cutReader) Read(p []byte) (int, error) {
	return c.r.Read(p[:min(len(p), 1+c.cuts.IntN(20))])
}

const fuzzHeader = "<stream:stream xmlns='jabber:component:accept' xmlns:stream='http://etherx.jabber.org/streams'>"

// checkXML holds stanzas against what encoding/xml finds in the same bytes. It
// says nothing about what encoding/xml refuses, nor about the few things that it
// takes although they are not well-formed in a stream.
func checkXML(t interface{ Errorf(string, ...any) }, in string, got []Stanza) {
	want, ok := xmlStanzas(in)
	if !ok {
		return
	}
	if len(got) != len(want) {
		t.Errorf("%q: got %d stanzas, want %d", in, len(got), len(want))
		return
	}
	for i, w := range want {
		g := got[i]
		if g.Offset != w.Offset || g.RawBytes != w.RawBytes {
			t.Errorf("%q: stanza %d at %d+%d, want %d+%d", in, i, g.Offset, g.RawBytes, w.Offset, w.RawBytes)
		}
		if g.Skipped == HugeStart {
			continue
		}
		if g.Skipped == TooBig { // they may stand behind the limit
			w.Child, w.Grand = g.Child, g.Grand
		}
		g.Raw, g.Skipped = nil, Whole
		if !reflect.DeepEqual(w, g) {
			t.Errorf("%q: stanza %d: -want +got:\n%s", in, i, cmp.Diff(w, g))
		}
	}
}

func xmlStanzas(in string) (all []Stanza, ok bool) {
	d := xml.NewDecoder(strings.NewReader(fuzzHeader + in + "</stream:stream>"))
	depth, children, grands := 0, 0, 0
	var s Stanza
	for {
		from := d.InputOffset() - int64(len(fuzzHeader))
		token, err := d.Token()
		if err != nil {
			return all, err == io.EOF && depth == 0
		}
		to := d.InputOffset() - int64(len(fuzzHeader))
		switch e := token.(type) {
		case xml.StartElement:
			name := Name(e.Name)
			switch depth++; depth {
			case 2:
				if s, ok = startOf(name, e.Attr); !ok {
					return nil, false
				}
				s.Offset = from
				children, grands = 0, 0
			case 3:
				if children++; children == 1 {
					s.Child = name
				}
			case 4:
				if grands++; children == 1 && grands == 1 {
					s.Grand = name
				}
			}
		case xml.EndElement:
			if depth--; depth == 1 {
				s.RawBytes = to - s.Offset
				all = append(all, s)
			}
		case xml.CharData:
			if depth == 1 && strings.Trim(in[from:to], " \t\r\n") != "" {
				return nil, false
			}
		case xml.Directive:
			return nil, false
		}
	}
}

func startOf(name Name, attrs []xml.Attr) (s Stanza, ok bool) {
	s.Name = name
	seen := make(map[xml.Name]bool)
	for _, a := range attrs {
		if seen[a.Name] {
			return s, false
		}
		seen[a.Name] = true
		switch Name(a.Name) {
		case Name{"", "from"}:
			s.From = a.Value
		case Name{"", "to"}:
			s.To = a.Value
		case Name{"", "id"}:
			s.ID = a.Value
		case Name{"", "type"}:
			s.Type = a.Value
		case Name{nsXML, "lang"}:
			s.Lang = a.Value
		}
	}
	return s, name != Name{NSStream, "stream"}
}

// FuzzFramer: no panic, no byte lost, bounded memory, the same stanzas however
// the input is cut, and what encoding/xml finds where it finds any.
func FuzzFramer(f *testing.F) {
	for _, seed := range []string{
		"", " \n", `<iq type='get' from="a@b/c" to='v' id='1'><q xmlns='u'/></iq>`,
		`<iq/><!-- --><?p ?><message xml:lang='de'><![CDATA[]]]]></message></stream:stream>`,
		`<stream:error><conflict xmlns='urn:ietf:params:xml:ns:xmpp-streams'/></stream:error>`,
		`<p:iq xmlns:p='u' from='&lt;&#65;'><p:a><b c=">"/></p:a></p:iq>`,
		"<iq><a><b><c><d><e><f/></e></d></c></b></a></iq>", "<iq>" + strings.Repeat("x", 500) + "</iq><iq/>",
		"<iq id='" + strings.Repeat("x", 200) + "'/>", "<!DOCTYPE x [<!ENTITY a 'b'>]><iq/>", "<iq></iq ></message>",
	} {
		f.Add(seed, uint64(len(seed)))
	}
	f.Fuzz(func(t *testing.T, in string, seed uint64) {
		all, err := frames(strings.NewReader(in), 1<<16, small)
		checkRaw(t, in, all)
		cuts := &cutReader{strings.NewReader(in), rand.New(rand.NewPCG(seed, 0))}
		fr := NewFramer(bufio.NewReaderSize(cuts, 16+int(seed%100)), small, nil)
		for i := 0; ; i++ {
			s, cutErr := fr.Next()
			if most := small.Bytes + 200; len(fr.kept) > most { // 200: more than a window
				t.Fatalf("%d bytes are kept", len(fr.kept))
			}
			if cutErr != nil {
				if i != len(all) || kind(cutErr) != kind(err) {
					t.Errorf("%q cut: %d stanzas and %v, whole: %d and %v", in, i, cutErr, len(all), err)
				}
				break
			}
			if i >= len(all) {
				t.Fatalf("%q: more stanzas when cut", in)
			}
			if !reflect.DeepEqual(all[i], s) {
				t.Errorf("%q cut: stanza %d: -whole +cut:\n%s", in, i, cmp.Diff(all[i], s))
			}
		}
		if strings.ContainsAny(in, "\r") || strings.Contains(in, "&#") && bytes.ContainsRune([]byte(fmt.Sprint(all)), '\uFFFD') {
			return // encoding/xml rewrites these
		}
		if want, ok := xmlStanzas(in); ok && (err == io.EOF || len(want) > 0) {
			if err != io.EOF && strings.Contains(in, "<![CDATA[") {
				return // encoding/xml takes it between stanzas
			}
			if err != io.EOF {
				t.Errorf("%q: %v, but encoding/xml takes it", in, err)
			}
			checkXML(t, in, all)
		}
	})
}

// kind is an error without the place.
func kind(err error) error {
	for _, k := range []error{ErrStreamEnd, ErrNotWellFormed, io.EOF, io.ErrUnexpectedEOF} {
		if errors.Is(err, k) {
			return k
		}
	}
	return err
}
