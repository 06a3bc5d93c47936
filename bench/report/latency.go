package report

import (
	"math"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// latencies puts the rounds' percentiles side by side: percentiles of
// different rounds are never averaged, and never mixed into one histogram, in
// which the slowest round would hide.
func latencies(rounds map[int]round, of func(round) *series) Latencies {
	l := Latencies{Errors: make(map[string]int64)}
	for _, r := range rounds {
		s := of(r)
		l.Count += s.latency.TotalCount()
		l.Bytes += s.bytes
		for class, n := range s.errors {
			l.Errors[class] += n
		}
	}
	at := func(q float64) *Spread {
		return over(rounds, func(r round) (float64, bool) { return quantile(of(r).latency, q) })
	}
	sent := func(q float64) *Spread {
		return over(rounds, func(r round) (float64, bool) { return quantile(of(r).service, q) })
	}
	l.Rate = over(rounds, func(r round) (float64, bool) { return r.rateOf(of(r)) })
	l.P50, l.P95, l.P99, l.P999, l.Max = at(50), at(95), at(99), at(99.9), at(100)
	l.Sent50, l.Sent99 = sent(50), sent(99)
	return l
}

// quantile is in milliseconds, by nearest rank: at least that share of the
// samples is not above it. (The histogram by itself rounds the rank, and of few
// samples it would leave the worst one out.) 100 is the maximum. Without
// samples there is none.
func quantile(h *hdrhistogram.Histogram, q float64) (float64, bool) {
	n := float64(h.TotalCount())
	if n == 0 {
		return 0, false
	}
	if q == 100 {
		return float64(h.Max()) / milliseconds, true
	}
	rank := max(math.Ceil(q/100*n-1e-9), 1) // 99.9 % of 1000 is no more than 999
	return float64(h.ValueAtQuantile(rank/n*100)) / milliseconds, true
}
