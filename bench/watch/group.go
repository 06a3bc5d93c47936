package watch

import (
	"time"

	"pepvault/bench/report"
)

// group is the processes that one name stands for.
type group struct {
	name    string
	blind   bool // nothing can be measured
	members map[int]*member
	gone    counters // of those that have ended, as last seen
	peak    int64    // highest sum of resident memory of all
}

// member is one process.
type member struct {
	counters
	start    int64 // when it began, in ticks since boot: tells a reused pid
	resident int64
	peak     int64
	refused  bool // its storage counters may not be read
	family   bool // its children are watched, too
	zombie   bool
	turns    map[int]turns // by thread
}

// counters only grow.
type counters struct {
	user, system    time.Duration
	read, written   int64
	yielded, forced int64
	before          time.Duration // CPU that it had when watching began
}

// turns are a thread's context switches.
type turns struct{ yielded, forced int64 }

func (c counters) cpu() time.Duration { return c.user + c.system }

func (c *counters) add(o counters) {
	c.user += o.user
	c.system += o.system
	c.read += o.read
	c.written += o.written
	c.yielded += o.yielded
	c.forced += o.forced
	c.before += o.before
}

// join takes a process in, with the CPU that it had before it was watched.
func (g *group) join(pid int, m *member, before time.Duration) {
	if old := g.members[pid]; old != nil && old.start == m.start {
		return
	} else if old != nil {
		g.gone.add(old.counters)
	}
	m.before = before
	g.members[pid] = m
}

// adopt takes in the children of those whose family is watched. What they used
// before the first search belongs to the time before watching; later ones were
// born since.
func (g *group) adopt(proc procfs, parents map[int]int, first bool) {
	for grown := len(parents) > 0; grown; {
		grown = false
		for pid, parent := range parents {
			elder := g.members[parent]
			if elder == nil || !elder.family || g.members[pid] != nil {
				continue
			}
			m, err := proc.member(pid)
			if err != nil {
				continue // it has ended since
			}
			before := time.Duration(0)
			if first {
				before = m.cpu()
			}
			m.family = true
			g.join(pid, m, before)
			grown = true
		}
	}
}

// look reads all members again, and drops those that have ended.
func (g *group) look(proc procfs) {
	var resident int64
	for pid, m := range g.members {
		if !proc.read(pid, m) {
			g.gone.add(m.counters)
			delete(g.members, pid)
			continue
		}
		resident += m.resident
	}
	g.peak = max(g.peak, resident)
}

// sinceWatched is the CPU that the group had since it is watched.
func (g *group) sinceWatched() time.Duration {
	total := g.gone.cpu() - g.gone.before
	for _, m := range g.members {
		total += m.cpu() - m.before
	}
	return total
}

// process is what was seen last.
func (g *group) process(at time.Duration) report.Process {
	p := report.Process{At: at, Name: g.name, Peak: g.peak}
	if g.blind {
		p.Count, p.Unmeasured = 1, []string{"cpu", "memory", "storage", "switches"}
		return p
	}
	total := g.gone
	refused := false
	for _, m := range g.members {
		total.add(m.counters)
		if !m.zombie {
			p.Count++
		}
		p.Resident += m.resident
		refused = refused || m.refused
		if len(g.members) == 1 { // the kernel misses no moment
			p.Peak = max(p.Peak, m.peak)
		}
	}
	p.User, p.System = total.user, total.system
	p.Read, p.Written = total.read, total.written
	p.Yielded, p.Forced = total.yielded, total.forced
	if refused {
		p.Unmeasured = []string{"storage"}
		p.Read, p.Written = 0, 0
	}
	g.peak = p.Peak
	return p
}
