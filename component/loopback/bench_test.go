package loopback

import (
	"context"
	"fmt"
	"net"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// BenchmarkRoute measures the host alone: devices ask without pause and a
// trivial component answers each request with 1.5 KB. One op is a request and
// its answer, so two routed stanzas.
func BenchmarkRoute(b *testing.B) {
	payload := "<a xmlns='b'>" + strings.Repeat("x", 1500) + "</a>"
	for _, fast := range []bool{true, false} {
		b.Run(fmt.Sprintf("fast=%t", fast), func(b *testing.B) {
			h := start(b, Options{Fast: fast})
			go quickEcho(b, h, payload)
			if _, err := h.Attached(deadline(b)); err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			b.ResetTimer()
			ask(b, h, 64)
			b.StopTimer()
			// Each request reached the component and each answer its device.
			if got := h.Stats(); got.ToComponent != int64(b.N) || got.FromComponent != int64(b.N) || got.Vanished+got.Bounced != 0 {
				b.Fatalf("got %+v, want %d each way", got, b.N)
			}
			b.ReportMetric(2*float64(b.N)/b.Elapsed().Seconds(), "stanzas/s")
		})
	}
}

// ask makes b.N requests from that many devices, each with one under way. They
// use the calls for benchmarks: a stamped stanza, and a function that receives.
func ask(b *testing.B, h *Host, devices int) {
	ctx, cancel := context.WithTimeout(b.Context(), 5*time.Minute)
	defer cancel()
	var wait sync.WaitGroup
	for i := range devices {
		left := b.N / devices
		if i < b.N%devices {
			left++
		}
		if left == 0 {
			continue
		}
		wait.Add(1)
		var request []byte
		d, err := h.ConnectFunc(fmt.Sprintf("user%d@localhost/r", i), func(d *Device, s Stanza) {
			if s.ID != "17" || len(s.Raw) < 1500 {
				b.Errorf("got %s", s)
			}
			left--
			if left == 0 {
				wait.Done()
				return
			}
			if err := d.SendStamped(request); err != nil {
				b.Error(err)
				wait.Done()
			}
		})
		if err != nil {
			b.Fatal(err)
		}
		defer d.Close()
		if request, err = d.Stamp([]byte("<iq type='get' id='17' to='vault.localhost'><a xmlns='b' c='d'/></iq>")); err != nil {
			b.Fatal(err)
		}
		if err := d.SendStamped(request); err != nil {
			b.Fatal(err)
		}
	}
	done := make(chan struct{})
	go func() { wait.Wait(); close(done) }()
	select {
	case <-done:
	case <-ctx.Done():
		b.Fatal(ctx.Err())
	}
}

// quickEcho is a component that costs little: it uses the host's own cutter.
func quickEcho(b *testing.B, h *Host, payload string) {
	conn, err := net.Dial("tcp", h.Addr())
	if err != nil {
		b.Error(err)
		return
	}
	defer conn.Close()
	fmt.Fprintf(conn, "<stream:stream xmlns='jabber:component:accept' xmlns:stream='http://etherx.jabber.org/streams' to='%s'>", h.Component())
	cut := cutter{limit: 1 << 20}
	var t tag
	var out []byte
	for {
		n, err := conn.Read(cut.space())
		if err != nil {
			return
		}
		cut.added(n)
		out = out[:0]
		for {
			kind, raw, err := cut.next()
			if err != nil {
				b.Error(err)
				return
			}
			if kind == unitNone {
				break
			}
			if t.parse(raw) != nil {
				continue
			}
			switch {
			case kind == unitOpen:
				out = append(out, "<handshake>"+digest(t.text("id"), h.Secret())+"</handshake>"...)
			case string(t.name) == "iq":
				out = append(append(out, "<iq type='result' from='vault.localhost' id='"...), t.value("id")...)
				out = append(append(append(out, "' to='"...), t.value("from")...), "'>"...)
				out = append(append(out, payload...), "</iq>"...)
			}
		}
		if _, err := conn.Write(out); err != nil {
			return
		}
	}
}

// BenchmarkSend measures what a device's stanza costs the host.
func BenchmarkSend(b *testing.B) {
	for _, fast := range []bool{true, false} {
		b.Run("fast="+strconv.FormatBool(fast), func(b *testing.B) {
			h := start(b, Options{Fast: fast})
			d := connect(b, h, "alice@localhost/phone")
			raw := []byte("<iq type='get' id='17' to='vault.localhost'><pubsub xmlns='http://jabber.org/protocol/pubsub'><items node='notes'><item id='a'/></items></pubsub></iq>")
			b.ReportAllocs()
			for b.Loop() {
				if _, err := d.Stamp(raw); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
