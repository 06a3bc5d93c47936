package main

import (
	"context"
	"crypto/rand"
	"fmt"
	"os"
	"path/filepath"

	"pepvault/bench/servers"
	"pepvault/component/loopback"
	"pepvault/configs"
	"pepvault/pep/wire"
	"pepvault/vault/device/c2s"
)

// demoHost is the server that the demo attaches to.
type demoHost struct {
	name      string
	component string // host:port where the service attaches
	secret    string
	connect   func(ctx context.Context, resource string) (*demoDevice, error)
	stop      func() error
}

// startDemoHost starts the host of that kind, "" being whatever there is.
func startDemoHost(ctx context.Context, kind, dir, secret string) (*demoHost, error) {
	if kind == "" {
		kind = "embedded"
		if servers.ProsodyAvailable("") == nil {
			kind = "prosody"
		}
	}
	if kind == "prosody" {
		return startDemoProsody(ctx, filepath.Join(dir, "prosody"), secret)
	}
	return startDemoLoopback(secret)
}

func startDemoProsody(ctx context.Context, dir, secret string) (*demoHost, error) {
	if err := os.Mkdir(dir, 0o700); err != nil {
		return nil, err
	}
	password := rand.Text()
	server, err := servers.StartProsody(ctx, servers.Options{
		Dir:        dir,
		Domain:     demoDomain,
		Components: []servers.Component{{JID: demoService, Secret: secret}},
		Users:      []servers.User{{Name: "alice", Password: password}},
		Fragment:   configs.ProsodyFragment, Global: configs.ProsodyGlobal,
	})
	if err != nil {
		return nil, err
	}
	return &demoHost{
		name:      "a real Prosody on loopback, with TLS",
		component: server.Component(demoService),
		secret:    secret,
		connect: func(ctx context.Context, resource string) (*demoDevice, error) {
			d := &demoDevice{name: resource}
			// There is room for all that the demo sends.
			heard := make(chan []byte, 2*demoRecords)
			conn, err := c2s.Dial(ctx, c2s.Options{
				Server: server.Addr, JID: demoAccount, Resource: resource, Password: password, TLS: server.TLS(),
				Handle: func(s c2s.Stanza) bool {
					told := tells(s.Name, s.Type)
					if told {
						heard <- s.Raw
					}
					return told
				},
			})
			if err != nil {
				return nil, err
			}
			d.jid, d.send, d.close = conn.JID(), conn.Send, conn.Close
			d.iq = func(ctx context.Context, kind string, payload []byte) ([]byte, error) {
				answer, err := conn.IQ(ctx, kind, demoService, payload)
				return answer.Raw, err
			}
			d.next = func(ctx context.Context) ([]byte, error) {
				select {
				case raw := <-heard:
					return raw, nil
				case <-ctx.Done():
					return nil, ctx.Err()
				}
			}
			return d, nil
		},
		stop: func() error { server.Stop(); return nil },
	}, nil
}

func startDemoLoopback(secret string) (*demoHost, error) {
	host, err := loopback.Start(loopback.Options{Domain: demoDomain, Component: demoService, Secret: secret})
	if err != nil {
		return nil, err
	}
	return &demoHost{
		name:      "the embedded one (install the package prosody to see a real server)",
		component: host.Addr(),
		secret:    secret,
		connect: func(_ context.Context, resource string) (*demoDevice, error) {
			d := &demoDevice{name: resource}
			virtual, err := host.Connect(demoAccount + "/" + resource)
			if err != nil {
				return nil, err
			}
			d.jid = virtual.JID()
			d.send, d.close = virtual.Send, virtual.Close
			d.iq = func(ctx context.Context, kind string, payload []byte) ([]byte, error) {
				answer, err := virtual.IQ(ctx, kind, demoService, string(payload))
				return answer.Raw, err
			}
			d.next = func(ctx context.Context) ([]byte, error) {
				for {
					s, err := virtual.Recv(ctx)
					if err != nil || tells(s.Name, s.Type) {
						return s.Raw, err
					}
				}
			}
			return d, nil
		},
		stop: host.Close,
	}, nil
}

// demoDevice is a device of the demo's account, over whatever the host offers.
type demoDevice struct {
	name, jid string
	send      func(stanza []byte) error
	iq        func(ctx context.Context, kind string, payload []byte) (answer []byte, err error)
	next      func(ctx context.Context) ([]byte, error) // waits for the next message or chunk
	close     func() error
}

// tells reports whether a stanza is one that a device is told something by.
func tells(name, kind string) bool { return name == "message" || name == "iq" && kind == "set" }

func (d *demoDevice) presence() error {
	return d.send(wire.AppendPresence(nil, d.jid, demoService, ""))
}

func (d *demoDevice) ask(ctx context.Context, call wire.Call) (any, error) {
	kind, payload := wire.Ask(call)
	answer, err := d.iq(ctx, kind, payload)
	if err != nil {
		return nil, err
	}
	return wire.DecodeReply(answer, call)
}

// notification waits for the next change. What only says where the vault
// stands is passed over.
func (d *demoDevice) notification(ctx context.Context) (wire.Notification, error) {
	for {
		raw, err := d.next(ctx)
		if err != nil {
			return wire.Notification{}, fmt.Errorf("%s was told nothing: %w", d.name, err)
		}
		n, err := wire.DecodeMessage(raw)
		if err != nil || n.Deleted || len(n.Changes) > 0 {
			return n, err
		}
	}
}
