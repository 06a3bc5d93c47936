package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// systemd is the other end of sd_notify. The address goes through the
// environment, so these tests are not parallel.
type systemd struct{ conn *net.UnixConn }

func newSystemd(t *testing.T) systemd {
	t.Helper()
	folder, err := os.MkdirTemp("", "notify") // t.TempDir can be too long for a socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(folder) })
	address := &net.UnixAddr{Name: filepath.Join(folder, "s"), Net: "unixgram"}
	conn, err := net.ListenUnixgram("unixgram", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	t.Setenv("NOTIFY_SOCKET", address.Name)
	return systemd{conn}
}

// next returns the next message, "" if none comes within wait.
func (s systemd) next(t *testing.T, wait time.Duration) string {
	t.Helper()
	if err := s.conn.SetReadDeadline(time.Now().Add(wait)); err != nil {
		t.Fatal(err)
	}
	buf := make([]byte, 4096)
	n, err := s.conn.Read(buf)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return ""
	}
	if err != nil {
		t.Fatal(err)
	}
	return string(buf[:n])
}

const soon = time.Minute // far more than any machine needs

func TestNotify(t *testing.T) {
	s := newSystemd(t)
	n := notifier{slog.New(slog.DiscardHandler)}
	n.Ready()
	n.Status("attached to 127.0.0.1:5347\nREADY=0")
	n.Stopping()
	for _, want := range []string{"READY=1", "STATUS=attached to 127.0.0.1:5347; READY=0", "STOPPING=1"} {
		if got := s.next(t, soon); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestNotifyWithoutSystemd(t *testing.T) {
	t.Setenv("NOTIFY_SOCKET", "")
	t.Setenv("WATCHDOG_USEC", "")
	var log bytes.Buffer
	n := notifier{slog.New(slog.NewTextHandler(&log, nil))}
	n.Ready()
	n.Watchdog(t.Context(), func(context.Context) error { t.Error("asked"); return nil }) // returns at once
	if log.Len() > 0 {
		t.Errorf("logged %s", &log)
	}
}

func TestNotifyFails(t *testing.T) {
	t.Setenv("NOTIFY_SOCKET", filepath.Join(t.TempDir(), "none"))
	var log bytes.Buffer
	notifier{slog.New(slog.NewTextHandler(&log, nil))}.Ready()
	if !strings.Contains(log.String(), "systemd not told") {
		t.Errorf("logged %q", &log)
	}
}

func TestWatchdog(t *testing.T) {
	s := newSystemd(t)
	t.Setenv("WATCHDOG_USEC", "20000")
	t.Setenv("WATCHDOG_PID", fmt.Sprint(os.Getpid()))
	n := notifier{slog.New(slog.DiscardHandler)}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	asked := 0
	go func() {
		defer close(ended)
		n.Watchdog(ctx, func(context.Context) error {
			asked++ // this goroutine's alone until ended
			if asked == 4 {
				cancel()
			}
			if asked == 2 {
				return errors.New("stuck")
			}
			return nil
		})
	}()
	<-ended
	for range 3 { // not at the second call
		if got := s.next(t, soon); got != "WATCHDOG=1" {
			t.Errorf("got %q", got)
		}
	}
	if asked != 4 {
		t.Errorf("asked %d times, want 4", asked)
	}
	if got := s.next(t, 50*time.Millisecond); got != "" {
		t.Errorf("also got %q", got)
	}
}
