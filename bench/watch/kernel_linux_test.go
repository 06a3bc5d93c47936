package watch

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"pepvault/bench/report"
)

// workVariable makes the test's binary a process that works: its value is the
// file to write.
const workVariable = "PEPVAULT_TEST_WORK"

const (
	workCPU   = 300 * time.Millisecond
	workBytes = 4 << 20
	workHeap  = 32 << 20
)

func TestMain(m *testing.M) {
	if path := os.Getenv(workVariable); path != "" {
		if err := work(path); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// work burns CPU, writes a file, says what the kernel charged for it, and waits
// for the end of standard input.
func work(path string) error {
	var usage syscall.Rusage
	heap := bytes.Repeat([]byte{1}, workHeap)
	for n := 0; ; n++ {
		if n%100_000 != 0 {
			continue
		}
		if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
			return err
		}
		if time.Duration(usage.Utime.Nano()+usage.Stime.Nano()) >= workCPU {
			break
		}
	}
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer f.Close()
	if _, err := f.Write(bytes.Repeat([]byte("pepvault"), workBytes/8)); err != nil {
		return err
	}
	if err := f.Sync(); err != nil {
		return err
	}
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		return err
	}
	fmt.Println(usage.Utime.Nano()+usage.Stime.Nano(), usage.Oublock*512, usage.Maxrss<<10, usage.Nvcsw)
	_, err = io.Copy(io.Discard, os.Stdin)
	runtime.KeepAlive(heap)
	return err
}

func TestRealProcess(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	path := filepath.Join(folder, "written")
	command := exec.CommandContext(t.Context(), os.Args[0])
	command.Env = append(os.Environ(), workVariable+"="+path)
	stdin, err := command.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	sink := &kept{began: time.Now()}
	w := New(sink)
	if err := w.Add("worker", command.Process.Pid, true); err != nil {
		t.Fatal(err)
	}
	w.Look()
	line, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	var cpu, written, peak, yielded int64
	if _, err := fmt.Sscan(line, &cpu, &written, &peak, &yielded); err != nil {
		t.Fatalf("%q: %v", line, err)
	}
	w.Look()
	got := sink.last("worker")
	// It goes on to wait, which costs a little, and /proc counts in ticks.
	if used := got.User + got.System; used < time.Duration(cpu)-4*tick || used > time.Duration(cpu)+10*tick {
		t.Errorf("CPU %v, the kernel told the process %v", used, time.Duration(cpu))
	}
	if got.Written < written || got.Written > written+64<<10 {
		t.Errorf("%d bytes written, the kernel told the process %d", got.Written, written)
	}
	if FileSystem(folder) != "tmpfs" && got.Written < workBytes {
		t.Errorf("%d bytes written, want at least the file's %d", got.Written, workBytes)
	}
	if got.Resident < workHeap || got.Resident > got.Peak || got.Peak > peak+16<<20 {
		t.Errorf("memory %d, peak %d; the kernel told the process a peak of %d", got.Resident, got.Peak, peak)
	}
	if got.Count != 1 || got.Yielded == 0 || len(got.Unmeasured) > 0 {
		t.Errorf("got %+v", got)
	}
	if err := stdin.Close(); err != nil {
		t.Fatal(err)
	}
	if err := command.Wait(); err != nil {
		t.Fatal(err)
	}
	w.Look()
	if ended := sink.last("worker"); ended.Count != 0 || ended.User+ended.System < workCPU-4*tick || ended.Resident != 0 {
		t.Errorf("after its end: %+v", ended)
	}
	if own := sink.last(report.Generator); own.Count != 1 || own.Resident == 0 || own.Yielded == 0 {
		t.Errorf("the own process: %+v", own)
	}
	if n := sink.noise[len(sink.noise)-1]; n.Busy <= 0 || n.Others < 0 || n.Others >= n.Busy || n.Runnable == 0 {
		t.Errorf("noise %+v", n)
	}
}

// TestCalmGeneratorIsNotBound measures this process's own waiting beside a load that
// took ten seconds for each answer: no machine is so busy that it would be most of
// that. Not parallel: what other tests compute is this process's work too.
func TestCalmGeneratorIsNotBound(t *testing.T) {
	r, err := report.NewRecorder(io.Discard, report.Environment{Work: report.Workload{Name: "mix", Rounds: 1}, Targets: []string{"a"}})
	if err != nil {
		t.Fatal(err)
	}
	w := newWatcher(r, "/proc")
	beats, enough := 0, make(chan struct{})
	w.sleep = func(d time.Duration) {
		sleepExactly(d)
		if beats++; beats == 20 {
			close(enough)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		w.Run(ctx)
		close(ended)
	}()
	w.Look()
	from := r.Since()
	<-enough
	r.Operation(report.Operation{Target: "a", Round: 1, Phase: report.PhaseSteady, Kind: report.Read, Result: report.OK, Latency: 10 * time.Second, Service: 10 * time.Second})
	cancel()
	<-ended // after a last look
	r.Phase(report.Phase{Target: "a", Round: 1, Name: report.PhaseSteady, From: from, To: r.Since()})
	verdict, err := r.Finish(nil)
	if err != nil {
		t.Fatal(err)
	}
	if verdict.GeneratorBound || verdict.Wait <= 0 {
		t.Errorf("waited %g ms, bound %t", verdict.Wait, verdict.GeneratorBound)
	}
}

func TestMachine(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	m := Machine(t.Context(), folder)
	if m.Memory < 0.5 || m.Memory > 100_000 {
		t.Errorf("a load from memory takes %v ns", m.Memory)
	}
	if m.Syncs == 0 || m.SyncP50 <= 0 || m.SyncP50 > m.SyncP99 || m.SyncP99 > m.SyncMax {
		t.Errorf("disk: %+v", m)
	}
	if left, err := os.ReadDir(folder); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if got := Machine(ended, folder); got != (report.Machine{}) {
		t.Errorf("after the end of the context: %+v", got)
	}
	if got := Machine(t.Context(), filepath.Join(folder, "none")); got.Syncs != 0 {
		t.Errorf("in a folder that isn't there: %+v", got)
	}
}

func TestFileSystem(t *testing.T) {
	t.Parallel()
	if got := FileSystem(filepath.Join(t.TempDir(), "none")); got != "" {
		t.Errorf("got %q for a folder that isn't there", got)
	}
	if mounts, err := os.ReadFile("/proc/mounts"); err == nil && strings.Contains(string(mounts), " /dev/shm tmpfs ") {
		if got := FileSystem("/dev/shm"); got != "tmpfs" {
			t.Errorf("got %q for /dev/shm", got)
		}
	}
}

func BenchmarkLook(b *testing.B) {
	w := New(&kept{})
	if err := w.Add("family", os.Getppid(), true); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		w.Look()
	}
}
