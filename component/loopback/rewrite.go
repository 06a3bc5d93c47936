package loopback

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode/utf8"
)

// rewrite reads one element of a stream with the given default namespace and
// writes it as Prosody does (util.xmppstream, util.stanza): names without
// prefixes, `xmlns` where the namespace changes, attributes in random order
// and single quotes, the five special characters escaped everywhere, CR and
// TAB raw. set replaces attributes of the root. It fails for what is not
// well-formed or not one element.
//
// Prosody would also turn a literal TAB or LF in an attribute into a space;
// that is not done here.
func (h *Host) rewrite(raw []byte, space string, set map[string]string) ([]byte, error) {
	w := writer{
		random: h.random,
		in:     xml.NewDecoder(bytes.NewReader(raw)),
		out:    bytes.NewBuffer(make([]byte, 0, len(raw)+len(raw)/4+64)),
		space:  space,
		set:    set,
	}
	w.bind("", space)
	w.bind("stream", nsStream)
	w.bind("xml", nsXML)
	for {
		token, err := w.in.RawToken()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		if err := w.token(token); err != nil {
			return nil, err
		}
	}
	if !w.done || len(w.open) > 0 {
		return nil, errMarkup
	}
	return w.out.Bytes(), nil
}

// writer is one rewriting.
type writer struct {
	random *random
	in     *xml.Decoder
	out    *bytes.Buffer
	space  string
	set    map[string]string

	bindings []binding // innermost last
	open     []element
	foreign  int  // open elements from the first one that is not of space
	pending  bool // the last start tag lacks its ">"
	done     bool // the root was closed
}

type binding struct{ prefix, space string }

// element is an open element: its name as read, and what Prosody keeps as its
// xmlns attribute.
type element struct {
	name     xml.Name
	local    string
	xmlns    string
	declared bool // xmlns is kept
	bindings int  // to go back to
}

func (w *writer) bind(prefix, space string) {
	w.bindings = append(w.bindings, binding{prefix, space})
}

func (w *writer) resolve(prefix string) (string, error) {
	for i := len(w.bindings) - 1; i >= 0; i-- {
		if w.bindings[i].prefix == prefix {
			return w.bindings[i].space, nil
		}
	}
	return "", fmt.Errorf("%w: prefix %q is not declared", errMarkup, prefix)
}

func (w *writer) token(token xml.Token) error {
	switch t := token.(type) {
	case xml.StartElement:
		return w.start(t)
	case xml.EndElement:
		return w.end(t)
	case xml.CharData:
		if len(w.open) == 0 {
			if len(bytes.TrimSpace(t)) > 0 {
				return errMarkup
			}
			return nil
		}
		if len(t) > 0 {
			w.closeTag()
			w.out.WriteString(escape(string(t)))
		}
		return nil
	}
	return errRestricted
}

func (w *writer) closeTag() {
	if w.pending {
		w.out.WriteByte('>')
		w.pending = false
	}
}

func (w *writer) start(t xml.StartElement) error {
	if w.done {
		return fmt.Errorf("%w: more than one element", errMarkup)
	}
	if !namesWell(t) {
		return fmt.Errorf("%w: a name", errMarkup)
	}
	e := element{name: t.Name, local: t.Name.Local, bindings: len(w.bindings)}
	if err := w.declare(t); err != nil {
		return err
	}
	space, err := w.resolve(t.Name.Space)
	if err != nil {
		return err
	}
	if space != w.space || w.foreign > 0 {
		e.xmlns, e.declared = space, true
		w.foreign++
	}
	attrs, err := w.attrs(t, e)
	if err != nil {
		return err
	}
	w.closeTag()
	w.out.WriteString("<" + e.local)
	for _, a := range attrs {
		w.out.WriteString(a)
	}
	w.pending = true
	w.open = append(w.open, e)
	return nil
}

// declare binds the prefixes that a start tag declares (Namespaces in XML 1.0,
// §3 and §5).
func (w *writer) declare(t xml.StartElement) error {
	for _, a := range t.Attr {
		prefix := a.Name.Local
		switch {
		case a.Name.Space == "" && prefix == "xmlns":
			prefix = ""
		case a.Name.Space != "xmlns":
			continue
		case a.Value == "":
			return fmt.Errorf("%w: empty namespace for a prefix", errMarkup)
		}
		if prefix == "xmlns" || a.Value == nsXMLNS || (prefix == "xml") != (a.Value == nsXML) {
			return fmt.Errorf("%w: reserved prefix or namespace", errMarkup)
		}
		w.bind(prefix, a.Value)
	}
	return nil
}

// attrs returns the attributes of a start tag as they will be written.
func (w *writer) attrs(t xml.StartElement, e element) ([]string, error) {
	isRoot := len(w.open) == 0
	var attrs []string
	add := func(name, value string) { attrs = append(attrs, " "+name+"='"+escape(value)+"'") }
	if parent, ok := w.parent(); e.declared && !(ok && parent.declared && parent.xmlns == e.xmlns) {
		add("xmlns", e.xmlns)
	}
	seen := make(map[xml.Name]bool, len(t.Attr))
	foreign := 0
	for _, a := range t.Attr {
		if a.Name.Space == "xmlns" || a.Name.Space == "" && a.Name.Local == "xmlns" {
			if seen[a.Name] {
				return nil, fmt.Errorf("%w: duplicate attribute", errMarkup)
			}
			seen[a.Name] = true
			continue
		}
		name := a.Name
		if name.Space != "" {
			space, err := w.resolve(name.Space)
			if err != nil {
				return nil, err
			}
			name.Space = space
		}
		if seen[name] {
			return nil, fmt.Errorf("%w: duplicate attribute", errMarkup)
		}
		seen[name] = true
		switch {
		case isRoot && name.Space == "" && w.replaced(name.Local):
		case name.Space == "":
			add(name.Local, a.Value)
		case name.Space == nsXML:
			add("xml:"+name.Local, a.Value)
		default:
			foreign++
			prefix := "ns" + strconv.Itoa(foreign)
			attrs = append(attrs, " xmlns:"+prefix+"='"+escape(name.Space)+"' "+prefix+":"+name.Local+"='"+escape(a.Value)+"'")
		}
	}
	if isRoot {
		for name, value := range w.set {
			add(name, value)
		}
		if !seen[xml.Name{Space: nsXML, Local: "lang"}] {
			add("xml:lang", "en")
		}
	}
	w.random.shuffle(len(attrs), func(i, j int) { attrs[i], attrs[j] = attrs[j], attrs[i] })
	return attrs, nil
}

func (w *writer) replaced(name string) bool {
	_, ok := w.set[name]
	return ok
}

func (w *writer) parent() (element, bool) {
	if len(w.open) == 0 {
		return element{}, false
	}
	return w.open[len(w.open)-1], true
}

func (w *writer) end(t xml.EndElement) error {
	e, ok := w.parent()
	if !ok || e.name != t.Name {
		return fmt.Errorf("%w: end tag %s", errMarkup, strings.TrimPrefix(t.Name.Space+":"+t.Name.Local, ":"))
	}
	if w.pending {
		w.out.WriteString("/>")
		w.pending = false
	} else {
		w.out.WriteString("</" + e.local + ">")
	}
	w.open = w.open[:len(w.open)-1]
	w.bindings = w.bindings[:e.bindings]
	if w.foreign > 0 && e.declared {
		w.foreign--
	}
	w.done = len(w.open) == 0
	return nil
}

// namesWell reports whether the local parts of prefixed names begin as names
// do: raw tokens check only what stands before the colon.
func namesWell(t xml.StartElement) bool {
	for _, a := range t.Attr {
		if !beginsWell(a.Name) {
			return false
		}
	}
	return beginsWell(t.Name)
}

func beginsWell(n xml.Name) bool {
	if n.Space == "" {
		return true
	}
	first, _ := utf8.DecodeRuneInString(n.Local)
	switch {
	case first == '-', first == '.', '0' <= first && first <= '9', first == 0xb7,
		0x300 <= first && first <= 0x36f, 0x203f <= first && first <= 0x2040:
		return false
	}
	return true
}
