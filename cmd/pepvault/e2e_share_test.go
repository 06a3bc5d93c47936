package main_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// testShare has two devices of one account do with a vault what devices do.
func (h *host) testShare(t *testing.T) {
	h.serve(t, vaultJID, "")
	laptop := connectOurs(t, h.server, alice, "laptop", vaultJID)
	phone := connectTheirs(t, h.server, alice, "phone", vaultJID)

	checkDiscovery(t, laptop, phone)
	if _, fault := phone.ask("subscribe", "node", "notes"); fault != "cancel/item-not-found" {
		t.Errorf("subscribe to a node that is not there: %q", fault)
	}
	if _, fault := phone.ask("items", "node", "notes"); fault != "cancel/item-not-found" {
		t.Errorf("items of a node that is not there: %q", fault)
	}

	// Both devices become interested, each in its own way.
	first := record(3, "first")
	laptop.must("set", publish("notes", "a", first))
	phone.must("presence")
	if got, want := phone.must("subscribe", "node", "notes").Text, alice+" subscribed"; got != want {
		t.Errorf("bare subscription: %q, want %q", got, want)
	}
	laptop.presence()
	laptop.must("set", "<pubsub xmlns='"+nsPubsub+"'><subscribe node='notes' jid='"+laptop.JID()+"'/></pubsub>")
	drain(laptop, phone)

	checkNative(t, laptop, phone)
	checkForeign(t, laptop, phone)
	checkReading(t, laptop, phone)
	checkRemoval(t, laptop, phone)
}

func checkDiscovery(t *testing.T, laptop *ourDevice, phone *theirDevice) {
	t.Helper()
	phone.must("ping")
	if version := phone.must("version").Text; !strings.HasPrefix(version, "pepvault ") {
		t.Errorf("version: %q", version)
	}
	info := phone.must("info")
	if !slices.Contains(info.Identities, "pubsub/service") {
		t.Errorf("identities: %q", info.Identities)
	}
	for _, feature := range []string{nsPubsub, nsPubsub + "#publish", nsPubsub + "#auto-create", nsPubsub + "#retrieve-items",
		nsPubsub + "#retract-items", nsPubsub + "#subscribe", nsDisco + "info", "urn:xmpp:ping"} {
		if !slices.Contains(info.Features, feature) {
			t.Errorf("feature %s is missing in %q", feature, info.Features)
		}
	}
	if nodes := phone.must("nodes").IDs; len(nodes) != 0 {
		t.Errorf("nodes of a new account: %q", nodes)
	}
	if _, fault := phone.ask("info", "node", "notes"); fault != "cancel/item-not-found" {
		t.Errorf("info of a node that is not there: %q", fault)
	}
	if _, fault := laptop.ask("get", "<query xmlns='urn:example:unknown'/>"); fault != "cancel/service-unavailable" {
		t.Errorf("unknown request: %q", fault)
	}
}

// checkNative publishes and overwrites native records and holds what each
// device hears of that.
func checkNative(t *testing.T, laptop *ourDevice, phone *theirDevice) {
	t.Helper()
	cursor := ""
	for _, step := range []struct {
		id, payload string
	}{
		{"b", record(3, "second")},
		{"b", record(4, "second, overwritten")},
	} {
		answer := laptop.must("set", publish("notes", step.id, step.payload))
		if got := answer.child(nsPubsub, "publish").child(nsPubsub, "item").attr("id"); got != step.id {
			t.Errorf("published %q, want %q", got, step.id)
		}
		heard := phone.event()
		if heard.Event != "publish" || heard.Node != "notes" || !slices.Equal(heard.IDs, []string{step.id}) || heard.From != vaultJID {
			t.Errorf("slixmpp heard %+v", heard)
		}
		if diff := cmp.Diff(meaning(t, step.payload), meaning(t, heard.XML)); diff != "" {
			t.Errorf("payload that slixmpp heard (-want +got):\n%s", diff)
		}
		// The vault's state, as each device got it.
		_, state := laptop.event()
		theirs := parse(t, []byte(heard.Stanza)).child(nsSync, "state")
		for name, s := range map[string]element{"our": state, "their": theirs} {
			named := s.child(nsSync, "item")
			if s.attr("owner") != alice || s.attr("node") != "notes" || s.attr("cursor") == "" || s.attr("previous") == "" ||
				named.attr("id") != step.id || named.attr("revision") == "" {
				t.Errorf("state in %s event: %+v", name, s)
			}
			if cursor != "" && s.attr("previous") != cursor {
				t.Errorf("state in %s event has previous %q, want the last cursor %q", name, s.attr("previous"), cursor)
			}
		}
		if state.attr("cursor") != theirs.attr("cursor") {
			t.Errorf("cursors of one commit differ: %q and %q", state.attr("cursor"), theirs.attr("cursor"))
		}
		cursor = state.attr("cursor")
	}
	phone.quiet()
	laptop.quiet()
}

// checkForeign stores payloads that are not ours, from either device, and
// holds that the other reads the same meaning.
func checkForeign(t *testing.T, laptop *ourDevice, phone *theirDevice) {
	t.Helper()
	const payload = `<n:note xmlns:n='urn:example:note' xmlns:x='urn:example:x' n:flag='1' plain='&lt;"&apos;&amp;' key-version='7' xml:lang='de'>` +
		markedText + ` <b xmlns='urn:example:other' x:deep='ü'>bold</b> tail &amp; <n:empty/>more ♥<plain xmlns=''/></n:note>`
	// slixmpp reads all of that, but writes neither attributes in a namespace
	// nor a namespace that is taken back.
	const simple = `<n:note xmlns:n='urn:example:note' plain='&lt;"&apos;&amp;' key-version='7' xml:lang='de'>` +
		markedText + ` <b xmlns='urn:example:other' deep='ü'>bold</b> tail &amp; <n:empty/>more ♥</n:note>`
	want, wantSimple := meaning(t, payload), meaning(t, simple)
	laptop.must("set", publish("notes", "from-laptop", payload))
	if got := meaning(t, phone.event().XML); got != want {
		t.Errorf("foreign payload in slixmpp's event:\n got %s\nwant %s", got, want)
	}
	laptop.event()
	phone.must("publish", "node", "notes", "id", "from-phone", "xml", simple)
	what, _ := laptop.event()
	if got := meaning(t, string(what.child(nsEvent, "item").Inner)); got != wantSimple {
		t.Errorf("foreign payload in our event:\n got %s\nwant %s", got, wantSimple)
	}
	phone.event()
	for name, read := range map[string][]item{
		"our":     laptop.items("notes", "", "<item id='from-laptop'/><item id='from-phone'/>"),
		"slixmpp": phone.items("notes", "ids", []string{"from-laptop", "from-phone"}),
	} {
		wanted := []item{{"from-laptop", alice, want}, {"from-phone", alice, wantSimple}}
		if diff := cmp.Diff(wanted, read); diff != "" {
			t.Errorf("foreign payloads as %s device reads them (-want +got):\n%s", name, diff)
		}
	}
	// An id that the service chooses.
	made := phone.must("publish", "node", "notes", "xml", "<e xmlns='urn:example:e'/>").IDs
	if len(made) != 1 || made[0] == "" {
		t.Fatalf("no id was made: %q", made)
	}
	if heard := phone.event(); !slices.Equal(heard.IDs, made) {
		t.Errorf("event names %q, want %q", heard.IDs, made)
	}
	laptop.event()
	phone.must("retract", "node", "notes", "id", made[0])
	phone.event()
	laptop.event()
}

// checkReading holds that both devices see the same vault, in the order of
// changes.
func checkReading(t *testing.T, laptop *ourDevice, phone *theirDevice) {
	t.Helper()
	order := []string{"a", "b", "from-laptop", "from-phone"}
	ours, theirs := laptop.items("notes", "", ""), phone.items("notes")
	if diff := cmp.Diff(order, ids(ours)); diff != "" {
		t.Errorf("all items (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(ours, theirs); diff != "" {
		t.Errorf("slixmpp reads another vault (-ours +theirs):\n%s", diff)
	}
	if got := meaning(t, record(4, "second, overwritten")); len(ours) > 1 && ours[1].Payload != got {
		t.Errorf("b is %s, want %s", ours[1].Payload, got)
	}
	if got := ids(phone.items("notes", "max_items", 2)); !slices.Equal(got, order[2:]) {
		t.Errorf("latest two: %q", got)
	}
	if got := ids(laptop.items("notes", "", "<item id='b'/><item id='missing'/>")); !slices.Equal(got, []string{"b"}) {
		t.Errorf("by ids: %q", got)
	}
	if nodes := phone.must("nodes").IDs; !slices.Equal(nodes, []string{"notes"}) {
		t.Errorf("nodes: %q", nodes)
	}
	if identities := phone.must("info", "node", "notes").Identities; !slices.Contains(identities, "pubsub/leaf") {
		t.Errorf("identities of a node: %q", identities)
	}
}

func checkRemoval(t *testing.T, laptop *ourDevice, phone *theirDevice) {
	t.Helper()
	laptop.must("set", retract("notes", "b"))
	if heard := phone.event(); heard.Event != "retract" || heard.Node != "notes" || !slices.Equal(heard.IDs, []string{"b"}) {
		t.Errorf("slixmpp heard %+v", heard)
	}
	what, state := laptop.event()
	if named := state.child(nsSync, "item"); what.child(nsEvent, "retract").attr("id") != "b" || named.attr("id") != "b" || named.attr("gone") != "true" {
		t.Errorf("event of a retract: %+v %+v", what, state)
	}
	if _, fault := phone.ask("retract", "node", "notes", "id", "b"); fault != "cancel/item-not-found" {
		t.Errorf("retract of what is gone: %q", fault)
	}
	phone.must("delete", "node", "notes")
	if heard := phone.event(); heard.Event != "delete" || heard.Node != "notes" {
		t.Errorf("slixmpp heard %+v", heard)
	}
	if what, state := laptop.event(); what.XMLName.Local != "delete" || state.attr("previous") == "" || state.attr("cursor") != "" {
		t.Errorf("event of a deletion: %+v %+v", what, state)
	}
	if _, fault := laptop.ask("get", items("notes", "", "")); fault != "cancel/item-not-found" {
		t.Errorf("items of a deleted node: %q", fault)
	}
	phone.quiet()
	laptop.quiet()
}

// drain drops what came because a device has just become known.
func drain(laptop *ourDevice, phone *theirDevice) {
	laptop.must("get", "<ping xmlns='urn:xmpp:ping'/>")
	phone.must("ping")
	for len(laptop.messages) > 0 {
		<-laptop.messages
	}
	for len(phone.events) > 0 {
		<-phone.events
	}
}
