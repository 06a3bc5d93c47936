package lab

import (
	"context"
	"time"

	"pepvault/bench/report"
	"pepvault/bench/runner"
	"pepvault/bench/watch"
)

// diskTime is how long a disk run measures the disk itself, at most.
const diskTime = 3 * time.Second

// lookAtDisk measures for some seconds what a disk run is about.
func (o *Options) lookAtDisk(ctx context.Context, dir string, recorder *report.Recorder) {
	if o.Work.Name != runner.Disk {
		return
	}
	s := watch.Syncs(ctx, dir, min(o.Work.Duration, diskTime), 0)
	s.At = recorder.Since()
	recorder.Syncs(s)
	if s.Count > 0 {
		o.Say("the disk syncs a small append in %s (99 of 100; %s in the median, at most %s; up to %s is fine)",
			s.P99.Round(10*time.Microsecond), s.P50.Round(10*time.Microsecond), s.Max.Round(10*time.Microsecond), report.FineSync)
	}
}
