package main_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"pepvault/bench/servers"
)

// nodeAvailable returns nil if programs of npm can run.
func nodeAvailable() error {
	for _, command := range []string{"node", "npm"} {
		if _, err := exec.LookPath(command); err != nil {
			return fmt.Errorf("%s: %w: install the packages nodejs and npm", command, servers.ErrUnavailable)
		}
	}
	return nil
}

// installNPM begins to install the device of testdata/npm with exactly the
// versions of its lock file, in a folder of the test's own. The function that
// it returns waits for that and gives the device's program.
func installNPM(t *testing.T) (device func(t *testing.T) string) {
	t.Helper()
	dir := t.TempDir()
	for _, name := range []string{"package.json", "package-lock.json", "device.mjs"} {
		text, err := os.ReadFile(filepath.Join("testdata", "npm", name))
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, name), text, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.CommandContext(t.Context(), "npm", "ci", "--ignore-scripts", "--prefer-offline", "--no-audit", "--no-fund", "--no-update-notifier")
	cmd.Dir = dir
	wait := sync.OnceValue(func() error {
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("npm ci: %w\n%s", err, out)
		}
		return nil
	})
	var begun sync.WaitGroup
	begun.Go(func() { _ = wait() }) // whoever needs it looks at the error
	t.Cleanup(begun.Wait)
	return func(t *testing.T) string {
		t.Helper()
		if err := wait(); err != nil {
			t.Fatal(err)
		}
		return filepath.Join(dir, "device.mjs")
	}
}

// testNPM has a client library from npm use a vault: the storage patterns of
// XEP-0223 and XEP-0490, pages, and the events that its capabilities ask for.
func (h *host) testNPM(t *testing.T, device func(t *testing.T) string) {
	h.serve(t, npmJID, "")
	cmd := exec.Command("node", device(t))
	cmd.Env = append(os.Environ(), "NODE_EXTRA_CA_CERTS="+h.server.CAFile)
	browser := runTheirs(t, cmd, h.server, alice, "browser", npmJID)
	laptop := connectOurs(t, h.server, alice, "laptop", npmJID)

	const node = "urn:xmpp:mds:displayed:0"
	private := map[string]string{"pubsub#persist_items": "true", "pubsub#access_model": "whitelist"}
	displayed := map[string]string{
		"pubsub#persist_items": "true", "pubsub#max_items": "max",
		"pubsub#send_last_published_item": "never", "pubsub#access_model": "whitelist",
	}
	browser.must("publish", "node", "urn:example:private", "id", "settings", "text", markedText, "options", private)
	if got := browser.must("items", "node", "urn:example:private", "ids", []string{"settings", "absent"}).Items; len(got) != 1 || got[0].Publisher != alice || !strings.Contains(got[0].Payload, markedText) {
		t.Errorf("private data: %v", got)
	}
	if _, fault := browser.ask("publish", "node", "urn:example:private", "id", "x", "text", "x", "options", map[string]string{"pubsub#access_model": "open"}); fault != "cancel/conflict precondition-not-met" {
		t.Errorf("options that do not fit: %q", fault)
	}

	// It hears of exactly what happens in the node that it asks for.
	browser.must("publish", "node", node, "id", "0", "text", "x", "options", displayed)
	browser.must("interest", "node", node)
	if heard := browser.event(); heard.Event != "none" { // where the vault stands: from now on it hears
		t.Errorf("the client heard %+v", heard)
	}
	var all []string
	for i := range 7 {
		all = append(all, fmt.Sprint(i))
		laptop.must("set", publish(node, all[i], record(1, all[i])))
		laptop.must("set", publish("urn:example:private", all[i], record(1, all[i])))
	}
	browser.must("retract", "node", node, "id", "3")
	laptop.must("set", configure(node, "title", "Read"))
	laptop.must("set", "<pubsub xmlns='"+nsOwner+"'><purge node='"+node+"'/></pubsub>")
	browser.must("publish", "node", node, "id", "last", "text", "x", "options", displayed)
	browser.must("delete", "node", node)
	var got []string
	for range 12 {
		heard := browser.event()
		if heard.Node != node || heard.From != npmJID {
			t.Errorf("the client heard %+v", heard)
		}
		got = append(got, strings.TrimSpace(heard.Event+" "+strings.Join(heard.IDs, " ")))
	}
	want := slices.Concat([]string{"publish 0", "publish 1", "publish 2", "publish 3", "publish 4", "publish 5", "publish 6"},
		[]string{"retract 3", "configuration", "purge", "publish last", "delete"})
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
	browser.quiet()

	pages := browser.must("pages", "node", "urn:example:private", "size", 3).Pages
	if diff := cmp.Diff([][]string{{"settings", "0", "1"}, {"2", "3", "4"}, {"5", "6"}}, pages); diff != "" {
		t.Errorf("pages (-want +got):\n%s", diff)
	}
	if _, fault := browser.ask("items", "node", node); fault != "cancel/item-not-found" {
		t.Errorf("items of a deleted node: %q", fault)
	}
}
