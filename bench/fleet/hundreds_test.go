package fleet_test

import (
	"context"
	"sync/atomic"
	"testing"

	"pepvault/bench/echo"
	"pepvault/bench/fleet"
	"pepvault/bench/workload"
	"pepvault/component/loopback"
)

// TestHundredsOfDevices has 900 devices of the embedded host load their vaults
// at once. What a connected one costs is bounded, and nothing of it is left
// when they have gone.
func TestHundredsOfDevices(t *testing.T) { // alone: it measures this process
	const users, devices, records = 300, 3, 16
	const secret = "secret"
	shape := workload.Shape{Seed: 5, Users: users, Devices: devices, Records: records, Bytes: workload.RecordBytes}
	host, err := loopback.Start(loopback.Options{Secret: secret, Fast: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { host.Close() })
	attached := make(chan struct{})
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		ended <- echo.Run(ctx, echo.Options{
			Server: host.Addr(), JID: host.Component(), Secret: []byte(secret), Records: records,
			Ready: func() { close(attached) },
		})
	}()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	<-attached
	f := fleet.New(fleet.Options{
		Shape: shape, Host: fleet.Embedded{Host: host}, UserPrefix: "u",
		Targets: []fleet.Target{{Name: "echo", JID: host.Component(), Echo: true}},
	})
	t.Cleanup(f.Close)
	before := usage()
	if err := f.Each(ctx, 64, func(ctx context.Context, d *fleet.Device) error { return d.Connect(ctx) }); err != nil {
		t.Fatal(err)
	}
	most := before.goroutines + users*devices/10
	connected := settled(most)
	var loaded atomic.Int64
	err = f.Each(ctx, users*devices, func(ctx context.Context, d *fleet.Device) error {
		if err := d.Announce(0); err != nil {
			return err
		}
		_, answer, err := d.Download(ctx, 0, fleet.Plain)
		loaded.Add(int64(answer.Records))
		return err
	})
	if err != nil || loaded.Load() != users*devices*records {
		t.Fatalf("%d records loaded, want %d: %v", loaded.Load(), users*devices*records, err)
	}
	after := settled(most)
	for name, now := range map[string]used{"connected": connected, "after a storm": after} {
		bytes := (int64(now.bytes) - int64(before.bytes)) / (users * devices)
		t.Logf("%s, a device costs %d bytes, and all together %d goroutines", name, bytes, now.goroutines-before.goroutines)
		if bytes > 16<<10 || now.goroutines > most {
			t.Errorf("%s, a device costs %d bytes, and all together %d goroutines", name, bytes, now.goroutines-before.goroutines)
		}
	}
}
