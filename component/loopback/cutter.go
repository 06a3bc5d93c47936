package loopback

import (
	"bytes"
	"errors"
)

// unit is what a cutter finds.
type unit int

const (
	unitNone   unit = iota // more bytes are needed
	unitOpen               // the stream's start tag
	unitStanza             // a whole child of the stream
	unitClose              // the stream's end tag
)

var (
	errTooLarge   = errors.New("stanza too large")
	errMarkup     = errors.New("not well-formed")
	errRestricted = errors.New("comment, processing instruction or declaration")
)

// cutter cuts a stream into its header and the children of its root. It counts
// tags and knows quotes and CDATA; whether names match is checked elsewhere.
type cutter struct {
	limit int
	buf   []byte
	start int // of the unit under way
	pos   int // scanned so far
	depth int // open elements, the stream among them
}

// space returns where the next bytes may be read to. What next returned before
// is void.
func (c *cutter) space() []byte {
	const chunk = 64 << 10
	if c.start > 0 {
		n := copy(c.buf, c.buf[c.start:])
		c.buf = c.buf[:n]
		c.pos -= c.start
		c.start = 0
	}
	if cap(c.buf)-len(c.buf) < chunk {
		grown := make([]byte, len(c.buf), 2*cap(c.buf)+chunk)
		copy(grown, c.buf)
		c.buf = grown
	}
	return c.buf[len(c.buf):cap(c.buf)]
}

// added says that n bytes were read into space.
func (c *cutter) added(n int) { c.buf = c.buf[:len(c.buf)+n] }

// next returns the next unit, lent until space is called.
func (c *cutter) next() (unit, []byte, error) {
	for {
		kind, err := c.step()
		if err != nil {
			return unitNone, nil, err
		}
		if c.pos-c.start > c.limit || kind == unitNone && len(c.buf)-c.start > c.limit {
			return unitNone, nil, errTooLarge
		}
		switch kind {
		case unitNone:
			return unitNone, nil, nil
		case unitInside:
			continue
		}
		raw := c.buf[c.start:c.pos]
		c.start = c.pos
		return kind, raw, nil
	}
}

// unitInside says that step went on without completing anything.
const unitInside unit = -1

// step scans to behind the next markup.
func (c *cutter) step() (unit, error) {
	if c.depth <= 1 {
		c.pos = skipSpace(c.buf, c.pos)
		c.start = c.pos
		if c.pos < len(c.buf) && c.buf[c.pos] != '<' {
			return unitNone, errMarkup
		}
	}
	open := bytes.IndexByte(c.buf[c.pos:], '<')
	if open < 0 {
		c.pos = len(c.buf)
		return unitNone, nil
	}
	c.pos += open
	rest := c.buf[c.pos:]
	if len(rest) < 2 {
		return unitNone, nil
	}
	switch rest[1] {
	case '!':
		return c.stepDeclaration(rest)
	case '?':
		return c.stepInstruction(rest)
	}
	size, err := tagSize(rest)
	if size == 0 || err != nil {
		return unitNone, err
	}
	c.pos += size
	return c.count(rest[:size])
}

// count follows the depth of the element whose tag was passed.
func (c *cutter) count(tag []byte) (unit, error) {
	switch {
	case tag[1] == '/':
		c.depth--
	case tag[len(tag)-2] == '/':
		if c.depth == 0 {
			return unitNone, errMarkup // a stream that is empty
		}
		if c.depth == 1 {
			return unitStanza, nil
		}
		return unitInside, nil
	default:
		c.depth++
		if c.depth == 1 {
			return unitOpen, nil
		}
		return unitInside, nil
	}
	switch {
	case c.depth < 0:
		return unitNone, errMarkup
	case c.depth == 0:
		return unitClose, nil
	case c.depth == 1:
		return unitStanza, nil
	}
	return unitInside, nil
}

var (
	cdataOpen  = []byte("<![CDATA[")
	cdataClose = []byte("]]>")
	xmlDecl    = []byte("<?xml ")
)

func (c *cutter) stepDeclaration(rest []byte) (unit, error) {
	if len(rest) < len(cdataOpen) && bytes.HasPrefix(cdataOpen, rest) {
		return unitNone, nil
	}
	if !bytes.HasPrefix(rest, cdataOpen) || c.depth < 2 {
		return unitNone, errRestricted
	}
	end := bytes.Index(rest, cdataClose)
	if end < 0 {
		return unitNone, nil
	}
	c.pos += end + len(cdataClose)
	return unitInside, nil
}

// stepInstruction passes the XML declaration before the stream.
func (c *cutter) stepInstruction(rest []byte) (unit, error) {
	if c.depth > 0 {
		return unitNone, errRestricted
	}
	if len(rest) < len(xmlDecl) && bytes.HasPrefix(xmlDecl, rest) {
		return unitNone, nil
	}
	if !bytes.HasPrefix(rest, xmlDecl) {
		return unitNone, errRestricted
	}
	end := bytes.IndexByte(rest, '>')
	if end < 0 {
		return unitNone, nil
	}
	c.pos += end + 1
	return unitInside, nil
}

// tagSize is the length of the tag that b begins with, 0 if it is not whole.
func tagSize(b []byte) (int, error) {
	for i := 1; i < len(b); i++ {
		switch b[i] {
		case '>':
			if i == 1 {
				return 0, errMarkup
			}
			return i + 1, nil
		case '<':
			return 0, errMarkup
		case '\'', '"':
			length := bytes.IndexByte(b[i+1:], b[i])
			if length < 0 {
				return 0, nil
			}
			i += length + 1
		}
	}
	return 0, nil
}
