package main

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	results "pepvault/bench/report"
)

// TestSoakMissesItsBounds holds that a soak whose bounds nobody could keep fails
// as an operator sees it: one line that says which, a verdict with what was
// measured and no figures, and exit code 1.
func TestSoakMissesItsBounds(t *testing.T) {
	t.Parallel()
	program := programs(t)
	for name, test := range map[string]struct {
		args   []string
		missed []string
	}{
		"delivery": {[]string{"--max-delivery", "1us"}, []string{results.GateDelivery}},
		"memory":   {[]string{"--max-delivery", "1m", "--max-memory", "1"}, []string{results.GateMemory}},
		"both":     {[]string{"--max-delivery", "1us", "--max-memory", "1"}, []string{results.GateDelivery, results.GateMemory}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			file := filepath.Join(t.TempDir(), "soak.jsonl")
			code, stdout, stderr := runBench(t, program, append([]string{"run", "soak", "--short", "--host", "embedded", "--devices", "5", "--out", file}, test.args...)...)
			lines := strings.Split(strings.TrimRight(stdout, "\n"), "\n")
			var verdict results.Verdict
			if err := json.Unmarshal([]byte(lines[len(lines)-1]), &verdict); err != nil || code != exitFault {
				t.Fatalf("exit %d: %v\n%s%s", code, err, stdout, stderr)
			}
			var missed []string
			for _, gate := range verdict.Gates {
				if !gate.OK {
					missed = append(missed, gate.Name)
				}
			}
			if strings.Join(missed, " ") != strings.Join(test.missed, " ") || verdict.OK || verdict.Outcome != nil || len(verdict.Gates) != 5 {
				t.Errorf("missed is %q, want %q: %s", missed, test.missed, stdout)
			}
			said := strings.Split(strings.TrimRight(stderr, "\n"), "\n")
			if last := said[len(said)-1]; !strings.HasPrefix(last, "pepvault-bench: a bound is missed: component: ") {
				t.Errorf("the last line is %q", last)
			}
			kept, err := results.LoadFile(file)
			if err != nil || len(kept.Gates) != 5 || kept.Verdict == nil || kept.Verdict.Line() != verdict.Line() {
				t.Errorf("the file does not hold the verdict: %v", err)
			}
		})
	}
}
