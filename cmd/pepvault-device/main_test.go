package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"pepvault/vault/device/c2s"
	"pepvault/vault/device/client"
)

func TestReport(t *testing.T) {
	t.Parallel()
	conflict := fmt.Errorf("%q: %w", "a", client.ErrConflict)
	bad := fmt.Errorf("%w: b", client.ErrTampered)
	tests := map[string]struct {
		err  error
		code int
		want string
	}{
		"nothing":  {nil, 0, ""},
		"fault":    {errors.New("first\nsecond"), 1, "pepvault-device: first; second\n"},
		"usage":    {usageError("--account is missing"), 2, "pepvault-device: --account is missing; see pepvault-device --help\n"},
		"conflict": {conflict, 3, "pepvault-device: \"a\": both versions are kept\n"},
		"tampered": {bad, 4, "pepvault-device: tampered with: b\n"},
		"both":     {errors.Join(conflict, bad), 4, "pepvault-device: \"a\": both versions are kept; tampered with: b\n"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var stderr bytes.Buffer
			if code := report(&stderr, test.err); code != test.code || stderr.String() != test.want {
				t.Errorf("exit %d, %q; want %d, %q", code, stderr.String(), test.code, test.want)
			}
		})
	}
}

// TestUsage holds that what is wrong on the command line is told in a line, before
// anything is asked of anybody.
func TestUsage(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	state := filepath.Join(dir, "state")
	if err := os.Mkdir(state, 0o700); err != nil {
		t.Fatal(err)
	}
	damaged := filepath.Join(dir, "damaged")
	if err := os.Mkdir(damaged, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(damaged, settingsFile), []byte("{\"acc"), 0o600); err != nil {
		t.Fatal(err)
	}
	tests := map[string]struct {
		args string
		code int
		want string
	}{
		"no command":       {"", 2, "expected one of"},
		"unknown flag":     {"list --no-such-flag", 2, "unknown flag"},
		"not UTF-8":        {"get a\xff --state " + state, 2, "not UTF-8"},
		"name is missing":  {"get", 2, "expected \"<id>\""},
		"two secrets":      {"init --passphrase-file a --key-file b", 2, "can't be used together"},
		"two authorities":  {"sync --ca a --insecure-tls", 2, "can't be used together"},
		"no account":       {"init --state " + state, 2, "--account is missing"},
		"no account at it": {"init --account alice --state " + state, 2, "--account \"alice\""},
		"vault's name":     {"init --account a@b --vault a\x01 --state " + state, 2, "--vault"},
		"not set up":       {"list --account a@b --state " + state, 1, "not set up"},
		"no folder":        {"list --state " + filepath.Join(dir, "none"), 1, "not set up"},
		"damaged settings": {"list --state " + damaged, 1, "device.json is damaged; remove it"},
		"nobody to ask":    {"init --account a@b --server 127.0.0.1:1 --state " + state, 2, "--password-file is missing"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			var out, errs bytes.Buffer
			var args []string
			if test.args != "" {
				args = strings.Split(test.args, " ")
			}
			code := run(t.Context(), args, &process{stdout: &out, stderr: &errs})
			if code != test.code || !strings.Contains(errs.String(), test.want) || strings.Count(errs.String(), "\n") != 1 {
				t.Errorf("exit %d, %q; want %d, %q", code, &errs, test.code, test.want)
			}
		})
	}
}

func TestBar(t *testing.T) {
	t.Parallel()
	var shown bytes.Buffer
	a := &app{process: &process{stderr: &shown}}
	a.bar(0, 0)
	a.bar(1, 4)
	a.bar(4, 4)
	want := "\r[" + strings.Repeat("#", 10) + strings.Repeat(" ", 30) + "] 1 of 4 records"
	if !strings.Contains(shown.String(), want) || strings.Contains(shown.String(), "\n") {
		t.Errorf("%q does not have %q", shown.String(), want)
	}
}

// TestIsOffline holds that only the network makes a device be offline: what a file
// fails with is an error of the system as well.
func TestIsOffline(t *testing.T) {
	t.Parallel()
	lost := &net.OpError{Op: "read", Net: "tcp", Err: os.NewSyscallError("read", syscall.ECONNRESET)}
	absent := &fs.PathError{Op: "open", Path: "password", Err: syscall.ENOENT}
	for name, test := range map[string]struct {
		err  error
		want bool
	}{
		"unreachable":          {fmt.Errorf("connect: %w", c2s.ErrUnreachable), true},
		"connection reset":     {fmt.Errorf("read: %w", lost), true},
		"service not running":  {fmt.Errorf("%w: it answers wait", client.ErrNotNow), true},
		"no answer":            {client.ErrNoAnswer, true},
		"password file absent": {absent, false},
		"disk full":            {&fs.PathError{Op: "write", Path: "vault.sealed.new", Err: syscall.ENOSPC}, false},
		"rename":               {&os.LinkError{Op: "rename", Old: "a", New: "b", Err: syscall.EROFS}, false},
		"both":                 {errors.Join(lost, absent), false},
		"refused":              {client.ErrRefused, false},
		"stopped":              {context.Canceled, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := isOffline(test.err); got != test.want {
				t.Errorf("isOffline(%v) = %t", test.err, got)
			}
		})
	}
}

// TestExportIsNew holds that an export never takes the place of another file.
func TestExportIsNew(t *testing.T) {
	t.Parallel()
	a := &app{process: new(process)}
	file := filepath.Join(t.TempDir(), "out.json")
	if err := a.writeExport(file, exported{Records: []content{contentOf("a", []byte("b"))}}); err != nil {
		t.Fatal(err)
	}
	if err := a.writeExport(file, exported{}); !errors.Is(err, fs.ErrExist) {
		t.Errorf("over another export: %v", err)
	}
	if text, err := os.ReadFile(file); err != nil || !strings.Contains(string(text), `"text": "b"`) {
		t.Errorf("the first export has %s, %v", text, err)
	}
}
