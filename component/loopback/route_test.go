package loopback

import (
	"strings"
	"testing"
)

// TestComponentSends: what the component gets back for each kind of stanza,
// while no such device is connected. The stream lives on.
func TestComponentSends(t *testing.T) {
	t.Parallel()
	const gone = " from='vault.localhost' to='alice@localhost/gone'"
	const bare = " from='vault.localhost' to='alice@localhost'"
	const query = "<query xmlns='http://jabber.org/protocol/disco#info'/>"
	tests := map[string]struct {
		send string
		want string // type/condition of the error, "result", or "" for nothing
	}{
		"no to":                    {"<iq type='get' id='1' from='vault.localhost'>" + query + "</iq>", "modify/bad-request"},
		"message without to":       {"<message id='1' from='vault.localhost'/>", "modify/bad-request"},
		"result without to":        {"<iq type='result' id='1' from='vault.localhost'/>", "modify/bad-request"},
		"error without to":         {"<iq type='error' id='1' from='vault.localhost'/>", ""},
		"get to a gone device":     {"<iq type='get' id='1'" + gone + ">" + query + "</iq>", "cancel/service-unavailable"},
		"set to a gone device":     {"<iq type='set' id='1'" + gone + ">" + query + "</iq>", "cancel/service-unavailable"},
		"result to a gone device":  {"<iq type='result' id='1'" + gone + "/>", ""},
		"error to a gone device":   {"<iq type='error' id='1'" + gone + "/>", ""},
		"headline to gone device":  {"<message type='headline' id='1'" + gone + "/>", ""},
		"error message":            {"<message type='error' id='1'" + gone + "/>", ""},
		"chat to a gone device":    {"<message type='chat' id='1'" + gone + "/>", ""},
		"presence to gone device":  {"<presence id='1'" + gone + "/>", ""},
		"headline to an account":   {"<message type='headline' id='1'" + bare + "/>", ""},
		"message to an account":    {"<message id='1'" + bare + "/>", ""},
		"presence to an account":   {"<presence id='1'" + bare + "/>", ""},
		"query to an account":      {"<iq type='get' id='1'" + bare + ">" + query + "</iq>", "cancel/service-unavailable"},
		"ping to an account":       {"<iq type='get' id='1'" + bare + "><ping xmlns='urn:xmpp:ping'/></iq>", "result"},
		"ping to the host":         {"<iq type='get' id='1' from='vault.localhost' to='localhost'><ping xmlns='urn:xmpp:ping'/></iq>", "result"},
		"prefixed ping":            {"<iq type='get' id='1' from='vault.localhost' to='localhost'><p:ping xmlns:p='urn:xmpp:ping'/></iq>", "result"},
		"ping as text":             {"<iq type='get' id='1' from='vault.localhost' to='localhost'><x xmlns='y'>urn:xmpp:ping</x></iq>", "cancel/service-unavailable"},
		"query to the host":        {"<iq type='get' id='1' from='vault.localhost' to='localhost'>" + query + "</iq>", "cancel/service-unavailable"},
		"message to the host":      {"<message id='1' from='vault.localhost' to='localhost'/>", "cancel/service-unavailable"},
		"presence to the host":     {"<presence from='vault.localhost' to='localhost'/>", ""},
		"get to a foreign domain":  {"<iq type='get' id='1' from='vault.localhost' to='a@example.org/b'>" + query + "</iq>", "cancel/remote-server-not-found"},
		"error to foreign domain":  {"<iq type='error' id='1' from='vault.localhost' to='a@example.org/b'/>", ""},
		"from with local part":     {"<iq type='get' id='1' from='a\\40b@vault.localhost/r/@x' to='localhost'>" + query + "</iq>", "cancel/service-unavailable"},
		"client namespace, get":    {"<iq xmlns='jabber:client' type='get' id='1'" + gone + ">" + query + "</iq>", "cancel/service-unavailable"},
		"client namespace, result": {"<iq xmlns='jabber:client' type='result' id='1'" + gone + "/>", ""},
		"own namespace":            {"<iq xmlns='jabber:component:accept' type='get' id='1'" + gone + ">" + query + "</iq>", "cancel/service-unavailable"},
		"two at once":              {"<presence" + gone + "/> \n <iq type='get' id='1'" + gone + ">" + query + "</iq>", "cancel/service-unavailable"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := start(t, Options{})
			c := attach(t, h)
			c.send("%s", test.send)
			if test.want != "" {
				s := c.readStanza()
				got := s.Type
				if err := s.Err(); err != nil {
					got = err.Type + "/" + err.Condition
				}
				if got != test.want || s.ID != "1" || domainOf(s.To) != h.Component() {
					t.Errorf("got %s, want %s", s, test.want)
				}
			}
			c.wantAlive(h)
		})
	}
}

func TestStored(t *testing.T) {
	t.Parallel()
	h := start(t, Options{})
	c := attach(t, h)
	connect(t, h, "alice@localhost/phone")
	for _, attrs := range []string{
		"type='headline' id='1' to='alice@localhost'",
		"type='error' id='2' to='alice@localhost/gone'",
		"type='chat' id='3' to='alice@localhost/gone'",
		"id='4' to='alice@localhost'",
	} {
		c.send("<message from='vault.localhost' %s/>", attrs)
	}
	c.wantAlive(h)
	var got []string
	for _, s := range h.Stored() {
		got = append(got, s.ID)
	}
	if strings.Join(got, " ") != "3 4" {
		t.Errorf("got %q stored, want 3 and 4", got)
	}
	if got := h.Stats(); got.Vanished != 2 || got.FromComponent != 5 {
		t.Errorf("got %+v, want 2 vanished of 5", got)
	}
}

// TestHeadlines: a headline for an account reaches the available devices of
// priority 0 and more, presence all available ones.
func TestHeadlines(t *testing.T) {
	t.Parallel()
	h := start(t, Options{})
	c := attach(t, h)
	tests := []struct {
		resource, presence string
		headline, presents bool
	}{
		{"silent", "", false, false},
		{"vaultonly", "<presence to='vault.localhost'/>", false, false},
		{"available", "<presence/>", true, true},
		{"high", "<presence><priority>5</priority></presence>", true, true},
		{"negative", "<presence><priority>-1</priority></presence>", false, true},
		{"left", "<presence/><presence type='unavailable'/>", false, false},
	}
	devices := map[string]*Device{}
	for _, test := range tests {
		d := connect(t, h, "alice@localhost/"+test.resource)
		for _, p := range strings.SplitAfter(test.presence, "/>") {
			if p != "" && !strings.HasPrefix(test.presence, "<presence><") {
				send(t, d, p)
			}
		}
		if strings.HasPrefix(test.presence, "<presence><") {
			send(t, d, test.presence)
		}
		devices[test.resource] = d
	}
	other := connect(t, h, "bob@localhost/available")
	send(t, other, "<presence/>")
	if got := c.readStanza(); got.From != "alice@localhost/vaultonly" {
		t.Errorf("got %s, want the directed presence alone", got)
	}

	c.send("<message type='headline' id='h' from='vault.localhost' to='alice@localhost'/>")
	c.send("<presence id='p' from='vault.localhost' to='alice@localhost'/>")
	c.wantAlive(h)
	for _, test := range tests {
		got := ""
		for d := devices[test.resource]; d.Waiting() > 0; {
			got += recv(t, d).ID
		}
		want := ""
		if test.headline {
			want += "h"
		}
		if test.presents {
			want += "p"
		}
		if got != want {
			t.Errorf("%s: got %q, want %q", test.resource, got, want)
		}
	}
	if got := other.Waiting(); got != 0 {
		t.Errorf("got %d stanzas for another account", got)
	}
}

func TestProbe(t *testing.T) {
	t.Parallel()
	h := start(t, Options{})
	c := attach(t, h)
	c.send("<presence type='probe' from='vault.localhost' to='alice@localhost/phone'/>")
	if got := c.readStanza(); got.Type != "unsubscribed" || got.From != "alice@localhost" || got.To != h.Component() {
		t.Errorf("got %s, want unsubscribed from the account", got)
	}
}

// TestToItself: a component may write to itself and to its own full JIDs.
func TestToItself(t *testing.T) {
	t.Parallel()
	h := start(t, Options{})
	c := attach(t, h)
	c.send("<message id='1' from='vault.localhost' to='x@vault.localhost/y'/>")
	if got := c.readStanza(); got.ID != "1" || got.To != "x@vault.localhost/y" {
		t.Errorf("got %s", got)
	}
}
