package report

import "encoding/json"

// Verdict is the last line of a run: on standard output and in its file. A run
// that failed its verification has a reason and no figures. All figures are
// medians over the rounds; Summary has the rest, and is computed again from the
// samples whenever it is wanted.
type Verdict struct {
	Workload string `json:"workload"`
	OK       bool   `json:"ok"`
	Reason   string `json:"reason,omitempty"`
	// Checks say what was verified, and what was lost: of a failed run, too,
	// unless it was cut off before.
	Checks []Check `json:"checks,omitempty"`
	// Gates are the bounds of a soak and what was measured against them, also of
	// one that misses some: it was verified.
	Gates []Gate `json:"gates,omitempty"`
	*Outcome
}

// Outcome is what a good run has to say in one line.
type Outcome struct {
	Brief                             // of the first target
	Against        []Brief            `json:"against,omitempty"` // the other targets
	Ratios         []Ratio            `json:"ratios,omitempty"`
	Noise          map[string]float64 `json:"noise,omitempty"`
	Generator      float64            `json:"generator_cores,omitempty"`
	Late           float64            `json:"generator_late_p99_ms,omitempty"`
	Wait           float64            `json:"generator_wait_ms,omitempty"` // mean, whenever it wanted to run
	GeneratorBound bool               `json:"generator_bound"`
	Syncs          *SyncTimes         `json:"syncs,omitempty"`
}

// Brief is a Target without its spreads.
type Brief struct {
	Target  string                `json:"target"`
	Rounds  int                   `json:"rounds"`
	Rate    float64               `json:"rate,omitempty"`
	P50     float64               `json:"p50_ms,omitempty"`
	P95     float64               `json:"p95_ms,omitempty"`
	P99     float64               `json:"p99_ms,omitempty"`
	P999    float64               `json:"p999_ms,omitempty"`
	Max     float64               `json:"max_ms,omitempty"`
	Answers Answers               `json:"answers"`
	Errors  int64                 `json:"errors"`
	CPU     float64               `json:"cpu_s_per_1000_ops,omitempty"`
	Saved   float64               `json:"written_bytes_per_save,omitempty"`
	Record  float64               `json:"database_bytes_per_record,omitempty"`
	Kinds   map[Kind]BriefLatency `json:"ops,omitempty"`
	Costs   map[string]BriefCost  `json:"processes,omitempty"`
	Disk    *Disk                 `json:"disk,omitempty"`
	// Capacity has one entry for each size of server.
	Capacity []Capacity `json:"capacity,omitempty"`
}

// BriefLatency is a Latencies without its spreads.
type BriefLatency struct {
	Count int64   `json:"count"`
	P50   float64 `json:"p50_ms"`
	P95   float64 `json:"p95_ms"`
	P99   float64 `json:"p99_ms"`
	Max   float64 `json:"max_ms"`
	Bytes int64   `json:"bytes"` // of records
	// Errors are by class: a result of operations, or TYPE/CONDITION.
	Errors map[string]int64 `json:"errors,omitempty"`
}

// BriefCost is a Cost without its spreads.
type BriefCost struct {
	Cores float64 `json:"cores"`
	Peak  int64   `json:"peak_bytes"`
}

// Line is the verdict as one line of JSON, without its end.
func (v Verdict) Line() string {
	text, err := json.Marshal(v)
	if err != nil { // plain values
		panic(err)
	}
	return string(text)
}

// Judge makes the verdict of what was recorded so far.
func (r *Results) Judge(failure error) Verdict {
	v := Verdict{Workload: r.Environment.Work.Name, OK: failure == nil, Checks: r.Checks, Gates: r.Gates}
	if failure != nil {
		v.Reason = failure.Error()
		return v
	}
	s := r.Summary()
	v.Outcome = &Outcome{Ratios: s.Ratios, Generator: s.Generator.middle(), Late: s.Late.middle(), Wait: s.Wait.middle(), GeneratorBound: s.GeneratorBound, Noise: s.Machine.brief(), Syncs: s.Syncs}
	for i, target := range s.Targets {
		if i == 0 {
			v.Brief = target.brief()
		} else {
			v.Against = append(v.Against, target.brief())
		}
	}
	return v
}

func (t Target) brief() Brief {
	b := Brief{
		Target: t.Name, Rounds: t.Rounds, Answers: t.Answers, Errors: t.Errors,
		Rate: t.Rate.middle(), CPU: t.CPU.middle(), Saved: t.Saved.middle(), Record: t.Record.middle(),
		P50: t.Load.P50.middle(), P95: t.Load.P95.middle(), P99: t.Load.P99.middle(),
		P999: t.Load.P999.middle(), Max: t.Load.Max.middle(),
		Kinds: make(map[Kind]BriefLatency), Costs: make(map[string]BriefCost), Disk: t.Disk, Capacity: t.Capacity,
	}
	for kind, l := range t.Kinds {
		b.Kinds[kind] = BriefLatency{Count: l.Count, P50: l.P50.middle(), P95: l.P95.middle(), P99: l.P99.middle(), Max: l.Max.middle(), Bytes: l.Bytes, Errors: l.Errors}
	}
	for name, c := range t.Costs {
		b.Costs[name] = BriefCost{Cores: c.Cores.middle(), Peak: c.Peak}
	}
	return b
}

// brief leaves out what was not measured.
func (a Around) brief() map[string]float64 {
	all := make(map[string]float64)
	for name, figure := range map[string]*Spread{
		"others_cores": a.Others, "stolen_cores": a.Stolen, "memory_ns": a.Memory, "sync_p99_ms": a.SyncP99,
	} {
		if figure != nil {
			all[name] = figure.middle()
		}
	}
	return all
}
