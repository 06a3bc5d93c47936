package main_test

import (
	"bufio"
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
)

// buildProgram builds the real program and returns its path.
func buildProgram(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "pepvault")
	if out, err := exec.CommandContext(t.Context(), "go", "build", buildFlag, "-o", path, ".").CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	return path
}

// service is a "pepvault serve" in a folder of its own. It is used by one
// goroutine.
type service struct {
	t       *testing.T
	program string
	config  string // path of its file
	cmd     *exec.Cmd
	log     *serviceLog
	exited  chan struct{}
}

// newService writes a configuration for a component; more is added to it.
// Nothing runs yet.
func newService(t *testing.T, program, jid, server, secret, more string) *service {
	t.Helper()
	s := &service{t: t, program: program, config: filepath.Join(t.TempDir(), "pepvault.toml"), log: newServiceLog()}
	text := fmt.Sprintf("[component]\njid = %q\nserver = %q\nsecret = %q\ncontact = \"xmpp:operator@localhost\"\n[http]\nlisten = \"\"\n[log]\nlevel = \"debug\"\n%s",
		jid, server, secret, more)
	if err := os.WriteFile(s.config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if s.cmd != nil {
			s.terminate()
		}
		if t.Failed() {
			t.Logf("log of %s:\n%s", jid, s.log.tail(80))
		}
		s.log.checkSecrecy(t, secret)
	})
	return s
}

// start runs the service and waits until it is attached.
func (s *service) start() {
	s.t.Helper()
	attached := s.log.count("msg=attached")
	s.launch()
	s.awaitAttached(attached + 1)
}

// launch runs the service and does not wait for anything.
func (s *service) launch() {
	s.t.Helper()
	cmd := exec.Command(s.program, "serve", "--config", s.config)
	stderr, err := cmd.StderrPipe()
	if err != nil {
		s.t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	s.cmd, s.exited = cmd, make(chan struct{})
	go func() {
		s.log.collect(stderr)
		_ = cmd.Wait() // its exit code is looked at where one is expected
		close(s.exited)
	}()
}

// awaitAttached waits until the service has been attached n times in all.
func (s *service) awaitAttached(n int) {
	s.t.Helper()
	s.awaitLog("msg=attached", n)
}

// awaitLog waits until n lines of the log have that part.
func (s *service) awaitLog(part string, n int) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), 2*patience)
	defer cancel()
	if err := s.log.await(ctx, s.exited, part, n); err != nil {
		s.t.Fatalf("not %d lines with %s: %v\n%s", n, part, err, s.log.tail(40))
	}
}

// terminate sends SIGTERM and holds the service to exit code 0.
func (s *service) terminate() {
	s.t.Helper()
	if err := s.cmd.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		s.t.Error(err)
	}
	select {
	case <-s.exited:
	case <-time.After(2 * patience):
		s.t.Error("the service does not end by SIGTERM")
		s.kill()
		return
	}
	if code := s.cmd.ProcessState.ExitCode(); code != 0 {
		s.t.Errorf("exit code %d after SIGTERM, want 0", code)
	}
	s.cmd = nil
}

// kill ends the service as a power cut would.
func (s *service) kill() {
	s.t.Helper()
	if err := s.cmd.Process.Kill(); err != nil {
		s.t.Error(err)
	}
	<-s.exited
	s.cmd = nil
}

// serviceLog collects what services of one configuration wrote.
type serviceLog struct {
	mu      sync.Mutex
	lines   []string
	changed chan struct{} // closed and replaced at each line
}

func newServiceLog() *serviceLog { return &serviceLog{changed: make(chan struct{})} }

func (l *serviceLog) collect(r io.Reader) {
	lines := bufio.NewReader(r)
	for {
		line, err := lines.ReadString('\n')
		if line != "" {
			l.mu.Lock()
			l.lines = append(l.lines, strings.TrimRight(line, "\n"))
			close(l.changed)
			l.changed = make(chan struct{})
			l.mu.Unlock()
		}
		if err != nil {
			return
		}
	}
}

func (l *serviceLog) count(part string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := 0
	for _, line := range l.lines {
		if strings.Contains(line, part) {
			n++
		}
	}
	return n
}

// await waits until at least n lines have part.
func (l *serviceLog) await(ctx context.Context, exited <-chan struct{}, part string, n int) error {
	for {
		l.mu.Lock()
		changed := l.changed
		l.mu.Unlock()
		if l.count(part) >= n {
			return nil
		}
		select {
		case <-changed:
		case <-exited:
			return errors.New("the service ended")
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (l *serviceLog) tail(n int) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Join(l.lines[max(0, len(l.lines)-n):], "\n")
}

// checkSecrecy looks for what must never be logged, at any level (case C44).
func (l *serviceLog) checkSecrecy(t *testing.T, secret string) {
	t.Helper()
	for _, marked := range []string{secret, markedText, markedBase64} {
		if n := l.count(marked); n > 0 {
			t.Errorf("%d lines of the log show %q", n, marked)
		}
	}
}
