package main_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/xml"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"pepvault/bench/servers"
	"pepvault/vault/device/c2s"
)

const (
	nsPubsub = "http://jabber.org/protocol/pubsub"
	nsEvent  = nsPubsub + "#event"
	nsOwner  = nsPubsub + "#owner"
	nsErrors = nsPubsub + "#errors"
	nsDisco  = "http://jabber.org/protocol/disco#"
	nsRecord = "urn:pepvault:record:0"
	nsSync   = "urn:pepvault:sync:0"

	// markedText is part of every payload, so that none goes unseen in a log.
	markedText = "MarkedCiphertext"

	// patience bounds each wait; a test that passes never waits so long.
	patience = 3 * time.Minute
)

var markedBase64 = base64.StdEncoding.EncodeToString([]byte(markedText + "/"))[:20]

// element is a parsed XML element.
type element struct {
	XMLName  xml.Name
	Attrs    []xml.Attr `xml:",any,attr"`
	Text     string     `xml:",chardata"`
	Inner    []byte     `xml:",innerxml"`
	Children []element  `xml:",any"`
}

func parse(t *testing.T, raw []byte) element {
	t.Helper()
	var e element
	if err := xml.Unmarshal(raw, &e); err != nil {
		t.Fatalf("unreadable stanza %s: %v", raw, err)
	}
	return e
}

func (e element) attr(name string) string {
	for _, a := range e.Attrs {
		if a.Name.Space == "" && a.Name.Local == name {
			return a.Value
		}
	}
	return ""
}

// all returns the children of that name in any namespace or, if space isn't
// empty, in that one.
func (e element) all(space, local string) []element {
	var found []element
	for _, c := range e.Children {
		if c.XMLName.Local == local && (space == "" || c.XMLName.Space == space) {
			found = append(found, c)
		}
	}
	return found
}

// child returns the first such child, or an empty element.
func (e element) child(space, local string) element {
	if found := e.all(space, local); len(found) > 0 {
		return found[0]
	}
	return element{}
}

// meaning is an XML text with all that carries meaning and nothing else:
// expanded names, sorted attributes, text, in order.
func meaning(t *testing.T, text string) string {
	t.Helper()
	var b strings.Builder
	decoder := xml.NewDecoder(strings.NewReader(text))
	for {
		token, err := decoder.Token()
		if err == io.EOF {
			return b.String()
		}
		if err != nil {
			t.Fatalf("unreadable payload %q: %v", text, err)
		}
		switch token := token.(type) {
		case xml.StartElement:
			fmt.Fprintf(&b, "<{%s}%s", token.Name.Space, token.Name.Local)
			var attrs []string
			for _, a := range token.Attr {
				if a.Name.Space != "xmlns" && a.Name.Local != "xmlns" {
					attrs = append(attrs, fmt.Sprintf(" {%s}%s=%q", a.Name.Space, a.Name.Local, a.Value))
				}
			}
			slices.Sort(attrs)
			b.WriteString(strings.Join(attrs, "") + ">")
		case xml.EndElement:
			b.WriteString("</>")
		case xml.CharData:
			b.Write(token)
		}
	}
}

// ourDevice is a device on our own c2s connection.
type ourDevice struct {
	*c2s.Conn
	t        *testing.T
	service  string
	messages chan c2s.Stanza
}

// connectOurs connects a device; it is closed with the test.
func connectOurs(t *testing.T, server *servers.Server, account, resource, service string) *ourDevice {
	t.Helper()
	d := &ourDevice{t: t, service: service, messages: make(chan c2s.Stanza, 1024)}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	conn, err := c2s.Dial(ctx, c2s.Options{
		Server: server.Addr, JID: account, Resource: resource, Password: password, TLS: server.TLS(),
		Handle: func(s c2s.Stanza) bool {
			if s.Name == "message" {
				select {
				case d.messages <- s:
				default: // nobody looks at so many
				}
			}
			return s.Name == "message"
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	d.Conn = conn
	t.Cleanup(func() { _ = conn.Close() })
	return d
}

// fault is a stanza error in short: "type/condition extra…".
type fault string

// ask sends a request to the service and returns the answer's first child, or
// its error.
func (d *ourDevice) ask(typ, payload string) (element, fault) {
	d.t.Helper()
	ctx, cancel := context.WithTimeout(d.t.Context(), patience)
	defer cancel()
	s, err := d.IQ(ctx, typ, d.service, []byte(payload))
	if err != nil {
		d.t.Fatalf("%s %s: %v", typ, payload, err)
	}
	answer := parse(d.t, s.Raw)
	if s.Type == "error" {
		return element{}, stanzaFault(answer.child("", "error"))
	}
	if len(answer.Children) == 0 {
		return element{}, ""
	}
	return answer.Children[0], ""
}

func stanzaFault(e element) fault {
	words := []string{"", ""}
	for _, c := range e.Children {
		switch {
		case c.XMLName.Local == "text":
		case c.XMLName.Space == "urn:ietf:params:xml:ns:xmpp-stanzas":
			words[0] = e.attr("type") + "/" + c.XMLName.Local
		default:
			words = append(words, c.XMLName.Local)
		}
	}
	return fault(strings.Join(slices.DeleteFunc(words, func(w string) bool { return w == "" }), " "))
}

// must is ask for a request that has to succeed.
func (d *ourDevice) must(typ, payload string) element {
	d.t.Helper()
	answer, fault := d.ask(typ, payload)
	if fault != "" {
		d.t.Fatalf("%s %s: %s", typ, payload, fault)
	}
	return answer
}

// presence makes the device known to the service.
func (d *ourDevice) presence() {
	d.t.Helper()
	if err := d.Send([]byte("<presence to='" + d.service + "'/>")); err != nil {
		d.t.Fatal(err)
	}
}

// record is a native payload; the text is marked and encoded.
func record(keyVersion int, text string) string {
	return fmt.Sprintf("<record xmlns='%s' key-version='%d'>%s</record>", nsRecord, keyVersion,
		base64.StdEncoding.EncodeToString([]byte(markedText+"/"+text)))
}

func publish(node, id, payload string) string {
	return "<pubsub xmlns='" + nsPubsub + "'><publish node='" + node + "'><item id='" + id + "'>" + payload + "</item></publish></pubsub>"
}

func retract(node, id string) string {
	return "<pubsub xmlns='" + nsPubsub + "'><retract node='" + node + "' notify='true'><item id='" + id + "'/></retract></pubsub>"
}

func items(node, attrs, inner string) string {
	return "<pubsub xmlns='" + nsPubsub + "'><items node='" + node + "' " + attrs + ">" + inner + "</items></pubsub>"
}

// item is one record as a device sees it.
type item struct{ ID, Publisher, Payload string }

// items reads a vault; the payloads come by their meaning.
func (d *ourDevice) items(node, attrs, inner string) []item {
	d.t.Helper()
	var found []item
	for _, e := range d.must("get", items(node, attrs, inner)).child(nsPubsub, "items").Children {
		found = append(found, item{e.attr("id"), e.attr("publisher"), meaning(d.t, string(e.Inner))})
	}
	return found
}

func ids(all []item) []string {
	found := make([]string, len(all))
	for i, one := range all {
		found[i] = one.ID
	}
	return found
}

// event waits for the next event and returns its first child (items, purge,
// delete, …) with the vault's state.
func (d *ourDevice) event() (what, state element) {
	d.t.Helper()
	select {
	case s := <-d.messages:
		if s.Type != "headline" || s.From != d.service || s.ID == "" {
			d.t.Errorf("event of type %q from %q with id %q", s.Type, s.From, s.ID)
		}
		m := parse(d.t, s.Raw)
		event := m.child(nsEvent, "event")
		if len(event.Children) == 0 {
			d.t.Fatalf("no event in %s", s.Raw)
		}
		return event.Children[0], m.child(nsSync, "state")
	case <-time.After(patience):
		d.t.Fatal("no event came")
		return element{}, element{}
	}
}

// quiet holds that no event has come by the time the service has answered a
// ping, which leaves behind the events.
func (d *ourDevice) quiet() {
	d.t.Helper()
	d.must("get", "<ping xmlns='urn:xmpp:ping'/>")
	select {
	case s := <-d.messages:
		d.t.Errorf("unexpected message %s", bytes.TrimSpace(s.Raw))
	default:
	}
}
