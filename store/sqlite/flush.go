package sqlite

import (
	"errors"
	"os"
	"sync"
	"time"
)

// flushEvery is how long what a copy writes is left to the system.
const flushEvery = 5 * time.Millisecond

// flushed calls write, and meanwhile has what that writes to a new file go to
// the disk in small pieces; after it, all of it is there. The system would let it pile up, and whoever syncs
// another file then, as each commit does, would wait until all of it is written.
//
// The file has to be one that no other connection of this process has locked:
// to close it gives up such locks.
func flushed(path string, write func() error) error {
	file, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	written := make(chan struct{})
	var flushing sync.WaitGroup
	// The system tells only once that it could not write something, and takes
	// the page for written then: whoever syncs later hears nothing of it.
	var failed error
	flushing.Go(func() {
		tick := time.NewTicker(flushEvery)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				if err := file.Sync(); failed == nil {
					failed = err
				}
			case <-written:
				return
			}
		}
	})
	err = write()
	close(written)
	flushing.Wait()
	if err != nil {
		file.Close()
		return err
	}
	return errors.Join(failed, file.Sync(), file.Close())
}
