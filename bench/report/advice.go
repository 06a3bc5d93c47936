package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Advice is the least server for so many people.
type Advice struct {
	UpTo   int    `json:"up_to_people"` // people online at once
	Size   Size   `json:"size"`
	Server string `json:"server"` // what to look for, in words
}

// small is a size of which the smallest servers that are for rent have more.
var small = Size{CPUs: 0.5, Memory: 512 << 20}

// Recommend says which server to take for how many people, the smallest first,
// from what was measured of one target: with a quarter of it (Plan). A size that
// carries no more people than a smaller one is left out, as is one that was not
// measured or had no limits. Above the last one nothing is known.
func Recommend(measured []Capacity) []Advice {
	sorted := slices.SortedStableFunc(slices.Values(measured), func(a, b Capacity) int {
		return cmp.Or(cmp.Compare(a.Size.CPUs, b.Size.CPUs), cmp.Compare(a.Size.Memory, b.Size.Memory))
	})
	var all []Advice
	for _, c := range sorted {
		upTo := Plan(c.People)
		if c.Unmeasured != "" || !c.Size.Limited() || upTo == 0 || len(all) > 0 && upTo <= all[len(all)-1].UpTo {
			continue
		}
		all = append(all, Advice{UpTo: upTo, Size: c.Size, Server: c.Size.server()})
	}
	return all
}

// server names a class of servers that have at least that size.
func (s Size) server() string {
	if s.CPUs <= small.CPUs && s.Memory <= small.Memory {
		return "the smallest server for rent, or a small computer at home such as a Raspberry Pi 4"
	}
	cpus, memory, _ := strings.Cut(s.String(), ", ")
	return fmt.Sprintf("a server with %s and %s of memory", cpus, memory)
}
