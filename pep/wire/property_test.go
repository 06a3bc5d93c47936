package wire

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"pepvault/pep"
	"pepvault/vault"
)

// node is a piece of an element as any XML reader sees it: a start with its
// expanded names and all prefixes in scope, a run of text, or an end.
type piece struct {
	Name  xml.Name
	Attrs map[xml.Name]string
	Scope map[string]string
	Text  string
}

// pieces reads with encoding/xml alone what stands from the depth-th level of
// raw downwards, in its first branch. scope is what surrounds raw.
func pieces(raw []byte, depth int, scope map[string]string) ([]piece, error) {
	d := xml.NewDecoder(bytes.NewReader(raw))
	d.DefaultSpace = scope[""]
	scopes := []map[string]string{scope}
	var got []piece
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return got, nil
		}
		if err != nil {
			return nil, err
		}
		switch t := token.(type) {
		case xml.StartElement:
			p := piece{Name: t.Name, Attrs: map[xml.Name]string{}, Scope: maps.Clone(scopes[len(scopes)-1])}
			for _, a := range t.Attr {
				switch {
				case a.Name.Space == "xmlns":
					p.Scope[a.Name.Local] = a.Value
				case a.Name == xml.Name{Local: "xmlns"}:
					p.Scope[""] = a.Value
				default:
					p.Attrs[a.Name] = a.Value
				}
			}
			scopes = append(scopes, p.Scope)
			if len(scopes)-1 > depth {
				got = append(got, p)
			}
		case xml.EndElement:
			scopes = scopes[:len(scopes)-1]
			if len(scopes) > depth {
				got = append(got, piece{})
			}
		case xml.CharData:
			switch last := len(got) - 1; {
			case len(scopes)-1 <= depth || len(t) == 0:
			case got[last].Text != "":
				got[last].Text += string(t)
			default:
				got = append(got, piece{Text: string(t)})
			}
		}
	}
}

// A maker draws XML: every way to write a thing, nothing that is refused.
type maker struct {
	t *rapid.T
	b strings.Builder
}

func (m *maker) oneOf(what string, of ...string) string { return rapid.SampledFrom(of).Draw(m.t, what) }

// chars are those that have more than one spelling, or more than one byte.
var chars = []rune("ab <>&'\"]=:é€😀\u0085\u2028\u00a0\u007f\uFFFD")

func (m *maker) text(inAttr bool, quote string) string {
	var b strings.Builder
	alphabet := chars
	if !inAttr {
		alphabet = append(slices.Clone(chars), '\t', '\n')
	}
	for _, r := range rapid.SliceOfN(rapid.SampledFrom(alphabet), 0, 6).Draw(m.t, "text") {
		switch spelling := rapid.IntRange(0, 3).Draw(m.t, "spelling"); {
		case spelling == 1:
			fmt.Fprintf(&b, "&#%d;", r)
		case spelling == 2:
			fmt.Fprintf(&b, "&#x%X;", r)
		case spelling == 3 && !inAttr && r != ']':
			fmt.Fprintf(&b, "<![CDATA[%c]]>", r)
		case r == '<':
			b.WriteString("&lt;")
		case r == '>':
			b.WriteString("&gt;")
		case r == '&':
			b.WriteString("&amp;")
		case string(r) == quote:
			fmt.Fprintf(&b, "&#%d;", r)
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

func (m *maker) attr(name, value string) {
	quote := m.oneOf("quote", "'", `"`)
	if value == "" {
		value = m.text(true, quote)
	}
	m.b.WriteString(m.oneOf("gap", " ", "\n\t") + name + "=" + quote + value + quote)
}

// declare draws declarations and returns the scope with them.
func (m *maker) declare(scope map[string]string, most int) map[string]string {
	scope = maps.Clone(scope)
	prefixes := rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"p", "q", "stream", "_z"}), 0, most, rapid.ID).Draw(m.t, "prefixes")
	for _, prefix := range prefixes {
		scope[prefix] = m.oneOf("uri", "urn:1", "urn:2", "jabber:client", "urn:it&apos;s&amp;more")
		m.attr("xmlns:"+prefix, scope[prefix])
	}
	return scope
}

func (m *maker) tag(scope map[string]string) (name string) {
	prefixes := slices.Sorted(maps.Keys(scope))
	if prefix := m.oneOf("prefix", prefixes...); prefix != "" {
		name = prefix + ":"
	}
	return name + m.oneOf("local", "a", "b", "item", "é")
}

func (m *maker) element(scope map[string]string, depth int) {
	// The declarations of an element count for its own name: draw them first.
	outside := m.b
	m.b = strings.Builder{}
	inner := m.declare(scope, 2)
	if rapid.Bool().Draw(m.t, "default") {
		uri := m.oneOf("default uri", "urn:1", "urn:2", nsPubsub)
		m.attr("xmlns", uri)
	}
	for i := range rapid.IntRange(0, 3).Draw(m.t, "attributes") {
		prefix := m.oneOf("prefix", append(slices.Sorted(maps.Keys(inner)), "xml")...)
		if prefix != "" {
			prefix += ":"
		}
		m.attr(fmt.Sprint(prefix, m.oneOf("attribute", "z", "k", "lang"), i), "")
	}
	attrs := m.b.String()
	m.b = strings.Builder{}
	m.b.WriteString(outside.String())
	name := m.tag(inner)
	m.b.WriteString("<" + name + attrs)
	children := rapid.IntRange(0, 3).Draw(m.t, "children")
	if children == 0 && rapid.Bool().Draw(m.t, "short") {
		m.b.WriteString("/>")
		return
	}
	m.b.WriteString(">")
	for range children {
		m.b.WriteString(m.text(false, ""))
		if depth > 0 {
			m.element(inner, depth-1)
		}
	}
	m.b.WriteString("</" + name + ">")
}

// stanza draws a publish of one foreign payload, with declarations on every
// level.
func (m *maker) stanza() []byte {
	scope := map[string]string{"": nsPubsub}
	for _, tag := range []string{"iq type='set'", "pubsub xmlns='" + nsPubsub + "'", "publish node='n'", "item id='i'"} {
		m.b.WriteString("<" + tag)
		scope = m.declare(scope, 1)
		m.b.WriteString(">")
	}
	m.element(scope, 3)
	m.b.WriteString("</item></publish></pubsub></iq>")
	return []byte(m.b.String())
}

// What is stored of a foreign payload, and what another device reads of it,
// means what its sender wrote: names, prefixes in scope, attributes and text.
func TestForeignKeepsItsMeaning(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		raw := (&maker{t: t}).stanza()
		call, err := DecodeRequest(raw, Limits{Foreign: true})
		if err != nil {
			t.Fatalf("%v for %s", err, raw)
		}
		payload := call.(pep.Publish).Items[0].Payload
		want, err := pieces(raw, 4, map[string]string{"": nsClient})
		if err != nil {
			t.Fatal(err)
		}
		compare := func(what string, raw []byte, depth int) {
			got, err := pieces(raw, depth, map[string]string{"": nsClient})
			if err != nil {
				t.Fatalf("%s: %v in %s", what, err, raw)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Fatalf("%s (-want +got)\n%s\n%s\n%s", what, diff, raw, payload.Data)
			}
		}
		compare("stored", payload.Data, 0)
		page := pep.ItemsPage{Node: "n", Records: []vault.Record{{ID: "i", Payload: payload}}}
		result := AppendResult(nil, request, page)
		compare("in a result", result, 4)
		reply, err := DecodeReply(result, pep.Items{})
		if err != nil || !bytes.Equal(reply.(pep.ItemsPage).Records[0].Payload.Data, payload.Data) {
			t.Fatalf("read by a device: %v, %v", reply, err)
		}
		again, _, err := ForeignPayload(payload.Data)
		if err != nil || !bytes.Equal(again.Data, payload.Data) {
			t.Fatalf("%v: its form is %s\nnot itself %s", err, again.Data, payload.Data)
		}
	})
}

func TestRequestsComeBack(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		want := drawCall(t)
		raw := AppendRequest(nil, request, want)
		got, err := DecodeRequest(raw, Limits{Foreign: true})
		if err != nil {
			t.Fatalf("%v for %s", err, raw)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("%s (-want +got)\n%s", raw, diff)
		}
	})
}
