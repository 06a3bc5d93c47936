// Package watch looks at processes from outside while they are measured: what
// CPU, memory, storage and turns the kernel accounts them; and at the machine:
// what everybody else does on it, and how fast its memory and disk are at the
// moment.
//
// It is for Linux, and reads /proc. Elsewhere it runs too, and says of each
// process that nothing is measured.
package watch

import (
	"context"
	"fmt"
	"os"
	"sync"
	"time"

	"pepvault/bench/limit"
	"pepvault/bench/report"
)

// Interval is how often Run looks.
const Interval = 500 * time.Millisecond

// familyLooks is how many looks share one search for children: that reads of
// every process of the machine.
const familyLooks = 4

// Sink takes what was seen; a report.Recorder is one.
type Sink interface {
	Since() time.Duration
	Process(report.Process)
	Noise(report.Noise)
}

// Watcher looks at a set of processes. Its methods may be called by any
// goroutine; looks do not overlap.
type Watcher struct {
	sink   Sink
	proc   procfs
	sleep  func(time.Duration)              // of the beat
	limits func() map[string]limit.Throttle // of the own process's control groups; nil: none
	beat   beat

	mu     sync.Mutex
	looks  int
	held   held
	groups []*group // one for each name
}

// New returns a Watcher that watches the process that it is part of, as
// report.Generator.
func New(sink Sink) *Watcher {
	w := newWatcher(sink, "/proc")
	w.sleep, w.limits = sleepExactly, limit.Own
	return w
}

func newWatcher(sink Sink, proc procfs) *Watcher {
	w := &Watcher{sink: sink, proc: proc, sleep: time.Sleep}
	// On a system without /proc there is nothing to fail.
	_ = w.Add(report.Generator, os.Getpid(), false)
	return w
}

// Add watches a process, and its children of any depth if family is set. The
// same name may be given to several processes, also to the successor of one
// that has ended: they are counted together. It fails if there is no such
// process.
func (w *Watcher) Add(name string, pid int, family bool) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	g := w.group(name)
	if !w.proc.usable() {
		g.blind = true
		return nil
	}
	m, err := w.proc.member(pid)
	if err != nil {
		return fmt.Errorf("watch %s: %w", name, err)
	}
	g.join(pid, m, m.cpu())
	g.members[pid].family = family
	if family {
		g.adopt(w.proc, w.proc.parents(), true)
	}
	return nil
}

func (w *Watcher) group(name string) *group {
	for _, g := range w.groups {
		if g.name == name {
			return g
		}
	}
	g := &group{name: name, members: make(map[int]*member)}
	w.groups = append(w.groups, g)
	return g
}

// Run looks at each Interval until ctx ends, and once more then. Meanwhile it
// measures how long the own process waits for its turn.
func (w *Watcher) Run(ctx context.Context) {
	var beating sync.WaitGroup
	beating.Go(func() { w.beat.run(ctx, w.sleep) })
	defer beating.Wait()
	ticks := time.NewTicker(Interval)
	defer ticks.Stop()
	for {
		w.Look()
		select {
		case <-ticks.C:
		case <-ctx.Done():
			w.Look()
			return
		}
	}
}

// Look looks at all of them now, beside what Run does: at the ends of a phase,
// so that its figures do not depend on when the last look was. It takes some
// milliseconds.
func (w *Watcher) Look() {
	w.mu.Lock()
	defer w.mu.Unlock()
	var parents map[int]int
	if w.looks%familyLooks == 0 && w.hasFamily() {
		parents = w.proc.parents()
	}
	w.looks++
	if w.limits != nil {
		w.held.look(w.limits())
	}
	var ours time.Duration
	for _, g := range w.groups {
		if !g.blind {
			g.adopt(w.proc, parents, false)
			g.look(w.proc)
			ours += g.sinceWatched()
		}
		w.sink.Process(w.process(g))
	}
	if n, err := w.proc.noise(); err == nil {
		n.At = w.sink.Since()
		n.Others = max(n.Busy-ours, 0)
		w.sink.Noise(n)
	}
}

// Now is what all of them have used until now, by name; the sink is not told. New
// children are found by the looks alone. It takes some milliseconds.
func (w *Watcher) Now() map[string]report.Process {
	w.mu.Lock()
	defer w.mu.Unlock()
	all := make(map[string]report.Process, len(w.groups))
	for _, g := range w.groups {
		if !g.blind {
			g.look(w.proc)
		}
		all[g.name] = w.process(g)
	}
	return all
}

// process is what was seen last of a group; of the own process, how long it
// waited, too.
func (w *Watcher) process(g *group) report.Process {
	p := g.process(w.sink.Since())
	if g.name == report.Generator {
		p.Beats, p.Waited = w.beat.count.Load(), time.Duration(w.beat.waited.Load())
		p.Periods, p.Throttled = w.held.sum.Periods, w.held.sum.Throttled
	}
	return p
}

func (w *Watcher) hasFamily() bool {
	for _, g := range w.groups {
		for _, m := range g.members {
			if m.family {
				return true
			}
		}
	}
	return false
}
