package page

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"pepvault/bench/report"
)

// Names of workloads, as bench/runner has them.
const (
	mix      = "mix"
	maximum  = "max"
	overload = "overload"
	storm    = "storm"
	restart  = "restart"
	capacity = "capacity"
	disk     = "disk"
	soak     = "soak"
)

// Names of targets, as bench/lab has them.
const (
	component = "component"
	pep       = "pep"
	echo      = "echo"
)

// Run is what one results file says.
type Run struct {
	Name    string // of the file, without its folder
	Results *report.Results
	// Summary is nil if the run failed or was cut off; then none of its figures
	// are used.
	Summary *report.Summary
	// Timelines are of a storm or a restart: one for each target and round.
	Timelines []Timeline
}

// Timeline is what happened in a storm. Moments count from its beginning.
type Timeline struct {
	Target string
	Round  int
	Ready  []time.Duration // when each device was ready, in order
	Probes []Probe         // in order; before moment 0 it was alone
}

// Probe is a read beside a storm.
type Probe struct {
	At      time.Duration // planned
	Latency time.Duration
}

// Load reads a results file, once and from its beginning, so that it may be a
// pipe. The error names it, and is report.ErrDamaged, report.ErrSchema, or of the
// file system.
func Load(path string) (Run, error) {
	f, err := os.Open(path)
	if err != nil {
		return Run{}, err
	}
	defer f.Close()
	var moments []report.Operation
	results, err := report.LoadEach(f, func(o report.Operation) {
		if ofStorm(o) {
			moments = append(moments, o)
		}
	})
	if err != nil {
		return Run{}, fmt.Errorf("%s: %w", path, err)
	}
	run := Run{Name: filepath.Base(path), Results: results}
	if results.Verdict != nil && results.Verdict.OK {
		run.Summary = results.Summary()
	}
	cleanse(&run)
	if run.Summary != nil && run.is(storm, restart) {
		run.Timelines = timelines(results, moments)
	}
	return run, nil
}

// is tells whether the run is of one of these workloads.
func (r Run) is(workloads ...string) bool {
	return slices.Contains(workloads, r.Results.Environment.Work.Name)
}

// target finds the figures of one; nil if it was not in the run.
func (r Run) target(name string) *report.Target {
	if r.Summary == nil {
		return nil
	}
	for i := range r.Summary.Targets {
		if r.Summary.Targets[i].Name == name {
			return &r.Summary.Targets[i]
		}
	}
	return nil
}

// bound is what is said beside figures that may be the generator's own.
func (r Run) bound() string {
	if r.Summary != nil && r.Summary.GeneratorBound {
		return "generator bound"
	}
	return ""
}

// turn is one target's part of a round.
type turn struct {
	target string
	round  int
}

// ofStorm tells whether a sample belongs to a timeline. Other workloads have few
// of these kinds.
func ofStorm(o report.Operation) bool {
	return o.Phase == report.PhaseSteady && o.Result == report.OK && (o.Kind == report.Ready || o.Kind == report.Probe)
}

// timelines are made of the samples of storms: the figures keep no moments.
func timelines(results *report.Results, moments []report.Operation) []Timeline {
	began := make(map[turn]time.Duration)
	var order []turn
	for _, phase := range results.Phases {
		if phase.Name == report.PhaseSteady {
			key := turn{phase.Target, phase.Round}
			began[key] = phase.From
			order = append(order, key)
		}
	}
	found := make(map[turn]*Timeline)
	for _, key := range order {
		found[key] = &Timeline{Target: key.target, Round: key.round}
	}
	for _, o := range moments {
		key := turn{o.Target, o.Round}
		line, from := found[key], began[key]
		switch {
		case line == nil:
		case o.Kind == report.Ready:
			line.Ready = append(line.Ready, o.Planned+o.Latency-from)
		case o.Kind == report.Probe:
			line.Probes = append(line.Probes, Probe{At: o.Planned - from, Latency: o.Latency})
		}
	}
	var all []Timeline
	for _, key := range order {
		line := found[key]
		slices.Sort(line.Ready)
		slices.SortStableFunc(line.Probes, func(a, b Probe) int { return cmp.Compare(a.At, b.At) })
		all = append(all, *line)
	}
	return all
}
