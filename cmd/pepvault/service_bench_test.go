package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"pepvault/component/loopback"
	"pepvault/configs"
	"pepvault/pep"
	"pepvault/pep/wire"
)

// These benchmarks go the whole way: device, embedded host, component stream,
// engine, SQLite with synchronous=FULL, and back.

// writeConfig writes the configuration of a service of the host, which lets an
// account ask as fast as it can.
func writeConfig(tb testing.TB, host *loopback.Host) (file string) {
	tb.Helper()
	file = filepath.Join(tb.TempDir(), "pepvault.toml")
	text := fmt.Sprintf("[component]\njid = %q\nserver = %q\nsecret = %q\n[http]\nlisten = \"\"\n"+
		"[limits]\nrate_per_second = 100000\nrate_burst = 1000000\n",
		host.Component(), host.Addr(), host.Secret())
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		tb.Fatal(err)
	}
	return file
}

// startEmbedded runs a service on an embedded host, both in this process.
func startEmbedded(tb testing.TB) *loopback.Host {
	tb.Helper()
	host, _ := startService(tb, loopback.Options{Fast: true}, nil)
	return host
}

// startService is startEmbedded with a service that the test can look into;
// change, if given, may change its configuration.
func startService(tb testing.TB, options loopback.Options, change func(*configs.Config)) (*loopback.Host, *service) {
	tb.Helper()
	host, err := loopback.Start(options)
	if err != nil {
		tb.Fatal(err)
	}
	config, err := configs.Load(writeConfig(tb, host), func(string) string { return "" })
	if err != nil {
		tb.Fatal(err)
	}
	if change != nil {
		change(&config)
	}
	s, err := newService(tb.Context(), config, slog.New(slog.DiscardHandler), func(bool) {})
	if err != nil {
		tb.Fatal(err)
	}
	runEmbedded(tb, host, s)
	return host, s
}

// runEmbedded runs a service until the test ends, and then closes its host.
func runEmbedded(tb testing.TB, host *loopback.Host, s *service) {
	tb.Helper()
	ctx, stop := context.WithCancel(context.WithoutCancel(tb.Context()))
	ended := make(chan error, 1)
	go func() { ended <- s.run(ctx) }()
	tb.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			tb.Error(err)
		}
		if err := host.Close(); err != nil {
			tb.Error(err)
		}
	})
	if _, err := host.Attached(tb.Context()); err != nil {
		tb.Fatal(err)
	}
}

func connect(tb testing.TB, host *loopback.Host, account, resource string) *loopback.Device {
	tb.Helper()
	d, err := host.Connect(account + "@" + host.Domain() + "/" + resource)
	if err != nil {
		tb.Fatal(err)
	}
	return d
}

// do asks, and wants a result.
func do(ctx context.Context, d *loopback.Device, kind, payload string) error {
	answer, err := d.IQ(ctx, kind, d.Host().Component(), payload)
	if err != nil {
		return err
	}
	if answer.Type != "result" {
		return fmt.Errorf("refused: %w", answer.Err())
	}
	return nil
}

func saving(id string) (kind, payload string) {
	kind, raw := wire.Ask(demoPublish(id, 1, bytes.Repeat([]byte{7}, 924)))
	return kind, string(raw)
}

// benchmarkAccounts has 64 accounts ask, each one request after the other, of a
// vault with so many records.
func benchmarkAccounts(b *testing.B, records int, ask func() (kind, payload string)) {
	host := startEmbedded(b)
	devices := make([]*loopback.Device, 64)
	var filling sync.WaitGroup
	for i := range devices {
		devices[i] = connect(b, host, "user"+strconv.Itoa(i), "phone")
		filling.Go(func() {
			for r := range records {
				if err := do(b.Context(), devices[i], "set", second(saving("login-"+strconv.Itoa(r)))); err != nil {
					b.Error(err)
				}
			}
		})
	}
	filling.Wait()
	var left atomic.Int64
	left.Store(int64(b.N))
	b.ResetTimer()
	var group sync.WaitGroup
	for _, d := range devices {
		group.Go(func() {
			for left.Add(-1) >= 0 {
				kind, payload := ask()
				if err := do(b.Context(), d, kind, payload); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	group.Wait()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "ops/s")
}

func reading(id string) (kind, payload string) {
	kind, raw := wire.Ask(pep.Items{Node: demoNode, IDs: []string{id}})
	return kind, string(raw)
}

func second(_, s string) string { return s }

// BenchmarkServiceReadsOneRecord reads the same records again and again, as
// the devices of an account do after a change.
func BenchmarkServiceReadsOneRecord(b *testing.B) {
	benchmarkAccounts(b, 1, func() (string, string) { return reading("login-0") })
}

// BenchmarkServiceReadsAnyRecord reads records at random, of 16,384.
func BenchmarkServiceReadsAnyRecord(b *testing.B) {
	benchmarkAccounts(b, 256, func() (string, string) { return reading("login-" + strconv.Itoa(rand.IntN(256))) })
}

func BenchmarkServiceSaves(b *testing.B) {
	kind, payload := saving("login-0")
	benchmarkAccounts(b, 1, func() (string, string) { return kind, payload })
}

// BenchmarkServiceSavesAlone has one account save, and reports what that
// writes to the disk.
func BenchmarkServiceSavesAlone(b *testing.B) {
	host := startEmbedded(b)
	d := connect(b, host, "alice", "phone")
	for i := range 256 {
		if err := do(b.Context(), d, "set", second(saving("login-"+strconv.Itoa(i)))); err != nil {
			b.Fatal(err)
		}
	}
	before := writtenBytes(b, "self")
	b.ResetTimer()
	for i := range b.N {
		if err := do(b.Context(), d, "set", second(saving("login-"+strconv.Itoa(i%256)))); err != nil {
			b.Fatal(err)
		}
	}
	b.StopTimer()
	b.ReportMetric(float64(writtenBytes(b, "self")-before)/float64(b.N), "disk-B/save")
}

// writtenBytes is what the kernel has sent to the disk for a process.
func writtenBytes(tb testing.TB, pid string) int64 {
	return procNumber(tb, "/proc/"+pid+"/io", "write_bytes:")
}

func residentBytes(tb testing.TB, pid int) int64 {
	return procNumber(tb, "/proc/"+strconv.Itoa(pid)+"/status", "VmRSS:") << 10
}

func procNumber(tb testing.TB, file, field string) int64 {
	tb.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		tb.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if rest, found := strings.CutPrefix(line, field); found {
			n, err := strconv.ParseInt(strings.Fields(rest)[0], 10, 64)
			if err != nil {
				tb.Fatal(err)
			}
			return n
		}
	}
	tb.Fatalf("%s has no %s", file, field)
	return 0
}

// BenchmarkProcess starts the real binary: how long until it is attached, and
// how much memory it has with an empty store, and with 300 devices of 100
// accounts and 25,600 records.
func BenchmarkProcess(b *testing.B) {
	binary := filepath.Join(b.TempDir(), "pepvault")
	if out, err := exec.Command("go", "build", "-o", binary, ".").CombinedOutput(); err != nil {
		b.Fatalf("%v\n%s", err, out)
	}
	for b.Loop() {
		host, err := loopback.Start(loopback.Options{Fast: true})
		if err != nil {
			b.Fatal(err)
		}
		began := time.Now()
		serve := exec.Command(binary, "serve", "--config", writeConfig(b, host))
		serve.Stderr = io.Discard
		if err := serve.Start(); err != nil {
			b.Fatal(err)
		}
		if _, err := host.Attached(b.Context()); err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(float64(time.Since(began).Milliseconds()), "ms-to-attached")
		time.Sleep(time.Second) // idle
		b.ReportMetric(float64(residentBytes(b, serve.Process.Pid))/(1<<20), "MiB-empty")
		populate(b, host)
		b.ReportMetric(float64(residentBytes(b, serve.Process.Pid))/(1<<20), "MiB-full")
		if err := serve.Process.Signal(os.Interrupt); err != nil {
			b.Fatal(err)
		}
		if err := serve.Wait(); err != nil {
			b.Fatal(err)
		}
		if err := host.Close(); err != nil {
			b.Fatal(err)
		}
	}
}

// populate has 100 accounts save 256 records each, and three devices of each
// listen and read the whole vault.
func populate(b *testing.B, host *loopback.Host) {
	var group sync.WaitGroup
	for i := range 100 {
		group.Go(func() {
			account := "user" + strconv.Itoa(i)
			for j := range 3 {
				d := connect(b, host, account, "device"+strconv.Itoa(j))
				if j == 0 {
					for r := range 256 {
						if err := do(b.Context(), d, "set", second(saving("login-"+strconv.Itoa(r)))); err != nil {
							b.Error(err)
							return
						}
					}
				}
				if err := d.Send([]byte("<presence to='" + host.Component() + "'/>")); err != nil {
					b.Error(err)
				}
				for _, op := range []pep.Op{pep.Subscribe{Node: demoNode, JID: d.JID()}, pep.Items{Node: demoNode}} {
					kind, payload := wire.Ask(op)
					if err := do(b.Context(), d, kind, string(payload)); err != nil {
						b.Error(err)
						return
					}
				}
			}
		})
	}
	group.Wait()
}
