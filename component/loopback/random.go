package loopback

import (
	"fmt"
	"math/rand/v2"
	"sync"
)

// random is a generator for several goroutines.
type random struct {
	mu sync.Mutex
	r  *rand.Rand
}

func newRandom(seed uint64) *random {
	if seed == 0 {
		seed = rand.Uint64()
	}
	return &random{r: rand.New(rand.NewPCG(seed, 0x9e3779b97f4a7c15))}
}

func (r *random) shuffle(n int, swap func(i, j int)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.r.Shuffle(n, swap)
}

func (r *random) token() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return fmt.Sprintf("%016x%016x", r.r.Uint64(), r.r.Uint64())
}
