package runner

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"

	"pepvault/bench/fleet"
	"pepvault/bench/report"
	"pepvault/bench/workload"
)

const (
	// probeEvery is how often the probe reads a record.
	probeEvery = 50 * time.Millisecond
	// reconnectWait is how long a device waits that the server did not let in,
	// the first time; it doubles each time up to maxReconnectWait.
	reconnectWait    = 100 * time.Millisecond
	maxReconnectWait = 5 * time.Second
)

// storm has all devices leave and come back at once: log in, announce
// themselves, and load the vault. Beside them a device that stayed reads a
// record every 50 ms; for the time of a warm-up before the storm, and as long
// behind it, it is alone.
func (r *run) storm(ctx context.Context, target int) error {
	probe, err := r.newProbe(ctx, target)
	if err != nil {
		return fmt.Errorf("probe: %w", err)
	}
	defer probe.fleet.Close()
	from := r.Recorder.Since()
	if err := r.away(ctx, target); err != nil {
		return err
	}
	r.phase(target, report.PhaseWarmUp, from)

	stop := r.beside(ctx, probe, target)
	defer stop()
	if !waitUntil(ctx, time.Now().Add(r.Work.WarmUp)) {
		return ctx.Err()
	}
	r.Look()
	began, since := time.Now(), r.Recorder.Since()
	if err := r.reconnect(ctx, target, began); err != nil {
		return err
	}
	r.phase(target, report.PhaseSteady, since)
	r.Say("%s, round %d: %d devices are ready again after %s", r.Targets[target].Name, r.round, r.shape.Users*r.shape.Devices, took(began))
	waitUntil(ctx, time.Now().Add(r.Work.WarmUp))
	stop()
	return r.aftermath(ctx, target)
}

// away brings all devices to where they would be before a storm: what they
// have, they hold, what changed since they have missed, and nobody is there.
func (r *run) away(ctx context.Context, target int) error {
	if err := r.hold(ctx, target); err != nil {
		return err
	}
	err := r.fleet.Each(ctx, connectWidth, func(_ context.Context, d *fleet.Device) error {
		if d.Number > 0 {
			d.Leave()
		}
		return nil
	})
	if err != nil {
		return err
	}
	plan := workload.Plan{Shape: r.shape, Mix: workload.Mix{Save: 100}, Part: r.round}
	return r.fleet.EachUser(ctx, connectWidth, func(ctx context.Context, d *fleet.Device) error {
		defer d.Leave()
		for i := range r.Work.Missed {
			op := plan.Op(d.User*r.Work.Missed + i)
			l := r.ledgers[target]
			s := l.send(d.User, op.Record, op.Version, 0, moment{})
			_, err := d.Save(ctx, target, op.Record, op.Version)
			l.answer(d.User, s, outcomeOf(err))
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// reconnect is the storm itself.
func (r *run) reconnect(ctx context.Context, target int, began time.Time) error {
	m := moment{target, r.round, report.PhaseSteady, began}
	ctx, cancel := context.WithDeadlineCause(ctx, began.Add(r.Timeout), r.late())
	defer cancel()
	all := r.shape.Users * r.shape.Devices
	return r.fleet.Each(ctx, all, func(ctx context.Context, d *fleet.Device) error {
		sent := time.Now()
		if err := r.connect(ctx, d, m); err != nil {
			return err
		}
		asked := time.Now()
		if err := d.Announce(target); err != nil {
			return err
		}
		answer, err := r.download(ctx, d, target, r.way)
		r.record(report.Download, m, asked, answer, err)
		r.record(report.Ready, m, sent, answer, err)
		if errors.Is(err, fleet.ErrWrong) { // the verification says it
			return nil
		}
		return err
	})
}

// late is the end of a run whose devices had too little time.
func (r *run) late() error {
	return fmt.Errorf("not every device was ready within %s (--timeout): %w", r.Timeout, context.DeadlineExceeded)
}

// connect logs a device in. A server may be too busy to take a connection:
// then the device tries again, as devices do, and each failure is an error of
// its own; the success counts from the beginning.
func (r *run) connect(ctx context.Context, d *fleet.Device, m moment) error {
	for wait := reconnectWait; ; wait = min(2*wait, maxReconnectWait) {
		sent := time.Now()
		err := d.Connect(ctx)
		r.record(report.Connect, m, sent, fleet.Answer{At: time.Now()}, err)
		if err == nil || !mayComeAgain(err) || !waitUntil(ctx, time.Now().Add(wait)) {
			return err
		}
	}
}

// mayComeAgain tells a server that was not there or too slow from one that has
// refused the device.
func mayComeAgain(err error) bool {
	var network *net.OpError
	return errors.As(err, &network) || errors.Is(err, io.EOF) || errors.Is(err, context.DeadlineExceeded)
}

// aftermath holds that every device is told of changes again.
func (r *run) aftermath(ctx context.Context, target int) error {
	from := r.Recorder.Since()
	if err := r.fleet.Each(ctx, connectWidth, func(ctx context.Context, d *fleet.Device) error { return listen(ctx, d) }); err != nil {
		return err
	}
	plan := workload.Plan{Shape: r.shape, Mix: workload.Mix{Save: 100}, Part: r.round}
	behind := r.shape.Users * r.Work.Missed
	err := r.fleet.EachUser(ctx, connectWidth, func(ctx context.Context, d *fleet.Device) error {
		op := plan.Op(behind + d.User)
		op.User, op.Device, op.Kind = d.User, 0, workload.Save
		_, err := r.save(ctx, d, op, moment{target, r.round, report.PhaseDrain, time.Now()})
		return err
	})
	if err != nil {
		return err
	}
	r.drain(ctx, target)
	r.phase(target, report.PhaseDrain, from)
	return nil
}

// prober is a device of an account of its own that stays.
type prober struct {
	fleet  *fleet.Fleet
	device *fleet.Device
}

func (r *run) newProbe(ctx context.Context, target int) (*prober, error) {
	shape := r.shape
	shape.Users, shape.Devices = 1, 1
	p := &prober{fleet: fleet.New(fleet.Options{
		Shape: shape, Host: r.Host, Targets: r.Targets, UserPrefix: r.UserPrefix, FirstUser: r.shape.Users,
	})}
	p.device = p.fleet.Device(0, 0)
	err := p.device.Connect(ctx)
	if err == nil && r.round == 1 && !r.Targets[target].Echo {
		if err = r.prepareVault(ctx, p.device, r.shape.Users, target); err == nil {
			err = p.device.Fill(ctx, target, seedWidth)
		}
	}
	if err != nil {
		p.fleet.Close()
	}
	return p, err
}

// beside has the probe read until stop is called, which waits for the last
// answer; it may be called again.
func (r *run) beside(ctx context.Context, p *prober, target int) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	var reading sync.WaitGroup
	reading.Go(func() { r.probe(ctx, p, target) })
	return func() {
		cancel()
		reading.Wait()
	}
}

// probe reads until ctx ends. What it reads never changes.
func (r *run) probe(ctx context.Context, p *prober, target int) {
	var flying sync.WaitGroup
	defer flying.Wait()
	began := time.Now()
	for i := 0; ; i++ {
		due := began.Add(time.Duration(i) * probeEvery)
		if !waitUntil(ctx, due) {
			return
		}
		flying.Go(func() {
			ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), r.Timeout)
			defer cancel()
			sent := time.Now()
			version, answer, err := p.device.Read(ctx, target, i%r.shape.Records)
			switch {
			case errors.Is(err, fleet.ErrWrong):
				r.ledgers[target].faults.add(wrong, "the probe: %v", err)
			case err == nil && version != 0 && !r.Targets[target].Echo:
				r.ledgers[target].faults.add(wrong, "the probe reads version %d of record %d, which nobody saved", version, i%r.shape.Records)
				err = fleet.ErrWrong
			}
			r.record(report.Probe, moment{target, r.round, report.PhaseSteady, due}, sent, answer, err)
		})
	}
}
