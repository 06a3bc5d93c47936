package report

import (
	"cmp"
	"slices"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// Bounds of the histograms, in microseconds: three digits of an hour. What is
// longer counts as an hour.
const (
	longest = int64(time.Hour / time.Microsecond)
	digits  = 3
)

// Results is what the figures need of a run: the operations as histograms, all
// else as it was recorded, in its order.
type Results struct {
	Environment Environment
	Phases      []Phase
	Processes   map[string][]Process // by name
	Noise       []Noise
	Machines    []Machine
	Storages    []Storage
	Steps       []CapacityStep // in the order of measuring
	Capacities  []Capacity     // one of each target and size
	Checks      []Check        // by target, in their order
	Gates       []Gate         // of a soak that was verified
	Writes      []Writes       // of a disk run
	Syncs       []Syncs        // of a disk run
	Verdict     *Verdict       // nil: the run was cut off
	Cut         bool           // the last line was incomplete, and left out

	series map[seriesKey]*series
	late   map[turn]*hdrhistogram.Histogram // in µs
}

// turn is one target's part of a round.
type turn struct {
	target string
	round  int
}

// seriesKey names operations that are counted together.
type seriesKey struct {
	target string
	round  int
	phase  string
	kind   Kind
}

// series are operations of one kind in one phase.
type series struct {
	latency *hdrhistogram.Histogram // of those that are OK, in µs
	service *hdrhistogram.Histogram
	errors  map[string]int64
	bytes   int64
}

func newSeries() *series {
	return &series{
		latency: hdrhistogram.New(1, longest, digits),
		service: hdrhistogram.New(1, longest, digits),
		errors:  make(map[string]int64),
	}
}

func newResults(env Environment) *Results {
	return &Results{
		Environment: env,
		Processes:   make(map[string][]Process),
		series:      make(map[seriesKey]*series),
		late:        make(map[turn]*hdrhistogram.Histogram),
	}
}

// operation counts a sample. Only what is OK has a latency: an error may come
// at once or after a time-out, and neither says how fast the target is.
func (r *Results) operation(o *Operation) {
	key := seriesKey{target: o.Target, round: o.Round, phase: o.Phase, kind: o.Kind}
	s := r.series[key]
	if s == nil {
		s = newSeries()
		r.series[key] = s
	}
	r.noteLate(o)
	if o.Result != OK {
		s.errors[o.Result]++
		return
	}
	s.bytes += o.Bytes
	record(s.latency, o.Latency)
	record(s.service, o.Service)
}

// noteLate counts how late the generator sent an operation, if nothing but itself
// kept it from sending at the planned moment.
func (r *Results) noteLate(o *Operation) {
	if w := r.Environment.Work; w.Rate == 0 || w.Outstanding > 0 || o.Phase != PhaseSteady && o.Phase != PhaseStep || !o.Kind.IsLoad() {
		return
	}
	key := turn{o.Target, o.Round}
	if r.late[key] == nil {
		r.late[key] = hdrhistogram.New(1, longest, digits)
	}
	record(r.late[key], o.Latency-o.Service)
}

func record(h *hdrhistogram.Histogram, d time.Duration) {
	_ = h.RecordValue(min(max(int64(d/time.Microsecond), 1), longest)) // within its bounds
}

// add takes any record.
func (r *Results) add(record Record) {
	switch record := record.(type) {
	case Operation:
		r.operation(&record)
	case Phase:
		r.Phases = append(r.Phases, record)
	case Process:
		r.Processes[record.Name] = append(r.Processes[record.Name], record)
	case Noise:
		r.Noise = append(r.Noise, record)
	case Machine:
		r.Machines = append(r.Machines, record)
	case Storage:
		r.Storages = append(r.Storages, record)
	case CapacityStep:
		r.Steps = append(r.Steps, record)
	case Capacity:
		r.Capacities = append(r.Capacities, record)
	case Check:
		r.Checks = append(r.Checks, record)
	case Gate:
		r.Gates = append(r.Gates, record)
	case Writes:
		r.Writes = append(r.Writes, record)
	case Syncs:
		r.Syncs = append(r.Syncs, record)
	case Verdict:
		r.Verdict = &record
	}
}

// sum puts the series together that a test of their key wants. The result is
// only read: a histogram takes a fifth of a megabyte, so one of a single series
// is not copied.
func (r *Results) sum(wanted func(seriesKey) bool) *series {
	var found []*series
	for key, s := range r.series {
		if wanted(key) {
			found = append(found, s)
		}
	}
	switch len(found) {
	case 0:
		none := hdrhistogram.New(1, 2, 1)
		return &series{latency: none, service: none}
	case 1:
		return found[0]
	}
	all := newSeries()
	for _, s := range found {
		all.latency.Merge(s.latency)
		all.service.Merge(s.service)
		all.bytes += s.bytes
		for class, n := range s.errors {
			all.errors[class] += n
		}
	}
	return all
}

// kinds are all that were recorded, in a fixed order.
func (r *Results) kinds() []Kind {
	found := make(map[Kind]bool)
	for key := range r.series {
		found[key.kind] = true
	}
	return sortedKeys(found)
}

// steady are the measured phases of a target, in the order of its rounds.
func (r *Results) steady(target string) []Phase {
	var found []Phase
	for _, phase := range r.Phases {
		if phase.Target == target && phase.Name == PhaseSteady {
			found = append(found, phase)
		}
	}
	slices.SortStableFunc(found, func(a, b Phase) int { return cmp.Compare(a.Round, b.Round) })
	return found
}
