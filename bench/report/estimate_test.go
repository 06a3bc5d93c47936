package report

import (
	"errors"
	"math"
	"strings"
	"testing"
	"time"
)

// measured is the results of a run on a host, with an environment of its own.
func measured(t *testing.T, work Workload, targets ...string) *Results {
	t.Helper()
	work.Rounds = 1
	r := newResults(Environment{Host: Host{Name: "prosody", Version: "Prosody 13.0.1", Settings: map[string]string{"gc": "default"}}, Work: work, Targets: targets})
	r.add(r.Judge(nil))
	return r
}

// uses has a process use CPU up to a moment, and so much memory at most.
func (r *Results) uses(name string, until, cpu time.Duration, peak int64) {
	last := Process{Name: name, Count: 1, Peak: peak}
	if all := r.Processes[name]; len(all) > 0 {
		last = all[len(all)-1]
		last.Peak = max(last.Peak, peak)
	} else {
		r.add(last)
	}
	last.At, last.User = until, last.User+cpu
	r.add(last)
}

// did adds operations of a steady phase that took so long.
func (r *Results) did(target string, kind Kind, latency time.Duration, count int, bytes int64) {
	for range count {
		r.operation(&Operation{Target: target, Round: 1, Phase: PhaseSteady, Kind: kind, Latency: latency, Service: latency, Result: OK, Bytes: bytes})
	}
}

// stormRun has 30 devices ready after 15 s; host and service need 9 s of CPU, and
// 80 MB of memory.
func stormRun(t *testing.T, way string) *Results {
	r := measured(t, Workload{Name: "storm", Users: 10, Devices: 3, Records: 256, Download: way}, "component")
	r.uses("prosody", 20*time.Second, 6*time.Second, 50e6)
	r.uses(Service, 20*time.Second, 3*time.Second, 30e6)
	r.uses(Generator, 20*time.Second, 19*time.Second, 500e6)
	r.did("component", Ready, 7*time.Second, 29, 0)
	r.did("component", Ready, 15*time.Second, 1, 0)
	bytes := int64(10_000)
	if way == "sync" {
		bytes = 1000
	}
	r.did("component", Download, time.Second, 30, bytes)
	r.add(Phase{Target: "component", Round: 1, Name: PhaseSteady, To: 20 * time.Second})
	return r
}

// mixRun has 100 operations cost 10 ms of CPU each, and 1,400 bytes a record.
func mixRun(t *testing.T) *Results {
	r := measured(t, Workload{Name: "mix", Users: 10, Devices: 3, Rate: 10}, "component")
	r.uses("prosody", 10*time.Second, 600*time.Millisecond, 40e6)
	r.uses(Service, 10*time.Second, 400*time.Millisecond, 20e6)
	r.did("component", Read, time.Millisecond, 100, 924)
	r.add(Phase{Target: "component", Round: 1, Name: PhaseSteady, To: 10 * time.Second})
	r.add(Storage{Target: "component", Round: 1, Bytes: 140_000, Records: 100})
	return r
}

// diskRun has 10 users connect 200 times in a day, for 12 s of CPU and 5 MB.
func diskRun(t *testing.T) *Results {
	r := measured(t, Workload{Name: "disk", Users: 10, Devices: 3, Lone: 2}, "component")
	for _, bytes := range []int64{10_000, 20_000} {
		r.add(Writes{Target: "component", Round: 1, Part: PartLone, Saves: 1, Settled: true, Written: map[string]int64{"prosody": 500, Service: bytes}})
	}
	r.add(Writes{
		Target: "component", Round: 1, Part: PartDay, Saves: 50, Connections: 200, Took: time.Minute, Settled: true, Log: 1_000_000,
		Written: map[string]int64{"prosody": 1e6, Service: 4e6},
		CPU:     map[string]time.Duration{"prosody": 10 * time.Second, Service: 2 * time.Second},
	})
	return r
}

// TestEstimate computes each figure by hand, for 300 devices on one core.
func TestEstimate(t *testing.T) {
	t.Parallel()
	type want map[string][2]float64 // nothing: missing
	loaded := want{                 // of a storm
		"Loaded after a restart": {300 * 14_500, 300 * 14_500}, "That on the link": {0.174, 0.174},
		"All devices ready after a restart": {150, 150},
	}
	with := func(all ...want) want {
		sum := make(want)
		for _, one := range all {
			for figure, value := range one {
				sum[figure] = value
			}
		}
		return sum
	}
	mixed := want{
		"Database": {35.84e6, 35.84e6}, "Memory with the operating system": {800e6 + systemLow, 835.84e6 + systemHigh},
		"CPU a day": {305, 905}, "CPU a day, of all there is": {305.0 / 864, 905.0 / 864},
	}
	day := want{"CPU a day": {60, 180}, "CPU a day, of all there is": {60.0 / 864, 180.0 / 864}, "Written to disk a day": {25e6, 75e6}}
	for name, test := range map[string]struct {
		runs    []*Results
		want    want
		missing []string
	}{
		"storm":      {[]*Results{stormRun(t, "plain")}, loaded, []string{"CPU a day", "database", "written a day"}},
		"storm, mix": {[]*Results{stormRun(t, "plain"), mixRun(t)}, with(loaded, mixed), []string{"written a day"}},
		"a storm of devices that keep their place comes first": {
			[]*Results{stormRun(t, "sync"), stormRun(t, "plain")},
			with(loaded, want{"Loaded after a restart": {300 * 1450, 300 * 1450}, "That on the link": {0.0174, 0.0174}}),
			[]string{"CPU a day", "database", "written a day"},
		},
		"disk": {[]*Results{diskRun(t)}, day, []string{"memory", "database", "after a restart"}},
		"all": {
			[]*Results{diskRun(t), stormRun(t, "plain"), mixRun(t)},
			with(loaded, mixed, day, want{"Database": {36.84e6, 36.84e6}, "Memory with the operating system": {800e6 + systemLow, 836.84e6 + systemHigh}}), nil,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			outlooks := Estimate(SmallServer(), test.runs)
			if len(outlooks) != 1 || outlooks[0].Host != "Prosody 13.0.1" || len(outlooks[0].Systems) != 1 {
				t.Fatalf("got %+v, want one of one system", outlooks)
			}
			for _, row := range outlooks[0].Rows {
				got, want, known := row.Cells[0], test.want[row.Figure], false
				if _, known = test.want[row.Figure]; got.Missing == known {
					t.Errorf("%s: %+v, known: %t", row.Figure, got, known)
				}
				if math.Abs(got.Low-want[0]) > want[0]/1000 || math.Abs(got.High-want[1]) > want[1]/1000 {
					t.Errorf("%s: %g to %g, want %g to %g", row.Figure, got.Low, got.High, want[0], want[1])
				}
			}
			if missing := outlooks[0].Missing; len(missing) != len(test.missing) {
				t.Errorf("missing is %q, want %q", missing, test.missing)
			} else {
				for i, what := range test.missing {
					if !strings.HasPrefix(missing[i], "component: "+what) {
						t.Errorf("missing is %q, want %q", missing[i], what)
					}
				}
			}
		})
	}
}

// TestEstimateOfBothSystems holds that systems stand side by side, the idle
// service is no part of what PEP costs, hosts are apart, and a run that failed
// has no say.
func TestEstimateOfBothSystems(t *testing.T) {
	t.Parallel()
	two := measured(t, Workload{Name: "disk", Users: 10, Devices: 3}, "component", "pep")
	for _, target := range two.Environment.Targets {
		two.add(Writes{
			Target: target, Round: 1, Part: PartDay, Saves: 50, Connections: 200, Settled: true,
			CPU: map[string]time.Duration{"prosody": 10 * time.Second, Service: 10 * time.Second},
		})
	}
	failed := mixRun(t)
	verdict := failed.Judge(errors.New("lost"))
	failed.Verdict = &verdict
	elsewhere := stormRun(t, "plain")
	elsewhere.Environment.Host.Settings = map[string]string{"gc": "incremental", "read_size": "65536"}
	outlooks := Estimate(SmallServer(), []*Results{two, failed, elsewhere})
	if len(outlooks) != 2 || outlooks[1].Host != "Prosody 13.0.1 (gc incremental; read size 65536)" {
		t.Fatalf("got %+v, want two hosts", outlooks)
	}
	first := outlooks[0]
	if cpu := first.Rows[0].Cells; len(cpu) != 2 || cpu[0].High != 300 || cpu[1].High != 150 {
		t.Errorf("CPU a day of %v is %+v, want up to 300 s and 150 s", first.Systems, cpu)
	}
	if got := first.Rows[0].Cells[0].Text; got != "100 s to 5.0 min" {
		t.Errorf("in words it is %q", got)
	}
	if !strings.Contains(first.Missing[0], "the run mix of ") || !strings.Contains(first.Missing[0], "not used") {
		t.Errorf("missing is %q, want the failed run first", first.Missing)
	}
	for _, reach := range first.Reach {
		if reach.Cells[0].Fit != FitUntried || reach.Cells[0].Why != "not all of it was measured" {
			t.Errorf("%d users: %+v without a storm", reach.Users, reach.Cells[0])
		}
	}
}

// TestFit holds each bound of each fit.
func TestFit(t *testing.T) {
	t.Parallel()
	p := SmallServer()
	const gib = 1 << 30
	day := func(share float64) [2]float64 { return both(share * secondsOfDay) }
	good := needs{cpu: day(0.01), memory: both(0.3 * gib), restart: both(20), link: both(1), beyond: 1}
	for name, test := range map[string]struct {
		change func(*needs)
		want   Fit
	}{
		"good":                   {func(*needs) {}, FitWell},
		"CPU at the first":       {func(n *needs) { n.cpu = day(0.05) }, FitWell},
		"CPU above it":           {func(n *needs) { n.cpu = day(0.06) }, FitLikely},
		"CPU above both":         {func(n *needs) { n.cpu = day(0.26) }, FitUntried},
		"busy days count":        {func(n *needs) { n.cpu = [2]float64{0, day(0.3)[1]} }, FitUntried},
		"memory above half":      {func(n *needs) { n.memory = both(0.51 * gib) }, FitLikely},
		"memory nearly all":      {func(n *needs) { n.memory = both(0.81 * gib) }, FitUntried},
		"a minute":               {func(n *needs) { n.restart = both(60) }, FitLikely},
		"three minutes":          {func(n *needs) { n.restart = both(180) }, FitUntried},
		"a minute on the link":   {func(n *needs) { n.link = both(60) }, FitLikely},
		"twice the devices":      {func(n *needs) { n.beyond = 2 }, FitLikely},
		"five times the devices": {func(n *needs) { n.beyond = 5 }, FitLikely},
		"six times the devices":  {func(n *needs) { n.beyond = 6 }, FitUntried},
		"no storm":               {func(n *needs) { n.restart = unknown }, FitUntried},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := good
			test.change(&n)
			if got := fitOf(p, n); got.Fit != test.want || got.Why == "" {
				t.Errorf("got %+v, want %q", got, test.want)
			}
		})
	}
}

func TestTwoDigits(t *testing.T) {
	t.Parallel()
	for want, value := range map[string]float64{"0": 0, "0.0012": 0.00123, "0.30": 0.3, "1.3": 1.26, "13": 12.6, "130": 126, "13000": 12_600} {
		if got := twoDigits(value); got != want {
			t.Errorf("%g is %q, want %q", value, got, want)
		}
	}
}

// TestMemoryOfFurtherDevices: what devices take beyond the measured ones comes
// from the steps of a capacity run, where there is one.
func TestMemoryOfFurtherDevices(t *testing.T) {
	t.Parallel()
	steps := measured(t, Workload{Name: "capacity", Users: 400, Devices: 2}, "component")
	small, big := Size{CPUs: 0.5, Memory: 512 << 20}, Size{CPUs: 1, Memory: 1 << 30}
	for _, s := range []CapacityStep{
		{Target: "component", Size: small, Devices: 200, Memory: 70e6, Result: Fast},
		{Target: "component", Size: small, Devices: 400, Memory: 90e6, Result: Fast},     // 100 kB a device
		{Target: "component", Size: small, Devices: 800, Memory: 500e6, Result: TooSlow}, // counts for nothing
		{Target: "component", Size: big, Devices: 200, Memory: 60e6, Result: Fast},
		{Target: "component", Size: big, Devices: 600, Memory: 90e6, Result: Fast}, // 75 kB a device
		{Target: "pep", Size: big, Devices: 200, Memory: 10e6, Result: Fast},
		{Target: "pep", Size: big, Devices: 300, Memory: 90e6, Result: Fast},
	} {
		steps.add(s)
	}
	for name, test := range map[string]struct {
		runs []*Results
		want float64 // of host and service, for 100 users with 3 devices
	}{
		"in proportion":         {[]*Results{stormRun(t, "sync"), mixRun(t)}, 80e6 * 10},
		"by what a device took": {[]*Results{stormRun(t, "sync"), mixRun(t), steps}, 80e6 + 270*100e3},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, hosts := gather(test.runs)
			for _, g := range hosts {
				if got := g.systems["component"].needs(SmallServer()).memory[0] - systemLow; got != test.want {
					t.Errorf("got %.0f bytes, want %.0f", got, test.want)
				}
			}
		})
	}
}

// TestSizes: sizes are counted in 1024, as everywhere in a report.
func TestSizes(t *testing.T) {
	t.Parallel()
	for bytes, want := range map[float64]string{0: "0 KiB", 1536: "1.5 KiB", 1 << 20: "1.0 MiB", 250 << 20: "250 MiB", 3 << 29: "1.5 GiB"} {
		if got := sizeText(bytes); got != want {
			t.Errorf("%v bytes are %q, want %q", bytes, got, want)
		}
	}
}
