package report

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"
)

// recorded is the run of fill, with what change makes of its environment and
// its records.
func recorded(t *testing.T, change func(*Environment), more func(*Recorder)) *Results {
	t.Helper()
	env := testEnvironment()
	if change != nil {
		change(&env)
	}
	var file bytes.Buffer
	r, err := newRecorder(&file, env, epoch)
	if err != nil {
		t.Fatal(err)
	}
	if more != nil {
		more(r)
	}
	fill(t, r)
	results, err := Load(&file)
	if err != nil {
		t.Fatal(err)
	}
	return results
}

func TestCompareIsGolden(t *testing.T) {
	t.Parallel()
	a := recorded(t, nil, nil)
	b := recorded(t, func(env *Environment) {
		env.Host.Settings = map[string]string{"gc": "default"}
		env.Work.Rounds = 1
	}, func(r *Recorder) {
		r.Machine(Machine{At: 2, Memory: 200})
		// A slow read that only this run has.
		r.Operation(Operation{Target: "component", Round: 1, Phase: PhaseSteady, Kind: Read, Latency: 3 * time.Second, Service: time.Second, Result: OK})
	})
	c, err := Compare(a, b)
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "compare.txt", c.Table()+c.Line()+"\n")
}

// TestCompareRefuses holds that no ratio is made of unlike runs.
func TestCompareRefuses(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		change func(*Environment)
		want   string
	}{
		"seed":     {func(e *Environment) { e.Work.Seed = 8 }, `seed: 7 and 8: the runs can't be compared`},
		"rate":     {func(e *Environment) { e.Work.Rate = 260 }, `rate: 100 and 260`},
		"workload": {func(e *Environment) { e.Work.Name, e.Work.Rate = "max", 0 }, `name: "mix" and "max", rate: 100 and 0`},
		"download": {func(e *Environment) { e.Work.Download = "sync" }, `download: "plain" and "sync"`},
		"duration": {func(e *Environment) { e.Work.Duration = time.Second }, `duration_ns: 10000000000 and 1000000000`},
		"targets":  {func(e *Environment) { e.Targets = []string{"other", "another"} }, `no target is in both`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := Compare(recorded(t, nil, nil), recorded(t, test.change, nil))
			if !errors.Is(err, ErrUnlike) || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want %q", err, test.want)
			}
		})
	}
}

func TestCompareRefusesRunsWithoutFigures(t *testing.T) {
	t.Parallel()
	good := recorded(t, nil, nil)
	cut := recorded(t, nil, nil)
	cut.Verdict = nil
	failed := recorded(t, nil, nil)
	failed.Verdict = &Verdict{Workload: "mix", Reason: "a lost save"}
	for _, test := range []struct {
		name string
		a, b *Results
		want string
	}{
		{"cut off", good, cut, "the second was cut off"},
		{"failed", failed, good, "the first failed, and has no figures (a lost save)"},
	} {
		if _, err := Compare(test.a, test.b); !errors.Is(err, ErrUnlike) || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: got %v, want %q", test.name, err, test.want)
		}
	}
}

// TestCompareOneTargetEach holds that the component of one run can be set
// against the server's own PEP of another.
func TestCompareOneTargetEach(t *testing.T) {
	t.Parallel()
	only := func(name string) *Results {
		return recorded(t, func(e *Environment) { e.Targets = []string{name} }, nil)
	}
	c, err := Compare(only("component"), only("pep"))
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range c.Rows {
		if row.Target != "component as pep" {
			t.Errorf("a row of %s", row.Target)
		}
		if row.Figure == "p50" && row.Ratio != 2 {
			t.Errorf("p50 is ×%v, want ×2", row.Ratio)
		}
	}
}

func TestUnits(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		unit unit
		f    float64
		want string
	}{
		{perSecond, 263.96, "264.0/s"}, {millis, 0.0123, "0.012 ms"}, {millis, 4.567, "4.57 ms"}, {millis, 37.04, "37.0 ms"},
		{millis, 4565.4, "4565 ms"}, {millis, 0, "0 ms"}, {seconds, 1.2, "1.20 s"}, {octets, 1407, "1407 B"},
		{octets, 123_000, "120.1 KiB"}, {octets, 42 << 20, "42.0 MiB"},
	} {
		if got := test.unit.text(test.f); got != test.want {
			t.Errorf("%v: got %q, want %q", test.f, got, test.want)
		}
	}
}
