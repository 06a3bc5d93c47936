package main_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// testTour has a client library that knows nothing of us do all that it can do
// with pubsub, by its own plugins.
func (h *host) testTour(t *testing.T) {
	h.serve(t, tourJID, "[access]\nadmins = [\""+operator+"\"]\n")
	phone := connectTheirs(t, h.server, alice, "phone", tourJID)
	laptop := connectOurs(t, h.server, alice, "laptop", tourJID)
	tourStorage(t, phone)
	tourNodes(t, phone)
	tourItems(t, phone)
	tourPages(t, phone, laptop)
	tourDownload(t, phone)
	tourSubscriptions(t, phone)
	tourEvents(t, phone, laptop)
	h.tourSharing(t, phone)
	h.tourCommands(t, phone)
}

// tourStorage keeps public and private data as their profiles say (XEP-0222,
// XEP-0223), and what other devices show as read (XEP-0490).
func tourStorage(t *testing.T, phone *theirDevice) {
	t.Helper()
	for _, plugin := range []string{"xep_0223", "xep_0222"} {
		phone.must("store", "plugin", plugin, "id", plugin, "place", "garden")
		got := phone.must("retrieve", "plugin", plugin, "id", plugin).Items
		if len(got) != 1 || got[0].ID != plugin || got[0].Publisher != alice || !strings.Contains(got[0].Payload, "garden") {
			t.Errorf("%s retrieves %v", plugin, got)
		}
	}
	config := phone.must("config", "node", "urn:example:bookmarks").Form
	for field, want := range map[string]string{"pubsub#persist_items": "1", "pubsub#access_model": "whitelist", "pubsub#send_last_published_item": "never"} {
		if got := config[field]; !slices.Equal(got, []string{want}) {
			t.Errorf("%s of stored bookmarks: %q, want %q", field, got, want)
		}
	}
	displayed := map[string]any{
		"pubsub#persist_items": "true", "pubsub#max_items": "max",
		"pubsub#send_last_published_item": "never", "pubsub#access_model": "whitelist",
	}
	for _, id := range []string{"friend@example.org", "room@example.org", "friend@example.org"} {
		phone.must("publish", "node", "urn:xmpp:mds:displayed:0", "id", id, "xml", "<displayed xmlns='urn:xmpp:mds:displayed:0'/>", "options", displayed)
	}
	if got := ids(phone.items("urn:xmpp:mds:displayed:0")); !slices.Equal(got, []string{"room@example.org", "friend@example.org"}) {
		t.Errorf("what is displayed: %q", got)
	}
	other := map[string]any{"pubsub#max_items": "3"}
	if _, fault := phone.ask("publish", "node", "urn:xmpp:mds:displayed:0", "id", "x", "xml", "<x xmlns='urn:example'/>", "options", other); fault != "cancel/conflict precondition-not-met" {
		t.Errorf("options that do not fit: %q", fault)
	}
	for _, node := range []string{"urn:example:bookmarks", "urn:xmpp:mds:displayed:0"} {
		phone.must("delete", "node", node)
	}
}

// tourNodes makes and configures nodes, and finds them (XEP-0060 §8, XEP-0030).
func tourNodes(t *testing.T, phone *theirDevice) {
	t.Helper()
	made := phone.must("create").Text // an instant node
	phone.must("create", "node", "notes", "config", map[string]any{"pubsub#title": "My notes", "pubsub#max_items": "30"})
	if _, fault := phone.ask("create", "node", "notes"); fault != "cancel/conflict" {
		t.Errorf("a node that is there is made: %q", fault)
	}
	if got, want := phone.must("nodes").IDs, []string{made, "notes"}; made == "" || !slices.Equal(got, slices.Sorted(slices.Values(want))) {
		t.Errorf("nodes: %q, want %q", got, want)
	}
	phone.must("delete", "node", made)

	defaults := phone.must("default").Form
	before := phone.must("config", "node", "notes").Form
	for field := range defaults {
		if _, ok := before[field]; !ok {
			t.Errorf("%s is configured by default, and not in a node", field)
		}
	}
	// The whole form goes back: unchanged, changed, and with what can't be.
	phone.must("configure", "node", "notes", "change", map[string]any{})
	if diff := cmp.Diff(before, phone.must("config", "node", "notes").Form); diff != "" {
		t.Errorf("a form that went back unchanged (-before +after):\n%s", diff)
	}
	phone.must("configure", "node", "notes", "change", map[string]any{"pubsub#title": "All notes", "pubsub#notify_retract": "0"})
	if _, fault := phone.ask("configure", "node", "notes", "change", map[string]any{"pubsub#title": "Open notes", "pubsub#access_model": "open"}); fault != "modify/not-acceptable unsupported-access-model" {
		t.Errorf("an access model that we don't have: %q", fault)
	}
	want := before
	want["pubsub#title"], want["pubsub#notify_retract"] = []string{"All notes"}, []string{"0"}
	if diff := cmp.Diff(want, phone.must("config", "node", "notes").Form); diff != "" {
		t.Errorf("a form that was changed (-want +got):\n%s", diff)
	}
	phone.must("configure", "node", "notes", "change", map[string]any{"pubsub#notify_retract": "1"})

	info := phone.must("info", "node", "notes")
	if !slices.Contains(info.Identities, "pubsub/leaf") || !slices.Equal(info.Forms["http://jabber.org/protocol/pubsub#meta-data"]["pubsub#title"], []string{"All notes"}) ||
		!slices.Equal(info.Forms["urn:pepvault:usage:0"]["records"], []string{"0"}) {
		t.Errorf("what slixmpp finds of a node: %+v", info)
	}
	service := phone.must("info")
	if limit := service.Forms["urn:pepvault:limits:0"]["max-records"]; !slices.Equal(limit, []string{"256"}) {
		t.Errorf("limits that slixmpp finds: %q", service.Forms)
	}
	for _, feature := range []string{"create-and-configure", "instant-nodes", "config-node", "publish-options", "retrieve-affiliations", "retrieve-subscriptions", "filtered-notifications", "rsm"} {
		if !slices.Contains(service.Features, nsPubsub+"#"+feature) {
			t.Errorf("feature %s is missing", feature)
		}
	}
}

// tourItems publishes, reads, retracts and purges (XEP-0060 §6.5, §7, §8.5).
func tourItems(t *testing.T, phone *theirDevice) {
	t.Helper()
	for _, id := range []string{"a", "b", "c", "a"} {
		if got := phone.must("publish", "node", "notes", "id", id, "xml", record(1, id)).IDs; !slices.Equal(got, []string{id}) {
			t.Errorf("published %q, want %q", got, id)
		}
	}
	if got := ids(phone.items("notes")); !slices.Equal(got, []string{"b", "c", "a"}) {
		t.Errorf("items: %q", got)
	}
	if got := ids(phone.items("notes", "max_items", 1)); !slices.Equal(got, []string{"a"}) {
		t.Errorf("the latest item: %q", got)
	}
	if got := ids(phone.items("notes", "ids", []string{"c", "absent"})); !slices.Equal(got, []string{"c"}) {
		t.Errorf("items by id: %q", got)
	}
	if got := phone.must("names", "node", "notes").IDs; !slices.Equal(got, []string{"a", "b", "c"}) {
		t.Errorf("names of the items: %q", got)
	}
	phone.must("retract", "node", "notes", "id", "b")
	if _, fault := phone.ask("retract", "node", "notes", "id", "b"); fault != "cancel/item-not-found" {
		t.Errorf("what is gone is retracted: %q", fault)
	}
	phone.must("purge", "node", "notes")
	if got := phone.items("notes"); len(got) != 0 {
		t.Errorf("items of a purged node: %q", got)
	}
}

// tourPages goes through 25 records by tens, forward and back (XEP-0059).
func tourPages(t *testing.T, phone *theirDevice, laptop *ourDevice) {
	t.Helper()
	var all []string
	for i := range 25 {
		all = append(all, fmt.Sprintf("record-%02d", i))
		laptop.must("set", publish("notes", all[i], record(1, all[i])))
	}
	forward := phone.must("pages", "node", "notes", "size", 10)
	if diff := cmp.Diff([][]string{all[:10], all[10:20], all[20:]}, forward.Pages); diff != "" {
		t.Errorf("pages (-want +got):\n%s", diff)
	}
	if !slices.Equal(forward.Indexes, []string{"0", "10", "20"}) || slices.ContainsFunc(forward.Counts, func(n string) bool { return n != "25" }) {
		t.Errorf("pages begin at %q of %q", forward.Indexes, forward.Counts)
	}
	back := phone.must("pages", "node", "notes", "size", 10, "reverse", true)
	if diff := cmp.Diff([][]string{all[15:], all[5:15], all[:5]}, back.Pages); diff != "" {
		t.Errorf("pages from the end (-want +got):\n%s", diff)
	}
}

// tourDownload has 25 records sent in chunks, and goes on from one in the
// middle.
func tourDownload(t *testing.T, phone *theirDevice) {
	t.Helper()
	whole := phone.must("download", "node", "notes", "name", "one")
	if n := len(slices.Concat(whole.Pages...)); n != 25 || len(whole.Pages) < 5 || !slices.Equal(whole.Counts, []string{"25"}) {
		t.Errorf("%d records in %d chunks, %q announced", n, len(whole.Pages), whole.Counts)
	}
	rest := phone.must("download", "node", "notes", "name", "two", "cursor", whole.IDs[2])
	if diff := cmp.Diff(whole.Pages[3:], rest.Pages); diff != "" {
		t.Errorf("from the third chunk on (-want +got):\n%s", diff)
	}
	if _, fault := phone.ask("download", "node", "absent", "name", ""); fault != "modify/not-acceptable" {
		t.Errorf("a download without a name: %q", fault)
	}
}

// tourSubscriptions comes and goes as subscriber (XEP-0060 §5.6, §6).
func tourSubscriptions(t *testing.T, phone *theirDevice) {
	t.Helper()
	if got := phone.must("subscribe", "node", "notes").Text; got != alice+" subscribed" {
		t.Errorf("subscribed: %q", got)
	}
	if got := phone.must("subscriptions").IDs; !slices.Equal(got, []string{"notes " + alice + " subscribed"}) {
		t.Errorf("subscriptions: %q", got)
	}
	if options := phone.must("options", "node", "notes", "jid", alice).Form; len(options) < 2 {
		t.Errorf("options of the subscription: %q", options)
	}
	phone.must("unsubscribe", "node", "notes")
	if _, fault := phone.ask("unsubscribe", "node", "notes"); fault != "cancel/unexpected-request not-subscribed" {
		t.Errorf("unsubscribed twice: %q", fault)
	}
	if got := phone.must("subscriptions").IDs; len(got) != 0 {
		t.Errorf("subscriptions afterwards: %q", got)
	}
	phone.must("delete", "node", "notes")
	phone.quiet()
}

// tourEvents announces an interest in its capabilities and hears of all that
// happens (XEP-0163 §4, XEP-0115); C07, C08, C11 and C49.
func tourEvents(t *testing.T, phone *theirDevice, laptop *ourDevice) {
	t.Helper()
	const node = "urn:example:tour"
	laptop.must("set", publish(node, "first", record(1, "first")))
	phone.must("configure", "node", node, "change", map[string]any{"pubsub#send_last_published_item": "on_sub_and_presence"})
	if phone.must("interest", "node", node).Text == "" {
		t.Fatal("slixmpp announced nothing")
	}
	last := phone.event()
	if last.Event != "publish" || !slices.Equal(last.IDs, []string{"first"}) || last.Delay == "" {
		t.Errorf("the last item: %+v", last)
	}
	for _, row := range []struct {
		name, request, event string
		ids                  []string
	}{
		{"publish", publish(node, "a", record(1, "a")), "publish", []string{"a"}},
		{"overwrite", publish(node, "a", record(1, "again")), "publish", []string{"a"}},
		{"retract", retract(node, "a"), "retract", []string{"a"}},
		{"configuration", configure(node, "max_items", "5"), "config", nil},
		{"purge", "<pubsub xmlns='" + nsOwner + "'><purge node='" + node + "'/></pubsub>", "purge", nil},
		{"deletion", "<pubsub xmlns='" + nsOwner + "'><delete node='" + node + "'/></pubsub>", "delete", nil},
		{"made again", publish(node, "b", record(1, "b")), "publish", []string{"b"}},
		{"leaving", "<erase xmlns='urn:pepvault:account:0'/>", "delete", nil},
	} {
		laptop.must("set", row.request)
		heard := phone.event()
		if heard.Event != row.event || heard.Node != node || !slices.Equal(heard.IDs, row.ids) || heard.From != tourJID || heard.Delay != "" {
			t.Errorf("%s: slixmpp heard %+v", row.name, heard)
		}
		laptop.must("set", publish("urn:example:else", "x", record(1, row.name)))
		phone.quiet()
	}
	phone.must("disinterest", "node", node)
	phone.must("ping") // what it can do now is asked for before anything else is sent
	phone.must("items", "node", "urn:example:else")
	laptop.must("set", "<erase xmlns='urn:pepvault:account:0'/>")
}

// configure sets one field of a node's configuration.
func configure(node, field, value string) string {
	return "<pubsub xmlns='" + nsOwner + "'><configure node='" + node + "'><x xmlns='jabber:x:data' type='submit'>" +
		"<field var='FORM_TYPE' type='hidden'><value>" + nsPubsub + "#node_config</value></field>" +
		"<field var='pubsub#" + field + "'><value>" + value + "</value></field></x></configure></pubsub>"
}
