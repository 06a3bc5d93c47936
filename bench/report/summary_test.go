package report

import (
	"bytes"
	"io"
	"maps"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"
)

// recorder is one whose file nobody reads.
func recorder(t interface{ Fatal(...any) }, targets ...string) *Recorder {
	r, err := newRecorder(io.Discard, Environment{Targets: targets, Machine: Platform{Cores: 2}}, epoch)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// near reports whether got is want within a thousandth, or both are below a
// microsecond: that is what a histogram of three digits promises.
func near(got, want float64) bool { return math.Abs(got-want) <= want/1000+0.002 }

// TestSummaryOfKnownSamples computes the figures of random samples a second
// time by sorting them.
func TestSummaryOfKnownSamples(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		r := recorder(t, "a")
		latencies := rapid.SliceOfN(rapid.Int64Range(1, int64(10*time.Minute/time.Microsecond)), 1, 300).Draw(t, "latencies in µs")
		failed := rapid.IntRange(0, 5).Draw(t, "failed")
		for i, µs := range latencies {
			latency := time.Duration(µs) * time.Microsecond
			kind := []Kind{Read, Save, Download}[i%3]
			r.Operation(Operation{Target: "a", Round: 1, Phase: PhaseSteady, Kind: kind, Latency: latency, Service: latency / 3, Result: OK})
		}
		for range failed {
			r.Operation(Operation{Target: "a", Round: 1, Phase: PhaseSteady, Kind: Read, Latency: time.Hour, Service: time.Hour, Result: "timeout"})
		}
		// What is not measured must not count.
		r.Operation(Operation{Target: "a", Round: 1, Phase: PhaseWarmUp, Kind: Read, Latency: time.Hour, Result: OK})
		r.Operation(Operation{Target: "b", Round: 1, Phase: PhaseSteady, Kind: Read, Latency: time.Hour, Result: OK})
		r.Operation(Operation{Target: "a", Round: 2, Phase: PhaseSteady, Kind: Read, Latency: time.Hour, Result: OK}) // of no phase
		r.Operation(Operation{Target: "a", Round: 1, Phase: PhaseSteady, Kind: Notify, Latency: time.Hour, Result: OK})
		r.Phase(Phase{Target: "a", Round: 1, Name: PhaseSteady, From: time.Second, To: 5 * time.Second})

		target := r.results.Summary().Targets[0]
		slices.Sort(latencies)
		exact := func(q float64) float64 {
			rank := max(int(math.Ceil(q/100*float64(len(latencies))-1e-9)), 1)
			return float64(latencies[rank-1]) / 1000
		}
		for name, figure := range map[string]struct {
			got  *Spread
			want float64
		}{
			"rate": {target.Rate, float64(len(latencies)) / 4},
			"p50":  {target.Load.P50, exact(50)}, "p95": {target.Load.P95, exact(95)}, "p99": {target.Load.P99, exact(99)},
			"p99.9": {target.Load.P999, exact(99.9)}, "max": {target.Load.Max, exact(100)},
			"sent p50": {target.Load.Sent50, exact(50) / 3},
		} {
			if !near(figure.got.Median, figure.want) {
				t.Errorf("%s: got %v, want %v", name, figure.got.Median, figure.want)
			}
		}
		if target.Load.Count != int64(len(latencies)) || target.Errors != int64(failed) || target.Load.Errors["timeout"] != int64(failed) {
			t.Errorf("counted %d and %d errors, want %d and %d", target.Load.Count, target.Errors, len(latencies), failed)
		}
		if target.Kinds[Notify].Count != 1 || target.Kinds[Notify].P50.Median < 3_590_000 {
			t.Errorf("notifications: %+v", target.Kinds[Notify])
		}
	})
}

// TestSpreadAndRatios holds that ratios are of targets of the same round: the
// machine here gets slower round by round, and both with it.
func TestSpreadAndRatios(t *testing.T) {
	t.Parallel()
	r := recorder(t, "ours", "pep")
	at := time.Duration(0)
	for round, slow := range []int{1, 3, 9} {
		for i, target := range []string{"ours", "pep"} {
			if i == 0 { // of which the other has none
				r.Operation(Operation{Target: target, Round: round + 1, Phase: PhaseSteady, Kind: Probe, Result: OK, Latency: 1})
			}
			for n := range 100 * (2 - i) {
				r.Operation(Operation{
					Target: target, Round: round + 1, Phase: PhaseSteady, Kind: Read, Result: OK, Planned: at + time.Duration(n),
					Latency: time.Duration(slow*(3*i+1)) * time.Millisecond,
				})
			}
			r.Phase(Phase{Target: target, Round: round + 1, Name: PhaseSteady, From: at, To: at + time.Duration(slow)*time.Second})
			at += time.Minute
		}
	}
	s := r.results.Summary()
	want := Spread{Median: 3, Low: 1, High: 9}
	if got := s.Targets[0].Load.P50; !near(got.Median, want.Median) || !near(got.Low, want.Low) || !near(got.High, want.High) {
		t.Errorf("p50 is %+v, want %+v", *got, want)
	}
	close := cmpopts.EquateApprox(0.002, 0)
	if diff := cmp.Diff([]Ratio{{
		Of: "ours", To: "pep", Rate: &Spread{2, 2, 2}, P50: &Spread{.25, .25, .25}, P99: &Spread{.25, .25, .25},
		Kinds: map[Kind]LatencyRatio{Read: {&Spread{.25, .25, .25}, &Spread{.25, .25, .25}}},
	}}, s.Ratios, close); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}

// TestCosts holds what is computed of counters that grow evenly, whenever they
// were looked at.
func TestCosts(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		r := recorder(t, "a")
		from := time.Duration(rapid.Int64Range(0, int64(time.Minute)).Draw(t, "from"))
		long := time.Duration(rapid.Int64Range(int64(time.Second), int64(time.Minute)).Draw(t, "long"))
		looks := rapid.SliceOfN(rapid.Int64Range(0, int64(3*time.Minute)), 0, 50).Draw(t, "looks")
		looks = append(looks, 0, int64(4*time.Minute))
		slices.Sort(looks)
		for _, at := range looks {
			now := time.Duration(at)
			for i, name := range []string{Generator, "host", "service"} {
				share := time.Duration(i + 2)
				r.Process(Process{At: now, Name: name, Count: 1, User: now / share / 2, System: now / share / 2, Written: at / int64(time.Millisecond), Resident: 5, Peak: 7})
			}
			r.Process(Process{At: now, Name: "blind", Count: 1, Unmeasured: []string{"cpu", "memory", "storage", "switches"}})
			r.Noise(Noise{At: now, Busy: now + now/10, Others: now / 10, Stolen: now / 100, Runnable: 3})
		}
		for n := range 200 {
			kind := []Kind{Read, Read, Read, Save}[n%4]
			r.Operation(Operation{Target: "a", Round: 1, Phase: PhaseSteady, Kind: kind, Latency: 1, Result: OK})
		}
		r.Operation(Operation{Target: "a", Round: 1, Phase: PhaseSeed, Kind: Read, Latency: 1, Result: OK})
		r.Phase(Phase{Target: "a", Round: 1, Name: PhaseSeed, From: 0, To: from})
		r.Phase(Phase{Target: "a", Round: 1, Name: PhaseSteady, From: from, To: from + long})
		r.Storage(Storage{Target: "a", Round: 1, Bytes: 999, Records: 1})
		r.Storage(Storage{Target: "a", Round: 1, Bytes: 281_400, Records: 200})

		s := r.results.Summary()
		target := s.Targets[0]
		seconds := long.Seconds()
		for name, figure := range map[string]struct{ got, want float64 }{
			"CPU for 1000":       {target.CPU.Median, seconds * (1./3 + 1./4) / 200 * 1000},
			"host's cores":       {target.Costs["host"].Cores.Median, 1. / 3},
			"host's CPU":         {target.Costs["host"].CPU.Median, seconds / 3},
			"service's for 1000": {target.Costs["service"].Per1000.Median, seconds / 4 / 200 * 1000},
			"written for a save": {target.Saved.Median, 2 * seconds * 1000 / 50},
			"bytes for a record": {target.Record.Median, 1407},
			"generator's cores":  {s.Generator.Median, 1. / 2},
			"others' cores":      {s.Machine.Others.Median, 1. / 10},
			"stolen cores":       {s.Machine.Stolen.Median, 1. / 100},
		} {
			if math.Abs(figure.got-figure.want) > figure.want/100 {
				t.Errorf("%s: got %v, want %v", name, figure.got, figure.want)
			}
		}
		steady := s.Phases[len(s.Phases)-1]
		if want := (PhaseCosts{
			Target: "a", Round: 1, Phase: PhaseSteady, Seconds: short(seconds), Ops: 200,
			CPU: short(target.CPU.Median), Saved: short(target.Saved.Median),
		}); !cmp.Equal(want, steady, cmpopts.IgnoreFields(PhaseCosts{}, "Costs")) || steady.Costs["host"].CPU != short(target.Costs["host"].CPU.Median) {
			t.Errorf("costs of the phase: got %+v, want %+v", steady, want)
		}
		if early := s.Phases[0]; early.Phase != PhaseSeed || early.Ops != 1 || early.Saved != 0 {
			t.Errorf("costs of the seed: %+v", early)
		}
		if runnable := s.Machine.Runnable; runnable != nil && runnable.Median != 3 { // nil: nobody looked meanwhile
			t.Errorf("%v tasks could run, want 3", runnable.Median)
		}
		if _, there := target.Costs["blind"]; there {
			t.Error("a process that can't be measured has figures")
		}
	})
}

func TestGeneratorBound(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		generator, busy float64 // cores
		want            bool
	}{
		"idle":                          {0.2, 0.5, false},
		"most of a core":                {0.85, 1, true},
		"all busy, others more":         {0.7, 1.95, false},
		"all busy with it":              {1.1, 1.95, true},
		"half a core of a free machine": {0.5, 0.6, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := recorder(t, "a")
			for _, at := range []time.Duration{0, 10 * time.Second} {
				cpu := time.Duration(test.generator * float64(at))
				r.Process(Process{At: at, Name: Generator, Count: 1, User: cpu})
				r.Noise(Noise{At: at, Busy: time.Duration(test.busy * float64(at))})
			}
			r.Phase(Phase{Target: "a", Round: 1, Name: PhaseSteady, To: 10 * time.Second})
			cores, bound := r.results.generator()
			if bound != test.want || !near(cores.Median, test.generator) {
				t.Errorf("got %v cores, bound %t; want %v, %t", cores.Median, bound, test.generator, test.want)
			}
		})
	}
}

// TestUnmeasuredStorage holds that a process whose writes may not be read
// leaves the figure out instead of making it too small.
func TestUnmeasuredStorage(t *testing.T) {
	t.Parallel()
	r := recorder(t, "a")
	for _, at := range []time.Duration{0, time.Second} {
		r.Process(Process{At: at, Name: "service", Count: 1, User: at, Written: int64(at)})
		r.Process(Process{At: at, Name: "host", Count: 1, User: at, Unmeasured: []string{"storage"}})
	}
	r.Operation(Operation{Target: "a", Round: 1, Phase: PhaseSteady, Kind: Save, Latency: 1, Result: OK})
	r.Phase(Phase{Target: "a", Round: 1, Name: PhaseSteady, To: time.Second})
	target := r.results.Summary().Targets[0]
	if target.Saved != nil {
		t.Errorf("%v bytes were written for a save", target.Saved.Median)
	}
	if target.Costs["service"].Saved == nil || target.Costs["host"].Saved != nil {
		t.Errorf("by process: %+v", target.Costs)
	}
}

// TestNothingMeasured holds that a run without a measured phase has a verdict,
// not a panic or a division by zero.
func TestNothingMeasured(t *testing.T) {
	t.Parallel()
	for name, phase := range map[string]*Phase{"no phase": nil, "an empty one": {Target: "a", Round: 1, Name: PhaseSteady}} {
		r := recorder(t, "a", "b")
		if phase != nil {
			r.Phase(*phase)
			r.Noise(Noise{})
			r.Process(Process{Name: Generator, Count: 1})
			r.Operation(Operation{Target: "a", Round: 1, Phase: PhaseSteady, Kind: Save, Result: OK})
		}
		verdict, err := r.Finish(nil)
		if err != nil || !verdict.OK || verdict.Rate != 0 {
			t.Errorf("%s: %s, %v", name, verdict.Line(), err)
		}
	}
}

func TestSpread(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		values := rapid.SliceOfN(rapid.Float64Range(0, 1e9), 0, 9).Draw(t, "values")
		got := spread(values)
		if len(values) == 0 {
			if got != nil {
				t.Errorf("got %v of nothing", got)
			}
			return
		}
		below, above := 0, 0
		for _, v := range values {
			if v < got.Median {
				below++
			}
			if v > got.Median {
				above++
			}
		}
		if got.Low != slices.Min(values) || got.High != slices.Max(values) || below > len(values)/2 || above > len(values)/2 {
			t.Errorf("got %+v", *got)
		}
		text, err := got.MarshalJSON()
		if err != nil {
			t.Fatal(err)
		}
		var again Spread
		if err := again.UnmarshalJSON(text); err != nil || math.Abs(again.Median-got.Median) > got.Median/1000 {
			t.Errorf("%s: %v, %v", text, again, err)
		}
	})
	for _, text := range []string{"[1,2]", "[1,2,3,4]", "1", `["a",1,2]`} {
		if err := new(Spread).UnmarshalJSON([]byte(text)); err == nil {
			t.Errorf("%s was taken", text)
		}
	}
}

func TestCommandHidesSecrets(t *testing.T) {
	t.Parallel()
	for _, test := range [][2][]string{
		{{"b", "--password", "hush", "--rate", "1"}, {"b", "--password", "…", "--rate", "1"}},
		{{"b", "--password=hush", "--rate=1"}, {"b", "--password=…", "--rate=1"}},
		{{"b", "--password"}, {"b", "--password"}},
		{{"b", "--password", "--password"}, {"b", "--password", "…"}},
	} {
		given := slices.Clone(test[0])
		if diff := cmp.Diff(test[1], Command(test[0], "--password")); diff != "" {
			t.Errorf("-want +got\n%s", diff)
		}
		if !slices.Equal(given, test[0]) {
			t.Error("the arguments themselves were changed")
		}
	}
}

// TestHistogramsTakeAnyDuration holds that no latency is lost, however odd.
func TestHistogramsTakeAnyDuration(t *testing.T) {
	t.Parallel()
	r := recorder(t, "a")
	odd := []time.Duration{-time.Second, 0, 1, time.Microsecond, 2 * time.Hour, math.MaxInt64}
	for _, latency := range odd {
		r.Operation(Operation{Target: "a", Round: 1, Phase: PhaseSteady, Kind: Read, Latency: latency, Service: latency, Result: OK})
	}
	for s := range maps.Values(r.results.series) {
		if got := s.latency.TotalCount(); got != int64(len(odd)) {
			t.Errorf("%d of %d were counted", got, len(odd))
		}
	}
}

// TestDamagedFiles cuts a file at each byte and spoils others: it is read as
// far as it goes, or refused by the number of a line, and never believed.
func TestDamagedFiles(t *testing.T) {
	t.Parallel()
	var file bytes.Buffer
	r, err := newRecorder(&file, testEnvironment(), epoch)
	if err != nil {
		t.Fatal(err)
	}
	r.Operation(Operation{Target: "component", Round: 1, Phase: PhaseSteady, Kind: Read, Latency: time.Second, Result: OK, Planned: 1})
	r.Phase(Phase{Target: "component", Round: 1, Name: PhaseSteady, To: time.Second})
	r.Noise(Noise{At: 1})
	if _, err := r.Finish(nil); err != nil {
		t.Fatal(err)
	}
	whole := file.Bytes()
	first := bytes.IndexByte(whole, '\n') + 1
	for length := range whole {
		if near := length - first; near > 300 && length%13 != 0 && length < len(whole)-20 {
			continue // the verdict is long
		}
		results, err := Load(bytes.NewReader(whole[:length]))
		if length < first-1 {
			if err == nil {
				t.Fatalf("cut at %d of %d: an environment was read", length, first)
			}
			continue
		}
		// A line counts once it lacks nothing but its end.
		atEnd := whole[length-1] == '\n' || whole[length] == '\n'
		if err != nil || results.Cut == atEnd || (results.Verdict != nil) != (length == len(whole)-1) {
			t.Fatalf("cut at %d: %v, %+v", length, err, results)
		}
	}
	checkSpoiled(t, whole)
}
