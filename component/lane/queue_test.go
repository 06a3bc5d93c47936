package lane

import (
	"bytes"
	"io"
	"net"
	"testing"

	"pgregory.net/rapid"
)

func tcpPair(t *testing.T) (ours, host net.Conn) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	ours, err = net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	host, err = l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	return ours, host
}

// TestQueue holds the queue against a slice.
func TestQueue(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var q queue[int]
		var model []int
		t.Repeat(map[string]func(*rapid.T){
			"push": func(t *rapid.T) {
				for range rapid.IntRange(1, 40).Draw(t, "n") {
					v := rapid.Int().Draw(t, "v")
					q.push(v)
					model = append(model, v)
				}
			},
			"pushFront": func(t *rapid.T) {
				v := rapid.Int().Draw(t, "v")
				q.pushFront(v)
				model = append([]int{v}, model...)
			},
			"pop": func(t *rapid.T) {
				for range rapid.IntRange(1, 40).Draw(t, "n") {
					v, ok := q.pop()
					if ok != (len(model) > 0) || ok && v != model[0] {
						t.Fatalf("got %d, %v; want the front of %v", v, ok, model)
					}
					if ok {
						model = model[1:]
					}
				}
			},
			"": func(t *rapid.T) {
				if q.len() != len(model) || q.len() > 0 && q.front() != model[0] {
					t.Fatalf("got %d, want %v", q.len(), model)
				}
			},
		})
	})
}

// BenchmarkWriter: 1.5 KB answers from two goroutines over a real socket.
func BenchmarkWriter(b *testing.B) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	read := make(chan int64, 1)
	go func() {
		host, err := l.Accept()
		if err != nil {
			b.Error(err)
			return
		}
		n, _ := io.CopyBuffer(struct{ io.Writer }{io.Discard}, host, make([]byte, 64<<10))
		read <- n
	}()
	conn, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		b.Fatal(err)
	}
	w := New(Options{})
	served := make(chan error, 1)
	go func() { served <- w.Serve(b.Context(), conn); _ = conn.Close() }()
	stanza := bytes.Repeat([]byte("x"), 1500)
	b.SetBytes(int64(len(stanza)))
	b.ReportAllocs()
	b.ResetTimer()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			for {
				if place, ok := w.Reserve(SmallAnswer); ok {
					place.Small(stanza)
					break
				}
				_ = w.Room(b.Context())
			}
		}
	})
	if err := w.Drain(b.Context()); err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "stanzas/s")
	b.StopTimer()
	if err := <-served; err != nil {
		b.Error(err)
	}
	if n := <-read; n < int64(b.N*len(stanza)) {
		b.Errorf("%d bytes of %d arrived", n, b.N*len(stanza))
	}
	_ = l.Close()
}
