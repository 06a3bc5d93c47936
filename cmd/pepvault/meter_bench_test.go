package main

import (
	"fmt"
	"log/slog"
	"slices"
	"syscall"
	"testing"
	"time"

	"pepvault/component"
	"pepvault/component/link"
	"pepvault/component/loopback"
	"pepvault/configs"
)

// BenchmarkMeter is what the figures cost: reads of one record by services with
// them and without, in turns. One op is 2,000 reads of each; what is compared is
// the CPU time of the process, as the median of the ops.
func BenchmarkMeter(b *testing.B) {
	const reads = 2000
	kinds := []string{"with", "without"}
	devices := make([]*loopback.Device, len(kinds))
	for i, kind := range kinds {
		devices[i] = connect(b, startMetered(b, kind == "with"), "alice", "phone")
		if err := do(b.Context(), devices[i], "set", second(saving("login-0"))); err != nil {
			b.Fatal(err)
		}
	}
	kind, payload := reading("login-0")
	used := make([][]time.Duration, len(kinds))
	for n := 0; b.Loop(); n++ {
		for i := range kinds {
			i = (i + n) % len(kinds)
			before := processTime(b)
			for range reads {
				if err := do(b.Context(), devices[i], kind, payload); err != nil {
					b.Fatal(err)
				}
			}
			used[i] = append(used[i], processTime(b)-before)
		}
	}
	median := make([]float64, len(kinds))
	for i, kind := range kinds {
		slices.Sort(used[i])
		median[i] = float64(used[i][len(used[i])/2].Nanoseconds()) / reads
		b.ReportMetric(median[i], "cpu-ns/read-"+kind)
	}
	b.ReportMetric(100*(median[0]/median[1]-1), "%-more")
}

// startMetered starts an embedded host with a service that counts, or not.
func startMetered(b *testing.B, counts bool) *loopback.Host {
	b.Helper()
	host, err := loopback.Start(loopback.Options{Fast: true})
	if err != nil {
		b.Fatal(err)
	}
	config, err := configs.Load(writeConfig(b, host), func(string) string { return "" })
	if err != nil {
		b.Fatal(err)
	}
	told := func(bool) {}
	s, err := newService(b.Context(), config, slog.New(slog.DiscardHandler), told)
	if err != nil {
		b.Fatal(err)
	}
	if !counts {
		options := s.frontOptions()
		options.Meter = nil
		s.front = component.New(options)
		if s.link, err = link.New(s.linkOptions(), watched{s.front, told}); err != nil {
			b.Fatal(err)
		}
	}
	runEmbedded(b, host, s)
	return host
}

// processTime is what this process has used of the CPUs.
func processTime(b *testing.B) time.Duration {
	b.Helper()
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		b.Fatal(fmt.Errorf("processor time: %w", err))
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}
