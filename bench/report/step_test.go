package report

import (
	"bytes"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

var halfCPU = Size{CPUs: 0.5, Memory: 512 << 20}

// step is one of 400 people that is fast, with what a test changes in it.
func step(change func(*CapacityStep)) CapacityStep {
	s := CapacityStep{
		Target: "component", Size: halfCPU, Step: 1, People: 400,
		Save: Within{Count: 200, P95: 900}, Seen: Within{Count: 200, P95: 999}, Read: Within{Count: 400, P95: 1000}, Load: Within{Count: 80, P95: 40},
		Cores: map[string]float64{"prosody": 0.2, "service": 0.1, Generator: 0.3}, Server: 0.3, Busy: 0.7, Memory: 100 << 20,
	}
	if change != nil {
		change(&s)
	}
	return s
}

func TestJudgeStep(t *testing.T) {
	t.Parallel()
	slow := func(change func(*CapacityStep)) func(*CapacityStep) {
		return func(s *CapacityStep) {
			s.Seen.P95 = 1001
			change(s)
		}
	}
	for name, test := range map[string]struct {
		change func(*CapacityStep)
		result StepResult
		limit  Bottleneck
		why    string
	}{
		"fast":                    {nil, Fast, "", ""},
		"slow saves":              {func(s *CapacityStep) { s.Save.P95 = 1001 }, TooSlow, AtUnknown, "saves"},
		"slow events":             {func(s *CapacityStep) { s.Seen.P95 = 1001 }, TooSlow, AtUnknown, "events"},
		"slow reads":              {func(s *CapacityStep) { s.Read.P95 = 1001 }, TooSlow, AtUnknown, "reads"},
		"slow loads":              {func(s *CapacityStep) { s.Load.P95 = 1001 }, TooSlow, AtUnknown, "loads"},
		"an error":                {func(s *CapacityStep) { s.Errors = map[string]int64{"wait/x": 1, Timeout: 2} }, StepFailed, AtUnknown, "3 requests failed (timeout)"},
		"no answer":               {func(s *CapacityStep) { s.Undone = 1 }, FellBehind, AtUnknown, "1 requests"},
		"no event":                {func(s *CapacityStep) { s.Unheard = 2 }, FellBehind, AtUnknown, "2 events"},
		"killed":                  {func(s *CapacityStep) { s.Kills, s.Undone = 1, 7 }, OutOfMemory, AtMemory, "memory"},
		"memory":                  {slow(func(s *CapacityStep) { s.Memory = 511 << 20 }), TooSlow, AtMemory, ""},
		"limit of CPU":            {slow(func(s *CapacityStep) { s.Server = 0.46 }), TooSlow, AtCPU, ""},
		"throttled":               {slow(func(s *CapacityStep) { s.Throttled = 0.6 }), TooSlow, AtCPU, ""},
		"limit and machine":       {slow(func(s *CapacityStep) { s.Server, s.Busy, s.Late = 0.5, 2, 400 }), TooSlow, AtCPU, ""},
		"one thread":              {slow(func(s *CapacityStep) { s.Size.CPUs, s.Cores["prosody"], s.Busy = 2, 0.97, 2 }), TooSlow, AtHost, ""},
		"another host":            {slow(func(s *CapacityStep) { s.Size.CPUs, s.Cores = 4, map[string]float64{"ejabberd": 1.2} }), TooSlow, AtUnknown, ""},
		"late generator":          {slow(func(s *CapacityStep) { s.Late = 251 }), TooSlow, AtGenerator, ""},
		"busy generator":          {slow(func(s *CapacityStep) { s.Busy, s.Cores[Generator] = 1.95, 1.1 }), TooSlow, AtGenerator, ""},
		"busy machine":            {slow(func(s *CapacityStep) { s.Busy = 1.95 }), TooSlow, AtMachine, ""},
		"service":                 {slow(func(s *CapacityStep) { s.Size, s.Cores["service"] = Size{}, 1.1 }), TooSlow, AtService, ""},
		"a percentile of nothing": {func(s *CapacityStep) { s.Load = Within{} }, Fast, "", ""},
	} {
		s := step(test.change)
		s.Judge(FastWithin, 2)
		if s.Result != test.result || s.Limit != test.limit || !strings.Contains(s.Why, test.why) {
			t.Errorf("%s: %s, %q (%s), want %s, %q (%s)", name, s.Result, s.Limit, s.Why, test.result, test.limit, test.why)
		}
	}
}

func TestConclude(t *testing.T) {
	t.Parallel()
	of := func(people int, result StepResult, limit Bottleneck) CapacityStep {
		return step(func(s *CapacityStep) { s.People, s.Result, s.Limit = people, result, limit })
	}
	base := Capacity{Target: "component", Size: halfCPU, Cores: 0.3, Memory: 100 << 20, Seen: 999}
	with := func(change func(*Capacity)) Capacity {
		c := base
		change(&c)
		return c
	}
	for name, test := range map[string]struct {
		steps []CapacityStep
		want  Capacity
		text  string
	}{
		"between": {
			[]CapacityStep{of(400, Fast, ""), of(800, Fast, ""), of(1600, OutOfMemory, AtMemory), of(1200, TooSlow, AtCPU), of(1000, Fast, "")},
			with(func(c *Capacity) {
				c.People, c.Plan, c.Failed, c.Result, c.Limit = 1000, 250, 1200, TooSlow, AtCPU
			}),
			"1000 people; 1200 are too slow, short of: CPU; plan with 250",
		},
		"to the most": {
			[]CapacityStep{of(400, Fast, ""), of(800, Fast, "")},
			with(func(c *Capacity) { c.People, c.Plan, c.OrMore = 800, 200, true }),
			"800 people or more, the most that was tried; plan with 200",
		},
		"generator": {
			[]CapacityStep{of(400, Fast, ""), of(800, TooSlow, AtGenerator)},
			with(func(c *Capacity) {
				c.People, c.Plan, c.OrMore, c.Failed, c.Result, c.Limit = 400, 100, true, 800, TooSlow, AtGenerator
			}),
			"400 people or more: with 800 the generator was what was measured; plan with 100",
		},
		"nobody": {
			[]CapacityStep{of(100, TooSlow, AtCPU)},
			Capacity{Target: "component", Size: halfCPU, Failed: 100, Result: TooSlow, Limit: AtCPU},
			"nobody is fast; 100 people: too slow, short of: CPU",
		},
		"nobody, on a machine that is too small": {
			[]CapacityStep{of(100, TooSlow, AtMachine)},
			Capacity{Target: "component", Size: halfCPU, Unmeasured: "with 100 people the machine was what was measured, not the server"},
			"not measured: with 100 people the machine",
		},
		"luck above a failure": {
			[]CapacityStep{of(400, Fast, ""), of(500, TooSlow, AtCPU), of(800, Fast, "")},
			with(func(c *Capacity) {
				c.People, c.Plan, c.Failed, c.Result, c.Limit = 400, 100, 500, TooSlow, AtCPU
			}),
			"400 people",
		},
	} {
		got := Conclude(test.steps)
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("%s:\n%s", name, diff)
		}
		if text := got.Sentence(); !strings.HasPrefix(text, test.text) {
			t.Errorf("%s: %q, want %q", name, text, test.text)
		}
	}
}

func TestUnmeasurable(t *testing.T) {
	t.Parallel()
	machine := Platform{Cores: 2, Memory: 4 << 30}
	for want, size := range map[string]Size{
		"": {CPUs: 2, Memory: 4 << 30}, "this machine has 2 CPUs": {CPUs: 2.5, Memory: 1 << 30}, "this machine has 4.0 GiB of memory": {CPUs: 1, Memory: 8 << 30},
	} {
		if got := size.Unmeasurable(machine); got != want {
			t.Errorf("%s: %q, want %q", size, got, want)
		}
	}
}

func TestRecommend(t *testing.T) {
	t.Parallel()
	one, two, four := Size{CPUs: 1, Memory: 1 << 30}, Size{CPUs: 2, Memory: 2 << 30}, Size{CPUs: 4, Memory: 4 << 30}
	got := Recommend([]Capacity{
		{Size: two, People: 12800, OrMore: true}, {Size: halfCPU, People: 4800}, {Size: one, People: 9600},
		{Size: four, Unmeasured: "this machine has 2 CPUs"}, {Size: Size{}, People: 99999},
	})
	want := []Advice{
		{1200, halfCPU, "the smallest server for rent, or a small computer at home such as a Raspberry Pi 4"},
		{2400, one, "a server with 1 CPU and 1 GiB of memory"},
		{3200, two, "a server with 2 CPUs and 2 GiB of memory"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	// A larger server that carries no more is no advice, and neither is nobody.
	got = Recommend([]Capacity{{Size: halfCPU, People: 3}, {Size: one, People: 900}, {Size: two, People: 890}})
	if len(got) != 1 || got[0].Size != one || got[0].UpTo != 220 {
		t.Errorf("%+v", got)
	}
}

// TestMeasure takes a step's figures from its samples alone.
func TestMeasure(t *testing.T) {
	t.Parallel()
	var file bytes.Buffer
	r, err := NewRecorder(&file, Environment{
		Work: Workload{Name: "capacity", Rate: 1, Rounds: 1, Sizes: []Size{halfCPU}}, Targets: []string{"component"}, Machine: Platform{Cores: 2},
	})
	if err != nil {
		t.Fatal(err)
	}
	op := func(round int, phase string, kind Kind, latency, late time.Duration, result string) {
		r.Operation(Operation{Target: "component", Round: round, Phase: phase, Kind: kind, Latency: latency, Service: latency - late, Result: result})
	}
	for i := range 100 {
		op(2, PhaseStep, Save, time.Duration(i+1)*time.Millisecond, time.Millisecond, OK)
		op(2, PhaseStep, Notify, time.Duration(i+2)*time.Millisecond, 0, OK)
	}
	op(2, PhaseStep, Read, time.Minute, 0, Timeout)
	op(2, PhaseWarmUp, Save, time.Hour, 0, OK)
	op(1, PhaseStep, Save, time.Hour, 0, OK)
	for at := range 3 {
		now := time.Duration(at) * 10 * time.Second
		r.Process(Process{At: now, Name: "prosody", Count: 1, User: time.Duration(at) * 4 * time.Second, Resident: 30 << 20})
		r.Process(Process{At: now, Name: "service", Count: 1, User: time.Duration(at) * time.Second, Resident: 20 << 20})
		r.Process(Process{At: now, Name: Generator, Count: 1, User: time.Duration(at) * 2 * time.Second, Resident: 500 << 20})
		r.Noise(Noise{At: now, Busy: time.Duration(at) * 9 * time.Second})
	}
	s := CapacityStep{Target: "component", Size: halfCPU, Step: 2, From: 10 * time.Second, To: 20 * time.Second}
	r.Measure(&s)
	if s.Save.Count != 100 || math.Abs(s.Save.P95-95) > 0.1 || math.Abs(s.Seen.P95-96) > 0.1 || s.Rate != 10 || s.Late != 1 {
		t.Errorf("latencies: %+v", s)
	}
	if diff := cmp.Diff(map[string]int64{Timeout: 1}, s.Errors); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(map[string]float64{"prosody": 0.4, "service": 0.1, Generator: 0.2}, s.Cores); diff != "" || s.Busy != 0.9 || s.Memory != 50<<20 || s.Used() != 0.5 {
		t.Errorf("%s\n%+v", diff, s)
	}
	r.Step(s)
	r.Capacity(Capacity{Target: "component", Size: halfCPU, People: 400, Failed: 800, Result: TooSlow, Limit: AtCPU, Plan: 100})
	verdict, err := r.Finish(nil)
	if err != nil || len(verdict.Capacity) != 1 || verdict.Capacity[0].People != 400 {
		t.Fatalf("%s: %v", verdict.Line(), err)
	}
	kept, err := Load(&file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]CapacityStep{s}, kept.Steps); diff != "" {
		t.Error(diff)
	}
	if kept.Judge(nil).Line() != verdict.Line() {
		t.Errorf("the file says\n%s\n%s", kept.Judge(nil).Line(), verdict.Line())
	}
}
