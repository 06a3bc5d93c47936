package sqlite

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"pepvault/vault"
)

// BenchmarkStall measures how long a save of somebody else waits at most, from
// when it is due, while something large is removed (longest-ms) and then cleaned
// up (cleanup-longest-ms). One is due every 5 ms.
func BenchmarkStall(b *testing.B) {
	const large = 64 << 10
	for _, test := range []struct {
		name   string
		before func(*testing.B, *Store)
		remove func(vault.Tx) error
	}{
		{"nothing", nil, func(vault.Tx) error { return nil }},
		{"delete/256x64KiB", func(b *testing.B, s *Store) { fillLarge(b, s, 0, 256, large) }, func(tx vault.Tx) error {
			return tx.Delete(largeKey(0))
		}},
		{"delete/32768x100B", func(b *testing.B, s *Store) { fillLarge(b, s, 0, 1<<15, 100) }, func(tx vault.Tx) error {
			return tx.Delete(largeKey(0))
		}},
		{"erase/4x256x64KiB", func(b *testing.B, s *Store) {
			for i := range 4 {
				fillLarge(b, s, i, 256, large)
			}
		}, func(tx vault.Tx) error {
			for i := range 4 {
				if err := tx.Delete(largeKey(i)); err != nil {
					return err
				}
			}
			return nil
		}},
		{"purge/256x64KiB", func(b *testing.B, s *Store) { fillLarge(b, s, 0, 256, large) }, purgeLarge},
		{"purge/32768x1KiB", func(b *testing.B, s *Store) { fillLarge(b, s, 0, 1<<15, 1<<10) }, purgeLarge},
		{"prune/32768", func(b *testing.B, s *Store) {
			fillLarge(b, s, 0, 1<<15, 100)
			update(b, s, largeKey(0), purgeLarge)
		}, func(tx vault.Tx) error { return tx.Prune(largeKey(0), 10) }},
		{"drop/32MB", fillBatch, func(tx vault.Tx) error { return tx.DropBatch(largeBatch) }},
		{"end/32MB", fillBatch, func(tx vault.Tx) error {
			return tx.EndBatch(largeBatch, vault.BatchOutcome{End: vault.BatchAborted})
		}},
	} {
		b.Run(test.name, func(b *testing.B) {
			for range b.N {
				b.StopTimer()
				s := openQuiet(b, filepath.Join(b.TempDir(), "vault.db"))
				if test.before != nil {
					test.before(b, s)
				}
				awaitClean(b, s)
				s.cleaner.end() // here it is told when to begin
				watch := watchSaves(b, s)
				b.StartTimer()
				start, used := time.Now(), cpuTime(b)
				update(b, s, largeKey(0), test.remove)
				b.ReportMetric(float64((cpuTime(b)-used).Microseconds())/1000, "itself-cpu-ms")
				b.ReportMetric(float64(time.Since(start).Microseconds())/1000, "itself-ms")
				b.StopTimer()
				time.Sleep(time.Second / 2)
				longest, _ := watch()
				b.ReportMetric(float64(longest.Microseconds())/1000, "longest-ms")
				watch = watchSaves(b, s)
				start = time.Now()
				for range 20 {
					if done, err := s.cleaner.clean(b.Context()); err != nil {
						b.Fatal(err)
					} else if done {
						break
					}
				}
				b.ReportMetric(float64(time.Since(start).Microseconds())/1000, "cleanup-ms")
				longest, late := watch()
				b.ReportMetric(float64(longest.Microseconds())/1000, "cleanup-longest-ms")
				b.ReportMetric(float64(late), "cleanup-late")
				if err := s.Close(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

var largeBatch = vault.BatchKey{Account: "large@example.org", ID: "batch"}

func largeKey(i int) vault.Key {
	return vault.Key{Account: "large@example.org", Node: fmt.Sprint("large-", i)}
}

func purgeLarge(tx vault.Tx) error {
	_, err := tx.Purge(largeKey(0))
	return err
}

func openQuiet(b *testing.B, path string) *Store {
	b.Helper()
	s, err := Open(b.Context(), Options{Path: path, Logger: quiet()})
	if err != nil {
		b.Fatal(err)
	}
	return s
}

func update(b *testing.B, s *Store, key vault.Key, fn func(vault.Tx) error) {
	b.Helper()
	if err := s.Update(b.Context(), key, fn); err != nil {
		b.Fatal(err)
	}
}

// fillLarge makes a vault of n records with payloads of size bytes.
func fillLarge(b *testing.B, s *Store, i, n, size int) {
	b.Helper()
	key := largeKey(i)
	update(b, s, key, func(tx vault.Tx) error { _, err := tx.Create(key, vault.Config{}); return err })
	payload := vault.Payload{Form: vault.Native, Data: make([]byte, size)}
	for at := 0; at < n; at += 1 << 10 {
		update(b, s, key, func(tx vault.Tx) error {
			for i := at; i < min(at+1<<10, n); i++ {
				if _, err := tx.Put(key, vault.Record{ID: fmt.Sprint("record-", i), Payload: payload}); err != nil {
					return err
				}
			}
			return nil
		})
	}
}

// fillBatch stages 512 changes of 64 KiB.
func fillBatch(b *testing.B, s *Store) {
	b.Helper()
	fillLarge(b, s, 0, 1, 1)
	payload := vault.Payload{Form: vault.Native, Data: make([]byte, 64<<10)}
	update(b, s, largeKey(0), func(tx vault.Tx) error {
		if err := tx.BeginBatch(vault.Batch{BatchKey: largeBatch, Vault: largeKey(0), Expires: time.UnixMilli(1)}); err != nil {
			return err
		}
		for i := range 512 {
			if err := tx.Stage(largeBatch, vault.Staged{ID: fmt.Sprint(i)}, payload); err != nil {
				return err
			}
		}
		return nil
	})
}

// awaitClean returns when nothing of what was written is left to be done.
func awaitClean(b *testing.B, s *Store) {
	b.Helper()
	for {
		before := s.cleaner.cleaned.Load()
		time.Sleep(2 * restAfter)
		if s.cleaner.cleaned.Load() == before && len(s.cleaner.wake) == 0 {
			return
		}
	}
}

// watchSaves saves a record every 5 ms; the function that it returns ends that
// and tells the longest wait, and how many were above 50 ms.
func watchSaves(b *testing.B, s *Store) (end func() (longest time.Duration, late int)) {
	b.Helper()
	key := benchKey(0)
	update(b, s, key, func(tx vault.Tx) error {
		_, err := tx.Create(key, vault.Config{})
		if errors.Is(err, vault.ErrVaultExists) {
			return nil
		}
		return err
	})
	ctx, stop := context.WithCancel(b.Context())
	var longest time.Duration
	late := 0
	var busy sync.WaitGroup
	busy.Go(func() {
		due := time.Now()
		for n := 0; ctx.Err() == nil; n++ {
			time.Sleep(time.Until(due))
			err := s.Update(b.Context(), key, func(tx vault.Tx) error { _, err := tx.Put(key, sample(n%256)); return err })
			if err != nil {
				b.Error(err)
				return
			}
			waited := time.Since(due)
			longest = max(longest, waited)
			if waited > 50*time.Millisecond {
				late++
			}
			due = due.Add(5 * time.Millisecond)
		}
	})
	return func() (time.Duration, int) {
		stop()
		busy.Wait()
		return longest, late
	}
}
