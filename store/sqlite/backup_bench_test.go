package sqlite

import (
	"context"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
	"time"

	"pepvault/vault"
)

// BenchmarkBackup copies about 100 MB while records are saved 50 times a second.
// longest-write-ms is how long one of those waited at most, counted from when it
// was due.
func BenchmarkBackup(b *testing.B) {
	s := benchStore(b, 290, 256)
	path := s.lock.Path()[:len(s.lock.Path())-len(".lock")]
	dir := b.TempDir()
	ctx, stop := context.WithCancel(b.Context())
	var longest time.Duration
	writes := 0
	var busy sync.WaitGroup
	busy.Go(func() {
		tick := time.NewTicker(time.Second / 50)
		defer tick.Stop()
		for {
			var due time.Time
			select {
			case due = <-tick.C:
			case <-ctx.Done():
				return
			}
			key := benchKey(writes % 290)
			err := s.Update(b.Context(), key, func(tx vault.Tx) error {
				_, err := tx.Put(key, sample(writes%256))
				return err
			})
			if err != nil {
				b.Error(err)
				return
			}
			writes++
			longest = max(longest, time.Since(due))
		}
	})
	b.ResetTimer()
	var contents vault.Contents
	for n := range b.N {
		var err error
		if contents, err = BackupOnline(b.Context(), path, filepath.Join(dir, strconv.Itoa(n))); err != nil {
			b.Fatal(err)
		}
	}
	b.StopTimer()
	stop()
	busy.Wait()
	b.ReportMetric(float64(longest.Microseconds())/1000, "longest-write-ms")
	b.ReportMetric(float64(writes)/float64(b.N), "writes/op")
	b.ReportMetric(float64(contents.Bytes)/1e6, "MB")
}
