package main

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"pepvault/component/loopback"
	"pepvault/configs"
	"pepvault/store"
	"pepvault/vault"
)

// documented are the pages whose commands are tested.
func documented(t *testing.T) map[string]string {
	t.Helper()
	files, err := filepath.Glob("../../docs/*.md")
	if err != nil || len(files) == 0 {
		t.Fatal("no pages in docs", err)
	}
	pages := map[string]string{}
	for _, file := range append(files, "../../README.md") {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		pages[filepath.Base(file)] = string(text)
	}
	return pages
}

// indented returns the indented blocks of a page, each without its indent.
func indented(page string) (blocks []string) {
	block := ""
	for line := range strings.Lines(page) {
		code, found := strings.CutPrefix(line, "    ")
		if found || block != "" && strings.TrimSpace(line) == "" {
			block += code
			continue
		}
		if block != "" {
			blocks = append(blocks, block)
		}
		block = ""
	}
	return blocks
}

// commands returns the lines of a page that are to be typed.
func commands(page string) (found []string) {
	for _, block := range indented(page) {
		for line := range strings.Lines(block) {
			line = strings.TrimSpace(line)
			switch word, _, _ := strings.Cut(line, " "); word {
			case "go", "pepvault", ".ci/test":
				found = append(found, line)
			}
		}
	}
	return found
}

// TestDocumentedCommands runs every command that the README and the pages of
// docs show, as they stand there, with the README's configuration.
func TestDocumentedCommands(t *testing.T) {
	t.Parallel()
	host, err := loopback.Start(loopback.Options{Domain: "example.org", Component: "vault.example.org", Secret: "change-me"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { host.Close() })
	bin := t.TempDir()
	build(t, bin)
	operator := operatorFolder(t, host.Addr())

	run := map[string]func(t *testing.T){
		"go run ./cmd/pepvault demo": func(t *testing.T) { shell(t, "../..", bin, "go run ./cmd/pepvault demo") },
		"go run ./cmd/pepvault-bench run mix --short": func(t *testing.T) {
			shell(t, "../..", bin, "go run ./cmd/pepvault-bench run mix --short")
		},
		"go build ./cmd/pepvault":        func(*testing.T) {}, // done above
		"go build ./cmd/pepvault-device": func(*testing.T) {}, // by the tests of that, which run the rest of its page
		".ci/test": func(t *testing.T) { // it is what runs this test
			calls, err := os.ReadFile("../../.ci/run")
			if err != nil || !bytes.Contains(calls, []byte("test")) {
				t.Errorf(".ci/run does not call .ci/test: %v", err)
			}
			shell(t, "../..", bin, "test -x .ci/test && bash -n .ci/test")
		},
		"pepvault config print > pepvault.toml": func(t *testing.T) {
			dir := t.TempDir()
			shell(t, dir, bin, "pepvault config print > pepvault.toml")
			printed, err := os.ReadFile(filepath.Join(dir, "pepvault.toml"))
			if err != nil || !bytes.Equal(printed, configs.Describe()) {
				t.Errorf("the documented file was not printed: %v", err)
			}
		},
		"pepvault config check --config pepvault.toml": func(t *testing.T) {
			shell(t, operator, bin, "pepvault config check --config pepvault.toml")
		},
		"pepvault serve --config pepvault.toml": func(t *testing.T) { serves(t, host, operator, bin) },
	}
	onStore := func(commands ...string) func(t *testing.T) { // in a folder of its own
		return func(t *testing.T) {
			dir := storeFolder(t, host.Addr())
			for _, command := range commands {
				shell(t, dir, bin, command)
			}
		}
	}
	const backup = "pepvault backup --config pepvault.toml copy.db"
	for _, command := range []string{
		backup,
		"pepvault account list --config pepvault.toml",
		"pepvault vault list --config pepvault.toml alice@example.org",
		"pepvault vault show --config pepvault.toml alice@example.org notes",
		"pepvault account erase --config pepvault.toml --yes alice@example.org",
	} {
		run[command] = onStore(command)
	}
	for _, command := range []string{
		"pepvault verify --config pepvault.toml copy.db",
		"pepvault restore --config pepvault.toml copy.db",
	} {
		run[command] = onStore(backup, command)
	}
	seen := map[string]bool{}
	for name, page := range documented(t) {
		for _, command := range commands(page) {
			if run[command] == nil {
				t.Errorf("%s shows %q, which no test runs", name, command)
			}
			seen[command] = true
		}
	}
	for command, test := range run {
		t.Run(command, func(t *testing.T) {
			t.Parallel()
			if !seen[command] {
				t.Errorf("no page shows it any more")
			}
			test(t)
		})
	}
}

func build(t *testing.T, bin string) {
	t.Helper()
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", filepath.Join(bin, "pepvault"), ".").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}

// operatorFolder holds what the README says to write, with the host's address
// in the place of the default one.
func operatorFolder(t *testing.T, addr string) string {
	t.Helper()
	config := ""
	for _, block := range indented(documented(t)["README.md"]) {
		if strings.HasPrefix(block, "[component]") {
			config = block
		}
	}
	if config == "" {
		t.Fatal("the README shows no configuration")
	}
	config = strings.TrimRight(config, "\n") + fmt.Sprintf("\nserver = %q\n[http]\nlisten = \"127.0.0.1:0\"\n", addr)
	dir := t.TempDir()
	for name, text := range map[string]string{"pepvault.toml": config, "secret": "change-me\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// storeFolder is an operatorFolder with a store in which alice has a vault.
func storeFolder(t *testing.T, addr string) string {
	t.Helper()
	dir := operatorFolder(t, addr)
	s, err := store.Open(t.Context(), store.Options{Driver: "sqlite", Path: filepath.Join(dir, "pepvault.db"), Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	key := vault.Key{Account: "alice@example.org", Node: "notes"}
	err = s.Update(t.Context(), key, func(tx vault.Tx) error {
		_, err := tx.Create(key, vault.Config{})
		return err
	})
	if err := errors.Join(err, s.Close()); err != nil {
		t.Fatal(err)
	}
	return dir
}

func shell(t *testing.T, dir, bin, command string) {
	t.Helper()
	if out, err := shellCommand(t, dir, bin, command).CombinedOutput(); err != nil {
		t.Errorf("%s: %v\n%s", command, err, out)
	}
}

func shellCommand(t *testing.T, dir, bin, command string) *exec.Cmd {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "sh", "-c", command)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "PATH="+bin+":"+os.Getenv("PATH"), "PEPVAULT_SECRET=")
	return cmd
}

// serves starts the service as the README says, and wants a clean end.
func serves(t *testing.T, host *loopback.Host, dir, bin string) {
	var log bytes.Buffer
	cmd := shellCommand(t, dir, bin, "exec pepvault serve --config pepvault.toml")
	cmd.Stderr = &log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	_, err := host.Attached(t.Context())
	if err == nil {
		err = cmd.Process.Signal(syscall.SIGTERM)
	}
	if err != nil {
		_ = cmd.Process.Kill() // the reason is said below
	}
	if ended := cmd.Wait(); err != nil || ended != nil {
		t.Errorf("serve: %v, ended with %v\n%s", err, ended, log.Bytes())
	}
}

// TestDocsAttachAsTheFilesDo compares the lines for servers that pages show
// with the files that the end-to-end tests start them with.
func TestDocsAttachAsTheFilesDo(t *testing.T) {
	t.Parallel()
	settings := func(lua string) (lines []string) {
		for line := range strings.Lines(lua) {
			if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "--") && !strings.HasPrefix(line, "#") {
				lines = append(lines, line)
			}
		}
		return lines
	}
	for _, shown := range []struct{ doc, file, text string }{
		{"README.md", "prosody.cfg.lua", configs.ProsodyFragment},
		{"README.md", "prosody-global.cfg.lua", configs.ProsodyGlobal},
		{"operations.md", "ejabberdctl.cfg", configs.EjabberdControl},
	} {
		want := settings(shown.text)
		if !slices.ContainsFunc(indented(documented(t)[shown.doc]), func(block string) bool { return slices.Equal(settings(block), want) }) {
			t.Errorf("%s does not show %q, as configs/%s does", shown.doc, want, shown.file)
		}
	}
}
