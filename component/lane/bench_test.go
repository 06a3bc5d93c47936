package lane

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"
)

// pacedHost takes what a Writer sends at a bounded speed, as one thread of a
// real host does, and answers pings when it comes to them.
type pacedHost struct {
	conn  net.Conn
	speed int // bytes a second
	mu    sync.Mutex
	dones map[string]func(error)
	came  map[string]chan time.Time // small stanzas that somebody waits for
	bulk  int                       // bytes
	ended chan struct{}
}

func (h *pacedHost) confirm(done func(error)) []byte {
	h.mu.Lock()
	defer h.mu.Unlock()
	name := strconv.Itoa(len(h.dones))
	h.dones[name] = done
	return []byte("<ping " + name + ">")
}

// read works until the connection ends, 8 KiB at a time.
func (h *pacedHost) read() {
	defer close(h.ended)
	due := time.Now()
	piece := make([]byte, 8<<10)
	var rest []byte
	for {
		n, err := h.conn.Read(piece)
		if err != nil {
			return
		}
		if now := time.Now(); due.Before(now) {
			due = now
		}
		due = due.Add(time.Duration(n) * time.Second / time.Duration(h.speed))
		time.Sleep(time.Until(due))
		rest = append(rest, piece[:n]...)
		for {
			end := bytes.IndexByte(rest, '>')
			if end < 0 {
				break
			}
			h.take(rest[:end+1])
			rest = rest[:copy(rest, rest[end+1:])]
		}
	}
}

func (h *pacedHost) take(stanza []byte) {
	now := time.Now()
	fields := bytes.Fields(bytes.Trim(stanza, "<>"))
	h.mu.Lock()
	var done func(error)
	switch string(fields[0]) {
	case "ping":
		done = h.dones[string(fields[1])]
	case "small":
		h.came[string(fields[1])] <- now
	case "bulk":
		h.bulk += len(stanza)
	}
	h.mu.Unlock()
	if done != nil {
		done(nil)
	}
}

// startPaced attaches a Writer with this window to such a host.
func startPaced(b *testing.B, speed, window int) (*pacedHost, *Writer) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	ours, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		b.Fatal(err)
	}
	h := &pacedHost{speed: speed, dones: map[string]func(error){}, came: map[string]chan time.Time{}, ended: make(chan struct{})}
	if h.conn, err = l.Accept(); err != nil {
		b.Fatal(err)
	}
	w := New(Options{HostWindow: window, Confirm: h.confirm})
	ctx, cancel := context.WithCancel(context.WithoutCancel(b.Context()))
	served := make(chan error, 1)
	go func() { served <- w.Serve(ctx, ours) }()
	go h.read()
	b.Cleanup(func() {
		cancel()
		<-served
		_ = ours.Close()
		<-h.ended
		_ = h.conn.Close()
	})
	return h, w
}

// BenchmarkSmallBesideBulk: how long small answers take beside 30 devices that
// download in chunks of 32 KiB without pause, from the planned moment to that in
// which a host of 10 MB/s has taken them, and what the window costs the bulk.
// One op is half a second of each window, in turn.
func BenchmarkSmallBesideBulk(b *testing.B) {
	const speed, share = 10_000_000, 500 * time.Millisecond
	type rig struct {
		name   string
		window int
		host   *pacedHost
		writer *Writer
		took   []time.Duration
		bytes  int
	}
	rigs := []*rig{{name: "64KiB", window: 64 << 10}, {name: "256KiB", window: 256 << 10}, {name: "none", window: -1}}
	for _, r := range rigs {
		r.host, r.writer = startPaced(b, speed, r.window)
	}
	n := 0
	for b.Loop() {
		for _, r := range rigs {
			before := r.host.bytes()
			stop := time.Now().Add(share)
			var group sync.WaitGroup
			for d := range 30 {
				group.Go(func() { download(r.writer, fmt.Sprint("a@b/", d), stop) })
			}
			var mu sync.Mutex
			for at := time.Now(); at.Before(stop); at = at.Add(10 * time.Millisecond) {
				time.Sleep(time.Until(at))
				n++
				name := strconv.Itoa(n)
				group.Go(func() {
					took := r.host.ask(r.writer, name).Sub(at)
					mu.Lock()
					defer mu.Unlock()
					r.took = append(r.took, took)
				})
			}
			group.Wait()
			r.bytes += r.host.bytes() - before
		}
	}
	for _, r := range rigs {
		slices.Sort(r.took)
		for _, q := range []struct {
			name string
			at   float64
		}{{"p50", 0.5}, {"p99", 0.99}} {
			b.ReportMetric(float64(r.took[int(q.at*float64(len(r.took)-1))].Microseconds())/1000, r.name+"-"+q.name+"-ms")
		}
		b.ReportMetric(float64(r.bytes)/float64(b.N)/1e6/share.Seconds(), r.name+"-MB/s")
	}
}

func (h *pacedHost) bytes() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.bulk
}

// ask queues a small answer and tells when the host has taken it.
func (h *pacedHost) ask(w *Writer, name string) time.Time {
	came := make(chan time.Time, 1)
	h.mu.Lock()
	h.came[name] = came
	h.mu.Unlock()
	w.Small(filled("small", name, 1500))
	return <-came
}

// download has one chunk after the other sent to a device until it is time.
func download(w *Writer, who string, stop time.Time) {
	const chunk = 32 << 10
	stanza := filled("bulk", who, chunk)
	for time.Now().Before(stop) {
		made := make(chan struct{})
		w.Bulk(Chunk{For: who, Size: chunk, Remaining: 10 * chunk, Produce: func() ([]byte, error) { close(made); return stanza, nil }})
		<-made
	}
}

// BenchmarkTurns is what choosing costs with so many devices waiting, a hundred
// of each account, each for a whole vault.
func BenchmarkTurns(b *testing.B) {
	for _, devices := range []int{1, 300, 8000} {
		b.Run(strconv.Itoa(devices), func(b *testing.B) {
			var turns turns
			for i := range devices {
				turns.push(bulk{Chunk: Chunk{Account: strconv.Itoa(i / 100), For: strconv.Itoa(i), Size: 350_000}})
			}
			b.ReportAllocs()
			for b.Loop() {
				next, _ := turns.take()
				turns.made(&next, 350_000)
				turns.push(bulk{Chunk: next.Chunk})
			}
		})
	}
}
