package main

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"pepvault/bench/servers"
	"pepvault/configs"
	"pepvault/pep"
	"pepvault/pep/wire"
	"pepvault/vault"
	"pepvault/vault/device/c2s"
)

// These benchmarks go through a real Prosody: devices over TLS, a service in
// this process.
const (
	stormDevices = 30
	stormRecords = 256
	stormPage    = 64
	stormSecret  = "secret"
)

// storm is the devices and the services that are compared, each with another
// window and a vault of each account.
type storm struct {
	server  *servers.Server
	devices []*c2s.Conn // the last one reads single records
	rigs    []*stormRig
}

type stormRig struct {
	name, jid string
	more      string // of the configuration
	took      map[string][]time.Duration
	lasted    map[string]time.Duration
}

func startStorm(b *testing.B, rigs []*stormRig) *storm {
	b.Helper()
	fragment, err := os.ReadFile("../../configs/prosody.cfg.lua")
	if err != nil {
		b.Fatal(err)
	}
	o := servers.Options{Dir: b.TempDir(), Fragment: string(fragment), Global: "network_settings = { nagle = false }", Logger: slog.New(slog.DiscardHandler)}
	for _, r := range rigs {
		r.took, r.lasted = map[string][]time.Duration{}, map[string]time.Duration{}
		o.Components = append(o.Components, servers.Component{JID: r.jid, Secret: stormSecret})
	}
	for i := range stormDevices + 1 {
		o.Users = append(o.Users, servers.User{Name: "user" + strconv.Itoa(i), Password: stormSecret})
	}
	s := &storm{rigs: rigs}
	if s.server, err = servers.StartProsody(b.Context(), o); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(s.server.Stop)
	for _, r := range rigs {
		s.serve(b, r)
	}
	for _, u := range o.Users {
		conn, err := c2s.Dial(b.Context(), c2s.Options{
			Server: s.server.Addr, JID: u.Name + "@" + s.server.Domain, Resource: "phone", Password: u.Password, TLS: s.server.TLS(),
		})
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(conn.Cut)
		s.devices = append(s.devices, conn)
	}
	for _, r := range rigs {
		s.fill(b, r)
	}
	return s
}

// serve runs a service of a rig.
func (s *storm) serve(b *testing.B, r *stormRig) {
	file := filepath.Join(b.TempDir(), "pepvault.toml")
	text := fmt.Sprintf("[component]\njid = %q\nserver = %q\nsecret = %q\n[http]\nlisten = \"\"\n%s", r.jid, s.server.Component(r.jid), stormSecret, r.more)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		b.Fatal(err)
	}
	config, err := configs.Load(file, func(string) string { return "" })
	if err != nil {
		b.Fatal(err)
	}
	attached := make(chan bool, 16)
	service, err := newService(b.Context(), config, slog.New(slog.DiscardHandler), func(up bool) { attached <- up })
	if err != nil {
		b.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.WithoutCancel(b.Context()))
	ended := make(chan error, 1)
	go func() { ended <- service.run(ctx) }()
	b.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			b.Error(err)
		}
	})
	if !<-attached {
		b.Fatalf("%s is not attached", r.jid)
	}
}

// fill gives each account a vault.
func (s *storm) fill(b *testing.B, r *stormRig) {
	for _, d := range s.devices {
		for first := 0; first < stormRecords; first += stormPage {
			publish := pep.Publish{Node: demoNode}
			for i := range stormPage {
				publish.Items = append(publish.Items, pep.Item{
					ID: "login-" + strconv.Itoa(first+i), KeyVersion: 1,
					Payload: vault.Payload{Form: vault.Native, Data: bytes.Repeat([]byte{byte(i)}, 924)},
				})
			}
			if _, err := s.ask(b.Context(), d, r, publish); err != nil {
				b.Fatal(err)
			}
		}
	}
}

func (s *storm) ask(ctx context.Context, d *c2s.Conn, r *stormRig, op pep.Op) (answer []byte, err error) {
	kind, payload := wire.Ask(op)
	stanza, err := d.IQ(ctx, kind, r.jid, payload)
	if err == nil && stanza.Type != "result" {
		err = fmt.Errorf("refused: %.500s", stanza.Raw)
	}
	return stanza.Raw, err
}

// download has a device read its vault, in one stanza or in pages.
func (s *storm) download(ctx context.Context, d *c2s.Conn, r *stormRig, paged bool) error {
	records := 0
	op := pep.Items{Node: demoNode}
	for records < stormRecords {
		if paged {
			op.Page = &pep.PageRequest{Max: stormPage}
			op.Page.Index = &records
		}
		answer, err := s.ask(ctx, d, r, op)
		if err != nil {
			return err
		}
		n := bytes.Count(answer, []byte("<record "))
		if n == 0 {
			return fmt.Errorf("no records in %.500s", answer)
		}
		records += n
	}
	return nil
}

// run has all devices download at once, while one reads a record every 10 ms.
func (s *storm) run(b *testing.B, r *stormRig, how string) {
	ctx := b.Context()
	done := make(chan struct{})
	began := time.Now()
	var devices sync.WaitGroup
	for _, d := range s.devices[:stormDevices] {
		devices.Go(func() {
			if err := s.download(ctx, d, r, how == "paged"); err != nil {
				b.Error(err)
			}
		})
	}
	go func() {
		devices.Wait()
		close(done)
	}()
	var mu sync.Mutex
	var probes sync.WaitGroup
	for at, over := began, false; !over; at = at.Add(10 * time.Millisecond) {
		select {
		case <-done:
			over = true
			continue
		case <-time.After(time.Until(at)):
		}
		probes.Go(func() {
			_, err := s.ask(ctx, s.devices[stormDevices], r, pep.Items{Node: demoNode, IDs: []string{"login-7"}})
			took := time.Since(at)
			mu.Lock()
			defer mu.Unlock()
			if r.took[how] = append(r.took[how], took); err != nil {
				b.Error(err)
			}
		})
	}
	r.lasted[how] += time.Since(began)
	probes.Wait()
}

// BenchmarkProsodyStorm: how long the reads of one device take while 30 others
// download a vault of 256 records each, with several windows in turn. One op is
// one storm of each kind with each window.
func BenchmarkProsodyStorm(b *testing.B) {
	s := startStorm(b, []*stormRig{
		{name: "64KiB", jid: "small.localhost", more: "[stream]\nhost_window_bytes = 65536\n"},
		{name: "256KiB", jid: "middle.localhost", more: "[stream]\nhost_window_bytes = 262144\n"},
		{name: "4MiB", jid: "large.localhost", more: "[stream]\nhost_window_bytes = 4194304\n"},
	})
	kinds := []string{"plain", "paged"}
	b.ResetTimer()
	for range b.N {
		for _, how := range kinds {
			for _, r := range s.rigs {
				s.run(b, r, how)
			}
		}
	}
	b.StopTimer()
	for _, how := range kinds {
		for _, r := range s.rigs {
			took := slices.Sorted(slices.Values(r.took[how]))
			var line []string
			for _, q := range []float64{0.5, 0.95, 1} {
				line = append(line, took[int(q*float64(len(took)-1))].Round(time.Millisecond).String())
			}
			b.Logf("%s, window %s: reads p50 / p95 / max %s of %d; a storm took %v",
				how, r.name, strings.Join(line, " / "), len(took), (r.lasted[how] / time.Duration(b.N)).Round(time.Millisecond))
		}
	}
}
