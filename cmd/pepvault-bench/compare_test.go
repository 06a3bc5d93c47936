package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	results "pepvault/bench/report"
)

// writeRun makes the results file of a run, all of whose reads took so long.
func writeRun(t *testing.T, seed uint64, latency time.Duration) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "run.jsonl")
	r, err := results.Create(path, results.Environment{
		Work: results.Workload{Name: "mix", Seed: seed, Rounds: 1}, Targets: []string{"component"},
	})
	if err != nil {
		t.Fatal(err)
	}
	for range 10 {
		r.Operation(results.Operation{Target: "component", Round: 1, Phase: results.PhaseSteady, Kind: results.Read, Latency: latency, Service: latency, Result: results.OK})
	}
	r.Phase(results.Phase{Target: "component", Round: 1, Name: results.PhaseSteady, To: time.Second})
	if _, err := r.Finish(nil); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestCompare(t *testing.T) {
	t.Parallel()
	a, b, other := writeRun(t, 1, 8*time.Millisecond), writeRun(t, 1, 2*time.Millisecond), writeRun(t, 2, time.Millisecond)
	broken := filepath.Join(t.TempDir(), "broken.jsonl")
	if err := os.WriteFile(broken, []byte("no results\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	missing := filepath.Join(t.TempDir(), "missing.jsonl")
	for _, test := range []struct {
		name         string
		args         []string
		code         int
		table, fault string
	}{
		{"alike", []string{a, b}, exitOK, "p50        8.00 ms  2.00 ms  ×0.250", ""},
		{"unlike", []string{a, other}, exitFault, "", "seed: 1 and 2: the runs can't be compared"},
		{"no results file", []string{a, broken}, exitFault, "", "broken.jsonl: line 1: no environment"},
		{"missing", []string{missing, b}, exitFault, "", "missing.jsonl"},
		{"one file", []string{a}, exitUsage, "", `expected "<b>"`},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			var stdout, stderr bytes.Buffer
			code := run(t.Context(), &process{args: append([]string{"compare"}, test.args...), stdout: &stdout, stderr: &stderr})
			if code != test.code || !strings.Contains(stdout.String(), test.table) || !strings.Contains(stderr.String(), test.fault) {
				t.Errorf("exit %d, want %d\n%s%s", code, test.code, &stdout, &stderr)
			}
			if faults := strings.Count(stderr.String(), "\n"); code == exitOK && faults > 0 || code != exitOK && (faults != 1 || stdout.Len() > 0) {
				t.Errorf("exit %d with %d lines of faults, and on standard output %q", code, faults, &stdout)
			}
			if code != exitOK {
				return
			}
			lines := strings.Split(strings.TrimSpace(stdout.String()), "\n")
			var last results.Comparison
			if err := json.Unmarshal([]byte(lines[len(lines)-1]), &last); err != nil || last.Workload != "mix" || len(last.Rows) == 0 {
				t.Errorf("last line %q: %v", lines[len(lines)-1], err)
			}
		})
	}
}
