package echo

import (
	"fmt"
	"sync"
	"testing"

	"pepvault/component/loopback"
	"pepvault/pep"
	"pepvault/pep/wire"
	"pepvault/vault"
)

// BenchmarkEcho is the echo's own ceiling, on a host that costs little: one op
// is a request and its answer.
func BenchmarkEcho(b *testing.B) {
	for _, test := range []struct {
		name, payload string
		set           bool
	}{
		{"read", payload(pep.Items{Node: node, IDs: []string{"a"}}), false},
		{"save", payload(pep.Publish{Node: node, Items: []pep.Item{{ID: "a", Payload: vault.Payload{Form: vault.Native, Data: make([]byte, 924)}}}}), true},
		{"download", payload(pep.Items{Node: node}), false},
	} {
		b.Run(test.name, func(b *testing.B) {
			h := start(b, loopback.Options{Fast: true}, Options{})
			kind := "get"
			if test.set {
				kind = "set"
			}
			askAll(b, h, fmt.Sprintf("<iq type='%s' id='17' to='vault.localhost'>%s</iq>", kind, test.payload))
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "requests/s")
		})
	}
}

func payload(call wire.Call) string {
	_, payload := wire.Ask(call)
	return string(payload)
}

// askAll makes b.N requests from 64 devices, each with one under way.
func askAll(b *testing.B, h *loopback.Host, request string) {
	const devices = 64
	var wait sync.WaitGroup
	b.ResetTimer()
	for i := range min(devices, b.N) {
		left := (b.N + devices - 1 - i) / devices
		wait.Add(1)
		var stamped []byte
		d, err := h.ConnectFunc(fmt.Sprintf("user%d@localhost/r", i), func(d *loopback.Device, s loopback.Stanza) {
			if s.Type != "result" {
				b.Errorf("got %s", s)
			}
			if left--; left == 0 {
				wait.Done()
			} else if err := d.SendStamped(stamped); err != nil {
				b.Error(err)
				wait.Done()
			}
		})
		if err != nil {
			b.Fatal(err)
		}
		defer d.Close()
		if stamped, err = d.Stamp([]byte(request)); err != nil {
			b.Fatal(err)
		}
		if err := d.SendStamped(stamped); err != nil {
			b.Fatal(err)
		}
	}
	wait.Wait()
	b.StopTimer()
}
