package report

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// wireFactor is what a record takes on the wire for each byte of its ciphertext:
// base64 makes 4 of 3, and its element has a name, an id and a key version.
const wireFactor = 1.45

// inputs are the measured figures of one target; nil stands for what was not
// measured.
type inputs struct {
	day     *perUserDay
	visit   *float64 // CPU seconds of a connection with a load
	op      *float64 // CPU seconds of an operation of the mix, or of a save alone
	record  *float64 // bytes of the database
	log     float64  // bytes
	lone    *float64 // bytes written by a save
	memory  *peak
	more    *float64 // bytes of memory for each further device
	restart *restart
}

// perUserDay is a replayed day, divided by its users.
type perUserDay struct{ cpu, connections, written float64 }

// peak is the highest memory, and for how many devices.
type peak struct{ bytes, devices float64 }

// restart is a storm, divided by its devices.
type restart struct {
	devices float64 // that there were
	seconds float64 // until all were ready
	cpu     float64
	bytes   float64 // on the wire
	way     string
}

// takes tells which storm stands for a restart: one whose devices keep their
// place in the vault, as real ones do.
func (in *inputs) takes(storm restart) bool {
	return in.restart == nil || in.restart.way != "sync" && storm.way == "sync"
}

// read takes in all that a run has to say about a target.
func (in *inputs) read(r *Results, target string) {
	t := r.target(target, r.rounds(target))
	work := r.Environment.Work
	devices := float64(work.Users * work.Devices)
	in.readMemory(t, devices)
	in.readSteps(r, target)
	keepMost(&in.record, t.Record)
	switch {
	case work.Name == "storm":
		in.readStorm(r, target, devices)
	case work.Name == "mix" || work.Name == "max":
		in.readLoad(r, target)
	case t.Disk != nil:
		in.readDisk(t.Disk)
	}
}

// keepMost keeps the larger of two figures, of which either may be missing.
func keepMost(to **float64, of *Spread) {
	if of != nil && (*to == nil || **to < of.Median) {
		value := of.Median
		*to = &value
	}
}

// counts reports whether a process is part of what a target costs: with the
// server's own PEP the service stands idle beside it.
func counts(process, target string) bool {
	return process != Generator && !(target == "pep" && process == Service)
}

func (in *inputs) readMemory(t Target, devices float64) {
	total := 0.0
	for name, cost := range t.Costs {
		if counts(name, t.Name) {
			total += float64(cost.Peak)
		}
	}
	if total > 0 && (in.memory == nil || total > in.memory.bytes) {
		in.memory = &peak{total, devices}
	}
}

// readSteps learns from the people of a capacity run what a device more takes:
// between the fewest and the most that a server was fast for.
func (in *inputs) readSteps(r *Results, target string) {
	first := make(map[Size]CapacityStep)
	for _, step := range r.Steps {
		if step.Target != target || step.Result != Fast {
			continue
		}
		fewest, found := first[step.Size]
		if !found || step.Devices < fewest.Devices {
			first[step.Size] = step
			continue
		}
		if devices := step.Devices - fewest.Devices; devices > 0 {
			keepMost(&in.more, &Spread{Median: float64(step.Memory-fewest.Memory) / float64(devices)})
		}
	}
}

func (in *inputs) readStorm(r *Results, target string, devices float64) {
	rounds := r.rounds(target)
	ready := over(rounds, func(one round) (float64, bool) {
		if one.kinds[Ready] == nil {
			return 0, false
		}
		return quantile(one.kinds[Ready].latency, 100)
	})
	bytes := over(rounds, func(one round) (float64, bool) {
		if one.kinds[Download] == nil {
			return 0, false
		}
		return float64(one.kinds[Download].bytes), true
	})
	cpu := over(rounds, func(one round) (float64, bool) { return cpuOf(one, target) })
	if ready == nil || bytes == nil {
		return
	}
	storm := restart{devices: devices, seconds: ready.Median / 1000 / devices, bytes: bytes.Median * wireFactor / devices, way: r.Environment.Work.Download}
	if cpu != nil {
		storm.cpu = cpu.Median / devices
	}
	if in.takes(storm) {
		in.restart = &storm
		if cpu != nil {
			in.visit = &storm.cpu
		}
	}
}

// cpuOf is what a target cost in a phase, in seconds.
func cpuOf(one round, target string) (total float64, found bool) {
	for name, u := range one.costs {
		if counts(name, target) {
			total, found = total+u.cpu().Seconds(), true
		}
	}
	return total, found
}

// readLoad takes the CPU of an operation; that of saves alone is the better one
// for saves.
func (in *inputs) readLoad(r *Results, target string) {
	only := r.Environment.Work.Only
	if only != "" && only != Save || in.op != nil && only == "" {
		return
	}
	each := over(r.rounds(target), func(one round) (float64, bool) {
		cpu, found := cpuOf(one, target)
		return cpu / one.ops(), found && one.ops() > 0
	})
	if each != nil {
		in.op = &each.Median
	}
}

func (in *inputs) readDisk(d *Disk) {
	if d.Lone != nil && d.Lone.All != nil {
		in.lone = &d.Lone.All.Median
	}
	if d.Log != nil {
		in.log = max(in.log, d.Log.Median)
	}
	if day := d.Day; day != nil && day.CPU != nil && day.Users > 0 {
		users := float64(day.Users)
		in.day = &perUserDay{cpu: day.CPU.Median / users, connections: float64(day.Connections) / users}
		if day.Written != nil {
			in.day.written = day.Written.Median / users
		}
	}
}

// hostLabel names a host and what was set on it.
func hostLabel(h Host) string {
	label := h.Version
	if label == "" {
		label = h.Name
	}
	var set []string
	for _, name := range slices.Sorted(maps.Keys(h.Settings)) {
		if value := h.Settings[name]; value != "default" && value != "" {
			set = append(set, strings.ReplaceAll(name, "_", " ")+" "+value)
		}
	}
	if len(set) == 0 {
		return label
	}
	return label + " (" + strings.Join(set, "; ") + ")"
}

// gather sorts runs by host and target; what can't be used is named.
func gather(runs []*Results) (hosts []string, byHost map[string]*gathered) {
	byHost = make(map[string]*gathered)
	for _, r := range runs {
		label := hostLabel(r.Environment.Host)
		g := byHost[label]
		if g == nil {
			g = &gathered{systems: make(map[string]*inputs)}
			byHost[label] = g
			hosts = append(hosts, label)
		}
		if r.Verdict == nil || !r.Verdict.OK {
			g.unused = append(g.unused, fmt.Sprintf("the run %s of %s failed or was cut off: its figures are not used",
				r.Environment.Work.Name, r.Environment.Date.Format(time.DateTime)))
			continue
		}
		for _, target := range r.Environment.Targets {
			if target == "echo" {
				continue
			}
			if g.systems[target] == nil {
				g.systems[target] = &inputs{}
				g.names = append(g.names, target)
			}
			g.systems[target].read(r, target)
		}
	}
	return hosts, byHost
}

// gathered is what is known of one host.
type gathered struct {
	names   []string // of targets, in their order
	systems map[string]*inputs
	unused  []string
}
