package servers

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

const (
	// program is the name of the service's file.
	program = "pepvault"
	// configName is its configuration's, in its folder.
	configName = "pepvault.toml"
)

// FindService returns the path of the service's program: beside this process's
// own, else on the search path, else built from the module into dir, which
// works where "go run" does.
func FindService(ctx context.Context, dir string) (string, error) {
	if own, err := os.Executable(); err == nil {
		if path, err := exec.LookPath(filepath.Join(filepath.Dir(own), program)); err == nil {
			return path, nil
		}
	}
	if path, err := exec.LookPath(program); err == nil {
		return filepath.Abs(path)
	}
	path := filepath.Join(dir, program)
	out, err := exec.CommandContext(ctx, "go", "build", "-o", path, "pepvault/cmd/pepvault").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("%s: %w: put it beside pepvault-bench or on the path (and go build failed: %w: %s)",
			program, ErrUnavailable, err, strings.TrimSpace(string(out)))
	}
	return path, nil
}

// ServiceOptions say how to run the service.
type ServiceOptions struct {
	Dir     string // an existing folder for its configuration and its store
	Program string // "" = FindService
	JID     string
	Server  string // host:port where it attaches
	Secret  string
	// More is appended to the configuration, whose sections component, http,
	// log and store are in use.
	More   string
	Wrap   Wrap         // as of Options
	Logger *slog.Logger // nil: silent
}

// Service is a service that was started as a process of its own.
type Service struct {
	Store string // path of its database

	options ServiceOptions
	log     string
	process *process
}

// StartService runs the service on a fresh store and waits until it is
// attached.
func StartService(ctx context.Context, o ServiceOptions) (*Service, error) {
	if o.Program == "" {
		var err error
		if o.Program, err = FindService(ctx, o.Dir); err != nil {
			return nil, err
		}
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	text := fmt.Sprintf("[component]\njid = %q\nserver = %q\n[http]\nlisten = \"\"\n[log]\nlevel = \"warn\"\n%s", o.JID, o.Server, o.More)
	if err := os.WriteFile(filepath.Join(o.Dir, configName), []byte(text), 0o600); err != nil {
		return nil, err
	}
	s := &Service{Store: filepath.Join(o.Dir, "pepvault.db"), options: o, log: filepath.Join(o.Dir, "service.log")}
	if err := s.start(ctx); err != nil {
		return nil, err
	}
	return s, nil
}

// Restart stops the service as an operator does and starts it again on its
// store; it returns when it is attached. Its PID is another one then.
func (s *Service) Restart(ctx context.Context) error {
	s.Stop()
	return s.start(ctx)
}

// start returns when the service is attached.
func (s *Service) start(ctx context.Context) error {
	// A socket's path must be short, whatever the folder is.
	ready, err := os.MkdirTemp("", "pepvault-ready-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(ready)
	socket := filepath.Join(ready, "s")
	notify, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: socket, Net: "unixgram"})
	if err != nil {
		return err
	}
	defer notify.Close()
	s.process, err = startProcess(command{
		path: s.options.Program, args: []string{"serve", "--config", filepath.Join(s.options.Dir, configName)},
		env:  []string{"NOTIFY_SOCKET=" + socket, "PEPVAULT_SECRET=" + s.options.Secret},
		wrap: s.options.Wrap,
	}, s.log)
	if err != nil {
		return fmt.Errorf("start the service: %w", err)
	}
	began := time.Now()
	if err := s.awaitReady(ctx, notify); err != nil {
		s.Stop()
		return fmt.Errorf("start the service: %w\n%s", err, tail(s.log, 20))
	}
	s.options.Logger.Info("service attached", "pid", s.PID(), "took", time.Since(began))
	return nil
}

// awaitReady waits for the word that systemd would get.
func (s *Service) awaitReady(ctx context.Context, notify *net.UnixConn) error {
	ctx, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	done := make(chan struct{})
	defer close(done)
	go func() { // ends with this function
		select {
		case <-s.process.exited:
		case <-ctx.Done():
		case <-done:
			return
		}
		_ = notify.SetReadDeadline(time.Now()) // wakes the reader
	}()
	buf := make([]byte, 4096)
	for {
		n, err := notify.Read(buf)
		switch {
		case err == nil && strings.Contains("\n"+string(buf[:n])+"\n", "\nREADY=1\n"):
			return nil
		case err == nil:
		case ctx.Err() != nil:
			return fmt.Errorf("it does not attach: %w", ctx.Err())
		default:
			return errors.New("it ended by itself")
		}
	}
}

// PID returns the process id.
func (s *Service) PID() int { return s.process.cmd.Process.Pid }

// Stop ends the service as an operator does. It can be called again.
func (s *Service) Stop() { s.process.stop() }

// tail returns the last lines of a file.
func tail(path string, lines int) string {
	text, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	all := strings.Split(strings.TrimRight(string(text), "\n"), "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}
