package report

import (
	"fmt"
	"time"
)

// What a step has to reach before something is named as its bottleneck.
const (
	full      = 0.9                    // of a limit of CPU, or of a core for who has one thread
	fullest   = 0.95                   // of a limit of memory
	throttled = 0.5                    // of the periods
	tooLate   = 250 * time.Millisecond // of the generator, as p99
)

// prosody is the host that has one thread.
const prosody = "prosody"

// service is the name of ours among the processes.
const service = "service"

// Measure fills in what the samples of a step say: its latencies, rate and errors,
// and what processes and machine did between From and To. Memory is filled in if
// it is 0.
func (r *Recorder) Measure(s *CapacityStep) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.results.measure(s)
}

func (r *Results) measure(s *CapacityStep) {
	phase := Phase{Target: s.Target, Round: s.Step, Name: PhaseStep, From: s.From, To: s.To}
	one := r.roundOf(phase)
	of := func(kind Kind) Within {
		all := one.kinds[kind]
		if all == nil {
			return Within{}
		}
		for class, n := range all.errors {
			if s.Errors == nil {
				s.Errors = make(map[string]int64)
			}
			s.Errors[class] += n
		}
		return within(all)
	}
	s.Save, s.Seen, s.Read, s.Load = of(Save), of(Notify), of(Read), of(Download)
	if seconds := phase.seconds(); seconds > 0 {
		s.Rate = short(float64(s.Save.Count) / seconds)
		s.Cores = make(map[string]float64)
		memory := int64(0)
		for name, u := range one.costs {
			s.Cores[name] = short(u.cpu().Seconds() / seconds)
			if name != Generator {
				memory += u.Resident
			}
		}
		if s.Memory == 0 {
			s.Memory = memory
		}
	}
	if busy, known := r.busy(phase); known {
		s.Busy = short(busy)
	}
	if late := r.late[turn{s.Target, s.Step}]; late != nil {
		behind, _ := quantile(late, 99)
		s.Late = short(behind)
	}
}

func within(all *series) Within {
	at := func(q float64) float64 {
		value, _ := quantile(all.latency, q)
		return short(value)
	}
	return Within{Count: all.latency.TotalCount(), P50: at(50), P95: at(95), P99: at(99), Max: at(100)}
}

// Judge says what became of a step whose figures are there, if fast is within so
// long, and of one that was not fast what it lacked, on a machine of so many cores.
func (s *CapacityStep) Judge(within time.Duration, cores int) {
	s.Limit = ""
	s.Result, s.Why = s.outcome(within)
	if s.Result != Fast {
		s.Limit = s.bottleneck(cores)
	}
}

func (s *CapacityStep) outcome(bound time.Duration) (StepResult, string) {
	failed := int64(0)
	for _, n := range s.Errors {
		failed += n
	}
	switch {
	case s.Kills > 0:
		return OutOfMemory, "the kernel ended a process of the server for want of memory"
	case failed > 0:
		return StepFailed, fmt.Sprintf("%d requests failed (%s)", failed, commonest(s.Errors))
	case s.Undone > 0 || s.Unheard > 0:
		return FellBehind, fmt.Sprintf("%d requests had no answer and %d events had not come %s behind the end", s.Undone, s.Unheard, 2*bound)
	}
	for _, of := range []struct {
		name string
		Within
	}{{"saves", s.Save}, {"events", s.Seen}, {"reads", s.Read}, {"loads", s.Load}} {
		if of.P95 > inMillis(bound) {
			return TooSlow, fmt.Sprintf("95 %% of the %s within %s", of.name, millis.text(of.P95))
		}
	}
	return Fast, ""
}

// commonest names the class of most errors.
func commonest(errors map[string]int64) (class string) {
	for _, name := range sortedKeys(errors) {
		if errors[name] > errors[class] {
			class = name
		}
	}
	return class
}

// bottleneck looks at the surest signs first: a limit that was reached counts,
// whatever else was short.
func (s *CapacityStep) bottleneck(cores int) Bottleneck {
	saturatedMachine := cores > 0 && s.Busy >= saturated*float64(cores)
	switch {
	case s.Kills > 0, s.Size.Memory > 0 && float64(s.Memory) >= fullest*float64(s.Size.Memory):
		return AtMemory
	case s.Size.CPUs > 0 && (s.Server >= full*s.Size.CPUs || s.Throttled >= throttled):
		return AtCPU
	case s.Cores[prosody] >= full:
		return AtHost
	case s.Late >= inMillis(tooLate), saturatedMachine && s.Cores[Generator] > s.Busy/2:
		return AtGenerator
	case saturatedMachine:
		return AtMachine
	case s.Cores[service] >= full:
		return AtService
	}
	return AtUnknown
}

func inMillis(d time.Duration) float64 { return d.Seconds() * 1000 }

// Used is the mean use of one core by host and service.
func (s CapacityStep) Used() float64 {
	if s.Server > 0 {
		return s.Server
	}
	total := 0.0
	for name, cores := range s.Cores {
		if name != Generator {
			total += cores
		}
	}
	return total
}
