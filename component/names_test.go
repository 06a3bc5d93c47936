package component_test

import (
	"strings"
	"testing"

	"pepvault/component/hosttest"
	"pepvault/component/loopback"
)

// asked has a stanza of any sender put on our stream, and returns the answer.
// The host may not know the sender: it is seen on its way.
func asked(t *testing.T, host *hosttest.Host, raw string) loopback.Stanza {
	t.Helper()
	answers := make(chan loopback.Stanza, 1)
	host.SetIntercept(func(dir loopback.Direction, s loopback.Stanza) []loopback.Stanza {
		if dir == loopback.FromComponent && s.Name == "iq" && s.ID == "odd" {
			answers <- s.Clone()
			return nil
		}
		return []loopback.Stanza{s}
	})
	defer host.SetIntercept(nil)
	host.Inject(raw)
	select {
	case s := <-answers:
		return s
	case <-t.Context().Done():
		t.Fatal(t.Context().Err())
		return loopback.Stanza{}
	}
}

func from(jid, kind, payload string) string {
	return `<iq type='` + kind + `' id='odd' from='` + escape(jid) + `' to='vault.localhost'>` + payload + end
}

// Whatever a host lets an account be called, the service answers it.
func TestHostileAddresses(t *testing.T) {
	t.Parallel()
	const refused, stranger, malformedJID = "modify/bad-request", "auth/forbidden", "modify/jid-malformed"
	for _, row := range []struct{ name, jid, want string }{
		{"no character of PRECIS", "al\u2665ce@localhost/x", "result"},
		{"emoji", "\U0001F600@localhost/x", "result"},
		{"space in the local part", "al ice@localhost/x", "result"},
		{"quotes", `a'l"i&c<e>@localhost/x`, "result"},
		{"mixed directions", "a\u05d0b@localhost/x", "result"},
		{"longest local part", strings.Repeat("a", 1023) + "@localhost/x", "result"},
		{"local part too long", strings.Repeat("a", 1024) + "@localhost/x", malformedJID},
		{"local part that grows", strings.Repeat("\ufdfa", 300) + "@localhost/x", malformedJID},
		{"no local part", "@localhost/x", malformedJID},
		{"two at signs", "a@b@localhost/x", malformedJID},
		{"a full-width at sign", "a\uff20b@localhost/x", malformedJID},
		{"a full-width slash", "a\uff0fb@localhost/x", malformedJID},
		{"no domain", "alice@/x", malformedJID},
		{"foreign domain", "alice@elsewhere.example/x", stranger},
		{"domain that ends like ours", "alice@notlocalhost/x", stranger},
		{"absolute domain", "alice@LOCALHOST./x", "result"},
		{"domain in full width", "alice@\uff4cocalhost/x", stranger},
		{"no resource", "alice@localhost", refused},
		{"empty resource", "alice@localhost/", refused},
		{"the host itself", "localhost", stranger},
		{"the host with a resource", "localhost/x", stranger},
		{"the service itself", "vault.localhost", stranger},
		{"a slash alone", "/", stranger},
		{"space alone", " ", stranger},
		{"an at sign in the resource", "localhost/alice@localhost", stranger},
		{"resource of slashes", "alice@localhost///@/", "result"},
		{"resource of spaces", "alice@localhost/  ", "result"},
		{"resource of emoji", "alice@localhost/\U0001F4F1 \u2665", "result"},
		{"longest resource", "alice@localhost/" + strings.Repeat("r", 1023), "result"},
		{"resource beyond that", "alice@localhost/" + strings.Repeat("r", 5000), "result"},
		{"resource that PRECIS would map", "alice@localhost/\u212b\uff21\u00a0\u00ad", "result"},
		{"resource of quotes", `alice@localhost/'"<>&`, "result"},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			s := newStage(t, nil)
			answer := asked(t, s.host, from(row.jid, "set", publication("notes", "a", foreign("x"))))
			if got := outcome(answer); got != row.want || answer.To != row.jid || answer.From != "vault.localhost" {
				t.Errorf("answered %s from %q to %q, want %s", got, answer.From, answer.To, row.want)
			}
			s.host.Inject(`<presence from='` + escape(row.jid) + `' to='vault.localhost'/><presence type='unavailable' from='` + escape(row.jid) + `' to='vault.localhost'/>`)
			s.survived()
			if known := s.service.engine.Known(); len(known) > 0 {
				t.Errorf("known is %v", known)
			}
		})
	}
}

// C41: one account however it is spelled; resources stay as they are.
func TestC41SpellingsOfAnAccount(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name   string
		same   []string
		others []string
	}{
		{"case", []string{"alice@localhost", "Alice@LOCALHOST", "ALICE@localhost."}, []string{"alice1@localhost", "a1ice@localhost", "al\u0131ce@localhost"}},
		{"combining accents", []string{"caf\u00e9@localhost", "cafe\u0301@localhost", "CAF\u00c9@localhost", "CAFE\u0301@Localhost"}, []string{"cafe@localhost", "caf\u00e8@localhost"}},
		{"outside of PRECIS", []string{"x\u2665Y@localhost", "X\u2665y@localhost"}, []string{"x\u2661y@localhost", "xy@localhost"}},
		{"width", []string{"\uff41bc@localhost", "abc@localhost"}, []string{"\uff41b@localhost"}},
		{"sharp s", []string{"stra\u00dfe@localhost"}, []string{"strasse@localhost"}},
		{"sigma", []string{"\u03c3\u03b1@localhost", "\u03a3\u0391@localhost"}, nil},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			s := newStage(t, nil)
			for _, jid := range row.others {
				if got := outcome(asked(t, s.host, from(jid+"/x", "set", publication("notes", "other", foreign(escape(jid)))))); got != "result" {
					t.Fatalf("%s: %s", jid, got)
				}
			}
			if got := outcome(asked(t, s.host, from(row.same[0]+"/x", "set", publication("notes", "a", foreign("mine"))))); got != "result" {
				t.Fatal(got)
			}
			for _, jid := range row.same {
				for _, resource := range []string{"/x", "/X"} {
					answer := asked(t, s.host, from(jid+resource, "get", getNotes))
					if answer.To != jid+resource || !strings.Contains(string(answer.Raw), "mine") || strings.Contains(string(answer.Raw), "id='other'") {
						t.Errorf("%s reads %s", jid+resource, answer)
					}
				}
			}
			for _, jid := range row.others {
				answer := asked(t, s.host, from(jid+"/x", "get", getNotes))
				if strings.Contains(string(answer.Raw), "mine") {
					t.Errorf("%s reads what is not theirs: %s", jid, answer)
				}
			}
			s.survived()
		})
	}
}

// Events reach a device whatever its resource is called.
func TestHostileResources(t *testing.T) {
	t.Parallel()
	for _, resource := range []string{
		"  two  spaces  ", "a/b//c", "@", "\U0001F4F1\u200d\u2665", `'"<>&amp;`, "Tablet", "tablet", strings.Repeat("r", 1023), "$", `\40`, "%s%n",
	} {
		t.Run(resource[:min(len(resource), 20)], func(t *testing.T) {
			t.Parallel()
			s := newStage(t, nil)
			s.alice.Asks("set", publishing("a"))
			odd := s.host.Device("alice/" + resource)
			send(t, odd, `<presence to='vault.localhost'/>`)
			answer, err := odd.IQ(t.Context(), "set", "vault.localhost",
				`<pubsub xmlns='http://jabber.org/protocol/pubsub'><subscribe node='notes' jid='`+escape("ALICE@localhost/"+resource)+`'/></pubsub>`)
			if err != nil || outcome(answer) != "result" {
				t.Fatalf("subscribing: %s, %v", answer, err)
			}
			odd.Receives(stateOfNotes)
			s.alice.Asks("set", publishing("b"))
			odd.Receives(`<message type='headline' from='vault.localhost' id='*'>*</message>`)
			send(t, odd, `<presence type='unavailable' to='vault.localhost'/>`)
			s.alice.Asks("set", publishing("b"))
			odd.ReceivesNothing()
			s.survived()
		})
	}
}

// Directed presence counts in any spelling of our domain: ejabberd leaves it
// as the device wrote it.
func TestSpellingsOfTheService(t *testing.T) {
	t.Parallel()
	s := newStage(t, nil)
	s.host.Inject(`<presence from='alice@localhost/phone' to='VAULT.LocalHost.'/>`)
	s.answered("")
	if known := s.service.engine.Known(); len(known) != 1 {
		t.Errorf("known is %v, want Alice's phone", known)
	}
	s.survived()
}

// Node names and record ids are bytes to us, and nothing else.
func TestHostileNames(t *testing.T) {
	t.Parallel()
	names := []string{
		"../../etc/passwd", "/", ".", "C:\\x", "https://vault.localhost/x?a=b#c", "xmpp:alice@localhost?pubsub", "urn:example:notes",
		`'; DROP TABLE record;--`, `" OR 1=1 --`, "a' OR 'a'='a", "%", "_", "*", "NULL", "0", "-1",
		"%s%d%n", "{{.}}", "${HOME}", "$(reboot)", "`reboot`", "]]>", "<![CDATA[", "&amp;", "&#0;", "<iq/>", `a"b'c`,
		" ", "  a  ", "\u00a0", "\ufeff", "\U0001F600", "\u202eabc", "e\u0301", "\u00e9", "\u2028", "\ufffd", "\U0010ffff",
		strings.Repeat("n", 512), strings.Repeat("'", 512), strings.Repeat("\U0001F600", 128), "http://jabber.org/protocol/pubsub",
	}
	for _, name := range names {
		t.Run(name[:min(len(name), 20)], func(t *testing.T) {
			t.Parallel()
			s := newStage(t, nil)
			if got := put(t, s.alice, name, name, foreign(escape(name))); got != "result" {
				t.Fatalf("answered %s", got)
			}
			answer, err := s.alice.IQ(t.Context(), "get", "vault.localhost", reading(name))
			if err != nil {
				t.Fatal(err)
			}
			var read struct {
				Items struct {
					Node string `xml:"node,attr"`
					Item struct {
						ID   string `xml:"id,attr"`
						Text string `xml:"n"`
					} `xml:"item"`
				} `xml:"pubsub>items"`
			}
			if err := answer.Decode(&read); err != nil || read.Items.Node != name || read.Items.Item.ID != name || read.Items.Item.Text != name {
				t.Errorf("read %+v from %s (%v)", read, answer, err)
			}
			// No other name means the same.
			for _, other := range names {
				if other == name {
					continue
				}
				answer, err := s.alice.IQ(t.Context(), "get", "vault.localhost", reading(other))
				if err != nil || outcome(answer) != missing {
					t.Fatalf("%q is answered %s (%v)", other, answer, err)
				}
			}
			gone, err := s.alice.IQ(t.Context(), "set", "vault.localhost",
				`<pubsub xmlns='http://jabber.org/protocol/pubsub#owner'><delete node='`+escape(name)+`'/></pubsub>`)
			if err != nil || outcome(gone) != "result" {
				t.Errorf("deleting: %s, %v", gone, err)
			}
			s.survived()
		})
	}
}

// What can't be a name is refused, and makes nothing.
func TestRefusedNames(t *testing.T) {
	t.Parallel()
	const badName = "modify/not-acceptable"
	s := newStage(t, nil)
	for _, row := range []struct{ name, xml, want string }{
		{"empty", "", "modify/bad-request+nodeid-required"},
		{"too long", strings.Repeat("n", 513), badName},
		{"too long in UTF-8", strings.Repeat("\U0001F600", 128) + "x", badName},
		{"tab", "a&#9;b", badName},
		{"line feed", "&#10;", badName},
		{"delete", "a\u007fb", badName},
		{"C1 control", "a\u0085b", badName},
	} {
		for _, payload := range []string{
			`<pubsub xmlns='http://jabber.org/protocol/pubsub'><publish node='` + row.xml + `'><item id='a'>` + foreign("x") + `</item></publish></pubsub>`,
			`<pubsub xmlns='http://jabber.org/protocol/pubsub'><items node='` + row.xml + `'/></pubsub>`,
		} {
			kind := "get"
			if strings.Contains(payload, "publish") {
				kind = "set"
			}
			answer, err := s.alice.IQ(t.Context(), kind, "vault.localhost", payload)
			if err != nil || outcome(answer) != row.want {
				t.Errorf("%s: answered %s (%v), want %s", row.name, answer, err, row.want)
			}
		}
		if row.xml == "" {
			continue
		}
		answer, err := s.alice.IQ(t.Context(), "set", "vault.localhost",
			`<pubsub xmlns='http://jabber.org/protocol/pubsub'><publish node='notes'><item id='`+row.xml+`'>`+foreign("x")+`</item></publish></pubsub>`)
		if err != nil || outcome(answer) != row.want {
			t.Errorf("%s as a record id: answered %s (%v), want %s", row.name, answer, err, row.want)
		}
	}
	list := s.alice.Asks("get", `<query xmlns='http://jabber.org/protocol/disco#items'/>`)
	if strings.Contains(string(list.Raw), "<item") {
		t.Errorf("refused requests have left %s", list)
	}
	s.survived()
}
