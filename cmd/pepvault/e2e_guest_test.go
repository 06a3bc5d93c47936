package main_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// alicesAddress is where others find Alice's vaults.
const alicesAddress = `alice\40localhost@` + tourJID

// tourSharing lets a second account in and out again (XEP-0060 §4.1, §8.9).
func (h *host) tourSharing(t *testing.T, phone *theirDevice) {
	t.Helper()
	guest := connectTheirs(t, h.server, bob, "desk", tourJID)
	phone.must("publish", "node", "shared", "id", "a", "xml", record(1, "a"))
	h.checkStranger(t, guest, "before he is let in")

	phone.must("affiliate", "node", "shared", "jid", bob, "affiliation", "member")
	want := []string{alice + " owner", bob + " member"}
	if got := phone.must("node_affiliations", "node", "shared").IDs; !slices.Equal(got, want) {
		t.Errorf("affiliations: %q, want %q", got, want)
	}
	if got := guest.must("affiliations", "to", alicesAddress).IDs; !slices.Equal(got, []string{"shared member"}) {
		t.Errorf("the guest's affiliations: %q", got)
	}
	if got := guest.must("nodes", "to", alicesAddress).IDs; !slices.Equal(got, []string{"shared"}) {
		t.Errorf("nodes that the guest sees: %q", got)
	}
	guest.must("interest", "to", alicesAddress, "node", "shared")
	if _, fault := guest.ask("publish", "to", alicesAddress, "node", "shared", "id", "b", "xml", record(1, "b")); fault != "auth/forbidden" {
		t.Errorf("a member publishes: %q", fault)
	}
	for _, op := range []string{"config", "purge", "delete", "node_affiliations"} {
		if _, fault := guest.ask(op, "to", alicesAddress, "node", "shared"); fault != "auth/forbidden" {
			t.Errorf("a member asks for %s: %q", op, fault)
		}
	}

	phone.must("affiliate", "node", "shared", "jid", bob, "affiliation", "publisher")
	guest.must("publish", "to", alicesAddress, "node", "shared", "id", "b", "xml", record(1, "b"))
	phone.must("publish", "node", "shared", "id", "c", "xml", record(1, "c"))
	for _, id := range []string{"b", "c"} {
		heard := guest.event()
		if heard.Event != "publish" || heard.From != alicesAddress || !slices.Equal(heard.IDs, []string{id}) {
			t.Errorf("the guest heard %+v", heard)
		}
	}
	both := []item{
		{"a", alice, meaning(t, record(1, "a"))}, {"b", bob, meaning(t, record(1, "b"))}, {"c", alice, meaning(t, record(1, "c"))},
	}
	if diff := cmp.Diff(both, guest.items("shared", "to", alicesAddress)); diff != "" {
		t.Errorf("what the guest reads (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(both, phone.items("shared")); diff != "" {
		t.Errorf("what the owner reads (-want +got):\n%s", diff)
	}
	// It is not his own vault.
	if _, fault := guest.ask("items", "node", "shared"); fault != "cancel/item-not-found" {
		t.Errorf("the guest's own vault of that name: %q", fault)
	}

	phone.must("affiliate", "node", "shared", "jid", bob, "affiliation", "none")
	phone.must("publish", "node", "shared", "id", "d", "xml", record(1, "d"))
	guest.quiet()
	h.checkStranger(t, guest, "after he was put out")
}

// checkStranger holds that whoever has no affiliation learns nothing: each
// answer is the same for a vault that is there, one that is not, and one of an
// account that is not.
func (h *host) checkStranger(t *testing.T, guest *theirDevice, when string) {
	t.Helper()
	for _, row := range []struct {
		op   string
		want fault
		args []any
	}{
		{"items", "cancel/not-allowed closed-node", nil},
		{"info", "cancel/not-allowed closed-node", nil},
		{"names", "cancel/not-allowed closed-node", nil},
		{"subscribe", "cancel/not-allowed closed-node", nil},
		{"publish", "auth/forbidden", []any{"id", "x", "xml", record(1, "x")}},
		{"retract", "auth/forbidden", []any{"id", "a"}},
		{"config", "auth/forbidden", nil},
		{"purge", "auth/forbidden", nil},
		{"delete", "auth/forbidden", nil},
		{"node_affiliations", "auth/forbidden", nil},
		{"affiliate", "auth/forbidden", []any{"jid", bob, "affiliation", "owner"}},
	} {
		var texts []string
		for _, at := range []struct{ to, node string }{
			{alicesAddress, "shared"}, {alicesAddress, "absent"}, {`nobody\40localhost@` + tourJID, "shared"},
		} {
			line, got := guest.ask(row.op, append([]any{"to", at.to, "node", at.node}, row.args...)...)
			if got != row.want {
				t.Errorf("%s: %s of %s at %s: %q, want %q", when, row.op, at.node, at.to, got, row.want)
				continue
			}
			texts = append(texts, line.Error.Text)
		}
		if len(slices.Compact(texts)) > 1 {
			t.Errorf("%s: %s is refused by different words: %q", when, row.op, texts)
		}
	}
	for _, to := range []string{alicesAddress, `nobody\40localhost@` + tourJID} {
		if got := guest.must("nodes", "to", to).IDs; len(got) != 0 {
			t.Errorf("%s: nodes of %s: %q", when, to, got)
		}
	}
}

// tourCommands goes through the operator's commands (XEP-0050); they are
// refused to everybody else.
func (h *host) tourCommands(t *testing.T, phone *theirDevice) {
	t.Helper()
	const usage, vaults, erase = "urn:pepvault:command:usage", "urn:pepvault:command:vaults", "urn:pepvault:command:erase"
	office := connectTheirs(t, h.server, operator, "office", tourJID)
	if got, want := office.must("commands").IDs, []string{erase, usage, vaults}; !slices.Equal(got, want) {
		t.Errorf("the operator's commands: %q, want %q", got, want)
	}
	if got := phone.must("commands").IDs; len(got) != 0 {
		t.Errorf("commands of everybody: %q", got)
	}
	for _, node := range []string{usage, vaults, erase, "urn:example:absent"} {
		if _, fault := phone.ask("command", "node", node, "steps", []any{}); fault != "auth/forbidden" {
			t.Errorf("%s for everybody: %q", node, fault)
		}
	}
	named := func(action string) []any {
		return []any{map[string]any{"action": action, "fill": map[string]any{"jid": "Alice@localhost"}}}
	}
	shown := office.must("command", "node", usage, "steps", named("complete")).Steps
	if len(shown) != 2 || shown[0].Status != "executing" || shown[1].Status != "completed" ||
		!slices.Equal(shown[1].Form["vaults"], []string{"1"}) || !slices.Equal(shown[1].Form["records"], []string{"4"}) {
		t.Errorf("usage: %+v", shown)
	}
	shown = office.must("command", "node", vaults, "steps", named("complete")).Steps
	if len(shown) != 2 || len(shown[1].Form["list"]) != 1 || shown[1].Form["list"][0][:7] != "shared:" {
		t.Errorf("vaults: %+v", shown)
	}
	// Nothing is erased unless it is confirmed.
	for _, last := range []map[string]any{
		{"action": "cancel"},
		{"action": "complete", "fill": map[string]any{"confirm": "0"}},
	} {
		line, fault := office.ask("command", "node", erase, "steps", append(named("next"), last))
		if last["action"] == "cancel" && (fault != "" || line.Steps[2].Status != "canceled") || last["action"] != "cancel" && fault != "modify/bad-request bad-payload" {
			t.Errorf("erase, %v: %q %+v", last, fault, line.Steps)
		}
	}
	if got := ids(phone.items("shared")); len(got) != 4 {
		t.Errorf("records before the erasure: %q", got)
	}
	// C43, C49: the phone hears of it.
	phone.must("interest", "node", "shared")
	phone.must("ping")
	drainTheirs(phone)
	confirmed := append(named("next"), map[string]any{"action": "complete", "fill": map[string]any{"confirm": "1"}})
	shown = office.must("command", "node", erase, "steps", confirmed).Steps
	if len(shown) != 3 || shown[2].Status != "completed" || !slices.Equal(shown[2].Form["records"], []string{"4"}) {
		t.Errorf("erase: %+v", shown)
	}
	if heard := phone.event(); heard.Event != "delete" || heard.Node != "shared" {
		t.Errorf("the phone heard %+v", heard)
	}
	if got := phone.must("nodes").IDs; len(got) != 0 {
		t.Errorf("nodes after the erasure: %q", got)
	}
}

// drainTheirs drops what came because a device has just become known.
func drainTheirs(phone *theirDevice) {
	for len(phone.events) > 0 {
		<-phone.events
	}
}
