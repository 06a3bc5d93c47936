package component_test

import (
	"fmt"
	"strings"
	"testing"

	"pepvault/component/loopback"
	"pepvault/pep"
	"pepvault/pep/wire"
)

// BenchmarkDownload has one device after the other take a vault of 256 records,
// 350 KB, through the embedded host: in chunks of two sizes, page by page, and
// as one answer. One op is a vault.
func BenchmarkDownload(b *testing.B) {
	host, err := loopback.Start(loopback.Options{Fast: true})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { host.Close() })
	start(b, host, func(s *setup) { s.limits.Records, s.queue, s.chunk = 256, 16<<20, 64<<10 })
	if _, err := host.Attached(b.Context()); err != nil {
		b.Fatal(err)
	}
	d, err := host.Connect("alice@localhost/phone")
	if err != nil {
		b.Fatal(err)
	}
	for i := range 256 {
		if _, err := d.IQ(b.Context(), "set", "vault.localhost", publication("notes", fmt.Sprintf("record-%032d", i), native(strings.Repeat("x", 924)))); err != nil {
			b.Fatal(err)
		}
	}
	for _, kib := range []int{16, 32, 64} {
		b.Run(fmt.Sprintf("pushed=%dKiB", kib), func(b *testing.B) { benchPushed(b, d, kib<<10) })
	}
	b.Run("pulled=32KiB", func(b *testing.B) { benchPulled(b, d) })
	b.Run("plain", func(b *testing.B) {
		bytes := 0
		for b.Loop() {
			answer, err := d.IQ(b.Context(), "get", "vault.localhost", getNotes)
			if err != nil {
				b.Fatal(err)
			}
			bytes = len(answer.Raw)
		}
		b.SetBytes(int64(bytes))
	})
}

func benchPushed(b *testing.B, d *loopback.Device, size int) {
	b.ReportAllocs()
	bytes, chunks, n := 0, 0, 0
	for b.Loop() {
		bytes, chunks = 0, 0
		n++
		kind, payload := wire.Ask(pep.Download{ID: fmt.Sprint("d", n), Node: "notes", ChunkBytes: size})
		if answer, err := d.IQ(b.Context(), kind, "vault.localhost", string(payload)); err != nil || answer.Type != "result" {
			b.Fatal(answer, err)
		}
		for last := false; !last; chunks++ {
			s, err := d.Recv(b.Context())
			if err != nil {
				b.Fatal(err)
			}
			bytes += len(s.Raw)
			last = strings.Contains(string(s.Raw[:min(len(s.Raw), 600)]), "last='true'")
			if err := d.Reply(s, ""); err != nil {
				b.Fatal(err)
			}
		}
	}
	b.SetBytes(int64(bytes))
	b.ReportMetric(float64(chunks), "chunks/op")
}

func benchPulled(b *testing.B, d *loopback.Device) {
	b.ReportAllocs()
	bytes := 0
	for b.Loop() {
		bytes = 0
		op := pep.Sync{Node: "notes", Bytes: 32 << 10}
		for more := true; more; {
			kind, payload := wire.Ask(op)
			answer, err := d.IQ(b.Context(), kind, "vault.localhost", string(payload))
			if err != nil {
				b.Fatal(err)
			}
			bytes += len(answer.Raw)
			head := string(answer.Raw[:min(len(answer.Raw), 600)])
			more = strings.Contains(head, "more='true'")
			_, rest, _ := strings.Cut(head, "cursor='")
			op.Cursor, _, _ = strings.Cut(rest, "'")
		}
	}
	b.SetBytes(int64(bytes))
}
