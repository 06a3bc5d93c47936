// Package servers starts real XMPP servers, Prosody and ejabberd, for tests,
// benchmarks and the demo: each in a folder of its own, on loopback, on free
// ports, with a certificate of its own.
package servers

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// ErrUnavailable says that a server, or what it needs, is not installed.
var ErrUnavailable = errors.New("not installed")

// readyTimeout bounds a start if the context does not; Erlang is slow on a
// busy machine.
const readyTimeout = 90 * time.Second

// Component is an external component that may attach (XEP-0114).
type Component struct{ JID, Secret string }

// User is an account of the domain.
type User struct{ Name, Password string }

// Options say what to start.
type Options struct {
	Dir        string // an existing folder for this server alone
	Domain     string // "" = localhost
	Components []Component
	Users      []User
	// Fragment is the text of the operator's file that attaches a component
	// (configs/prosody.cfg.lua, configs/ejabberd.yml) with its example values;
	// it goes into the server's configuration once per component.
	Fragment string
	// Global is appended to the global part of the configuration, in the
	// server's own language.
	Global string
	// Control is what the configuration of ejabberd's start script has besides;
	// of that, the assignment to ERL_OPTIONS counts.
	Control string
	// Binary is the server's start script; "" = the environment variable
	// PEPVAULT_PROSODY or PEPVAULT_EJABBERD, else the one on the search path.
	// A Prosody may lie anywhere below a root of its own, as dpkg-deb -x
	// leaves it.
	Binary string
	// MaxItems is how many items a PEP node may have; 0 = the server's default.
	MaxItems int
	// RollbackJournal leaves Prosody's database without write-ahead log, as
	// Prosody itself makes it.
	RollbackJournal bool
	// Wrap turns the server's command into the one that is run, under the same
	// process id; nil: as it is.
	Wrap   Wrap
	Logger *slog.Logger // nil: silent
}

// Wrap turns a command into one that runs it in surroundings of its own.
type Wrap func(path string, args []string) (string, []string)

// Server is a server that was started. Start, Stop and Restart are called by
// one goroutine.
type Server struct {
	Domain string
	Addr   string         // host:port for devices, STARTTLS required
	CA     *x509.CertPool // trusts the server's certificate
	CAFile string         // the same as a PEM file

	// Data is where the server keeps its PEP nodes: a database, or a folder.
	Data string

	name       string
	dir        string
	components map[string]string // JID to host:port
	ports      *ports            // all that it listens on
	command    command
	process    *process
	logger     *slog.Logger
}

// command is how to run a server.
type command struct {
	path string
	args []string
	env  []string // added to ours
	logs []string // files whose end explains a failure
	done string   // a file that shows that it has set itself up; "" = none
	wrap Wrap     // nil: none
}

// Component returns the host:port where the component of that JID attaches,
// or "".
func (s *Server) Component(jid string) string { return s.components[jid] }

// TLS returns a client configuration that trusts this server alone.
func (s *Server) TLS() *tls.Config {
	return &tls.Config{RootCAs: s.CA, ServerName: s.Domain, MinVersion: tls.VersionTLS12}
}

// PID returns the process id of the running server, or 0.
func (s *Server) PID() int {
	if s.process == nil {
		return 0
	}
	return s.process.cmd.Process.Pid
}

// Start runs a stopped server again, on the same ports and data, and waits
// until it serves.
func (s *Server) Start(ctx context.Context) error {
	if s.process != nil {
		return fmt.Errorf("start %s: it runs already", s.name)
	}
	ctx, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	began := time.Now()
	p, err := startProcess(s.command, filepath.Join(s.dir, "output.log"))
	if err != nil {
		return fmt.Errorf("start %s: %w", s.name, err)
	}
	s.process = p
	err = s.awaitReady(ctx)
	if err != nil {
		s.Stop()
		return fmt.Errorf("start %s: %w\n%s", s.name, err, s.LogTail(40))
	}
	s.logger.Info("server started", "server", s.name, "pid", s.PID(), "addr", s.Addr, "took", time.Since(began))
	return nil
}

// Stop ends the server and all that it started, gently and then by force. It
// can be called again.
func (s *Server) Stop() {
	if s.process == nil {
		return
	}
	s.process.stop()
	s.process = nil
}

// Restart stops the server and starts it again.
func (s *Server) Restart(ctx context.Context) error {
	s.Stop()
	return s.Start(ctx)
}

// LogTail returns the last lines of the server's logs.
func (s *Server) LogTail(lines int) string {
	var b strings.Builder
	for _, path := range append([]string{filepath.Join(s.dir, "output.log")}, s.command.logs...) {
		text, err := os.ReadFile(path)
		if err != nil || len(text) == 0 {
			continue
		}
		all := strings.Split(strings.TrimRight(string(text), "\n"), "\n")
		fmt.Fprintf(&b, "--- %s ---\n%s\n", path, strings.Join(all[max(0, len(all)-lines):], "\n"))
	}
	return b.String()
}

// awaitReady tries until the server has set itself up and answers on all
// ports as itself.
func (s *Server) awaitReady(ctx context.Context) error {
	checks := []func() error{
		func() error { return openStream(ctx, s.Addr, "jabber:client", s.Domain) },
		func() error {
			if s.command.done == "" {
				return nil
			}
			_, err := os.Stat(s.command.done)
			return err
		},
	}
	for jid, addr := range s.components {
		checks = append(checks, func() error { return openStream(ctx, addr, "jabber:component:accept", jid) })
	}
	for _, check := range checks {
		for err := check(); err != nil; err = check() {
			select {
			case <-s.process.exited:
				return errors.New("it ended by itself")
			case <-ctx.Done():
				return fmt.Errorf("it does not get ready: %w", err)
			case <-time.After(50 * time.Millisecond):
			}
		}
	}
	return nil
}

// openStream says whether addr answers a stream header with one of its own.
func openStream(ctx context.Context, addr, namespace, to string) error {
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", addr)
	if err != nil {
		return err
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(5 * time.Second)); err != nil {
		return err
	}
	_, err = fmt.Fprintf(conn, "<?xml version='1.0'?><stream:stream xmlns='%s' "+
		"xmlns:stream='http://etherx.jabber.org/streams' to='%s' version='1.0'>", namespace, to)
	if err != nil {
		return err
	}
	var got []byte
	for buf := make([]byte, 1024); len(got) < 8192; {
		n, err := conn.Read(buf)
		got = append(got, buf[:n]...)
		text := string(got)
		if _, header, found := strings.Cut(text, "<stream:stream"); found && strings.Contains(header, ">") {
			if strings.Contains(header, "stream:error") {
				return fmt.Errorf("stream error: %s", header)
			}
			if !strings.Contains(header, "from='"+to+"'") && !strings.Contains(header, `from="`+to+`"`) {
				return fmt.Errorf("another server: %s", header)
			}
			_, _ = io.WriteString(conn, "</stream:stream>")
			return nil
		}
		if err != nil {
			return err
		}
	}
	return errors.New("no stream header")
}

// prepare checks the options and fills in what was left out.
func (o *Options) prepare() error {
	if o.Domain == "" {
		o.Domain = "localhost"
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	dir, err := filepath.Abs(o.Dir)
	if err != nil {
		return err
	}
	o.Dir = dir
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		return fmt.Errorf("%s is no folder", dir)
	}
	texts := []string{o.Domain, dir}
	for _, c := range o.Components {
		texts = append(texts, c.JID, c.Secret)
	}
	for _, u := range o.Users {
		texts = append(texts, u.Name, u.Password)
	}
	for _, text := range texts { // they go into Lua, YAML and Erlang unescaped
		if text == "" || strings.ContainsAny(text, "\"\\\n\r'") {
			return errors.New("a name, secret or path is empty or has a quote, a backslash or a line break")
		}
	}
	return nil
}

// The example values in the operator's fragments.
const (
	exampleJID    = "vault.example.org"
	exampleSecret = "change-me"
	examplePort   = "5347"
)

// attach is the operator's fragment with its example values replaced.
func attach(fragment string, c Component, addr string) (string, error) {
	for _, example := range []string{exampleJID, exampleSecret, examplePort} {
		if !strings.Contains(fragment, example) {
			return "", fmt.Errorf("the fragment that attaches a component lacks the example value %q", example)
		}
	}
	_, port, err := net.SplitHostPort(addr)
	if err != nil {
		return "", err
	}
	return strings.NewReplacer(exampleJID, c.JID, exampleSecret, c.Secret, examplePort, port).Replace(fragment), nil
}
