package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"pepvault/bench/fleet"
	results "pepvault/bench/report"
	"pepvault/bench/servers"
	"pepvault/configs"
)

const existingPassword = "pass-of-the-test"

// existing is a server with the accounts load0 to load3, and the service behind
// it, as somebody else has started them.
func existing(t *testing.T, program string) *servers.Server {
	t.Helper()
	const jid, secret = "vault.localhost", "secret-of-the-test"
	o := servers.Options{Dir: t.TempDir(), Fragment: configs.ProsodyFragment, Global: configs.ProsodyGlobal, Components: []servers.Component{{JID: jid, Secret: secret}}}
	for n := range 4 {
		o.Users = append(o.Users, servers.User{Name: fleet.UserName("load", n), Password: existingPassword})
	}
	server, err := servers.StartProsody(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Stop)
	service, err := servers.StartService(t.Context(), servers.ServiceOptions{
		Dir: t.TempDir(), Program: filepath.Join(filepath.Dir(program), "pepvault"), JID: jid, Server: server.Component(jid), Secret: secret,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(service.Stop)
	return server
}

// TestRunOnAnExistingServer measures a server that somebody else started, both
// targets, twice: it leaves nothing behind, and keeps the password to itself.
func TestRunOnAnExistingServer(t *testing.T) {
	t.Parallel()
	program := programs(t)
	server := existing(t, program)
	args := func(workload string, more ...string) []string {
		return append([]string{"run", workload, "--short", "--records", "8", "--rounds", "1", "--server", server.Addr, "--domain", server.Domain,
			"--user-prefix", "load", "--password", existingPassword, "--ca", server.CAFile}, more...)
	}
	for _, workload := range []string{"storm", "mix"} {
		file := filepath.Join(t.TempDir(), workload+".jsonl")
		code, stdout, stderr := runBench(t, program, args(workload, "--users", "3", "--target", "pep", "--target", "component",
			"--pid", "prosody="+strconv.Itoa(server.PID()), "--out", file)...)
		if code != exitOK || strings.Contains(stderr, "left on the server") {
			t.Fatalf("%s: exit %d\n%s%s", workload, code, stdout, stderr)
		}
		kept, err := results.LoadFile(file)
		if err != nil || kept.Verdict == nil || !kept.Verdict.OK || len(kept.Verdict.Checks) != 2 {
			t.Fatalf("%s: the file holds no good verdict: %v", workload, err)
		}
		if got := kept.Verdict.Kinds[results.Ready].Count; workload == "storm" && got != 9 {
			t.Errorf("%d devices were ready, want 9", got)
		}
		if _, watched := kept.Verdict.Costs["prosody"]; !watched {
			t.Errorf("%s: the process was not watched", workload)
		}
		text, err := os.ReadFile(file)
		if err != nil || bytes.Contains(text, []byte(existingPassword)) {
			t.Errorf("%s: the file shows the password, or can't be read: %v", workload, err)
		}
	}
	code, stdout, stderr := runBench(t, program, args("mix", "--users", "5", "--target", "pep")...)
	if code != exitFault || !strings.Contains(stderr, "FAILED") || !strings.Contains(stderr, "needs the accounts load0 to load5") ||
		!strings.Contains(stdout, `"ok":false`) || strings.Contains(stdout, "p99_ms") {
		t.Errorf("accounts that do not exist: exit %d\n%s%s", code, stdout, stderr)
	}
}
