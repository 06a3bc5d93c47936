package watch

import (
	"context"
	"math/rand/v2"
	"slices"
	"time"

	"pepvault/bench/report"
)

// Bounds of a measurement of the machine.
const (
	chaseTime  = 200 * time.Millisecond
	chaseBytes = 64 << 20 // more than a core's caches hold
	chaseHops  = 2000     // between two looks at the clock
	lineBytes  = 64

	syncTime  = 500 * time.Millisecond
	syncCount = 200
	syncBytes = 4096
)

// Machine measures the machine while no load runs: how long a dependent load
// from memory takes, and how long the disk below folder takes to make a page
// of 4 KiB durable. It takes about a second. What can't be measured stays 0;
// the caller fills in At and Round.
func Machine(ctx context.Context, folder string) report.Machine {
	var m report.Machine
	m.Memory = memory(ctx)
	s := Syncs(ctx, folder, syncTime, syncCount)
	m.Syncs, m.SyncP50, m.SyncP99, m.SyncMax = s.Count, s.P50, s.P99, s.Max
	return m
}

// Syncs measures how long the disk below folder takes to make an append of
// 4 KiB durable, for so long and, if count is not 0, so often at most. The caller
// fills in At. Where it can't be measured there are 0 syncs.
func Syncs(ctx context.Context, folder string, most time.Duration, count int) report.Syncs {
	took := syncs(ctx, folder, most, count)
	if len(took) == 0 {
		return report.Syncs{}
	}
	slices.Sort(took)
	return report.Syncs{Count: len(took), P50: nth(took, 50), P99: nth(took, 99), Max: took[len(took)-1]}
}

// nth percentile of sorted values, by nearest rank.
func nth(sorted []time.Duration, percent int) time.Duration {
	return sorted[(len(sorted)*percent+99)/100-1]
}

// chase follows a chain of pointers through memory, each of which is known only
// when the one before has arrived, and returns the median of the time that one
// took, in nanoseconds.
func chase(ctx context.Context, lines [][lineBytes / 4]uint32) float64 {
	linkAll(lines)
	var hops []time.Duration
	at := uint32(0)
	for began := time.Now(); time.Since(began) < chaseTime && ctx.Err() == nil; {
		from := time.Now()
		for range chaseHops {
			at = lines[at][0]
		}
		hops = append(hops, time.Since(from))
	}
	if len(hops) == 0 {
		return 0
	}
	lines[at][1] = at // so that the chase has a use
	slices.Sort(hops)
	return float64(nth(hops, 50)) / chaseHops
}

// linkAll makes one circle of all lines in an order that no processor guesses
// (Sattolo's algorithm).
func linkAll(lines [][lineBytes / 4]uint32) {
	random := rand.New(rand.NewPCG(1, 2))
	for i := range lines {
		lines[i][0] = uint32(i)
	}
	for i := len(lines) - 1; i > 0; i-- {
		j := random.IntN(i)
		lines[i][0], lines[j][0] = lines[j][0], lines[i][0]
	}
}
