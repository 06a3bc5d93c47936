package component

import (
	"context"
	"sync"
	"sync/atomic"
)

// maxSpare is how many goroutines wait for the next queue that begins. A new
// one would have to grow its stack first, for a fifth of what a read costs.
const maxSpare = 64

// queues holds the waiting requests, a queue for each name that has any. A
// queue has a goroutine for as long as something is in it, so idle accounts
// cost nothing.
type queues struct {
	bound int // of the requests of one name, with the one being served and those held

	begun  chan func()   // taken by goroutines that are to spare
	ended  chan struct{} // closed by end
	ending sync.Once
	spare  atomic.Int32

	mu   sync.Mutex
	busy map[string]*queue
	held map[string]int // requests that are served, and count until they are answered
	idle chan struct{}  // closed when busy gets empty, while somebody waits
}

type queue struct {
	jobs []func()
}

func newQueues(bound int) queues {
	return queues{bound: bound, begun: make(chan func()), ended: make(chan struct{}), busy: map[string]*queue{}, held: map[string]int{}}
}

// waiting is how many requests of that name wait, with the one that is served
// and those that are held.
func (q *queues) waiting(name string) int {
	q.mu.Lock()
	defer q.mu.Unlock()
	n := q.held[name]
	if waiting := q.busy[name]; waiting != nil {
		n += len(waiting.jobs)
	}
	return n
}

// hold has a request of that name count until release: its answer is large and
// waits in the writer, where one name must not take all the room.
func (q *queues) hold(name string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.held[name]++
}

func (q *queues) release(name string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.held[name]--; q.held[name] == 0 {
		delete(q.held, name)
	}
}

// push has a job done after all others of that name.
func (q *queues) push(name string, job func()) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.add(name, job)
}

// pushBeside is push for what is no request and has no bound of its own: it is
// dropped if twice as many jobs of that name wait as requests may.
func (q *queues) pushBeside(name string, job func()) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if waiting := q.busy[name]; waiting == nil || len(waiting.jobs) < 2*q.bound {
		q.add(name, job)
	}
}

// add is push under q.mu.
func (q *queues) add(name string, job func()) {
	if waiting := q.busy[name]; waiting != nil {
		waiting.jobs = append(waiting.jobs, job)
		return
	}
	waiting := &queue{jobs: []func(){job}}
	q.busy[name] = waiting
	serve := func() {
		for ; job != nil; job = q.next(name, waiting) {
			job()
		}
	}
	select {
	case q.begun <- serve:
	default:
		go q.work(serve)
	}
}

// work serves one queue after the other.
func (q *queues) work(serve func()) {
	for {
		serve()
		if q.spare.Add(1) > maxSpare {
			q.spare.Add(-1)
			return
		}
		select {
		case serve = <-q.begun:
			q.spare.Add(-1)
		case <-q.ended:
			return
		}
	}
}

// end has the goroutines that are to spare end. What is pushed later is still
// served.
func (q *queues) end() { q.ending.Do(func() { close(q.ended) }) }

// next drops the job that is done and returns the one behind it; nil if the
// queue has ended.
func (q *queues) next(name string, mine *queue) func() {
	q.mu.Lock()
	defer q.mu.Unlock()
	mine.jobs[0] = nil
	mine.jobs = mine.jobs[1:]
	if len(mine.jobs) > 0 {
		return mine.jobs[0]
	}
	delete(q.busy, name)
	if len(q.busy) == 0 && q.idle != nil {
		close(q.idle)
		q.idle = nil
	}
	return nil
}

// wait returns nil as soon as no queue has anything in it, or the cause when
// ctx ends.
func (q *queues) wait(ctx context.Context) error {
	q.mu.Lock()
	if len(q.busy) == 0 {
		q.mu.Unlock()
		return nil
	}
	if q.idle == nil {
		q.idle = make(chan struct{})
	}
	idle := q.idle
	q.mu.Unlock()
	select {
	case <-idle:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
