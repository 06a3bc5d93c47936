package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"sync/atomic"
	"time"
)

const (
	// cleanEvery is how long what was deleted may stay in the files while
	// writes go on without a rest.
	cleanEvery = time.Minute
	// restAfter is how long nothing is written before the clean-up begins.
	restAfter = time.Second
	// lookEvery is how often the log is looked at while writes go on.
	lookEvery = 100 * time.Millisecond
	// finishTries bounds how often the end of a clean-up is tried while writes
	// get in between.
	finishTries = 5
	// finishPages is how many pages may still be looked at while the writer
	// waits.
	finishPages = 64
)

// cleaner has what was deleted leave the files, and keeps the log short, in a
// goroutine of its own. It only hands small pieces to the writer.
type cleaner struct {
	store *Store
	path  string
	// wake holds a token when something was written.
	wake    chan struct{}
	stop    context.CancelFunc
	stopped chan struct{}

	lookDB, moveDB *sql.DB
	look           *conn     // reads
	move           *sql.Conn // moves the log; it waits for nobody

	// position and touched belong to the goroutine, and to the writer while
	// that waits in a pause.
	position logPosition
	moveAt   int     // at how many frames slices have the log moved
	touched  pageSet // pages that may hold what they do not use
	large    bool    // the database has mostPages or more: none is looked at

	cleaned atomic.Int64 // how often the clean-up came to its end
}

// newCleaner opens what a cleaner needs. tidy says that the database was left
// without anything to clean up; else all its pages are looked at.
func newCleaner(ctx context.Context, s *Store, path string, tidy bool) (*cleaner, error) {
	c := &cleaner{store: s, path: path, wake: make(chan struct{}, 1), stopped: make(chan struct{})}
	var err error
	if c.lookDB, err = sql.Open("sqlite", readerDSN(path)); err != nil {
		return nil, err
	}
	if c.moveDB, err = sql.Open("sqlite", cleanerDSN(path)); err != nil {
		c.close()
		return nil, err
	}
	if c.look, err = connect(ctx, c.lookDB, readStatements); err != nil {
		c.close()
		return nil, err
	}
	if c.move, err = c.moveDB.Conn(ctx); err != nil {
		c.close()
		return nil, err
	}
	if !tidy {
		var pages uint32
		if err := c.look.sql.QueryRowContext(ctx, "PRAGMA page_count").Scan(&pages); err != nil {
			c.close()
			return nil, err
		}
		if pages >= mostPages {
			c.large, pages = true, 0
		}
		for page := range pages {
			c.touched.add(page + 1)
		}
	}
	return c, nil
}

func (c *cleaner) close() {
	if c.look != nil {
		c.look.close()
	}
	if c.move != nil {
		c.move.Close()
	}
	for _, db := range []*sql.DB{c.lookDB, c.moveDB} {
		if db != nil {
			db.Close()
		}
	}
}

// written wakes the cleaner; it never blocks.
func (c *cleaner) written() {
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

// start begins the goroutine.
func (c *cleaner) start(ctx context.Context) {
	ctx, c.stop = context.WithCancel(ctx)
	go func() {
		defer close(c.stopped)
		c.run(ctx)
	}()
}

// end stops the goroutine and waits for it.
func (c *cleaner) end() {
	c.stop()
	<-c.stopped
}

// run cleans up whenever something has been written and then nothing for a
// while, and once a minute if writes never rest.
func (c *cleaner) run(ctx context.Context) {
	failing := false
	for {
		select {
		case <-c.wake:
		case <-ctx.Done():
			return
		}
		c.awaitRest(ctx)
		if ctx.Err() != nil {
			return
		}
		done, err := c.clean(ctx)
		switch {
		case ctx.Err() != nil:
			return
		case err != nil && !failing:
			c.store.logger.Warn("store could not clean up; it is tried again", "error", err)
		}
		failing = err != nil
		if !done {
			// It is not over: a reader or other writes were in the way.
			pause(ctx, restAfter)
			c.written()
		}
	}
}

// awaitRest keeps the log short until nothing was written for a while.
func (c *cleaner) awaitRest(ctx context.Context) {
	began, latest := time.Now(), time.Now()
	for ctx.Err() == nil && time.Since(latest) < restAfter && time.Since(began) < cleanEvery {
		pause(ctx, lookEvery)
		select {
		case <-c.wake:
			latest = time.Now()
		default:
		}
		if err := c.keepShort(ctx); err != nil {
			return // the clean-up will meet it too, and say so
		}
	}
}

// pause waits.
func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// keepShort moves the log if it is long, nearly all of it beside the writer, so
// that it can be used from its beginning again.
func (c *cleaner) keepShort(ctx context.Context) error {
	if err := c.gather(); err != nil {
		return err
	}
	if c.position.frames < logFrames {
		return nil
	}
	for range finishTries {
		left, err := c.moveLog(ctx)
		if err != nil {
			return err
		}
		if left < logFrames/4 {
			break
		}
	}
	var err error
	pauseErr := c.store.pause(ctx, func() {
		if err = c.gather(); err == nil {
			_, _, err = c.checkpoint("PASSIVE")
		}
	})
	return errors.Join(pauseErr, err)
}

// clean removes all that was deleted from the database and its log. done is
// false if somebody was in the way.
func (c *cleaner) clean(ctx context.Context) (done bool, err error) {
	if err := c.sweep(ctx); err != nil {
		return false, err
	}
	for range finishTries {
		if err := c.keepShort(ctx); err != nil {
			return false, err
		}
		if _, err := c.moveLog(ctx); err != nil {
			return false, err
		}
		if err := c.scrub(ctx); err != nil {
			return false, err
		}
		if done, err = c.finish(ctx); done || err != nil {
			break
		}
	}
	if done {
		c.cleaned.Add(1)
	}
	return done, err
}

// finish empties the log, if all pages that are in it have been looked at.
func (c *cleaner) finish(ctx context.Context) (done bool, err error) {
	pauseErr := c.store.pause(ctx, func() { done, err = c.emptyLog(ctx) })
	return done, errors.Join(pauseErr, err)
}

// emptyLog is for the writer's goroutine.
func (c *cleaner) emptyLog(ctx context.Context) (done bool, err error) {
	if err := c.gather(); err != nil || c.touched.n > finishPages {
		return false, err
	}
	pages := c.touched.first(finishPages)
	if dirty, err := c.soiled(ctx, pages); err != nil || len(dirty) > 0 {
		return false, err
	}
	for _, page := range pages {
		c.touched.remove(page)
	}
	blocked, left, err := c.checkpoint("TRUNCATE")
	if err != nil || blocked || left > 0 {
		return false, err
	}
	c.position = logPosition{}
	return true, nil
}

// read calls fn in a read transaction of the cleaner's own.
func (c *cleaner) read(ctx context.Context, fn func() error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	ctx = c.store.ctx // one that can't be cancelled
	if _, err := c.look.exec(ctx, begin); err != nil {
		return failure("begin a read", err)
	}
	var only int
	err := c.look.row(ctx, touch, nil, &only) // this fixes the state that it sees
	if err == nil {
		err = fn()
	}
	if _, failed := c.look.exec(ctx, rollback); err == nil {
		err = failed
	}
	return failure("clean up", err)
}

// one reads one row, if there is one.
func (c *conn) one(ctx context.Context, s statement, args []any, dest ...any) (found bool, err error) {
	err = c.row(ctx, s, args, dest...)
	if errors.Is(err, sql.ErrNoRows) {
		return false, nil
	}
	return err == nil, err
}

// settle notes at the end of a store that nothing is left to clean up, if that
// can be had at once; else the next start does it all.
func (s *Store) settle() {
	c := s.cleaner
	var waste int
	row := s.writer.sql.QueryRowContext(s.ctx, countWaste)
	if err := row.Scan(&waste); err != nil || waste > 0 {
		return
	}
	if err := c.gather(); err != nil || c.touched.n > lookPages {
		return
	}
	j := &job{done: make(chan struct{}), fn: func(t *tx) error {
		if err := t.scrub(c.touched.first(lookPages)); err != nil {
			return err
		}
		_, err := t.write("note that all is clean", settleStore)
		return err
	}}
	s.carryOut([]*job{j})
}
