package wire

import (
	"encoding/xml"
	"errors"
	"os"
	"strings"
	"testing"
)

// documented returns the elements of the indented examples of the page about
// the protocol, with something in the places that it leaves open.
func documented(t *testing.T) (examples []string) {
	t.Helper()
	page, err := os.ReadFile("../../docs/protocol.md")
	if err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	for line := range strings.Lines(string(page)) {
		if code, found := strings.CutPrefix(line, "    "); found {
			text.WriteString(code)
		}
	}
	filled := strings.NewReplacer(
		" …/>", " xmlns='urn:ietf:params:xml:ns:xmpp-stanzas'/>",
		"<pubsub …>", "<pubsub xmlns='http://jabber.org/protocol/pubsub'>", " …>", ">",
		"'…'", "'open'", "Vq3v…", "Vq3vAAAAAAAAAAAAAAAAAA", "7Hc2…", "7Hc2AAAAAAAAAAAAAAAAAA", "BASE64", "Zmlyc3Q=",
		">…<", "><n xmlns='urn:example'/><", ">…items…<", "><item id='a'><n xmlns='urn:example'/></item><",
	).Replace(text.String())
	if at := strings.Index(filled, "…"); at >= 0 {
		t.Errorf("something is left open in %q", filled[max(0, at-60):])
	}
	d := xml.NewDecoder(strings.NewReader(filled))
	for depth, begin := 0, int64(0); ; {
		before := d.InputOffset()
		token, err := d.Token()
		if token == nil {
			return examples
		}
		if err != nil {
			t.Fatal(err)
		}
		switch token.(type) {
		case xml.StartElement:
			if depth == 0 {
				begin = before
			}
			depth++
		case xml.EndElement:
			if depth--; depth == 0 {
				examples = append(examples, filled[begin:d.InputOffset()])
			}
		}
	}
}

// Every example of the page about the protocol is what this package reads:
// requests, the answers to them, events, errors, and parts of those.
func TestDocumentedStanzas(t *testing.T) {
	t.Parallel()
	limits := Limits{RecordBytes: 1000, Foreign: true}
	var asked Call
	request := func(raw string) {
		call, err := DecodeRequest([]byte(raw), limits)
		if err != nil {
			t.Errorf("the request %s: %v", raw, err)
		}
		asked = call
	}
	examples := documented(t)
	for _, raw := range examples {
		name, _, _ := strings.Cut(strings.TrimPrefix(raw, "<"), " ")
		kind := ""
		if _, after, found := strings.Cut(raw, "type='"); found && name == "iq" {
			kind, _, _ = strings.Cut(after, "'")
		}
		var err error
		switch name + " " + kind {
		case "iq get", "iq set":
			if strings.Contains(raw, "<chunk") {
				_, err = DecodeChunk([]byte(raw))
				asked = Ping{} // is answered like it
				break
			}
			request(raw)
		case "iq result":
			_, err = DecodeReply([]byte(raw), asked)
		case "message ":
			_, err = DecodeMessage([]byte(raw))
		case "pubsub ":
			request(iq("set", raw))
		case "record ":
			request(foreign(raw))
		case "expect ":
			request(iq("set", pubsub("<publish node='n'><item id='a'><n xmlns='urn:example'/></item></publish>"+raw)))
		case "error ":
			var read *StanzaError
			_, err = DecodeReply([]byte("<iq type='error'>"+raw+"</iq>"), asked)
			if errors.As(err, &read) && read.Condition != "undefined-condition" && (read.Cursor != "" || read.Pubsub != "" || read.Floor > 0) {
				err = nil
			}
		default:
			t.Errorf("no test reads the example %s", raw)
		}
		if err != nil {
			t.Errorf("%s: %v", raw, err)
		}
	}
	if len(examples) < 8 {
		t.Errorf("the page has %d examples", len(examples))
	}
}
