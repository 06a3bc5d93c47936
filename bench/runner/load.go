package runner

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"pepvault/bench/fleet"
	"pepvault/bench/report"
	"pepvault/bench/workload"
)

// moment is an operation's place in its phase.
type moment struct {
	target  int
	round   int
	phase   string
	planned time.Time
}

// hold has all devices take what there is if they are to sync: a device has its
// vault, and asks for what is new.
func (r *run) hold(ctx context.Context, target int) error {
	if r.way != fleet.Sync || r.Targets[target].PEP() {
		return nil
	}
	return r.fleet.Each(ctx, connectWidth, func(ctx context.Context, d *fleet.Device) error {
		_, err := r.download(ctx, d, target, fleet.Sync)
		return err
	})
}

// load drives one target by a plan: warm-up, steady state, drain.
func (r *run) load(ctx context.Context, target int) error {
	if err := r.hold(ctx, target); err != nil {
		return err
	}
	plan := workload.Plan{Shape: r.shape, Mix: mixOf(r.Work), Part: r.round}
	r.Look()
	began, since := time.Now(), r.Recorder.Since()
	looking := time.AfterFunc(r.Work.WarmUp, r.Look)
	defer looking.Stop()
	steady := began.Add(r.Work.WarmUp)
	at := func(planned time.Time) moment {
		phase := report.PhaseSteady
		if planned.Before(steady) {
			phase = report.PhaseWarmUp
		}
		return moment{target, r.round, phase, planned}
	}
	if r.Work.Rate > 0 {
		r.openLoop(ctx, plan, began, at)
	} else {
		r.closedLoop(ctx, plan, began, at)
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	r.phase(target, report.PhaseSteady, since+r.Work.WarmUp)
	r.Say("%s, round %d: load answered after %s", r.Targets[target].Name, r.round, took(began))
	from := r.Recorder.Since()
	r.drain(ctx, target)
	r.phase(target, report.PhaseDrain, from)
	return ctx.Err()
}

// mixOf is what the load is made of.
func mixOf(w report.Workload) workload.Mix {
	switch {
	case w.Only == report.Download:
		return workload.Mix{Download: 100}
	case w.Only == report.Save, w.Name == Soak:
		return workload.Mix{Save: 100}
	case w.Only == report.Read:
		return workload.Mix{}
	}
	return workload.StandardMix
}

// openLoop sends each operation when it is due, however long others take; the
// only bound is Outstanding, and what waits for it waits in its own latency.
func (r *run) openLoop(ctx context.Context, plan workload.Plan, began time.Time, at func(time.Time) moment) {
	var flying sync.WaitGroup
	defer flying.Wait()
	var places chan struct{}
	if r.Work.Outstanding > 0 {
		places = make(chan struct{}, r.Work.Outstanding)
	}
	for _, op := range plan.Open(r.Work.Rate, r.Work.WarmUp+r.Work.Duration) {
		due := began.Add(op.At)
		if !waitUntil(ctx, due) {
			return
		}
		if places != nil {
			places <- struct{}{}
		}
		flying.Go(func() {
			r.do(ctx, op, at(due))
			if places != nil {
				<-places
			}
		})
	}
}

// waitUntil reports whether that moment came before the end of ctx.
func waitUntil(ctx context.Context, due time.Time) bool {
	wait := time.Until(due)
	if wait <= 0 {
		return ctx.Err() == nil
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// closedLoop keeps Outstanding operations under way until the time is over.
func (r *run) closedLoop(ctx context.Context, plan workload.Plan, began time.Time, at func(time.Time) moment) {
	end := began.Add(r.Work.WarmUp + r.Work.Duration)
	var next atomic.Int64
	var workers sync.WaitGroup
	for range max(r.Work.Outstanding, 1) {
		workers.Go(func() {
			for ctx.Err() == nil {
				now := time.Now()
				i := next.Add(1) - 1
				if !now.Before(end) || i >= workload.MaxOps {
					return
				}
				r.do(ctx, plan.Op(int(i)), at(now))
			}
		})
	}
	workers.Wait()
}

// drain waits for the notifications of what was acknowledged.
func (r *run) drain(ctx context.Context, target int) {
	if r.Targets[target].Echo {
		return
	}
	began, l := time.Now(), r.ledgers[target]
	missing, since := l.unheard(), began
	for missing > 0 && time.Since(since) < drainPatience && waitUntil(ctx, time.Now().Add(20*time.Millisecond)) {
		if now := l.unheard(); now != missing {
			missing, since = now, time.Now()
		}
	}
	if missing > 0 {
		r.Say("%s, round %d: %d notifications did not come within %s", r.Targets[target].Name, r.round, missing, took(began))
	}
}
