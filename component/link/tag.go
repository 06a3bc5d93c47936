package link

import (
	"bytes"
	"errors"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

const nsXML = "http://www.w3.org/XML/1998/namespace"

var errTag = errors.New("a broken start tag")

// names reads tags: it resolves prefixes and keeps the words that come in
// every stanza, so that they cost nothing.
type names struct {
	stream map[string]string // prefix → namespace, by the stream's start tag
	scopes []scope           // of the stanza, its first child and that one's
	known  map[string]string
	raw    []byte // the stanza's name as it stands in its start tag; nil: not known
}

type scope struct{ prefix, space string }

// knownWords and knownBytes bound what is kept: hosts say few words often, and
// users may say any number once.
const (
	knownWords = 256
	knownBytes = 64
)

func newNames(stream map[string]string) names {
	if stream == nil {
		stream = map[string]string{"": NSComponent, "stream": NSStream}
	}
	return names{stream: stream, known: make(map[string]string)}
}

func (n *names) reset() { n.scopes = n.scopes[:0] }

// stanza reads the name and the attributes of a stanza's start tag. On an error
// s has what stands before the fault.
func (n *names) stanza(tag []byte, s *Stanza) error {
	name, attrs, ok := cutName(tag[1:])
	if !ok {
		n.raw = nil
		return errTag
	}
	n.raw = append(n.raw[:0], name...)
	var err error
	var seen [len(attributes)]bool
	for len(attrs) > 0 && err == nil {
		var key, value []byte
		if key, value, attrs, err = cutAttr(attrs); err != nil || key == nil {
			break
		}
		if n.declare(key, value) {
			continue
		}
		i := slices.IndexFunc(attributes[:], func(a attribute) bool { return a.name == string(key) })
		switch {
		case i < 0:
		case seen[i]:
			err = errors.New("an attribute twice")
		default:
			seen[i] = true
			*attributes[i].field(s) = n.word(value, attributes[i].recurs)
		}
	}
	s.Name = n.resolve(name)
	return err
}

type attribute struct {
	name   string
	recurs bool // few values, in many stanzas
	field  func(*Stanza) *string
}

var attributes = [...]attribute{
	{"from", false, func(s *Stanza) *string { return &s.From }},
	{"to", true, func(s *Stanza) *string { return &s.To }},
	{"id", false, func(s *Stanza) *string { return &s.ID }},
	{"type", true, func(s *Stanza) *string { return &s.Type }},
	{"xml:lang", true, func(s *Stanza) *string { return &s.Lang }},
}

// element is the name of a child, read from its start tag; its declarations
// count for what is inside.
func (n *names) element(tag []byte) Name {
	name, attrs, _ := cutName(tag[1:])
	for len(attrs) > 0 {
		key, value, rest, err := cutAttr(attrs)
		if err != nil || key == nil {
			break
		}
		n.declare(key, value)
		attrs = rest
	}
	return n.resolve(name)
}

// ends tells whether an end tag with this name ends the stanza.
func (n *names) ends(name []byte) bool {
	return n.raw == nil || bytes.Equal(name, n.raw)
}

// declare takes a namespace declaration, and tells whether it was one.
func (n *names) declare(key, value []byte) bool {
	rest, ok := bytes.CutPrefix(key, []byte("xmlns"))
	if !ok || len(rest) > 0 && rest[0] != ':' {
		return false
	}
	n.scopes = append(n.scopes, scope{n.intern(bytes.TrimPrefix(rest, []byte(":"))), n.word(value, true)})
	return true
}

func (n *names) resolve(name []byte) Name {
	prefix, local, ok := bytes.Cut(name, []byte(":"))
	if !ok || len(prefix) == 0 || len(local) == 0 {
		prefix, local = nil, name
	}
	return Name{n.space(prefix), n.intern(local)}
}

func (n *names) space(prefix []byte) string {
	if string(prefix) == "xml" {
		return nsXML
	}
	for i := len(n.scopes) - 1; i >= 0; i-- {
		if n.scopes[i].prefix == string(prefix) {
			return n.scopes[i].space
		}
	}
	if space, ok := n.stream[string(prefix)]; ok {
		return space
	}
	return n.intern(prefix) // undeclared: as encoding/xml has it
}

// word is an attribute's value.
func (n *names) word(value []byte, recurs bool) string {
	if recurs && bytes.IndexByte(value, '&') < 0 {
		return n.intern(value)
	}
	return unescape(value)
}

func (n *names) intern(b []byte) string {
	if s, ok := n.known[string(b)]; ok {
		return s
	}
	s := string(b)
	if len(n.known) < knownWords && len(s) <= knownBytes {
		n.known[s] = s
	}
	return s
}

// cutName splits a tag behind its name; not ok if the name is not complete.
func cutName(tag []byte) (name, rest []byte, ok bool) {
	for i, c := range tag {
		if isSpace(c) || c == '/' || c == '>' {
			return tag[:i], tag[i:], true
		}
	}
	return tag, nil, false
}

// cutAttr splits the first attribute off; key is nil at the end of the tag.
func cutAttr(tag []byte) (key, value, rest []byte, err error) {
	tag = trimSpace(tag)
	if len(tag) == 0 {
		return nil, nil, nil, errTag
	}
	if tag[0] == '>' || tag[0] == '/' {
		return nil, nil, nil, nil
	}
	eq := bytes.IndexByte(tag, '=')
	if eq <= 0 {
		return nil, nil, nil, errTag
	}
	key = bytes.TrimRight(tag[:eq], " \t\r\n")
	if len(key) == 0 || bytes.ContainsAny(key, " \t\r\n'\"/>") {
		return nil, nil, nil, errTag
	}
	tag = trimSpace(tag[eq+1:])
	if len(tag) == 0 || tag[0] != '"' && tag[0] != '\'' {
		return nil, nil, nil, errTag
	}
	end := bytes.IndexByte(tag[1:], tag[0])
	if end < 0 {
		return nil, nil, nil, errTag
	}
	return key, tag[1 : 1+end], tag[1+end+1:], nil
}

func trimSpace(b []byte) []byte {
	for len(b) > 0 && isSpace(b[0]) {
		b = b[1:]
	}
	return b
}

var entities = map[string]string{"lt": "<", "gt": ">", "amp": "&", "apos": "'", "quot": `"`}

// unescape resolves the five entities of XML and character references. All
// else stays as it is.
func unescape(value []byte) string {
	i := bytes.IndexByte(value, '&')
	if i < 0 {
		return string(value)
	}
	var out strings.Builder
	for ; i >= 0; i = bytes.IndexByte(value, '&') {
		out.Write(value[:i])
		value = value[i:]
		end := bytes.IndexByte(value[:min(len(value), longestReference)], ';')
		if char, ok := reference(value, end); ok {
			out.WriteString(char)
			value = value[end+1:]
		} else {
			out.WriteByte('&')
			value = value[1:]
		}
	}
	out.Write(value)
	return out.String()
}

// longestReference leaves room for leading zeros, not for any number of them.
const longestReference = 32

// reference is what value[1:end] stands for.
func reference(value []byte, end int) (string, bool) {
	if end < 2 {
		return "", false
	}
	name := string(value[1:end])
	digits, isNumber := strings.CutPrefix(name, "#")
	if !isNumber {
		char, ok := entities[name]
		return char, ok
	}
	base := 10
	if hex, ok := strings.CutPrefix(digits, "x"); ok {
		digits, base = hex, 16
	}
	code, err := strconv.ParseUint(digits, base, 32)
	char := rune(code)
	if err != nil || code > utf8.MaxRune || !isChar(char) {
		return "", false
	}
	return string(char), true
}

// isChar tells whether XML 1.0 §2.2 has the character.
func isChar(c rune) bool {
	return c == '\t' || c == '\n' || c == '\r' ||
		c >= ' ' && c <= 0xD7FF || c >= 0xE000 && c <= 0xFFFD || c >= 0x10000
}

func isSpace(c byte) bool { return c == ' ' || c == '\n' || c == '\t' || c == '\r' }

func isNameStart(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '_' || c == ':' || c >= utf8.RuneSelf
}
