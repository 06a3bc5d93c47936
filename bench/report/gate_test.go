package report

import (
	"bytes"
	"errors"
	"math"
	"strings"
	"testing"
	"time"
)

// soakRun is a recorder with a soak: a hundred events in two rounds, most of them
// within 10 ms and two of the second round later.
func soakRun(t *testing.T, late time.Duration) (*Recorder, *bytes.Buffer) {
	t.Helper()
	var file bytes.Buffer
	r, err := NewRecorder(&file, Environment{Work: Workload{Name: "soak", Rounds: 2}, Targets: []string{"component"}})
	if err != nil {
		t.Fatal(err)
	}
	for round := 1; round <= 2; round++ {
		for n := range 100 {
			latency := 10 * time.Millisecond
			if round == 2 && n >= 98 {
				latency = late
			}
			r.Operation(Operation{Target: "component", Round: round, Phase: PhaseSteady, Kind: Notify, Latency: latency, Result: OK})
		}
		r.Phase(Phase{Target: "component", Round: round, Name: PhaseSteady, To: time.Second})
	}
	return r, &file
}

// TestGates holds that each bound fails a soak alone, in one line that says
// which, and that what was not measured is neither passed nor missed.
func TestGates(t *testing.T) {
	t.Parallel()
	bounds := Bounds{Delivery: time.Second, Memory: 100 << 20}
	for name, test := range map[string]struct {
		late   time.Duration
		peak   int64
		check  Check
		failed string
		killed Killed
		want   string // "" = all good
		values map[string]float64
	}{
		"good":           {late: 20 * time.Millisecond, peak: 30 << 20, values: map[string]float64{GateDelivery: 20, GateMemory: 30 << 20, GateLost: 0, GateOOM: 0, GateFailed: 0}},
		"at the bounds":  {late: 998 * time.Millisecond, peak: 100 << 20},
		"slow":           {late: 1100 * time.Millisecond, peak: 30 << 20, want: "component: delivery p99 1101 ms, at most 1000 ms is good"},
		"large":          {late: time.Millisecond, peak: 100<<20 + 1, want: "component: peak memory of the service 100.0 MiB, at most 100.0 MiB is good"},
		"lost saves":     {check: Check{LostSaves: 2}, want: "component: saves and notifications lost 2, at most 0 is good"},
		"lost events":    {check: Check{LostNotifications: 3}, want: "lost 3,"},
		"failed saves":   {failed: "wait/resource-constraint", want: "component: saves that failed 1, at most 0 is good"},
		"out of memory":  {killed: Killed{Count: 1}, want: "component: processes killed for want of memory 1, at most 0 is good"},
		"without limit":  {killed: Killed{Count: 1, Unmeasured: "no limit"}},
		"two at a time":  {late: 2 * time.Second, killed: Killed{Count: 1}, want: "2001 ms, at most 1000 ms is good, component: processes killed"},
		"memory unknown": {peak: 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, file := soakRun(t, max(test.late, time.Millisecond))
			if test.failed != "" {
				r.Operation(Operation{Target: "component", Round: 1, Phase: PhaseWarmUp, Kind: Save, Result: test.failed})
			}
			if test.peak > 0 {
				r.Process(Process{Name: Service, Count: 1, Peak: test.peak})
			}
			test.check.Target = "component"
			r.Check(test.check)
			failure := r.Hold("component", bounds, test.killed)
			if good := failure == nil; good != (test.want == "") || !good && (!errors.Is(failure, ErrGate) || !strings.Contains(failure.Error(), test.want)) {
				t.Errorf("got %v, want %q", failure, test.want)
			}
			if failure != nil && strings.Contains(failure.Error(), "\n") {
				t.Errorf("%q is more than a line", failure)
			}
			verdict, err := r.Finish(failure)
			if err != nil {
				t.Fatal(err)
			}
			kept, err := Load(file)
			if err != nil || kept.Verdict == nil || kept.Verdict.Line() != verdict.Line() || len(kept.Gates) != 5 {
				t.Fatalf("the file does not hold %s: %v", verdict.Line(), err)
			}
			if verdict.OK != (test.want == "") || verdict.OK != (verdict.Outcome != nil) || len(verdict.Gates) != 5 {
				t.Errorf("the verdict is %s", verdict.Line())
			}
			for _, gate := range verdict.Gates {
				want, known := test.values[gate.Name]
				if known && math.Abs(gate.Value-want) > want/1000 {
					t.Errorf("%s is %g, want %g", gate.Name, gate.Value, want)
				}
				if gate.Name == GateMemory && (gate.Unmeasured == "") != (test.peak > 0) {
					t.Errorf("%+v with a peak of %d", gate, test.peak)
				}
			}
		})
	}
}
