package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"pepvault/component/loopback"
	"pepvault/configs"
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
		"go build ./cmd/pepvault":    func(*testing.T) {}, // done above
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

// TestReadmeAttachesAsTheFragmentDoes compares the README's lines for Prosody
// with the file that the end-to-end tests start it with.
func TestReadmeAttachesAsTheFragmentDoes(t *testing.T) {
	t.Parallel()
	var fragment []string
	for line := range strings.Lines(configs.ProsodyFragment) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "--") {
			fragment = append(fragment, line)
		}
	}
	for _, block := range indented(documented(t)["README.md"]) {
		if !strings.HasPrefix(block, "Component ") {
			continue
		}
		var lines []string
		for line := range strings.Lines(block) {
			if line = strings.TrimSpace(line); line != "" {
				lines = append(lines, line)
			}
		}
		if !slices.Equal(lines, fragment) {
			t.Errorf("the README says %q, configs/prosody.cfg.lua %q", lines, fragment)
		}
		return
	}
	t.Error("the README shows no lines for Prosody")
}
