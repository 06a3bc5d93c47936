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
	maxAttrs    = 1000    // of one element, declarations included
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

	// The latest token: what next has returned says which of them.
	start start
	text  []byte
	tag   xml.Name // of an end

	open  []open
	scope []binding // innermost last
	slab  []attr    // what the attrs of starts are cut from

	begin, end int // extent of the latest token in raw
	passed     int // bytes that plainRun took, which dec has not seen
	last       tokenKind
	hasRefs    bool
	hasCR      bool

	elements   int
	payloads   int    // bytes so far
	inPayload  bool   // the next token belongs to a payload
	streamUsed bool   // the prefix of the stream header was resolved
	scratch    []byte // a payload in the making
	declared   []binding

	// What a usual stanza needs, in one piece with the reader.
	source    bytes.Reader
	openRoom  [8]open
	scopeRoom [8]binding
	slabRoom  [12]attr
}

// tokenKind says what next has read.
type tokenKind uint8

const (
	startToken tokenKind = iota + 1
	endToken
	textToken
)

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
		limits:  limits,
		hasRefs: bytes.Contains(raw, []byte("&#")),
		hasCR:   bytes.IndexByte(raw, '\r') >= 0,
	}
	r.source.Reset(raw)
	r.dec = xml.NewDecoder(&r.source)
	r.open, r.slab = r.openRoom[:0], r.slabRoom[:0]
	r.scope = append(r.scopeRoom[:0], streamScope[:]...)
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

// next reads a token into start, tag or text, which lasts until the next call.
// io.EOF comes only after the end tag of the stanza.
func (r *reader) next() (tokenKind, error) {
	r.begin = int(r.dec.InputOffset()) + r.passed
	raw, err := r.dec.RawToken()
	r.end = int(r.dec.InputOffset()) + r.passed
	r.last = 0
	switch {
	case err == nil:
	case errors.Is(err, io.EOF) && len(r.open) == 0:
		return 0, io.EOF
	default:
		return 0, malformed()
	}
	switch t := raw.(type) {
	case xml.StartElement:
		r.last = startToken
		return startToken, r.enter(t)
	case xml.EndElement:
		if len(r.open) == 0 || r.open[len(r.open)-1].tag != t.Name {
			return 0, malformed()
		}
		r.scope = r.scope[:r.open[len(r.open)-1].mark]
		r.open = r.open[:len(r.open)-1]
		r.tag, r.last = t.Name, endToken
		return endToken, nil
	case xml.CharData:
		source := r.raw[r.begin:r.end]
		if r.hasRefs && !bytes.HasPrefix(source, []byte("<![CDATA[")) && !soundReferences(source) {
			return 0, malformed()
		}
		r.text = t
		return textToken, nil
	}
	return 0, r.refuse("comments, processing instructions and declarations have no place in a stanza")
}

// plainRun returns text that needs no decoding, from behind the latest tag, and
// moves on past it; the rest of the text, if any, is the next token. Payloads
// are mostly such text, and raw tokens take it byte by byte. This rests on a
// promise of xml.NewDecoder: it keeps no buffer before an io.ByteReader.
func (r *reader) plainRun() []byte {
	// An empty-element tag has its end still to come, and behind text the
	// decoder has read one byte ahead.
	if r.last == 0 || r.last == startToken && r.raw[r.end-2] == '/' {
		return nil
	}
	r.last = 0
	n := 0
	for rest := r.raw[r.end:]; n < len(rest) && inRun[rest[n]]; n++ {
	}
	run := r.raw[r.end : r.end+n]
	r.source.Reset(r.raw[r.end+n:])
	r.passed += n
	r.end += n
	return run
}

// inRun are the bytes of a plain run. "]" may begin a "]]>", which raw tokens
// refuse.
var inRun = func() (t [256]bool) {
	for b := range 0x80 {
		t[b] = plain[b] || b == '\'' || b == '\t' || b == '\n'
	}
	t[']'] = false
	return t
}()

// enter opens an element and resolves its names.
func (r *reader) enter(t xml.StartElement) error {
	if len(r.open) >= maxDepth {
		return pep.Refuse(pep.ErrPolicy, "elements are nested deeper than %d levels", maxDepth)
	}
	if r.hasRefs && !soundReferences(r.raw[r.begin:r.end]) {
		return malformed()
	}
	if !namesWell(t) {
		return malformed()
	}
	if len(t.Attr) > maxAttrs {
		return r.refuse("an element has more than %d attributes", maxAttrs)
	}
	r.open = append(r.open, open{tag: t.Name, mark: len(r.scope)})
	if err := r.declare(t.Attr); err != nil {
		return err
	}
	space, err := r.resolve(t.Name)
	if err != nil {
		return err
	}
	r.start.name, r.start.prefix = name{space, t.Name.Local}, t.Name.Space
	r.start.attrs, err = r.attributes(t.Attr)
	return err
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
	if len(own) > 1 {
		slices.SortFunc(own, compareAttrs)
	}
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
