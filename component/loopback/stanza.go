package loopback

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"strings"
)

// Namespaces of the streams and of errors.
const (
	nsComponent = "jabber:component:accept"
	nsClient    = "jabber:client"
	nsStream    = "http://etherx.jabber.org/streams"
	nsStreams   = "urn:ietf:params:xml:ns:xmpp-streams"
	nsStanzas   = "urn:ietf:params:xml:ns:xmpp-stanzas"
	nsPing      = "urn:xmpp:ping"
	nsXML       = "http://www.w3.org/XML/1998/namespace"
	nsXMLNS     = "http://www.w3.org/2000/xmlns/"
)

// Stanza is one stanza as a device gets it: Raw stands in a stream whose
// default namespace is jabber:client and does not repeat it.
type Stanza struct {
	Name string // iq, message or presence
	Type string // "" if it has none
	From string
	To   string
	ID   string
	Raw  []byte // the whole element
}

// Clone returns a copy that does not share Raw.
func (s Stanza) Clone() Stanza {
	s.Raw = bytes.Clone(s.Raw)
	return s
}

// String is the stanza as it was on the wire.
func (s Stanza) String() string { return string(s.Raw) }

// Decode unmarshals the stanza into v, with jabber:client as the namespace of
// elements that name none.
func (s Stanza) Decode(v any) error {
	d := xml.NewDecoder(bytes.NewReader(s.Raw))
	d.DefaultSpace = nsClient
	return d.Decode(v)
}

// Payload is what stands between the stanza's tags.
func (s Stanza) Payload() []byte {
	var t tag
	if t.parse(s.Raw) != nil || t.empty {
		return nil
	}
	end := bytes.LastIndexByte(s.Raw, '<')
	if end < t.size {
		return nil
	}
	return s.Raw[t.size:end]
}

// StanzaError is what a stanza of type error says (RFC 6120 §8.3).
type StanzaError struct {
	Type      string // auth, cancel, continue, modify, wait
	Condition string // the defined condition
	Text      string
	// Specific names the application's own condition, if there is one.
	Specific xml.Name
}

func (e *StanzaError) Error() string {
	s := e.Type + "/" + e.Condition
	if e.Specific.Local != "" {
		s += " + " + e.Specific.Local
	}
	if e.Text != "" {
		s += ": " + e.Text
	}
	return s
}

// Err returns the error that a stanza of type error carries, nil for others.
func (s Stanza) Err() *StanzaError {
	if s.Type != "error" {
		return nil
	}
	var body struct {
		Error struct {
			Type     string `xml:"type,attr"`
			Children []struct {
				XMLName xml.Name
				Text    string `xml:",chardata"`
			} `xml:",any"`
		} `xml:"error"`
	}
	if err := s.Decode(&body); err != nil {
		return &StanzaError{Condition: "undefined-condition", Text: err.Error()}
	}
	e := &StanzaError{Type: body.Error.Type}
	for _, child := range body.Error.Children {
		switch {
		case child.XMLName.Space != nsStanzas:
			e.Specific = child.XMLName
		case child.XMLName.Local == "text":
			e.Text = child.Text
		default:
			e.Condition = child.XMLName.Local
		}
	}
	return e
}

// answered says whether an error may be sent about the stanza.
func (s Stanza) answered() bool { return s.Type != "error" && s.Type != "result" }

// request says whether the stanza must be answered.
func (s Stanza) request() bool {
	return s.Name == "iq" && (s.Type == "get" || s.Type == "set")
}

// bounce is the error that answers s; extra stands after the condition.
func (s Stanza) bounce(kind, condition, text, extra string) Stanza {
	var b strings.Builder
	fmt.Fprintf(&b, "<error type='%s'><%s xmlns='%s'/>", kind, condition, nsStanzas)
	if text != "" {
		fmt.Fprintf(&b, "<text xmlns='%s'>%s</text>", nsStanzas, escape(text))
	}
	b.WriteString(extra + "</error>")
	return s.reply("error", b.String())
}

// reply answers s.
func (s Stanza) reply(kind, payload string) Stanza {
	return compose(Stanza{Name: s.Name, Type: kind, From: s.To, To: s.From, ID: s.ID}, payload)
}

// compose writes the stanza's Raw.
func compose(s Stanza, payload string) Stanza {
	b := make([]byte, 0, 128+len(payload))
	b = append(append(b, '<'), s.Name...)
	for _, a := range [...]struct{ name, value string }{
		{"type", s.Type}, {"id", s.ID}, {"from", s.From}, {"to", s.To},
	} {
		if a.value != "" {
			b = appendAttr(b, a.name, a.value)
		}
	}
	if payload == "" {
		b = append(b, "/>"...)
	} else {
		b = append(append(b, '>'), payload...)
		b = append(append(append(b, "</"...), s.Name...), '>')
	}
	s.Raw = b
	return s
}

var escaper = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", "'", "&apos;", `"`, "&quot;")

func escape(s string) string { return escaper.Replace(s) }

func appendAttr(b []byte, name, value string) []byte {
	b = append(append(append(b, ' '), name...), "='"...)
	if strings.ContainsAny(value, `&<>'"`) {
		value = escape(value)
	}
	return append(append(b, value...), '\'')
}

// domainOf is the domain of a JID, bareOf the JID without its resource.
func domainOf(jid string) string {
	jid = bareOf(jid)
	return jid[strings.IndexByte(jid, '@')+1:]
}

func bareOf(jid string) string {
	bare, _, _ := strings.Cut(jid, "/")
	return bare
}
