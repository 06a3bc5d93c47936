package runner

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"pepvault/bench/fleet"
	"pepvault/bench/report"
	"pepvault/bench/workload"
)

const (
	// restTime is how long nothing may be written before a part is over: a
	// service that cleans up behind itself begins when it had a second's rest.
	restTime = 1500 * time.Millisecond
	// restPatience is how long that is waited for.
	restPatience = 20 * time.Second
	restLook     = 100 * time.Millisecond
	// dayWidth is how many users have their day at once.
	dayWidth = 8
)

// disk counts what a target writes: for lone saves, under load, and in a day of
// its users. Each count goes on until nothing is written any more.
func (r *run) disk(ctx context.Context, target int) error {
	if err := r.hold(ctx, target); err != nil {
		return err
	}
	plan := &saves{plan: workload.Plan{Shape: r.shape, Mix: workload.Mix{Save: 100}, Part: r.round}}
	for _, part := range []func(context.Context, int, *saves) error{r.lone, r.loaded, r.day} {
		if err := part(ctx, target, plan); err != nil {
			return err
		}
	}
	return nil
}

// saves are those of one target in one round: each has a version of its own.
type saves struct {
	plan workload.Plan
	next atomic.Int64
}

func (s *saves) take() workload.Op { return s.plan.Op(int(s.next.Add(1) - 1)) }

// lone saves a record, waits until nothing is written, and saves the next one.
func (r *run) lone(ctx context.Context, target int, plan *saves) error {
	r.settle(ctx)
	r.Look()
	from := r.Recorder.Since()
	for range r.Work.Lone {
		c := r.count(target, report.PartLone)
		r.do(ctx, plan.take(), moment{target, r.round, report.PartLone, time.Now()})
		c.saves = 1
		if err := c.end(ctx); err != nil {
			return err
		}
	}
	r.drain(ctx, target)
	r.phase(target, report.PartLone, from)
	r.Say("%s, round %d: %d lone saves, each until nothing was written any more", r.Targets[target].Name, r.round, r.Work.Lone)
	return ctx.Err()
}

// loaded keeps Outstanding saves under way for the time of the workload.
func (r *run) loaded(ctx context.Context, target int, plan *saves) error {
	r.Look()
	c := r.count(target, report.PartLoaded)
	before := r.ledgers[target].acknowledged()
	began, from := time.Now(), r.Recorder.Since()
	end := began.Add(r.Work.Duration)
	var workers sync.WaitGroup
	for range max(r.Work.Outstanding, 1) {
		workers.Go(func() {
			for ctx.Err() == nil && time.Now().Before(end) {
				r.do(ctx, plan.take(), moment{target, r.round, report.PhaseSteady, time.Now()})
			}
		})
	}
	workers.Wait()
	r.phase(target, report.PhaseSteady, from)
	c.took = time.Since(began)
	r.drain(ctx, target)
	c.saves = int64(r.ledgers[target].acknowledged() - before)
	r.Say("%s, round %d: %d saves in %s", r.Targets[target].Name, r.round, c.saves, took(began))
	return c.end(ctx)
}

// day has everybody leave and then do what they do in a day, without its pauses:
// devices come, load what they lack, save at times, and go.
func (r *run) day(ctx context.Context, target int, plan *saves) error {
	if err := r.leave(ctx); err != nil {
		return err
	}
	r.settle(ctx)
	r.Look()
	c := r.count(target, report.PartDay)
	before := r.ledgers[target].acknowledged()
	began, from := time.Now(), r.Recorder.Since()
	var visits atomic.Int64
	err := r.fleet.EachUser(ctx, dayWidth, func(ctx context.Context, d *fleet.Device) error {
		for _, visit := range r.shape.Day(d.User, r.round) {
			if err := r.visit(ctx, r.fleet.Device(d.User, visit.Device), target, visit.Saves, plan); err != nil {
				return fmt.Errorf("device %d: %w", visit.Device, err)
			}
			visits.Add(1)
		}
		return nil
	})
	if err != nil {
		return err
	}
	c.took, c.connections = time.Since(began), visits.Load()
	c.saves = int64(r.ledgers[target].acknowledged() - before)
	r.phase(target, report.PartDay, from)
	r.Say("%s, round %d: a day of %d users, %d connections and %d saves, in %s",
		r.Targets[target].Name, r.round, r.shape.Users, c.connections, c.saves, took(began))
	if err := c.end(ctx); err != nil {
		return err
	}
	return r.arrive(ctx)
}

// visit is one connection of a day.
func (r *run) visit(ctx context.Context, d *fleet.Device, target, count int, plan *saves) error {
	ctx, cancel := context.WithTimeout(ctx, r.Timeout)
	defer cancel()
	m := moment{target, r.round, report.PartDay, time.Now()}
	if err := r.connect(ctx, d, m); err != nil {
		return err
	}
	defer d.Leave()
	if err := d.Announce(target); err != nil {
		return err
	}
	asked := time.Now()
	m.planned = asked
	answer, err := r.download(ctx, d, target, r.way)
	r.record(report.Download, m, asked, answer, err)
	if err != nil {
		return err
	}
	for range count {
		op := plan.take()
		m.planned = time.Now()
		s := r.ledgers[target].send(d.User, op.Record, op.Version, 0, m)
		answer, err := d.Save(ctx, target, op.Record, op.Version)
		r.ledgers[target].answer(d.User, s, outcomeOf(err))
		r.record(report.Save, m, m.planned, answer, err)
	}
	if r.Targets[target].PEP() {
		return nil
	}
	return d.Listening(ctx) // what a service does for a new device belongs to the day
}

// leave has all devices go. What they were told of so far, they may be told of
// again when they come back.
func (r *run) leave(ctx context.Context) error {
	return r.fleet.Each(ctx, connectWidth, func(_ context.Context, d *fleet.Device) error {
		d.Leave()
		for _, l := range r.ledgers {
			l.left(d.User, d.Number)
		}
		return nil
	})
}

// arrive has all devices come back and listen to all targets.
func (r *run) arrive(ctx context.Context) error {
	return r.fleet.Each(ctx, connectWidth, func(ctx context.Context, d *fleet.Device) error {
		if err := d.Connect(ctx); err != nil {
			return err
		}
		for target := range r.Targets {
			if err := d.Announce(target); err != nil {
				return err
			}
		}
		return listen(ctx, d)
	})
}

// count is a count of written bytes under way.
type count struct {
	r                  *run
	target             int
	part               string
	before             map[string]report.Process
	data, log          int64
	began              time.Time
	took               time.Duration // 0 = until end is called
	saves, connections int64
}

func (r *run) count(target int, part string) *count {
	c := &count{r: r, target: target, part: part, before: r.usage(), began: time.Now()}
	c.data, c.log = r.size(target)
	return c
}

// end waits until nothing is written any more, and records what was.
func (c *count) end(ctx context.Context) error {
	r := c.r
	if c.took == 0 {
		c.took = time.Since(c.began)
	}
	_, longest := r.size(c.target) // a service at rest may cut its log off
	settled := r.settle(ctx)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	w := report.Writes{
		At: r.Recorder.Since(), Target: r.Targets[c.target].Name, Round: r.round, Part: c.part,
		Saves: c.saves, Connections: c.connections, Took: c.took, Settled: settled,
		Written: make(map[string]int64), CPU: make(map[string]time.Duration),
	}
	for name, p := range r.usage() {
		before := c.before[name]
		w.CPU[name] = p.User + p.System - before.User - before.System
		if slices.Contains(p.Unmeasured, "storage") {
			w.Unmeasured = append(w.Unmeasured, name)
			continue
		}
		w.Written[name] = p.Written - before.Written
	}
	slices.Sort(w.Unmeasured)
	data, log := r.size(c.target)
	w.Grown, w.LogGrown, w.Log = data-c.data, log-c.log, max(log, longest)
	r.Recorder.Writes(w)
	return nil
}

// settle waits until nothing was written for restTime; it is false if that does
// not happen.
func (r *run) settle(ctx context.Context) bool {
	written := func() (all int64) {
		for _, p := range r.usage() {
			all += p.Written
		}
		return all
	}
	began, last := time.Now(), written()
	for since := began; time.Since(since) < restTime; {
		if time.Since(began) > restPatience || !waitUntil(ctx, time.Now().Add(restLook)) {
			return false
		}
		if now := written(); now != last {
			last, since = now, time.Now()
		}
	}
	return true
}

// usage is of all watched processes but the generator.
func (r *run) usage() map[string]report.Process {
	if r.Usage == nil {
		return nil
	}
	all := r.Usage()
	delete(all, report.Generator)
	return all
}

func (r *run) size(target int) (data, log int64) {
	if r.Size == nil {
		return 0, 0
	}
	return r.Size(r.Targets[target].Name)
}
