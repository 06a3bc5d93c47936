package page

import (
	"fmt"
	"maps"
	"slices"

	"pepvault/bench/report"
)

// storage says what is written to the disk.
func storage(runs []Run) Section {
	s := Section{ID: "disk", Title: "What is written to the disk"}
	measured := of(runs, disk)
	if len(measured) == 0 {
		s.Missing = "No run of the workload disk was given. `pepvault-bench run disk --target component --target pep --out FILE` fills this section."
		return s
	}
	s.Text = []string{"Bytes that the server and the service hand to the disk for one save: alone, when nothing else is under way, and under load, when many saves share their writes."}
	for i, r := range measured {
		server := settingOf(r).server()
		if chart := writtenChart(i, r); len(chart.Panels[0].Groups) > 0 {
			s.Charts = append(s.Charts, chart)
		}
		s.Tables = append(s.Tables, writtenTable(r), dayTable(r))
		if sync := r.Summary.Syncs; sync != nil {
			verdict := "slower than the 3 ms that are fine: saves wait for it"
			if sync.Fine {
				verdict = "at most 3 ms: the disk is fine"
			}
			s.Notes = append(s.Notes, fmt.Sprintf("%s: a small append takes %s to be safe on this disk (p50), %s (p99), %s at most. p99 is %s.",
				server, Milliseconds.text(sync.P50), Milliseconds.text(sync.P99), Milliseconds.text(sync.Max), verdict))
		}
	}
	s.Tables = slices.DeleteFunc(s.Tables, func(t Table) bool { return len(t.Rows) == 0 })
	return s
}

// parts of a disk run that are counted by save.
var parts = []struct {
	name string
	of   func(*report.Disk) *report.Written
}{
	{"one save alone, on average", func(d *report.Disk) *report.Written { return d.Lone }},
	{"under load", func(d *report.Disk) *report.Written { return d.Loaded }},
}

func writtenChart(i int, r Run) Chart {
	c := Chart{
		ID: fmt.Sprintf("disk-%d", i+1), Title: "Bytes written for one save: " + settingOf(r).server(),
		Summary: "A bar for a save alone and one under load, for each system: first the server's part, then, paler, that of the service. The table has the figures.",
	}
	panel := Panel{X: Axis{Label: "bytes written for one save", Unit: Bytes}}
	for _, part := range parts {
		group := Group{Name: part.name}
		for _, name := range systems {
			t := r.target(name)
			if t == nil || t.Disk == nil || part.of(t.Disk) == nil || part.of(t.Disk).All == nil {
				continue
			}
			w := part.of(t.Disk)
			bar := Bar{Name: system(name), System: name, Text: Bytes.text(w.All.Median)}
			service := 0.0
			if own := w.Processes[report.Service]; own != nil && name == component {
				service = own.Median
			}
			bar.Parts = []float64{max(w.All.Median-service, 0), service}
			group.Bars = append(group.Bars, bar)
		}
		if len(group.Bars) > 0 {
			panel.Groups = append(panel.Groups, group)
		}
	}
	c.Panels = []Panel{panel}
	return c
}

func writtenTable(r Run) Table {
	t := Table{
		Caption: "Bytes written for one save: " + settingOf(r).text() + ".",
		Columns: []string{"save", "system", "together", "by process", "saves", "remark"},
	}
	for _, part := range parts {
		for _, name := range systems {
			target := r.target(name)
			if target == nil || target.Disk == nil || part.of(target.Disk) == nil {
				continue
			}
			w := part.of(target.Disk)
			var apart []string
			for _, process := range slices.Sorted(maps.Keys(w.Processes)) {
				if bytes := w.Processes[process]; bytes != nil {
					apart = append(apart, process+" "+Bytes.text(bytes.Median))
				}
			}
			remark := r.bound()
			if target.Disk.Unsettled > 0 {
				remark = "a lower bound: writing had not stopped"
			}
			t.Rows = append(t.Rows, []Cell{
				words(part.name), words(system(name)), ranged(w.All, Bytes), words(list(apart)), count(w.Saves), words(remark),
			})
		}
	}
	return t
}

func dayTable(r Run) Table {
	t := Table{
		Caption: "A day of the users, replayed without its pauses: " + settingOf(r).text() + ".",
		Columns: []string{"system", "saves", "connections", "written", "database grows by", "its log by", "database, a record", "CPU"},
	}
	for _, name := range systems {
		target := r.target(name)
		if target == nil || target.Disk == nil || target.Disk.Day == nil {
			continue
		}
		d := target.Disk.Day
		t.Rows = append(t.Rows, []Cell{
			words(system(name)), count(d.Saves), count(d.Connections), middle(d.Written, Bytes), middle(d.Grown, Bytes),
			middle(d.LogGrown, Bytes), middle(d.Record, Bytes), middle(d.CPU, Seconds),
		})
	}
	return t
}
