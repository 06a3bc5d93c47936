package runner_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"pepvault/bench/fleet"
	"pepvault/bench/limit"
	"pepvault/bench/report"
	"pepvault/bench/runner"
	"pepvault/component/loopback"
	"pepvault/vault/device/c2s"
)

// limits is a size that the embedded host does not really have.
var limits = report.Size{CPUs: 0.5, Memory: 512 << 20}

// crowded is a server that the kernel takes a process from when more devices than
// most are connected.
type crowded struct {
	fleet.Host
	most int

	mu       sync.Mutex
	live     int
	kills    int64
	logIns   int
	restarts int
	lifted   []string
}

func (h *crowded) Connect(ctx context.Context, user, resource string, handle func(c2s.Stanza) bool) (fleet.Conn, error) {
	conn, err := h.Host.Connect(ctx, user, resource, handle)
	if err != nil {
		return nil, err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.logIns++
	if h.live++; h.live == h.most+1 {
		h.kills++
	}
	return &leaving{Conn: conn, left: func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.live--
	}}, nil
}

type leaving struct {
	fleet.Conn
	once sync.Once
	left func()
}

func (l *leaving) Close() error {
	l.once.Do(l.left)
	return l.Conn.Close()
}

// site is a server of a size on which the host is.
func (h *crowded) site(context.Context, fleet.Target, report.Size) (*runner.Site, error) {
	return &runner.Site{
		Host: h,
		Usage: func() (limit.Usage, error) {
			h.mu.Lock()
			defer h.mu.Unlock()
			// It takes a tenth of a second of CPU for each log-in.
			return limit.Usage{Kills: h.kills, Memory: int64(h.live) << 20, CPU: time.Duration(h.logIns) * 100 * time.Millisecond}, nil
		},
		Lift: func(cpu, memory bool) error {
			h.mu.Lock()
			defer h.mu.Unlock()
			h.lifted = append(h.lifted, fmt.Sprint(cpu, memory))
			return nil
		},
		Restart: func(context.Context) error {
			h.mu.Lock()
			defer h.mu.Unlock()
			h.restarts++
			return nil
		},
		Close: func() {},
	}, nil
}

// playCapacity runs a search on an embedded host, on which fast is within so long.
func playCapacity(t *testing.T, host *loopback.Host, most int, way string, within time.Duration) (*crowded, *report.Results, error) {
	t.Helper()
	h := &crowded{Host: fleet.Embedded{Host: host}, most: most}
	work := report.Workload{
		Name: runner.Capacity, Users: 8, Devices: 2, Records: 5, RecordBytes: 924, Rate: 10, WarmUp: 100 * time.Millisecond,
		Duration: 500 * time.Millisecond, Download: way, Seed: 1, Rounds: 1, Sizes: []report.Size{limits, {CPUs: 1 << 12, Memory: 1 << 30}},
	}
	var file bytes.Buffer
	recorder, err := report.NewRecorder(&file, report.Environment{
		Work: work, Targets: []string{"component"}, Machine: report.Platform{Cores: 1 << 11},
	})
	if err != nil {
		t.Fatal(err)
	}
	failure := runner.Run(t.Context(), runner.Options{
		Work: work, Targets: []fleet.Target{{Name: "component", JID: host.Component()}}, UserPrefix: "u", Timeout: time.Minute,
		Recorder: recorder, Say: t.Logf, Open: h.site, FastWithin: within,
	})
	if _, err := recorder.Finish(failure); err != nil {
		t.Fatal(err)
	}
	results, err := report.Load(&file)
	if err != nil {
		t.Fatal(err)
	}
	return h, results, failure
}

// TestCapacity finds the ceiling of a server that carries ten devices: those of
// five people. Fast is a minute: how fast it is depends on the machine.
func TestCapacity(t *testing.T) {
	t.Parallel()
	for _, way := range []string{"sync", "plain"} {
		t.Run(way, func(t *testing.T) {
			t.Parallel()
			h, got, err := playCapacity(t, embedded(t), 10, way, time.Minute)
			if err != nil {
				t.Fatal(err)
			}
			var people []int
			for _, s := range got.Steps {
				people = append(people, s.People)
				want := report.Fast
				if s.People > 5 {
					want = report.OutOfMemory
				}
				if s.Result != want || s.Devices != 2*s.People || s.Save.Count == 0 || s.Seen.Count != s.Save.Count || s.Read.Count == 0 {
					t.Errorf("%d people: %+v", s.People, s)
				}
			}
			if want := []int{3, 6, 4, 5}; !slices.Equal(people, want) {
				t.Errorf("tried %v, want %v", people, want)
			}
			want := report.Capacity{
				Target: "component", Size: limits, People: 5, Failed: 6, Result: report.OutOfMemory, Limit: report.AtMemory, Plan: 1, Memory: 10 << 20, LogIn: 100,
			}
			if len(got.Capacities) != 2 {
				t.Fatalf("outcomes: %+v", got.Capacities)
			}
			c := got.Capacities[0]
			c.Seen, c.Cores = 0, 0 // as fast as it was
			if c != want {
				t.Errorf("got %+v, want %+v", c, want)
			}
			if why := got.Capacities[1].Unmeasured; why != "this machine has 2048 CPUs" {
				t.Errorf("a size that the machine does not have: %q", why)
			}
			// Once for each device up to the kill, and again for those behind it.
			if h.restarts != 1 || h.logIns != 12+10+1 { // and one more reads back
				t.Errorf("%d restarts and %d log-ins", h.restarts, h.logIns)
			}
			if h.lifted[0] != "true false" || h.lifted[1] != "false false" || h.lifted[len(h.lifted)-1] != "true true" {
				t.Errorf("limits: %v", h.lifted)
			}
			if v := got.Verdict; !v.OK || len(v.Checks) != 1 || v.Checks[0].Saves == 0 || v.Checks[0].Notifications == 0 {
				t.Errorf("the verdict is %s", v.Line())
			}
		})
	}
}

// TestCapacityBreaksWhileItIsFilled has the service lose the answers to the first
// vaults of a step: they are made, the step has failed, and the next one goes on with
// them.
func TestCapacityBreaksWhileItIsFilled(t *testing.T) {
	t.Parallel()
	host := embedded(t)
	var count atomic.Int64
	host.SetIntercept(func(dir loopback.Direction, s loopback.Stanza) []loopback.Stanza {
		made := dir == loopback.FromComponent && s.Name == "iq" && s.Type == "result" && strings.HasPrefix(s.To, "u4@")
		if made && count.Add(1) == 1 { // the answer to what a device asks for first
			s.Type = "error"
			return rewrite(s, []byte("result"), []byte("error"))
		}
		return []loopback.Stanza{s}
	})
	_, got, err := playCapacity(t, host, 100, "sync", time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	var people []int
	for _, s := range got.Steps {
		people = append(people, s.People)
		if (s.Result == report.StepFailed) != (s.People == 6) {
			t.Errorf("%d people: %s (%s)", s.People, s.Result, s.Why)
		}
	}
	if want := []int{3, 6, 4, 5}; !slices.Equal(people, want) {
		t.Errorf("tried %v, want %v", people, want)
	}
}

// TestCapacityCatchesFaults has a service lose an event, or a record: that is no
// figure, but a failure.
func TestCapacityCatchesFaults(t *testing.T) {
	t.Parallel()
	for name, fault := range map[string]struct {
		lie  func(loopback.Stanza, int64) []loopback.Stanza
		when func(loopback.Stanza) bool
		want string
		kind func(report.Check) int64
	}{
		"lost events": {func(s loopback.Stanza, nth int64) []loopback.Stanza {
			if nth >= 9 {
				return nil
			}
			return []loopback.Stanza{s}
		}, event, "were not told of version", lostNotifications},
		"changed record": {func(s loopback.Stanza, _ int64) []loopback.Stanza {
			return rewrite(s, []byte("</record>"), []byte("AAAA</record>"))
		}, readBy("u0"), "record", wrong},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			host := embedded(t)
			var count atomic.Int64
			host.SetIntercept(func(dir loopback.Direction, s loopback.Stanza) []loopback.Stanza {
				if dir != loopback.FromComponent || !fault.when(s) {
					return []loopback.Stanza{s}
				}
				return fault.lie(s, count.Add(1))
			})
			_, got, err := playCapacity(t, host, 100, "plain", time.Second)
			if !errors.Is(err, runner.ErrFailed) || !strings.Contains(err.Error(), fault.want) {
				t.Errorf("got %v, want %q", err, fault.want)
			}
			v := got.Verdict
			if v.OK || v.Outcome != nil || len(v.Checks) != 1 || fault.kind(v.Checks[0]) == 0 {
				t.Errorf("the verdict is %s", v.Line())
			}
		})
	}
}
