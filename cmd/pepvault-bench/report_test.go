package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/alecthomas/kong"

	results "pepvault/bench/report"
	"pepvault/bench/runner"
)

// TestReport writes reports as an operator does.
func TestReport(t *testing.T) {
	t.Parallel()
	good := writeRun(t, 1, 8*time.Millisecond)
	text, err := os.ReadFile(good)
	if err != nil {
		t.Fatal(err)
	}
	lines := bytes.SplitAfter(text, []byte("\n"))
	dir := t.TempDir()
	damaged, cut := filepath.Join(dir, "damaged.jsonl"), filepath.Join(dir, "cut.jsonl")
	for path, content := range map[string][]byte{
		damaged: append(bytes.Clone(lines[0]), "{}\n{}\n"...),
		cut:     bytes.Join(lines[:len(lines)-2], nil),
	} {
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, test := range []struct {
		name         string
		args         []string
		code         int
		stdout       string
		stderr       string
		written, not string // files
	}{
		{"Markdown by itself", []string{good}, exitOK, "| pepvault | read | 10 | 8.00 ms |", "", "", ""},
		{"all files", []string{good, "--html", filepath.Join(dir, "a.html"), "--md", filepath.Join(dir, "a.md"), "--json", filepath.Join(dir, "a.json")}, exitOK, "", "", "a.html a.md a.json", ""},
		{"one cut off", []string{cut}, exitOK, "CUT OFF", "", "", ""},
		{"damaged", []string{good, damaged, "--html", filepath.Join(dir, "b.html")}, exitFault, "", "damaged.jsonl: line 2", "", "b.html"},
		{"missing", []string{filepath.Join(dir, "missing.jsonl")}, exitFault, "", "missing.jsonl", "", ""},
		{"no file", nil, exitUsage, "", `expected "<file> ..."`, "", ""},
		{"over its own input", []string{good, "--json", good}, exitFault, "", "would be written over", "", ""},
		{"two in one file", []string{good, "--html", filepath.Join(dir, "c"), "--md", filepath.Join(dir, "c")}, exitFault, "", "would be written over", "", "c"},
		{"no name", []string{good, "--md", ""}, exitUsage, "", "--md names no file", "", ""},
		{"no name, joined", []string{good, "--html="}, exitUsage, "", "--html names no file", "", ""},
		{"the same again", []string{good, good}, exitOK, "was given more than once; it counts once", "", "", ""},
		{"no folder to write to", []string{good, "--md", filepath.Join(dir, "none", "a.md")}, exitFault, "", "no such file", "", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			var stdout, stderr bytes.Buffer
			code := run(t.Context(), &process{args: append([]string{"report"}, test.args...), stdout: &stdout, stderr: &stderr})
			if code != test.code || !strings.Contains(stdout.String(), test.stdout) || !strings.Contains(stderr.String(), test.stderr) {
				t.Errorf("exit %d, want %d\n%s%s", code, test.code, &stdout, &stderr)
			}
			for name := range strings.FieldsSeq(test.written) {
				content, err := os.ReadFile(filepath.Join(dir, name))
				if err != nil || len(content) == 0 || filepath.Ext(name) == ".json" && !json.Valid(content) {
					t.Errorf("%s: %v, %d bytes", name, err, len(content))
				}
			}
			if test.not != "" {
				if _, err := os.Stat(filepath.Join(dir, test.not)); err == nil {
					t.Errorf("%s was written", test.not)
				}
			}
		})
	}
}

// TestReportKeepsWhatIsThere: a link stays one, a file's mode as it is, and what is
// no file is written to.
func TestReportKeepsWhatIsThere(t *testing.T) {
	t.Parallel()
	good, dir := writeRun(t, 1, 8*time.Millisecond), t.TempDir()
	kept, link := filepath.Join(dir, "kept.md"), filepath.Join(dir, "link.md")
	pipe := filepath.Join(dir, "pipe")
	if err := errors.Join(os.WriteFile(kept, []byte("old"), 0o600), os.Symlink(kept, link), syscall.Mkfifo(pipe, 0o600)); err != nil {
		t.Fatal(err)
	}
	piped, err := os.OpenFile(pipe, os.O_RDWR, 0) // so that nobody waits for the other end
	if err != nil {
		t.Fatal(err)
	}
	defer piped.Close()
	go io.Copy(io.Discard, piped) // until it is closed
	for _, out := range []string{link, pipe} {
		var stderr bytes.Buffer
		if code := run(t.Context(), &process{args: []string{"report", good, "--md", out}, stdout: io.Discard, stderr: &stderr}); code != exitOK {
			t.Errorf("%s: exit %d\n%s", out, code, &stderr)
		}
	}
	if where, err := os.Readlink(link); err != nil || where != kept {
		t.Errorf("the link leads to %q, %v", where, err)
	}
	text, err := os.ReadFile(kept)
	if about, statErr := os.Stat(kept); err != nil || statErr != nil || about.Mode().Perm() != 0o600 || !bytes.Contains(text, []byte("pepvault")) {
		t.Errorf("the file: %v, %v, %d bytes", about.Mode(), errors.Join(err, statErr), len(text))
	}
	if about, err := os.Stat(pipe); err != nil || about.Mode().IsRegular() {
		t.Errorf("the pipe: %v, %v", about.Mode(), err)
	}
}

// asked is what a command line asks for, whatever the order of its flags; its
// rounds and its file don't count.
func asked(words []string) string {
	var flags []string
	for _, word := range words[1:] {
		if strings.HasPrefix(word, "--") {
			flags = append(flags, word)
		} else {
			flags[len(flags)-1] += " " + word
		}
	}
	flags = slices.DeleteFunc(flags, func(flag string) bool {
		return strings.HasPrefix(flag, "--rounds") || strings.HasPrefix(flag, "--out ")
	})
	slices.Sort(flags)
	return words[0] + " " + strings.Join(flags, " ")
}

// TestDocumentedReport: every run of the sequence in docs/operations.md that makes
// a whole report is one that can be asked for, and that docs/benchmarks.md was made
// of.
func TestDocumentedReport(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../docs/operations.md")
	if err != nil {
		t.Fatal(err)
	}
	done, err := os.ReadFile("../../docs/benchmarks.md")
	if err != nil {
		t.Fatal(err)
	}
	measured := make(map[string]bool)
	for line := range strings.Lines(string(done)) {
		if command, found := strings.CutPrefix(strings.TrimSpace(line), "./pepvault-bench run "); found {
			measured[asked(strings.Fields(command))] = true
		}
	}
	workloads := make(map[string]bool)
	for line := range strings.Lines(string(text)) {
		line, whole := strings.CutPrefix(line, "    ./pepvault-bench run ")
		_, command, found := strings.Cut(line, "bench ")
		if whole {
			command = line
		} else if !found || !strings.HasPrefix(line, "    ") || strings.Contains(line, "pepvault-bench") {
			continue
		}
		names := []string{"100"}
		if _, loop, found := strings.Cut(line, " in "); found {
			loop, _, _ = strings.Cut(loop, ";")
			names = strings.Fields(loop)
		}
		for _, name := range names {
			variables := strings.NewReplacer("$both", "--target component --target pep", "$rate", name, "$kind", name, "$way", name, "; done", "")
			words := strings.Fields(variables.Replace(command))
			var c cli
			parser := kong.Must(&c, kong.Vars{"version": "test"})
			args := append([]string{"run"}, words...)
			if !whole {
				args = append([]string{"run"}, append(words[1:], "--host", "prosody", "--host-gc", "tuned", "--out", words[0]+".jsonl")...)
			}
			if _, err := parser.Parse(args); err != nil {
				t.Errorf("%q: %v", args, err)
				continue
			}
			if _, err := c.Run.options(&process{args: args}); err != nil {
				t.Errorf("%q: %v", args, err)
			}
			if !measured[asked(args[1:])] {
				t.Errorf("docs/benchmarks.md was not made by %q", args)
			}
			workloads[c.Run.Workload] = true
		}
	}
	for _, name := range runner.Names {
		if !workloads[name] {
			t.Errorf("the sequence has no run of %s", name)
		}
	}
}

// full is an output that takes so much and then no more.
type full struct{ room int }

func (f *full) Write(text []byte) (int, error) {
	if f.room -= len(text); f.room < 0 {
		return 0, syscall.ENOSPC
	}
	return len(text), nil
}

// TestFullOutput: a result that could not be written is a fault of each command.
func TestFullOutput(t *testing.T) {
	t.Parallel()
	a, b := writeRun(t, 1, 8*time.Millisecond), writeRun(t, 1, 2*time.Millisecond)
	for name, args := range map[string][]string{
		"compare": {"compare", a, b},
		"report":  {"report", a},
		"run":     {"run", "mix", "--short", "--host", "embedded", "--users", "2", "--rounds", "1"},
	} {
		for _, room := range []int{0, 100} {
			var stderr bytes.Buffer
			code := run(t.Context(), &process{args: args, stdout: &full{room}, stderr: &stderr})
			lines := strings.Split(strings.TrimRight(stderr.String(), "\n"), "\n")
			if want := "pepvault-bench: the output could not be written: no space left on device"; code != exitFault || lines[len(lines)-1] != want {
				t.Errorf("%s: exit %d\n%s", name, code, &stderr)
			}
		}
	}
}

// TestReportKnowsAllFlags: a report shows each flag of a run, so that the command
// in it can be repeated.
func TestReportKnowsAllFlags(t *testing.T) {
	t.Parallel()
	var c cli
	for _, node := range kong.Must(&c, kong.Vars{"version": "test"}).Model.Children {
		for _, flag := range node.Flags {
			if node.Name != "run" || flag.Name == "help" || flag.Name == "version" {
				continue
			}
			name := "--" + flag.Name
			command := []string{"pepvault-bench", "run", "mix", name}
			if !flag.IsBool() {
				command = append(command, "1")
			}
			path := filepath.Join(t.TempDir(), "run.jsonl")
			r, err := results.Create(path, results.Environment{Command: command, Work: results.Workload{Name: "mix"}})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := r.Finish(nil); err != nil {
				t.Fatal(err)
			}
			var stdout bytes.Buffer
			if code := run(t.Context(), &process{args: []string{"report", path}, stdout: &stdout, stderr: io.Discard}); code != exitOK || !strings.Contains(stdout.String(), "./pepvault-bench run mix "+name) {
				t.Errorf("%s is not shown, exit %d", name, code)
			}
		}
	}
}
