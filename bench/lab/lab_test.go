package lab_test

import (
	"context"
	"errors"
	"io"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"pepvault/bench/echo"
	"pepvault/bench/fleet"
	"pepvault/bench/lab"
	"pepvault/bench/report"
	"pepvault/bench/runner"
	"pepvault/bench/servers"
	"pepvault/bench/workload"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// work is a closed loop of about a second.
func work() report.Workload {
	return report.Workload{
		Name: runner.Max, Users: 3, Devices: 2, Records: 8, RecordBytes: 924, Outstanding: 4,
		WarmUp: 100 * time.Millisecond, Duration: 500 * time.Millisecond, Download: "plain", Seed: 11, Rounds: 3,
	}
}

// options are those of a run on a Prosody.
func options(t *testing.T) lab.Options {
	t.Helper()
	fragment, err := os.ReadFile("../../configs/prosody.cfg.lua")
	if err != nil {
		t.Fatal(err)
	}
	global, err := os.ReadFile("../../configs/prosody-global.cfg.lua")
	if err != nil {
		t.Fatal(err)
	}
	return lab.Options{
		Work: work(), Host: lab.Prosody, Targets: []string{"component"}, ProsodyFragment: string(fragment), ProsodyGlobal: string(global),
		Timeout: time.Minute, Out: filepath.Join(t.TempDir(), "run.jsonl"), Say: t.Logf,
	}
}

// child is an echo in this process.
type child struct {
	stopped *atomic.Bool
	cancel  context.CancelFunc
	running *sync.WaitGroup
}

func (c child) PID() int { return os.Getpid() }

func (c child) Stop() {
	c.cancel()
	c.running.Wait()
	c.stopped.Store(true)
}

// startEcho returns when the echo is attached.
func startEcho(ctx context.Context, t *testing.T, o echo.Options) child {
	t.Helper()
	ctx, cancel := context.WithCancel(ctx)
	c := child{new(atomic.Bool), cancel, new(sync.WaitGroup)}
	attached := make(chan struct{})
	var once sync.Once
	o.Ready = func() { once.Do(func() { close(attached) }) }
	c.running.Go(func() {
		if err := echo.Run(ctx, o); err != nil {
			t.Error(err)
		}
	})
	<-attached
	return c
}

// echoes lets a run start its echo here; last is the one that it started.
func echoes(t *testing.T, o *lab.Options) (last *child) {
	last = new(child)
	o.Echo = true
	o.StartEcho = func(_ context.Context, e lab.Echo) (lab.Child, error) {
		*last = startEcho(context.WithoutCancel(t.Context()), t, echo.Options{
			Server: e.Server, JID: e.JID, Secret: []byte(e.Secret), Records: e.Work.Records, RecordBytes: e.Work.RecordBytes,
		})
		return *last, nil
	}
	return last
}

// samples reads all records of a file.
func samples(t *testing.T, path string) (env report.Environment, all []report.Record) {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	r, err := report.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	for {
		record, err := r.Next()
		if errors.Is(err, io.EOF) {
			return r.Environment, all
		}
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, record)
	}
}

// TestTargetsTakeTurns measures three targets on a Prosody: in turns, A B C A B
// C, with the machine looked at between the rounds, and with figures that are
// the medians over the rounds, computed here once more from the samples.
func TestTargetsTakeTurns(t *testing.T) {
	t.Parallel()
	o := options(t)
	o.Targets = []string{"pep", "component:safe.localhost"}
	echoes(t, &o)
	verdict, err := lab.Run(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	env, all := samples(t, o.Out)
	var turns []string
	rates := make(map[string][]float64)
	count := make(map[string]float64)
	machines := 0
	for _, record := range all {
		switch record := record.(type) {
		case report.Operation:
			if record.Phase == report.PhaseSteady && record.Kind.IsLoad() && record.Result == report.OK {
				count[record.Target]++
			}
		case report.Phase:
			if record.Name == report.PhaseSteady {
				turns = append(turns, record.Target)
				rates[record.Target] = append(rates[record.Target], count[record.Target]/(record.To-record.From).Seconds())
				count[record.Target] = 0
			}
		case report.Machine:
			machines++
		}
	}
	want := []string{"pep", "component", "echo"}
	if got := slices.Concat(want, want, want); !slices.Equal(turns, got) {
		t.Errorf("turns %v, want %v", turns, got)
	}
	if !slices.Equal(env.Targets, want) || machines != o.Work.Rounds+1 {
		t.Errorf("targets %v with %d looks at the machine, want %v with %d", env.Targets, machines, want, o.Work.Rounds+1)
	}
	near := func(what string, got, want float64) {
		t.Helper()
		if math.Abs(got-want) > want/1000 {
			t.Errorf("%s: %g, want %g", what, got, want)
		}
	}
	middle := func(three []float64) float64 { return slices.Sorted(slices.Values(three))[1] }
	ratios := func(of, to []float64) (each []float64) {
		for i := range of {
			each = append(each, of[i]/to[i])
		}
		return each
	}
	briefs := append([]report.Brief{verdict.Brief}, verdict.Against...)
	for i, name := range want {
		near(name, briefs[i].Rate, middle(rates[name]))
		if i > 0 {
			near("pep to "+name, verdict.Ratios[i-1].Rate.Median, middle(ratios(rates["pep"], rates[name])))
		}
	}
}

// TestFileNamesItsSurroundings holds that a file says where its figures come
// from, and that what is watched is watched apart.
func TestFileNamesItsSurroundings(t *testing.T) {
	t.Parallel()
	o := options(t)
	o.Collector, o.Work.Rounds, o.Program = lab.Tuned, 1, "bench of the test"
	o.PIDs = map[string]int{"other": os.Getppid()}
	if _, err := lab.Run(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	env, all := samples(t, o.Out)
	if !strings.HasPrefix(env.Host.Version, "Prosody ") || !strings.HasPrefix(env.Host.Versions["service"], "pepvault ") {
		t.Errorf("versions: host %q, others %v", env.Host.Version, env.Host.Versions)
	}
	if env.Program != o.Program || !reflect.DeepEqual(env.Work, o.Work) || env.Machine.Storage == "" || env.Host.Settings["journal"] != "WAL" ||
		!strings.HasPrefix(env.Host.Settings["network"], "network_default_read_size = 65536; network_settings = ") {
		t.Errorf("surroundings: %+v", env)
	}
	watched, noise, sizes := make(map[string]bool), 0, 0
	for _, record := range all {
		switch record := record.(type) {
		case report.Process:
			watched[record.Name] = watched[record.Name] || record.User > 0
		case report.Noise:
			noise++
		case report.Storage:
			sizes++
			if record.Bytes < record.Records*int64(o.Work.RecordBytes) {
				t.Errorf("%d records in %d bytes", record.Records, record.Bytes)
			}
		}
	}
	for _, name := range []string{report.Generator, "prosody", "service", "other"} {
		if _, found := watched[name]; !found {
			t.Errorf("%s is not watched", name)
		}
	}
	if !watched["prosody"] || noise == 0 || sizes != 1 {
		t.Errorf("watched %v, %d looks at the machine's work, %d sizes of databases", watched, noise, sizes)
	}
}

// strange is a Prosody that somebody else has started.
func strange(t *testing.T) lab.Server {
	t.Helper()
	const password = "pass-of-the-test"
	o := servers.Options{Dir: t.TempDir()}
	for n := range work().Users {
		o.Users = append(o.Users, servers.User{Name: fleet.UserName("load", n), Password: password})
	}
	server, err := servers.StartProsody(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Stop)
	return lab.Server{Addr: server.Addr, Domain: server.Domain, UserPrefix: "load", Password: password, TLS: server.TLS()}
}

// meddle has one more device save a record that is not of the workload.
func meddle(t *testing.T, s lab.Server) {
	t.Helper()
	w := work()
	f := fleet.New(fleet.Options{
		Shape:   workload.Shape{Seed: w.Seed + 1, Users: 1, Devices: w.Devices + 1, Records: w.Records, Bytes: w.RecordBytes},
		Host:    fleet.Server{Addr: s.Addr, Name: s.Domain, Password: s.Password, TLS: s.TLS},
		Targets: []fleet.Target{{Name: "pep"}}, UserPrefix: s.UserPrefix,
	})
	defer f.Close()
	d := f.Device(0, w.Devices)
	err := d.Connect(t.Context())
	if err == nil {
		_, err = d.Save(t.Context(), 0, 1, 7)
	}
	if err != nil {
		t.Error(err)
	}
}

// TestFailureHasNoFigures has somebody else write into a vault of the run: the
// verdict says so and has no figures, and the file ends with that verdict.
func TestFailureHasNoFigures(t *testing.T) {
	t.Parallel()
	o := options(t)
	o.Host, o.Server, o.Targets = lab.Existing, strange(t), []string{"pep"}
	o.Work.Rounds = 1
	o.Say = func(format string, args ...any) {
		t.Logf(format, args...)
		if strings.Contains(format, "seeded") {
			meddle(t, o.Server)
		}
	}
	verdict, err := lab.Run(t.Context(), o)
	if !errors.Is(err, runner.ErrFailed) {
		t.Fatalf("got %v, want %v", err, runner.ErrFailed)
	}
	if verdict.OK || verdict.Outcome != nil || len(verdict.Checks) != 1 || verdict.Checks[0].Wrong == 0 {
		t.Errorf("the verdict is %s", verdict.Line())
	}
	kept, err := report.LoadFile(o.Out)
	if err != nil || kept.Verdict == nil || kept.Verdict.Line() != verdict.Line() {
		t.Errorf("the file does not end with %s: %v", verdict.Line(), err)
	}
	if text, err := os.ReadFile(o.Out); err != nil || strings.Contains(string(text), o.Server.Password) {
		t.Errorf("the file shows the password, or can't be read: %v", err)
	}
}

// TestStopEndsEverything interrupts a run: there is no verdict that is good,
// and nothing that it started is left.
func TestStopEndsEverything(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	o := options(t)
	last := echoes(t, &o)
	o.Work.Duration = time.Hour
	o.Say = func(format string, args ...any) {
		t.Logf(format, args...)
		if strings.Contains(format, "listen") {
			cancel()
		}
	}
	verdict, err := lab.Run(ctx, o)
	if !errors.Is(err, context.Canceled) || verdict.OK || verdict.Outcome != nil {
		t.Errorf("got %v and %s", err, verdict.Line())
	}
	if !last.stopped.Load() {
		t.Error("the echo was not stopped")
	}
}

// TestOptionsAreChecked holds that what does not go together is said before
// anything starts.
func TestOptionsAreChecked(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		change func(*lab.Options)
		want   string
	}{
		"no target":               {func(o *lab.Options) { o.Targets = nil }, "no target"},
		"a target twice":          {func(o *lab.Options) { o.Targets = []string{"pep", "pep"} }, "twice"},
		"component with two JIDs": {func(o *lab.Options) { o.Targets = []string{"component", "component:b.localhost"} }, "twice"},
		"component without a JID": {func(o *lab.Options) { o.Targets = []string{"component:"} }, "none of"},
		"component of a user":     {func(o *lab.Options) { o.Targets = []string{"component:a@b"} }, "none of"},
		"unknown target":          {func(o *lab.Options) { o.Targets = []string{"cloud"} }, "none of"},
		"embedded PEP":            {func(o *lab.Options) { o.Host, o.Targets = lab.Embedded, []string{"pep"} }, "no PEP"},
		"two embedded components": {func(o *lab.Options) { o.Host, o.Echo = lab.Embedded, true }, "one component"},
		"echo of a strange server": {func(o *lab.Options) {
			o.Host, o.Echo, o.Server = lab.Existing, true, lab.Server{Addr: "127.0.0.1:1", Domain: "d", UserPrefix: "u", Password: "p"}
		}, "--echo"},
		"a server without a password": {func(o *lab.Options) {
			o.Host, o.Server = lab.Existing, lab.Server{Addr: "127.0.0.1:1", Domain: "d", UserPrefix: "u"}
		}, "password"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := options(t)
			test.change(&o)
			verdict, err := lab.Run(t.Context(), o)
			if !errors.Is(err, lab.ErrUsage) || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want %q", err, test.want)
			}
			if _, err := os.Stat(o.Out); verdict.Workload != "" || !errors.Is(err, os.ErrNotExist) {
				t.Errorf("there is a verdict %s, or a file: %v", verdict.Line(), err)
			}
		})
	}
}
