package report

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// diskFile is a disk run of two rounds and both targets, whose figures are easy
// to compute by hand.
func diskFile(t *testing.T) *Results {
	t.Helper()
	r := newResults(Environment{Work: Workload{Name: "disk", Users: 10, Rounds: 2}, Targets: []string{"component", "pep"}})
	for round := range 2 {
		n := int64(round + 1)
		for _, bytes := range []int64{1000, 3000} {
			r.add(Writes{Target: "component", Round: round + 1, Part: PartLone, Saves: 1, Settled: true, Written: map[string]int64{"prosody": 500, Service: bytes * n}})
		}
		r.add(Writes{Target: "component", Round: round + 1, Part: PartLoaded, Saves: 100, Settled: round == 0, Log: 9000 * n, Written: map[string]int64{"prosody": 0, Service: 50_000 * n}})
		r.add(Writes{
			Target: "component", Round: round + 1, Part: PartDay, Saves: 50, Connections: 200, Took: time.Duration(n) * time.Minute, Settled: true,
			Written: map[string]int64{"prosody": 100, Service: 900 * n}, CPU: map[string]time.Duration{"prosody": time.Second, Service: time.Duration(n) * time.Second},
			Grown: 4096 * n, LogGrown: -1000, Log: 10,
		})
		r.add(Writes{Target: "pep", Round: round + 1, Part: PartLone, Saves: 1, Settled: true, Unmeasured: []string{"prosody"}, Written: map[string]int64{Service: 700}})
		r.add(Syncs{Count: 10, P50: time.Millisecond, P99: time.Duration(2+2*round) * time.Millisecond, Max: time.Duration(9-2*round) * time.Millisecond})
	}
	return r
}

func of(median, low, high float64) *Spread { return &Spread{Median: median, Low: low, High: high} }

func TestDiskFigures(t *testing.T) {
	t.Parallel()
	s := diskFile(t).Summary()
	want := &Disk{
		Lone:   &Written{Saves: 4, All: of(3500, 2500, 4500), Each: of(3000, 1500, 6500), Processes: map[string]*Spread{"prosody": of(500, 500, 500), Service: of(3000, 2000, 4000)}},
		Loaded: &Written{Saves: 200, All: of(750, 500, 1000), Processes: map[string]*Spread{"prosody": of(0, 0, 0), Service: of(750, 500, 1000)}},
		Day: &Day{
			Users: 10, Saves: 50, Connections: 200, Seconds: of(90, 60, 120), CPU: of(2.5, 2, 3), Written: of(1450, 1000, 1900),
			Processes: map[string]*Spread{"prosody": of(100, 100, 100), Service: of(1350, 900, 1800)},
			Grown:     of(6144, 4096, 8192), LogGrown: of(-1000, -1000, -1000),
		},
		Log: of(13_500, 9000, 18_000), Unsettled: 1,
	}
	if diff := cmp.Diff(want, s.Targets[0].Disk); diff != "" {
		t.Error(diff)
	}
	// What the kernel does not tell makes no sum, and the idle service is no part of PEP.
	if diff := cmp.Diff(&Disk{Lone: &Written{Saves: 2, Processes: map[string]*Spread{}}, Log: of(0, 0, 0)}, s.Targets[1].Disk); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(&SyncTimes{Count: 10, P50: 1, P99: 4, Max: 9}, s.Syncs); diff != "" {
		t.Error(diff)
	}
	for p99, fine := range map[time.Duration]bool{3 * time.Millisecond: true, 3*time.Millisecond + 1: false} {
		if got := (Syncs{Count: 1, P99: p99}).Fine(); got != fine {
			t.Errorf("p99 of %s is fine: %t", p99, got)
		}
	}
}

// TestDiskIsCompared holds that two disk runs have ratios of what they wrote, and
// two soaks of their delivery.
func TestDiskIsCompared(t *testing.T) {
	t.Parallel()
	a, b := diskFile(t), diskFile(t)
	for i := range b.Writes {
		for name := range b.Writes[i].Written {
			b.Writes[i].Written[name] *= 2
		}
	}
	for _, r := range []*Results{a, b} {
		r.add(r.Judge(nil))
	}
	c, err := Compare(a, b)
	if err != nil {
		t.Fatal(err)
	}
	ratios := make(map[string]float64)
	for _, row := range c.Rows {
		if row.Target == "component" {
			ratios[row.Figure] = row.Ratio
		}
	}
	for figure, want := range map[string]float64{
		"lone: written per save": 2, "lone: written per save by service": 2, "lone: written per save by prosody": 2,
		"loaded: written per save": 2, "day: written": 2, "day: CPU": 1, "day: database grown": 1, "longest log": 1,
	} {
		if ratios[figure] != want {
			t.Errorf("%s: ×%g, want ×%g", figure, ratios[figure], want)
		}
	}
}
