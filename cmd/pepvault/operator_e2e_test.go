package main_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"pepvault/component/loopback"
)

// The operator's commands, as the real program, beside a service that is
// attached to the embedded host.

const (
	operatorDomain = "example.org"
	operatorJID    = "vault.example.org"
	operatorOwner  = "alice@example.org"
)

// station is a service with its host, seen from an operator's terminal.
type station struct {
	*service
	host *loopback.Host
	dir  string // of the configuration and the store
}

func newStation(t *testing.T, program string) *station {
	t.Helper()
	host, err := loopback.Start(loopback.Options{Domain: operatorDomain, Component: operatorJID, Secret: secret})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { host.Close() })
	s := newService(t, program, operatorJID, host.Addr(), secret, "")
	return &station{service: s, host: host, dir: filepath.Dir(s.config)}
}

// run types a command and returns what it printed and its exit code.
func (s *station) run(args ...string) (stdout, stderr string, code int) {
	s.t.Helper()
	var out, errs strings.Builder
	cmd := exec.CommandContext(s.t.Context(), s.program, args...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = s.dir, &out, &errs
	var ended *exec.ExitError
	if err := cmd.Run(); err != nil && !errors.As(err, &ended) {
		s.t.Fatal(err)
	}
	return out.String(), errs.String(), cmd.ProcessState.ExitCode()
}

// must types a command about the store that has to succeed.
func (s *station) must(args ...string) string {
	s.t.Helper()
	stdout, stderr, code := s.run(append(args, "--config", s.config)...)
	if code != 0 || stderr != "" {
		s.t.Fatalf("pepvault %q: exit %d\n%s%s", args, code, stdout, stderr)
	}
	return stdout
}

// refuses types a command that has to fail with one line that says want.
func (s *station) refuses(want string, args ...string) {
	s.t.Helper()
	stdout, stderr, code := s.run(append(args, "--config", s.config)...)
	if code != 1 || stdout != "" || strings.Count(stderr, "\n") != 1 || !strings.HasPrefix(stderr, "pepvault: ") || !strings.Contains(stderr, want) {
		s.t.Errorf("pepvault %q: exit %d, %q, %q; want one line with %q", args, code, stdout, stderr, want)
	}
}

// decoded is a command with --json, whose document is read into into.
func (s *station) decoded(into any, args ...string) {
	s.t.Helper()
	if err := json.Unmarshal([]byte(s.must(append(args, "--json")...)), into); err != nil {
		s.t.Fatal(args, err)
	}
}

// connect connects a device of the owner.
func (s *station) connect(resource string) *loopback.Device {
	s.t.Helper()
	d, err := s.host.Connect(operatorOwner + "/" + resource)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { d.Close() })
	return d
}

func (s *station) ask(d *loopback.Device, kind, payload string) string {
	s.t.Helper()
	answer, err := d.IQ(s.t.Context(), kind, operatorJID, payload)
	if err != nil || answer.Err() != nil {
		s.t.Fatal(payload, err, answer.Err())
	}
	return string(answer.Raw)
}

func note(id string) string {
	return "<pubsub xmlns='http://jabber.org/protocol/pubsub'><publish node='notes'><item id='" + id +
		"'><record xmlns='urn:pepvault:record:0' key-version='3'>aGVsbG8=</record></item></publish></pubsub>"
}

const (
	allNotes    = "<pubsub xmlns='http://jabber.org/protocol/pubsub'><items node='notes'/></pubsub>"
	storeName   = "pepvault.db"
	storeSocket = storeName + ".sock"
)

func TestOperator(t *testing.T) {
	t.Parallel()
	program := buildProgram(t)
	for name, test := range map[string]func(*station){
		"looks while the service runs, and after": (*station).testLook,
		"erases (C43)":                              (*station).testErase,
		"restores":                                  (*station).testRestore,
		"backs up under load (C31)":                 (*station).testBackupUnderLoad,
		"finds the socket of a service":             (*station).testSocket,
		"has no rights":                             (*station).testNoRights,
		"has a store with a path that is very long": (*station).testLongPath,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(newStation(t, program))
		})
	}
}

// testLook holds that commands show the same through the socket and without.
func (s *station) testLook() {
	s.refuses("there is no store at", "account", "list")
	s.start()
	if got := s.must("account", "list"); got != "ACCOUNT  VAULTS  RECORDS  BYTES\n" {
		s.t.Errorf("an empty store: %q", got)
	}
	laptop := s.connect("laptop")
	for _, id := range []string{"a", "b", "c"} {
		s.ask(laptop, "set", note(id))
	}
	s.ask(laptop, "set", "<pubsub xmlns='http://jabber.org/protocol/pubsub'><retract node='notes'><item id='a'/></retract></pubsub>")
	s.ask(laptop, "set", "<pubsub xmlns='http://jabber.org/protocol/pubsub#owner'><affiliations node='notes'>"+
		"<affiliation jid='bob@example.org' affiliation='member'/></affiliations></pubsub>")
	look := func() (seen []string) {
		for _, args := range [][]string{
			{"account", "list"}, {"account", "list", "--json"}, {"vault", "list"}, {"vault", "list", "ALICE@example.org", "--json"},
			{"vault", "show", operatorOwner, "notes"}, {"vault", "show", operatorOwner, "notes", "--json"},
		} {
			seen = append(seen, s.must(args...))
		}
		return seen
	}
	running := look()
	for i, want := range []string{
		"ACCOUNT            VAULTS  RECORDS  BYTES\nalice@example.org  1       2        10\n",
		`[{"account":"alice@example.org","vaults":1,"records":2,"bytes":10}]` + "\n",
		"alice@example.org  notes  5         2        10     1\n",
		`[{"account":"alice@example.org","node":"notes","revision":5,"records":2,"bytes":10,"tombstones":1}]` + "\n",
		"affiliations  bob@example.org (member)\n",
		`"key_versions":{"lowest":3,"highest":3},"key_version_floor":0,"subscriptions":[],"affiliations":[{"account":"bob@example.org","affiliation":"member"}],"config":{}}` + "\n",
	} {
		if !strings.HasSuffix(running[i], want) {
			s.t.Errorf("got %q, want %q", running[i], want)
		}
		if strings.Contains(running[i], "hello") || strings.Contains(running[i], "aGVsbG8") {
			s.t.Errorf("a payload is shown: %q", running[i])
		}
	}
	s.refuses(`has no vault "none"`, "vault", "show", operatorOwner, "none")
	s.refuses("is not the address of an account", "vault", "list", operatorOwner+"/phone")
	s.terminate()
	for i, got := range look() {
		if got != running[i] {
			s.t.Errorf("without the service %q, with it %q", got, running[i])
		}
	}
	s.refuses(`has no vault "none"`, "vault", "show", operatorOwner, "none")
}

// testErase holds that an account is gone for whoever gets its name next, and
// that its devices are told (C43).
func (s *station) testErase() {
	s.start()
	laptop, phone := s.connect("laptop"), s.connect("phone")
	s.ask(laptop, "set", note("a"))
	if err := phone.Send([]byte("<presence to='" + operatorJID + "'/>")); err != nil {
		s.t.Fatal(err)
	}
	s.ask(phone, "set", "<pubsub xmlns='http://jabber.org/protocol/pubsub'><subscribe node='notes' jid='"+phone.JID()+"'/></pubsub>")
	s.refuses("add --yes", "account", "erase", operatorOwner)
	s.refuses("is not the address of an account", "account", "erase", "example.org", "--yes")
	if got := s.must("account", "erase", "Alice@Example.org", "--yes"); got != "erased alice@example.org: 1 vault, 1 record\n" {
		s.t.Errorf("it said %q", got)
	}
	ctx, cancel := context.WithTimeout(s.t.Context(), time.Minute)
	defer cancel()
	for {
		heard, err := phone.Recv(ctx)
		if err != nil {
			s.t.Fatal("the phone did not hear of it:", err)
		}
		if strings.Contains(string(heard.Raw), "<delete node='notes'/>") {
			break
		}
	}
	answer, err := laptop.IQ(s.t.Context(), "get", operatorJID, allNotes)
	if err != nil || answer.Err() == nil || answer.Err().Condition != "item-not-found" {
		s.t.Errorf("after it, the vault is %v, %v", answer.Err(), err)
	}
	var again struct{ Vaults, Records int }
	s.decoded(&again, "account", "erase", operatorOwner, "--yes")
	if again.Vaults != 0 || again.Records != 0 {
		s.t.Errorf("a second time: %+v", again)
	}
	s.ask(laptop, "set", note("new"))
	s.terminate()
	if got := s.must("account", "erase", operatorOwner, "--yes"); got != "erased alice@example.org: 1 vault, 1 record\n" {
		s.t.Errorf("without the service it said %q", got)
	}
	if got := s.must("account", "list", "--json"); got != "[]\n" {
		s.t.Errorf("left: %q", got)
	}
}

// testRestore holds that a backup comes back, and that a device which knows
// more is told so.
func (s *station) testRestore() {
	s.start()
	laptop := s.connect("laptop")
	s.ask(laptop, "set", note("a"))
	copied := filepath.Join(s.dir, "copy.db")
	var backup, verified, restored struct {
		Records int
		Content string `json:"content_sha256"`
		Kept    string
	}
	s.decoded(&backup, "backup", copied)
	s.decoded(&verified, "verify", copied)
	if info, err := os.Stat(copied); err != nil || info.Mode() != 0o600 || verified != backup || backup.Records != 1 {
		s.t.Errorf("backup %+v, verified %+v, %v, %v", backup, verified, info, err)
	}
	s.refuses("exists already", "backup", copied)
	s.refuses("in use by another process", "restore", copied)
	s.refuses("in use by another process", "verify", storeName)

	s.ask(laptop, "set", note("b"))
	cursor := attributeIn(s.t, s.ask(laptop, "get", "<sync xmlns='urn:pepvault:sync:0' node='notes'/>"), "cursor")
	s.terminate()
	s.decoded(&restored, "restore", copied)
	if restored.Content != backup.Content || restored.Kept == "" {
		s.t.Errorf("restored %+v, want %+v", restored, backup)
	}
	s.must("verify", restored.Kept)
	s.start()
	answer := s.ask(laptop, "get", "<sync xmlns='urn:pepvault:sync:0' node='notes' cursor='"+cursor+"'/>")
	if attributeIn(s.t, answer, "reset") != "lost" || attributeIn(s.t, answer, "fork") != "2" || strings.Contains(answer, "id='b'") {
		s.t.Errorf("the device is told %s", answer)
	}
}

// attributeIn returns the first one of that name in a stanza.
func attributeIn(t *testing.T, stanza, name string) string {
	t.Helper()
	_, rest, found := strings.Cut(stanza, " "+name+"='")
	value, _, closed := strings.Cut(rest, "'")
	if !found || !closed {
		t.Fatalf("no %s in %s", name, stanza)
	}
	return value
}

// testSocket holds who may open the socket, that it goes with its service, and
// that the one of a killed service is replaced.
func (s *station) testSocket() {
	path := filepath.Join(s.dir, storeSocket)
	s.start()
	info, err := os.Stat(path)
	if err != nil || info.Mode() != fs.ModeSocket|0o600 {
		s.t.Fatalf("mode %v, %v", info.Mode(), err)
	}
	s.refuses("store is in use by another process", "serve")
	s.must("account", "list")
	s.kill()
	if _, err := os.Stat(path); err != nil {
		s.t.Fatal("a killed service leaves its socket:", err)
	}
	s.must("account", "list") // nobody has the store
	s.start()
	if conn, err := net.Dial("unix", path); err != nil {
		s.t.Error(err)
	} else {
		conn.Close()
	}
	if err := os.Rename(path, path+"-aside"); err != nil {
		s.t.Fatal(err)
	}
	s.refuses("no service answers at", "account", "list")
	s.refuses("no service answers at", "backup", "copy.db")
	if err := os.Rename(path+"-aside", path); err != nil {
		s.t.Fatal(err)
	}
	s.terminate()
	entries, err := os.ReadDir(s.dir)
	if err != nil || len(entries) != 3 { // the configuration, the store, its lock
		s.t.Errorf("left behind: %v, %v", entries, err)
	}
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		s.t.Fatal(err)
	}
	s.start()
	s.awaitLog("is no socket", 1)
}

// testLongPath holds that a service works without a socket where there can't
// be one, and that commands say why.
func (s *station) testLongPath() {
	dir := filepath.Join(s.dir, strings.Repeat("long", 30))
	if err := os.Mkdir(dir, 0o700); err != nil {
		s.t.Fatal(err)
	}
	file, err := os.OpenFile(s.config, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		s.t.Fatal(err)
	}
	_, err = fmt.Fprintf(file, "\n[store]\npath = %q\n", filepath.Join(dir, storeName))
	if err := errors.Join(err, file.Close()); err != nil {
		s.t.Fatal(err)
	}
	s.start()
	s.ask(s.connect("laptop"), "set", note("a"))
	s.refuses("use a shorter store.path", "account", "list")
	s.terminate()
	s.must("account", "list")
}
