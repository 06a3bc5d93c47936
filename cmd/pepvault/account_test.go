package main

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pepvault/store"
	"pepvault/vault"
)

// TestEraseAsks: what is typed decides, and only the address itself is a yes.
func TestEraseAsks(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	config := filepath.Join(dir, "pepvault.toml")
	if err := os.WriteFile(config, []byte("[component]\njid = \"vault.example.org\"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s, err := store.Open(t.Context(), store.Options{Driver: "sqlite", Path: filepath.Join(dir, "pepvault.db")})
	if err != nil {
		t.Fatal(err)
	}
	key := vault.Key{Account: "alice@example.org", Node: "notes"}
	err = s.Update(t.Context(), key, func(tx vault.Tx) error {
		_, err := tx.Create(key, vault.Config{})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	erase := func(typed string) (stdout, stderr string, code int) {
		var out, errs strings.Builder
		p := &process{
			stdin: strings.NewReader(typed), terminal: true, stdout: &out, stderr: &errs,
			getenv: func(string) string { return "" },
		}
		code = run(context.WithoutCancel(t.Context()), []string{"account", "erase", "--config", config, "alice@example.org"}, p)
		return out.String(), errs.String(), code
	}
	const question = "This deletes 1 vault with 0 records of alice@example.org for good.\nType the address to go on: "
	for _, typed := range []string{"", "\n", "y\n", "yes\n", "bob@example.org\n"} {
		stdout, stderr, code := erase(typed)
		if code != exitFault || stdout != "" || stderr != question+"pepvault: nothing was erased: that is not the address\n" {
			t.Errorf("%q: exit %d, %q, %q", typed, code, stdout, stderr)
		}
	}
	stdout, stderr, code := erase(" Alice@example.org\n")
	if code != exitOK || stdout != "erased alice@example.org: 1 vault, 0 records\n" || stderr != question {
		t.Errorf("exit %d, %q, %q", code, stdout, stderr)
	}
}

func TestIsTerminal(t *testing.T) {
	t.Parallel()
	file, err := os.Create(filepath.Join(t.TempDir(), "file"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	null, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	for _, f := range []*os.File{file, null} {
		if isTerminal(f) {
			t.Errorf("nobody types at %s", f.Name())
		}
	}
}
