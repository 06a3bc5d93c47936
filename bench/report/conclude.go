package report

import "fmt"

// Conclude says of the steps of one target and one size how many people it keeps
// fast. The steps are in any order, and there is at least one.
func Conclude(steps []CapacityStep) Capacity {
	c := Capacity{Target: steps[0].Target, Size: steps[0].Size}
	best, worst := -1, -1
	logIn, measured := 0.0, 0
	for i, s := range steps {
		if s.LogIn > 0 {
			logIn, measured = logIn+s.LogIn, measured+1
		}
		if s.Result != Fast && (worst < 0 || s.People < steps[worst].People) {
			worst = i
		}
	}
	for i, s := range steps { // a number above one that was not fast is luck
		if s.Result == Fast && (worst < 0 || s.People < steps[worst].People) && (best < 0 || s.People > steps[best].People) {
			best = i
		}
	}
	if measured > 0 {
		c.LogIn = short(logIn / float64(measured))
	}
	c.OrMore = worst < 0
	if worst >= 0 {
		w := steps[worst]
		c.Failed, c.Result, c.Limit = w.People, w.Result, w.Limit
		c.OrMore = w.Limit == AtGenerator || w.Limit == AtMachine
	}
	if best < 0 {
		if c.OrMore {
			return Capacity{Target: c.Target, Size: c.Size, Unmeasured: fmt.Sprintf(
				"with %d people the %s was what was measured, not the server", c.Failed, c.Limit)}
		}
		return c
	}
	b := steps[best]
	c.People, c.Memory, c.Seen, c.Plan = b.People, b.Memory, b.Seen.P95, Plan(b.People)
	c.Cores = short(b.Used())
	return c
}

// Unmeasurable says why a machine of so many cores and so much memory can't tell
// how much a server of that size carries, or "". A memory of 0 is not known.
func (s Size) Unmeasurable(machine Platform) string {
	switch {
	case s.CPUs > float64(machine.Cores):
		return fmt.Sprintf("this machine has %d CPUs", machine.Cores)
	case machine.Memory > 0 && s.Memory > machine.Memory:
		return fmt.Sprintf("this machine has %.1f GiB of memory", float64(machine.Memory)/(1<<30))
	}
	return ""
}

// Sentence tells the outcome to people.
func (c Capacity) Sentence() string {
	switch {
	case c.Unmeasured != "":
		return "not measured: " + c.Unmeasured
	case c.OrMore && c.Failed == 0:
		return fmt.Sprintf("%d people or more, the most that was tried; plan with %d", c.People, c.Plan)
	case c.OrMore:
		return fmt.Sprintf("%d people or more: with %d the %s was what was measured; plan with %d", c.People, c.Failed, c.Limit, c.Plan)
	case c.People == 0:
		return fmt.Sprintf("nobody is fast; %d people: %s, short of: %s", c.Failed, c.Result, c.Limit)
	}
	return fmt.Sprintf("%d people; %d are %s, short of: %s; plan with %d", c.People, c.Failed, c.Result, c.Limit, c.Plan)
}

// capacityFigures are those that two runs are compared by.
func capacityFigures(all []Capacity) (figures []figure) {
	one := func(value float64) *Spread { return &Spread{Median: value, Low: value, High: value} }
	for _, c := range all {
		if c.Unmeasured != "" {
			continue
		}
		figures = append(figures, figure{name: fastWith(c.Size), unit: persons, value: one(float64(c.People))})
		if c.People > 0 {
			figures = append(figures, figure{name: "memory of each, " + c.Size.String(), unit: octets, value: one(float64(c.Memory) / float64(c.People))})
		}
		if c.LogIn > 0 {
			figures = append(figures, figure{name: "CPU of a log-in, " + c.Size.String(), unit: millis, value: one(c.LogIn)})
		}
	}
	return figures
}

// peopleRatios sets the capacities of one target against another's, by size.
func peopleRatios(of, to []Capacity) map[string]float64 {
	var all map[string]float64
	for _, a := range of {
		for _, b := range to {
			if a.Size == b.Size && a.People > 0 && b.People > 0 && !a.OrMore && !b.OrMore {
				if all == nil {
					all = make(map[string]float64)
				}
				all[a.Size.String()] = short(float64(a.People) / float64(b.People))
			}
		}
	}
	return all
}

// generatorLimits reports whether the generator was what ended a search.
func (r *Results) generatorLimits() bool {
	for _, c := range r.Capacities {
		if c.Limit == AtGenerator {
			return true
		}
	}
	return false
}

// fastWith is the name of the figure of a size.
func fastWith(s Size) string { return "fast with " + s.String() }

// orMore reports whether a figure is of a capacity that goes beyond what was tried.
func (t Target) orMore(figure string) bool {
	for _, c := range t.Capacity {
		if c.OrMore && fastWith(c.Size) == figure {
			return true
		}
	}
	return false
}
