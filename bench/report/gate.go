package report

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// ErrGate says that a run was verified and misses a bound that it was given.
var ErrGate = errors.New("a bound is missed")

// The gates of a soak.
const (
	GateDelivery = "delivery_p99_ms"    // from the planned moment of a save to a subscriber's receipt
	GateMemory   = "service_peak_bytes" // resident, at any time
	GateLost     = "lost"               // saves and notifications
	GateFailed   = "failed_saves"       // that were refused or had no answer
	GateOOM      = "oom_kills"          // in the group that host and service are limited by
)

// Gate is a bound that a run was given, and what was measured against it.
type Gate struct {
	Target string  `json:"target"`
	Name   string  `json:"gate"`
	Value  float64 `json:"value"` // in the unit that the name ends with, or a count
	Most   float64 `json:"most"`  // the highest value that is good
	OK     bool    `json:"ok"`
	// Unmeasured says why there is no value; such a gate is neither passed nor
	// missed, and OK.
	Unmeasured string `json:"unmeasured,omitempty"`
}

func (Gate) kind() string { return "gate" }

// Bounds are what a soak is held to.
type Bounds struct {
	Delivery time.Duration // p99 of the slowest round
	Memory   int64         // bytes, of the service's process at its peak
}

// Killed is how many processes the kernel ended for want of memory, or why
// nobody knows.
type Killed struct {
	Count      int64
	Unmeasured string // "" = Count holds
}

// Hold measures a verified soak of a target against its bounds, records each
// gate, and returns ErrGate, in one line, with all that is missed.
func (r *Recorder) Hold(target string, most Bounds, killed Killed) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	gates := r.results.gates(target, most, killed)
	for _, g := range gates {
		r.append(g)
	}
	r.flush()
	return missed(gates)
}

// Gates are those that were held.
func (r *Recorder) Gates() []Gate {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.results.Gates)
}

// gates measures all of them.
func (r *Results) gates(target string, most Bounds, killed Killed) []Gate {
	delivery := Gate{Target: target, Name: GateDelivery, Most: most.Delivery.Seconds() * 1000, Unmeasured: "nobody was told of anything"}
	for _, one := range r.rounds(target) {
		if s := one.kinds[Notify]; s != nil && s.latency.TotalCount() > 0 {
			p99, _ := quantile(s.latency, 99)
			delivery.Value, delivery.Unmeasured = max(delivery.Value, p99), ""
		}
	}
	memory := Gate{Target: target, Name: GateMemory, Most: float64(most.Memory), Unmeasured: "the service's process is not watched"}
	for _, p := range r.Processes[Service] {
		if p.Peak > 0 {
			memory.Value, memory.Unmeasured = max(memory.Value, float64(p.Peak)), ""
		}
	}
	lost := Gate{Target: target, Name: GateLost, Unmeasured: "nothing was verified"}
	for _, c := range r.Checks {
		if c.Target == target {
			lost.Value, lost.Unmeasured = float64(c.LostSaves+c.LostNotifications), ""
		}
	}
	failed := Gate{Target: target, Name: GateFailed}
	for key, s := range r.series {
		if key.target == target && key.kind == Save {
			for _, n := range s.errors {
				failed.Value += float64(n)
			}
		}
	}
	oom := Gate{Target: target, Name: GateOOM, Value: float64(killed.Count), Unmeasured: killed.Unmeasured}
	all := []Gate{delivery, memory, lost, failed, oom}
	for i := range all {
		all[i].OK = all[i].Unmeasured != "" || all[i].Value <= all[i].Most
	}
	return all
}

// missed is ErrGate with the gates that are not OK, or nil.
func missed(gates []Gate) error {
	var all []string
	for _, g := range gates {
		if !g.OK {
			all = append(all, g.String())
		}
	}
	if len(all) == 0 {
		return nil
	}
	return fmt.Errorf("%w: %s", ErrGate, strings.Join(all, ", "))
}

// String says what was measured against what.
func (g Gate) String() string {
	if g.Unmeasured != "" {
		return fmt.Sprintf("%s: %s not measured: %s", g.Target, g.what(), g.Unmeasured)
	}
	return fmt.Sprintf("%s: %s %s, at most %s is good", g.Target, g.what(), g.text(g.Value), g.text(g.Most))
}

func (g Gate) what() string {
	switch g.Name {
	case GateDelivery:
		return "delivery p99"
	case GateMemory:
		return "peak memory of the service"
	case GateLost:
		return "saves and notifications lost"
	case GateFailed:
		return "saves that failed"
	case GateOOM:
		return "processes killed for want of memory"
	}
	return g.Name
}

func (g Gate) text(value float64) string {
	switch g.Name {
	case GateDelivery:
		return millis.text(value)
	case GateMemory:
		return octets.text(value)
	}
	return fmt.Sprintf("%.0f", value)
}
