package watch

import (
	"context"
	"sync/atomic"
	"time"
)

// beatEvery is how often the generator looks whether it gets its turn.
const beatEvery = 10 * time.Millisecond

// beat tells how long the own process waits when it wants to run, whatever keeps
// it: other processes, a limit of its control group, or its own goroutines. What
// it used can't tell: who gets little uses little.
type beat struct{ count, waited atomic.Int64 }

// run wants to run at each beatEvery until ctx ends. Moments that it slept through
// count too, as an answer that came then had to wait as well.
func (b *beat) run(ctx context.Context, sleep func(time.Duration)) {
	for due := time.Now().Add(beatEvery); ctx.Err() == nil; {
		sleep(time.Until(due))
		for now := time.Now(); !due.After(now); due = due.Add(beatEvery) {
			b.count.Add(1)
			b.waited.Add(int64(now.Sub(due)))
		}
	}
}
