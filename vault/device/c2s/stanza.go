package c2s

import (
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"strings"
)

// maxStanza bounds one stanza: hosts send at most some 512 KiB, and escaping
// may triple it.
const maxStanza = 8 << 20

// keepBuffer is the largest buffer that a quiet connection holds on to.
const keepBuffer = 16 << 10

var errTooBig = errors.New("stanza is too big")

// cutter cuts a stream behind its header into first-level elements.
type cutter struct {
	decoder *xml.Decoder
	tap     *tap
}

func newCutter(r byteReader) *cutter {
	tap := &tap{r: r}
	return &cutter{decoder: xml.NewDecoder(tap), tap: tap}
}

// next returns the next stanza, or an error that is ErrEnded or the reader's.
func (c *cutter) next() (Stanza, error) {
	var stanza Stanza
	var start int64
	for depth := 0; ; {
		before := c.decoder.InputOffset()
		token, err := c.decoder.RawToken()
		if err != nil {
			if errors.Is(err, io.EOF) || isEOF(err) {
				err = fmt.Errorf("%w: connection lost", ErrEnded)
			}
			return Stanza{}, err
		}
		switch t := token.(type) {
		case xml.StartElement:
			if depth == 0 {
				start = before
				stanza = header(t)
			}
			depth++
		case xml.EndElement:
			depth--
			if depth < 0 {
				return Stanza{}, fmt.Errorf("%w: it said good-bye", ErrEnded)
			}
			if depth == 0 {
				stanza.Raw = c.tap.take(start, c.decoder.InputOffset())
				if stanza.Name == "stream:error" {
					return Stanza{}, fmt.Errorf("%w: %s", ErrEnded, streamCondition(stanza.Raw))
				}
				return stanza, nil
			}
		case xml.CharData:
			if depth == 0 { // keep-alive
				c.tap.drop(c.decoder.InputOffset())
			}
		}
	}
}

// isEOF knows the decoder's own word for a stream that stops inside an
// element.
func isEOF(err error) bool {
	var syntax *xml.SyntaxError
	return errors.As(err, &syntax) && syntax.Msg == "unexpected EOF"
}

func header(t xml.StartElement) Stanza {
	s := Stanza{Name: t.Name.Local}
	if t.Name.Space != "" { // RawToken leaves the prefix there
		s.Name = t.Name.Space + ":" + t.Name.Local
	}
	for _, a := range t.Attr {
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
	return s
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

type byteReader interface {
	io.Reader
	io.ByteReader
}

// tap hands bytes to the decoder one by one and remembers those of the
// present stanza.
type tap struct {
	r    byteReader
	buf  []byte
	base int64 // offset of buf[0] in the stream
}

func (t *tap) ReadByte() (byte, error) {
	if len(t.buf) > maxStanza {
		return 0, errTooBig
	}
	b, err := t.r.ReadByte()
	if err == nil {
		t.buf = append(t.buf, b)
	}
	return b, err
}

// Read is never called: the decoder prefers ReadByte.
func (t *tap) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	b, err := t.ReadByte()
	if err != nil {
		return 0, err
	}
	p[0] = b
	return 1, nil
}

// take returns a copy of what lies between two offsets and drops all up to
// the second.
func (t *tap) take(from, to int64) []byte {
	raw := make([]byte, to-from)
	copy(raw, t.buf[from-t.base:])
	t.drop(to)
	return raw
}

func (t *tap) drop(to int64) {
	rest := t.buf[to-t.base:]
	if cap(t.buf) > keepBuffer {
		t.buf = append([]byte(nil), rest...)
	} else {
		t.buf = append(t.buf[:0], rest...)
	}
	t.base = to
}

var escaper = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", "'", "&apos;", `"`, "&quot;",
	"\t", "&#9;", "\n", "&#10;", "\r", "&#13;")

// escape makes text fit for an attribute in either quotes.
func escape(text string) string { return escaper.Replace(text) }
