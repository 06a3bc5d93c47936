package main_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"pepvault/bench/servers"
	"pepvault/configs"
)

// The end-to-end tests run the real program beside the real service, behind a
// real Prosody, as a person would.

const (
	secret   = "s3cret-of-the-device-test"
	password = "pass-of-the-device-test"
	patience = 90 * time.Second
)

// place is a server with a service and accounts of its own.
type place struct {
	t       *testing.T
	device  string // the program
	service string // the service's program
	server  *servers.Server
	jid     string // of the component
	config  string
	cmd     *exec.Cmd
	log     *lockedBuffer
}

// programs are built once for all tests.
type programs struct{ device, service string }

func buildPrograms(t *testing.T) programs {
	t.Helper()
	dir := t.TempDir()
	p := programs{filepath.Join(dir, "pepvault-device"), filepath.Join(dir, "pepvault")}
	for path, pkg := range map[string]string{p.device: ".", p.service: "../pepvault"} {
		if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", path, pkg).CombinedOutput(); err != nil {
			t.Fatalf("go build: %v\n%s", err, out)
		}
	}
	return p
}

func startProsody(t *testing.T, jids ...string) *servers.Server {
	t.Helper()
	if err := servers.ProsodyAvailable(""); err != nil {
		t.Fatalf("%v (.ci/test installs all that the tests need)", err)
	}
	o := servers.Options{Dir: t.TempDir(), Fragment: configs.ProsodyFragment, Global: configs.ProsodyGlobal}
	for _, jid := range jids {
		o.Components = append(o.Components, servers.Component{JID: jid, Secret: secret})
	}
	for i := range jids {
		o.Users = append(o.Users, servers.User{Name: fmt.Sprint("user", i), Password: password})
	}
	server, err := servers.StartProsody(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Stop)
	return server
}

func newPlace(t *testing.T, p programs, server *servers.Server, jid string) *place {
	t.Helper()
	w := &place{t: t, device: p.device, service: p.service, server: server, jid: jid, config: filepath.Join(t.TempDir(), "pepvault.toml"), log: new(lockedBuffer)}
	text := fmt.Sprintf("[component]\njid = %q\nserver = %q\nsecret = %q\n[http]\nlisten = \"\"\n", jid, server.Component(jid), secret)
	if err := os.WriteFile(w.config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	w.start()
	t.Cleanup(func() {
		w.kill()
		if t.Failed() {
			t.Log(w.log.String())
		}
	})
	return w
}

// start runs the service and waits until it is attached.
func (w *place) start() {
	w.t.Helper()
	before := strings.Count(w.log.String(), "msg=attached")
	w.cmd = exec.Command(w.service, "serve", "--config", w.config)
	w.cmd.Stderr = w.log
	if err := w.cmd.Start(); err != nil {
		w.t.Fatal(err)
	}
	w.log.await(w.t, "msg=attached", before+1)
}

// kill ends the service as a power cut would.
func (w *place) kill() {
	if w.cmd != nil {
		_ = w.cmd.Process.Kill() // it may have ended
		_ = w.cmd.Wait()
		w.cmd = nil
	}
}

// operate runs a command of the operator.
func (w *place) operate(args ...string) {
	w.t.Helper()
	args = append(args, "--config", w.config)
	if out, err := exec.CommandContext(w.t.Context(), w.service, args...).CombinedOutput(); err != nil {
		w.t.Fatalf("pepvault %v: %v\n%s", args, err, out)
	}
}

// terminal is a device with a folder of its own.
type terminal struct {
	*place
	name string
	dir  string // with all files that it needs
	addr string // of the server
}

func (w *place) terminal(name string) *terminal {
	w.t.Helper()
	d := &terminal{place: w, name: name, dir: w.t.TempDir(), addr: w.server.Addr}
	d.write("password", password+"\n")
	d.write("passphrase", "correct horse battery staple\n")
	ca, err := os.ReadFile(w.server.CAFile)
	if err != nil {
		w.t.Fatal(err)
	}
	d.write("ca.pem", string(ca))
	return d
}

func (d *terminal) write(name, text string) {
	d.t.Helper()
	if err := os.WriteFile(filepath.Join(d.dir, name), []byte(text), 0o600); err != nil {
		d.t.Fatal(err)
	}
}

// account is that of the place's component.
func (w *place) account() string {
	return strings.ReplaceAll(strings.Split(w.jid, ".")[0], "vault", "user") + "@localhost"
}

// initArgs set a device up.
func (d *terminal) initArgs(more ...string) []string {
	return append([]string{
		"init", "--account", d.account(), "--server", d.addr, "--password-file", "password", "--service", d.jid,
		"--vault", "notes", "--ca", "ca.pem", "--passphrase-file", "passphrase",
	}, more...)
}

// result is what a command did.
type result struct {
	out, err string
	code     int
}

func (d *terminal) command(args ...string) *exec.Cmd {
	cmd := exec.CommandContext(d.t.Context(), d.device, append([]string{"--state", "state"}, args...)...)
	cmd.Dir = d.dir
	return cmd
}

func (d *terminal) run(stdin string, args ...string) result {
	d.t.Helper()
	cmd := d.command(args...)
	cmd.Stdin = strings.NewReader(stdin)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		d.t.Fatal(err)
	}
	r := result{out.String(), errs.String(), cmd.ProcessState.ExitCode()}
	d.t.Logf("%s: %v: exit %d\n%s%s", d.name, args, r.code, r.out, r.err)
	return r
}

// must is run for a command that succeeds.
func (d *terminal) must(args ...string) string { d.t.Helper(); return d.mustWith("", args...) }

func (d *terminal) mustWith(stdin string, args ...string) string {
	d.t.Helper()
	r := d.run(stdin, args...)
	if r.code != 0 {
		d.t.Errorf("%s: %v: exit %d: %s", d.name, args, r.code, r.err)
	}
	return r.out
}

// fails holds that a command ends with a code, and one line that says why.
func (d *terminal) fails(code int, line string, args ...string) {
	d.t.Helper()
	r := d.run("", args...)
	if r.code != code || !strings.Contains(r.err, line) || strings.Count(r.err, "\n") != 1 {
		d.t.Errorf("%s: %v: exit %d, %q; want %d and one line with %q", d.name, args, r.code, r.err, code, line)
	}
}

func (d *terminal) shows(name, want string) {
	d.t.Helper()
	if got := d.must("get", name); got != want {
		d.t.Errorf("%s has %q as %s, want %q", d.name, got, name, want)
	}
}

// watch runs watch until the test stops it.
func (d *terminal) watch() (seen *lockedBuffer, stop func()) {
	d.t.Helper()
	cmd := d.command("watch", "--verbose")
	seen = new(lockedBuffer)
	cmd.Stdout = seen
	cmd.Stderr = seen
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	if err := cmd.Start(); err != nil {
		d.t.Fatal(err)
	}
	return seen, func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		if err := cmd.Wait(); err != nil {
			d.t.Errorf("watch of %s: %v\n%s", d.name, err, seen)
		}
	}
}

// lockedBuffer is what a process writes.
type lockedBuffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

var _ io.Writer = (*lockedBuffer)(nil)

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

// await waits until part is there n times.
func (b *lockedBuffer) await(t *testing.T, part string, n int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for strings.Count(b.String(), part) < n {
		select {
		case <-ctx.Done():
			t.Fatalf("not %d times %q:\n%s", n, part, b)
		case <-time.After(10 * time.Millisecond):
		}
	}
}
