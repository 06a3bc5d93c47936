package watch

import "pepvault/bench/limit"

// held adds up how often the own process's control groups kept it from running.
type held struct {
	last map[string]limit.Throttle // by folder
	sum  limit.Throttle
}

// look takes what each group has counted until now. What a group counted before the
// process came into it is not the process's. Of several, one in another, it takes
// the one that held it most.
func (h *held) look(now map[string]limit.Throttle) {
	var most limit.Throttle
	for folder, counted := range now {
		before, known := h.last[folder]
		since := limit.Throttle{Periods: counted.Periods - before.Periods, Throttled: counted.Throttled - before.Throttled}
		if known && (since.Throttled > most.Throttled || since.Throttled == most.Throttled && since.Periods > most.Periods) {
			most = since
		}
	}
	h.sum.Periods += most.Periods
	h.sum.Throttled += most.Throttled
	h.last = now
}
