package report

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
)

// Spread is a figure over the rounds of a run: the median and the two ends. In
// JSON it is [median, low, high], each with four digits; with one round all
// three are equal.
type Spread struct{ Median, Low, High float64 }

// MarshalJSON never fails.
func (s Spread) MarshalJSON() ([]byte, error) {
	return json.Marshal([3]float64{short(s.Median), short(s.Low), short(s.High)})
}

// UnmarshalJSON takes exactly three numbers.
func (s *Spread) UnmarshalJSON(text []byte) error {
	var all []float64
	if err := json.Unmarshal(text, &all); err != nil {
		return err
	}
	if len(all) != 3 {
		return fmt.Errorf("a figure with its spread has %d numbers, not 3", len(all))
	}
	*s = Spread{Median: all[0], Low: all[1], High: all[2]}
	return nil
}

// spread returns nil for no values.
func spread(values []float64) *Spread {
	if len(values) == 0 {
		return nil
	}
	sorted := slices.Sorted(slices.Values(values))
	return &Spread{Median: median(sorted), Low: sorted[0], High: sorted[len(sorted)-1]}
}

// middle is the median, shortened; 0 if there is none.
func (s *Spread) middle() float64 {
	if s == nil {
		return 0
	}
	return short(s.Median)
}

// median of sorted values, of which there is at least one.
func median(sorted []float64) float64 {
	half := len(sorted) / 2
	if len(sorted)%2 == 1 {
		return sorted[half]
	}
	return (sorted[half-1] + sorted[half]) / 2
}

// short keeps four digits: more would pretend to be exact.
func short(f float64) float64 {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return 0
	}
	shortened, err := strconv.ParseFloat(strconv.FormatFloat(f, 'g', 4, 64), 64)
	if err != nil {
		return f
	}
	return shortened
}

func sortedKeys[K cmp.Ordered, V any](m map[K]V) []K { return slices.Sorted(maps.Keys(m)) }
