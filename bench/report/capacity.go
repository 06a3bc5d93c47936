package report

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// Size is a server: what its host and its service may use together. The zero
// Size has no limits.
type Size struct {
	CPUs   float64 `json:"cpus"`         // of the time of one core; 0: no limit
	Memory int64   `json:"memory_bytes"` // 0: no limit
}

// NoLimits is how a command line says the zero Size.
const NoLimits = "none"

// ErrSize says that a text is no size of a server.
var ErrSize = errors.New("no size of a server, as 0.5:512m or 1:1g")

// ParseSize reads CPUS:MEMORY, as in 0.5:512m (m and g stand for MiB and GiB),
// or NoLimits. A hundredth of a CPU and 16 MiB are the least.
func ParseSize(text string) (Size, error) {
	if text == NoLimits {
		return Size{}, nil
	}
	cpus, memory, _ := strings.Cut(text, ":")
	units := map[string]float64{"m": 1 << 20, "g": 1 << 30}
	number, unit := memory, 0.0
	for name, bytes := range units {
		if rest, found := strings.CutSuffix(strings.ToLower(memory), name); found {
			number, unit = rest, bytes
		}
	}
	share, err := strconv.ParseFloat(cpus, 64)
	amount, err2 := strconv.ParseFloat(number, 64)
	s := Size{CPUs: share, Memory: int64(amount * unit)}
	if err != nil || err2 != nil || unit == 0 || !(share >= 0.01 && share <= 4096) || s.Memory < 16<<20 || amount*unit > 1<<46 {
		return Size{}, fmt.Errorf("%q: %w", text, ErrSize)
	}
	return s, nil
}

// Limited reports whether the size has any limit.
func (s Size) Limited() bool { return s != Size{} }

// String names the size for people: "0.5 CPU, 512 MiB".
func (s Size) String() string {
	if !s.Limited() {
		return "no limits"
	}
	unit, plural := "MiB", "s"
	amount := float64(s.Memory) / (1 << 20)
	if amount >= 1024 {
		unit, amount = "GiB", amount/1024
	}
	if s.CPUs <= 1 {
		plural = ""
	}
	memory := strconv.FormatFloat(math.Round(amount*100)/100, 'f', -1, 64) + " " + unit
	if s.CPUs == 0 {
		return memory
	}
	return fmt.Sprintf("%s CPU%s, %s", strconv.FormatFloat(s.CPUs, 'g', 4, 64), plural, memory)
}

// StepResult is what became of one number of people.
type StepResult string

// The results. Only Fast counts as capacity.
const (
	Fast        StepResult = "ok"            // 95 % within FastWithin, nothing failed, nobody fell behind
	TooSlow     StepResult = "too slow"      // a 95th percentile above FastWithin
	StepFailed  StepResult = "failed"        // a request was refused, or not answered
	FellBehind  StepResult = "fell behind"   // some of it was not done two seconds behind the end
	OutOfMemory StepResult = "out of memory" // the kernel ended a process of the server
)

// FastWithin is what 95 of 100 saves, events, reads and loads have to keep
// within.
const FastWithin = time.Second

// Bottleneck is what a server had too little of.
type Bottleneck string

// The bottlenecks. With AtGenerator and AtMachine the server itself may have had
// room left.
const (
	AtCPU       Bottleneck = "CPU"       // the size's limit
	AtMemory    Bottleneck = "memory"    // the size's limit
	AtHost      Bottleneck = "host"      // the XMPP server's process has one thread, and that was busy
	AtService   Bottleneck = "service"   // it used all of a core and more than the host did
	AtGenerator Bottleneck = "generator" // the devices of the test
	AtMachine   Bottleneck = "machine"   // all its cores were busy
	AtUnknown   Bottleneck = "unknown"   // none of these was seen
)

// Within is a latency in milliseconds from the planned moment.
type Within struct {
	Count int64   `json:"count"` // of those that were OK
	P50   float64 `json:"p50_ms"`
	P95   float64 `json:"p95_ms"`
	P99   float64 `json:"p99_ms"`
	Max   float64 `json:"max_ms"`
}

// CapacityStep is a number of people at one size of server. Latencies and loads
// are of the measured part, between From and To; its operations have the step's
// number as their round, and the phase PhaseStep.
type CapacityStep struct {
	Target string `json:"target"`
	Size   Size   `json:"size"`
	Step   int    `json:"step"` // from 1, over all sizes and targets, in the order of measuring
	People int    `json:"people"`
	// Devices is how many are connected; Records is how many each vault has.
	Devices int           `json:"devices"`
	Records int           `json:"records"`
	From    time.Duration `json:"from_ns"`
	To      time.Duration `json:"to_ns"`

	Result StepResult `json:"result"`
	// Why tells the result in a sentence, unless it is Fast.
	Why   string     `json:"why,omitempty"`
	Limit Bottleneck `json:"limit,omitempty"` // unless it is Fast

	Rate float64 `json:"saves_per_second"` // acknowledged ones
	Save Within  `json:"save"`
	Seen Within  `json:"seen"` // from the planned moment of a save to its event at another device of the person
	Read Within  `json:"read"`
	Load Within  `json:"load"` // of a vault

	// Cores is the mean use of one core: of host, service and generator, each by
	// its name among the processes.
	Cores map[string]float64 `json:"cores"`
	// Server is that of host and service together, as their group counts it; 0
	// without limits.
	Server float64 `json:"server_cores"`
	// Throttled is the share of the limit's periods (a tenth of a second each) in
	// which the server had to wait for the next one.
	Throttled float64 `json:"throttled"`
	Busy      float64 `json:"busy_cores"` // of the whole machine, by anybody
	// Memory is the most that host and service had together, without files that
	// the kernel may drop: of the group, or without limits of the processes.
	Memory int64 `json:"memory_bytes"`
	Kills  int64 `json:"oom_kills"`
	// Late is by how many milliseconds the generator was behind its plan, as p99.
	Late float64 `json:"generator_late_p99_ms"`
	// Errors are operations that failed, by class; Unheard are events that had
	// not come two seconds behind the end, Undone operations without answer then.
	Errors  map[string]int64 `json:"errors,omitempty"`
	Unheard int              `json:"unheard,omitempty"`
	Undone  int              `json:"undone,omitempty"`
	// LogIn is milliseconds of the server's CPU for a device to connect and
	// announce itself, of those that came for this step; 0: nobody did, or not
	// measured.
	LogIn float64 `json:"log_in_cpu_ms,omitempty"`
}

// Capacity is how many people one size of server keeps fast.
type Capacity struct {
	Target string `json:"target"`
	Size   Size   `json:"size"`
	// People is the largest number that was fast, 0 if there was none.
	People int `json:"people"`
	// OrMore says that the next step did not show the server's own limit: there
	// was none, or the generator or the machine was what was measured.
	OrMore bool `json:"or_more,omitempty"`
	// Failed is the least number that was not fast, 0 if none was tried; Result
	// is what became of it.
	Failed int        `json:"failed_people,omitempty"`
	Result StepResult `json:"failed_result,omitempty"`
	Limit  Bottleneck `json:"limit,omitempty"`
	// Unmeasured says why this machine can't tell; then all else is 0.
	Unmeasured string `json:"unmeasured,omitempty"`

	// What the largest fast number had.
	Cores  float64 `json:"server_cores,omitempty"`
	Memory int64   `json:"memory_bytes,omitempty"`
	Seen   float64 `json:"seen_p95_ms,omitempty"`
	LogIn  float64 `json:"log_in_cpu_ms,omitempty"` // mean of all steps that measured it

	// Plan is how many people to plan with: see Plan.
	Plan int `json:"plan_people,omitempty"`
}

// PhaseStep is the measured part of a step of capacity.
const PhaseStep = "step"

// planShare is how much of what was measured is left for people: other
// processors are slower, disks wait longer, and there are mornings.
const planShare = 4

// Plan is what to plan with where so many people were fast: a quarter, rounded
// down to two digits.
func Plan(people int) int {
	quarter := max(people, 0) / planShare
	for unit := 1; ; unit *= 10 {
		if quarter/unit < 100 {
			return quarter / unit * unit
		}
	}
}

func (CapacityStep) kind() string { return "capacity-step" }
func (Capacity) kind() string     { return "capacity" }

// capacities are those of a target, in the order of measuring.
func (r *Results) capacities(target string) []Capacity {
	var all []Capacity
	for _, c := range r.Capacities {
		if c.Target == target {
			all = append(all, c)
		}
	}
	return all
}
