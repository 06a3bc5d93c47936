package sqlite

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"pepvault/vault"
)

func benchKey(account int) vault.Key {
	return vault.Key{Account: vault.Account(fmt.Sprintf("u%d@example.org", account)), Node: "notes"}
}

// benchStore has accounts with one vault of n records each.
func benchStore(b *testing.B, accounts, n int) *Store {
	b.Helper()
	s, err := Open(b.Context(), Options{Path: filepath.Join(b.TempDir(), "vault.db"), Logger: quiet()})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { s.Close() })
	for account := range accounts {
		key := benchKey(account)
		err := s.Update(b.Context(), key, func(tx vault.Tx) error {
			if _, err := tx.Create(key, vault.Config{}); err != nil {
				return err
			}
			for i := range n {
				if _, err := tx.Put(key, sample(i)); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			b.Fatal(err)
		}
	}
	return s
}

// written is what this process has had written to disk.
func written(b *testing.B) (n int64) {
	b.Helper()
	text, err := os.ReadFile("/proc/self/io")
	if err != nil {
		b.Fatal(err)
	}
	_, after, _ := strings.Cut(string(text), "write_bytes: ")
	if _, err := fmt.Sscan(after, &n); err != nil {
		b.Fatal(err)
	}
	return n
}

// cpu starts to count processor time and returns what reports it. On a shared
// machine it says more than the clock.
func cpu(b *testing.B) (report func()) {
	b.Helper()
	before := cpuTime(b)
	return func() { b.ReportMetric(float64((cpuTime(b)-before).Microseconds())/float64(b.N), "cpu-µs/op") }
}

// cpuTime is what this process has used.
func cpuTime(b *testing.B) time.Duration {
	b.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// BenchmarkSave saves records, every third of them new, from many accounts at
// once. B/save is what reached the disk, with the checkpoint at the end.
func BenchmarkSave(b *testing.B) {
	for _, callers := range []int{1, 8, 64} {
		b.Run(fmt.Sprintf("accounts=%d", callers), func(b *testing.B) {
			s := benchStore(b, callers, 256)
			if err := s.checkpoint(); err != nil {
				b.Fatal(err)
			}
			before, commits := written(b), s.seq
			var next atomic.Int64
			done := make(chan error, callers)
			report := cpu(b)
			b.ResetTimer()
			for account := range callers {
				go func() {
					for {
						n := int(next.Add(1))
						if n > b.N {
							done <- nil
							return
						}
						record := sample(n % 256)
						if n%3 == 0 {
							record.ID = fmt.Sprint("new-", n)
						}
						key := benchKey(account)
						err := s.Update(b.Context(), key, func(tx vault.Tx) error {
							_, err := tx.Put(key, record)
							return err
						})
						if err != nil {
							done <- err
							return
						}
					}
				}()
			}
			for range callers {
				if err := <-done; err != nil {
					b.Fatal(err)
				}
			}
			b.StopTimer()
			report()
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "saves/s")
			b.ReportMetric(float64(b.N)/float64(s.seq-commits), "saves/commit")
			if err := s.checkpoint(); err != nil {
				b.Fatal(err)
			}
			b.ReportMetric(float64(written(b)-before)/float64(b.N), "B/save")
		})
	}
}

// BenchmarkReadOne reads one record of one of 100 vaults: 36 MB, more than the
// connections cache.
func BenchmarkReadOne(b *testing.B) {
	s := benchStore(b, 100, 256)
	read := func(b *testing.B, way func(context.Context, func(vault.View) error) error, n int) {
		key, ids := benchKey(n%100), []string{fmt.Sprintf("record-%d", n*7%256)}
		err := way(b.Context(), func(v vault.View) error {
			records, err := v.Records(key, ids)
			if err == nil && len(records) != 1 {
				b.Error("no record")
			}
			return err
		})
		if err != nil {
			b.Error(err)
		}
	}
	for name, way := range map[string]func(context.Context, func(vault.View) error) error{"View": s.View, "Glance": s.Glance} {
		b.Run(name+"/alone", func(b *testing.B) {
			report := cpu(b)
			for n := range b.N {
				read(b, way, n)
			}
			report()
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "reads/s")
		})
		b.Run(name+"/parallel", func(b *testing.B) {
			report := cpu(b)
			var next atomic.Int64
			b.RunParallel(func(p *testing.PB) {
				for p.Next() {
					read(b, way, int(next.Add(1)))
				}
			})
			report()
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "reads/s")
		})
	}
}

// BenchmarkReadVault reads a vault of 256 records whole and in pages: as they were
// made, and with an order of change that has nothing to do with that of the rows,
// as saves leave it.
func BenchmarkReadVault(b *testing.B) {
	const records = 256
	for _, mixed := range []bool{false, true} {
		s := benchStore(b, 10, records)
		if mixed {
			for n := range 10 {
				overwriteMixed(b, s, benchKey(n), records)
			}
		}
		for _, size := range []int{records, 32} {
			b.Run(fmt.Sprintf("mixed=%t/page=%d", mixed, size), func(b *testing.B) {
				report := cpu(b)
				for n := range b.N {
					readPages(b, s, benchKey(n%10), records, size)
				}
				report()
			})
		}
	}
}

// overwriteMixed saves each record again, in an order by chance that is always the
// same.
func overwriteMixed(b *testing.B, s *Store, key vault.Key, records int) {
	b.Helper()
	err := s.Update(b.Context(), key, func(tx vault.Tx) error {
		for _, i := range rand.New(rand.NewPCG(1, 2)).Perm(records) {
			if _, err := tx.Put(key, sample(i)); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		b.Fatal(err)
	}
}

// readPages reads a vault in pages of so many records.
func readPages(b *testing.B, s *Store, key vault.Key, records, size int) {
	b.Helper()
	var after vault.Revision
	for left := records; left > 0; {
		err := s.View(b.Context(), func(v vault.View) error {
			page, err := v.Changes(key, after, vault.PageLimit{Records: size, Cost: 1 << 30})
			if err != nil || len(page.Changes) == 0 {
				return fmt.Errorf("%d are missing: %w", left, err)
			}
			left -= len(page.Changes)
			after = page.Changes[len(page.Changes)-1].Revision
			return nil
		})
		if err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkLoadIndex builds the index of a vault of 256 records.
func BenchmarkLoadIndex(b *testing.B) {
	s := benchStore(b, 1, 256)
	for b.Loop() {
		s.vaults.drop(benchKey(0), s.seq)
		err := s.View(b.Context(), func(v vault.View) error { _, err := v.Vault(benchKey(0)); return err })
		if err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkOpen makes an empty store, and opens it again.
func BenchmarkOpen(b *testing.B) {
	open := func(path string) {
		s, err := Open(b.Context(), Options{Path: path, Logger: quiet()})
		if err != nil {
			b.Fatal(err)
		}
		if err := s.Close(); err != nil {
			b.Fatal(err)
		}
	}
	dir := b.TempDir()
	b.Run("new", func(b *testing.B) {
		for n := range b.N {
			open(filepath.Join(dir, fmt.Sprint(b.N, "-", n)))
		}
	})
	b.Run("again", func(b *testing.B) {
		for range b.N {
			open(filepath.Join(dir, "again"))
		}
	})
}
