package component_test

import (
	"encoding/xml"
	"testing"

	"pepvault/component/hosttest"
	"pepvault/component/loopback"
	"pepvault/pep"
	"pepvault/pep/wire"
)

// commander takes commands a step at a time.
type commander struct {
	t      *testing.T
	device *hosttest.Device
}

func (c commander) step(command wire.Command) (wire.CommandResult, string) {
	c.t.Helper()
	kind, payload := wire.Ask(command)
	answer, err := c.device.IQ(c.t.Context(), kind, c.device.Host().Component(), string(payload))
	if err != nil {
		c.t.Fatal(err)
	}
	if answer.Type == "error" {
		return wire.CommandResult{}, outcome(answer)
	}
	result, err := wire.DecodeReply(asOfClient(c.t, answer), command)
	if err != nil {
		c.t.Fatalf("%s: %v", answer, err)
	}
	return result.(wire.CommandResult), result.(wire.CommandResult).Status
}

func asOfClient(t *testing.T, s loopback.Stanza) []byte {
	t.Helper()
	var stanza struct {
		Inner []byte `xml:",innerxml"`
	}
	if err := xml.Unmarshal(s.Raw, &stanza); err != nil {
		t.Fatal(err)
	}
	return append(append([]byte("<iq type='result'>"), stanza.Inner...), "</iq>"...)
}

func form(field, value string) *pep.Form {
	return &pep.Form{Fields: []pep.Field{{Name: field, Values: []string{value}}}}
}

const (
	usageCommand = "urn:pepvault:command:usage"
	listCommand  = "urn:pepvault:command:vaults"
	eraseCommand = "urn:pepvault:command:erase"
)

// A command goes the way that its stages have, and no other (XEP-0050 §3.4).
func TestCommandSteps(t *testing.T) {
	t.Parallel()
	s := newStage(t, nil)
	bob := commander{t, s.bob}
	s.alice.Asks("set", publishing("a"))
	begin := func(node string) string {
		t.Helper()
		result, got := bob.step(wire.Command{Node: node, Action: "execute"})
		if got != "executing" || result.Session == "" {
			t.Fatalf("%s: %s", node, got)
		}
		return result.Session
	}
	usage, erase := begin(usageCommand), begin(eraseCommand)
	for _, row := range []struct {
		name    string
		command wire.Command
		want    string
	}{
		{"no such command", wire.Command{Node: "urn:pepvault:command:other", Action: "execute"}, "cancel/item-not-found"},
		{"it begins with execute", wire.Command{Node: usageCommand, Action: "complete", Form: form("jid", "alice@localhost")}, "modify/bad-request+bad-action"},
		{"made-up session", wire.Command{Node: usageCommand, Session: "x", Action: "complete"}, "modify/bad-request+bad-sessionid"},
		{"session of another command", wire.Command{Node: usageCommand, Session: erase, Action: "complete"}, "modify/bad-request+bad-sessionid"},
		{"no stage before the first", wire.Command{Node: usageCommand, Session: usage, Action: "prev"}, "modify/bad-request+bad-action"},
		{"no stage behind the only one", wire.Command{Node: usageCommand, Session: usage, Action: "next", Form: form("jid", "alice@localhost")}, "modify/bad-request+bad-action"},
		{"no form", wire.Command{Node: usageCommand, Session: usage, Action: "complete"}, "modify/bad-request+bad-payload"},
		{"no JID", wire.Command{Node: usageCommand, Session: usage, Action: "complete", Form: form("jid", "alice")}, "modify/bad-request+bad-payload"},
		{"an account that is not served", wire.Command{Node: usageCommand, Session: usage, Action: "complete", Form: form("jid", "alice@elsewhere.example")}, "modify/bad-request+bad-payload"},
		{"any spelling of the account", wire.Command{Node: usageCommand, Session: usage, Action: "execute", Form: form("jid", "ALICE@LocalHost")}, "completed"},
		{"the session has ended", wire.Command{Node: usageCommand, Session: usage, Action: "complete", Form: form("jid", "alice@localhost")}, "modify/bad-request+bad-sessionid"},

		{"not confirmed yet", wire.Command{Node: eraseCommand, Session: erase, Action: "complete", Form: form("jid", "alice@localhost")}, "modify/bad-request+bad-action"},
		{"named", wire.Command{Node: eraseCommand, Session: erase, Action: "next", Form: form("jid", "bob@localhost")}, "executing"},
		{"no stage behind the second", wire.Command{Node: eraseCommand, Session: erase, Action: "next", Form: form("confirm", "true")}, "modify/bad-request+bad-action"},
		{"back", wire.Command{Node: eraseCommand, Session: erase, Action: "prev"}, "executing"},
		{"named again", wire.Command{Node: eraseCommand, Session: erase, Action: "execute", Form: form("jid", "alice@localhost")}, "executing"},
		{"not confirmed", wire.Command{Node: eraseCommand, Session: erase, Action: "complete"}, "modify/bad-request+bad-payload"},
		{"given up", wire.Command{Node: eraseCommand, Session: erase, Action: "cancel"}, "canceled"},
		{"ended", wire.Command{Node: eraseCommand, Session: erase, Action: "complete", Form: form("confirm", "true")}, "modify/bad-request+bad-sessionid"},
	} {
		if _, got := bob.step(row.command); got != row.want {
			t.Errorf("%s: got %s, want %s", row.name, got, row.want)
		}
	}
	s.alice.Asks("get", getNotes) // nothing was erased
	s.survived()
}

// Commands are refused to everybody else, in the middle too.
func TestCommandsAreForOperators(t *testing.T) {
	t.Parallel()
	s := newStage(t, nil)
	bob, alice := commander{t, s.bob}, commander{t, s.alice}
	open, _ := bob.step(wire.Command{Node: eraseCommand, Action: "execute"})
	for _, command := range []wire.Command{
		{Node: usageCommand, Action: "execute"},
		{Node: "urn:pepvault:command:other", Action: "execute"},
		{Node: eraseCommand, Session: open.Session, Action: "next", Form: form("jid", "bob@localhost")},
		{Node: eraseCommand, Session: open.Session, Action: "cancel"},
	} {
		if _, got := alice.step(command); got != "auth/forbidden" {
			t.Errorf("%+v: got %s", command, got)
		}
	}
	if _, got := bob.step(wire.Command{Node: eraseCommand, Session: open.Session, Action: "cancel"}); got != "canceled" {
		t.Errorf("the operator's own session: got %s", got)
	}
	s.survived()
}

// The list of an account's vaults names each, as far as there is room.
func TestVaultsCommand(t *testing.T) {
	t.Parallel()
	s := newStage(t, func(s *setup) { s.limits.Vaults = 200 })
	bob := commander{t, s.bob}
	for _, node := range []string{"notes", "keys"} {
		put(t, s.alice, node, "a", native("x"))
	}
	show := func() wire.CommandResult {
		t.Helper()
		open, _ := bob.step(wire.Command{Node: listCommand, Action: "execute"})
		result, got := bob.step(wire.Command{Node: listCommand, Session: open.Session, Action: "complete", Form: form("jid", "alice@localhost")})
		if got != "completed" {
			t.Fatal(got)
		}
		return result
	}
	result := show()
	if got := result.Form.Field("vaults").Values; len(got) != 1 || got[0] != "2" {
		t.Errorf("vaults: %q", got)
	}
	if got := result.Form.Field("list").Values; len(got) != 2 || got[0] != "keys: 1 records, 1 bytes, key version 1" || len(result.Notes) > 0 {
		t.Errorf("list: %q, %v", got, result.Notes)
	}
	for i := range 150 {
		long := make([]byte, 500)
		for n := range long {
			long[n] = 'a' + byte(i%26)
		}
		put(t, s.alice, string(long)+string(rune('A'+i/26)), "a", native("x"))
	}
	result = show()
	if got := result.Form.Field("list").Values; len(got) < 30 || len(got) > 100 || len(result.Notes) != 1 {
		t.Errorf("%d are listed, with %v", len(got), result.Notes)
	}
}

// An erasure is told to everybody who has something to lose by it.
func TestEraseCommand(t *testing.T) {
	t.Parallel()
	s := newStage(t, nil)
	s.alice.Asks("set", publishing("a"))
	send(t, s.alice, `<presence to='vault.localhost'/>`)
	subscribes(s.alice, "alice@localhost/phone")
	bob := commander{t, s.bob}
	open, _ := bob.step(wire.Command{Node: eraseCommand, Action: "execute"})
	bob.step(wire.Command{Node: eraseCommand, Session: open.Session, Action: "next", Form: form("jid", "alice@localhost")})
	if _, got := bob.step(wire.Command{Node: eraseCommand, Session: open.Session, Action: "complete", Form: form("confirm", "1")}); got != "completed" {
		t.Fatal(got)
	}
	s.alice.Receives(`<message type='headline' from='vault.localhost' id='*'><event xmlns='http://jabber.org/protocol/pubsub#event'><delete node='notes'/></event>` +
		`<state xmlns='urn:pepvault:sync:0' owner='alice@localhost' node='notes' previous='$now'/></message>`)
	if got := len(s.service.engine.Known()); got != 0 {
		t.Errorf("%d resources are known, want none", got)
	}
	s.survived()
}
