package report

import (
	"strings"
	"time"
)

// Summary is all figures of a run.
type Summary struct {
	Rounds    int      `json:"rounds"`
	Targets   []Target `json:"targets"`
	Ratios    []Ratio  `json:"ratios,omitempty"`
	Machine   Around   `json:"noise"`
	Generator *Spread  `json:"generator_cores,omitempty"` // cores that the generator used, over all targets' rounds
	// Late is by how many milliseconds the generator was behind an open plan, as
	// p99 of a round.
	Late *Spread `json:"generator_late_p99_ms,omitempty"`
	// Wait is by how many milliseconds the generator was late whenever it wanted to
	// run, whatever kept it: the mean of a round.
	Wait *Spread `json:"generator_wait_ms,omitempty"`
	// GeneratorBound says that the generator may have been what was measured.
	GeneratorBound bool         `json:"generator_bound"`
	Gates          []Gate       `json:"gates,omitempty"`  // of a soak
	Syncs          *SyncTimes   `json:"syncs,omitempty"`  // of a disk run: the slowest measurement
	Phases         []PhaseCosts `json:"phases,omitempty"` // every one, in their order
}

// Target is what one target did in its steady phases.
type Target struct {
	Name    string             `json:"target"`
	Rounds  int                `json:"rounds"`
	Rate    *Spread            `json:"rate,omitempty"`
	Load    Latencies          `json:"load"`          // the load as a whole
	Answers Answers            `json:"answers"`       // to the load
	Errors  int64              `json:"errors"`        // of all kinds
	Kinds   map[Kind]Latencies `json:"ops,omitempty"` // each kind, also those beside the load
	CPU     *Spread            `json:"cpu_s_per_1000_ops,omitempty"`
	Saved   *Spread            `json:"written_bytes_per_save,omitempty"`
	Record  *Spread            `json:"database_bytes_per_record,omitempty"`
	Costs   map[string]Cost    `json:"processes,omitempty"`
	Disk    *Disk              `json:"disk,omitempty"` // of a disk run
	// Capacity has one entry for each size of server.
	Capacity []Capacity `json:"capacity,omitempty"`
}

// Latencies are in milliseconds, of operations that were OK.
type Latencies struct {
	Count  int64            `json:"count"` // in all rounds
	Bytes  int64            `json:"bytes"` // of the records that these brought or took
	Rate   *Spread          `json:"rate,omitempty"`
	P50    *Spread          `json:"p50_ms,omitempty"`
	P95    *Spread          `json:"p95_ms,omitempty"`
	P99    *Spread          `json:"p99_ms,omitempty"`
	P999   *Spread          `json:"p999_ms,omitempty"`
	Max    *Spread          `json:"max_ms,omitempty"`
	Sent50 *Spread          `json:"service_p50_ms,omitempty"` // counted from the sending
	Sent99 *Spread          `json:"service_p99_ms,omitempty"`
	Errors map[string]int64 `json:"errors,omitempty"` // by class
}

// Answers counts what became of requests.
type Answers struct {
	OK      int64 `json:"ok"`
	Wait    int64 `json:"wait"`    // refused for the moment (an error of type wait)
	Refused int64 `json:"refused"` // any other error, or a wrong content
	None    int64 `json:"none"`    // no answer within the time-out, or the connection was lost
}

// count adds what was recorded of a series.
func (a *Answers) count(ok int64, errors map[string]int64) {
	a.OK += ok
	for class, n := range errors {
		switch {
		case strings.HasPrefix(class, "wait/"):
			a.Wait += n
		case class == Timeout || class == Cancelled || class == Lost:
			a.None += n
		default:
			a.Refused += n
		}
	}
}

// Ratio is the first target against another: above 1, the first has more of
// it. Each round's targets are compared with each other, and the median taken,
// so that a machine that drifts between rounds does not count.
type Ratio struct {
	Of    string                `json:"of"`
	To    string                `json:"to"`
	Rate  *Spread               `json:"rate,omitempty"`
	P50   *Spread               `json:"p50,omitempty"`
	P99   *Spread               `json:"p99,omitempty"`
	CPU   *Spread               `json:"cpu,omitempty"`
	Saved *Spread               `json:"written_per_save,omitempty"`
	Kinds map[Kind]LatencyRatio `json:"ops,omitempty"` // those that both have
	// People is by size, of those that both were measured at. Where one of them
	// carries more than was tried, there is none.
	People map[string]float64 `json:"people,omitempty"`
}

// LatencyRatio is the latencies of one kind.
type LatencyRatio struct {
	P50 *Spread `json:"p50"`
	P99 *Spread `json:"p99"`
}

// Summary computes all figures.
func (r *Results) Summary() *Summary {
	s := &Summary{Rounds: r.Environment.Work.Rounds, Machine: r.around(), Gates: r.Gates, Syncs: r.syncTimes()}
	perRound := make([]map[int]round, 0, len(r.Environment.Targets))
	for _, name := range r.Environment.Targets {
		rounds := r.rounds(name)
		perRound = append(perRound, rounds)
		s.Targets = append(s.Targets, r.target(name, rounds))
	}
	for i := range s.Targets {
		if i > 0 {
			ratio := r.ratio(s.Targets[0].Name, s.Targets[i].Name, perRound[0], perRound[i])
			ratio.People = peopleRatios(s.Targets[0].Capacity, s.Targets[i].Capacity)
			s.Ratios = append(s.Ratios, ratio)
		}
	}
	s.Generator, s.GeneratorBound = r.generator()
	var late, waits bool
	s.Late, late = r.lateness()
	s.Wait, waits = r.waiting()
	s.GeneratorBound = s.GeneratorBound || late || waits || r.generatorLimits()
	for _, phase := range r.Phases {
		s.Phases = append(s.Phases, r.phaseCosts(phase))
	}
	return s
}

// round is one phase of one target, most often a steady one.
type round struct {
	phase Phase
	load  *series
	kinds map[Kind]*series
	costs map[string]used
}

// rounds are the steady phases of a target, by their number.
func (r *Results) rounds(target string) map[int]round {
	all := make(map[int]round)
	for _, phase := range r.steady(target) {
		all[phase.Round] = r.roundOf(phase)
	}
	return all
}

// roundOf puts together what was recorded in a phase.
func (r *Results) roundOf(phase Phase) round {
	in := func(key seriesKey) bool {
		return key.target == phase.Target && key.round == phase.Round && key.phase == phase.Name
	}
	one := round{phase: phase, kinds: make(map[Kind]*series), costs: r.used(phase)}
	one.load = r.sum(func(key seriesKey) bool { return in(key) && key.kind.IsLoad() })
	for _, kind := range r.kinds() {
		one.kinds[kind] = r.sum(func(key seriesKey) bool { return in(key) && key.kind == kind })
	}
	return one
}

func (p Phase) seconds() float64 { return (p.To - p.From).Seconds() }

// rate is how many load operations a second were OK.
func (r round) rate() (float64, bool) { return r.rateOf(r.load) }

func (r round) rateOf(s *series) (float64, bool) {
	seconds := r.phase.seconds()
	return float64(s.latency.TotalCount()) / seconds, seconds > 0 && s.latency.TotalCount() > 0
}

// target computes the figures of one.
func (r *Results) target(name string, rounds map[int]round) Target {
	t := Target{Name: name, Rounds: len(rounds), Kinds: make(map[Kind]Latencies), Costs: costs(rounds)}
	t.Rate = over(rounds, round.rate)
	t.Load = latencies(rounds, func(r round) *series { return r.load })
	for _, kind := range r.kinds() {
		of := latencies(rounds, func(r round) *series { return r.kinds[kind] })
		if of.Count > 0 || len(of.Errors) > 0 {
			t.Kinds[kind] = of
		}
		for _, n := range of.Errors {
			t.Errors += n
		}
		if kind.IsLoad() {
			t.Answers.count(of.Count, of.Errors)
		}
	}
	t.CPU = over(rounds, round.cpuPerThousand)
	t.Saved = over(rounds, round.writtenPerSave)
	t.Record = r.bytesPerRecord(name)
	t.Disk = r.disk(name)
	t.Capacity = r.capacities(name)
	return t
}

// over is a figure of every round that has it.
func over(rounds map[int]round, figure func(round) (float64, bool)) *Spread {
	var values []float64
	for _, n := range sortedKeys(rounds) {
		if value, ok := figure(rounds[n]); ok {
			values = append(values, value)
		}
	}
	return spread(values)
}

// ratio compares the rounds that both have.
func ratio(a, b map[int]round, figure func(round) (float64, bool)) *Spread {
	return over(a, func(mine round) (float64, bool) {
		other, ok := b[mine.phase.Round]
		if !ok {
			return 0, false
		}
		of, ok1 := figure(mine)
		to, ok2 := figure(other)
		return of / to, ok1 && ok2 && to > 0
	})
}

// ratio sets one target against another.
func (r *Results) ratio(of, to string, a, b map[int]round) Ratio {
	all := Ratio{
		Of: of, To: to, Kinds: make(map[Kind]LatencyRatio),
		Rate:  ratio(a, b, round.rate),
		P50:   ratio(a, b, func(r round) (float64, bool) { return quantile(r.load.latency, 50) }),
		P99:   ratio(a, b, func(r round) (float64, bool) { return quantile(r.load.latency, 99) }),
		CPU:   ratio(a, b, round.cpuPerThousand),
		Saved: ratio(a, b, round.writtenPerSave),
	}
	for _, kind := range r.kinds() {
		at := func(q float64) *Spread {
			return ratio(a, b, func(r round) (float64, bool) { return quantile(r.kinds[kind].latency, q) })
		}
		if p50 := at(50); p50 != nil {
			all.Kinds[kind] = LatencyRatio{P50: p50, P99: at(99)}
		}
	}
	return all
}

// bytesPerRecord is of the last sizes of each round.
func (r *Results) bytesPerRecord(target string) *Spread {
	last := make(map[int]float64)
	for _, s := range r.Storages {
		if s.Target == target && s.Records > 0 {
			last[s.Round] = float64(s.Bytes) / float64(s.Records)
		}
	}
	var values []float64
	for _, n := range sortedKeys(last) {
		values = append(values, last[n])
	}
	return spread(values)
}

const milliseconds = float64(time.Millisecond / time.Microsecond)
