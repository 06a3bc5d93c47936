package lab

import (
	"context"
	"errors"
	"io"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"pepvault/bench/fleet"
	"pepvault/bench/report"
)

// TestKillsAreSaid holds that what the kernel killed fails a soak, whether the rest
// of it went well or not, and that nothing is held against it else.
func TestKillsAreSaid(t *testing.T) {
	t.Parallel()
	broken := errors.New("it does not answer")
	for name, test := range map[string]struct {
		failure error
		killed  report.Killed
		want    error
		text    string
	}{
		"good":                {nil, report.Killed{}, nil, ""},
		"killed unnoticed":    {nil, report.Killed{Count: 1}, report.ErrGate, "killed for want of memory 1, at most 0"},
		"killed and broken":   {broken, report.Killed{Count: 2}, broken, "the kernel killed 2 of"},
		"broken by itself":    {broken, report.Killed{}, broken, "it does not answer"},
		"nobody could see it": {nil, report.Killed{Unmeasured: "no groups"}, nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			recorder, err := report.NewRecorder(io.Discard, report.Environment{Targets: []string{"pep", component}})
			if err != nil {
				t.Fatal(err)
			}
			recorder.Check(report.Check{Target: component, Saves: 1})
			h := &hosted{targets: []fleet.Target{{Name: pep}, {Name: component}}, killed: func() report.Killed { return test.killed }}
			o := &Options{Bounds: report.Bounds{Delivery: time.Second, Memory: 1 << 20}, Say: t.Logf}
			got := o.hold(test.failure, h, recorder)
			if !errors.Is(got, test.want) || test.text != "" && !strings.Contains(got.Error(), test.text) {
				t.Errorf("got %v, want %v with %q", got, test.want, test.text)
			}
			if test.failure == nil && (len(recorder.Gates()) == 0 || recorder.Gates()[0].Target != component) {
				t.Errorf("the gates are %v, want those of the service", recorder.Gates())
			}
		})
	}
}

// TestKillEndsTheSoak holds that nobody waits for processes that were killed.
func TestKillEndsTheSoak(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var kills atomic.Int64
		h := &hosted{killed: func() report.Killed { return report.Killed{Count: kills.Load()} }}
		ctx, cancel := h.untilKilled(context.Background())
		defer cancel()
		time.Sleep(time.Minute)
		if ctx.Err() != nil {
			t.Fatal("it ended without a kill")
		}
		kills.Store(1)
		time.Sleep(2 * killedLook)
		if ctx.Err() == nil {
			t.Error("it goes on behind a kill")
		}
		cancel()
		synctest.Wait()
	})
}
