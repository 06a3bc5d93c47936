package sqlite

import (
	"context"
	"errors"

	"pepvault/vault"
)

// enter counts a caller in, until active.Done.
func (s *Store) enter() error {
	s.life.RLock()
	defer s.life.RUnlock()
	if s.closed {
		return vault.ErrClosed
	}
	s.active.Add(1)
	return nil
}

// takeReader waits for a free read connection.
func (s *Store) takeReader(ctx context.Context) (*conn, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	var c *conn
	select {
	case c = <-s.readers:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if c != nil {
		return c, nil
	}
	c, err := connect(context.WithoutCancel(ctx), s.readDB, readStatements)
	if err != nil {
		s.readers <- nil
		return nil, failure("open the database", err)
	}
	return c, nil
}

// Close implements vault.Store.
func (s *Store) Close() error {
	s.life.Lock()
	if s.closed {
		s.life.Unlock()
		return vault.ErrClosed
	}
	s.closed = true
	s.life.Unlock()
	s.active.Wait()
	s.cleaner.end()
	close(s.jobs)
	<-s.stopped
	return s.release()
}

// release checkpoints and gives everything back; what failed is told, but
// nothing is left open.
func (s *Store) release() error {
	var errs []error
	for range cap(s.readers) {
		if c := <-s.readers; c != nil {
			c.close()
		}
	}
	errs = append(errs, s.readDB.Close())
	if s.writer != nil {
		s.settle()
		errs = append(errs, s.checkpoint())
		s.writer.close()
	}
	s.cleaner.close()
	errs = append(errs, s.writeDB.Close(), s.lock.Close())
	return errors.Join(errs...)
}
