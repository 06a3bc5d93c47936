package report

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
)

// Comparison is two runs of the same work side by side.
type Comparison struct {
	Workload string `json:"workload"`
	// Noise is by what factor the machine itself differed between the runs, at
	// least 1, as far as it was measured; Noisy names what differed so.
	Noise float64 `json:"noise"`
	Noisy string  `json:"noisy,omitempty"`
	// Unlike names what differs around the work: the host, the machine, the
	// programs. It explains ratios, and forbids none.
	Unlike []string `json:"unlike,omitempty"`
	// Single names the runs of one round, of which the spread is not known: "a",
	// "b".
	Single []string `json:"single,omitempty"`
	// GeneratorBound names the runs that may have measured their generator: "a",
	// "b".
	GeneratorBound []string `json:"generator_bound,omitempty"`
	Rows           []Row    `json:"rows"`
}

// Row is one figure of both.
type Row struct {
	Target string  `json:"target"` // "A as B" if the runs name it differently
	Figure string  `json:"figure"`
	A      Spread  `json:"a"`
	B      Spread  `json:"b"`
	Ratio  float64 `json:"ratio"` // of B's median to A's
	// Overlap says that the rounds of both are as much apart among themselves:
	// the spreads meet.
	Overlap bool `json:"overlap"`
	// WithinNoise says that the machine differed by as much as the figure does.
	WithinNoise bool `json:"within_noise"`

	// AtLeast says that one of them carries more people than were tried: the ratio
	// is of lower bounds.
	AtLeast bool `json:"at_least,omitempty"`

	unit unit
}

// Compare puts two results side by side. The error is ErrUnlike if they did not
// do the same work, or if one of them has no figures, and says why.
func Compare(a, b *Results) (*Comparison, error) {
	for _, run := range []struct {
		name    string
		results *Results
	}{{"the first", a}, {"the second", b}} {
		switch verdict := run.results.Verdict; {
		case verdict == nil:
			return nil, fmt.Errorf("%s was cut off before its verdict: %w", run.name, ErrUnlike)
		case !verdict.OK:
			return nil, fmt.Errorf("%s failed, and has no figures (%s): %w", run.name, verdict.Reason, ErrUnlike)
		}
	}
	if differs := differences(a.Environment.Work, b.Environment.Work, "rounds"); len(differs) > 0 {
		return nil, fmt.Errorf("%s: %w", strings.Join(differs, ", "), ErrUnlike)
	}
	first, second := a.Summary(), b.Summary()
	pairs, err := pair(first.Targets, second.Targets)
	if err != nil {
		return nil, err
	}
	c := &Comparison{Workload: a.Environment.Work.Name}
	c.Noise, c.Noisy = noiseBetween(a, b, first.Machine, second.Machine)
	c.Unlike = slices.Concat(
		differences(a.Environment.Host, b.Environment.Host),
		differences(a.Environment.Machine, b.Environment.Machine))
	if a.Environment.Program != b.Environment.Program {
		c.Unlike = append(c.Unlike, fmt.Sprintf("program: %s and %s", a.Environment.Program, b.Environment.Program))
	}
	c.Single = runs(first.Rounds < 2, second.Rounds < 2)
	c.GeneratorBound = runs(first.GeneratorBound, second.GeneratorBound)
	for _, p := range pairs {
		c.Rows = append(c.Rows, c.rows(p)...)
	}
	return c, nil
}

// runs names those for which something holds.
func runs(a, b bool) (names []string) {
	if a {
		names = append(names, "a")
	}
	if b {
		names = append(names, "b")
	}
	return names
}

// pair finds the targets that both have; two runs of one target each are
// compared whatever these are called.
func pair(a, b []Target) ([][2]Target, error) {
	if len(a) == 1 && len(b) == 1 {
		return [][2]Target{{a[0], b[0]}}, nil
	}
	var pairs [][2]Target
	for _, first := range a {
		for _, second := range b {
			if first.Name == second.Name {
				pairs = append(pairs, [2]Target{first, second})
			}
		}
	}
	if len(pairs) == 0 {
		return nil, fmt.Errorf("no target is in both: %w", ErrUnlike)
	}
	return pairs, nil
}

// rows are the figures that both targets of a pair have.
func (c *Comparison) rows(pair [2]Target) (rows []Row) {
	name := pair[0].Name
	if name != pair[1].Name {
		name += " as " + pair[1].Name
	}
	second := figures(pair[1])
	for _, f := range figures(pair[0]) {
		i := slices.IndexFunc(second, func(other figure) bool { return other.name == f.name })
		if i < 0 || f.value == nil || second[i].value == nil {
			continue
		}
		row := Row{Target: name, Figure: f.name, A: *f.value, B: *second[i].value, AtLeast: pair[0].orMore(f.name) || pair[1].orMore(f.name), unit: f.unit}
		if row.A.Median != 0 {
			row.Ratio = short(row.B.Median / row.A.Median)
		}
		row.Overlap = row.A.Low <= row.B.High && row.B.Low <= row.A.High
		row.WithinNoise = f.unit.noisy() && row.Ratio > 0 && factor(row.Ratio) <= c.Noise
		rows = append(rows, row)
	}
	return rows
}

// noiseBetween is by what factor the machine differed: memory, disk, or the
// cores that others left.
func noiseBetween(a, b *Results, first, second Around) (noise float64, what string) {
	noise = 1
	consider := func(name string, of, to *Spread, format string) {
		if of == nil || to == nil || of.Median <= 0 || to.Median <= 0 {
			return
		}
		if f := factor(to.Median / of.Median); f > noise {
			noise, what = short(f), fmt.Sprintf(name+" "+format+" and "+format, of.Median, to.Median)
		}
	}
	left := func(r *Results, others *Spread) *Spread {
		if others == nil {
			return nil
		}
		return &Spread{Median: float64(r.Environment.Machine.Cores) - others.Median}
	}
	consider("memory latency", first.Memory, second.Memory, "%.0f ns")
	consider("disk sync", first.SyncP50, second.SyncP50, "%.2f ms")
	consider("cores left by others", left(a, first.Others), left(b, second.Others), "%.2f")
	return noise, what
}

// factor is how far a ratio is from 1, in either direction.
func factor(ratio float64) float64 { return math.Max(ratio, 1/ratio) }

// differences names the fields, as JSON has them, in which two values of one
// struct differ, with both values.
func differences[T any](a, b T, except ...string) []string {
	first, second := fields(a), fields(b)
	names := make(map[string]bool)
	for name := range first {
		names[name] = true
	}
	for name := range second {
		names[name] = true
	}
	var all []string
	for _, name := range sortedKeys(names) {
		if slices.Contains(except, name) || reflect.DeepEqual(first[name], second[name]) {
			continue
		}
		all = append(all, fmt.Sprintf("%s: %s and %s", name, orNone(first[name]), orNone(second[name])))
	}
	return all
}

// fields is a struct as JSON has it.
func fields(v any) map[string]any {
	text, err := json.Marshal(v)
	all := make(map[string]any)
	if err = errors.Join(err, json.Unmarshal(text, &all)); err != nil {
		panic(err) // plain values
	}
	return all
}

func orNone(v any) string {
	if v == nil {
		return "none"
	}
	text, err := json.Marshal(v)
	if err != nil {
		panic(err) // it comes from JSON
	}
	return string(text)
}

// figure is one of a target's.
type figure struct {
	name  string
	unit  unit
	value *Spread
}

// figures are all that can be compared, in the order of a table.
func figures(t Target) []figure {
	all := []figure{
		{"rate", perSecond, t.Rate},
		{"p50", millis, t.Load.P50}, {"p95", millis, t.Load.P95}, {"p99", millis, t.Load.P99},
		{"p99.9", millis, t.Load.P999}, {"max", millis, t.Load.Max},
	}
	for _, kind := range sortedKeys(t.Kinds) {
		l := t.Kinds[kind]
		all = append(all,
			figure{string(kind) + " p50", millis, l.P50}, figure{string(kind) + " p99", millis, l.P99},
			figure{string(kind) + " max", millis, l.Max})
	}
	all = append(all,
		figure{"CPU per 1000 ops", seconds, t.CPU},
		figure{"written per save", octets, t.Saved},
		figure{"database per record", octets, t.Record})
	for _, name := range sortedKeys(t.Costs) {
		c := t.Costs[name]
		all = append(all, figure{name + " CPU per 1000 ops", seconds, c.Per1000})
		if c.Peak > 0 && name != Generator {
			all = append(all, figure{name + " peak memory", octets, &Spread{Median: float64(c.Peak), Low: float64(c.Peak), High: float64(c.Peak)}})
		}
	}
	all = append(all, t.Disk.figures()...)
	all = append(all, capacityFigures(t.Capacity)...)
	return slices.DeleteFunc(all, func(f figure) bool { return f.value == nil })
}

// unit is what a figure is counted in.
type unit int

const (
	perSecond unit = iota
	millis
	seconds
	octets
	persons
)

// noisy reports whether a busy machine changes such figures.
func (u unit) noisy() bool { return u != octets }

// text writes a figure for people.
func (u unit) text(f float64) string {
	switch u {
	case perSecond:
		return fmt.Sprintf("%.1f/s", f)
	case millis:
		return significant(f) + " ms"
	case seconds:
		return significant(f) + " s"
	case persons:
		return fmt.Sprintf("%.0f people", f)
	}
	switch i := cmp.Compare(f, 1<<20) + cmp.Compare(f, 10<<10); i {
	case 2:
		return fmt.Sprintf("%.1f MiB", f/(1<<20))
	case -2:
		return fmt.Sprintf("%.0f B", f)
	}
	return fmt.Sprintf("%.1f KiB", f/(1<<10))
}

// significant keeps three digits.
func significant(f float64) string {
	switch {
	case f >= 100 || f == 0:
		return fmt.Sprintf("%.0f", f)
	case f >= 10:
		return fmt.Sprintf("%.1f", f)
	case f >= 1:
		return fmt.Sprintf("%.2f", f)
	}
	return fmt.Sprintf("%.3f", f)
}
