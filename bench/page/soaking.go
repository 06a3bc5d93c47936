package page

import (
	"fmt"
	"slices"

	"pepvault/bench/report"
)

// soaking says how notifications come over a while, and what memory that
// takes. A soak that missed a bound was verified, so its gates count.
func soaking(runs []Run) Section {
	s := Section{ID: "soak", Title: "A minute of steady writes"}
	t := Table{
		Caption: "What a soak is held to. Delivery is from the planned moment of a write to a subscriber's receipt.",
		Columns: []string{"system", "bound", "measured", "at most", "result", "run"},
	}
	delivery := Table{
		Caption: "From the planned moment of a write to a subscriber's receipt.",
		Columns: []string{"system", "notifications", "p50", "p95", "p99", "slowest", "remark", "run"},
	}
	all := soaks(runs)
	for _, r := range all {
		for _, g := range r.Results.Gates {
			t.Rows = append(t.Rows, gateRow(g, among(r, all)))
		}
		for _, name := range systems {
			if target := r.target(name); target != nil {
				l := target.Kinds[report.Notify]
				delivery.Rows = append(delivery.Rows, []Cell{
					words(system(name)), count(l.Count), middle(l.P50, Milliseconds), middle(l.P95, Milliseconds),
					middle(l.P99, Milliseconds), middle(l.Max, Milliseconds), words(r.bound()), words(among(r, all)),
				})
			}
		}
	}
	if len(t.Rows) == 0 {
		s.Missing = "No run of the workload soak was given. `pepvault-bench run soak --out FILE` fills this section."
		return s
	}
	w := all[0].Results.Environment.Work
	s.Text = []string{fmt.Sprintf("Idle devices (%d accounts with %d each) hear of %s a second for %s. Each write carries its moment, so what counts is the whole way to a device, not the answer to a request.",
		w.Users, w.Devices, plural(int64(w.Rate), "write", "writes"), exact(Seconds.text(w.Duration.Seconds())))}
	s.Tables = []Table{t}
	if len(delivery.Rows) > 0 {
		s.Tables = append(s.Tables, delivery)
	}
	return s
}

// soaks are those with gates, in the order of time.
func soaks(runs []Run) []Run {
	var all []Run
	for _, r := range runs {
		if r.is(soak) && len(r.Results.Gates) > 0 {
			all = append(all, r)
		}
	}
	slices.SortStableFunc(all, before)
	return all
}

// among names a run where there are several.
func among(r Run, all []Run) string {
	if len(all) < 2 {
		return ""
	}
	return r.Name
}

func gateRow(g report.Gate, run string) []Cell {
	unit, name := Count, g.Name
	switch g.Name {
	case report.GateDelivery:
		unit, name = Milliseconds, "delivery, p99"
	case report.GateMemory:
		unit, name = Bytes, "memory of the service at its peak"
	case report.GateLost:
		name = "saves and notifications lost"
	case report.GateFailed:
		name = "saves refused or without answer"
	case report.GateOOM:
		name = "processes killed for want of memory"
	}
	value, result := figure(g.Value, unit), "kept"
	switch {
	case g.Unmeasured != "":
		value, result = words(none), "not measured: "+g.Unmeasured
	case !g.OK:
		result = "MISSED"
	}
	most := figure(g.Most, unit)
	most.Text = exact(most.Text)
	return []Cell{words(system(g.Target)), words(name), value, most, words(result), words(run)}
}
