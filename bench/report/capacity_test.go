package report

import (
	"bytes"
	"errors"
	"strings"
	"testing"
)

func TestParseSize(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]Size{
		"0.5:512m": {0.5, 512 << 20}, "1:1g": {1, 1 << 30}, "2:2G": {2, 2 << 30}, "1.5:1.5g": {1.5, 3 << 29}, "none": {},
	} {
		if got, err := ParseSize(text); err != nil || got != want {
			t.Errorf("%s: %v, %v, want %v", text, got, err, want)
		}
	}
	for _, text := range []string{"", "1", "1:", ":1g", "1:1", "0:1g", "-1:1g", "NaN:1g", "1:NaNg", "1:1t", "1:1m", "1e9:1g", "1:1e30g", "none:1g"} {
		if got, err := ParseSize(text); !errors.Is(err, ErrSize) {
			t.Errorf("%q is taken for %v, %v", text, got, err)
		}
	}
}

func TestSizeNames(t *testing.T) {
	t.Parallel()
	for want, size := range map[string]Size{
		"0.5 CPU, 512 MiB": {0.5, 512 << 20}, "1 CPU, 1 GiB": {1, 1 << 30}, "2 CPUs, 1.5 GiB": {2, 3 << 29}, "no limits": {},
	} {
		if got := size.String(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestPlan(t *testing.T) {
	t.Parallel()
	for people, want := range map[int]int{
		-1: 0, 0: 0, 3: 0, 4: 1, 100: 25, 399: 99, 400: 100, 439: 100, 440: 110, 4800: 1200, 9600: 2400, 12800: 3200, 5000: 1200,
	} {
		if got := Plan(people); got != want {
			t.Errorf("of %d: %d, want %d", people, got, want)
		}
	}
}

// capacityRun is a finished run of one size.
func capacityRun(t *testing.T, all ...Capacity) *Results {
	t.Helper()
	var file bytes.Buffer
	r, err := NewRecorder(&file, Environment{
		Work: Workload{Name: "capacity", Rounds: 1, Sizes: []Size{halfCPU}}, Targets: []string{"component", "pep"},
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range all {
		r.Capacity(c)
	}
	if _, err := r.Finish(nil); err != nil {
		t.Fatal(err)
	}
	results, err := Load(&file)
	if err != nil {
		t.Fatal(err)
	}
	return results
}

func TestCompareCapacity(t *testing.T) {
	t.Parallel()
	of := func(target string, people int, more bool) Capacity {
		return Capacity{Target: target, Size: halfCPU, People: people, OrMore: more, Memory: int64(people) << 17, LogIn: 9}
	}
	a := capacityRun(t, of("component", 1200, false), of("pep", 400, false))
	b := capacityRun(t, of("component", 1800, true), Capacity{Target: "pep", Size: halfCPU, Unmeasured: "too small"})
	if got := a.Summary().Ratios[0].People["0.5 CPU, 512 MiB"]; got != 3 {
		t.Errorf("the first carries ×%v, want 3", got)
	}
	c, err := Compare(a, b)
	if err != nil {
		t.Fatal(err)
	}
	if len(c.Rows) != 3 || c.Rows[0].Target != "component" || c.Rows[0].Ratio != 1.5 || !c.Rows[0].AtLeast || c.Rows[1].AtLeast {
		t.Errorf("%+v", c.Rows)
	}
	for _, want := range []string{"fast with 0.5 CPU, 512 MiB", "1200 people  1800 people  ×1.50  the most that was tried", "128.0 KiB", "9.00 ms"} {
		if !strings.Contains(c.Table(), want) {
			t.Errorf("no %q in\n%s", want, c.Table())
		}
	}
	if b.Summary().Ratios[0].People["0.5 CPU, 512 MiB"] != 0 {
		t.Error("a ratio to what was not measured")
	}
}

func TestGeneratorEndsASearch(t *testing.T) {
	t.Parallel()
	if capacityRun(t, Capacity{Limit: AtHost}).Summary().GeneratorBound || !capacityRun(t, Capacity{Limit: AtGenerator}).Summary().GeneratorBound {
		t.Error("the verdict does not say whether the generator was measured")
	}
}
