package lab_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"pepvault/bench/lab"
	"pepvault/bench/report"
)

// starvedVariable makes the test's binary a run whose devices have too little CPU;
// its value is where the verdict goes.
const starvedVariable = "PEPVAULT_TEST_STARVED"

// TestStarvedRunSaysSo has a run share one processor with goroutines that want it
// all the time: what it measures is its own waiting, and it says so.
func TestStarvedRunSaysSo(t *testing.T) {
	t.Parallel()
	if path := os.Getenv(starvedVariable); path != "" {
		starvedRun(t, path)
		return
	}
	path := filepath.Join(t.TempDir(), "verdict")
	run := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestStarvedRunSaysSo$")
	run.Env = append(os.Environ(), starvedVariable+"="+path, "GOMAXPROCS=1")
	if output, err := run.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, output)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var verdict report.Verdict
	if err := json.Unmarshal(text, &verdict); err != nil {
		t.Fatal(err)
	}
	if !verdict.OK || !verdict.GeneratorBound {
		t.Errorf("a run with too little CPU says %s", text)
	}
	t.Logf("it waited %.1f ms on average", verdict.Wait)
}

// starvedRun takes the processor away as soon as all devices are there, and gives it
// back behind the load: their log-ins would take minutes.
func starvedRun(t *testing.T, path string) {
	t.Helper()
	var hungry sync.WaitGroup
	var full atomic.Bool
	o := options(t)
	o.Work.Rounds, o.Work.WarmUp, o.Work.Duration = 1, 0, 5*time.Second
	o.Say = func(format string, args ...any) {
		t.Logf(format, args...)
		switch {
		case strings.Contains(format, "all devices listen"):
			for range 6 {
				hungry.Go(func() {
					for !full.Load() {
					}
				})
			}
		case strings.Contains(format, "load answered"):
			full.Store(true)
		}
	}
	verdict, err := lab.Run(t.Context(), o)
	full.Store(true)
	hungry.Wait()
	if err != nil {
		t.Fatal(err)
	}
	if runtime.GOMAXPROCS(0) != 1 {
		t.Error("it has more than one processor")
	}
	if err := os.WriteFile(path, []byte(verdict.Line()), 0o600); err != nil {
		t.Fatal(err)
	}
}
