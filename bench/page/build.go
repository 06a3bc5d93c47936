package page

import (
	"cmp"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"

	"pepvault/bench/report"
)

// smallUsers is how many people a server is recommended for, if that many fit.
const smallUsers = 100

// Build makes the report of some runs, given in any order. It reads nothing but
// its argument.
func Build(runs []Run) *Report {
	runs = slices.Clone(runs)
	slices.SortStableFunc(runs, before)
	runs, again := once(runs)
	estimates := report.Estimate(report.SmallServer(), withFigures(runs))
	r := &Report{Title: "pepvault: load report"}
	r.Verdict = verdict(runs, estimates)
	r.Highlights = highlights(runs)
	r.Doubts = append(again, doubts(runs)...)
	r.Sections = []Section{
		method(runs), latency(runs), costs(runs), returning(runs), people(runs), storage(runs), soaking(runs),
		outlook(estimates), ratios(runs), details(runs), repeat(runs),
	}
	for i := range r.Sections {
		for j, t := range r.Sections[i].Tables {
			r.Sections[i].Tables[j] = t.filled()
		}
	}
	return r
}

// once keeps one of the files that are of the same run, the one that says most,
// and says which were left out. Runs are the same whose environments are: the
// moment in it counts nanoseconds.
func once(runs []Run) (kept []Run, doubts []string) {
	same := func(a, b Run) bool {
		x, y := a.Results.Environment, b.Results.Environment
		return !x.Date.IsZero() && x.Date.Equal(y.Date) && reflect.DeepEqual(x, y)
	}
	for _, r := range runs {
		i := -1
		for n := range kept {
			if same(kept[n], r) {
				i = n
			}
		}
		if i < 0 {
			kept = append(kept, r)
			continue
		}
		if kept[i].Results.Verdict == nil && r.Results.Verdict != nil {
			kept[i], r = r, kept[i]
		}
		if r.Name == kept[i].Name {
			doubts = append(doubts, r.Name+" was given more than once; it counts once.")
		} else {
			doubts = append(doubts, r.Name+" is of the same run as "+kept[i].Name+"; that counts once.")
		}
	}
	return kept, doubts
}

// withFigures are the results that an estimate may use.
func withFigures(runs []Run) (all []*report.Results) {
	for _, r := range runs {
		if r.Summary != nil {
			all = append(all, r.Results)
		}
	}
	return all
}

// filled leaves out the columns in which nothing stands.
func (t Table) filled() Table {
	for i := len(t.Columns) - 1; i > 0; i-- {
		if slices.ContainsFunc(t.Rows, func(row []Cell) bool { return row[i].Text != "" }) {
			continue
		}
		t.Columns = slices.Delete(t.Columns, i, i+1)
		for j := range t.Rows {
			t.Rows[j] = slices.Delete(t.Rows[j], i, i+1)
		}
	}
	return t
}

// verdict is which server to take, and whether anything was lost.
func verdict(runs []Run, estimates []report.Outlook) string {
	server := recommended(runs, estimates)
	kept := "no run with figures was given"
	if saves, heard, lost := verified(runs); lost > 0 {
		kept = fmt.Sprintf("pepvault LOST or changed %s: see the runs that failed", plural(lost, "save or notification", "saves and notifications"))
	} else if saves+heard > 0 {
		kept = fmt.Sprintf("pepvault lost none of %s and %s", plural(saves, "save", "saves"), plural(heard, "notification", "notifications"))
	}
	if server == "" {
		return "No server is recommended: that takes a run of `capacity`, or those of which an estimate is made; in the runs that were given, " + kept + "."
	}
	return server + "; in all runs, " + kept + "."
}

// recommended is the smallest server that takes a small community, else the
// largest that was measured, else what the estimate says; "" = not known.
func recommended(runs []Run, estimates []report.Outlook) string {
	var best report.Capacity
	host, crowd := "", ""
	for _, r := range of(runs, capacity) {
		for _, c := range sized(r) {
			if c.Target != component || c.Unmeasured != "" || c.Plan == 0 || !c.Size.Limited() {
				continue
			}
			fits, fitted := c.Plan >= smallUsers, best.Plan >= smallUsers
			smaller := cmp.Or(cmp.Compare(c.Size.CPUs, best.Size.CPUs), cmp.Compare(c.Size.Memory, best.Size.Memory)) < 0
			if host == "" || fits && !fitted || fits == fitted && smaller == fitted {
				best, host = c, settingOf(r).host
				w := r.Results.Environment.Work
				crowd = fmt.Sprintf("%s each, vaults of %s", plural(int64(w.Devices), "device", "devices"), plural(int64(w.Records), "record", "records"))
			}
		}
	}
	if host != "" {
		return fmt.Sprintf("Take a server with %s beside its operating system: with pepvault behind %s it kept %s%s online at once fast (%s), so plan with up to %s",
			best.Size, host, plural(int64(best.People), "person", "people"), atLeast(best), crowd, whole(int64(best.Plan)))
	}
	for _, o := range estimates {
		i := slices.Index(o.Systems, component)
		for _, reach := range o.Reach {
			if i >= 0 && reach.Users == o.Premise.Users && i < len(reach.Cells) && reach.Cells[i].Fit == report.FitWell {
				return fmt.Sprintf("Take a server with %s and %s: by the estimate, pepvault for %s %s",
					cores(o.Premise.Cores), exact(Bytes.text(float64(o.Premise.Memory))), plural(int64(reach.Users), "user", "users"), reach.Cells[i].Fit)
			}
		}
	}
	return ""
}

// verified counts what was checked of pepvault, and what of it was lost.
func verified(runs []Run) (saves, heard, lost int64) {
	for _, r := range runs {
		for _, c := range r.Results.Checks {
			if c.Target == component {
				saves, heard = saves+c.Saves, heard+c.Notifications
				lost += c.LostSaves + c.LostNotifications + c.Repeated + c.Wrong
			}
		}
	}
	return saves, heard, lost
}

// highlights are at most four.
func highlights(runs []Run) []Highlight {
	var all []Highlight
	add := func(c Cell, label string) {
		if c.Value != nil && len(all) < 4 {
			all = append(all, Highlight{Figure: c, Label: label})
		}
	}
	if best := largest(runs); best.People > 0 {
		c := count(int64(best.People))
		add(c, fmt.Sprintf("people online at once%s, still fast, on %s", atLeast(best), best.Size))
	}
	if r, ok := nearest(of(runs, mix), 100); ok {
		p99 := r.target(component).Load.P99
		label := fmt.Sprintf("is what 99 of 100 requests stayed within at %s", asked(r.Results.Environment.Work.Rate).Text)
		if other := r.target(pep); other != nil && other.Load.P99 != nil {
			label += fmt.Sprintf(" (own PEP: %s)", Milliseconds.text(other.Load.P99.Median))
		}
		add(middle(p99, Milliseconds), label+beside(r))
	}
	if storms := of(runs, storm); len(storms) > 0 {
		r := slices.MaxFunc(storms, func(a, b Run) int {
			x, y := a.Results.Environment.Work, b.Results.Environment.Work
			return cmp.Compare(x.Users*x.Devices, y.Users*y.Devices)
		})
		if t := r.target(component); t != nil {
			w := r.Results.Environment.Work
			does := "have their whole vaults"
			if w.Download == "sync" {
				does = "have what they had missed"
			}
			label := fmt.Sprintf("until %s that come back at once %s", plural(int64(w.Users*w.Devices), "device", "devices"), does)
			if other := r.target(pep); other != nil && other.Kinds[report.Ready].Max != nil {
				label += fmt.Sprintf(" (own PEP: %s)", Milliseconds.text(other.Kinds[report.Ready].Max.Median))
			}
			add(middle(t.Kinds[report.Ready].Max, Milliseconds), label+beside(r))
		}
	}
	if saves, heard, lost := verified(runs); saves+heard > 0 {
		add(count(lost), fmt.Sprintf("lost of %s and %s", plural(saves, "save", "saves"), plural(heard, "notification", "notifications")))
	}
	return all
}

// beside is a run's remark in brackets.
func beside(r Run) string {
	if bound := r.bound(); bound != "" {
		return " (" + bound + ")"
	}
	return ""
}

// largest is the capacity of pepvault on the largest server.
func largest(runs []Run) (best report.Capacity) {
	for _, r := range of(runs, capacity) {
		for _, c := range sized(r) {
			if c.Target == component && c.Unmeasured == "" && c.People >= best.People {
				best = c
			}
		}
	}
	return best
}

// nearest is the run of pepvault whose rate is nearest to one, of those alone
// that measured no generator, if there are any.
func nearest(runs []Run, rate float64) (best Run, ok bool) {
	for _, r := range runs {
		w := r.Results.Environment.Work
		if w.Only != "" || r.target(component) == nil || r.target(component).Load.P99 == nil {
			continue
		}
		bound, other := r.Summary.GeneratorBound, ok && best.Summary.GeneratorBound
		nearer := ok && math.Abs(w.Rate-rate) < math.Abs(best.Results.Environment.Work.Rate-rate)
		if !ok || other && !bound || other == bound && nearer {
			best, ok = r, true
		}
	}
	return best, ok
}

// doubts are the runs that don't count in full.
func doubts(runs []Run) []string {
	var all, bound []string
	for _, r := range runs {
		if r.Summary == nil {
			all = append(all, fmt.Sprintf("%s (%s) is not used. %s.", r.Name, title(r), strings.TrimSuffix(result(r), ".")))
		}
		if r.bound() != "" {
			bound = append(bound, r.Name)
		}
	}
	if len(bound) > 0 {
		all = append(all, "Generator bound: "+list(bound)+". There the devices of the test had most of the machine, or sent late; the figures may be theirs.")
	}
	return all
}

// method says how it was measured.
func method(runs []Run) Section {
	s := Section{ID: "method", Title: "How it was measured"}
	var servers []string
	for _, g := range grouped(runs) {
		if !slices.Contains(servers, g.server()) {
			servers = append(servers, g.server())
		}
	}
	s.Text = []string{
		fmt.Sprintf("Devices log in over TLS to a real server (%s), save and read sealed records and load whole vaults, as clients do. "+
			"Three systems are measured with the same plan of requests, in turns: pepvault, a service beside the server; own PEP, the server's own store for its accounts; "+
			"and echo, a component that answers at once and keeps nothing, which is the most that the server allows.", strings.Join(servers, "; ")),
		"A latency counts from the moment at which the plan wanted the request sent, so that a slow system can't slow down what is asked of it. " +
			"At the end of each run every acknowledged save is read back and every notification counted; a run that lost, changed or repeated anything gives no figures. " +
			"Figures are medians over the rounds of a run; of a run with one round, they are that round's.",
	}
	if ways := loading(runs); ways != "" {
		s.Text = append(s.Text, ways)
	}
	return s
}
