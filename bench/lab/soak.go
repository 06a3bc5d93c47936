package lab

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"pepvault/bench/limit"
	"pepvault/bench/report"
)

// killedLook is how often a soak asks whether the kernel has killed anything.
const killedLook = 500 * time.Millisecond

// beginSoak starts host and service within the size of a small server. Where that
// can't be had the soak is made without, and its verdict says so.
func (o *Options) beginSoak(ctx context.Context, dir string) (*hosted, report.Host, error) {
	group, why := o.enclose()
	if group == nil {
		o.Say("no limit of memory is set: %s", why)
	} else {
		o.wrap = group.Wrap
		o.Say("host and service have %s together", o.Work.Sizes[0])
	}
	h, err := o.start(ctx, dir)
	if err != nil {
		if group != nil {
			err = errors.Join(explain(err, killedIn(group)), group.Close())
		}
		return nil, report.Host{}, err
	}
	h.killed = func() report.Killed { return report.Killed{Unmeasured: why} }
	if group != nil {
		h.killed = func() report.Killed { return killedIn(group) }
		h.stops = slices.Insert(h.stops, 0, func() { _ = group.Close() }) // the last of all; what is left is empty
	}
	return h, h.about(ctx, *o), nil
}

// enclose makes the group of the soak's size, or says why there is none.
func (o *Options) enclose() (group *limit.Group, why string) {
	switch {
	case o.Host == Existing:
		return nil, "the server runs already"
	case len(o.Work.Sizes) == 0 || !o.Work.Sizes[0].Limited():
		return nil, "none was asked for"
	}
	group, err := limit.New(limit.Limits{CPUs: o.Work.Sizes[0].CPUs, Memory: o.Work.Sizes[0].Memory})
	if err != nil {
		return nil, err.Error()
	}
	return group, ""
}

func killedIn(group *limit.Group) report.Killed {
	used, err := group.Usage()
	if err != nil {
		return report.Killed{Unmeasured: err.Error()}
	}
	return report.Killed{Count: used.Kills}
}

// untilKilled ends the context of a soak in which the kernel kills a process: what
// comes behind that could only wait for what does not come.
func (h *hosted) untilKilled(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	if h.killed == nil {
		return ctx, cancel
	}
	go func() { // ends with ctx
		looks := time.NewTicker(killedLook)
		defer looks.Stop()
		for {
			select {
			case <-looks.C:
			case <-ctx.Done():
				return
			}
			if h.killed().Count > 0 {
				cancel()
			}
		}
	}()
	return ctx, cancel
}

// explain says of a failure that the kernel had a part in it.
func explain(failure error, killed report.Killed) error {
	if killed.Count == 0 {
		return failure
	}
	return fmt.Errorf("the kernel killed %d of the processes of host and service for want of memory: %w", killed.Count, failure)
}

// hold measures a soak against its bounds. One that failed is not measured, but
// what the kernel did to it is said.
func (o *Options) hold(failure error, h *hosted, recorder *report.Recorder) error {
	killed := h.killed()
	if failure != nil {
		return explain(failure, killed)
	}
	missed := recorder.Hold(h.judged(), o.Bounds, killed)
	for _, gate := range recorder.Gates() {
		o.Say("%s", gate)
	}
	return missed
}

// judged is the target that a soak is about: the service, if it is one of them.
func (h *hosted) judged() string {
	for _, t := range h.targets {
		if t.Name == component {
			return t.Name
		}
	}
	return h.targets[0].Name
}
