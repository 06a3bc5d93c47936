package hosttest

import (
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// Match compares a stanza with what was expected, by meaning: element names
// with their namespaces, attributes in any order, text exactly. Prefixes,
// quotes and the writing of empty elements don't count, nor does white space
// between elements. Elements without a namespace are of jabber:client.
//
// In want, an attribute value or a text "*" stands for any; an element whose
// content is "*" may hold anything. "$name" stands for the value of the
// variable; if it has none yet, a value or text that is just "$name" gives it
// one. "$$" is a dollar sign. On the stanza itself, attributes `to` and
// `xml:lang` that want does not name are passed over: hosts put them there.
//
// The error names the first difference. Variables are bound only if all
// matches.
func Match(want string, got []byte, vars Vars) error {
	w, err := parse(want)
	if err != nil {
		return fmt.Errorf("the expectation %s: %w", want, err)
	}
	g, err := parse(string(got))
	if err != nil {
		return fmt.Errorf("%s: %w", got, err)
	}
	m := match{vars: maps.Clone(vars)}
	if m.vars == nil {
		m.vars = Vars{}
	}
	if err := m.element("", w, g); err != nil {
		return fmt.Errorf("%w\n got: %s\nwant: %s", err, got, want)
	}
	maps.Copy(vars, m.vars)
	return nil
}

// Vars are the variables of expectations and scripts, by name without "$".
type Vars map[string]string

var (
	variable  = regexp.MustCompile(`\$(?:\$|[A-Za-z][A-Za-z0-9_]*|\{[A-Za-z][A-Za-z0-9_]*\})`)
	errUnset  = errors.New("variable without a value")
	nsDefault = "jabber:client"
)

// Expand replaces the variables in s. One without a value is an error. In XML,
// a value with special characters must be of the escaped form already.
func (v Vars) Expand(s string) (string, error) {
	var unset error
	expanded := variable.ReplaceAllStringFunc(s, func(found string) string {
		if found == "$$" {
			return "$"
		}
		value, ok := v[name(found)]
		if !ok {
			unset = fmt.Errorf("%w: %s", errUnset, found)
		}
		return value
	})
	return expanded, unset
}

func name(found string) string { return strings.Trim(found, "${}") }

// node is an element.
type node struct {
	name     xml.Name
	attrs    map[xml.Name]string
	children []*node
	texts    []string // texts[i] stands before children[i]; one more at the end
}

func parse(text string) (*node, error) {
	d := xml.NewDecoder(strings.NewReader(text))
	d.DefaultSpace = nsDefault
	var root *node
	var open []*node
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) && root != nil {
			return root, nil
		}
		if err != nil {
			return nil, err
		}
		switch t := token.(type) {
		case xml.StartElement:
			n := newNode(t)
			if len(open) == 0 {
				if root != nil {
					return nil, errors.New("more than one element")
				}
				root = n
			} else {
				open[len(open)-1].add(n)
			}
			open = append(open, n)
		case xml.EndElement:
			open = open[:len(open)-1]
		case xml.CharData:
			if len(open) > 0 {
				n := open[len(open)-1]
				n.texts[len(n.texts)-1] += string(t)
			}
		}
	}
}

func newNode(t xml.StartElement) *node {
	n := &node{name: t.Name, attrs: map[xml.Name]string{}, texts: []string{""}}
	for _, a := range t.Attr {
		if a.Name.Space == "xmlns" || a.Name.Space == "" && a.Name.Local == "xmlns" {
			continue
		}
		n.attrs[a.Name] = a.Value
	}
	return n
}

func (n *node) add(child *node) {
	n.children = append(n.children, child)
	n.texts = append(n.texts, "")
}

func (n *node) text() string { return strings.Join(n.texts, "") }

// match is one comparison.
type match struct{ vars Vars }

func (m *match) element(path string, want, got *node) error {
	if want.name != got.name {
		return fmt.Errorf("%s: got element %s, want %s", orRoot(path), show(got.name), show(want.name))
	}
	isRoot := path == ""
	path += "/" + want.name.Local
	if err := m.attrs(path, want, got, isRoot); err != nil {
		return err
	}
	if len(want.children) == 0 && want.text() == "*" {
		return nil
	}
	if len(want.children) != len(got.children) {
		return fmt.Errorf("%s: got %d children %s, want %d %s", path,
			len(got.children), names(got), len(want.children), names(want))
	}
	if len(want.children) == 0 {
		return m.value(path, want.text(), got.text())
	}
	for i, child := range want.children {
		if err := m.between(path, want.texts[i], got.texts[i]); err != nil {
			return err
		}
		if err := m.element(path, child, got.children[i]); err != nil {
			return err
		}
	}
	return m.between(path, want.texts[len(want.children)], got.texts[len(want.children)])
}

// between compares text beside elements.
func (m *match) between(path, want, got string) error {
	if strings.TrimSpace(want) == "" && strings.TrimSpace(got) == "" {
		return nil
	}
	return m.value(path, want, got)
}

func (m *match) attrs(path string, want, got *node, isRoot bool) error {
	for _, name := range sorted(want.attrs) {
		value, ok := got.attrs[name]
		if !ok {
			return fmt.Errorf("%s: attribute %s is missing", path, show(name))
		}
		if err := m.value(path+"@"+name.Local, want.attrs[name], value); err != nil {
			return err
		}
	}
	for _, name := range sorted(got.attrs) {
		if _, ok := want.attrs[name]; ok || isRoot && fromHost(name) {
			continue
		}
		return fmt.Errorf("%s: unexpected attribute %s=%q", path, show(name), got.attrs[name])
	}
	return nil
}

// fromHost says whether hosts put the attribute on stanzas.
func fromHost(name xml.Name) bool {
	return name == xml.Name{Local: "to"} ||
		name.Local == "lang" && (name.Space == "xml" || name.Space == "http://www.w3.org/XML/1998/namespace")
}

func (m *match) value(path, want, got string) error {
	if want == "*" {
		return nil
	}
	expanded, err := m.vars.Expand(want)
	if err != nil {
		if variable.FindString(want) != want {
			return fmt.Errorf("%s: %w", path, err)
		}
		m.vars[name(want)] = got
		return nil
	}
	if expanded != got {
		return fmt.Errorf("%s: got %q, want %q", path, got, expanded)
	}
	return nil
}

func orRoot(path string) string {
	if path == "" {
		return "stanza"
	}
	return path
}

func show(name xml.Name) string {
	if name.Space == "" || name.Space == nsDefault {
		return name.Local
	}
	return "{" + name.Space + "}" + name.Local
}

func names(n *node) string {
	var all []string
	for _, child := range n.children {
		all = append(all, show(child.name))
	}
	return "[" + strings.Join(all, " ") + "]"
}

func sorted(attrs map[xml.Name]string) []xml.Name {
	return slices.SortedFunc(maps.Keys(attrs), func(a, b xml.Name) int {
		return strings.Compare(a.Space+" "+a.Local, b.Space+" "+b.Local)
	})
}
