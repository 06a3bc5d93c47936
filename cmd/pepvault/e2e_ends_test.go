package main_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// testEnds ends the service in the middle of writes, by SIGKILL and by
// SIGTERM: what was acknowledged is there afterwards.
func (h *host) testEnds(t *testing.T) {
	const writers, goal = 8, 120
	s := h.serve(t, crashJID, "")
	laptop := connectOurs(t, h.server, alice, "laptop", crashJID)
	acknowledged := make(map[string]string) // id and number of the write to payload
	for round, end := range []func(){s.kill, s.kill, s.terminate} {
		var mu sync.Mutex
		enough := make(chan struct{})
		ctx, stop := context.WithCancel(t.Context())
		began := len(acknowledged)
		var writing sync.WaitGroup
		for w := range writers {
			writing.Go(func() {
				for i := 0; ctx.Err() == nil && i < 10_000; i++ {
					id, payload := fmt.Sprintf("r%dw%di%d", round, w, i%3), record(round+1, fmt.Sprintf("%d.%d.%d", round, w, i))
					answer, err := laptop.IQ(ctx, "set", crashJID, []byte(publish("crash", id, payload)))
					if err != nil || answer.Type != "result" {
						return // no answer, or the host's word that the service is away
					}
					mu.Lock()
					acknowledged[fmt.Sprintf("%s#%d", id, i/3)] = payload
					if len(acknowledged)-began == goal {
						close(enough)
					}
					mu.Unlock()
				}
			})
		}
		select {
		case <-enough:
		case <-time.After(2 * patience):
			t.Fatalf("round %d: only %d writes were acknowledged", round, len(acknowledged)-began)
		}
		end()
		stop()
		writing.Wait()
		s.start()
		checkAcknowledged(t, laptop, acknowledged)
	}
}

// checkAcknowledged holds each record to its last acknowledged payload, or to
// the one behind it: that may have been stored without its answer getting out.
func checkAcknowledged(t *testing.T, d *ourDevice, acknowledged map[string]string) {
	t.Helper()
	last := make(map[string]int) // id to number of its last acknowledged write
	for key := range acknowledged {
		id, n := splitKey(t, key)
		last[id] = max(last[id], n)
	}
	stored := make(map[string]string)
	for _, one := range d.items("crash", "", "") {
		stored[one.ID] = one.Payload
	}
	for _, id := range slices.Sorted(maps.Keys(last)) {
		want := meaning(t, acknowledged[fmt.Sprintf("%s#%d", id, last[id])])
		next := meaning(t, laterPayload(t, id, last[id]+1))
		if got := stored[id]; got != want && got != next {
			t.Errorf("%s: %q is stored, acknowledged was %q", id, got, want)
		}
	}
}

func splitKey(t *testing.T, key string) (id string, n int) {
	t.Helper()
	id, number, _ := strings.Cut(key, "#")
	if _, err := fmt.Sscan(number, &n); err != nil {
		t.Fatal(err)
	}
	return id, n
}

// laterPayload is what the writer of that record sends as its n-th write.
func laterPayload(t *testing.T, id string, n int) string {
	t.Helper()
	var round, w, i int
	if _, err := fmt.Sscanf(id, "r%dw%di%d", &round, &w, &i); err != nil {
		t.Fatal(err)
	}
	return record(round+1, fmt.Sprintf("%d.%d.%d", round, w, 3*n+i))
}
