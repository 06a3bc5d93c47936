package page

import (
	"fmt"
	"math"

	"pepvault/bench/report"
)

// percentiles are those that a chart of latencies shows.
var percentiles = []struct {
	name   string
	stroke Stroke
	of     func(report.Latencies) *report.Spread
}{
	{"p50", Solid, func(l report.Latencies) *report.Spread { return l.P50 }},
	{"p95", Dashed, func(l report.Latencies) *report.Spread { return l.P95 }},
	{"p99", Dotted, func(l report.Latencies) *report.Spread { return l.P99 }},
}

// latency says how long requests take as they become more.
func latency(runs []Run) Section {
	s := Section{ID: "latency", Title: "Response time under load"}
	mixes := of(runs, mix)
	var all []Run
	for _, r := range mixes {
		if r.Results.Environment.Work.Only == "" {
			all = append(all, r)
		}
	}
	limits := of(runs, maximum, overload)
	if len(all) == 0 {
		s.Missing = "No run of the workload mix was given. `pepvault-bench run mix --rate N --out FILE` with several rates fills this section."
	} else {
		s.Text = append(s.Text, "Requests come at a fixed rate, however long others take: each is counted from the moment at which it was due. "+
			"Half of them were answered within p50, 95 of 100 within p95, 99 of 100 within p99. The moments of the requests are random, so a run of a rate plans some more or fewer than that: "+
			"what stands as 955 of 955 were all that it planned.")
	}
	for i, g := range grouped(all) {
		s.Charts = append(s.Charts, latencyChart(i, g))
		s.Tables = append(s.Tables, latencyTable(g))
		if len(g.runs) == 1 {
			s.Notes = append(s.Notes, fmt.Sprintf("One rate was measured with %s; how the time grows takes runs with other rates.", g.server()))
		}
	}
	for _, g := range grouped(limits) {
		if t := limitTable(g); len(t.Rows) > 0 {
			s.Tables = append(s.Tables, t)
			s.Notes = append(s.Notes, smallFirst(g)...)
		}
	}
	return s
}

func latencyChart(i int, g group) Chart {
	c := Chart{
		ID: fmt.Sprintf("latency-%d", i+1), Title: "Response time against load: " + g.server(),
		Summary: "Lines of p50, p95 and p99 over the rate of requests, on a logarithmic scale. The table has the figures. " + g.text() + ".",
	}
	panel := Panel{
		X: Axis{Label: "requests a second", Unit: Count},
		Y: Axis{Label: "response time (logarithmic)", Unit: Milliseconds, Log: true},
	}
	for _, target := range systems[:2] {
		for _, p := range percentiles {
			line := Series{Name: system(target) + " " + p.name, System: target, Stroke: p.stroke}
			for _, r := range g.runs {
				t := r.target(target)
				if t == nil || p.of(t.Load) == nil || p.of(t.Load).Median <= 0 {
					continue
				}
				line.Points = append(line.Points, [2]float64{r.Results.Environment.Work.Rate, p.of(t.Load).Median})
			}
			if len(line.Points) > 0 {
				panel.Series = append(panel.Series, line)
			}
		}
	}
	c.Panels = []Panel{panel}
	return c
}

func latencyTable(g group) Table {
	t := Table{
		Caption: "Response time of the mix of requests: " + g.text() + ".",
		Columns: []string{"asked for", "system", "answered", "a second", "rounds", "p50", "p95", "p99", "slowest", "errors", "remark"},
	}
	for _, r := range g.runs {
		for _, name := range systems {
			if target := r.target(name); target != nil {
				rate := r.Results.Environment.Work.Rate
				t.Rows = append(t.Rows, append([]Cell{asked(rate)}, loadCells(r, target)...))
			}
		}
	}
	return t
}

// asked is a rate as it was asked for.
func asked(rate float64) Cell {
	text := short(rate)
	if rate == math.Trunc(rate) {
		text = whole(int64(rate))
	}
	return Cell{Text: text + "/s", Value: &rate, Unit: PerSecond}
}

// loadCells are the columns from the system on. Only a rate has a plan: each of
// its requests was answered, or stands among the errors.
func loadCells(r Run, t *report.Target) []Cell {
	l := t.Load
	answered := count(l.Count)
	if r.Results.Environment.Work.Rate > 0 {
		planned := l.Count
		for _, n := range l.Errors {
			planned += n
		}
		answered.Text += " of " + whole(planned)
	}
	return []Cell{
		words(system(t.Name)), answered, middle(t.Rate, PerSecond), count(int64(t.Rounds)),
		middle(l.P50, Milliseconds), middle(l.P95, Milliseconds), middle(l.P99, Milliseconds), middle(l.Max, Milliseconds),
		count(t.Errors), words(r.bound()),
	}
}

// limitTable is what happens where there is no more.
func limitTable(g group) Table {
	t := Table{
		Caption: "At the limit: as fast as it goes (max), and far more than that (overload). " + g.text() + ".",
		Columns: []string{"workload", "system", "answered", "a second", "rounds", "p50", "p95", "p99", "slowest", "errors", "remark"},
	}
	for _, r := range g.runs {
		if r.Results.Environment.Work.Only != "" {
			continue
		}
		for _, name := range systems {
			if target := r.target(name); target != nil {
				t.Rows = append(t.Rows, append([]Cell{words(title(r))}, loadCells(r, target)...))
			}
		}
	}
	return t
}

// smallFirst explains the percentiles of runs at the limit whose slowest answers
// are whole vaults, where the figures show that.
func smallFirst(g group) []string {
	var all []string
	for _, r := range g.runs {
		ours, own := r.target(component), r.target(pep)
		if ours == nil || own == nil || !r.is(maximum, overload) || ours.Load.P99 == nil || own.Load.P99 == nil || ours.Load.P99.Median <= own.Load.P99.Median {
			continue
		}
		read, vault, theirs := ours.Kinds[report.Read].P99, ours.Kinds[report.Download].P50, own.Kinds[report.Read].P99
		if read == nil || vault == nil || theirs == nil || vault.Median <= read.Median || read.Median >= theirs.Median {
			continue
		}
		all = append(all, fmt.Sprintf("%s, %s, loaded %s: the slowest requests of pepvault are whole vaults, which queue behind small answers on purpose: 99 of 100 reads took at most %s (own PEP: %s), half of the vaults %s or more.",
			title(r), g.server(), g.download, Milliseconds.text(read.Median), Milliseconds.text(theirs.Median), Milliseconds.text(vault.Median)))
	}
	return all
}
