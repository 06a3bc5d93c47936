// Package runner carries out the workloads of the load lab: it seeds vaults,
// drives the devices of a fleet by a plan, records each operation from the
// moment that it was planned, and checks at the end that nothing was lost,
// changed, or told twice.
package runner

import (
	"context"
	"errors"
	"fmt"
	"time"

	"pepvault/bench/fleet"
	"pepvault/bench/report"
	"pepvault/bench/workload"
)

// ErrFailed says that a target did not do what it acknowledged; such a run has
// no figures.
var ErrFailed = errors.New("verification failed")

// ErrConnect says that a device could not log in before the work began.
var ErrConnect = errors.New("no connection")

// The workloads.
const (
	Mix      = "mix"      // open loop at a rate
	Max      = "max"      // closed loop
	Overload = "overload" // open loop far above what any target can do
	Storm    = "storm"    // all devices reconnect at once
	Restart  = "restart"  // the service restarts, while all devices stay connected
	Soak     = "soak"     // idle devices hear of saves at a low rate
	Disk     = "disk"     // what is written: for lone saves, under load, in a day
	Capacity = "capacity" // ever more people, up to what a server of some size keeps fast
)

// Names are all workloads.
var Names = []string{Mix, Max, Overload, Storm, Restart, Soak, Disk, Capacity}

const (
	connectWidth = 16 // devices that log in at once, outside of a storm
	seedUsers    = 8  // users whose vaults are filled at once
	seedWidth    = 8  // requests of each of them
	verifyWidth  = 8  // vaults that are read at once at the end
	// listenTimeout is how long a target may take at first to count a device as
	// interested; it doubles each time, and listenTries is how often.
	listenTimeout = 4 * time.Second
	listenTries   = 5
	// drainPatience is how long no awaited notification may come before the
	// rest count as lost.
	drainPatience = 10 * time.Second
)

// Options say what to run.
type Options struct {
	Work    report.Workload
	Host    fleet.Host
	Targets []fleet.Target
	// UserPrefix and a number from 0 are the local part of each account; a
	// storm needs one more account than it has users.
	UserPrefix string
	// Timeout is how long an operation may take before it counts as failed.
	Timeout  time.Duration
	Recorder *report.Recorder
	// CleanUp has the run delete the vaults that it has made.
	CleanUp bool
	// Look is called at the ends of each phase; nil = nothing.
	Look func()
	// Between is called before each round, and with round 0 behind the last
	// one, while no load runs; nil = nothing.
	Between func(ctx context.Context, round int)
	// Restart stops a target's service and starts it again; it returns when that
	// is attached. Only the workload of that name needs it.
	Restart func(ctx context.Context, target string) error
	// Usage is what the watched processes have used until now, by name. Only disk
	// needs it; nil = nothing is watched.
	Usage func() map[string]report.Process
	// Size is that of a target's database and of the log beside it. Only disk
	// needs it; nil = not known.
	Size func(target string) (data, log int64)
	// Open starts a server of a size with a target on it; only a run of capacity
	// needs it, and that uses it instead of Host.
	Open func(ctx context.Context, target fleet.Target, size report.Size) (*Site, error)
	// FastWithin is what capacity takes for fast; 0 = report.FastWithin.
	FastWithin time.Duration
	// Stored is called when a target's part of a round is over; nil = nothing.
	Stored func(target string, round int)
	// Say tells how it goes on; nil = nothing.
	Say func(format string, args ...any)
}

// run is a run under way.
type run struct {
	Options
	shape   workload.Shape
	fleet   *fleet.Fleet
	ledgers []*ledger // by target
	round   int       // the present one, from 1; also the part of the plan
	way     fleet.Way
	made    made
	seeded  int // of a run of capacity: the users that have a vault
}

// ShapeOf is the population of a workload: its devices, and those that only
// save in a soak.
func ShapeOf(w report.Workload) workload.Shape {
	return workload.Shape{Seed: w.Seed, Users: w.Users, Devices: w.Devices + writers(w), Records: w.Records, Bytes: w.RecordBytes}
}

// Run carries out a workload against each target in turn, as many rounds as it
// has. The error is ErrFailed if a target broke its word; any other means that
// the run could not be made.
func Run(ctx context.Context, o Options) error {
	r := &run{Options: o, shape: ShapeOf(o.Work), way: fleet.Way(o.Work.Download)}
	if r.Say == nil {
		r.Say = func(string, ...any) {}
	}
	if r.FastWithin == 0 {
		r.FastWithin = report.FastWithin
	}
	if r.Look == nil {
		r.Look = func() {}
	}
	if err := r.shape.Check(); err != nil {
		return err
	}
	if r.Work.Name == Capacity {
		return r.capacity(ctx)
	}
	r.ledgers = make([]*ledger, len(r.Targets))
	for i := range r.ledgers {
		r.ledgers[i] = newLedger(r.shape)
	}
	r.fleet = fleet.New(fleet.Options{
		Shape: r.shape, Host: r.Host, Targets: r.Targets, UserPrefix: r.UserPrefix, Hear: r.hear,
	})
	defer r.fleet.Close()
	if r.CleanUp {
		defer r.cleanUp(ctx)
	}
	if err := r.prepare(ctx); err != nil {
		return err
	}
	for r.round = 1; r.round <= r.Work.Rounds; r.round++ {
		r.between(ctx, r.round)
		for target := range r.Targets {
			if err := r.turn(ctx, target); err != nil {
				return r.broken(target, fmt.Errorf("%s, round %d: %w", r.Targets[target].Name, r.round, err))
			}
			if r.Stored != nil {
				r.Stored(r.Targets[target].Name, r.round)
			}
		}
	}
	r.round = r.Work.Rounds
	r.between(ctx, 0)
	return r.verify(ctx)
}

func (r *run) between(ctx context.Context, round int) {
	if r.Between != nil {
		r.Between(ctx, round)
	}
}

// turn is one target's part of a round.
func (r *run) turn(ctx context.Context, target int) error {
	switch r.Work.Name {
	case Storm:
		return r.storm(ctx, target)
	case Restart:
		return r.restart(ctx, target)
	case Disk:
		return r.disk(ctx, target)
	}
	return r.load(ctx, target)
}

// prepare connects everybody, fills the vaults, and has the devices listen.
func (r *run) prepare(ctx context.Context) error {
	began := time.Now()
	connect := func(ctx context.Context, d *fleet.Device) error { return d.Connect(ctx) }
	if err := r.fleet.Each(ctx, connectWidth, connect); err != nil {
		return fmt.Errorf("%w: %w", ErrConnect, err)
	}
	r.Say("%d devices connected in %s", r.shape.Users*r.shape.Devices, took(began))
	for i := range r.Targets {
		if err := r.seed(ctx, i); err != nil {
			return fmt.Errorf("%s: seed: %w", r.Targets[i].Name, err)
		}
	}
	if r.Work.Name == Storm {
		return nil // a storm has its own way to come
	}
	for i := range r.Targets {
		if err := r.join(ctx, i); err != nil {
			return err
		}
	}
	return nil
}

// seed makes and fills all vaults of a target.
func (r *run) seed(ctx context.Context, target int) error {
	if r.Targets[target].Echo {
		return nil
	}
	r.Look()
	from := r.Recorder.Since()
	// One after the other: nodes that are made at once trip over each other in
	// ejabberd's database.
	if err := r.fleet.EachUser(ctx, 1, func(ctx context.Context, d *fleet.Device) error { return r.prepareVault(ctx, d, 0, target) }); err != nil {
		return err
	}
	fill := func(ctx context.Context, d *fleet.Device) error { return d.Fill(ctx, target, seedWidth) }
	if err := r.fleet.EachUser(ctx, seedUsers, fill); err != nil {
		return err
	}
	r.phase(target, report.PhaseSeed, from)
	r.Say("%s: %d records seeded in %s", r.Targets[target].Name, r.shape.Users*r.shape.Records, (r.Recorder.Since() - from).Round(time.Millisecond))
	return nil
}

// join has all devices listen to a target.
func (r *run) join(ctx context.Context, target int) error {
	began := time.Now()
	join := func(ctx context.Context, d *fleet.Device) error {
		if !r.listens(d) {
			return nil
		}
		if err := d.Announce(target); err != nil {
			return err
		}
		return listen(ctx, d)
	}
	if err := r.fleet.Each(ctx, connectWidth, join); err != nil {
		return fmt.Errorf("%s: %w", r.Targets[target].Name, err)
	}
	r.Say("%s: all devices listen, after %s", r.Targets[target].Name, took(began))
	return nil
}

// listen waits until a device is counted as interested by all that it has
// announced itself to. ejabberd does not send what was last published to whom it
// had to ask for its capabilities, and that is the only sign: such a device logs
// in anew.
func listen(ctx context.Context, d *fleet.Device) error {
	for try := 1; ; try++ {
		waiting, cancel := context.WithTimeout(ctx, listenTimeout<<(try-1))
		err := d.Listening(waiting)
		cancel()
		if err == nil || try == listenTries || ctx.Err() != nil {
			return err
		}
		if err := d.Again(ctx); err != nil {
			return err
		}
	}
}

// phase records that one is over.
func (r *run) phase(target int, name string, from time.Duration) {
	defer r.Look()
	r.Recorder.Phase(report.Phase{
		Target: r.Targets[target].Name, Round: max(r.round, 1), Name: name, From: from, To: r.Recorder.Since(),
	})
}

// everyone are the bits of all devices of a user that listen.
func (r *run) everyone() uint64 { return ^uint64(0) >> (64 - r.Work.Devices) }

// verify judges all targets.
func (r *run) verify(ctx context.Context) error {
	var failures []error
	for i, t := range r.Targets {
		if t.Echo {
			continue
		}
		final, err := r.readBack(ctx, i)
		if err != nil {
			return errors.Join(append(failures, fmt.Errorf("%s: read back: %w", t.Name, err))...)
		}
		failures = append(failures, r.sentence(t, r.ledgers[i], final))
	}
	return errors.Join(failures...)
}

// readBack reads and judges all vaults of a target. One that holds what nobody
// saved is nil.
func (r *run) readBack(ctx context.Context, target int) ([][]uint32, error) {
	from, l := r.Recorder.Since(), r.ledgers[target]
	final := make([][]uint32, r.shape.Users)
	users := r.shape.Users
	if r.Work.Name == Capacity {
		users = r.seeded
	}
	err := r.fleet.EachFrom(ctx, verifyWidth, 0, users, 1, func(ctx context.Context, d *fleet.Device) error {
		ctx, cancel := context.WithTimeout(ctx, r.Timeout)
		defer cancel()
		sent := l.now()
		versions, _, err := d.Download(ctx, target, fleet.Plain)
		if errors.Is(err, fleet.ErrWrong) {
			l.faults.add(wrong, "the vault of user %d: %v", d.User, err)
			return nil
		}
		if err == nil {
			final[d.User] = versions
			l.vault(d.User, versions, sent, l.now())
		}
		return err
	})
	if err == nil {
		r.phase(target, report.PhaseVerify, from)
	}
	return final, err
}

// sentence judges what is left of the notifications, and says what was found.
func (r *run) sentence(t fleet.Target, l *ledger, final [][]uint32) error {
	l.finish(final)
	check := l.check(t.Name)
	r.Recorder.Check(check)
	if !check.Clean() {
		return fmt.Errorf("%w: %s: %s", ErrFailed, t.Name, l.faults.text())
	}
	r.Say("%s: all %d acknowledged saves are there, and all %d notifications came once", t.Name, check.Saves, check.Notifications)
	return nil
}

// broken is an error that ended a run early, with what the target had done
// wrong until then.
func (r *run) broken(target int, err error) error {
	t, l := r.Targets[target], r.ledgers[target]
	check := l.check(t.Name)
	if check.Clean() {
		return err
	}
	r.Recorder.Check(check)
	return fmt.Errorf("%w: %s: %s, and then: %w", ErrFailed, t.Name, l.faults.text(), err)
}

func took(began time.Time) time.Duration { return time.Since(began).Round(time.Millisecond) }
