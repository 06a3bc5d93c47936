package main_test

import (
	"bytes"
	"context"
	"database/sql"
	"flag"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"pepvault/bench/servers"
	"pepvault/vault/device/c2s"
)

// By hand these are longer: a minute without the host, and a host that is
// stopped for longer than the keep-alive waits.
var (
	downtime = flag.Duration("downtime", time.Second, "how long TestLinks has the host away")
	stopped  = flag.Duration("stopped", 2*time.Second, "how long TestLinks has a process stopped")
)

// keepAlive is after how long without a sign of life a link is given up.
const keepAlive = 40 * time.Second

// TestLinks holds the real program to what it promises when hosts and links
// fail, behind real hosts.
func TestLinks(t *testing.T) {
	t.Parallel()
	for _, missing := range []error{servers.ProsodyAvailable(""), servers.EjabberdAvailable("")} {
		if missing != nil {
			t.Fatalf("%v (.ci/test installs all that the tests need)", missing)
		}
	}
	program := buildProgram(t)
	for kind, h := range map[kind]func(*testing.T) *host{
		prosody: func(t *testing.T) *host {
			return startHost(t, program, prosody, servers.StartProsody, "../../configs/prosody.cfg.lua")
		},
		ejabberd: func(t *testing.T) *host {
			return startHost(t, program, ejabberd, servers.StartEjabberd, "../../configs/ejabberd.yml")
		},
	} {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			h := h(t)
			t.Run("a second process on the store (C32)", h.testSecondProcess)
			t.Run("a second process with the name", h.testSecondName)
			t.Run("wrong secret (C34)", h.testWrongSecret)
			t.Run("processes are stopped", h.testStopped)
			t.Run("known resources outlive the process", h.testKnownOutlive)
			t.Run("the host comes later (C34)", h.testHostLater)
			t.Run("the host restarts three times (C33)", h.testThreeRestarts)
		})
	}
}

func (h *host) newService(t *testing.T, secret string) *service {
	t.Helper()
	return newService(t, h.program, vaultJID, h.server.Component(vaultJID), secret, "")
}

// wantLog holds the number of lines of the log that tell of the link.
func (s *service) wantLog(want map[string]int) {
	s.t.Helper()
	for message, n := range want {
		if got := s.log.count("msg=" + message); got != n {
			s.t.Errorf("%d lines of the log say %s, want %d:\n%s", got, message, n, s.log.tail(40))
		}
	}
}

// testSecondProcess: a second process on one store says in a line why it will
// not start, and the first goes on (case C32).
func (h *host) testSecondProcess(t *testing.T) {
	s := h.serve(t, vaultJID, "")
	laptop := connectOurs(t, h.server, alice, "laptop", vaultJID)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	var stdout, stderr bytes.Buffer
	second := exec.CommandContext(ctx, h.program, "serve", "--config", s.config)
	second.Stdout, second.Stderr = &stdout, &stderr
	_ = second.Run() // its exit code is looked at
	if code := second.ProcessState.ExitCode(); code != 1 {
		t.Errorf("exit code %d, want 1", code)
	}
	said := stderr.String()
	if stdout.Len() > 0 || strings.Count(said, "\n") != 1 || !strings.HasPrefix(said, "pepvault: ") || !strings.Contains(said, "pepvault.db") {
		t.Errorf("stdout %q, stderr %q, want one line that names the store", &stdout, said)
	}
	laptop.must("set", publish("notes", "a", record(1, "a")))
	s.wantLog(map[string]int{"attached": 1, "detached": 0})
}

// testSecondName: a process with a store of its own and a name that is taken
// waits until it is free. To the host that is what a half-open link is.
func (h *host) testSecondName(t *testing.T) {
	if h.kind == ejabberd {
		h.testReplaced(t)
		return
	}
	first := h.serve(t, vaultJID, "")
	second := h.newService(t, secret)
	second.launch()
	second.awaitLog("msg=conflict", 1)
	laptop := connectOurs(t, h.server, alice, "laptop", vaultJID)
	laptop.must("set", publish("first", "a", record(1, "a")))
	first.wantLog(map[string]int{"attached": 1, "detached": 0})
	first.terminate()
	second.awaitAttached(1)
	laptop.must("set", publish("second", "a", record(1, "a")))
	second.wantLog(map[string]int{"attached": 1, "conflict": 1})
}

// testReplaced: ejabberd lets every process with the secret have the name, and
// shares out what comes.
func (h *host) testReplaced(t *testing.T) {
	first := h.serve(t, vaultJID, "")
	second := h.serve(t, vaultJID, "")
	first.wantLog(map[string]int{"attached": 1})
	first.terminate()
	laptop := connectOurs(t, h.server, alice, "laptop", vaultJID)
	laptop.must("set", publish("second", "a", record(1, "a")))
	second.wantLog(map[string]int{"attached": 1, "detached": 0})
}

// testWrongSecret: a wrong secret is told once, and the host is not hammered:
// of its five first refusals the last comes when pauses of at least 0, 0.25,
// 0.5 and 1 s are over (case C34).
func (h *host) testWrongSecret(t *testing.T) {
	s := h.newService(t, "not-the-right-one")
	before := h.refusals()
	began := time.Now()
	s.launch()
	for h.refusals() < before+5 {
		if time.Since(began) > 2*patience {
			t.Fatalf("the host has refused %d times", h.refusals()-before)
		}
		time.Sleep(20 * time.Millisecond)
	}
	if took := time.Since(began); took < 1750*time.Millisecond {
		t.Errorf("refused five times within %v", took)
	}
	s.awaitLog(`msg="wrong secret"`, 1)
	s.wantLog(map[string]int{"attached": 0, `"wrong secret"`: 1})
}

// refusals counts the wrong secrets that the host has logged. ejabberd logs
// each twice, the console's log coming first.
func (h *host) refusals() int {
	if h.kind == ejabberd {
		return strings.Count(h.server.LogTail(100_000), "Failed external component handshake") / 2
	}
	return strings.Count(h.server.LogTail(100_000), "not-authorized")
}

// testStopped: the host's process, then the service's, is stopped for some
// time; what was asked meanwhile is answered afterwards.
func (h *host) testStopped(t *testing.T) {
	s := h.serve(t, vaultJID, "")
	laptop := connectOurs(t, h.server, alice, "laptop", vaultJID)
	for name, pid := range map[string]int{"host": -h.server.PID(), "service": s.cmd.Process.Pid} { // the host has a process group
		laptop.must("set", publish("stopped", "a", record(1, name)))
		attached := s.log.count("msg=attached")
		if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), *stopped+patience)
		answered := make(chan error, 1)
		go func() {
			_, err := laptop.IQ(ctx, "set", vaultJID, []byte(publish("stopped", "b", record(1, name))))
			answered <- err
		}()
		time.Sleep(*stopped)
		if err := syscall.Kill(pid, syscall.SIGCONT); err != nil {
			t.Error(err)
		}
		able := time.Now()
		if *stopped < keepAlive {
			if err := <-answered; err != nil {
				t.Errorf("%s: what was asked meanwhile: %v", name, err)
			}
			cancel()
			laptop.must("set", publish("stopped", "c", record(1, name)))
			if got := s.log.count("msg=attached"); got != attached {
				t.Errorf("%s: the link was given up", name)
			}
			continue
		}
		cancel() // it may have been lost with the link
		<-answered
		if name == "host" {
			s.awaitAttached(attached + 1)
			t.Logf("attached %v after the host went on", time.Since(able))
		}
		laptop.must("set", publish("stopped", "c", record(1, name)))
	}
}

// connectPresent connects a device that answers who asks whether it is there.
func connectPresent(t *testing.T, server *servers.Server, account, resource, service string) (d *ourDevice, others chan c2s.Stanza) {
	t.Helper()
	d = &ourDevice{t: t, service: service, messages: make(chan c2s.Stanza, 1024)}
	others = make(chan c2s.Stanza, 1024)
	var conn atomic.Pointer[c2s.Conn]
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	made, err := c2s.Dial(ctx, c2s.Options{
		Server: server.Addr, JID: account, Resource: resource, Password: password, TLS: server.TLS(),
		Handle: func(s c2s.Stanza) bool {
			switch {
			case s.Name == "message":
				d.messages <- s
			case s.From == service && s.Name == "iq":
				others <- s
				_ = conn.Load().Send([]byte(fmt.Sprintf("<iq type='result' id='%s' to='%s'><query xmlns='%sinfo'/></iq>", s.ID, s.From, nsDisco)))
			case s.From == service:
				others <- s
			default:
				return false
			}
			return true
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	conn.Store(made)
	d.Conn = made
	t.Cleanup(func() { _ = made.Close() })
	return d, others
}

// state waits for a message with nothing but the state of a vault, and returns
// its cursor.
func (d *ourDevice) state(node string) string {
	d.t.Helper()
	select {
	case s := <-d.messages:
		m := parse(d.t, s.Raw)
		state := m.child(nsSync, "state")
		if state.attr("node") != node || state.attr("cursor") == "" || len(m.all(nsEvent, "event")) > 0 {
			d.t.Fatalf("got %s, want the state of %s", s.Raw, node)
		}
		return state.attr("cursor")
	case <-time.After(2 * patience):
		d.t.Fatal("no state came")
		return ""
	}
}

// testKnownOutlive: a device that stays connected while the service is killed
// and started again does nothing, and goes on to hear of changes.
func (h *host) testKnownOutlive(t *testing.T) {
	s := h.serve(t, vaultJID, "")
	phone := connectOurs(t, h.server, alice, "phone", vaultJID)
	laptop, others := connectPresent(t, h.server, alice, "laptop", vaultJID)
	phone.must("set", publish("known", "a", record(1, "a")))
	phone.must("set", "<pubsub xmlns='"+nsPubsub+"'><subscribe node='known' jid='"+alice+"'/></pubsub>")
	laptop.presence()
	cursor := laptop.state("known")
	for _, end := range []func(){s.terminate, s.kill} {
		awaitStored(t, filepath.Join(filepath.Dir(s.config), "pepvault.db"))
		end()
		s.start()
		for _, want := range []string{"presence", "iq"} {
			select {
			case got := <-others:
				if got.Name != want {
					t.Errorf("got %s, want %s", got.Raw, want)
				}
			case <-time.After(patience):
				t.Fatalf("no %s came", want)
			}
		}
		if got := laptop.state("known"); got != cursor {
			t.Errorf("told the state %q, want %q", got, cursor)
		}
		phone.must("set", publish("known", "a", record(1, "b")))
		_, state := laptop.event()
		if got := state.attr("previous"); got != cursor {
			t.Errorf("the next event follows %q, want %q", got, cursor)
		}
		cursor = state.attr("cursor")
	}
	laptop.quiet()
}

// awaitStored waits until the store, which another process writes, holds a
// known resource.
func awaitStored(t *testing.T, path string) {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+path+"?mode=ro&_busy_timeout=5000")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	for began, n := time.Now(), 0; n == 0; {
		if err := db.QueryRowContext(t.Context(), "SELECT count(*) FROM resource").Scan(&n); err != nil {
			t.Fatal(err)
		}
		if time.Since(began) > patience {
			t.Fatal("no resource is stored")
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// testHostLater: the service starts before the host is there (case C34).
func (h *host) testHostLater(t *testing.T) {
	h.server.Stop()
	s := h.newService(t, secret)
	s.launch()
	s.awaitLog("msg=\"host unreachable\"", 1)
	time.Sleep(*downtime)
	if err := h.server.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	able := time.Now()
	s.awaitAttached(1)
	t.Logf("attached %v after the host was seen to be ready", time.Since(able))
	laptop := connectOurs(t, h.server, alice, "laptop", vaultJID)
	laptop.must("set", publish("notes", "a", record(1, "a")))
	s.wantLog(map[string]int{"attached": 1, "detached": 0, `"host unreachable"`: 1, `"wrong secret"`: 0})
}

// testThreeRestarts: the host restarts three times, and is away for longer the
// last time; nothing that was answered is lost (case C33).
func (h *host) testThreeRestarts(t *testing.T) {
	s := h.serve(t, vaultJID, "")
	var want []string
	for round := range 4 {
		laptop := connectOurs(t, h.server, alice, "laptop", vaultJID)
		id := fmt.Sprint("round", round)
		laptop.must("set", publish("restarts", id, record(1, id))) // the first request works
		want = append(want, id)
		if got := ids(laptop.items("restarts", "", "")); !slices.Equal(got, want) {
			t.Errorf("records %q, want %q", got, want)
		}
		if round == 3 {
			break
		}
		h.server.Stop()
		if round == 2 {
			time.Sleep(*downtime)
		}
		if err := h.server.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		able := time.Now()
		s.awaitAttached(round + 2)
		t.Logf("attached %v after the host was seen to be ready", time.Since(able))
	}
	s.wantLog(map[string]int{"attached": 4, "detached": 3})
	if n := s.log.count("level=WARN") + s.log.count("level=ERROR"); n > 9 {
		t.Errorf("%d warnings for three restarts:\n%s", n, s.log.tail(60))
	}
}
