package component_test

import (
	"maps"
	"sync"
	"testing"
	"time"

	"pepvault/component"
)

// tally is a Meter that keeps what it heard.
type tally struct {
	t  testing.TB
	mu sync.Mutex
	of map[string]int // "op result", a delivery or a rejection
}

func newTally(t testing.TB) *tally { return &tally{t: t, of: map[string]int{}} }

func (y *tally) add(what string, n int) {
	y.mu.Lock()
	defer y.mu.Unlock()
	y.of[what] += n
}

func (y *tally) Answered(op, result string, took time.Duration) {
	if took < 0 {
		y.t.Errorf("%s took %v", op, took)
	}
	y.add(op+" "+result, 1)
}

func (y *tally) Notified(d component.Delivery)  { y.add(string(d), 1) }
func (y *tally) Rejected(r component.Rejection) { y.add(string(r), 1) }
func (y *tally) Downloads(n int)                { y.add("downloads", n) }
func (y *tally) Chunk(bytes int)                { y.add("chunk bytes", bytes) }

// all returns what was heard.
func (y *tally) all() map[string]int {
	y.mu.Lock()
	defer y.mu.Unlock()
	return maps.Clone(y.of)
}
