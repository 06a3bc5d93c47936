package runner

import (
	"context"
	"fmt"
	"time"

	"pepvault/bench/fleet"
	"pepvault/bench/report"
)

// restart has the service end and come back, while all devices stay connected
// and hold what there is. Each is ready when the service has told it that its
// vault stands where it does; then it needs nothing. The probe reads from the
// moment at which the service is there again.
func (r *run) restart(ctx context.Context, target int) error {
	probe, err := r.newProbe(ctx, target)
	if err != nil {
		return fmt.Errorf("probe: %w", err)
	}
	defer probe.fleet.Close()
	from := r.Recorder.Since()
	standing := make([][]<-chan time.Time, r.shape.Users)
	for user := range standing {
		standing[user] = make([]<-chan time.Time, r.shape.Devices)
	}
	err = r.fleet.Each(ctx, connectWidth, func(ctx context.Context, d *fleet.Device) error {
		if _, err := r.download(ctx, d, target, fleet.Sync); err != nil {
			return err
		}
		standing[d.User][d.Number] = d.AwaitStanding(target)
		return nil
	})
	if err != nil {
		return err
	}
	r.phase(target, report.PhaseWarmUp, from)

	r.Look()
	began, since := time.Now(), r.Recorder.Since()
	ctx, cancel := context.WithDeadlineCause(ctx, began.Add(r.Timeout), r.late())
	defer cancel()
	if err := r.Restart(ctx, r.Targets[target].Name); err != nil {
		return err
	}
	m := moment{target, r.round, report.PhaseSteady, began}
	r.record(report.Connect, m, began, fleet.Answer{At: time.Now()}, nil)
	stop := r.beside(ctx, probe, target)
	defer stop()
	err = r.fleet.Each(ctx, r.shape.Users*r.shape.Devices, func(ctx context.Context, d *fleet.Device) error {
		select {
		case at := <-standing[d.User][d.Number]:
			r.record(report.Ready, m, began, fleet.Answer{At: at}, nil)
			return nil
		case <-ctx.Done():
			return fmt.Errorf("the service does not say that the device is up to date: %w", ctx.Err())
		}
	})
	if err != nil {
		return err
	}
	r.phase(target, report.PhaseSteady, since)
	r.Say("%s, round %d: %d devices know that they are up to date, %s after the service began to stop",
		r.Targets[target].Name, r.round, r.shape.Users*r.shape.Devices, took(began))
	waitUntil(ctx, time.Now().Add(r.Work.WarmUp))
	stop()
	return r.aftermath(ctx, target)
}
