package page

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"pepvault/bench/report"
)

// details is what has to be known to judge the runs one by one.
func details(runs []Run) Section {
	s := Section{ID: "runs", Title: "The runs", Tables: append(environments(runs), outcomes(runs), noises(runs))}
	for _, r := range runs {
		if t := kinds(r); len(t.Rows) > 0 {
			s.Tables = append(s.Tables, t)
		}
	}
	s.Tables = slices.DeleteFunc(s.Tables, func(t Table) bool { return len(t.Rows) == 0 })
	return s
}

// environments are the machines and programs, each with the runs on it.
func environments(runs []Run) []Table {
	var all []Table
	names := make(map[string][]string)
	var keys []string
	rows := make(map[string][][]Cell)
	for _, r := range runs {
		about := surroundings(r.Results.Environment)
		key := fmt.Sprint(about)
		if names[key] == nil {
			keys = append(keys, key)
			rows[key] = about
		}
		names[key] = append(names[key], r.Name)
	}
	for _, key := range keys {
		caption := "Machine and programs of all runs."
		if len(keys) > 1 {
			caption = "Machine and programs of " + list(names[key]) + "."
		}
		all = append(all, Table{Caption: caption, Columns: []string{"what", "value"}, Rows: rows[key]})
	}
	return all
}

func surroundings(env report.Environment) [][]Cell {
	var rows [][]Cell
	add := func(name, value string) {
		if value != "" {
			rows = append(rows, []Cell{words(name), words(value)})
		}
	}
	m := env.Machine
	add("processor", m.CPU)
	add("cores", plural(int64(m.Cores), "core", "cores"))
	if m.Memory > 0 {
		add("memory", Bytes.text(float64(m.Memory)))
	}
	add("system", strings.TrimSpace(m.System+", kernel "+m.Kernel))
	add("file system of the stores", m.Storage)
	add("Go", m.Go)
	add("bench", env.Program)
	for _, name := range slices.Sorted(maps.Keys(env.Host.Versions)) {
		add(name, env.Host.Versions[name])
	}
	host := env.Host.Name
	if env.Host.Version != "" {
		host = env.Host.Version
	}
	add("server", host)
	for _, name := range slices.Sorted(maps.Keys(env.Host.Settings)) {
		add("server's "+name, env.Host.Settings[name])
	}
	return rows
}

// outcomes says of each run what it was and how it ended.
func outcomes(runs []Run) Table {
	t := Table{
		Caption: "All runs that were given. Of one that failed or was cut off, no figure is used.",
		Columns: []string{"file", "run", "begun", "rounds", "saves", "notifications", "result"},
	}
	for _, r := range runs {
		env := r.Results.Environment
		saves, heard := int64(0), int64(0)
		for _, c := range r.Results.Checks {
			saves, heard = saves+c.Saves, heard+c.Notifications
		}
		t.Rows = append(t.Rows, []Cell{
			words(r.Name), words(title(r)), words(env.Date.UTC().Format("2006-01-02 15:04 UTC")), count(int64(env.Work.Rounds)),
			count(saves), count(heard), words(result(r)),
		})
	}
	return t
}

// result says how a run ended.
func result(r Run) string {
	switch v := r.Results.Verdict; {
	case v == nil:
		return "CUT OFF before its verdict"
	case !v.OK:
		return "FAILED: " + v.Reason
	}
	if bound := r.bound(); bound != "" {
		return "ok, " + bound
	}
	return "ok"
}

// noises is what else the machine did.
func noises(runs []Run) Table {
	t := Table{
		Caption: "What else the machine did: cores that other processes and the hypervisor took, one load from memory, the slowest of a hundred disk syncs, " +
			"what the devices themselves used, and by how much they were late (p99). Medians over the rounds, with both ends. " +
			"Generator bound: the devices had most of the cores, were late by half of the p99, waited for a processor a quarter of the mean latency, or a limit of theirs held them in a tenth of its periods.",
		Columns: []string{"file", "others", "hypervisor", "memory", "disk sync p99", "devices", "late", "remark"},
	}
	for _, r := range runs {
		s := r.Summary
		if s == nil {
			continue
		}
		memory := Cell{Text: none}
		if m := s.Machine.Memory; m != nil {
			memory = words(digits(m.Median) + " ns")
		}
		t.Rows = append(t.Rows, []Cell{
			words(r.Name), ranged(notNegative(s.Machine.Others), Cores), ranged(s.Machine.Stolen, Cores), memory,
			ranged(s.Machine.SyncP99, Milliseconds), ranged(s.Generator, Cores), ranged(s.Late, Milliseconds), words(r.bound()),
		})
	}
	return t
}

// kinds are the figures of a run by kind of operation, with their spread.
func kinds(r Run) Table {
	t := Table{
		Caption: fmt.Sprintf("%s: %s; %s. %s", r.Name, title(r), settingOf(r).text(), overRounds(r)),
		Columns: []string{"system", "operation", "count", "p50", "p99", "slowest", "errors"},
	}
	if !r.is(mix, maximum, overload, storm) || r.Summary == nil {
		return t
	}
	for _, name := range systems {
		target := r.target(name)
		if target == nil {
			continue
		}
		for _, kind := range []report.Kind{report.Read, report.Save, report.Download, report.Notify, report.Connect, report.Ready, report.Probe} {
			l, found := target.Kinds[kind]
			if !found {
				continue
			}
			t.Rows = append(t.Rows, []Cell{
				words(system(name)), words(string(kind)), count(l.Count), ranged(l.P50, Milliseconds), ranged(l.P99, Milliseconds),
				ranged(l.Max, Milliseconds), words(errorsOf(l)),
			})
		}
	}
	return t
}

// overRounds says what a run's figures are of.
func overRounds(r Run) string {
	if r.Summary != nil && r.Summary.Rounds == 1 {
		return "Of one round."
	}
	return "Medians over the rounds, with both ends."
}

func errorsOf(l report.Latencies) string {
	var all []string
	for _, class := range slices.Sorted(maps.Keys(l.Errors)) {
		all = append(all, fmt.Sprintf("%s × %s", whole(l.Errors[class]), class))
	}
	if len(all) == 0 {
		return "0"
	}
	return strings.Join(all, ", ")
}

// repeat is how to get all of it again.
func repeat(runs []Run) Section {
	s := Section{ID: "repeat", Title: "How to repeat it", Text: []string{
		"The commands of the runs above, in their order, and the one that wrote this report. Run them on a machine that has nothing else to do; " +
			"a run that lost or changed anything says so and gives no figures.",
	}}
	s.Code = append(s.Code, "go build -o . ./cmd/pepvault ./cmd/pepvault-bench")
	ordered := slices.Clone(runs)
	slices.SortStableFunc(ordered, func(a, b Run) int { return a.Results.Environment.Date.Compare(b.Results.Environment.Date) })
	var files []string
	for _, r := range ordered {
		files = append(files, quoted(r.Name))
		if line := commandLine(r.Results.Environment.Command); line != "" && !slices.Contains(s.Code, line) {
			s.Code = append(s.Code, line)
		}
	}
	s.Code = append(s.Code, "./pepvault-bench report "+strings.Join(files, " ")+" --md benchmarks.md --html benchmarks.html")
	return s
}
