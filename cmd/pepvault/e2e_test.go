package main_test

import (
	"context"
	"log/slog"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"pepvault/bench/servers"
	"pepvault/configs"
)

// The end-to-end tests run the real program behind a real Prosody and a real
// ejabberd, with one device of ours and one of a library that does not know
// us. Each host serves all of its tests; each test has a service of its own.

const (
	secret   = "s3cret-of-the-end-to-end-test"
	password = "pass-of-the-end-to-end-test"

	alice    = "alice@localhost"
	bob      = "bob@localhost"
	operator = "operator@localhost"

	// The components, one for each test.
	vaultJID  = "vault.localhost"
	limitJID  = "limit.localhost"
	closedJID = "closed.localhost"
	crashJID  = "crash.localhost"
	comingJID = "coming.localhost"

	payloadJID = "payload.localhost"
	hostileJID = "hostile.localhost"
	scriptJID  = "script.localhost"
	tourJID    = "tour.localhost"
	npmJID     = "npm.localhost"

	replicasJID = "replicas.localhost"
	chunkJID    = "chunk.localhost"
)

func TestEndToEnd(t *testing.T) {
	t.Parallel()
	for _, missing := range []error{slixmppAvailable(), nodeAvailable(), servers.ProsodyAvailable(""), servers.EjabberdAvailable("")} {
		if missing != nil {
			t.Fatalf("%v (.ci/test installs all that the tests need)", missing)
		}
	}
	npm := installNPM(t)
	program := buildProgram(t)
	t.Run("prosody", func(t *testing.T) {
		t.Parallel()
		h := startHost(t, program, prosody, servers.StartProsody, "../../configs/prosody.cfg.lua")
		t.Run("devices share a vault", h.testShare)
		t.Run("payloads", h.testPayloads)
		t.Run("hostile devices", h.testHostile)
		t.Run("tour of a pubsub client", h.testTour)
		t.Run("client from npm", func(t *testing.T) { h.testNPM(t, npm) })
		t.Run("scripts", h.testScripts)
		t.Run("downloads", h.testDownloads)
		t.Run("misbehaving devices", h.testMisbehaving)
		t.Run("inactive device", h.testInactive)
		t.Run("blocked service", h.testBlocks)
		t.Run("service restarts in a download", h.testServiceRestarts)
		t.Run("full vault", h.testFull)
		t.Run("foreign domain", h.testForeignDomain)
		t.Run("ends in the middle of writes", h.testEnds)
		t.Run("replicas", h.testReplicas)
		t.Run("host restarts in a download", h.testHostRestartsInDownload)
		t.Run("host restarts", h.testHostRestarts) // last: it cuts everybody off
	})
	t.Run("ejabberd", func(t *testing.T) {
		t.Parallel()
		h := startHost(t, program, ejabberd, servers.StartEjabberd, "../../configs/ejabberd.yml")
		t.Run("devices share a vault", h.testShare)
		t.Run("payloads", h.testPayloads)
		t.Run("hostile devices", h.testHostile)
		t.Run("tour of a pubsub client", h.testTour)
		t.Run("client from npm", func(t *testing.T) { h.testNPM(t, npm) })
		t.Run("scripts", h.testScripts)
		t.Run("spelling of the account", h.testSpelling)
		t.Run("host restarts", h.testHostRestarts)
	})
}

// kind tells the hosts apart, where they deal with something differently.
type kind string

const (
	prosody  kind = "Prosody"
	ejabberd kind = "ejabberd"
)

// host is a running XMPP server and the program to attach to it.
type host struct {
	program string
	kind    kind
	server  *servers.Server
}

func startHost(t *testing.T, program string, kind kind, start func(context.Context, servers.Options) (*servers.Server, error), fragmentFile string) *host {
	t.Helper()
	fragment, err := os.ReadFile(fragmentFile)
	if err != nil {
		t.Fatal(err)
	}
	o := servers.Options{
		Dir: t.TempDir(), Fragment: string(fragment),
		Logger: slog.New(slog.NewTextHandler(t.Output(), nil)),
	}
	if kind == prosody {
		o.Global = configs.ProsodyGlobal
	} else {
		o.Control = configs.EjabberdControl
	}
	for _, jid := range []string{vaultJID, limitJID, closedJID, crashJID, comingJID, payloadJID, hostileJID, scriptJID, tourJID, npmJID, replicasJID, chunkJID} {
		o.Components = append(o.Components, servers.Component{JID: jid, Secret: secret})
	}
	for _, name := range []string{"alice", "bob", "mallory", "operator", "caf\u00e9"} {
		o.Users = append(o.Users, servers.User{Name: name, Password: password})
	}
	server, err := start(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		server.Stop()
		if t.Failed() {
			t.Log(server.LogTail(80))
		}
	})
	return &host{program: program, kind: kind, server: server}
}

// serve starts a service as that component; more is added to its
// configuration.
func (h *host) serve(t *testing.T, jid, more string) *service {
	t.Helper()
	s := newService(t, h.program, jid, h.server.Component(jid), secret, more)
	s.start()
	return s
}

// testFull holds that a full vault refuses a new record, and only that.
func (h *host) testFull(t *testing.T) {
	h.serve(t, limitJID, "[limits]\nmax_records = 3\nmax_batch_records = 3\n")
	laptop := connectOurs(t, h.server, alice, "laptop", limitJID)
	phone := connectTheirs(t, h.server, alice, "phone", limitJID)
	for _, id := range []string{"a", "b", "c"} {
		laptop.must("set", publish("notes", id, record(1, id)))
	}
	const want = "cancel/conflict node-full"
	if _, fault := laptop.ask("set", publish("notes", "d", record(1, "d"))); fault != want {
		t.Errorf("a fourth record: %q, want %q", fault, want)
	}
	if _, fault := phone.ask("publish", "node", "notes", "id", "d", "xml", record(1, "d")); fault != want {
		t.Errorf("a fourth record by slixmpp: %q, want %q", fault, want)
	}
	phone.must("publish", "node", "notes", "id", "a", "xml", record(2, "again"))
	if got := ids(laptop.items("notes", "", "")); !slices.Equal(got, []string{"b", "c", "a"}) {
		t.Errorf("records: %q", got)
	}
	laptop.must("set", retract("notes", "b"))
	laptop.must("set", publish("notes", "d", record(1, "d")))
}

// testForeignDomain holds that accounts of other domains are refused.
func (h *host) testForeignDomain(t *testing.T) {
	h.serve(t, closedJID, "[access]\ndomains = [\"elsewhere.example\"]\n")
	laptop := connectOurs(t, h.server, alice, "laptop", closedJID)
	for _, request := range []struct{ typ, payload string }{
		{"set", publish("notes", "a", record(1, "a"))},
		{"get", items("notes", "", "")},
		{"get", "<query xmlns='" + nsDisco + "items'/>"},
	} {
		if _, fault := laptop.ask(request.typ, request.payload); fault != "auth/forbidden" {
			t.Errorf("%s: %q, want auth/forbidden", request.payload, fault)
		}
	}
}

// testSpelling holds that spellings of an account name one vault: ejabberd
// passes them on as they were typed.
func (h *host) testSpelling(t *testing.T) {
	h.serve(t, vaultJID, "")
	lower := connectOurs(t, h.server, alice, "laptop", vaultJID)
	upper := connectOurs(t, h.server, "ALICE@localhost", "Phone", vaultJID)
	if bare, _, _ := strings.Cut(upper.JID(), "/"); bare == alice {
		t.Logf("the host itself has normalised %q", upper.JID())
	}
	upper.must("set", publish("spelling", "a", record(1, "by upper")))
	lower.must("set", publish("spelling", "b", record(1, "by lower")))
	want := []item{
		{"a", alice, meaning(t, record(1, "by upper"))},
		{"b", alice, meaning(t, record(1, "by lower"))},
	}
	for _, d := range []*ourDevice{lower, upper} {
		if diff := cmp.Diff(want, d.items("spelling", "", "")); diff != "" {
			t.Errorf("vault of %s (-want +got):\n%s", d.JID(), diff)
		}
	}
}

// testHostRestarts holds that the service comes back with its host.
func (h *host) testHostRestarts(t *testing.T) {
	s := h.serve(t, comingJID, "")
	before := connectOurs(t, h.server, alice, "laptop", comingJID)
	before.must("set", publish("notes", "a", record(1, "before")))
	if err := h.server.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.awaitAttached(2)
	laptop := connectOurs(t, h.server, alice, "laptop", comingJID)
	phone := connectTheirs(t, h.server, alice, "phone", comingJID)
	phone.must("presence")
	phone.must("subscribe", "node", "notes")
	drain(laptop, phone)
	laptop.must("set", publish("notes", "b", record(1, "after")))
	if heard := phone.event(); !slices.Equal(heard.IDs, []string{"b"}) {
		t.Errorf("slixmpp heard %+v", heard)
	}
	if got := ids(phone.items("notes")); !slices.Equal(got, []string{"a", "b"}) {
		t.Errorf("records: %q", got)
	}
}
