package runner

import (
	"context"
	"errors"
	"fmt"

	"pepvault/bench/fleet"
	"pepvault/bench/limit"
	"pepvault/bench/report"
	"pepvault/bench/workload"
	"pepvault/pep/wire"
)

const (
	// comeWidth is how many devices log in at once: each comes when one before it
	// is there, so they come as fast as the server lets them.
	comeWidth = 8
	// seedPeople is how many vaults are made and filled at once. ejabberd makes
	// nodes only one after the other: see seed.
	seedPeople = 16
)

// Site is a server that was started for people of one target. All but Close are
// called by one goroutine.
type Site struct {
	Host fleet.Host
	// Lift takes the limits of CPU and of memory away, or puts them back; nil: the
	// site has none.
	Lift func(cpu, memory bool) error
	// Usage tells what host and service have used; nil without limits.
	Usage func() (limit.Usage, error)
	// Restart ends host and service and starts them again on their data.
	Restart func(ctx context.Context) error
	Close   func()
	// OneByOne has the vaults made one after the other.
	OneByOne bool
}

// crowd is the people of one target on a server of one size. It is a run of its
// own, whose only target is that one.
type crowd struct {
	*run
	site  *Site
	size  report.Size
	steps *int  // all steps so far, of every crowd
	part  int   // of the plan
	kills int64 // before the present step
	here  int   // people whose devices are connected
	taken []report.CapacityStep
	// stale says that the last step was not fast: what comes next begins anew, as
	// it may have left memory behind. broken says that host or service, or
	// connections to them, did not live through it.
	stale, broken bool
}

// capacity finds out for each size and target how many people are fast.
func (r *run) capacity(ctx context.Context) error {
	steps := 0
	machine := r.Recorder.Environment().Machine
	for _, size := range r.Work.Sizes {
		for _, target := range r.Targets {
			if why := size.Unmeasurable(machine); why != "" {
				r.Say("%s, %s: not measured: %s", target.Name, size, why)
				r.Recorder.Capacity(report.Capacity{Target: target.Name, Size: size, Unmeasured: why})
				continue
			}
			if err := r.people(ctx, target, size, &steps); err != nil {
				return fmt.Errorf("%s, %s: %w", target.Name, size, err)
			}
		}
	}
	return nil
}

// people searches on a server of its own, which is verified at the end.
func (r *run) people(ctx context.Context, target fleet.Target, size report.Size, steps *int) error {
	site, err := r.Open(ctx, target, size)
	if err != nil {
		return err
	}
	defer site.Close()
	alone := &run{Options: r.Options, shape: r.shape, way: r.way, round: 1}
	alone.Host, alone.Targets = site.Host, []fleet.Target{target}
	alone.ledgers = []*ledger{newLedger(r.shape)}
	alone.fleet = fleet.New(fleet.Options{
		Shape: r.shape, Host: site.Host, Targets: alone.Targets, UserPrefix: r.UserPrefix, Hear: alone.hear,
	})
	defer alone.fleet.Close()
	c := &crowd{run: alone, site: site, size: size, steps: steps}
	if err := c.search(ctx); err != nil {
		return alone.broken(0, err)
	}
	if err := c.confirm(ctx); err != nil {
		return err
	}
	outcome := report.Conclude(c.taken)
	r.Recorder.Capacity(outcome)
	r.Say("%s, %s: %s", target.Name, size, outcome.Sentence())
	return nil
}

// search tries numbers of people until the most that is fast is known.
func (c *crowd) search(ctx context.Context) error {
	up := ladder{most: c.shape.Users}
	for people, more := up.next(); more; people, more = up.next() {
		step, err := c.try(ctx, people)
		if err != nil {
			return err
		}
		c.taken = append(c.taken, step)
		c.Recorder.Step(step)
		c.tell(step)
		up.took(people, step.Result == report.Fast)
		if !c.broken && c.ledgers[0].unheard() > 0 { // lost: no figure is worth more time
			return nil
		}
	}
	return nil
}

// tell says how a step went.
func (c *crowd) tell(s report.CapacityStep) {
	text := string(s.Result)
	if s.Result != report.Fast {
		text += fmt.Sprintf(" (%s; short of: %s)", s.Why, s.Limit)
	}
	if s.Read.Count == 0 { // it did not come to that
		c.Say("%s, %s, %d people: %s", s.Target, s.Size, s.People, text)
		return
	}
	c.Say("%s, %s, %d people: %s; p95 save %.0f ms, seen %.0f ms, read %.0f ms, load %.0f ms; %.0f %% of a core, %d MiB",
		s.Target, s.Size, s.People, text, s.Save.P95, s.Seen.P95, s.Read.P95, s.Load.P95, 100*s.Used(), s.Memory>>20)
}

// confirm reads back what was acknowledged, without limits: it is no part of what
// is measured.
func (c *crowd) confirm(ctx context.Context) error {
	if err := c.lift(true, true); err != nil {
		return err
	}
	if c.broken {
		if err := c.again(ctx); err != nil {
			return err
		}
	}
	come := func(ctx context.Context, d *fleet.Device) error {
		if d.Connected() {
			return nil
		}
		return d.Connect(ctx)
	}
	if err := c.fleet.EachFrom(ctx, comeWidth, 0, c.seeded, 1, come); err != nil {
		return fmt.Errorf("to read back: %w", err)
	}
	return c.verify(ctx)
}

func (c *crowd) lift(cpu, memory bool) error {
	if c.site.Lift == nil {
		return nil
	}
	return c.site.Lift(cpu, memory)
}

// used is what the group has used; nothing without limits.
func (c *crowd) used() (limit.Usage, error) {
	if c.site.Usage == nil {
		return limit.Usage{}, nil
	}
	return c.site.Usage()
}

// leave has all but so many people go. When they come again, they may be told again.
func (c *crowd) leave(ctx context.Context, people int) error {
	if c.here <= people {
		return nil
	}
	err := c.fleet.EachFrom(ctx, connectWidth, people, c.here, c.shape.Devices, func(_ context.Context, d *fleet.Device) error {
		c.ledgers[0].left(d.User, d.Number)
		d.Leave()
		return nil
	})
	c.here = people
	return err
}

// again starts host and service anew: all devices have to come again.
func (c *crowd) again(ctx context.Context) error {
	if err := c.leave(ctx, 0); err != nil {
		return err
	}
	if err := c.site.Restart(ctx); err != nil {
		return fmt.Errorf("to begin anew: %w", err)
	}
	c.stale, c.broken = false, false
	return nil
}

// gather has so many people there, all of whose devices listen and hold their
// vault; the limit of CPU is off meanwhile, as it is not this that is measured.
// Those who are too many leave. It returns how many devices have come, and what of
// the server's CPU that took in all.
func (c *crowd) gather(ctx context.Context, people int) (came int, cost limit.Usage, err error) {
	if err := c.lift(true, false); err != nil {
		return 0, cost, err
	}
	if err := c.leave(ctx, people); err != nil {
		return 0, cost, err
	}
	from, all := c.here, c.shape.Devices
	c.here = max(c.here, people) // also if not all of them get in
	each := func(devices int, do func(context.Context, *fleet.Device) error) error {
		return c.fleet.EachFrom(ctx, comeWidth, from, people, devices, do)
	}
	before, err := c.used()
	if err != nil {
		return 0, cost, err
	}
	if err := each(all, func(ctx context.Context, d *fleet.Device) error { return d.Connect(ctx) }); err != nil {
		return 0, cost, fmt.Errorf("log in: %w", err)
	}
	between, err := c.used()
	if err != nil {
		return 0, cost, err
	}
	if err := c.seedUpTo(ctx, people); err != nil {
		return 0, cost, fmt.Errorf("seed: %w", err)
	}
	seeded, err := c.used()
	if err != nil {
		return 0, cost, err
	}
	if err := each(all, func(_ context.Context, d *fleet.Device) error { return d.Announce(0) }); err != nil {
		return 0, cost, err
	}
	if err := each(all, listen); err != nil {
		return 0, cost, fmt.Errorf("listen: %w", err)
	}
	last, err := c.used()
	if err != nil {
		return 0, cost, err
	}
	if c.way == fleet.Sync && !c.Targets[0].PEP() {
		hold := func(ctx context.Context, d *fleet.Device) error {
			_, err := c.download(ctx, d, 0, fleet.Sync)
			return err
		}
		if err := each(all, hold); err != nil {
			return 0, cost, fmt.Errorf("load: %w", err)
		}
	}
	cost.CPU = between.CPU - before.CPU + last.CPU - seeded.CPU
	return max(people-from, 0) * all, cost, c.lift(false, false)
}

// seedUpTo makes and fills the vaults of the people who have none yet.
func (c *crowd) seedUpTo(ctx context.Context, people int) error {
	if people <= c.seeded {
		return nil
	}
	from := c.Recorder.Since()
	width := seedPeople
	if c.site.OneByOne {
		width = 1
	}
	prepare := func(ctx context.Context, d *fleet.Device) error {
		err := d.Prepare(ctx, 0)
		var refusal *wire.StanzaError
		if errors.As(err, &refusal) && refusal.Condition == "conflict" {
			return nil // made in a step in which the server broke, and by nobody else
		}
		return err
	}
	if err := c.fleet.EachFrom(ctx, width, c.seeded, people, 1, prepare); err != nil {
		return err
	}
	fill := func(ctx context.Context, d *fleet.Device) error { return d.Fill(ctx, 0, seedWidth) }
	if err := c.fleet.EachFrom(ctx, seedPeople, c.seeded, people, 1, fill); err != nil {
		return err
	}
	c.Say("%s, %s: %d vaults of %d records seeded in %s", c.Targets[0].Name, c.size, people-c.seeded, c.shape.Records, (c.Recorder.Since() - from).Round(1e6))
	c.seeded = people
	c.phase(0, report.PhaseSeed, from)
	return nil
}

// errNobody says that a server does not even carry the first people.
var errNobody = errors.New("not even the first people get in")

// peoplePlan is the work of so many people.
func (c *crowd) peoplePlan(people int) workload.Plan {
	shape := c.shape
	shape.Users = people
	return workload.Plan{Shape: shape, Mix: workload.PeopleMix, Part: c.part}
}
