package runner

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"pepvault/bench/limit"
	"pepvault/bench/report"
)

// memoryEvery is how often the memory of a site is looked at.
const memoryEvery = 250 * time.Millisecond

// try measures one number of people. The error says that the run can't go on; a
// server that breaks is a result.
func (c *crowd) try(ctx context.Context, people int) (report.CapacityStep, error) {
	*c.steps++
	c.part++
	c.round = *c.steps
	s := report.CapacityStep{
		Target: c.Targets[0].Name, Size: c.size, Step: *c.steps, People: people,
		Devices: people * c.shape.Devices, Records: c.shape.Records,
	}
	if c.stale {
		if err := c.lift(true, false); err != nil {
			return s, err
		}
		if err := c.again(ctx); err != nil {
			return s, err
		}
	}
	before, err := c.used()
	if err != nil {
		return s, err
	}
	c.kills = before.Kills
	watched := c.watchMemory(ctx)
	failure := c.measure(ctx, &s)
	s.Memory = watched()
	after, err := c.used()
	if err != nil || ctx.Err() != nil {
		return s, firstOf(ctx.Err(), err)
	}
	s.Kills = after.Kills - before.Kills
	c.Recorder.Measure(&s)
	s.Judge(c.FastWithin, c.Recorder.Environment().Machine.Cores)
	if failure != nil && s.Kills == 0 {
		if len(c.taken) == 0 {
			return s, fmt.Errorf("%w: %w", errNobody, failure)
		}
		s.Result, s.Why, s.Limit = report.StepFailed, failure.Error(), report.AtUnknown
	}
	c.stale = s.Result != report.Fast
	if failure != nil || s.Kills > 0 || s.Errors[report.Lost] > 0 {
		c.broken = true
		c.ledgers[0].excuse() // what was lost with connections is nobody's fault
	}
	return s, nil
}

func firstOf(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// measure gathers the people and lets them work. The error says why that could not
// be done.
func (c *crowd) measure(ctx context.Context, s *report.CapacityStep) error {
	began := time.Now()
	came, cost, err := c.gather(ctx, s.People)
	if err != nil {
		return err
	}
	if came > 0 {
		s.LogIn = float64(cost.CPU.Microseconds()) / 1000 / float64(came)
		c.Say("%s, %s: %d devices connected and listening, %s later", s.Target, c.size, s.Devices, took(began))
	}
	return c.work(ctx, s)
}

// work is the load: at random moments, each sent when it is due.
func (c *crowd) work(ctx context.Context, s *report.CapacityStep) error {
	began, since := time.Now(), c.Recorder.Since()
	steady, end := began.Add(c.Work.WarmUp), began.Add(c.Work.WarmUp+c.Work.Duration)
	s.From, s.To = since+c.Work.WarmUp, since+c.Work.WarmUp+c.Work.Duration
	var usage [2]limit.Usage // at the ends of what is measured
	var looks sync.WaitGroup
	for i, at := range []time.Time{steady, end} {
		looks.Go(func() {
			if waitUntil(ctx, at) {
				c.Look()
				usage[i], _ = c.used() // the next one says what is wrong
			}
		})
	}
	var flying sync.WaitGroup
	var undone atomic.Int64
	plan := c.peoplePlan(s.People)
	for _, op := range plan.Open(c.Work.Rate*float64(s.People), c.Work.WarmUp+c.Work.Duration) {
		due := began.Add(op.At)
		if !waitUntil(ctx, due) {
			break
		}
		m := moment{0, c.round, report.PhaseStep, due}
		if due.Before(steady) {
			m.phase = report.PhaseWarmUp
		}
		undone.Add(1)
		flying.Go(func() {
			c.do(ctx, op, m)
			undone.Add(-1)
		})
	}
	waitUntil(ctx, end)
	looks.Wait()
	// What was planned last has its own second, and one more, so that a single slow
	// answer does not decide.
	c.grace(ctx, end.Add(2*c.FastWithin), func() bool { return undone.Load() == 0 && c.ledgers[0].unheard() == 0 })
	s.Undone = int(undone.Load())
	flying.Wait()
	if s.Undone == 0 {
		s.Unheard = c.ledgers[0].unheard()
	}
	if u, err := c.used(); err == nil && u.Kills == c.kills { // there is somebody to send what is late
		c.drain(ctx, 0)
	}
	spent := c.Work.Duration.Seconds()
	s.Server = (usage[1].CPU - usage[0].CPU).Seconds() / spent
	if periods := usage[1].Periods - usage[0].Periods; periods > 0 {
		s.Throttled = float64(usage[1].Throttled-usage[0].Throttled) / float64(periods)
	}
	c.phase(0, report.PhaseStep, s.From)
	return ctx.Err()
}

// grace waits until all is done, but no longer than to that moment.
func (c *crowd) grace(ctx context.Context, until time.Time, done func() bool) {
	for !done() && time.Now().Before(until) && waitUntil(ctx, time.Now().Add(10*time.Millisecond)) {
	}
}

// watchMemory looks at the site's memory until the returned function is called,
// which tells the most that was seen; 0 without limits.
func (c *crowd) watchMemory(ctx context.Context) (most func() int64) {
	ctx, stop := context.WithCancel(ctx)
	var watching sync.WaitGroup
	highest := int64(0)
	watching.Go(func() {
		for {
			if u, err := c.used(); err == nil {
				highest = max(highest, u.Memory)
			}
			if !waitUntil(ctx, time.Now().Add(memoryEvery)) {
				return
			}
		}
	})
	return func() int64 {
		stop()
		watching.Wait()
		return highest
	}
}
