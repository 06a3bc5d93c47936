package report

import (
	"fmt"
	"math"
	"slices"
)

// What an estimate takes for given: the memory of an operating system without
// anything else on it is not measured.
const (
	systemLow  = 150 << 20
	systemHigh = 250 << 20

	secondsOfDay = 24 * 60 * 60
)

// reaches are the numbers of users that an outlook tells the fit of.
var reaches = []int{100, 500, 2000}

// The bounds of a fit: shares of CPU and memory, seconds of a restart, and by how
// much there may be more devices than were measured.
type margin struct {
	cpu, memory, restart, beyond float64
}

var (
	roomy  = margin{cpu: 0.05, memory: 0.5, restart: 30, beyond: 1}
	likely = margin{cpu: 0.25, memory: 0.8, restart: 120, beyond: 5}
)

// rules say how an outlook was computed.
var rules = []string{
	"CPU a day: of the replayed day of a disk run, in proportion to the connections; without one, connections by what a device of the storm cost and saves by what an operation of the mix cost. Host and service together.",
	"Memory: the highest that host and service had in any run, and for each device beyond that run what one took in a capacity run, or else a share of that memory; the database once, as the system's cache of it; and 150 to 250 MiB for the operating system, which was not measured.",
	"Database: records by the bytes of one, and the longest log that was seen.",
	"Written a day: of the replayed day; without one, saves by what a lone save wrote.",
	"After a restart: by device, the time of the storm, or its CPU time by the server's cores if that is more. On the wire a record takes 1.45 bytes for each of its ciphertext.",
	"Room to spare: at most 5 % of the CPU, half of the memory, 30 s after a restart, and no more devices than were measured. Should fit: 25 %, 80 %, 2 minutes, 5 times the devices. Beyond that only a test tells.",
}

// Estimate computes what a server needs, from the results of runs: storm, mix and
// disk. There is one outlook for each host that they were made on, in the order
// of the runs. What no run measured is missing, and said to be.
func Estimate(p Premise, runs []*Results) []Outlook {
	hosts, byHost := gather(runs)
	var all []Outlook
	for _, host := range hosts {
		g := byHost[host]
		o := Outlook{Premise: p, Host: host, Systems: g.names, Rules: slices.Clone(rules), Missing: g.unused}
		for _, name := range g.names {
			o.Missing = append(o.Missing, g.systems[name].missing(name)...)
		}
		o.Rows = rows(p, g)
		for _, users := range reaches {
			o.Reach = append(o.Reach, reachOf(p, users, g))
		}
		all = append(all, o)
	}
	return all
}

// missing names what was not measured.
func (in *inputs) missing(target string) (all []string) {
	for _, one := range []struct {
		gone bool
		what string
	}{
		{in.day == nil && (in.visit == nil || in.op == nil), "CPU a day: a disk run, or a storm and a mix, on a system that tells the CPU of processes"},
		{in.memory == nil, "memory: any run whose processes are watched"},
		{in.record == nil, "database: a run on a server that it has started"},
		{in.day == nil && in.lone == nil, "written a day: a disk run"},
		{in.restart == nil, "after a restart: a storm"},
	} {
		if one.gone {
			all = append(all, target+": "+one.what)
		}
	}
	return all
}

// needs are the figures of one system for a number of users; NaN stands for what
// is missing.
type needs struct {
	cpu, memory, data, written, wire, link, restart [2]float64 // low and high
	beyond                                          float64    // by how much there are more devices than measured
}

var unknown = [2]float64{math.NaN(), math.NaN()}

func both(value float64) [2]float64 { return [2]float64{value, value} }

// needs computes them.
func (in *inputs) needs(p Premise) needs {
	n := needs{cpu: unknown, memory: unknown, data: unknown, written: unknown, wire: unknown, link: unknown, restart: unknown, beyond: math.NaN()}
	users, devices := float64(p.Users), float64(p.Users)*p.Devices
	for i, connections := range [2]int{p.FewConnections, p.ManyConnections} {
		switch {
		case in.day != nil && in.day.connections > 0:
			n.cpu[i] = users * in.day.cpu * float64(connections) / in.day.connections
		case in.visit != nil && in.op != nil:
			n.cpu[i] = users * (float64(connections)**in.visit + float64(p.Saves)**in.op)
		}
		switch {
		case in.day != nil && in.day.connections > 0 && in.day.written > 0:
			n.written[i] = users * in.day.written * float64(connections) / in.day.connections
		case in.lone != nil:
			n.written[i] = users * float64(p.Saves) * *in.lone
		}
	}
	if in.record != nil {
		n.data = both(users*float64(p.Records)**in.record + in.log)
	}
	if in.memory != nil && in.record != nil {
		further, own := max(0, devices-in.memory.devices), in.memory.bytes
		if in.more != nil {
			own += further * *in.more
		} else {
			own += further * own / in.memory.devices
		}
		n.memory = [2]float64{systemLow + own, systemHigh + own + n.data[1]}
	}
	if s := in.restart; s != nil {
		n.restart = both(devices * max(s.seconds, s.cpu/p.Cores))
		n.wire = both(devices * s.bytes)
		n.link = both(devices * s.bytes * 8 / p.Link)
		n.beyond = devices / s.devices
	}
	return n
}

// rows are the figures of all systems side by side.
func rows(p Premise, g *gathered) []Expectation {
	all := []struct {
		figure, unit string
		of           func(needs) [2]float64
		text         func(float64) string
	}{
		{"CPU a day", "s", func(n needs) [2]float64 { return n.cpu }, timeText},
		{"CPU a day, of all there is", "%", func(n needs) [2]float64 { return part(n.cpu, p.Cores*secondsOfDay) }, percentText},
		{"Memory with the operating system", "bytes", func(n needs) [2]float64 { return n.memory }, sizeText},
		{"Database", "bytes", func(n needs) [2]float64 { return n.data }, sizeText},
		{"Written to disk a day", "bytes", func(n needs) [2]float64 { return n.written }, sizeText},
		{"Loaded after a restart", "bytes", func(n needs) [2]float64 { return n.wire }, sizeText},
		{"That on the link", "s", func(n needs) [2]float64 { return n.link }, timeText},
		{"All devices ready after a restart", "s", func(n needs) [2]float64 { return n.restart }, timeText},
	}
	rows := make([]Expectation, 0, len(all))
	for _, one := range all {
		row := Expectation{Figure: one.figure, Unit: one.unit}
		for _, name := range g.names {
			row.Cells = append(row.Cells, rangeOf(one.of(g.systems[name].needs(p)), one.text))
		}
		rows = append(rows, row)
	}
	return rows
}

// part is a range as percents of a whole.
func part(of [2]float64, whole float64) [2]float64 {
	return [2]float64{of[0] / whole * 100, of[1] / whole * 100}
}

func rangeOf(of [2]float64, text func(float64) string) Range {
	if math.IsNaN(of[0]) || math.IsNaN(of[1]) {
		return Range{Missing: true, Text: "not measured"}
	}
	r := Range{Low: short(of[0]), High: short(of[1]), Text: text(of[0])}
	if high := text(of[1]); high != r.Text {
		r.Text += " to " + high
	}
	return r
}

// reachOf tells how well a number of users fits.
func reachOf(p Premise, users int, g *gathered) Reach {
	p.Users = users
	reach := Reach{Users: users}
	for _, name := range g.names {
		reach.Cells = append(reach.Cells, fitOf(p, g.systems[name].needs(p)))
	}
	return reach
}

func fitOf(p Premise, n needs) ReachCell {
	had := margin{
		cpu: n.cpu[1] / (p.Cores * secondsOfDay), memory: n.memory[1] / float64(p.Memory),
		restart: max(n.restart[1], n.link[1]), beyond: n.beyond,
	}
	if had.unknown() {
		return ReachCell{Fit: FitUntried, Why: "not all of it was measured"}
	}
	why := fmt.Sprintf("CPU %s, memory %s, %s after a restart, %s times the devices that were measured",
		percentText(had.cpu*100), percentText(had.memory*100), timeText(had.restart), significant(had.beyond))
	switch {
	case had.within(roomy):
		return ReachCell{FitWell, why}
	case had.within(likely):
		return ReachCell{FitLikely, why}
	}
	return ReachCell{FitUntried, why}
}

// unknown reports whether anything of it is missing.
func (m margin) unknown() bool { return math.IsNaN(m.cpu + m.memory + m.restart + m.beyond) }

func (m margin) within(most margin) bool {
	return m.cpu <= most.cpu && m.memory <= most.memory && m.restart <= most.restart && m.beyond <= most.beyond
}

// timeText, sizeText and percentText write figures of an estimate: two digits, as
// more would pretend to be exact.
func timeText(s float64) string {
	if s >= 120 {
		return twoDigits(s/60) + " min"
	}
	return twoDigits(s) + " s"
}

func sizeText(bytes float64) string {
	switch {
	case bytes >= 1<<30:
		return twoDigits(bytes/(1<<30)) + " GiB"
	case bytes >= 1<<20:
		return twoDigits(bytes/(1<<20)) + " MiB"
	}
	return twoDigits(bytes/(1<<10)) + " KiB"
}

func percentText(share float64) string { return twoDigits(share) + " %" }

func twoDigits(f float64) string {
	if f == 0 {
		return "0"
	}
	unit := math.Pow(10, math.Floor(math.Log10(math.Abs(f)))-1)
	rounded := math.Round(f/unit) * unit
	digits := max(0, int(-math.Floor(math.Log10(unit))))
	return fmt.Sprintf("%.*f", digits, rounded)
}
