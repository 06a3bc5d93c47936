package runner

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"pepvault/bench/report"
)

// writing is what a process has written, if it goes on for a time.
func writing(began time.Time, lasts time.Duration) func() map[string]report.Process {
	return func() map[string]report.Process {
		long := min(time.Since(began), lasts)
		return map[string]report.Process{
			"service":        {Written: int64(long / time.Millisecond)},
			report.Generator: {Written: int64(time.Since(began))}, // nobody's business
		}
	}
}

// TestSettle holds when a part of a disk run counts as over.
func TestSettle(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		lasts, least, most time.Duration
		want               bool
	}{
		"at rest":         {0, restTime, restTime + restLook, true},
		"for a while":     {5 * time.Second, 5*time.Second + restTime, 5*time.Second + restTime + 2*restLook, true},
		"without an end":  {time.Hour, restPatience, restPatience + 2*restLook, false},
		"shortly in time": {restPatience - restTime - 2*restLook, restPatience - 4*restLook, restPatience, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				r := &run{Options: Options{Usage: writing(began, test.lasts)}}
				got := r.settle(t.Context())
				if took := time.Since(began); got != test.want || took < test.least || took > test.most {
					t.Errorf("%t after %s, want %t after %s to %s", got, took, test.want, test.least, test.most)
				}
			})
		})
	}
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if (&run{Options: Options{Usage: writing(time.Now(), time.Hour)}}).settle(ctx) {
			t.Error("settled when nobody waits any more")
		}
	})
}
