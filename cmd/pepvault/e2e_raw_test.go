package main_test

import (
	"bytes"
	"context"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"pepvault/bench/servers"
	"pepvault/vault/device/c2s"
)

// rawDevice is a device on our own connection that says what it is told to,
// and keeps all that it hears as it came.
type rawDevice struct {
	*c2s.Conn
	t       *testing.T
	account string // as it was dialled
	service string
	heard   chan c2s.Stanza
	fences  int
}

// connectRaw connects a device of an account in some spelling; it is closed
// with the test.
func connectRaw(t *testing.T, server *servers.Server, account, resource, service string) (*rawDevice, error) {
	t.Helper()
	d := &rawDevice{t: t, account: account, service: service, heard: make(chan c2s.Stanza, 1024)}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	conn, err := c2s.Dial(ctx, c2s.Options{
		Server: server.Addr, JID: account, Resource: resource, Password: password, TLS: server.TLS(),
		Handle: func(s c2s.Stanza) bool { d.heard <- s; return true },
	})
	if err != nil {
		return nil, err
	}
	d.Conn = conn
	t.Cleanup(conn.Cut)
	return d, nil
}

// mustConnectRaw is connectRaw for what the host has to let in.
func mustConnectRaw(t *testing.T, server *servers.Server, account, resource, service string) *rawDevice {
	t.Helper()
	d, err := connectRaw(t, server, account, resource, service)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// says sends raw and returns all that came by the time that the service has
// answered a ping behind it: an account is served in turn. ended is set if the
// host ended the stream instead.
func (d *rawDevice) says(raw string) (all []c2s.Stanza, ended error) {
	d.t.Helper()
	d.fences++
	id := fmt.Sprintf("fence-%d", d.fences)
	ping := "<iq type='get' id='" + id + "' to='" + d.service + "'><ping xmlns='urn:xmpp:ping'/></iq>"
	// What fails here is the end of the stream, seen below.
	if d.Send([]byte(raw)) == nil {
		_ = d.Send([]byte(ping))
	}
	timeout := time.NewTimer(patience)
	defer timeout.Stop()
	for {
		select {
		case s := <-d.heard:
			if s.ID == id {
				return all, nil
			}
			all = append(all, s)
		case <-d.Done():
			for len(d.heard) > 0 {
				all = append(all, <-d.heard)
			}
			return all, d.Err()
		case <-timeout.C:
			d.t.Fatalf("%s: nothing came behind %.300s", d.JID(), raw)
			return nil, nil
		}
	}
}

// must asks the service for what has to succeed, and returns the answer.
func (d *rawDevice) must(typ, payload string) element {
	d.t.Helper()
	ctx, cancel := context.WithTimeout(d.t.Context(), patience)
	defer cancel()
	answer, err := d.IQ(ctx, typ, d.service, []byte(payload))
	if err != nil || answer.Type != "result" {
		d.t.Fatalf("%s, %s: %s, %v", d.JID(), payload, answer.Raw, err)
	}
	return parse(d.t, answer.Raw)
}

// hears returns the next stanza from the service.
func (d *rawDevice) hears() c2s.Stanza {
	d.t.Helper()
	timeout := time.NewTimer(patience)
	defer timeout.Stop()
	for {
		select {
		case s := <-d.heard:
			if s.From == d.service {
				return s
			}
		case <-d.Done():
			d.t.Fatalf("%s: %v", d.JID(), d.Err())
		case <-timeout.C:
			d.t.Fatalf("%s hears nothing", d.JID())
		}
	}
}

// outcome is a stanza in short: "result", the fault of an error, or the name
// and type of what is no IQ.
func outcome(t *testing.T, s c2s.Stanza) string {
	t.Helper()
	switch {
	case s.Type == "error":
		fault := string(stanzaFault(parse(t, s.Raw).child("", "error")))
		if s.Name != "iq" {
			return s.Name + " " + fault
		}
		return fault
	case s.Name == "iq":
		return s.Type
	}
	return strings.TrimSpace(s.Name + " " + s.Type)
}

// payloads returns the infoset of what each item of a stanza holds, by item
// id: expanded names, sorted attributes, text, all in order. Of the prefixes
// in force it tells the ones that are asked for, where they are bound anew.
// A publish, its answer to a reader and its event have the item at the same
// depth.
func payloads(t *testing.T, stanza []byte, prefixes ...string) map[string]string {
	t.Helper()
	const itemDepth = 4
	found := make(map[string]string)
	scopes := []map[string]string{{}}
	var b strings.Builder
	id := ""
	decoder := xml.NewDecoder(bytes.NewReader(stanza))
	decoder.DefaultSpace = "jabber:client"
	for {
		token, err := decoder.Token()
		if errors.Is(err, io.EOF) {
			return found
		}
		if err != nil {
			t.Fatalf("unreadable stanza %.2000s: %v", stanza, err)
		}
		depth := len(scopes) - 1
		switch token := token.(type) {
		case xml.StartElement:
			scope := inScope(scopes[depth], token)
			scopes = append(scopes, scope)
			switch {
			case depth+1 == itemDepth && token.Name.Local == "item":
				b.Reset()
				id = attribute(token, "id")
			case depth+1 > itemDepth:
				b.WriteString(startTag(token))
				for _, prefix := range prefixes {
					if scope[prefix] != scopes[depth][prefix] || depth == itemDepth {
						fmt.Fprintf(&b, "[%s=%s]", prefix, scope[prefix])
					}
				}
			}
		case xml.EndElement:
			scopes = scopes[:depth]
			if depth == itemDepth && token.Name.Local == "item" {
				found[id] = b.String()
			} else if depth > itemDepth {
				b.WriteString("</>")
			}
		case xml.CharData:
			if depth > itemDepth {
				b.WriteString(strings.NewReplacer("&", "&amp;", "<", "&lt;").Replace(string(token)))
			}
		}
	}
}

// inScope is what is in force inside an element.
func inScope(outside map[string]string, e xml.StartElement) map[string]string {
	scope := make(map[string]string, len(outside))
	for prefix, uri := range outside {
		scope[prefix] = uri
	}
	for _, a := range e.Attr {
		if a.Name.Space == "xmlns" {
			scope[a.Name.Local] = a.Value
		}
	}
	return scope
}

func startTag(e xml.StartElement) string {
	var attrs []string
	for _, a := range e.Attr {
		if a.Name.Space != "xmlns" && a.Name != (xml.Name{Local: "xmlns"}) {
			attrs = append(attrs, fmt.Sprintf(" {%s}%s=%q", a.Name.Space, a.Name.Local, a.Value))
		}
	}
	slices.Sort(attrs)
	return "<{" + e.Name.Space + "}" + e.Name.Local + strings.Join(attrs, "") + ">"
}

func attribute(e xml.StartElement, name string) string {
	for _, a := range e.Attr {
		if a.Name == (xml.Name{Local: name}) {
			return a.Value
		}
	}
	return ""
}
