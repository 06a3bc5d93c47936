package page_test

import (
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"pepvault/bench/page"
	"pepvault/bench/report"
)

const ms = time.Millisecond

// file makes a results file of what records it, and reads it back.
func file(t *testing.T, name string, env report.Environment, failure error, records func(*report.Recorder)) page.Run {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if env.Work.Rounds == 0 {
		env.Work.Rounds = 1
	}
	r, err := report.Create(path, env)
	if err != nil {
		t.Fatal(err)
	}
	records(r)
	if _, err := r.Finish(failure); err != nil {
		t.Fatal(err)
	}
	run, err := page.Load(path)
	if err != nil {
		t.Fatal(err)
	}
	return run
}

func environment(workload string, targets ...string) report.Environment {
	return report.Environment{
		Host:    report.Host{Name: "prosody", Version: "Prosody 13"},
		Work:    report.Workload{Name: workload, Users: 10, Devices: 2, Records: 5, RecordBytes: 100, Download: "plain"},
		Targets: targets,
	}
}

// did records operations of a target's only round, all with one latency.
func did(r *report.Recorder, target string, kind report.Kind, latency time.Duration, count int) {
	for range count {
		r.Operation(report.Operation{Target: target, Round: 1, Phase: report.PhaseSteady, Kind: kind, Latency: latency, Service: latency, Result: report.OK})
	}
}

func steady(r *report.Recorder, target string, from, to time.Duration) {
	r.Phase(report.Phase{Target: target, Round: 1, Name: report.PhaseSteady, From: from, To: to})
}

// mixAt is a run whose requests all take as long as is said.
func mixAt(t *testing.T, name string, rate float64, own, ours time.Duration) page.Run {
	env := environment("mix", "component", "pep")
	env.Work.Rate = rate
	return file(t, name, env, nil, func(r *report.Recorder) {
		did(r, "component", report.Read, ours, 100)
		did(r, "pep", report.Read, own, 100)
		steady(r, "component", 0, 10*time.Second)
		steady(r, "pep", 10*time.Second, 20*time.Second)
		r.Check(report.Check{Target: "component", Saves: 1000, Notifications: 2000})
	})
}

// section finds one of a report.
func section(t *testing.T, r *page.Report, id string) page.Section {
	t.Helper()
	i := slices.IndexFunc(r.Sections, func(s page.Section) bool { return s.ID == id })
	if i < 0 {
		t.Fatalf("no section %s", id)
	}
	return r.Sections[i]
}

// texts are the rows of a table as it is read.
func texts(table page.Table) []string {
	var all []string
	for _, row := range table.Rows {
		var cells []string
		for _, c := range row {
			cells = append(cells, c.Text)
		}
		all = append(all, strings.Join(cells, " | "))
	}
	return all
}

func wantRows(t *testing.T, table page.Table, want ...string) {
	t.Helper()
	if got := texts(table); !slices.Equal(got, want) {
		t.Errorf("%s\ngot  %s\nwant %s", table.Caption, strings.Join(got, "\n     "), strings.Join(want, "\n     "))
	}
}

// TestSections: the report has all its parts, in the order in which they are
// read, and each of those without a file says which run would fill it.
func TestSections(t *testing.T) {
	t.Parallel()
	r := page.Build(nil)
	var got []string
	for _, s := range r.Sections {
		got = append(got, s.ID)
		if s.Missing == "" && !slices.Contains([]string{"method", "runs", "repeat"}, s.ID) {
			t.Errorf("%s has no files, and does not say so", s.ID)
		}
		if len(s.Tables)+len(s.Charts) > 0 {
			t.Errorf("%s has figures of no runs", s.ID)
		}
	}
	want := []string{"method", "latency", "costs", "storm", "capacity", "disk", "soak", "estimate", "comparison", "runs", "repeat"}
	if !slices.Equal(got, want) {
		t.Errorf("sections %q, want %q", got, want)
	}
}

func TestLatency(t *testing.T) {
	t.Parallel()
	r := page.Build([]page.Run{
		mixAt(t, "fast.jsonl", 200, 40*ms, 10*ms),
		mixAt(t, "slow.jsonl", 50, 8*ms, 4*ms),
		mixAt(t, "slow-again.jsonl", 50, 16*ms, 2*ms), // the later one counts
	})
	s := section(t, r, "latency")
	wantRows(t, s.Tables[0],
		"50/s | own PEP | 100 of 100 | 10.0/s | 1 | 16.0 ms | 16.0 ms | 16.0 ms | 16.0 ms | 0",
		"50/s | pepvault | 100 of 100 | 10.0/s | 1 | 2.00 ms | 2.00 ms | 2.00 ms | 2.00 ms | 0",
		"200/s | own PEP | 100 of 100 | 10.0/s | 1 | 40.0 ms | 40.0 ms | 40.0 ms | 40.0 ms | 0",
		"200/s | pepvault | 100 of 100 | 10.0/s | 1 | 10.0 ms | 10.0 ms | 10.0 ms | 10.0 ms | 0")
	lines := s.Charts[0].Panels[0].Series
	if len(lines) != 6 || lines[5].Name != "pepvault p99" || len(lines[5].Points) != 2 || lines[5].Points[0][0] != 50 || lines[5].Points[1][0] != 200 {
		t.Errorf("the chart's lines are %+v", lines)
	}
	wantRows(t, section(t, r, "comparison").Tables[0],
		"mix at 50/s | 1 : 1 : – | 1 : 0.125 : – | 1 : 0.125 : – | – | –",
		"mix at 200/s | 1 : 1 : – | 1 : 0.250 : – | 1 : 0.250 : – | – | –")
	if got, want := len(section(t, r, "runs").Tables[1].Rows), 3; got != want {
		t.Errorf("%d runs are listed, want %d", got, want)
	}
}

// TestShares: the shares are the same whichever system comes first in a round.
func TestShares(t *testing.T) {
	t.Parallel()
	for _, targets := range [][]string{{"component", "pep", "echo"}, {"pep", "component", "echo"}, {"echo", "component", "pep"}} {
		latencies := map[string]time.Duration{"component": 4 * ms, "pep": 16 * ms, "echo": 2 * ms}
		run := file(t, "max.jsonl", environment("max", targets...), nil, func(r *report.Recorder) {
			for i, target := range targets {
				did(r, target, report.Read, latencies[target], 100)
				steady(r, target, time.Duration(i)*time.Second, time.Duration(i+1)*time.Second)
			}
		})
		wantRows(t, section(t, page.Build([]page.Run{run}), "comparison").Tables[0], "max | 1 : 1 : 1 | 1 : 0.250 : 0.125 | 1 : 0.250 : 0.125 | – | –")
	}
}

// TestUnused: runs that failed or were cut off are named, and none of their
// figures stands anywhere.
func TestUnused(t *testing.T) {
	t.Parallel()
	failed := environment("mix", "component")
	failed.Work.Rate = 7777
	lost := file(t, "lost.jsonl", failed, errors.New("verification failed: /srv/data/x.db: a save was lost"), func(r *report.Recorder) {
		did(r, "component", report.Read, 4321*ms, 10)
		steady(r, "component", 0, time.Second)
		r.Check(report.Check{Target: "component", Saves: 10, LostSaves: 1})
	})
	cut := mixAt(t, "cut.jsonl", 5555, ms, ms)
	cut.Results.Verdict, cut.Summary = nil, nil
	r := page.Build([]page.Run{lost, cut, mixAt(t, "good.jsonl", 50, 8*ms, 4*ms)})
	if len(r.Doubts) != 2 || !strings.Contains(r.Doubts[0], "cut.jsonl (mix at 5,555/s) is not used. CUT OFF") ||
		!strings.Contains(r.Doubts[1], "lost.jsonl (mix at 7,777/s) is not used. FAILED: verification failed: x.db: a save was lost") {
		t.Errorf("doubts: %q", r.Doubts)
	}
	if !strings.Contains(r.Verdict, "pepvault LOST or changed 1 save or notification") {
		t.Errorf("the verdict hides the loss: %s", r.Verdict)
	}
	wantRows(t, section(t, r, "latency").Tables[0],
		"50/s | own PEP | 100 of 100 | 10.0/s | 1 | 8.00 ms | 8.00 ms | 8.00 ms | 8.00 ms | 0",
		"50/s | pepvault | 100 of 100 | 10.0/s | 1 | 4.00 ms | 4.00 ms | 4.00 ms | 4.00 ms | 0")
	for _, s := range r.Sections {
		for _, table := range s.Tables {
			if all := strings.Join(texts(table), "\n"); strings.Contains(all, "4.32 s") {
				t.Errorf("%s: a figure of the failed run: %s", s.ID, all)
			}
		}
	}
}

// TestBound: figures that may be the generator's have that beside them.
func TestBound(t *testing.T) {
	t.Parallel()
	run := file(t, "bound.jsonl", environment("max", "component"), nil, func(r *report.Recorder) {
		did(r, "component", report.Read, ms, 10)
		r.Process(report.Process{Name: report.Generator, Count: 1})
		r.Process(report.Process{At: time.Second, Name: report.Generator, Count: 1, User: 950 * ms})
		steady(r, "component", 0, time.Second)
	})
	r := page.Build([]page.Run{run})
	table := section(t, r, "latency").Tables[0]
	wantRows(t, table, "max | pepvault | 10 | 10.0/s | 1 | 1.00 ms | 1.00 ms | 1.00 ms | 1.00 ms | 0 | generator bound")
	if len(r.Doubts) != 1 || !strings.HasPrefix(r.Doubts[0], "Generator bound: bound.jsonl.") {
		t.Errorf("doubts: %q", r.Doubts)
	}
}

// TestPlanned: a request that was not answered stands in the plan, and nowhere as
// one that was.
func TestPlanned(t *testing.T) {
	t.Parallel()
	env := environment("mix", "component")
	env.Work.Rate = 12
	run := file(t, "mix.jsonl", env, nil, func(r *report.Recorder) {
		did(r, "component", report.Read, ms, 100)
		for range 5 {
			r.Operation(report.Operation{Target: "component", Round: 1, Phase: report.PhaseSteady, Kind: report.Read, Result: report.Timeout})
		}
		steady(r, "component", 0, 10*time.Second)
	})
	wantRows(t, section(t, page.Build([]page.Run{run}), "latency").Tables[0],
		"12/s | pepvault | 100 of 105 | 10.0/s | 1 | 1.00 ms | 1.00 ms | 1.00 ms | 1.00 ms | 5")
}

// TestSmallFirst: that whole vaults wait is said where the figures show it, and
// nowhere else.
func TestSmallFirst(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name                   string
		ourRead, ourVault, own time.Duration
		said                   bool
	}{
		{"vaults wait", 30 * ms, 900 * ms, 300 * ms, true},
		{"reads wait, too", 400 * ms, 900 * ms, 300 * ms, false},
		{"nobody waits longer", 30 * ms, 200 * ms, 300 * ms, false},
	} {
		run := file(t, "max.jsonl", environment("max", "component", "pep"), nil, func(r *report.Recorder) {
			did(r, "component", report.Read, test.ourRead, 90)
			did(r, "component", report.Download, test.ourVault, 10)
			did(r, "pep", report.Read, test.own, 90)
			did(r, "pep", report.Download, test.own, 10)
			steady(r, "component", 0, time.Second)
			steady(r, "pep", time.Second, 2*time.Second)
		})
		notes := strings.Join(section(t, page.Build([]page.Run{run}), "latency").Notes, "\n")
		if said := strings.Contains(notes, "queue behind small answers on purpose: 99 of 100 reads took at most 30.0 ms (own PEP: 300 ms), half of the vaults 900 ms or more."); said != test.said {
			t.Errorf("%s: %q", test.name, notes)
		}
	}
}

// TestInTurns: that chunks come in turns is said beside the storm that shows it.
func TestInTurns(t *testing.T) {
	t.Parallel()
	storm := func(download string, moments ...time.Duration) page.Run {
		env := environment("storm", "component")
		env.Work.Download = download
		return file(t, download+".jsonl", env, nil, func(r *report.Recorder) {
			for _, at := range moments {
				did(r, "component", report.Ready, at, 1)
			}
			steady(r, "component", 0, 13*time.Second)
		})
	}
	whole := storm("plain", 2*time.Second, 5*time.Second, 10*time.Second)
	for _, test := range []struct {
		name string
		run  page.Run
		said bool
	}{
		{"late and together", storm("pushed", 11*time.Second, 11*time.Second, 12*time.Second), true},
		{"sooner", storm("pushed", 4*time.Second, 4*time.Second, 5*time.Second), false},
	} {
		s := section(t, page.Build([]page.Run{whole, test.run}), "storm")
		if said := strings.Contains(strings.Join(s.Notes, ""), "pushed, the devices get their chunks in turns, so most of them are ready near the end (half after 11.0 s of 12.0 s)"); said != test.said {
			t.Errorf("%s: %q", test.name, s.Notes)
		}
	}
}

// TestCosts: CPU time is the server's or the service's, and nobody else's.
func TestCosts(t *testing.T) {
	t.Parallel()
	env := environment("max", "component", "pep")
	env.Work.Only = report.Save
	run := file(t, "saves.jsonl", env, nil, func(r *report.Recorder) {
		did(r, "component", report.Save, ms, 1000)
		did(r, "pep", report.Save, ms, 500)
		for _, p := range []struct {
			name          string
			first, second time.Duration // CPU by the end of each target's second
		}{{"prosody", 300 * ms, 900 * ms}, {"service", 200 * ms, 201 * ms}, {report.Generator, 100 * ms, 200 * ms}} {
			r.Process(report.Process{Name: p.name, Count: 1})
			r.Process(report.Process{At: time.Second, Name: p.name, Count: 1, User: p.first})
			r.Process(report.Process{At: 2 * time.Second, Name: p.name, Count: 1, User: p.second})
		}
		steady(r, "component", 0, time.Second)
		steady(r, "pep", time.Second, 2*time.Second)
	})
	s := section(t, page.Build([]page.Run{run}), "costs")
	wantRows(t, s.Tables[0],
		"saving one record | own PEP | 1.20 ms | – | 1.20 ms",
		"saving one record | pepvault | 0.300 ms | 0.200 ms | 0.500 ms")
	bars := s.Charts[0].Panels[0].Groups[0].Bars
	if len(bars) != 2 || bars[1].Text != "0.500 ms" || len(bars[1].Parts) != 2 {
		t.Errorf("bars: %+v", bars)
	}
}

// TestStorm: moments count from the beginning of the storm.
func TestStorm(t *testing.T) {
	t.Parallel()
	run := file(t, "storm.jsonl", environment("storm", "component"), nil, func(r *report.Recorder) {
		for i, at := range []time.Duration{3 * time.Second, time.Second, 2 * time.Second} {
			r.Operation(report.Operation{
				Target: "component", Round: 1, Phase: report.PhaseSteady, Kind: report.Ready,
				Planned: 10*time.Second + time.Duration(i)*ms, Latency: at - time.Duration(i)*ms, Result: report.OK,
			})
		}
		for i, latency := range []time.Duration{4 * ms, 500 * ms} {
			r.Operation(report.Operation{
				Target: "component", Round: 1, Phase: report.PhaseSteady, Kind: report.Probe,
				Planned: 9*time.Second + time.Duration(i)*2*time.Second, Latency: latency, Result: report.OK,
			})
		}
		r.Operation(report.Operation{Target: "component", Round: 1, Phase: report.PhaseSteady, Kind: report.Probe, Planned: 12 * time.Second, Result: report.Timeout})
		steady(r, "component", 10*time.Second, 13*time.Second)
	})
	chart := section(t, page.Build([]page.Run{run}), "storm").Charts[0]
	ready, probes := chart.Panels[0].Series[0].Points, chart.Panels[1].Series[0].Points
	if want := [][2]float64{{1, 1}, {2, 2}, {3, 3}}; !slices.Equal(ready, want) {
		t.Errorf("ready at %v, want %v", ready, want)
	}
	if want := [][2]float64{{-1, 4}, {1, 500}}; !slices.Equal(probes, want) {
		t.Errorf("probes %v, want %v", probes, want)
	}
}

// TestMissedGate: a soak that was verified and missed a bound says so, though it
// is a failed run.
func TestMissedGate(t *testing.T) {
	t.Parallel()
	run := file(t, "soak.jsonl", environment("soak", "component"), report.ErrGate, func(r *report.Recorder) {
		did(r, "component", report.Notify, 1500*ms, 10)
		steady(r, "component", 0, time.Second)
		_ = r.Hold("component", report.Bounds{Delivery: time.Second, Memory: 1 << 20}, report.Killed{Unmeasured: "no limit"})
	})
	rows := texts(section(t, page.Build([]page.Run{run}), "soak").Tables[0])
	if len(rows) == 0 || rows[0] != "pepvault | delivery, p99 | 1.50 s | 1 s | MISSED" {
		t.Errorf("gates: %q", rows)
	}
}

// TestCapacity: sizes, their steps, and the server to take.
func TestCapacity(t *testing.T) {
	t.Parallel()
	small, large := report.Size{CPUs: 0.5, Memory: 512 << 20}, report.Size{CPUs: 1, Memory: 1 << 30}
	env := environment("capacity", "component", "pep")
	env.Work.Sizes = []report.Size{small, large}
	env.Work.Users, env.Work.Rate, env.Work.Download = 3200, 1.7/60, "sync"
	run := file(t, "capacity.jsonl", env, nil, func(r *report.Recorder) {
		for i, people := range []int{800, 1600} {
			r.Step(report.CapacityStep{Target: "component", Size: small, Step: i + 1, People: people, Result: report.Fast, Seen: report.Within{Count: 10, P95: 20, P99: 40}, Server: 0.25, Memory: 64 << 20})
		}
		r.Step(report.CapacityStep{Target: "component", Size: small, Step: 3, People: 1200, Result: report.TooSlow, Limit: report.AtCPU})
		r.Capacity(report.Capacity{Target: "component", Size: small, People: 800, Failed: 1200, Result: report.TooSlow, Limit: report.AtCPU, Cores: 0.4, Memory: 64 << 20, Plan: 200})
		r.Capacity(report.Capacity{Target: "component", Size: large, People: 3200, OrMore: true, Failed: 4000, Result: report.TooSlow, Limit: report.AtGenerator, Cores: 0.9, Memory: 128 << 20, Plan: 800})
		r.Capacity(report.Capacity{Target: "pep", Size: small, Unmeasured: "no groups below /sys/fs/cgroup"})
	})
	r := page.Build([]page.Run{run})
	s := section(t, r, "capacity")
	wantRows(t, s.Tables[0],
		"0.5 CPU, 512 MiB | pepvault | 800 | 64.0 MiB | 0.400 cores | 1,200: too slow, limit: CPU | 200",
		"1 CPU, 1 GiB | pepvault | 3,200 or more | 128 MiB | 0.900 cores | 4,000: too slow, limit: generator | 800")
	if want := "saves a record every 2 min, reads one every 1 min and loads the vault anew every 5 min"; !strings.Contains(s.Text[0], want) {
		t.Errorf("the people are said to be otherwise busy: %s", s.Text[0])
	}
	notes := strings.Join(s.Notes, "\n")
	if !strings.Contains(notes, "own PEP with 0.5 CPU, 512 MiB was not measured: no groups below cgroup") || !strings.Contains(notes, "generator bound at 4,000 people") {
		t.Errorf("notes: %s", notes)
	}
	if want := "own PEP loads plain and pepvault loads sync"; !strings.Contains(s.Tables[0].Caption, want) || !strings.Contains(s.Tables[1].Caption, want) {
		t.Errorf("the captions don't say %q: %q, %q", want, s.Tables[0].Caption, s.Tables[1].Caption)
	}
	if got := texts(s.Tables[1]); len(got) != 3 || !strings.HasPrefix(got[0], "800 |") || !strings.HasPrefix(got[2], "1,600 |") || !strings.HasSuffix(got[0], "| 0 / 10 / 0 / 0") {
		t.Errorf("the steps are not in order of people: %q", got)
	}
	want := "Take a server with 0.5 CPU, 512 MiB beside its operating system: with pepvault behind Prosody 13 it kept 800 people online at once fast (2 devices each, vaults of 5 records), so plan with up to 200"
	if !strings.HasPrefix(r.Verdict, want) {
		t.Errorf("verdict %q, want %q", r.Verdict, want)
	}
}
