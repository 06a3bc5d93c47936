package c2s

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"strings"
)

const (
	// maxStanza bounds one stanza: hosts send at most some 512 KiB, and
	// escaping may triple it.
	maxStanza = 8 << 20
	// keepBuffer is the size of the buffer that a quiet connection holds on to.
	keepBuffer = 4 << 10
)

var (
	errTooBig = errors.New("stanza is too big")
	errXML    = errors.New("not the XML of a stream")
)

// cutter cuts a stream behind its header into first-level elements. It looks
// for tags only and leaves it to the reader of a stanza to find fault with the
// inside: encoding/xml would take 20 ms for a vault of 350 KB, as long as the
// host that is to be measured.
type cutter struct {
	r    io.Reader
	buf  []byte
	head int // where the present stanza begins
	pos  int // all before it has been looked at
}

func newCutter(r io.Reader) *cutter {
	return &cutter{r: r, buf: make([]byte, 0, keepBuffer)}
}

// next returns the next stanza, or an error that is ErrEnded, of the reader,
// or about what came.
func (c *cutter) next() (Stanza, error) {
	var stanza Stanza
	for depth := 0; ; {
		kind, from, err := c.tag(depth == 0)
		if err != nil {
			return Stanza{}, err
		}
		if depth == 0 && (kind == opening || kind == empty) {
			c.head = from
			if stanza, err = header(c.buf[from:c.pos]); err != nil {
				return Stanza{}, err
			}
		}
		switch kind {
		case opening:
			depth++
			continue
		case closing:
			depth--
		case section:
			if depth == 0 {
				return Stanza{}, errXML
			}
			continue
		}
		if depth < 0 {
			return Stanza{}, fmt.Errorf("%w: it said good-bye", ErrEnded)
		}
		if depth > 0 {
			continue
		}
		stanza.Raw = bytes.Clone(c.buf[c.head:c.pos])
		c.head = c.pos
		if stanza.Name == "stream:error" {
			return Stanza{}, fmt.Errorf("%w: %s", ErrEnded, streamCondition(stanza.Raw))
		}
		return stanza, nil
	}
}

type tagKind int

const (
	opening tagKind = iota
	closing
	empty
	section // CDATA
)

// tag finds the next tag: it begins at from and ends at c.pos. Between
// stanzas, what lies before it is dropped.
func (c *cutter) tag(between bool) (kind tagKind, from int, err error) {
	for {
		i := bytes.IndexByte(c.buf[c.pos:], '<')
		if i >= 0 {
			c.pos += i
			break
		}
		c.pos = len(c.buf)
		if between {
			c.head = c.pos
		}
		if err := c.fill(); err != nil {
			return 0, 0, err
		}
	}
	if between {
		c.head = c.pos
	}
	for {
		kind, length, err := measure(c.buf[c.pos:])
		if err != nil {
			return 0, 0, err
		}
		if length > 0 {
			from = c.pos
			c.pos += length
			return kind, from, nil
		}
		if err := c.fill(); err != nil { // moves c.pos
			return 0, 0, err
		}
	}
}

// measure tells what the tag at the beginning of text is and how long; 0 if
// it is not all there.
func measure(text []byte) (tagKind, int, error) {
	const cdata, cdataEnd = "<![CDATA[", "]]>"
	if len(text) < 2 {
		return 0, 0, nil
	}
	switch text[1] {
	case '/':
		return closing, bytes.IndexByte(text, '>') + 1, nil
	case '!':
		if n := min(len(text), len(cdata)); string(text[:n]) != cdata[:n] {
			return 0, 0, errXML // comments have no place in a stream
		}
		end := bytes.Index(text, []byte(cdataEnd))
		if end < 0 {
			return section, 0, nil
		}
		return section, end + len(cdataEnd), nil
	case '?':
		return 0, 0, errXML
	}
	var quote byte
	for i, b := range text {
		switch {
		case quote != 0:
			if b == quote {
				quote = 0
			}
		case b == '"' || b == '\'':
			quote = b
		case b == '>':
			if text[i-1] == '/' {
				return empty, i + 1, nil
			}
			return opening, i + 1, nil
		}
	}
	return opening, 0, nil
}

// fill reads more. It may move what is in the buffer to its beginning.
func (c *cutter) fill() error {
	held := len(c.buf) - c.head
	if held > maxStanza {
		return errTooBig
	}
	if room := cap(c.buf); held == 0 || len(c.buf) == room {
		switch {
		case held == 0 && room > keepBuffer:
			c.buf = make([]byte, 0, keepBuffer)
		case held > room/2:
			c.buf = append(make([]byte, 0, 2*room), c.buf[c.head:]...)
		default:
			c.buf = append(c.buf[:0], c.buf[c.head:]...)
		}
		c.pos -= c.head
		c.head = 0
	}
	n, err := c.r.Read(c.buf[len(c.buf):cap(c.buf)])
	c.buf = c.buf[:len(c.buf)+n]
	switch {
	case n > 0:
		return nil
	case err == nil:
		return io.ErrNoProgress
	case errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF):
		return fmt.Errorf("%w: connection lost", ErrEnded)
	}
	return err
}

// header reads a start tag.
func header(tag []byte) (Stanza, error) {
	token, err := xml.NewDecoder(bytes.NewReader(tag)).RawToken()
	if err != nil {
		return Stanza{}, err
	}
	start, ok := token.(xml.StartElement)
	if !ok {
		return Stanza{}, errXML
	}
	s := Stanza{Name: start.Name.Local}
	if start.Name.Space != "" { // RawToken leaves the prefix there
		s.Name = start.Name.Space + ":" + start.Name.Local
	}
	for _, a := range start.Attr {
		if a.Name.Space != "" {
			continue
		}
		switch a.Name.Local {
		case "type":
			s.Type = a.Value
		case "from":
			s.From = a.Value
		case "to":
			s.To = a.Value
		case "id":
			s.ID = a.Value
		}
	}
	return s, nil
}

// streamCondition names the condition of a stream error (RFC 6120 §4.9) and
// gives its text.
func streamCondition(raw []byte) string {
	var e struct {
		Children []struct {
			XMLName xml.Name
			Text    string `xml:",chardata"`
		} `xml:",any"`
	}
	if err := xml.Unmarshal(raw, &e); err != nil {
		return "unreadable stream error"
	}
	var words []string
	for _, child := range e.Children {
		if child.XMLName.Local == "text" {
			words = append(words, "("+child.Text+")")
		} else {
			words = append(words, child.XMLName.Local)
		}
	}
	return strings.Join(words, " ")
}

var escaper = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", "'", "&apos;", `"`, "&quot;",
	"\t", "&#9;", "\n", "&#10;", "\r", "&#13;")

// escape makes text fit for an attribute in either quotes.
func escape(text string) string { return escaper.Replace(text) }
