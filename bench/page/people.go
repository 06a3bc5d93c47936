package page

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"pepvault/bench/report"
)

// people says how many are served fast by a server of each size.
func people(runs []Run) Section {
	s := Section{ID: "capacity", Title: "How many people a server takes"}
	measured := of(runs, capacity)
	if len(measured) == 0 {
		s.Missing = "No run of the workload capacity was given. `pepvault-bench run capacity --target component --target pep --out FILE` fills this section."
		return s
	}
	w := measured[0].Results.Environment.Work
	s.Text = []string{fmt.Sprintf("Each person has %s online and, on average, saves a record every %s, reads one every %s and loads the vault anew every %s; "+
		"the other devices have to hear of each save. Fast means that 95 of 100 saves, notifications, reads and loads are done within %s of their planned moment, "+
		"that nothing fails, and that nobody falls behind. That is far busier than most people are, so the last column plans with a quarter.",
		plural(int64(w.Devices), "device", "devices"), pace(w.Rate, 0.5), pace(w.Rate, 1), pace(w.Rate, 0.2), exact(Seconds.text(report.FastWithin.Seconds())))}
	for i, r := range measured {
		s.Charts = append(s.Charts, capacityCharts(i, r)...)
		s.Tables = append(s.Tables, capacityTable(r))
		s.Notes = append(s.Notes, unmeasured(r)...)
	}
	for _, r := range measured {
		s.Tables = append(s.Tables, stepTables(r)...)
	}
	return s
}

// doings is how much a person does in the time in which one record is read: half
// a save, a read, and a fifth of a load.
const doings = 0.5 + 1 + 0.2

// pace is how often a person does what is so large a part of its doings, of
// which there are so many a second.
func pace(rate, part float64) string {
	if rate <= 0 {
		return "unknown time"
	}
	seconds := doings / rate / part
	if seconds >= 60 {
		return short(math.Round(seconds/6)/10) + " min"
	}
	return short(math.Round(seconds*10)/10) + " s"
}

// sized is one capacity with its target.
func sized(r Run) []report.Capacity {
	var all []report.Capacity
	for _, name := range systems {
		if t := r.target(name); t != nil {
			all = append(all, t.Capacity...)
		}
	}
	return all
}

func atLeast(c report.Capacity) string {
	if c.OrMore {
		return " or more"
	}
	return ""
}

func capacityCharts(i int, r Run) []Chart {
	bars := Panel{X: Axis{Label: "people online at once, still fast", Unit: Count}}
	lines := Panel{
		X: Axis{Label: "people online", Unit: Count},
		Y: Axis{Label: "a save is seen within, p95 (logarithmic)", Unit: Milliseconds, Log: true},
	}
	strokes := []Stroke{Solid, Dashed, Dotted}
	for n, size := range r.Results.Environment.Work.Sizes {
		group := Group{Name: size.String()}
		for _, c := range sized(r) {
			if c.Size == size && c.Unmeasured == "" {
				group.Bars = append(group.Bars, Bar{
					Name: system(c.Target), System: c.Target, Parts: []float64{float64(c.People)}, Text: whole(int64(c.People)) + atLeast(c),
				})
			}
		}
		if len(group.Bars) > 0 {
			bars.Groups = append(bars.Groups, group)
		}
		for _, name := range systems {
			line := Series{Name: system(name) + ", " + size.String(), System: name, Stroke: strokes[n%len(strokes)]}
			for _, step := range r.Results.Steps {
				if step.Target == name && step.Size == size && step.Seen.P95 > 0 {
					line.Points = append(line.Points, [2]float64{float64(step.People), step.Seen.P95})
				}
			}
			slices.SortFunc(line.Points, func(a, b [2]float64) int { return cmp.Compare(a[0], b[0]) })
			if len(line.Points) > 0 {
				lines.Series = append(lines.Series, line)
			}
		}
	}
	var all []Chart
	server := settingOf(r).server()
	if len(bars.Groups) > 0 {
		all = append(all, Chart{
			ID: fmt.Sprintf("capacity-%d", i+1), Title: "People online at once, still fast: " + server,
			Summary: "A bar for each size of server and system. The table has the figures.", Panels: []Panel{bars},
		})
	}
	if len(lines.Series) > 0 {
		all = append(all, Chart{
			ID: fmt.Sprintf("steps-%d", i+1), Title: "How long a save takes to be seen, as people become more: " + server,
			Summary: "A line for each size of server and system. The tables of all steps have the figures.", Panels: []Panel{lines},
		})
	}
	return all
}

func capacityTable(r Run) Table {
	t := Table{
		Caption: fmt.Sprintf("People online at once, still fast: %s, vaults of %s, %s.", settingOf(r).server(), plural(int64(settingOf(r).records), "record", "records"), loads(r)),
		Columns: []string{"server", "system", "people, still fast", "memory used then", "CPU used then", "the next step", "plan with"},
	}
	for _, size := range r.Results.Environment.Work.Sizes {
		for _, c := range sized(r) {
			if c.Size != size || c.Unmeasured != "" {
				continue
			}
			people := count(int64(c.People))
			people.Text += atLeast(c)
			plan := count(int64(c.Plan))
			if c.Plan == 0 {
				plan = words(none)
			}
			t.Rows = append(t.Rows, []Cell{
				words(size.String()), words(system(c.Target)), people, figure(float64(c.Memory), Bytes), figure(c.Cores, Cores), words(nextStep(c)), plan,
			})
		}
	}
	return t
}

// loads says how each system of a run loads vaults.
func loads(r Run) string {
	way := r.Results.Environment.Work.Download
	var all []string
	for _, name := range systems {
		if !slices.Contains(r.Results.Environment.Targets, name) {
			continue
		}
		own := way
		if name == pep && (way == "sync" || way == "pushed") {
			own = "plain"
		}
		all = append(all, system(name)+" loads "+own)
	}
	return list(all)
}

// nextStep says what became of the first number that was too large.
func nextStep(c report.Capacity) string {
	if c.Failed == 0 {
		return "none was tried"
	}
	text := fmt.Sprintf("%s: %s", whole(int64(c.Failed)), c.Result)
	if c.Limit != "" {
		text += ", limit: " + string(c.Limit)
	}
	return text
}

// unmeasured says what this machine could not tell.
func unmeasured(r Run) []string {
	var all []string
	for _, c := range sized(r) {
		if c.Unmeasured != "" {
			all = append(all, fmt.Sprintf("%s with %s was not measured: %s.", system(c.Target), c.Size, c.Unmeasured))
		}
		if c.OrMore && (c.Limit == report.AtGenerator || c.Limit == report.AtMachine) {
			all = append(all, fmt.Sprintf("%s with %s: generator bound at %s; the server itself may take more.", system(c.Target), c.Size, plural(int64(c.Failed), "person", "people")))
		}
	}
	return all
}

// stepTables has every step of every size.
func stepTables(r Run) []Table {
	var all []Table
	for _, size := range r.Results.Environment.Work.Sizes {
		for _, name := range systems {
			t := Table{
				Caption: fmt.Sprintf("All steps: %s with %s, %s; %s. Seen is from the planned moment of a save until another device has its notification. "+
					"Each step is one round; the last column has how many saves, notifications, reads and loads its percentiles stand on.", system(name), size, settingOf(r).server(), loads(r)),
				Columns: []string{"people", "saves/s", "save p95", "seen p95", "seen p99", "read p95", "load p95", "of a core", "throttled", "memory", "result", "samples"},
			}
			for _, step := range r.Results.Steps {
				if step.Target == name && step.Size == size {
					t.Rows = append(t.Rows, stepRow(step))
				}
			}
			slices.SortStableFunc(t.Rows, func(a, b []Cell) int { return cmp.Compare(*a[0].Value, *b[0].Value) })
			if len(t.Rows) > 0 {
				all = append(all, t)
			}
		}
	}
	return all
}

func stepRow(step report.CapacityStep) []Cell {
	within := func(w report.Within, value float64) Cell {
		if w.Count == 0 {
			return words(none)
		}
		return figure(value, Milliseconds)
	}
	cores := step.Server
	if cores == 0 {
		for name, used := range step.Cores {
			if name != report.Generator {
				cores += used
			}
		}
	}
	result := string(step.Result)
	if step.Limit != "" {
		result += " (" + string(step.Limit) + ")"
	}
	if step.Limit == report.AtGenerator {
		result = string(step.Result) + " (generator bound)"
	}
	return []Cell{
		count(int64(step.People)), figure(step.Rate, Count),
		within(step.Save, step.Save.P95), within(step.Seen, step.Seen.P95), within(step.Seen, step.Seen.P99),
		within(step.Read, step.Read.P95), within(step.Load, step.Load.P95),
		figure(cores*100, Percent), figure(step.Throttled*100, Percent), figure(float64(step.Memory), Bytes), words(result),
		words(fmt.Sprintf("%s / %s / %s / %s", whole(step.Save.Count), whole(step.Seen.Count), whole(step.Read.Count), whole(step.Load.Count))),
	}
}
