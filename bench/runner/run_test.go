package runner_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"pepvault/bench/fleet"
	"pepvault/bench/report"
	"pepvault/bench/runner"
	"pepvault/bench/servers"
	"pepvault/component/loopback"
)

var program struct {
	once sync.Once
	path string
	err  error
}

func TestMain(m *testing.M) {
	code := m.Run()
	if program.path != "" {
		_ = os.RemoveAll(filepath.Dir(program.path))
	}
	os.Exit(code)
}

// serviceProgram builds the service once.
func serviceProgram(t *testing.T) string {
	t.Helper()
	program.once.Do(func() {
		dir, err := os.MkdirTemp("", "pepvault-runner-")
		if err != nil {
			program.err = err
			return
		}
		program.path = filepath.Join(dir, "pepvault")
		if out, err := exec.Command("go", "build", "-o", program.path, "pepvault/cmd/pepvault").CombinedOutput(); err != nil {
			program.err = fmt.Errorf("go build: %w\n%s", err, out)
		}
	})
	if program.err != nil {
		t.Fatal(program.err)
	}
	return program.path
}

// embedded is a loopback host with a service attached to it.
func embedded(t *testing.T) *loopback.Host {
	t.Helper()
	host, err := loopback.Start(loopback.Options{Secret: "secret", Fast: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { host.Close() })
	service, err := servers.StartService(t.Context(), servers.ServiceOptions{
		Dir: t.TempDir(), Program: serviceProgram(t), JID: host.Component(), Server: host.Addr(), Secret: host.Secret(),
		// So few accounts would be refused on a fast machine.
		More: "[limits]\nrate_per_second = 100000\nrate_burst = 1000000\n",
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(service.Stop)
	return host
}

// small is a workload of about a second.
func small(name string) report.Workload {
	w := report.Workload{
		Name: name, Users: 4, Devices: 3, Records: 20, RecordBytes: 924, Rate: 150,
		WarmUp: 200 * time.Millisecond, Duration: 800 * time.Millisecond, Download: "plain", Seed: 1, Rounds: 1,
	}
	switch name {
	case runner.Max:
		// All that is under way at first counts: it has operations of each kind,
		// however few a slow machine adds.
		w.Rate, w.Outstanding, w.WarmUp = 0, 64, 0
	case runner.Storm:
		w.Missed = 2
	case runner.Overload:
		w.Rate, w.Outstanding = 3000, 64
	}
	return w
}

// play runs a workload against the component of an embedded host.
func play(t *testing.T, host *loopback.Host, work report.Workload) (report.Verdict, error) {
	t.Helper()
	return playOn(t, fleet.Embedded{Host: host}, work, fleet.Target{Name: "component", JID: host.Component()})
}

func playOn(t *testing.T, host fleet.Host, work report.Workload, targets ...fleet.Target) (report.Verdict, error) {
	t.Helper()
	return playFor(t, host, work, 30*time.Second, targets...)
}

// playFor has a time-out for each operation.
func playFor(t *testing.T, host fleet.Host, work report.Workload, timeout time.Duration, targets ...fleet.Target) (report.Verdict, error) {
	t.Helper()
	env := report.Environment{Work: work}
	for _, target := range targets {
		env.Targets = append(env.Targets, target.Name)
	}
	var lines strings.Builder
	recorder, err := report.NewRecorder(&lines, env)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	failure := runner.Run(ctx, runner.Options{
		Work: work, Host: host, Targets: targets, UserPrefix: "u", Timeout: timeout,
		Recorder: recorder, Say: t.Logf,
	})
	verdict, err := recorder.Finish(failure)
	if err != nil {
		t.Fatal(err)
	}
	t.Log(verdict.Line())
	return verdict, failure
}

// TestWorkloads runs each one on the embedded host, with each way to load a
// vault.
func TestWorkloads(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, way string }{
		{runner.Mix, "plain"}, {runner.Mix, "paged"}, {runner.Mix, "sync"},
		{runner.Max, "plain"}, {runner.Max, "paged"}, {runner.Overload, "plain"},
		{runner.Storm, "plain"}, {runner.Storm, "sync"}, {runner.Mix, "pushed"}, {runner.Storm, "pushed"},
	}
	for _, test := range tests {
		name := test.name
		t.Run(name+"/"+test.way, func(t *testing.T) {
			t.Parallel()
			work := small(name)
			work.Download = test.way
			work.Rounds = 2
			verdict, err := play(t, embedded(t), work)
			if err != nil {
				t.Fatal(err)
			}
			wants := []report.Kind{report.Read, report.Save, report.Download, report.Notify}
			if name == runner.Storm {
				wants = []report.Kind{report.Connect, report.Ready, report.Download, report.Probe}
			}
			for _, kind := range wants {
				if verdict.Kinds[kind].Count == 0 {
					t.Errorf("no %s was counted", kind)
				}
			}
			if verdict.Errors != 0 {
				t.Errorf("%d errors", verdict.Errors)
			}
			// Who holds a vault syncs what is new: that is little beside it.
			whole := int64(work.Records * work.RecordBytes)
			if d := verdict.Kinds[report.Download]; test.way == "sync" && d.Bytes > int64(d.Count)*whole/2 {
				t.Errorf("%d syncs took %d bytes; a vault has %d", d.Count, d.Bytes, whole)
			}
		})
	}
}
