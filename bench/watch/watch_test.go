package watch

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"pepvault/bench/limit"
	"pepvault/bench/report"
)

// kept is a Sink that keeps all.
type kept struct {
	began time.Time

	mu        sync.Mutex
	processes []report.Process
	noise     []report.Noise
}

func (k *kept) Since() time.Duration { return time.Since(k.began) }

func (k *kept) Process(p report.Process) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.processes = append(k.processes, p)
}

func (k *kept) Noise(n report.Noise) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.noise = append(k.noise, n)
}

// last returns what was seen last of a name, without the moment.
func (k *kept) last(name string) report.Process {
	k.mu.Lock()
	defer k.mu.Unlock()
	for i := len(k.processes) - 1; i >= 0; i-- {
		if p := k.processes[i]; p.Name == name {
			p.At = 0
			return p
		}
	}
	return report.Process{}
}

// machineStat is a /proc/stat.
const machineStat = `cpu  1000 100 200 5000 50 10 20 30 400 0
cpu0 500 50 100 2500 25 5 10 15 200 0
intr 12345 0 0
procs_running 4
procs_blocked 1
`

// fake is a folder that looks like /proc.
type fake struct {
	t      *testing.T
	folder string
}

func newFake(t *testing.T) fake {
	f := fake{t: t, folder: t.TempDir()}
	f.write("stat", machineStat)
	return f
}

func (f fake) write(name, text string) {
	f.t.Helper()
	path := filepath.Join(f.folder, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		f.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		f.t.Fatal(err)
	}
}

// process is one that the fake has.
type process struct {
	pid, parent  int
	name         string
	state        string
	user, system int // ticks
	start        int
	rss, hwm     int // KiB
	read, write  int
	threads      map[int][2]int // context switches
}

func (f fake) process(p process) {
	if p.state == "" {
		p.state = "S"
	}
	if p.threads == nil {
		p.threads = map[int][2]int{p.pid: {5, 1}}
	}
	folder := strconv.Itoa(p.pid)
	f.write(folder+"/stat", fmt.Sprintf("%d (%s) %s %d 1 1 0 -1 4194304 98 0 0 0 %d %d 700 800 20 0 1 0 %d 3133440 380 18446744073709551615 9 9\n",
		p.pid, p.name, p.state, p.parent, p.user, p.system, p.start))
	status := fmt.Sprintf("Name:\t%s\nVmPeak:\t  999999 kB\nVmHWM:\t  %d kB\nVmRSS:\t  %d kB\nvoluntary_ctxt_switches:\t77\n", p.name, p.hwm, p.rss)
	if p.state == "Z" {
		status = "Name:\tgone\n"
	}
	f.write(folder+"/status", status)
	f.write(folder+"/io", fmt.Sprintf("rchar: 1\nwchar: 2\nread_bytes: %d\nwrite_bytes: %d\ncancelled_write_bytes: 3\n", p.read, p.write))
	if err := os.RemoveAll(filepath.Join(f.folder, folder, "task")); err != nil {
		f.t.Fatal(err)
	}
	for id, n := range p.threads {
		f.write(fmt.Sprintf("%s/task/%d/status", folder, id), fmt.Sprintf("Name:\tx\nvoluntary_ctxt_switches:\t%d\nnonvoluntary_ctxt_switches:\t%d\n", n[0], n[1]))
	}
}

func (f fake) end(pid int) {
	f.t.Helper()
	if err := os.RemoveAll(filepath.Join(f.folder, strconv.Itoa(pid))); err != nil {
		f.t.Fatal(err)
	}
}

// newTest is a watcher of a fake /proc in which the test's own process is not.
func newTest(t *testing.T) (fake, *kept, *Watcher) {
	t.Helper()
	f, sink := newFake(t), &kept{began: time.Now()}
	return f, sink, newWatcher(sink, procfs(f.folder))
}

func TestCountersOfOneProcess(t *testing.T) {
	t.Parallel()
	f, sink, w := newTest(t)
	f.process(process{
		pid: 40, name: "a (b) c) 1 2", user: 150, system: 50, start: 9, rss: 1000, hwm: 3000, read: 4096, write: 8192,
		threads: map[int][2]int{40: {10, 1}, 41: {20, 2}},
	})
	if err := w.Add("host", 40, false); err != nil {
		t.Fatal(err)
	}
	w.Look()
	want := report.Process{
		Name: "host", Count: 1, User: 1500 * time.Millisecond, System: 500 * time.Millisecond,
		Resident: 1000 << 10, Peak: 3000 << 10, Read: 4096, Written: 8192, Yielded: 30, Forced: 3,
	}
	if diff := cmp.Diff(want, sink.last("host")); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}

	// Thread 41 ends, and its number goes to a new one.
	f.process(process{
		pid: 40, name: "a", user: 160, system: 50, start: 9, rss: 500, hwm: 3000, read: 4096, write: 9000,
		threads: map[int][2]int{40: {15, 1}, 41: {3, 0}},
	})
	w.Look()
	want.User, want.Resident, want.Written, want.Yielded = 1600*time.Millisecond, 500<<10, 9000, 38
	if diff := cmp.Diff(want, sink.last("host")); diff != "" {
		t.Errorf("later: -want +got\n%s", diff)
	}

	// It ends; what it had used stays counted.
	f.end(40)
	w.Look()
	want.Count, want.Resident = 0, 0
	if diff := cmp.Diff(want, sink.last("host")); diff != "" {
		t.Errorf("ended: -want +got\n%s", diff)
	}

	// Somebody else gets the pid: not watched.
	f.process(process{pid: 40, name: "stranger", user: 9999, start: 10})
	w.Look()
	if diff := cmp.Diff(want, sink.last("host")); diff != "" {
		t.Errorf("pid reused: -want +got\n%s", diff)
	}
	// Its successor is counted with it.
	f.process(process{pid: 50, name: "again", user: 10, start: 11, rss: 7, hwm: 8, threads: map[int][2]int{}})
	if err := w.Add("host", 50, false); err != nil {
		t.Fatal(err)
	}
	w.Look()
	want.Count, want.Resident, want.User = 1, 7<<10, 1700*time.Millisecond
	if diff := cmp.Diff(want, sink.last("host")); diff != "" {
		t.Errorf("successor: -want +got\n%s", diff)
	}
}

func TestPidReusedBetweenTwoLooks(t *testing.T) {
	t.Parallel()
	f, sink, w := newTest(t)
	f.process(process{pid: 40, name: "host", user: 100, start: 9})
	if err := w.Add("host", 40, false); err != nil {
		t.Fatal(err)
	}
	f.process(process{pid: 40, name: "stranger", user: 5, start: 10})
	w.Look()
	if got := sink.last("host"); got.Count != 0 || got.User != time.Second {
		t.Errorf("got %+v, want the ended one's second of CPU", got)
	}
}

func TestFamily(t *testing.T) {
	t.Parallel()
	f, sink, w := newTest(t)
	f.process(process{pid: 10, parent: 1, name: "script", user: 1, rss: 100, hwm: 150})
	f.process(process{pid: 30, parent: 20, name: "grandchild", user: 30, rss: 300, hwm: 400})
	f.process(process{pid: 20, parent: 10, name: "child", user: 20, rss: 200, hwm: 900})
	f.process(process{pid: 21, parent: 1, name: "stranger", user: 5000, rss: 5000, hwm: 5000})
	if err := w.Add("host", 10, true); err != nil {
		t.Fatal(err)
	}
	w.Look()
	want := report.Process{Name: "host", Count: 3, User: 510 * time.Millisecond, Resident: 600 << 10, Peak: 600 << 10, Yielded: 15, Forced: 3}
	if diff := cmp.Diff(want, sink.last("host")); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}

	// The middle one ends, and its child goes to process 1; a new child comes.
	f.end(20)
	f.process(process{pid: 30, parent: 1, name: "grandchild", user: 40, rss: 350, hwm: 400})
	f.process(process{pid: 31, parent: 10, name: "late", user: 2, rss: 1, hwm: 1, state: "Z"})
	for range familyLooks { // one of them searches
		w.Look()
	}
	want.User, want.Count, want.Resident, want.Yielded, want.Forced = 630*time.Millisecond, 2, 450<<10, 20, 4
	if diff := cmp.Diff(want, sink.last("host")); diff != "" {
		t.Errorf("later: -want +got\n%s", diff)
	}
}

func TestNoise(t *testing.T) {
	t.Parallel()
	f, sink, w := newTest(t)
	f.process(process{pid: 40, name: "host", user: 100})
	f.process(process{pid: 50, parent: 40, name: "child", user: 1000})
	if err := w.Add("host", 40, true); err != nil {
		t.Fatal(err)
	}
	// 3 s more for the host, half a second of a new child, 5 s altogether.
	f.process(process{pid: 40, name: "host", user: 300, system: 100})
	f.process(process{pid: 60, parent: 50, name: "new", user: 50})
	f.write("stat", strings.Replace(machineStat, "cpu  1000", "cpu  1500", 1))
	w.Look()
	want := report.Noise{Busy: 18300 * time.Millisecond, Others: 14800 * time.Millisecond, Stolen: 300 * time.Millisecond, Runnable: 4}
	if diff := cmp.Diff([]report.Noise{want}, sink.noise, cmpopts.IgnoreFields(report.Noise{}, "At")); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}

func TestAddOfNobody(t *testing.T) {
	t.Parallel()
	f, _, w := newTest(t)
	if err := w.Add("host", 4711, false); err == nil || !strings.Contains(err.Error(), "watch host: there is no process 4711") {
		t.Errorf("got %v", err)
	}
	f.write("9/stat", "9 (short) S 1 2")
	if err := w.Add("host", 9, false); err == nil || !strings.Contains(err.Error(), errFormat.Error()) {
		t.Errorf("got %v", err)
	}
}

func TestWithoutProcNothingIsMeasured(t *testing.T) {
	t.Parallel()
	sink := &kept{began: time.Now()}
	w := newWatcher(sink, procfs(filepath.Join(t.TempDir(), "none")))
	if err := w.Add("host", 1, true); err != nil {
		t.Fatal(err)
	}
	w.Look()
	want := report.Process{Name: "host", Count: 1, Unmeasured: []string{"cpu", "memory", "storage", "switches"}}
	if diff := cmp.Diff(want, sink.last("host")); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
	if len(sink.noise) > 0 {
		t.Errorf("noise was measured: %+v", sink.noise)
	}
}

func TestRunLooksTwiceASecond(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	synctest.Test(t, func(t *testing.T) {
		sink := &kept{began: time.Now()}
		w := newWatcher(sink, procfs(f.folder))
		ctx, cancel := context.WithTimeout(t.Context(), 2200*time.Millisecond)
		defer cancel()
		w.Run(ctx)
		var got []time.Duration
		for _, n := range sink.noise {
			got = append(got, n.At)
		}
		want := []time.Duration{0, 500 * time.Millisecond, time.Second, 1500 * time.Millisecond, 2 * time.Second, 2200 * time.Millisecond}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("-want +got\n%s", diff)
		}
	})
}

// TestBeatCountsWhatItSleptThrough holds that the generator's waiting is that of
// every moment, also of those at which it did not come to look.
func TestBeatCountsWhatItSleptThrough(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		sleep := func(d time.Duration) {
			if time.Since(start) >= 40*time.Millisecond && time.Since(start) < 50*time.Millisecond {
				d += 35 * time.Millisecond // the beats at 50 to 80 ms are all seen at 85 ms
			}
			time.Sleep(d)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 105*time.Millisecond)
		defer cancel()
		var b beat
		b.run(ctx, sleep)
		// At 10, 20, 30, 40, 90, 100 and 110 ms on time; 35, 25, 15 and 5 ms late.
		if n, waited := b.count.Load(), time.Duration(b.waited.Load()); n != 11 || waited != 80*time.Millisecond {
			t.Errorf("%d beats waited %s, want 11 and 80ms", n, waited)
		}
	})
}

// TestLimitsThatHoldUs: what a group counted before is not ours, of two that hold us
// at a time one counts, and we may be moved.
func TestLimitsThatHoldUs(t *testing.T) {
	t.Parallel()
	f, sink, w := newTest(t)
	f.process(process{pid: 40, start: 9})
	if err := w.Add(report.Generator, 40, false); err != nil {
		t.Fatal(err)
	}
	var now map[string]limit.Throttle
	w.limits = func() map[string]limit.Throttle { return now }
	for _, step := range []struct {
		groups             map[string]limit.Throttle
		periods, throttled int64
	}{
		{map[string]limit.Throttle{"a/b": {Periods: 50, Throttled: 40}, "a": {Periods: 90, Throttled: 1}}, 0, 0},
		{map[string]limit.Throttle{"a/b": {Periods: 60, Throttled: 45}, "a": {Periods: 100, Throttled: 9}}, 10, 8},
		{map[string]limit.Throttle{"a/c": {Periods: 70, Throttled: 60}, "a": {Periods: 104, Throttled: 9}}, 14, 8},
		{map[string]limit.Throttle{"a/c": {Periods: 76, Throttled: 63}, "a": {Periods: 110, Throttled: 9}}, 20, 11},
		{nil, 20, 11},
	} {
		now = step.groups
		w.Look()
		if got := sink.last(report.Generator); got.Periods != step.periods || got.Throttled != step.throttled {
			t.Errorf("%v: held in %d of %d periods, want %d of %d", step.groups, got.Throttled, got.Periods, step.throttled, step.periods)
		}
	}
}

// TestParsersTakeAnything holds that no text of /proc makes a parser panic or
// count backwards.
func TestParsersTakeAnything(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		text := []byte(rapid.StringMatching(`([0-9() \n:a-c-]|cpu |VmRSS:|Z){0,200}`).Draw(t, "text"))
		if s, err := parseStat(text); err == nil && (s.user < 0 || s.system < 0 || s.start < 0) {
			t.Errorf("%q: %+v", text, s)
		}
		if _, err := parseNoise(text); err == nil && !strings.Contains(string(text), "cpu ") {
			t.Errorf("%q: noise without a line of processors", text)
		}
		field(text, "VmRSS:")
	})
}

func TestLinksMakeOneCircle(t *testing.T) {
	t.Parallel()
	lines := make([][lineBytes / 4]uint32, 1000)
	linkAll(lines)
	at, steps := uint32(0), 0
	for {
		at = lines[at][0]
		steps++
		if at == 0 || steps > len(lines) {
			break
		}
	}
	if steps != len(lines) {
		t.Errorf("back at the beginning after %d steps of %d", steps, len(lines))
	}
}

func TestPercentile(t *testing.T) {
	t.Parallel()
	var sorted []time.Duration
	for i := range 200 {
		sorted = append(sorted, time.Duration(i+1))
	}
	for _, test := range []struct {
		n, percent int
		want       time.Duration
	}{{200, 50, 100}, {200, 99, 198}, {1, 50, 1}, {1, 99, 1}, {3, 50, 2}, {99, 99, 99}} {
		if got := nth(sorted[:test.n], test.percent); got != test.want {
			t.Errorf("%d %% of %d: got %d, want %d", test.percent, test.n, got, test.want)
		}
	}
}
