package page

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"pepvault/bench/report"
)

// returning says how long devices take that all come back at once, and what
// others feel of it.
func returning(runs []Run) Section {
	s := Section{ID: "storm", Title: "When all devices come back at once"}
	storms, restarts := of(runs, storm), of(runs, restart)
	if len(storms) == 0 {
		s.Missing = "No run of the workload storm was given. `pepvault-bench run storm --target component --target pep --out FILE` fills this section."
	} else {
		s.Text = append(s.Text, "After a restart of the server all devices log in and load their vaults. Beside them one more device, "+
			"which had stayed, reads a record every 50 ms: what it waits is what everybody else would.")
	}
	for i, r := range storms {
		s.Charts = append(s.Charts, stormChart(i, r))
	}
	if len(storms) > 0 {
		s.Tables = append(s.Tables, stormTable(storms))
		s.Notes = append(s.Notes, inTurns(storms)...)
	}
	if len(restarts) > 0 {
		s.Tables = append(s.Tables, restartTable(restarts))
	}
	return s
}

// middleRound is the round of which a target was ready neither first nor last,
// the earlier one of two; 0 if there is none.
func middleRound(lines []Timeline, target string) int {
	type end struct {
		round int
		at    time.Duration
	}
	var ends []end
	for _, line := range lines {
		if line.Target == target && len(line.Ready) > 0 {
			ends = append(ends, end{line.Round, line.Ready[len(line.Ready)-1]})
		}
	}
	if len(ends) == 0 {
		return 0
	}
	slices.SortStableFunc(ends, func(a, b end) int { return int(a.at.Milliseconds() - b.at.Milliseconds()) })
	return ends[(len(ends)-1)/2].round
}

func stormChart(i int, r Run) Chart {
	w := r.Results.Environment.Work
	g := settingOf(r)
	c := Chart{
		ID:    fmt.Sprintf("storm-%d", i+1),
		Title: fmt.Sprintf("%s load their vaults %s: %s", plural(int64(w.Users*w.Devices), "device", "devices"), way(w.Download), g.server()),
		Summary: "Above, how many devices are ready over time; below, how long one read takes meanwhile, on a logarithmic scale. " +
			"The table has the figures. " + g.text() + ".",
	}
	seconds := Axis{Label: "seconds since the storm began", Unit: Seconds}
	ready := Panel{X: seconds, Y: Axis{Label: "devices ready", Unit: Count}}
	probes := Panel{X: seconds, Y: Axis{Label: "one read beside it (logarithmic)", Unit: Milliseconds, Log: true}}
	for _, name := range systems {
		round := middleRound(r.Timelines, name)
		for _, line := range r.Timelines {
			if line.Target != name || line.Round != round {
				continue
			}
			up := Series{Name: system(name), System: name, Stroke: Steps}
			for n, at := range line.Ready {
				up.Points = append(up.Points, [2]float64{at.Seconds(), float64(n + 1)})
			}
			dots := Series{Name: system(name), System: name, Stroke: Dots}
			for _, p := range line.Probes {
				dots.Points = append(dots.Points, [2]float64{p.At.Seconds(), math.Max(p.Latency.Seconds()*1000, 0.01)})
			}
			if len(up.Points) > 0 {
				ready.Series = append(ready.Series, up)
			}
			if len(dots.Points) > 0 {
				probes.Series = append(probes.Series, dots)
			}
		}
	}
	for _, p := range []Panel{ready, probes} {
		if len(p.Series) > 0 {
			c.Panels = append(c.Panels, p)
		}
	}
	return c
}

func stormTable(runs []Run) Table {
	t := Table{
		Caption: "Devices ready after a storm, and one read beside it; medians over the rounds.",
		Columns: []string{"storm", "system", "rounds", "half ready", "95 % ready", "all ready", "read p50", "read p99", "slowest read", "remark"},
	}
	for _, r := range runs {
		for _, name := range systems {
			target := r.target(name)
			if target == nil {
				continue
			}
			ready, probe := target.Kinds[report.Ready], target.Kinds[report.Probe]
			t.Rows = append(t.Rows, []Cell{
				words(stormName(r)), words(system(name)), count(int64(target.Rounds)),
				middle(ready.P50, Milliseconds), middle(ready.P95, Milliseconds), middle(ready.Max, Milliseconds),
				middle(probe.P50, Milliseconds), middle(probe.P99, Milliseconds), middle(probe.Max, Milliseconds), words(r.bound()),
			})
		}
	}
	return t
}

func stormName(r Run) string {
	w := r.Results.Environment.Work
	return fmt.Sprintf("%s, %s, %s", plural(int64(w.Users*w.Devices), "device", "devices"), w.Download, settingOf(r).server())
}

func restartTable(runs []Run) Table {
	t := Table{
		Caption: "A restart of the service alone leaves the devices connected: it tells each where its vault stands, and a device is ready " +
			"that knows that it has missed nothing. Counted from the moment at which the service began to stop.",
		Columns: []string{"restart", "rounds", "service is back", "half ready", "all ready", "read p99", "remark"},
	}
	for _, r := range runs {
		if target := r.target(component); target != nil {
			ready := target.Kinds[report.Ready]
			t.Rows = append(t.Rows, []Cell{
				words(stormName(r)), count(int64(target.Rounds)), middle(target.Kinds[report.Connect].Max, Milliseconds),
				middle(ready.P50, Milliseconds), middle(ready.Max, Milliseconds),
				middle(target.Kinds[report.Probe].P99, Milliseconds), words(r.bound()),
			})
		}
	}
	return t
}

// way is how vaults are loaded, in words.
func way(download string) string {
	switch download {
	case "sync":
		return "by what changed (sync; own PEP: in one piece)"
	case "pushed":
		return "in chunks (pushed; own PEP: in one piece)"
	case "paged":
		return "page by page (paged)"
	}
	return "in one piece (plain)"
}

// inTurns explains why devices that are sent their vaults in chunks are ready
// late, and all at about the same time, where the figures show that.
func inTurns(storms []Run) []string {
	var all []string
	for _, r := range storms {
		if r.Results.Environment.Work.Download != "pushed" || r.target(component) == nil {
			continue
		}
		for _, other := range storms {
			like, t := settingOf(other), other.target(component)
			if like.download != "plain" || t == nil {
				continue
			}
			if like.download = "pushed"; like != settingOf(r) {
				continue
			}
			chunks, whole := r.target(component).Kinds[report.Ready], t.Kinds[report.Ready]
			if chunks.P50 == nil || whole.P50 == nil || chunks.Max == nil || whole.Max == nil || chunks.P50.Median <= whole.P50.Median ||
				chunks.P50.Median/chunks.Max.Median <= whole.P50.Median/whole.Max.Median {
				continue
			}
			all = append(all, fmt.Sprintf("%s: pushed, the devices get their chunks in turns, so most of them are ready near the end (half after %s of %s); plain, one vault comes after the other (half after %s of %s).",
				settingOf(r).server(), Milliseconds.text(chunks.P50.Median), Milliseconds.text(chunks.Max.Median), Milliseconds.text(whole.P50.Median), Milliseconds.text(whole.Max.Median)))
		}
	}
	return all
}

// loading explains the ways to load a vault that the runs have.
func loading(runs []Run) string {
	ways := []struct{ name, text string }{
		{"plain", "plain asks for all records in one request"},
		{"paged", "paged asks for page after page"},
		{"pushed", "pushed has the service send chunks, of which few are on their way at a time"},
		{"sync", "sync asks for what has changed since the device was there last"},
	}
	var known []string
	beyond := false
	for _, way := range ways {
		if slices.ContainsFunc(runs, func(r Run) bool { return r.Results.Environment.Work.Download == way.name }) {
			known = append(known, way.text)
			beyond = beyond || way.name == "pushed" || way.name == "sync"
		}
	}
	if len(known) == 0 {
		return ""
	}
	text := "Ways to load a whole vault: " + strings.Join(known, "; ") + "."
	if beyond {
		text += " Own PEP knows neither chunks nor changes: in those runs it always loads plain."
	}
	return text
}
