package report

import (
	"io"
	"testing"
	"time"
)

// TestLateGeneratorIsTold holds that a generator that does not keep its plan is
// told, but not that a bound on what is under way delays.
func TestLateGeneratorIsTold(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		late        time.Duration // of an operation that takes 10 ms
		outstanding int
		rate        float64
		want        float64 // ms
		bound       bool
	}{
		"on time":               {0, 0, 100, 0.001, false},
		"a little late":         {5 * time.Millisecond, 0, 100, 5, false},
		"late":                  {30 * time.Millisecond, 0, 100, 30, true},
		"held back on purpose":  {30 * time.Millisecond, 8, 100, 0, false},
		"no plan to be late of": {30 * time.Millisecond, 0, 0, 0, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, err := NewRecorder(io.Discard, Environment{
				Work: Workload{Name: "mix", Rate: test.rate, Outstanding: test.outstanding, Rounds: 1}, Targets: []string{"a"},
			})
			if err != nil {
				t.Fatal(err)
			}
			for range 100 {
				r.Operation(Operation{
					Target: "a", Round: 1, Phase: PhaseSteady, Kind: Read, Result: OK,
					Latency: 10*time.Millisecond + test.late, Service: 10 * time.Millisecond,
				})
			}
			r.Phase(Phase{Target: "a", Round: 1, Name: PhaseSteady, To: time.Second})
			verdict, err := r.Finish(nil)
			if err != nil {
				t.Fatal(err)
			}
			if verdict.GeneratorBound != test.bound || !near(verdict.Late, test.want) {
				t.Errorf("late by %g ms, bound %t; want %g, %t", verdict.Late, verdict.GeneratorBound, test.want, test.bound)
			}
		})
	}
}

// TestStarvedGeneratorIsTold holds that a generator that had to wait for its turn is
// told, however little it used: compared with what the load measured.
func TestStarvedGeneratorIsTold(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		beats         int64
		wait, latency time.Duration // each time
		held          int64         // of 100 periods
		want          float64       // ms
		bound         bool
	}{
		"its turn at once":           {100, 60 * time.Microsecond, 3 * time.Millisecond, 0, 0.06, false},
		"slow targets":               {100, 5 * time.Millisecond, 21 * time.Millisecond, 9, 5, false},
		"half of all is its own":     {100, 5 * time.Millisecond, 19 * time.Millisecond, 0, 5, true},
		"limited to a tenth of time": {100, 45 * time.Millisecond, 90 * time.Millisecond, 90, 45, true},
		"fast targets":               {100, 900 * time.Microsecond, time.Millisecond, 0, 0.9, false},
		"held now and then":          {100, 4 * time.Millisecond, 40 * time.Millisecond, 10, 4, true},
		"not measured":               {0, 0, time.Millisecond, 0, 0, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := recorder(t, "a")
			for n := range int64(2) { // at both ends of the phase
				r.Process(Process{
					At: time.Duration(n) * time.Second, Name: Generator, Count: 1,
					Beats: 7 + n*test.beats, Periods: 20 + 100*n, Throttled: 20 + n*test.held, Waited: time.Hour + time.Duration(n*test.beats)*test.wait,
				})
			}
			for range 100 {
				r.Operation(Operation{Target: "a", Round: 1, Phase: PhaseSteady, Kind: Read, Result: OK, Latency: test.latency, Service: test.latency})
			}
			r.Phase(Phase{Target: "a", Round: 1, Name: PhaseSteady, To: time.Second})
			verdict, err := r.Finish(nil)
			if err != nil {
				t.Fatal(err)
			}
			if verdict.GeneratorBound != test.bound || !near(verdict.Wait, test.want) {
				t.Errorf("waited %g ms, bound %t; want %g, %t", verdict.Wait, verdict.GeneratorBound, test.want, test.bound)
			}
		})
	}
}
