package report

import (
	"cmp"
	"slices"
	"time"
)

// Around is the machine's noise: what others did in the steady phases, and how
// fast memory and disk were between them.
type Around struct {
	Others   *Spread `json:"others_cores,omitempty"` // cores that nobody of the watched had
	Stolen   *Spread `json:"stolen_cores,omitempty"` // by the hypervisor
	Runnable *Spread `json:"runnable,omitempty"`     // tasks that ran or wanted to; of single looks
	Memory   *Spread `json:"memory_ns,omitempty"`    // a dependent load
	SyncP50  *Spread `json:"sync_p50_ms,omitempty"`
	SyncP99  *Spread `json:"sync_p99_ms,omitempty"`
}

// around is of all targets together.
func (r *Results) around() Around {
	var others, stolen, runnable, memory, p50, p99 []float64
	for _, phase := range r.Phases {
		from, to, ok := r.noise(phase)
		if phase.Name != PhaseSteady || !ok {
			continue
		}
		seconds := (to.At - from.At).Seconds()
		others = append(others, (to.Others-from.Others).Seconds()/seconds)
		stolen = append(stolen, (to.Stolen-from.Stolen).Seconds()/seconds)
		for _, n := range r.Noise {
			if n.At >= phase.From && n.At <= phase.To {
				runnable = append(runnable, float64(n.Runnable))
			}
		}
	}
	for _, m := range r.Machines {
		if m.Memory > 0 {
			memory = append(memory, m.Memory)
		}
		if m.Syncs > 0 {
			p50 = append(p50, m.SyncP50.Seconds()*1000)
			p99 = append(p99, m.SyncP99.Seconds()*1000)
		}
	}
	return Around{
		Others: spread(others), Stolen: spread(stolen), Runnable: spread(runnable),
		Memory: spread(memory), SyncP50: spread(p50), SyncP99: spread(p99),
	}
}

// busy is how many cores were busy in a phase.
func (r *Results) busy(phase Phase) (float64, bool) {
	from, to, ok := r.noise(phase)
	if !ok {
		return 0, false
	}
	return (to.Busy - from.Busy).Seconds() / (to.At - from.At).Seconds(), true
}

// noise is the last look before a phase and the first one behind it, or the
// nearest there are; false if there are no two.
func (r *Results) noise(phase Phase) (from, to Noise, ok bool) {
	nearest := func(at time.Duration) int {
		i, _ := slices.BinarySearchFunc(r.Noise, at, func(n Noise, at time.Duration) int { return cmp.Compare(n.At, at) })
		return i
	}
	first := nearest(phase.From)
	if first > 0 && (first == len(r.Noise) || r.Noise[first].At > phase.From) {
		first--
	}
	last := min(nearest(phase.To), len(r.Noise)-1)
	if last <= first {
		return Noise{}, Noise{}, false
	}
	return r.Noise[first], r.Noise[last], true
}
