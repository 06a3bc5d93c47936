package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	results "pepvault/bench/report"
)

// programs builds both commands into one folder, as they are installed, and
// returns the path of this one.
func programs(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", dir+"/", "pepvault/cmd/pepvault", "pepvault/cmd/pepvault-bench").CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	return filepath.Join(dir, "pepvault-bench")
}

// runBench runs the real program and returns its exit code and what it wrote.
func runBench(t *testing.T, program string, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), program, args...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	var exit *exec.ExitError
	if err := cmd.Run(); err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode(), out.String(), errs.String()
}

// TestRun runs workloads as an operator does: on every host, both targets, the
// echo beside them.
func TestRun(t *testing.T) {
	t.Parallel()
	program := programs(t)
	tests := map[string]struct {
		args    []string
		targets []string
		kinds   []results.Kind
	}{
		"mix, embedded": {
			[]string{"mix", "--host", "embedded"},
			[]string{"component"}, []results.Kind{results.Read, results.Save, results.Download, results.Notify},
		},
		"mix, Prosody, all targets": {
			[]string{"mix", "--host", "prosody", "--host-gc", "tuned", "--target", "component", "--target", "pep", "--echo", "--rounds", "1"},
			[]string{"component", "pep", "echo"}, []results.Kind{results.Read, results.Save, results.Download},
		},
		"saves alone, embedded": {
			[]string{"mix", "--host", "embedded", "--only", "save"}, // at a rate that no account is refused for
			[]string{"component"}, []results.Kind{results.Save, results.Notify},
		},
		"storm, Prosody": {
			[]string{"storm", "--host", "prosody", "--target", "component:safe.localhost", "--target", "pep", "--rounds", "1", "--download", "pushed"},
			[]string{"component", "pep"}, []results.Kind{results.Connect, results.Download, results.Ready, results.Probe},
		},
		"restart, Prosody": {
			[]string{"restart", "--host", "prosody"},
			[]string{"component"}, []results.Kind{results.Connect, results.Ready, results.Probe},
		},
		"restart, embedded": {
			[]string{"restart", "--host", "embedded"},
			[]string{"component"}, []results.Kind{results.Connect, results.Ready, results.Probe},
		},
		"capacity, Prosody": {
			[]string{"capacity", "--host", "prosody", "--target", "component", "--target", "pep", "--size", "none", "--users", "2"},
			[]string{"component", "pep"}, nil,
		},
		"soak, Prosody": { // how fast it is depends on who else uses the machine
			[]string{"soak", "--host", "prosody", "--users", "2", "--max-delivery", "1m", "--rounds", "1", "--target", "component", "--target", "pep"},
			[]string{"component", "pep"}, []results.Kind{results.Save, results.Notify},
		},
		"disk, Prosody": {
			[]string{"disk", "--host", "prosody", "--users", "2", "--lone", "1", "--duration", "500ms", "--target", "component", "--target", "pep"},
			[]string{"component", "pep"}, []results.Kind{results.Save, results.Notify},
		},
		"mix, ejabberd": {
			[]string{"mix", "--host", "ejabberd", "--target", "pep", "--target", "component", "--rounds", "1"},
			[]string{"pep", "component"}, []results.Kind{results.Read, results.Save, results.Download, results.Notify},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			file := filepath.Join(t.TempDir(), "run.jsonl")
			args := append([]string{"run", "--short", "--users", "5", "--out", file}, test.args...)
			code, stdout, stderr := runBench(t, program, args...)
			if code != exitOK {
				t.Fatalf("exit %d\n%s%s", code, stdout, stderr)
			}
			lines := strings.Split(strings.TrimRight(stdout, "\n"), "\n")
			var verdict results.Verdict
			if err := json.Unmarshal([]byte(lines[len(lines)-1]), &verdict); err != nil || !verdict.OK || verdict.Outcome == nil {
				t.Fatalf("the last line is no good verdict: %v\n%s", err, stdout)
			}
			briefs := append([]results.Brief{verdict.Brief}, verdict.Against...)
			if len(briefs) != len(test.targets) {
				t.Fatalf("figures of %d targets, want %d", len(briefs), len(test.targets))
			}
			for i, brief := range briefs {
				if brief.Target != test.targets[i] || brief.Errors != 0 {
					t.Errorf("target %d is %s with %d errors, want %s with none", i, brief.Target, brief.Errors, test.targets[i])
				}
				for _, kind := range test.kinds {
					if brief.Kinds[kind].Count == 0 {
						t.Errorf("%s: no %s was counted", brief.Target, kind)
					}
				}
				if brief.Kinds[results.Read].Count > 0 && slices.Contains(test.args, "--only") {
					t.Errorf("%s: %d reads in a load of %q", brief.Target, brief.Kinds[results.Read].Count, test.args)
				}
			}
			kept, err := results.LoadFile(file)
			if err != nil || kept.Verdict == nil || kept.Verdict.Line() != verdict.Line() {
				t.Errorf("the file does not hold the verdict: %v", err)
			}
			if kept != nil && test.args[0] == "restart" {
				if all := kept.Processes[results.Service]; len(all) == 0 || all[len(all)-1].Count == 0 {
					t.Error("the service that was restarted is not watched")
				}
			}
			if kept != nil && kept.Environment.Host.Name != "embedded" && kept.Environment.Host.Version == "" {
				t.Error("the file does not say which version the host has")
			}
		})
	}
}

// TestUsage holds the exit codes of what can't be run.
func TestUsage(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		args []string
		code int
		want string
	}{
		"no workload":        {nil, exitUsage, "expected"},
		"unknown workload":   {[]string{"run", "tempest"}, exitUsage, "tempest"},
		"unknown download":   {[]string{"run", "mix", "--download", "fast"}, exitUsage, "--download"},
		"two servers":        {[]string{"run", "mix", "--host", "prosody", "--server", "127.0.0.1:5222"}, exitUsage, "--server"},
		"PEP of no server":   {[]string{"run", "mix", "--host", "embedded", "--target", "pep"}, exitUsage, "no PEP"},
		"a target twice":     {[]string{"run", "mix", "--host", "embedded", "--target", "pep", "--target", "pep"}, exitUsage, "pep"},
		"no such target":     {[]string{"run", "mix", "--host", "embedded", "--target", "cloud"}, exitUsage, "cloud"},
		"nobody's password":  {[]string{"run", "mix", "--server", "127.0.0.1:1", "--domain", "localhost", "--user-prefix", "u"}, exitUsage, "password"},
		"echo elsewhere":     {[]string{"run", "mix", "--echo", "--server", "127.0.0.1:1", "--domain", "d", "--user-prefix", "u", "--password", "p"}, exitUsage, "--echo"},
		"rate of no plan":    {[]string{"run", "max", "--rate", "5"}, exitUsage, "--rate"},
		"missed by nobody":   {[]string{"run", "mix", "--missed", "5"}, exitUsage, "--missed"},
		"storm of one kind":  {[]string{"run", "storm", "--only", "read"}, exitUsage, "--only"},
		"echo of a soak":     {[]string{"run", "soak", "--echo"}, exitUsage, "neither stores nor notifies"},
		"two soaks at once":  {[]string{"run", "soak", "--size", "1:1g,2:2g"}, exitUsage, "a soak has one"},
		"disk of others":     {[]string{"run", "disk", "--server", "127.0.0.1:1", "--domain", "d", "--user-prefix", "u", "--password", "p"}, exitUsage, "as it writes"},
		"rate of a disk run": {[]string{"run", "disk", "--rate", "5"}, exitUsage, "--rate"},
		"lone in a mix":      {[]string{"run", "mix", "--lone", "5"}, exitUsage, "--lone"},
		"restart of PEP":     {[]string{"run", "restart", "--target", "pep"}, exitUsage, "restart"},
		"size of no server":  {[]string{"run", "capacity", "--size", "large"}, exitUsage, "large"},
		"a size twice":       {[]string{"run", "capacity", "--size", "1:1g,1:1024m"}, exitUsage, "twice"},
		"size of a mix":      {[]string{"run", "mix", "--size", "1:1g"}, exitUsage, "--size"},
		"capacity in here":   {[]string{"run", "capacity", "--host", "embedded"}, exitUsage, "limits"},
		"duration of storms": {[]string{"run", "storm", "--duration", "5s"}, exitUsage, "--duration"},
		"nothing for a user": {[]string{"run", "mix", "--host", "embedded", "--devices", "65"}, exitFault, "65 devices"},
		"no such server":     {[]string{"run", "mix", "--users", "1", "--server", "127.0.0.1:1", "--domain", "d", "--user-prefix", "u", "--password", "p"}, exitFault, "refused"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var stdout, stderr bytes.Buffer
			code := run(t.Context(), &process{args: test.args, stdout: &stdout, stderr: &stderr})
			if code != test.code || !strings.Contains(stderr.String(), test.want) {
				t.Errorf("exit %d, want %d with %q\n%s%s", code, test.code, test.want, &stdout, &stderr)
			}
		})
	}
}
