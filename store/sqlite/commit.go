package sqlite

import (
	"context"
	"fmt"
	"runtime/debug"
	"time"

	"pepvault/vault"
)

const (
	// maxBatch is how many transactions may share a commit.
	maxBatch = 128
	// maxWaiting is how many more may wait for their place in one.
	maxWaiting = 1024
	// busyPatience is how long another program may lock the database before
	// writes fail.
	busyPatience = 30 * time.Second
)

// latest asks a cache for the newest value. Only the writer may rely on it.
const latest = ^sequence(0)

// job is one Update on its way through the commit loop.
type job struct {
	fn   func(*tx) error
	done chan struct{} // closed when the rest is set

	err      error
	panicked *Panic
	hooks    []func()
}

// Panic is what an Update panics with when its function did.
type Panic struct {
	Value any
	Stack []byte // where the function panicked
}

// Error implements error.
func (p *Panic) Error() string { return fmt.Sprintf("%v\n\n%s", p.Value, p.Stack) }

// Unwrap returns the value if it is an error.
func (p *Panic) Unwrap() error {
	err, _ := p.Value.(error)
	return err
}

// Update implements vault.Store.
func (s *Store) Update(ctx context.Context, key vault.Key, fn func(vault.Tx) error) error {
	if err := s.enter(); err != nil {
		return err
	}
	defer s.active.Done()
	if err := s.prepare(ctx, key); err != nil {
		return err
	}
	return s.submit(ctx, func(t *tx) error { return fn(t) })
}

// prepare reads what a transaction about key will need, so that the writer
// has no need to scan. Only the end of ctx is an error: others will show there.
func (s *Store) prepare(ctx context.Context, key vault.Key) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	_, haveVault := s.vaults.get(key, latest)
	_, haveAccount := s.accounts.get(key.Account, latest)
	if haveVault && haveAccount {
		return nil
	}
	s.view(ctx, func(v *view) error {
		v.find(key)
		v.account(key.Account)
		return nil
	})
	return ctx.Err()
}

// submit hands a job to the commit loop and waits for its end.
func (s *Store) submit(ctx context.Context, fn func(*tx) error) error {
	j := &job{fn: fn, done: make(chan struct{})}
	select {
	case s.jobs <- j:
	case <-ctx.Done():
		return ctx.Err()
	}
	<-j.done
	if j.panicked != nil {
		panic(j.panicked)
	}
	return j.err
}

// loop is the writer. It ends when jobs is closed and empty.
func (s *Store) loop() {
	var batch []*job
	ended := false
	defer func() {
		if !ended {
			// A function ended the goroutine (runtime.Goexit, t.FailNow).
			s.abandon(batch)
			go s.loop()
			return
		}
		close(s.stopped)
	}()
	for !ended {
		batch = batch[:0]
		select {
		case first, open := <-s.jobs:
			if ended = !open; open {
				batch = s.collect(append(batch, first))
				s.carryOut(batch)
			}
		case f := <-s.pauses:
			f()
		}
	}
}

// pause has the writer call f between two commits, and returns when it has. f
// must be short.
func (s *Store) pause(ctx context.Context, f func()) error {
	done := make(chan struct{})
	select {
	case s.pauses <- func() { defer close(done); f() }:
	case <-ctx.Done():
		return ctx.Err()
	}
	<-done
	return nil
}

// collect adds what else is waiting.
func (s *Store) collect(batch []*job) []*job {
	for len(batch) < maxBatch {
		select {
		case j, open := <-s.jobs:
			if !open {
				return batch
			}
			batch = append(batch, j)
		default:
			return batch
		}
	}
	return batch
}

func (s *Store) abandon(batch []*job) {
	s.rollback()
	for _, j := range batch {
		select {
		case <-j.done:
		default:
			j.panicked = &Panic{Value: "the function of an Update ended its goroutine", Stack: debug.Stack()}
			close(j.done)
		}
	}
}

// carryOut runs the jobs in one transaction and answers them. If the store
// fails on the way, none of it is kept, and each job gets a transaction of its
// own, so that only those fail that are to blame or would fail anyway.
func (s *Store) carryOut(batch []*job) {
	err := s.transact(batch)
	if err != nil && len(batch) > 1 {
		for i := range batch {
			s.carryOut(batch[i : i+1])
		}
		return
	}
	if err != nil {
		batch[0].err, batch[0].panicked, batch[0].hooks = err, nil, nil
		s.writesFail(err)
	}
	for _, j := range batch {
		for _, f := range j.hooks {
			f()
		}
	}
	for _, j := range batch {
		close(j.done)
	}
}

// transact runs the jobs in one transaction, commits and publishes it. An
// error is a failure of the store, and nothing has changed.
func (s *Store) transact(batch []*job) error {
	began := time.Now()
	if err := s.beginWrite(); err != nil {
		return err
	}
	all, dirty := newChanges(), false
	for _, j := range batch {
		wrote, err := s.runJob(j, all)
		if err != nil {
			s.rollback()
			return err
		}
		dirty = dirty || wrote
	}
	if !dirty {
		s.rollback()
		return nil
	}
	s.announce(all)
	if _, err := s.writer.exec(s.ctx, commit); err != nil {
		s.rollback()
		s.publish(all, false)
		return failure("commit", err)
	}
	s.publish(all, true)
	s.committed(len(batch), time.Since(began))
	s.writesWork()
	s.cleaner.written()
	return nil
}

// runJob runs one job inside the transaction and merges what it changed into
// all. An error is a failure of the store.
func (s *Store) runJob(j *job, all *changes) (wrote bool, err error) {
	t := &tx{store: s, batch: all, own: newChanges()}
	t.ctx, t.conn, t.source = s.ctx, s.writer, t
	j.panicked, j.err = call(j.fn, t)
	j.hooks = nil
	if t.failed != nil {
		return false, t.failed
	}
	refused := j.err != nil || j.panicked != nil
	if !refused {
		j.hooks = t.hooks
		all.merge(t.own)
	}
	if !t.dirty {
		return false, nil
	}
	if refused {
		if _, err := s.writer.exec(s.ctx, rollbackTo); err != nil {
			return false, failure("undo a transaction", err)
		}
	}
	if _, err := s.writer.exec(s.ctx, release); err != nil {
		return false, failure("end a transaction", err)
	}
	return !refused, nil
}

func call(fn func(*tx) error, t *tx) (panicked *Panic, err error) {
	defer func() {
		if value := recover(); value != nil {
			panicked = &Panic{Value: value, Stack: debug.Stack()}
		}
	}()
	return nil, fn(t)
}

// beginWrite waits out other programs' locks.
func (s *Store) beginWrite() error {
	if s.writer == nil {
		c, err := connect(s.ctx, s.writeDB, allStatements)
		if err != nil {
			return failure("open the database", err)
		}
		s.writer = c
	}
	for deadline := time.Now().Add(busyPatience); ; {
		_, err := s.writer.exec(s.ctx, beginWrite)
		if err == nil {
			return nil
		}
		if !isBusy(err) || time.Now().After(deadline) {
			s.rollback()
			return failure("begin a transaction", err)
		}
	}
}

// rollback ends the writer's transaction, which the failure of a statement may
// have done already. If the connection is not usable after it, the next
// transaction gets a new one.
func (s *Store) rollback() {
	if s.writer == nil {
		return
	}
	// An error says that there is no transaction, or that the connection is broken.
	s.writer.exec(s.ctx, rollback)
	if _, err := s.writer.exec(s.ctx, begin); err == nil {
		if _, err = s.writer.exec(s.ctx, rollback); err == nil {
			return
		}
	}
	s.writer.close()
	s.writer = nil
}

// announce says what the commit that now follows will change: until it is
// published, a reader may see it or not.
func (s *Store) announce(all *changes) {
	s.turn.Lock()
	defer s.turn.Unlock()
	s.pending = all
}

// publish ends what announce began. After a failure nothing is known about
// what the commit touched.
func (s *Store) publish(all *changes, committed bool) {
	s.turn.Lock()
	defer s.turn.Unlock()
	s.seq++
	s.pending = nil
	for key, ix := range all.vaults {
		if committed && ix != nil {
			s.vaults.put(key, ix, s.seq)
		} else {
			s.vaults.drop(key, s.seq)
		}
	}
	for key := range all.unknown {
		if _, known := all.vaults[key]; !known {
			s.vaults.drop(key, s.seq)
		}
	}
	for account, u := range all.accounts {
		if committed {
			s.accounts.put(account, u, s.seq)
		} else {
			s.accounts.drop(account, s.seq)
		}
	}
}

// fault is why the latest write failed.
type fault struct {
	err    error
	probed time.Time // when a write was last tried because of it
}

func (s *Store) writesFail(err error) {
	if before := s.fault.Swap(&fault{err: err, probed: time.Now()}); before == nil {
		s.logger.Error("store can't write", "error", err)
	}
}

func (s *Store) writesWork() {
	if s.fault.Load() == nil {
		return
	}
	s.fault.Store(nil)
	s.logger.Info("store writes again")
}

// probeEvery bounds how often Health tries whether writes work again.
const probeEvery = time.Second

// Health implements vault.Store.
func (s *Store) Health(ctx context.Context) error {
	if err := s.enter(); err != nil {
		return err
	}
	defer s.active.Done()
	if err := s.view(ctx, (*view).begun); err != nil {
		return err
	}
	f := s.fault.Load()
	if f == nil {
		return nil
	}
	if time.Since(f.probed) < probeEvery || !s.fault.CompareAndSwap(f, &fault{err: f.err, probed: time.Now()}) {
		return f.err
	}
	return s.submit(ctx, (*tx).tryWrite)
}

// tryWrite writes what is already there.
func (t *tx) tryWrite() error {
	_, err := t.write("try a write", probe)
	return err
}

// mismatch notes that a cached index was wrong, which must not happen.
func (s *Store) mismatch(key vault.Key) {
	s.mismatches.Add(1)
	s.turn.Lock()
	s.vaults.drop(key, s.seq)
	s.turn.Unlock()
	s.logger.Error("order index does not fit the rows", "error", errMismatch)
}
