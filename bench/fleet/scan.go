package fleet

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"html"
	"strings"
)

// The devices look at what they get with as little work as they can: they share
// the machine with what is measured. A whole vault of 350 KB takes pep/wire
// 3 ms to read, and this a tenth of it. It is right only for stanzas of the
// shape that it looks for; whatever else comes is an error, never a record.

// tag is the start tag of an element.
type tag struct {
	text []byte // from the < to the >
	end  int    // where the text behind it begins
}

// findTag finds the first element of that local name without prefix.
func findTag(raw []byte, local string) (tag, bool) {
	open := []byte("<" + local)
	for at := 0; ; {
		i := bytes.Index(raw[at:], open)
		if i < 0 {
			return tag{}, false
		}
		start := at + i
		at = start + len(open)
		if at < len(raw) && bytes.IndexByte([]byte(" />\n\t"), raw[at]) >= 0 {
			end := tagEnd(raw, at)
			if end < 0 {
				return tag{}, false
			}
			return tag{raw[start:end], end}, true
		}
	}
}

// tagEnd is where the text behind a tag begins, or -1.
func tagEnd(raw []byte, at int) int {
	var quote byte
	for ; at < len(raw); at++ {
		switch b := raw[at]; {
		case quote != 0:
			if b == quote {
				quote = 0
			}
		case b == '"' || b == '\'':
			quote = b
		case b == '>':
			return at + 1
		}
	}
	return -1
}

// attr returns an attribute, unescaped.
func (t tag) attr(name string) (string, bool) {
	rest := t.text
	for {
		i := bytes.IndexByte(rest, '=')
		if i < 0 || i+1 >= len(rest) {
			return "", false
		}
		key := rest[bytes.LastIndexAny(rest[:i], " \n\t")+1 : i]
		quote := rest[i+1]
		end := bytes.IndexByte(rest[i+2:], quote)
		if end < 0 {
			return "", false
		}
		value := rest[i+2 : i+2+end]
		if string(key) == name {
			return html.UnescapeString(string(value)), true
		}
		rest = rest[i+3+end:]
	}
}

func (t tag) empty() bool { return bytes.HasSuffix(t.text, []byte("/>")) }

// elementText returns the text of the first element of that name, "" if there
// is none.
func elementText(raw []byte, local string) string {
	t, found := findTag(raw, local)
	if !found || t.empty() {
		return ""
	}
	end := bytes.IndexByte(raw[t.end:], '<')
	if end < 0 {
		return ""
	}
	return html.UnescapeString(string(raw[t.end : t.end+end]))
}

// eachItem calls do for every <item/> of a result, an event or a page of a sync,
// with its id and its ciphertext, which is lent: the text of the <record/> in
// it, or its own text.
func eachItem(raw []byte, do func(id string, ciphertext []byte) error) error {
	var decoded []byte
	for {
		item, found := findTag(raw, "item")
		if !found {
			return nil
		}
		raw = raw[item.end:]
		id, named := item.attr("id")
		if !named {
			return fmt.Errorf("%w: an item without id", ErrWrong)
		}
		if bytes.HasPrefix(raw, []byte("<record ")) {
			end := tagEnd(raw, 0)
			if end < 0 {
				return fmt.Errorf("%w: half a record", ErrWrong)
			}
			raw = raw[end:]
		}
		end := bytes.IndexByte(raw, '<')
		if end < 1 {
			return fmt.Errorf("%w: record %s without ciphertext", ErrWrong, id)
		}
		var err error
		if decoded, err = base64.StdEncoding.AppendDecode(decoded[:0], raw[:end]); err != nil {
			return fmt.Errorf("%w: record %s is not base64", ErrWrong, id)
		}
		if err := do(id, decoded); err != nil {
			return err
		}
		raw = raw[end:]
	}
}

var escaper = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", "'", "&apos;", `"`, "&quot;")

func escape(text string) string { return escaper.Replace(text) }
