// Package fleet is devices by the hundred: each is a real client of its server
// (STARTTLS, SASL, a resource of its own) that saves records, reads them, loads
// whole vaults and is told of changes. What it gets it judges, byte by byte,
// against the workload that made it.
package fleet

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	"pepvault/bench/workload"
	"pepvault/pep/wire"
	"pepvault/vault/device/c2s"
)

// Node is the vault that every account of the fleet has.
const Node = "urn:pepvault:bench:0"

// capsNode names the software in XEP-0115.
const capsNode = "urn:pepvault:bench"

// ErrWrong says that a device was given something else than what was saved: the
// target's fault, whatever the answer looked like.
var ErrWrong = errors.New("wrong content")

// Conn is a device's connection to its server.
type Conn interface {
	JID() string
	// Send writes whole stanzas.
	Send(raw []byte) error
	// IQ asks and waits for the answer, of type result or error; to is "" for
	// the account itself.
	IQ(ctx context.Context, typ, to string, payload []byte) (c2s.Stanza, error)
	Close() error
}

// Host is a server that devices connect to.
type Host interface {
	// Domain is that of the accounts.
	Domain() string
	// Connect logs a user in; handle is as of c2s.Options.
	Connect(ctx context.Context, user, resource string, handle func(c2s.Stanza) bool) (Conn, error)
}

// Target is one of the services that a fleet can use.
type Target struct {
	Name string
	// JID is that of a component; "" is the server's own PEP.
	JID string
	// Echo says that it is a component without a store: what it brings is not
	// judged, and nobody waits for its notifications.
	Echo bool
}

// PEP reports whether the target is the server's own.
func (t Target) PEP() bool { return t.JID == "" }

// Heard is a notification of one saved record.
type Heard struct {
	Target       int // place among the fleet's targets
	User, Device int
	Content      workload.Content
	Err          error // ErrWrong: it was no record of the workload, or somebody else's
}

// Options say who is in a fleet.
type Options struct {
	Shape      workload.Shape
	Host       Host
	Targets    []Target
	UserPrefix string // a user is called by it and a number
	FirstUser  int    // the number of user 0
	// Hear is told of each saved record that a device is notified of. It is
	// called by many goroutines and must not block.
	Hear func(Heard)
}

// Fleet is all devices of a workload, none of them connected at first. Those of
// its methods that take a device may be called by many goroutines at once.
type Fleet struct {
	options Options
	info    wire.Info
	caps    []byte // what announces it in presence
	devices [][]*Device
}

// New makes the devices of a shape that has been checked.
func New(options Options) *Fleet {
	f := &Fleet{options: options, info: wire.Info{
		Identities: []wire.Identity{{Category: "client", Type: "pc", Name: "pepvault-bench"}},
		Features:   []string{nsCaps, nsDiscoInfo, nsSync, Node + "+notify"},
	}}
	f.caps = wire.AppendCaps(nil, capsNode, f.info)
	f.devices = make([][]*Device, options.Shape.Users)
	for user := range f.devices {
		f.devices[user] = make([]*Device, options.Shape.Devices)
		for number := range f.devices[user] {
			f.devices[user][number] = &Device{
				fleet: f, User: user, Number: number,
				joined: make([]chan struct{}, len(options.Targets)), held: make([]held, len(options.Targets)),
				pushing: make(chan struct{}, 1),
			}
		}
	}
	return f
}

// presence is what announces a device: to the server, if to is "".
func (f *Fleet) presence(to string) []byte {
	presence := []byte("<presence")
	if to != "" {
		presence = append(append(append(presence, " to='"...), to...), '\'')
	}
	return append(append(append(presence, '>'), f.caps...), "</presence>"...)
}

// Device returns one device of a user.
func (f *Fleet) Device(user, number int) *Device { return f.devices[user][number] }

// UserName is the local part of a user's JID.
func (f *Fleet) UserName(user int) string {
	return UserName(f.options.UserPrefix, f.options.FirstUser+user)
}

// UserName is the local part of the JID of the user with that number.
func UserName(prefix string, number int) string { return fmt.Sprintf("%s%d", prefix, number) }

// Each runs do for every device, at most width of them at a time, and returns
// the first error; then no further ones are begun.
func (f *Fleet) Each(ctx context.Context, width int, do func(context.Context, *Device) error) error {
	var all []*Device
	for number := range f.options.Shape.Devices { // a user's devices not at once
		for user := range f.devices {
			all = append(all, f.devices[user][number])
		}
	}
	return eachOf(ctx, width, all, do)
}

// EachUser is Each for the first device of every user.
func (f *Fleet) EachUser(ctx context.Context, width int, do func(context.Context, *Device) error) error {
	var all []*Device
	for user := range f.devices {
		all = append(all, f.devices[user][0])
	}
	return eachOf(ctx, width, all, do)
}

// EachFrom is Each for the first so many devices of the users from first to below
// end.
func (f *Fleet) EachFrom(ctx context.Context, width, first, end, devices int, do func(context.Context, *Device) error) error {
	var all []*Device
	for number := range devices {
		for user := first; user < end; user++ {
			all = append(all, f.devices[user][number])
		}
	}
	return eachOf(ctx, width, all, do)
}

func eachOf(ctx context.Context, width int, all []*Device, do func(context.Context, *Device) error) error {
	return each(ctx, width, all, func(ctx context.Context, d *Device) error {
		if err := do(ctx, d); err != nil {
			return fmt.Errorf("device %d of %s: %w", d.Number, d.fleet.UserName(d.User), err)
		}
		return nil
	})
}

func each[T any](ctx context.Context, width int, all []T, do func(context.Context, T) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	next := make(chan T)
	var workers sync.WaitGroup
	for range min(width, len(all)) {
		workers.Go(func() {
			for one := range next {
				if err := do(ctx, one); err != nil {
					cancel(err)
				}
			}
		})
	}
	for _, one := range all {
		if ctx.Err() != nil {
			break
		}
		next <- one
	}
	close(next)
	workers.Wait()
	return context.Cause(ctx)
}

// Close disconnects all devices.
func (f *Fleet) Close() {
	// Nothing can fail that matters now.
	_ = f.Each(context.Background(), 64, func(_ context.Context, d *Device) error {
		d.Leave()
		return nil
	})
}

// target finds who sent a stanza to a device.
func (f *Fleet) target(from, account string) (int, bool) {
	from, _, _ = strings.Cut(from, "/")
	for i, t := range f.options.Targets {
		if t.JID == from && from != "" || t.PEP() && (from == "" || strings.EqualFold(from, account)) {
			return i, true
		}
	}
	return 0, false
}
