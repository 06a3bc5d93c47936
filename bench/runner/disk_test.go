package runner_test

import (
	"bytes"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"pepvault/bench/fleet"
	"pepvault/bench/report"
	"pepvault/bench/runner"
	"pepvault/bench/workload"
	"pepvault/component/loopback"
)

// soakWork is a soak of some 15 saves.
func soakWork() report.Workload {
	return report.Workload{
		Name: runner.Soak, Users: 2, Devices: 10, Records: 16, RecordBytes: 924, Rate: 20,
		WarmUp: 100 * time.Millisecond, Duration: 700 * time.Millisecond, Download: "plain", Seed: 3, Rounds: 1,
	}
}

// TestSoak holds that each save of a soak is told to all idle devices of its
// account and to nobody else, and that what is measured is the whole way from the
// planned moment to the device: a host that holds events back shows.
func TestSoak(t *testing.T) {
	t.Parallel()
	const delay = 50 * time.Millisecond
	host := embedded(t)
	var saves, askers atomic.Int64
	host.SetIntercept(func(dir loopback.Direction, s loopback.Stanza) []loopback.Stanza {
		switch {
		case dir == loopback.FromComponent && event(s):
			time.Sleep(delay) // a slow link
		case dir == loopback.FromComponent:
		case bytes.Contains(s.Raw, []byte("<publish ")) && strings.HasSuffix(s.From, "/d10"):
			saves.Add(1)
		case s.Name == "presence" && strings.HasSuffix(s.From, "/d10"):
			askers.Add(1)
		}
		return []loopback.Stanza{s}
	})
	verdict, err := play(t, host, soakWork())
	if err != nil {
		t.Fatal(err)
	}
	check := verdict.Checks[0]
	if check.Saves == 0 || check.Saves != saves.Load() || check.Notifications != 10*check.Saves {
		t.Errorf("%d saves, %d of them by devices that only save, %d notifications; want ten for each", check.Saves, saves.Load(), check.Notifications)
	}
	if askers.Load() != 0 {
		t.Error("who saves has announced itself")
	}
	if got := verdict.Kinds[report.Notify]; got.Count == 0 || got.P50 < float64(delay.Milliseconds()) {
		t.Errorf("delivery %+v, want at least %s", got, delay)
	}
	if got := verdict.Kinds[report.Save]; got.Count == 0 || verdict.Kinds[report.Read].Count+verdict.Kinds[report.Download].Count != 0 {
		t.Errorf("the load is %+v, want saves alone", verdict.Kinds)
	}
}

// TestFaultsOfASoakAreCaught has a notification lost, and one come twice.
func TestFaultsOfASoakAreCaught(t *testing.T) {
	t.Parallel()
	for name, f := range map[string]fault{
		"lost event":    {losing(30), event, "were not told of version", lostNotifications},
		"doubled event": {doubling(30), event, "was told twice of", repeated},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			catch(t, soakWork(), f)
		})
	}
}

// TestDisk has a disk that goes on writing for a while behind each save: all of
// it is counted, nothing twice, by process, and a day is what it should be.
func TestDisk(t *testing.T) {
	t.Parallel()
	work := report.Workload{
		Name: runner.Disk, Users: 4, Devices: 3, Records: 16, RecordBytes: 924, Outstanding: 8, Lone: 2,
		Duration: 300 * time.Millisecond, Download: "sync", Seed: 3, Rounds: 1,
	}
	host := embedded(t)
	const now, later = 1000, 7 // bytes with a save, and at each of ten looks behind it
	var saves, looks, written atomic.Int64
	host.SetIntercept(func(dir loopback.Direction, s loopback.Stanza) []loopback.Stanza {
		if dir == loopback.FromComponent && s.Type == "result" && bytes.Contains(s.Raw, []byte("<publish ")) {
			saves.Add(1)
			written.Add(now)
			looks.Store(10)
		}
		return []loopback.Stanza{s}
	})
	var lines strings.Builder
	recorder, err := report.NewRecorder(&lines, report.Environment{Work: work, Targets: []string{"component"}})
	if err != nil {
		t.Fatal(err)
	}
	failure := runner.Run(t.Context(), runner.Options{
		Work: work, Host: fleet.Embedded{Host: host}, Targets: []fleet.Target{{Name: "component", JID: host.Component()}},
		UserPrefix: "u", Timeout: time.Minute, Recorder: recorder, Say: t.Logf,
		Usage: func() map[string]report.Process {
			if looks.Add(-1) >= 0 {
				written.Add(later)
			}
			return map[string]report.Process{
				report.Service: {Written: written.Load(), User: time.Duration(written.Load())},
				"shy":          {Unmeasured: []string{"storage"}},
			}
		},
		Size: func(string) (int64, int64) { return saves.Load(), 2 * saves.Load() },
	})
	verdict, err := recorder.Finish(failure)
	if err = errors.Join(failure, err); err != nil {
		t.Fatal(err)
	}
	kept, err := report.Load(strings.NewReader(lines.String()))
	if err != nil {
		t.Fatal(err)
	}
	var parts []string
	for _, w := range kept.Writes {
		parts = append(parts, w.Part)
		if least := w.Saves*now + 10*later; !w.Settled || w.Saves == 0 || w.Written[report.Service] < least || w.Written[report.Service] > least+w.Saves*10*later {
			t.Errorf("%s: %d bytes of %d saves, settled: %t", w.Part, w.Written[report.Service], w.Saves, w.Settled)
		}
		if _, told := w.Written["shy"]; told || len(w.Unmeasured) != 1 || w.Unmeasured[0] != "shy" || w.CPU[report.Service] != time.Duration(w.Written[report.Service]) {
			t.Errorf("%s: %+v", w.Part, w)
		}
		if w.Grown != w.Saves || w.LogGrown != 2*w.Saves {
			t.Errorf("%s: the database grew by %d, its log by %d, with %d saves", w.Part, w.Grown, w.LogGrown, w.Saves)
		}
	}
	if got := strings.Join(parts, " "); got != "lone lone loaded day" {
		t.Fatalf("parts %q", got)
	}
	visits := 0
	for user := range work.Users {
		visits += len(runner.ShapeOf(work).Day(user, 1))
	}
	if day := kept.Writes[3]; day.Connections != int64(visits) || day.Saves != int64(work.Users*workload.DaySaves) {
		t.Errorf("a day of %d connections and %d saves, want %d and %d", day.Connections, day.Saves, visits, work.Users*workload.DaySaves)
	}
	if d := verdict.Disk; d == nil || d.Lone == nil || d.Lone.Saves != 2 || d.Lone.Processes[report.Service].Median != now+10*later || d.Lone.All != nil {
		t.Errorf("the verdict is %s", verdict.Line())
	}
}
