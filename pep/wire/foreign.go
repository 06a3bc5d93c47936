package wire

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"slices"
	"strings"

	"pepvault/pep"
	"pepvault/vault"
)

// The canonical form of a foreign payload is an element that means the same
// wherever it is put: it declares on its root the default namespace and every
// prefix that was in scope, since content may name a prefix too. Below, only
// declarations that change something are kept. Declarations are sorted by
// prefix, attributes by expanded name: hosts shuffle them. CDATA becomes text.
// Prefixes stay. The form of a form is itself.

// ForeignPayload reads one element that stands alone and returns it in
// canonical form, with its key version. A default namespace that it does not
// declare is jabber:client. The error is as of [DecodeRequest].
func ForeignPayload(text []byte) (vault.Payload, uint32, error) {
	r := newReader(text, Limits{Foreign: true})
	r.inPayload = true
	kind, err := r.next()
	switch {
	case err != nil:
		return vault.Payload{}, 0, atEnd(err)
	case kind != startToken:
		return vault.Payload{}, 0, malformed()
	case r.start.name.space == nsRecord:
		return vault.Payload{}, 0, r.refuse("the namespace of records is no foreign one")
	}
	c, err := r.content(r.start)
	if err != nil {
		return vault.Payload{}, 0, atEnd(err)
	}
	if _, err = r.next(); !errors.Is(err, io.EOF) {
		return vault.Payload{}, 0, malformed()
	}
	return c.payload, c.keyVersion, nil
}

// atEnd makes an early end of the input an error of the request.
func atEnd(err error) error {
	if errors.Is(err, io.EOF) {
		return malformed()
	}
	return err
}

func (r *reader) foreign(s start) (content, error) {
	keyVersion, err := r.foreignKeyVersion(s)
	if err != nil {
		return content{}, err
	}
	r.scratch = r.scratch[:0]
	streamAt := r.openRoot(s)
	if err := r.copyContent(); err != nil {
		return content{}, err
	}
	if streamAt >= 0 && r.streamUsed {
		r.scratch = slices.Insert(r.scratch, streamAt, []byte(" xmlns:stream='"+nsStreams+"'")...)
	}
	if r.limits.RecordBytes > 0 && len(r.scratch) > r.limits.RecordBytes {
		return content{}, r.tooBig()
	}
	return content{payload: vault.Payload{Form: vault.Foreign, Data: bytes.Clone(r.scratch)}, keyVersion: keyVersion}, nil
}

// foreignKeyVersion reads the attribute key-version. What is no integer says
// nothing about a key; an integer that no key version can have is refused.
func (r *reader) foreignKeyVersion(s start) (uint32, error) {
	e := element{attrs: s.attrs}
	digits, negative := strings.CutPrefix(e.attr("key-version"), "-")
	if !negative {
		digits = strings.TrimPrefix(digits, "+")
	}
	if strings.Trim(digits, "0123456789") != "" {
		return 0, nil
	}
	digits = strings.TrimLeft(digits, "0")
	if digits == "" {
		return 0, nil
	}
	n, ok := parseCount(digits, vault.MaxKeyVersion)
	if negative || !ok {
		return 0, r.refuse("key-version is a number from 0 to %d", vault.MaxKeyVersion)
	}
	return uint32(n), nil
}

// openRoot writes the root's start tag without its ">". It returns where the
// declaration of the stream's prefix would stand, -1 if the stanza has its own.
func (r *reader) openRoot(s start) (streamAt int) {
	r.declared = r.declared[:0]
	streamAt = -1
	for i := len(r.scope) - 1; i > scopeXML; i-- {
		b := r.scope[i]
		if !slices.ContainsFunc(r.declared, func(d binding) bool { return d.prefix == b.prefix }) {
			r.declared = append(r.declared, b)
			if i == scopeStream {
				streamAt = 0
			}
		}
	}
	// Whether the prefix is in use shows only at the end of the payload.
	r.streamUsed = s.uses("stream")
	slices.SortFunc(r.declared, func(a, b binding) int { return strings.Compare(a.prefix, b.prefix) })
	r.scratch = appendName(append(r.scratch, '<'), s.prefix, s.name.local)
	for _, b := range r.declared {
		if b.prefix == "stream" && streamAt == 0 {
			streamAt = len(r.scratch)
			continue
		}
		r.scratch = appendBinding(r.scratch, b)
	}
	r.scratch = appendAttrs(r.scratch, s.attrs)
	return streamAt
}

func (s start) uses(prefix string) bool {
	return s.prefix == prefix || slices.ContainsFunc(s.attrs, func(a attr) bool { return a.prefix == prefix })
}

// copyContent writes what follows the root's start tag, up to and with its end.
func (r *reader) copyContent() error {
	tagOpen := true // the last start tag lacks its ">"
	for depth := len(r.open); len(r.open) >= depth; {
		if r.limits.RecordBytes > 0 && len(r.scratch) > r.limits.RecordBytes {
			return r.tooBig()
		}
		if len(r.scratch) > maxPayloads {
			return pep.Refuse(pep.ErrPayloadTooBig, "a payload may take %d bytes", maxPayloads)
		}
		if run := r.plainRun(); len(run) > 0 {
			r.closeStart(&tagOpen)
			r.scratch = append(r.scratch, run...)
		}
		kind, err := r.next()
		if err != nil {
			return err
		}
		switch {
		case kind == endToken:
			r.closeTag(r.tag, tagOpen)
			tagOpen = false
		case kind == startToken:
			r.closeStart(&tagOpen)
			r.openChild(r.start)
			tagOpen = true
		case len(r.text) > 0:
			r.closeStart(&tagOpen)
			if err := r.copyText(r.text); err != nil {
				return err
			}
		}
	}
	return nil
}

// closeStart ends a start tag whose element turns out to have content.
func (r *reader) closeStart(tagOpen *bool) {
	if *tagOpen {
		r.scratch = append(r.scratch, '>')
		*tagOpen = false
	}
}

func (r *reader) closeTag(tag xml.Name, tagOpen bool) {
	if tagOpen {
		r.scratch = append(r.scratch, "/>"...)
		return
	}
	r.scratch = appendName(append(r.scratch, "</"...), tag.Space, tag.Local)
	r.scratch = append(r.scratch, '>')
}

func (r *reader) openChild(s start) {
	r.scratch = appendName(append(r.scratch, '<'), s.prefix, s.name.local)
	own := r.scope[r.open[len(r.open)-1].mark:]
	slices.SortFunc(own, func(a, b binding) int { return strings.Compare(a.prefix, b.prefix) })
	for _, b := range own {
		r.scratch = appendBinding(r.scratch, b)
	}
	r.scratch = appendAttrs(r.scratch, s.attrs)
}

// copyText refuses CR, which hosts send on raw, so that the next reader takes
// it for a line feed. A raw one here has been through that already.
func (r *reader) copyText(text []byte) error {
	if bytes.IndexByte(text, '\r') >= 0 || r.hasCR && bytes.IndexByte(r.raw[r.begin:r.end], '\r') >= 0 {
		return r.refuse("a carriage return in text would not survive the way to another device")
	}
	r.scratch = appendText(r.scratch, text)
	return nil
}

func appendName(dst []byte, prefix, local string) []byte {
	if prefix != "" {
		dst = append(append(dst, prefix...), ':')
	}
	return append(dst, local...)
}

func appendBinding(dst []byte, b binding) []byte {
	dst = append(dst, " xmlns"...)
	if b.prefix != "" {
		dst = append(append(dst, ':'), b.prefix...)
	}
	return append(appendEscaped(append(dst, "='"...), b.uri, true), '\'')
}

func appendAttrs(dst []byte, attrs []attr) []byte {
	for _, a := range attrs {
		dst = appendName(append(dst, ' '), a.prefix, a.local)
		dst = append(appendEscaped(append(dst, "='"...), a.value, true), '\'')
	}
	return dst
}
