package page

import (
	"strings"

	"pepvault/bench/report"
)

// compared are the figures of which the systems' shares are given.
var compared = []struct {
	name  string
	of    func(report.Target) *report.Spread
	ratio func(report.Ratio) *report.Spread
}{
	{"answered", func(t report.Target) *report.Spread { return t.Rate }, func(r report.Ratio) *report.Spread { return r.Rate }},
	{"p50", func(t report.Target) *report.Spread { return t.Load.P50 }, func(r report.Ratio) *report.Spread { return r.P50 }},
	{"p99", func(t report.Target) *report.Spread { return t.Load.P99 }, func(r report.Ratio) *report.Spread { return r.P99 }},
	{"CPU", func(t report.Target) *report.Spread { return t.CPU }, func(r report.Ratio) *report.Spread { return r.CPU }},
	{"written per save", func(t report.Target) *report.Spread { return t.Saved }, func(r report.Ratio) *report.Spread { return r.Saved }},
}

// ratios sets the systems against each other.
func ratios(runs []Run) Section {
	s := Section{ID: "comparison", Title: "Comparison"}
	var rows []Run
	for _, r := range of(runs, mix, maximum, overload, storm) {
		if len(r.Summary.Targets) > 1 {
			rows = append(rows, r)
		}
	}
	if len(rows) == 0 {
		s.Missing = "No run of several systems was given. `pepvault-bench run mix --target component --target pep --echo --out FILE` compares them."
		return s
	}
	s.Text = []string{"Each cell has own PEP : pepvault : echo, with own PEP as 1 (where it was not measured, pepvault). " +
		"Of times, CPU and bytes less is better; of requests answered, more. Each round's systems are compared with each other and the median taken, " +
		"so that a machine that becomes slower meanwhile does not count."}
	for _, g := range grouped(rows) {
		t := Table{Caption: "own PEP : pepvault : echo. " + g.text() + ".", Columns: []string{"run"}}
		for _, f := range compared {
			t.Columns = append(t.Columns, f.name)
		}
		t.Columns = append(t.Columns, "remark")
		for _, r := range g.runs {
			row := []Cell{words(title(r))}
			for _, f := range compared {
				row = append(row, words(shares(r, f.of, f.ratio)))
			}
			t.Rows = append(t.Rows, append(row, words(r.bound())))
		}
		s.Tables = append(s.Tables, t)
	}
	return s
}

// shares is one figure of all systems, of which the first that has it is 1.
func shares(r Run, of func(report.Target) *report.Spread, ratio func(report.Ratio) *report.Spread) string {
	var base string
	var all []string
	for _, name := range systems {
		share, ok := 0.0, false
		switch t := r.target(name); {
		case t == nil || of(*t) == nil || of(*t).Median <= 0:
		case base == "":
			base, share, ok = name, 1, true
		default:
			share, ok = multiple(r, name, base, of, ratio)
		}
		if !ok {
			all = append(all, none)
			continue
		}
		all = append(all, strings.TrimSuffix(digits(share), ".00"))
	}
	if base == "" {
		return none
	}
	return strings.Join(all, " : ")
}

// multiple is one system's figure as a multiple of another's: over the rounds,
// where the run has that, else of the medians.
func multiple(r Run, name, base string, of func(report.Target) *report.Spread, ratio func(report.Ratio) *report.Spread) (float64, bool) {
	for _, known := range r.Summary.Ratios {
		found := ratio(known)
		switch {
		case found == nil || found.Median <= 0:
		case known.Of == name && known.To == base:
			return found.Median, true
		case known.Of == base && known.To == name:
			return 1 / found.Median, true
		}
	}
	a, b := r.target(name), r.target(base)
	if a == nil || b == nil || of(*a) == nil || of(*b) == nil || of(*b).Median <= 0 {
		return 0, false
	}
	return of(*a).Median / of(*b).Median, true
}
