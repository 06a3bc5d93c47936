package wire

import (
	"bytes"
	"cmp"
	"encoding/xml"
	"errors"
	"io"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"pepvault/pep"
)

// Bounds that keep a hostile stanza (2 MiB, PROTOCOL §11) from costing more
// than its size; no real client comes near them.
const (
	maxDepth    = 256     // open elements
	maxScope    = 256     // namespace declarations in scope
	maxElements = 20_000  // outside payloads
	maxPayloads = 4 << 20 // bytes of all payloads of one stanza, together
)

// reader gives the tokens of one stanza with resolved names. It checks what
// raw tokens leave unchecked: matching end tags, unique attributes, prefixes,
// character references.
type reader struct {
	raw    []byte
	dec    *xml.Decoder
	limits Limits

	open  []open
	scope []binding // innermost last
	slab  []attr    // what the attrs of starts are cut from

	begin, end int // extent of the latest token in raw
	hasRefs    bool
	hasCR      bool

	elements   int
	payloads   int    // bytes so far
	inPayload  bool   // the next token belongs to a payload
	streamUsed bool   // the prefix of the stream header was resolved
	scratch    []byte // a payload in the making
	declared   []binding
}

type open struct {
	tag  xml.Name // as written
	mark int      // len(scope) outside
}

type binding struct{ prefix, uri string }

type attr struct{ space, local, prefix, value string }

// start is a start tag. attrs are sorted by expanded name and hold no
// declarations.
type start struct {
	name   name
	prefix string
	attrs  []attr
}

// What the stream header declares; the host's and the client's default
// namespace are one to us.
var streamScope = [...]binding{{"xml", nsXML}, {"stream", nsStreams}, {"", nsClient}}

const (
	scopeXML    = 0
	scopeStream = 1
)

func newReader(raw []byte, limits Limits) *reader {
	r := &reader{
		raw:     raw,
		dec:     xml.NewDecoder(bytes.NewReader(raw)),
		limits:  limits,
		hasRefs: bytes.Contains(raw, []byte("&#")),
		hasCR:   bytes.IndexByte(raw, '\r') >= 0,
		open:    make([]open, 0, 8),
		scope:   make([]binding, 0, 8),
		slab:    make([]attr, 0, 16),
	}
	r.scope = append(r.scope, streamScope[:]...)
	return r
}

// refuse blames the payload if the reader is in one, else the request.
func (r *reader) refuse(format string, args ...any) error {
	if r.inPayload {
		return pep.Refuse(pep.ErrInvalidPayload, format, args...)
	}
	return pep.Refuse(pep.ErrBadRequest, format, args...)
}

func malformed() error { return pep.Refuse(pep.ErrBadRequest, "the XML is not well-formed") }

// next returns a start, an xml.EndElement or an xml.CharData, which lasts until
// the next call. io.EOF comes only after the end tag of the stanza.
func (r *reader) next() (any, error) {
	r.begin = int(r.dec.InputOffset())
	token, err := r.dec.RawToken()
	r.end = int(r.dec.InputOffset())
	switch {
	case errors.Is(err, io.EOF) && len(r.open) == 0:
		return nil, io.EOF
	case err != nil:
		return nil, malformed()
	}
	switch t := token.(type) {
	case xml.StartElement:
		return r.start(t)
	case xml.EndElement:
		if len(r.open) == 0 || r.open[len(r.open)-1].tag != t.Name {
			return nil, malformed()
		}
		r.scope = r.scope[:r.open[len(r.open)-1].mark]
		r.open = r.open[:len(r.open)-1]
		return t, nil
	case xml.CharData:
		source := r.raw[r.begin:r.end]
		if r.hasRefs && !bytes.HasPrefix(source, []byte("<![CDATA[")) && !soundReferences(source) {
			return nil, malformed()
		}
		return t, nil
	}
	return nil, r.refuse("comments, processing instructions and declarations have no place in a stanza")
}

func (r *reader) start(t xml.StartElement) (start, error) {
	if len(r.open) >= maxDepth {
		return start{}, pep.Refuse(pep.ErrPolicy, "elements are nested deeper than %d levels", maxDepth)
	}
	if r.hasRefs && !soundReferences(r.raw[r.begin:r.end]) {
		return start{}, malformed()
	}
	r.open = append(r.open, open{tag: t.Name, mark: len(r.scope)})
	if err := r.declare(t.Attr); err != nil {
		return start{}, err
	}
	space, err := r.resolve(t.Name)
	if err != nil {
		return start{}, err
	}
	s := start{name: name{space, t.Name.Local}, prefix: t.Name.Space}
	s.attrs, err = r.attributes(t.Attr)
	return s, err
}

func isDeclaration(n xml.Name) bool {
	return n.Space == "xmlns" || n.Space == "" && n.Local == "xmlns"
}

// declare puts the declarations of a start tag in scope, but for those that
// change nothing.
func (r *reader) declare(attrs []xml.Attr) error {
	r.declared = r.declared[:0]
	for _, a := range attrs {
		if !isDeclaration(a.Name) {
			continue
		}
		b := binding{uri: a.Value}
		if a.Name.Space != "" {
			b.prefix = a.Name.Local
		}
		if err := r.checkBinding(b); err != nil {
			return err
		}
		if b == (binding{"", nsComponent}) && !r.inPayload {
			b.uri = nsClient
		}
		r.declared = append(r.declared, b)
	}
	for _, b := range r.declared {
		if old, _ := r.lookup(b.prefix); old < 0 || r.scope[old].uri != b.uri {
			r.scope = append(r.scope, b)
		}
	}
	if len(r.scope) > maxScope {
		return r.refuse("more than %d namespace declarations", maxScope)
	}
	return nil
}

// checkBinding holds b against Namespaces in XML 1.0 and against what this
// start tag has declared so far.
func (r *reader) checkBinding(b binding) error {
	if len(r.declared) >= maxScope {
		return r.refuse("more than %d namespace declarations", maxScope)
	}
	if slices.ContainsFunc(r.declared, func(d binding) bool { return d.prefix == b.prefix }) {
		return malformed()
	}
	switch {
	case b.prefix == "xmlns", b.uri == nsXMLNS, (b.prefix == "xml") != (b.uri == nsXML),
		b.prefix != "" && (b.uri == "" || !isLocalName(b.prefix)):
		return r.refuse("a namespace declaration breaks the rules of XML namespaces")
	case strings.ContainsAny(b.uri, "\t\n\r"):
		return r.refuse("a namespace name holds a line break or a tab")
	}
	return nil
}

// lookup returns the place of a prefix in the scope, -1 if it has none.
func (r *reader) lookup(prefix string) (int, string) {
	for i := len(r.scope) - 1; i >= 0; i-- {
		if r.scope[i].prefix == prefix {
			return i, r.scope[i].uri
		}
	}
	return -1, ""
}

func (r *reader) resolve(n xml.Name) (string, error) {
	i, uri := r.lookup(n.Space)
	if i < 0 {
		return "", r.refuse("a namespace prefix is not declared")
	}
	if i == scopeStream {
		r.streamUsed = true
	}
	if !isLocalName(n.Local) {
		return "", malformed()
	}
	return uri, nil
}

func (r *reader) attributes(attrs []xml.Attr) ([]attr, error) {
	first := len(r.slab)
	for _, a := range attrs {
		if isDeclaration(a.Name) {
			continue
		}
		resolved := attr{local: a.Name.Local, prefix: a.Name.Space, value: a.Value}
		switch {
		case a.Name.Space != "":
			space, err := r.resolve(a.Name)
			if err != nil {
				return nil, err
			}
			resolved.space = space
		case !isLocalName(a.Name.Local):
			return nil, malformed()
		}
		if r.inPayload && strings.ContainsAny(a.Value, "\t\n\r") {
			return nil, r.refuse("a tab or line break in an attribute would not survive the way to another device")
		}
		r.slab = append(r.slab, resolved)
	}
	own := r.slab[first:len(r.slab):len(r.slab)]
	slices.SortFunc(own, compareAttrs)
	for i := 1; i < len(own); i++ {
		if compareAttrs(own[i-1], own[i]) == 0 {
			return nil, malformed()
		}
	}
	return own, nil
}

func compareAttrs(a, b attr) int {
	return cmp.Or(strings.Compare(a.space, b.space), strings.Compare(a.local, b.local))
}

// isLocalName refuses what raw tokens let through as part of a name.
func isLocalName(s string) bool {
	return s != "" && (s[0] >= utf8.RuneSelf || s[0] == '_' || 'a' <= s[0]|0x20 && s[0]|0x20 <= 'z') &&
		strings.IndexByte(s, ':') < 0
}

// soundReferences reports whether the numeric references in a piece of source
// name no surrogate: encoding/xml would make U+FFFD of it. It catches every
// other bad one by itself.
func soundReferences(source []byte) bool {
	for {
		at := bytes.Index(source, []byte("&#"))
		if at < 0 {
			return true
		}
		source = source[at+2:]
		digits, _, _ := bytes.Cut(source, []byte(";"))
		base := 10
		if len(digits) > 0 && digits[0] == 'x' {
			digits, base = digits[1:], 16
		}
		n, err := strconv.ParseUint(string(digits), base, 32)
		if err == nil && 0xd800 <= n && n <= 0xdfff {
			return false
		}
	}
}
