package limit

import (
	"bufio"
	"bytes"
	"errors"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// layout writes a folder that looks like mounted control groups.
func layout(t *testing.T, files map[string]string) string {
	t.Helper()
	root := t.TempDir()
	for name, text := range files {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

// read returns the contents of the file of that name in the one group below parent.
func read(t *testing.T, parent, name string) string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(parent, prefix+"*", name))
	if err != nil || len(found) != 1 {
		t.Fatalf("%d files %s below %s: %v", len(found), name, parent, err)
	}
	text, err := os.ReadFile(found[0])
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

const (
	mountsOfOne = "31 23 0:28 / ROOT rw - tmpfs tmpfs rw,mode=755\n" +
		"32 31 0:29 / ROOT/cpu,cpuacct rw,relatime - cgroup cgroup rw,cpu,cpuacct\n" +
		"35 31 0:32 /pod ROOT/memory rw,relatime shared:4 - cgroup cgroup rw,memory\n" +
		"41 31 0:38 / ROOT/unified rw,relatime - cgroup2 cgroup2 rw\n"
	ownOfOne = "4:memory:/pod/mine\n2:cpu,cpuacct:/\n0::/\n"

	mountsOfTwo = "41 31 0:38 / ROOT rw,relatime - cgroup2 cgroup2 rw\n"
	ownOfTwo    = "0::/user/session\n"
)

func TestVersionOne(t *testing.T) {
	t.Parallel()
	root := layout(t, map[string]string{"cpu,cpuacct/tasks": "", "memory/mine/tasks": "", "unified/cgroup.subtree_control": "cpu memory"})
	g, err := newGroup(strings.ReplaceAll(mountsOfOne, "ROOT", root), ownOfOne, Limits{CPUs: 0.5, Memory: 512 << 20})
	if err != nil {
		t.Fatal(err)
	}
	cpu, memory := filepath.Join(root, "cpu,cpuacct"), filepath.Join(root, "memory/mine")
	for _, test := range []struct{ parent, name, want string }{
		{cpu, "cpu.cfs_period_us", "100000"}, {cpu, "cpu.cfs_quota_us", "50000"}, {memory, "memory.limit_in_bytes", "536870912"},
	} {
		if got := read(t, test.parent, test.name); got != test.want {
			t.Errorf("%s is %s, want %s", test.name, got, test.want)
		}
	}
	if err := errors.Join(g.LimitCPU(0), g.LimitMemory(0)); err != nil {
		t.Fatal(err)
	}
	if got := read(t, memory, "memory.limit_in_bytes"); got != "-1" {
		t.Errorf("without limit the memory is %s", got)
	}
	if got := read(t, cpu, "cpu.cfs_quota_us"); got != "-1" {
		t.Errorf("without limit the quota is %s", got)
	}
	fill(t, g.folders["cpu"], map[string]string{
		"cpu.stat": "nr_periods 100\nnr_throttled 40\nthrottled_time 123\n", "cpuacct.usage": "2000000000\n",
	})
	fill(t, g.folders["memory"], map[string]string{
		"memory.usage_in_bytes": "9000\n", "memory.oom_control": "oom_kill_disable 0\nunder_oom 0\noom_kill 2\n",
		"memory.stat": "inactive_file 1\nactive_file 1\ntotal_inactive_file 3000\ntotal_active_file 1000\n",
	})
	want := Usage{CPU: 2 * time.Second, Periods: 100, Throttled: 40, Memory: 5000, Kills: 2}
	if got, err := g.Usage(); err != nil || got != want {
		t.Errorf("%+v, %v, want %+v", got, err, want)
	}
	path, args := g.Wrap("prosody", []string{"-F"})
	if path != "/bin/sh" || args[3] != "2" || len(args) != 4+2+2 { // one group for cpu and cpuacct
		t.Errorf("wrapped: %s %q", path, args)
	}
}

func TestVersionTwo(t *testing.T) {
	t.Parallel()
	// The own group has processes, and gives nothing to those below: the kernel
	// refuses to write there, as the folder in its place does.
	root := layout(t, map[string]string{
		"user/session/cgroup.subtree_control/busy": "", "user/cgroup.subtree_control": "cpuset cpu memory pids\n", "cgroup.subtree_control": "cpu memory",
	})
	g, err := newGroup(strings.ReplaceAll(mountsOfTwo, "ROOT", root), ownOfTwo, Limits{CPUs: 2, Memory: 2 << 30})
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"cpu.max": "200000 100000", "memory.max": "2147483648"} {
		if got := read(t, filepath.Join(root, "user"), name); got != want {
			t.Errorf("%s is %s, want %s", name, got, want)
		}
	}
	if err := errors.Join(g.LimitCPU(0), g.LimitMemory(0)); err != nil {
		t.Fatal(err)
	}
	if got := read(t, filepath.Join(root, "user"), "memory.max"); got != "max" {
		t.Errorf("without limit the memory is %s", got)
	}
	if got := read(t, filepath.Join(root, "user"), "cpu.max"); got != "max 100000" {
		t.Errorf("without limit it is %s", got)
	}
	fill(t, g.folders["cpu"], map[string]string{
		"cpu.stat":       "usage_usec 1500000\nuser_usec 1\nsystem_usec 1\nnr_periods 30\nnr_throttled 3\nthrottled_usec 5\n",
		"memory.current": "9000\n", "memory.events": "low 0\noom 1\noom_kill 1\n", "memory.stat": "anon 1\ninactive_file 3000\nactive_file 1000\n",
	})
	want := Usage{CPU: 1500 * time.Millisecond, Periods: 30, Throttled: 3, Memory: 5000, Kills: 1}
	if got, err := g.Usage(); err != nil || got != want {
		t.Errorf("%+v, %v, want %+v", got, err, want)
	}
}

// TestOwnGroupsAreRead has both versions, and groups in one another.
func TestOwnGroupsAreRead(t *testing.T) {
	t.Parallel()
	root := layout(t, map[string]string{
		"cpu,cpuacct/cpu.stat": "nr_periods 0\nnr_throttled 0\nthrottled_time 0\n", "unified/cgroup.procs": "",
		"user/session/cpu.stat": "usage_usec 15\nnr_periods 30\nnr_throttled 3\n", "user/cpu.stat": "usage_usec 70\n", "cpu.stat": "usage_usec 90\n",
	})
	for name, test := range map[string]struct {
		mounts, own string
		want        map[string]Throttle
	}{
		"one":  {mountsOfOne, ownOfOne, map[string]Throttle{"cpu,cpuacct": {}, ".": {}}},
		"two":  {mountsOfTwo, ownOfTwo, map[string]Throttle{"user/session": {30, 3}, "user": {}, ".": {}}},
		"none": {"", "", map[string]Throttle{}},
	} {
		got := make(map[string]Throttle)
		for folder, counted := range throttles(strings.ReplaceAll(test.mounts, "ROOT", root), test.own) {
			short, err := filepath.Rel(root, folder)
			if err != nil {
				t.Fatal(err)
			}
			got[short] = counted
		}
		if !maps.Equal(got, test.want) {
			t.Errorf("%s: got %v, want %v", name, got, test.want)
		}
	}
}

// fill writes what a kernel would tell.
func fill(t *testing.T, folder string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

func TestUnavailable(t *testing.T) {
	t.Parallel()
	empty := layout(t, map[string]string{"cgroup.subtree_control": "pids\n", "user/session/cgroup.subtree_control/busy": ""})
	for name, test := range map[string]struct{ mounts, own string }{
		"no control groups":     {"22 1 0:20 / / rw - ext4 /dev/sda rw\n", ""},
		"one of two":            {"32 31 0:29 / " + empty + " rw - cgroup cgroup rw,cpu\n", "1:cpu:/\n"},
		"no controllers":        {strings.ReplaceAll(mountsOfTwo, "ROOT", empty), ownOfTwo},
		"may not make a folder": {strings.ReplaceAll(mountsOfOne, "ROOT", filepath.Join(empty, "none")), ownOfOne},
	} {
		if _, err := newGroup(test.mounts, test.own, Limits{CPUs: 1}); !errors.Is(err, ErrUnavailable) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// real makes a group that limits; where the kernel lets nobody, that it says so is
// all that can be seen, and the layouts above stand for the rest.
func real(t *testing.T, l Limits) *Group {
	t.Helper()
	g, err := New(l)
	if errors.Is(err, ErrUnavailable) {
		t.Logf("no limits on this machine: %v", err)
		return nil
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		made := g.made
		if err := g.Close(); err != nil {
			t.Error(err)
		}
		for _, folder := range made {
			if _, err := os.Stat(folder); err == nil {
				t.Errorf("%s is still there", folder)
			}
		}
	})
	return g
}

// TestThrottled burns a second of CPU with a fifth of one.
func TestThrottled(t *testing.T) {
	t.Parallel()
	g := real(t, Limits{CPUs: 0.2, Memory: 64 << 20})
	if g == nil {
		return
	}
	path, args := g.Wrap("/bin/sh", []string{"-c", "while :; do :; done"})
	cmd := exec.CommandContext(t.Context(), path, args...)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}()
	began := time.Now()
	var u Usage
	for u.Throttled < 10 { // as long as that takes
		var err error
		if u, err = g.Usage(); err != nil {
			t.Fatal(err)
		}
		if err := t.Context().Err(); err != nil {
			t.Fatal(err)
		}
	}
	if share := u.CPU.Seconds() / time.Since(began).Seconds(); share > 0.4 { // a period and its rounding more than 0.2
		t.Errorf("it had %.2f of a core, want 0.2", share)
	}
	members, err := os.ReadFile("/proc/" + strconv.Itoa(cmd.Process.Pid) + "/cgroup")
	if err != nil || !bytes.Contains(members, []byte(filepath.Base(g.made[0]))) {
		t.Errorf("the process is in %s: %v", members, err)
	}
}

// TestOutOfMemory has a process take more than there is: it is killed, and that is
// told.
func TestOutOfMemory(t *testing.T) {
	t.Parallel()
	g := real(t, Limits{Memory: 32 << 20})
	if g == nil {
		return
	}
	path, args := g.Wrap("/bin/sh", []string{"-c", `echo ready; read go; x=0123456789abcdef; while :; do x=$x$x; done`})
	cmd := exec.CommandContext(t.Context(), path, args...)
	input, err := cmd.StdinPipe()
	output, err2 := cmd.StdoutPipe()
	if err := errors.Join(err, err2, cmd.Start()); err != nil {
		t.Fatal(err)
	}
	if word, err := bufio.NewReader(output).ReadString('\n'); err != nil || word != "ready\n" {
		t.Fatalf("it says %q: %v", word, err)
	}
	u, err := g.Usage()
	if err != nil || u.Kills != 0 || u.Memory <= 0 || u.Memory > 32<<20 {
		t.Errorf("at its start: %+v, %v", u, err)
	}
	if _, err := input.Write([]byte("go\n")); err != nil {
		t.Fatal(err)
	}
	var exit *exec.ExitError
	if err := cmd.Wait(); !errors.As(err, &exit) || exit.ProcessState.Success() {
		t.Errorf("it ended with %v", err)
	}
	if u, err := g.Usage(); err != nil || u.Kills < 1 {
		t.Errorf("kills: %+v, %v", u, err)
	}
}

// TestCloseEndsWhatRuns leaves a process in the group.
func TestCloseEndsWhatRuns(t *testing.T) {
	t.Parallel()
	g := real(t, Limits{CPUs: 1})
	if g == nil {
		return
	}
	path, args := g.Wrap("sleep", []string{"3600"})
	cmd := exec.CommandContext(t.Context(), path, args...)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	if err := g.Close(); err != nil {
		t.Error(err)
	}
	if err := <-ended; err == nil {
		t.Error("it ended by itself")
	}
	if err := g.Close(); err != nil {
		t.Errorf("a second time: %v", err)
	}
}
