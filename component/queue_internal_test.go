package component

import "testing"

// What is no request has a bound too, beside a full queue of requests.
func TestJobsBesideRequestsAreBounded(t *testing.T) {
	t.Parallel()
	const bound, more = 8, 100
	q := newQueues(bound)
	defer q.end()
	block, done := make(chan struct{}), make(chan struct{})
	q.push("a", func() { <-block })
	for range bound - 1 {
		q.push("a", func() {})
	}
	beside := 0
	for range more {
		q.pushBeside("a", func() { beside++ })
	}
	if got := q.waiting("a"); got != 2*bound {
		t.Errorf("%d jobs wait, want %d", got, 2*bound)
	}
	q.pushBeside("b", func() { close(done) }) // others have theirs
	<-done
	close(block)
	if err := q.wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	if beside != bound {
		t.Errorf("%d jobs were done beside the requests, want %d", beside, bound)
	}
}
