package fleet_test

import (
	"context"
	"errors"
	"os"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"pepvault/bench/fleet"
	"pepvault/bench/servers"
	"pepvault/bench/workload"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestFleetOnProsody connects devices, and has PEP tell each of them of a
// save once.
func TestFleetOnProsody(t *testing.T) { // alone: it measures this process
	const users, devices = 20, 3
	shape := workload.Shape{Seed: 3, Users: users, Devices: devices, Records: 2, Bytes: workload.RecordBytes}
	f, heard := startFleet(t, shape)
	ctx := t.Context()
	before := usage()
	if err := f.Each(ctx, 8, func(ctx context.Context, d *fleet.Device) error { return d.Connect(ctx) }); err != nil {
		t.Fatal(err)
	}
	// The host is another process, so what grew is the devices'.
	const most = users * devices * 12 / 10
	after := settled(before.goroutines + most)
	bytes := (int64(after.bytes) - int64(before.bytes)) / (users * devices)
	goroutines := float64(after.goroutines-before.goroutines) / (users * devices)
	t.Logf("a device costs %d bytes and %.1f goroutines", bytes, goroutines)
	if bytes > 128<<10 || after.goroutines > before.goroutines+most {
		t.Errorf("a device costs %d bytes and %.1f goroutines: a thousand would be too dear", bytes, goroutines)
	}
	d := f.Device(0, 0)
	for _, step := range []func() error{
		func() error { return d.Prepare(ctx, 0) },
		func() error { return d.Fill(ctx, 0, 2) },
		func() error { return d.Announce(0) },
		func() error { return d.Listening(ctx) },
		func() error { _, err := d.Save(ctx, 0, 1, 7); return err },
	} {
		if err := step(); err != nil {
			t.Fatal(err)
		}
	}
	if h := <-heard; h.Err != nil || h.User != 0 || h.Device != 0 || h.Content.Version != 7 {
		t.Errorf("heard %+v", h)
	}
	versions, _, err := d.Download(ctx, 0, fleet.Plain)
	if err != nil || len(versions) != 2 || versions[0] != 0 || versions[1] != 7 {
		t.Errorf("downloaded %v, %v", versions, err)
	}
	f.Close()
	if _, err := d.Save(ctx, 0, 1, 8); err == nil {
		t.Error("a device that left saves")
	}
}

type used struct {
	bytes      uint64
	goroutines int
}

func usage() used {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return used{m.HeapInuse + m.StackInuse, runtime.NumGoroutine()}
}

// settled is the usage as soon as no more than so many goroutines run: those
// that have made something end a moment later.
func settled(goroutines int) used {
	for limit := time.Now().Add(time.Minute); runtime.NumGoroutine() > goroutines && time.Now().Before(limit); {
		runtime.Gosched()
	}
	return usage()
}

// startFleet makes a fleet for a Prosody of its own; what it hears beyond what
// was there at the beginning comes from the channel.
func startFleet(t *testing.T, shape workload.Shape) (*fleet.Fleet, <-chan fleet.Heard) {
	t.Helper()
	fragment, err := os.ReadFile("../../configs/prosody.cfg.lua")
	if err != nil {
		t.Fatal(err)
	}
	o := servers.Options{Dir: t.TempDir(), Fragment: string(fragment)}
	for n := range shape.Users {
		o.Users = append(o.Users, servers.User{Name: fleet.UserName("u", n), Password: "pass"})
	}
	server, err := servers.StartProsody(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Stop)
	heard := make(chan fleet.Heard, 16)
	f := fleet.New(fleet.Options{
		Shape: shape, UserPrefix: "u", Targets: []fleet.Target{{Name: "pep"}},
		Host: fleet.Server{Addr: server.Addr, Name: server.Domain, Password: "pass", TLS: server.TLS()},
		Hear: func(h fleet.Heard) {
			if h.Content.Version > 0 || h.Err != nil {
				heard <- h
			}
		},
	})
	t.Cleanup(f.Close)
	return f, heard
}

func TestEachStopsAtAnError(t *testing.T) {
	t.Parallel()
	f := fleet.New(fleet.Options{
		Shape: workload.Shape{Users: 50, Devices: 1, Records: 1, Bytes: 16}, Host: fleet.Server{Name: "localhost"},
		Targets: []fleet.Target{{Name: "pep"}}, UserPrefix: "u",
	})
	broken := errors.New("broken")
	var count atomic.Int32
	err := f.Each(t.Context(), 1, func(_ context.Context, d *fleet.Device) error {
		count.Add(1)
		if d.User == 3 {
			return broken
		}
		return nil
	})
	if !errors.Is(err, broken) || count.Load() > 6 {
		t.Errorf("got %v after %d devices", err, count.Load())
	}
}
