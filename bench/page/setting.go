package page

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"pepvault/bench/report"
)

// setting is what has to be equal for runs to stand in one table: the server
// and how it is set, and the population. Its zero value is that of no run.
type setting struct {
	host     string // name and version
	set      string // all that was chosen, in order
	tuned    bool
	attached bool // with the network's settings that belong to attaching the service
	users    int
	devices  int
	records  int
	bytes    int
	download string
}

func settingOf(r Run) setting {
	env := r.Results.Environment
	s := setting{
		host: cmp.Or(env.Host.Version, env.Host.Name), users: env.Work.Users, devices: env.Work.Devices,
		records: env.Work.Records, bytes: env.Work.RecordBytes, download: env.Work.Download,
	}
	var all []string
	for _, name := range slices.Sorted(maps.Keys(env.Host.Settings)) {
		value := env.Host.Settings[name]
		all = append(all, name+" "+value)
		chosen := value != "default" && value != "rollback"
		s.attached = s.attached || chosen && name == "network"
		s.tuned = s.tuned || chosen && name != "network"
	}
	s.set = strings.Join(all, "; ")
	return s
}

// server is the setting's server in a few words.
func (s setting) server() string {
	switch {
	case s.tuned:
		return s.host + ", tuned"
	case s.attached:
		return s.host + ", default"
	case s.set != "":
		return s.host + " as shipped"
	}
	return s.host
}

// population is the rest of it in words.
func (s setting) population() string {
	text := fmt.Sprintf("%s with %s each, vaults of %s",
		plural(int64(s.users), "account", "accounts"), plural(int64(s.devices), "device", "devices"), plural(int64(s.records), "record", "records"))
	if s.download != "" {
		text += ", loaded " + s.download
	}
	return text
}

func (s setting) text() string { return s.server() + "; " + s.population() }

// group is the runs of one setting.
type group struct {
	setting
	runs []Run
}

// grouped sorts runs into settings, in the order in which these first come.
func grouped(runs []Run) []group {
	var all []group
	for _, r := range runs {
		s := settingOf(r)
		i := slices.IndexFunc(all, func(g group) bool { return g.setting == s })
		if i < 0 {
			i = len(all)
			all = append(all, group{setting: s})
		}
		all[i].runs = append(all[i].runs, r)
	}
	return all
}

// of keeps the runs with figures of some workloads, the newest of each work
// alone: of two runs that were asked for the same, the later one counts.
func of(runs []Run, workloads ...string) []Run {
	newest := make(map[string]Run)
	for _, r := range runs {
		if r.Summary == nil || !r.is(workloads...) {
			continue
		}
		w := r.Results.Environment.Work
		w.Rounds = 0
		key := fmt.Sprint(settingOf(r), w, r.Results.Environment.Targets)
		if old, found := newest[key]; !found || old.Results.Environment.Date.Before(r.Results.Environment.Date) {
			newest[key] = r
		}
	}
	kept := slices.Collect(maps.Values(newest))
	slices.SortFunc(kept, before)
	return kept
}

// before orders runs: by workload, rate, way of loading, and date.
func before(a, b Run) int {
	x, y := a.Results.Environment, b.Results.Environment
	return cmp.Or(
		cmp.Compare(slices.Index(order, x.Work.Name), slices.Index(order, y.Work.Name)),
		cmp.Compare(x.Work.Only, y.Work.Only),
		cmp.Compare(x.Work.Rate, y.Work.Rate),
		cmp.Compare(x.Work.Download, y.Work.Download),
		x.Date.Compare(y.Date),
		cmp.Compare(a.Name, b.Name),
	)
}

// order is that of workloads in the report.
var order = []string{mix, maximum, overload, storm, restart, capacity, disk, soak}

// systems are all targets in the report's order.
var systems = []string{pep, component, echo}

// system is how a target is called in the report.
func system(target string) string {
	switch target {
	case component:
		return "pepvault"
	case pep:
		return "own PEP"
	case echo:
		return "echo"
	}
	return target
}

// title names a run's work in a few words.
func title(r Run) string {
	w := r.Results.Environment.Work
	text := w.Name
	if w.Only != "" {
		text += ", " + operation(w.Only) + " alone"
	}
	if w.Rate > 0 && !r.is(capacity) { // that has a rate for each person
		text += " at " + asked(w.Rate).Text
	}
	if r.is(storm) && w.Download != "" {
		text += ", " + w.Download
	}
	return text
}

// operation is a kind in words.
func operation(kind report.Kind) string {
	switch kind {
	case report.Read:
		return "reading one record"
	case report.Save:
		return "saving one record"
	case report.Download:
		return "loading a whole vault"
	}
	return string(kind)
}
