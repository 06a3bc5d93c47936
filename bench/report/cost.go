package report

import (
	"cmp"
	"slices"
	"time"
)

// boundCores is how much of a core the generator may use before it is
// suspected of being the bottleneck: what it does beside sending and receiving
// then waits for its own turn.
const boundCores = 0.8

// Of the load's mean latency the generator's own waiting may be less than
// waitShare: an answer waits for it twice, when the request is due and when it
// has come, so that half of the latency would be the generator's. Below leastWait
// it is nobody's fault. heldShare is in how many of the periods in which it wants to
// run a limit of its control group may hold it: that is most of a period long, and
// what comes then waits.
const (
	waitShare = 0.25
	leastWait = time.Millisecond
	heldShare = 0.1
)

// saturated is the share of all cores at which there is nothing left.
const saturated = 0.95

// Cost is what one watched process used in a target's steady phases.
type Cost struct {
	CPU      *Spread `json:"cpu_s"`                        // user and system, of a round
	Cores    *Spread `json:"cores"`                        // the same as a share of the round's time
	Per1000  *Spread `json:"cpu_s_per_1000_ops,omitempty"` // load operations that were OK
	Resident int64   `json:"resident_bytes"`               // at the end of the last round
	Peak     int64   `json:"peak_bytes"`                   // so far in the process's life
	Read     *Spread `json:"read_bytes,omitempty"`
	Written  *Spread `json:"written_bytes,omitempty"`
	Saved    *Spread `json:"written_bytes_per_save,omitempty"`
	Switches *Spread `json:"switches_per_op,omitempty"`
}

// used is what a process used in one phase; counters are differences.
type used struct {
	Process
	storage bool // Read and Written were measured
}

func (u used) cpu() time.Duration { return u.User + u.System }

// used finds the processes that lived in a phase.
func (r *Results) used(phase Phase) map[string]used {
	found := make(map[string]used)
	for name, samples := range r.Processes {
		from, _ := moment(samples, phase.From)
		to, lived := moment(samples, phase.To)
		if !lived || slices.Contains(to.Unmeasured, "cpu") {
			continue
		}
		d := used{Process: to, storage: !slices.Contains(to.Unmeasured, "storage")}
		d.User, d.System = to.User-from.User, to.System-from.System
		d.Read, d.Written = to.Read-from.Read, to.Written-from.Written
		d.Yielded, d.Forced = to.Yielded-from.Yielded, to.Forced-from.Forced
		d.Beats, d.Waited = to.Beats-from.Beats, to.Waited-from.Waited
		d.Periods, d.Throttled = to.Periods-from.Periods, to.Throttled-from.Throttled
		found[name] = d
	}
	return found
}

// moment is what the counters were at a time, in a straight line between two
// samples; before the first and after the last they stand still. It is false
// if the process did not live then.
func moment(samples []Process, at time.Duration) (Process, bool) {
	i, exact := slices.BinarySearchFunc(samples, at, func(p Process, at time.Duration) int { return cmp.Compare(p.At, at) })
	switch {
	case exact:
		return samples[i], samples[i].Count > 0
	case i == 0:
		return samples[0], false
	case i == len(samples):
		return samples[i-1], samples[i-1].Count > 0
	}
	a, b := samples[i-1], samples[i]
	part := float64(at-a.At) / float64(b.At-a.At)
	between := func(a, b int64) int64 { return a + int64(part*float64(b-a)) }
	p := a
	p.At = at
	p.User += time.Duration(part * float64(b.User-a.User))
	p.System += time.Duration(part * float64(b.System-a.System))
	p.Read, p.Written = between(a.Read, b.Read), between(a.Written, b.Written)
	p.Yielded, p.Forced = between(a.Yielded, b.Yielded), between(a.Forced, b.Forced)
	p.Periods, p.Throttled = between(a.Periods, b.Periods), between(a.Throttled, b.Throttled)
	p.Beats, p.Waited = between(a.Beats, b.Beats), a.Waited+time.Duration(part*float64(b.Waited-a.Waited))
	p.Peak = max(a.Peak, b.Peak)
	return p, a.Count > 0 || b.Count > 0
}

// ops is how many operations of the load were OK.
func (r round) ops() float64 { return float64(r.load.latency.TotalCount()) }

func (r round) saves() float64 {
	if s := r.kinds[Save]; s != nil {
		return float64(s.latency.TotalCount())
	}
	return 0
}

// cpuPerThousand is of all watched processes but the generator.
func (r round) cpuPerThousand() (float64, bool) {
	total, found := time.Duration(0), false
	for name, u := range r.costs {
		if name != Generator {
			total, found = total+u.cpu(), true
		}
	}
	return total.Seconds() / r.ops() * 1000, found && r.ops() > 0
}

// writtenPerSave is of all watched processes but the generator; all have to be
// measured.
func (r round) writtenPerSave() (float64, bool) {
	total, found := int64(0), false
	for name, u := range r.costs {
		if name == Generator {
			continue
		}
		if !u.storage {
			return 0, false
		}
		total, found = total+u.Written, true
	}
	return float64(total) / r.saves(), found && r.saves() > 0
}

// costs are by process, of those that did anything.
func costs(rounds map[int]round) map[string]Cost {
	names := make(map[string]bool)
	for _, r := range rounds {
		for name := range r.costs {
			names[name] = true
		}
	}
	all := make(map[string]Cost)
	for name := range names {
		of := func(figure func(round, used) (float64, bool)) *Spread {
			return over(rounds, func(r round) (float64, bool) {
				u, found := r.costs[name]
				if !found {
					return 0, false
				}
				value, ok := figure(r, u)
				return value, ok
			})
		}
		c := Cost{
			CPU: of(func(_ round, u used) (float64, bool) { return u.cpu().Seconds(), true }),
			Cores: of(func(r round, u used) (float64, bool) {
				return u.cpu().Seconds() / r.phase.seconds(), r.phase.seconds() > 0
			}),
			Per1000: of(func(r round, u used) (float64, bool) { return u.cpu().Seconds() / r.ops() * 1000, r.ops() > 0 }),
			Read:    of(func(_ round, u used) (float64, bool) { return float64(u.Read), u.storage }),
			Written: of(func(_ round, u used) (float64, bool) { return float64(u.Written), u.storage }),
			Saved: of(func(r round, u used) (float64, bool) {
				return float64(u.Written) / r.saves(), u.storage && r.saves() > 0
			}),
			Switches: of(func(r round, u used) (float64, bool) { return float64(u.Yielded+u.Forced) / r.ops(), r.ops() > 0 }),
		}
		if c.CPU.High == 0 { // it belongs to another target
			continue
		}
		for _, n := range sortedKeys(rounds) {
			if u, found := rounds[n].costs[name]; found {
				c.Resident, c.Peak = u.Resident, max(c.Peak, u.Peak)
			}
		}
		all[name] = c
	}
	return all
}

// PhaseCosts is what one phase cost, whatever its name.
type PhaseCosts struct {
	Target  string           `json:"target"`
	Round   int              `json:"round"`
	Phase   string           `json:"phase"`
	Seconds float64          `json:"seconds"`
	Ops     int64            `json:"ops"`                          // of the load that were OK
	CPU     float64          `json:"cpu_s_per_1000_ops,omitempty"` // of all but the generator
	Saved   float64          `json:"written_bytes_per_save,omitempty"`
	Costs   map[string]Spent `json:"processes,omitempty"`
}

// Spent is what one process used in one phase.
type Spent struct {
	CPU      float64 `json:"cpu_s"`
	Resident int64   `json:"resident_bytes"` // at the end
	Peak     int64   `json:"peak_bytes"`     // so far in its life
	Read     int64   `json:"read_bytes"`
	Written  int64   `json:"written_bytes"`
	Switches int64   `json:"switches"`
}

func (r *Results) phaseCosts(phase Phase) PhaseCosts {
	one := r.roundOf(phase)
	cpu, _ := one.cpuPerThousand() // 0 = there is none
	saved, _ := one.writtenPerSave()
	p := PhaseCosts{
		Target: phase.Target, Round: phase.Round, Phase: phase.Name, Seconds: short(phase.seconds()),
		Ops: one.load.latency.TotalCount(), CPU: short(cpu), Saved: short(saved), Costs: make(map[string]Spent),
	}
	for name, u := range one.costs {
		p.Costs[name] = Spent{
			CPU: short(u.cpu().Seconds()), Resident: u.Resident, Peak: u.Peak,
			Read: u.Read, Written: u.Written, Switches: u.Yielded + u.Forced,
		}
	}
	return p
}

// lateShare is how much of the load's p99 may be the generator's lateness.
const lateShare = 0.5

// lateness says by how many milliseconds of p99 the generator was behind an open
// plan, and whether that is most of what the load's p99 says, in any round. A
// bound on what is under way delays on purpose; then there is none.
func (r *Results) lateness() (*Spread, bool) {
	var all []float64
	bound := false
	for _, phase := range r.Phases {
		late := r.late[turn{phase.Target, phase.Round}]
		if phase.Name != PhaseSteady || late == nil {
			continue
		}
		behind, _ := quantile(late, 99)
		all = append(all, behind)
		p99, measured := quantile(r.roundOf(phase).load.latency, 99)
		bound = bound || measured && behind > lateShare*p99
	}
	return spread(all), bound
}

// generator says how many cores the generator used, and whether the run
// measured it rather than a target: in any round it had more of a core than
// boundCores, or most of what all cores did when all were busy.
func (r *Results) generator() (*Spread, bool) {
	var cores []float64
	bound := false
	for _, phase := range r.Phases {
		u, found := r.used(phase)[Generator]
		if phase.Name != PhaseSteady || !found || phase.seconds() <= 0 {
			continue
		}
		mine := u.cpu().Seconds() / phase.seconds()
		cores = append(cores, mine)
		busy, known := r.busy(phase)
		most := known && busy >= saturated*float64(r.Environment.Machine.Cores) && mine > busy/2
		bound = bound || mine > boundCores || most
	}
	return spread(cores), bound
}

// waiting says how many milliseconds the generator waited on average whenever it
// wanted to run, and whether the run measured that rather than a target: in any
// round it was waitShare of the load's mean latency, or a limit of CPU held it
// in heldShare of the periods.
func (r *Results) waiting() (*Spread, bool) {
	var all []float64
	bound := false
	for _, phase := range r.Phases {
		u, found := r.used(phase)[Generator]
		if phase.Name != PhaseSteady || !found {
			continue
		}
		bound = bound || u.Periods > 0 && float64(u.Throttled) >= heldShare*float64(u.Periods)
		if u.Beats == 0 {
			continue
		}
		wait := u.Waited / time.Duration(u.Beats)
		all = append(all, inMillis(wait))
		load := r.roundOf(phase).load.latency
		mean := time.Duration(load.Mean() * float64(time.Microsecond))
		bound = bound || wait >= leastWait && load.TotalCount() > 0 && wait >= time.Duration(waitShare*float64(mean))
	}
	return spread(all), bound
}
