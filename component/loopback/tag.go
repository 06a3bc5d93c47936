package loopback

import (
	"bytes"
	"encoding/xml"
	"errors"
)

// tag is a start tag taken apart, its slices lent from what was parsed.
type tag struct {
	name  []byte
	attrs []attr
	size  int  // bytes of the tag
	empty bool // it ended in "/>"
}

// attr is an attribute; its value is as it was written, still escaped.
type attr struct{ name, value []byte }

var errTag = errors.New("not a start tag")

// parse reads the tag that b begins with.
func (t *tag) parse(b []byte) error {
	t.attrs, t.empty = t.attrs[:0], false
	if len(b) < 3 || b[0] != '<' {
		return errTag
	}
	i := nameEnd(b, 1)
	if i == 1 {
		return errTag
	}
	t.name = b[1:i]
	for {
		i = skipSpace(b, i)
		if i >= len(b) {
			return errTag
		}
		if b[i] == '>' {
			t.size = i + 1
			return nil
		}
		if b[i] == '/' {
			if i+1 >= len(b) || b[i+1] != '>' {
				return errTag
			}
			t.size, t.empty = i+2, true
			return nil
		}
		next, err := t.parseAttr(b, i)
		if err != nil {
			return err
		}
		i = next
	}
}

func (t *tag) parseAttr(b []byte, i int) (next int, err error) {
	end := nameEnd(b, i)
	name := b[i:end]
	i = skipSpace(b, end)
	if len(name) == 0 || i >= len(b) || b[i] != '=' {
		return 0, errTag
	}
	i = skipSpace(b, i+1)
	if i >= len(b) || b[i] != '\'' && b[i] != '"' {
		return 0, errTag
	}
	length := bytes.IndexByte(b[i+1:], b[i])
	if length < 0 {
		return 0, errTag
	}
	t.attrs = append(t.attrs, attr{name: name, value: b[i+1 : i+1+length]})
	return i + 1 + length + 1, nil
}

// value returns the attribute as it was written, nil if there is none.
func (t *tag) value(name string) []byte {
	for _, a := range t.attrs {
		if string(a.name) == name {
			return a.value
		}
	}
	return nil
}

// text returns the attribute unescaped, "" if there is none.
func (t *tag) text(name string) string { return unescape(t.value(name)) }

func unescape(value []byte) string {
	if bytes.IndexByte(value, '&') < 0 {
		return string(value)
	}
	// encoding/xml knows the entities; a text that it refuses stays as it is.
	token, err := xml.NewDecoder(bytes.NewReader(value)).RawToken()
	if text, ok := token.(xml.CharData); ok && err == nil {
		return string(text)
	}
	return string(value)
}

// known spares the allocation of the words that each stanza repeats.
func known(b []byte) string {
	switch string(b) {
	case "":
		return ""
	case "iq":
		return "iq"
	case "message":
		return "message"
	case "presence":
		return "presence"
	case "get":
		return "get"
	case "set":
		return "set"
	case "result":
		return "result"
	case "error":
		return "error"
	case "headline":
		return "headline"
	case "unavailable":
		return "unavailable"
	}
	return unescape(b)
}

func nameEnd(b []byte, i int) int {
	for ; i < len(b); i++ {
		switch b[i] {
		case ' ', '\t', '\r', '\n', '=', '/', '>', '<', '\'', '"':
			return i
		}
	}
	return i
}

func skipSpace(b []byte, i int) int {
	for i < len(b) && isSpace(b[i]) {
		i++
	}
	return i
}

func isSpace(c byte) bool { return c == ' ' || c == '\t' || c == '\r' || c == '\n' }
