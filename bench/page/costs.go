package page

import (
	"fmt"

	"pepvault/bench/report"
)

// split is a figure of the server's processes and of the component behind it.
type split struct {
	host, service *report.Spread
}

// total is the sum of the medians; false if nothing was measured.
func (s split) total() (float64, bool) {
	sum := 0.0
	for _, part := range []*report.Spread{s.host, s.service} {
		if part != nil {
			sum += part.Median
		}
	}
	return sum, s.host != nil || s.service != nil
}

// cpu splits a figure of the watched processes. An operator's own names for
// processes (--pid) count as the host's.
func cpu(t *report.Target, of func(report.Cost) *report.Spread) split {
	var s split
	for name, cost := range t.Costs {
		value := of(cost)
		switch {
		case name == report.Generator || value == nil:
		case name == t.Name || name == "service" && t.Name == component:
			s.service = value
		case name == "service" || name == echo: // it stands idle beside this target
		case s.host == nil:
			s.host = value
		default:
			s.host = &report.Spread{Median: s.host.Median + value.Median, Low: s.host.Low + value.Low, High: s.host.High + value.High}
		}
	}
	return s
}

func perThousand(c report.Cost) *report.Spread { return c.Per1000 }

// costs says what loads the server.
func costs(runs []Run) Section {
	s := Section{ID: "costs", Title: "What loads the server"}
	singles, mixes := single(of(runs, mix, maximum)), mixed(of(runs, mix, maximum))
	if len(singles) == 0 {
		s.Missing = "No run of one kind of request was given. `pepvault-bench run max --only read --out FILE`, and the same with save and download, say what each costs."
	}
	if len(singles)+len(mixes) > 0 {
		s.Text = []string{"CPU time that the server and the service took for one request, without the part of the devices. " +
			"A server that works in one thread, as Prosody does, answers nobody else meanwhile."}
	}
	for i, g := range grouped(singles) {
		if chart := costChart(i, g); len(chart.Panels[0].Groups) > 0 {
			s.Charts = append(s.Charts, chart)
		}
		s.Tables = append(s.Tables, costTable("CPU time for one request of one kind: "+g.text()+".", g))
	}
	for _, g := range grouped(mixes) {
		s.Tables = append(s.Tables, costTable("CPU time for one request of the mix (8 % whole vaults, 20 % saves, 72 % reads), on average: "+g.text()+".", g))
	}
	return s
}

func single(runs []Run) (kept []Run) {
	for _, r := range runs {
		if r.Results.Environment.Work.Only != "" {
			kept = append(kept, r)
		}
	}
	return kept
}

func mixed(runs []Run) (kept []Run) {
	for _, r := range runs {
		if r.Results.Environment.Work.Only == "" {
			kept = append(kept, r)
		}
	}
	return kept
}

// costChart shows each kind of request under its name.
func costChart(i int, g group) Chart {
	c := Chart{
		ID: fmt.Sprintf("costs-%d", i+1), Title: "CPU time of one request: " + g.server(),
		Summary: "Bars of the CPU time of each kind of request and system: first the server's part, then, paler, that of the service. The table has the figures.",
	}
	panel := Panel{X: Axis{Label: "CPU time", Unit: Milliseconds}}
	for _, kind := range []report.Kind{report.Read, report.Save, report.Download} {
		bars := Group{Name: operation(kind)}
		for _, name := range systems {
			for _, r := range g.runs {
				t := r.target(name)
				if t == nil || r.Results.Environment.Work.Only != kind {
					continue
				}
				parts := cpu(t, perThousand) // seconds for a thousand are milliseconds for one
				total, ok := parts.total()
				if !ok {
					continue
				}
				bar := Bar{Name: system(name), System: name, Text: Milliseconds.text(total)}
				for _, part := range []*report.Spread{parts.host, parts.service} {
					if part != nil {
						bar.Parts = append(bar.Parts, part.Median)
					}
				}
				bars.Bars = append(bars.Bars, bar)
				break
			}
		}
		if len(bars.Bars) > 0 {
			panel.Groups = append(panel.Groups, bars)
		}
	}
	c.Panels = []Panel{panel}
	return c
}

func costTable(caption string, g group) Table {
	t := Table{Caption: caption, Columns: []string{"request", "system", "server", "service", "together", "remark"}}
	for _, r := range g.runs {
		for _, name := range systems {
			target := r.target(name)
			if target == nil {
				continue
			}
			parts := cpu(target, perThousand)
			together := Cell{Text: none}
			if total, ok := parts.total(); ok {
				together = figure(total, Milliseconds)
			}
			t.Rows = append(t.Rows, []Cell{
				words(request(r)), words(system(name)),
				middle(parts.host, Milliseconds), middle(parts.service, Milliseconds), together, words(r.bound()),
			})
		}
	}
	return t
}

// request names what the load of a run is made of.
func request(r Run) string {
	if only := r.Results.Environment.Work.Only; only != "" {
		return operation(only)
	}
	return title(r)
}
