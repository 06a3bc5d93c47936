package fleet_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"

	"pepvault/bench/fleet"
	"pepvault/bench/workload"
	"pepvault/vault/device/c2s"
)

// deaf is a Host that takes every request and answers none.
type deaf struct{}

func (deaf) Domain() string { return "localhost" }

func (deaf) Connect(context.Context, string, string, func(c2s.Stanza) bool) (fleet.Conn, error) {
	return deaf{}, nil
}

func (deaf) JID() string       { return "u0@localhost/d0" }
func (deaf) Send([]byte) error { return nil }
func (deaf) Close() error      { return nil }

func (deaf) IQ(ctx context.Context, _, _ string, _ []byte) (c2s.Stanza, error) {
	<-ctx.Done()
	return c2s.Stanza{}, ctx.Err()
}

// TestLostAnswerEndsTheSetUp holds that vaults are not set up for ever when an
// answer does not come, and that the end of the run is told as what it is.
func TestLostAnswerEndsTheSetUp(t *testing.T) {
	t.Parallel()
	for name, request := range map[string]func(*fleet.Device, context.Context) error{
		"make":   func(d *fleet.Device, ctx context.Context) error { return d.Prepare(ctx, 0) },
		"fill":   func(d *fleet.Device, ctx context.Context) error { return d.Fill(ctx, 0, 2) },
		"delete": func(d *fleet.Device, ctx context.Context) error { return d.Remove(ctx, 0) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				f := fleet.New(fleet.Options{
					Shape: workload.Shape{Seed: 1, Users: 1, Devices: 1, Records: 4, Bytes: workload.RecordBytes}, UserPrefix: "u",
					Host: deaf{}, Targets: []fleet.Target{{Name: "pep"}},
				})
				d := f.Device(0, 0)
				if err := d.Connect(t.Context()); err != nil {
					t.Fatal(err)
				}
				err := request(d, t.Context())
				if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "no answer within 2m0s") {
					t.Errorf("got %v, want that no answer came", err)
				}
				ended, cancel := context.WithCancel(t.Context())
				cancel()
				if err := request(d, ended); !errors.Is(err, context.Canceled) {
					t.Errorf("after the end of the run: %v, want %v", err, context.Canceled)
				}
			})
		})
	}
}
