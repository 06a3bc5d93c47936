package component_test

import (
	"bytes"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"pepvault/component/hosttest"
)

// Bad input gets the right error and changes nothing.
func TestBadInput(t *testing.T) {
	t.Parallel()
	s := newStage(t, nil)
	const ours = `<record xmlns='urn:pepvault:record:0' key-version=`
	for id, payload := range map[string]string{"a": native("first"), "b": foreign("second")} {
		if got := put(t, s.alice, "notes", id, payload); got != "result" {
			t.Fatal(got)
		}
	}
	before := s.reads(s.alice)
	for _, row := range []struct{ name, payload, want string }{
		{"no payload", ``, malformed + "+payload-required"},
		{"white space as payload", " \n ", malformed + "+payload-required"},
		{"text as payload", `text`, badPayload},
		{"text beside the payload", foreign("x") + `text`, badPayload},
		{"two payloads", foreign("x") + foreign("y"), badPayload},
		{"native and foreign", native("x") + foreign("y"), badPayload},
		{"empty ciphertext", ours + `'1'/>`, badPayload},
		{"white space as ciphertext", ours + `'1'> </record>`, badPayload},
		{"space in base64", ours + `'1'>Zmly c3Q=</record>`, badPayload},
		{"space around base64", ours + `'1'> Zmlyc3Q= </record>`, badPayload},
		{"line feed in base64", ours + "'1'>Zmly\nc3Q=</record>", badPayload},
		{"line feed behind base64", ours + "'1'>Zmlyc3Q=\n</record>", badPayload},
		{"padding missing", ours + `'1'>Zmlyc3Q</record>`, badPayload},
		{"padding alone", ours + `'1'>====</record>`, badPayload},
		{"too much padding", ours + `'1'>Zmlyc3Q==</record>`, badPayload},
		{"padding in the middle", ours + `'1'>Zm==Zm==</record>`, badPayload},
		{"bits behind the end", ours + `'1'>Zmlyc3R=</record>`, badPayload},
		{"base64url", ours + `'1'>-_-_</record>`, badPayload},
		{"no base64", ours + `'1'>öööö</record>`, badPayload},
		{"element in the ciphertext", ours + `'1'>Zm<b/>ly</record>`, badPayload},
		{"key version missing", `<record xmlns='urn:pepvault:record:0'>Zmly</record>`, badPayload},
		{"key version empty", ours + `''>Zmly</record>`, badPayload},
		{"key version negative", ours + `'-1'>Zmly</record>`, badPayload},
		{"key version huge", ours + `'2147483648'>Zmly</record>`, badPayload},
		{"key version beyond 64 bits", ours + `'18446744073709551617'>Zmly</record>`, badPayload},
		{"key version with a sign", ours + `'+1'>Zmly</record>`, badPayload},
		{"key version with a zero before it", ours + `'01'>Zmly</record>`, badPayload},
		{"key version with a space", ours + `' 1'>Zmly</record>`, badPayload},
		{"key version in hex", ours + `'0x1'>Zmly</record>`, badPayload},
		{"key version in other digits", ours + `'١'>Zmly</record>`, badPayload},
		{"key version of a prefix", `<record xmlns='urn:pepvault:record:0' xmlns:p='urn:p' p:key-version='1'>Zmly</record>`, badPayload},
		{"unknown attribute", ours + `'1' more=''>Zmly</record>`, badPayload},
		{"unknown element of ours", `<note xmlns='urn:pepvault:record:0' key-version='1'>Zmly</note>`, badPayload},
		{"native above the limit", native(strings.Repeat("x", 2001)), "modify/not-acceptable+payload-too-big"},
		{"foreign above the limit", foreign(strings.Repeat("x", 2001)), "modify/not-acceptable+payload-too-big"},
	} {
		for _, id := range []string{"a", "b", "new"} {
			if got := put(t, s.alice, "notes", id, row.payload); got != row.want {
				t.Errorf("%s: answered %s, want %s", row.name, got, row.want)
			}
		}
		if got := put(t, s.alice, "absent", "a", row.payload); got != row.want {
			t.Errorf("%s: answered %s, want %s", row.name, got, row.want)
		}
	}
	if after := s.reads(s.alice); !bytes.Equal(before, after) {
		t.Errorf("refused publishes changed\n%s to\n%s", before, after)
	}
	if list := s.alice.Asks("get", `<query xmlns='http://jabber.org/protocol/disco#items'/>`); strings.Count(string(list.Raw), "<item ") != 1 {
		t.Errorf("refused publishes left vaults behind: %s", list)
	}
	s.survived()
}

// One bad item of several keeps all from being stored.
func TestOneBadItemOfSeveral(t *testing.T) {
	t.Parallel()
	s := newStage(t, nil)
	if got := put(t, s.alice, "notes", "a", foreign("kept")); got != "result" {
		t.Fatal(got)
	}
	before := s.reads(s.alice)
	item := func(id, payload string) string { return `<item id='` + id + `'>` + payload + `</item>` }
	for _, row := range []struct{ name, items, want string }{
		{"bad payload", item("a", foreign("x")) + item("b", "text"), badPayload},
		{"bad record", item("a", foreign("x")) + item("b", `<record xmlns='urn:pepvault:record:0'/>`), badPayload},
		{"bad id", item("a", foreign("x")) + item("", foreign("y")), "modify/not-acceptable"},
		{"one id twice", item("a", foreign("x")) + item("a", foreign("y")), malformed},
		{"too many", item("a", foreign("x")) + item("b", foreign("x")) + item("c", foreign("x")) + item("d", foreign("x")) + item("e", foreign("x")), "cancel/not-allowed+max-items-exceeded"},
		{"one more than fits", item("b", foreign("x")) + item("c", foreign("x")) + item("d", foreign("x")) + item("e", foreign("x")), "cancel/conflict+node-full"},
		{"no items", "", malformed + "+item-required"},
		{"another element", item("a", foreign("x")) + `<retract id='b'/>`, malformed},
	} {
		answer, err := s.alice.IQ(t.Context(), "set", "vault.localhost",
			`<pubsub xmlns='http://jabber.org/protocol/pubsub'><publish node='notes'>`+row.items+`</publish></pubsub>`)
		if err != nil || outcome(answer) != row.want {
			t.Errorf("%s: answered %s (%v), want %s", row.name, answer, err, row.want)
		}
		if after := s.reads(s.alice); !bytes.Equal(before, after) {
			t.Errorf("%s changed\n%s to\n%s", row.name, before, after)
		}
	}
	answer, err := s.alice.IQ(t.Context(), "set", "vault.localhost",
		`<pubsub xmlns='http://jabber.org/protocol/pubsub'><retract node='notes'><item id='a'/><item id='absent'/></retract></pubsub>`)
	if err != nil || outcome(answer) != missing {
		t.Errorf("retracting what is not there: %s, %v", answer, err)
	}
	if after := s.reads(s.alice); !bytes.Equal(before, after) {
		t.Errorf("a refused retract changed\n%s to\n%s", before, after)
	}
	s.survived()
}

// C14: after each opening of the store every listed item can be fetched and
// retracted, a deleted vault leaves nothing behind, and new ones are empty.
func TestC14ItemsAfterReopening(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "vault.db")
	for round := range 3 {
		t.Run(fmt.Sprint("start ", round+1), func(t *testing.T) {
			host := hosttest.New(t)
			serve(t, host, func(s *setup) {
				s.store = openStore(t, path)
				s.limits.Records, s.limits.Vaults = 16, 20
			})
			d := host.Device("alice/phone")
			if round == 0 {
				for i := range 9 {
					d.Asks("set", publishing(fmt.Sprint(i)))
				}
			}
			want := 9 - 2*round
			answer := d.Asks("get", getNotes)
			if got := strings.Count(string(answer.Raw), "<item "); got != want {
				t.Fatalf("%d records are listed, want %d", got, want)
			}
			for id := 9 - want; id < 9; id++ {
				one := d.Asks("get", fmt.Sprintf(`<pubsub xmlns='http://jabber.org/protocol/pubsub'><items node='notes'><item id='%d'/></items></pubsub>`, id))
				if !strings.Contains(string(one.Raw), fmt.Sprintf("id='%d'", id)) {
					t.Errorf("item %d is listed, but not fetched: %s", id, one)
				}
			}
			for id := 9 - want; id < 11-want; id++ {
				d.Asks("set", fmt.Sprintf(`<pubsub xmlns='http://jabber.org/protocol/pubsub'><retract node='notes'><item id='%d'/></retract></pubsub>`, id))
			}
			if round < 2 {
				return
			}
			d.Asks("set", `<pubsub xmlns='http://jabber.org/protocol/pubsub#owner'><delete node='notes'/></pubsub>`)
			wantError(t, d.AsksInVain("get", getNotes), "cancel", "item-not-found")
			for i := range 10 {
				node := fmt.Sprint("new", i)
				if got := put(t, d, node, "mine", foreign("x")); got != "result" {
					t.Fatal(got)
				}
				if answer := d.Asks("get", reading(node)); strings.Count(string(answer.Raw), "<item ") != 1 {
					t.Errorf("a new vault holds %s", answer)
				}
			}
			d.Asks("set", publishing("again"))
			if answer := d.Asks("get", getNotes); strings.Count(string(answer.Raw), "<item ") != 1 {
				t.Errorf("a vault made again holds %s", answer)
			}
		})
	}
}
