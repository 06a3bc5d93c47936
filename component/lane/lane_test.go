package lane

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// serve runs w on one end of a pipe; result gets what Serve returns. Inside a
// synctest bubble, nothing is written before the other end is read.
func serve(ctx context.Context, w *Writer) (host net.Conn, result chan error) {
	host, ours := net.Pipe()
	result = make(chan error, 1)
	go func() {
		err := w.Serve(ctx, ours)
		_ = ours.Close()
		result <- err
	}()
	return host, result
}

func chunk(s string) Chunk {
	return Chunk{For: "a@b/c", Size: len(s), Produce: func() ([]byte, error) { return []byte(s), nil }}
}

// readAll reads until the stream ends.
func readAll(t *testing.T, host net.Conn) string {
	t.Helper()
	all, err := io.ReadAll(host)
	if err != nil && !errors.Is(err, io.ErrClosedPipe) {
		t.Error(err)
	}
	return string(all)
}

func TestOrder(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := New(Options{BatchBytes: 8})
		w.Bulk(chunk("[bulk1]"))
		w.Bulk(chunk("[bulk2]"))
		for i := range 5 {
			w.Small(fmt.Appendf(nil, "[%d]", i))
		}
		host, result := serve(t.Context(), w)
		synctest.Wait()
		// The first batch is on its way; what comes now goes before any bulk.
		place, ok := w.Reserve(SmallAnswer)
		if !ok || !place.Small([]byte("[answer]")) {
			t.Error("no place")
		}
		go func() {
			if err := w.Drain(t.Context()); err != nil {
				t.Errorf("drain: %v", err)
			}
		}()
		got := readAll(t, host)
		if want := "[0][1][2][3][4][answer][bulk1][bulk2]</stream:stream>"; got != want {
			t.Errorf("got %s, want %s", got, want)
		}
		if err := <-result; err != nil {
			t.Errorf("serve: %v", err)
		}
		s := w.Stats()
		if s.SmallBytes != 0 || s.SmallStanzas != 0 || s.BulkBytes != 0 || s.BulkChunks != 0 || s.Reserved != 0 || s.Written != 8 {
			t.Errorf("left over: %+v", s)
		}
		if err := w.Refuse(t.Context(), []byte("x")); w.Small([]byte("x")) || !errors.Is(err, ErrClosed) {
			t.Errorf("taken behind the end, or %v", err)
		}
		if err := w.Room(t.Context()); !errors.Is(err, ErrClosed) {
			t.Errorf("room behind the end: %v", err)
		}
		if err := w.Serve(t.Context(), host); !errors.Is(err, ErrClosed) {
			t.Errorf("serve again: %v", err)
		}
	})
}

// TestSmallOvertakesBulk: what comes while bulk is written or made goes before
// the next bulk.
func TestSmallOvertakesBulk(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := New(Options{})
		made := make(chan struct{})
		for i := range 3 {
			w.Bulk(Chunk{Size: 10, Produce: func() ([]byte, error) {
				if i == 2 {
					<-made // slow store
				}
				return fmt.Appendf(nil, "[bulk%d]", i), nil
			}})
		}
		host, _ := serve(t.Context(), w)
		synctest.Wait() // bulk0 is being written, bulk1 is made
		w.Small([]byte("[a]"))
		expect(t, host, "[bulk0][a][bulk1]")
		w.Small([]byte("[b]")) // although bulk2 is being made
		expect(t, host, "[b]")
		close(made)
		expect(t, host, "[bulk2]")
		_ = host.Close()
	})
}

func expect(t *testing.T, host net.Conn, want string) {
	t.Helper()
	got := make([]byte, len(want))
	if _, err := io.ReadFull(host, got); err != nil || string(got) != want {
		t.Errorf("got %q, %v; want %q", got, err, want)
	}
}

func TestBounds(t *testing.T) {
	t.Parallel()
	w := New(Options{QueueBytes: 100})
	var places []*Place
	for {
		p, ok := w.Reserve(30)
		if !ok {
			break
		}
		places = append(places, p)
	}
	if len(places) != 3 || w.Full() || w.Stats().Refused != 1 {
		t.Fatalf("got %d places of 30 in 100; %+v", len(places), w.Stats())
	}
	if !places[0].Release() || places[0].Release() || places[0].Small([]byte("x")) {
		t.Error("a place is used once")
	}
	if p, ok := w.Reserve(30); !ok || !p.Release() {
		t.Error("a released place is not free")
	}
	// 60 are reserved, and an eighth of 100 is 12.
	if p, ok := w.ReserveMore(28); !ok || !p.Release() {
		t.Error("no place for who has some")
	}
	if _, ok := w.ReserveMore(29); ok {
		t.Error("who has places took what is left to those who have none")
	}
	// An answer with a place is taken whatever its size.
	if !places[1].Small(make([]byte, 100)) || !w.Full() {
		t.Errorf("full at 100: %+v", w.Stats())
	}
	if _, ok := w.Reserve(1); ok {
		t.Error("a place beyond the budget")
	}
	if err := w.Refuse(t.Context(), make([]byte, 20)); err != nil || w.Stats().SmallBytes != 100 {
		t.Errorf("refusals have a budget of their own: %v, %+v", err, w.Stats())
	}
	for w.Small(make([]byte, 10)) {
		if w.Stats().SmallBytes > 200 {
			t.Fatal("no bound")
		}
	}
	if s := w.Stats(); s.SmallBytes != 200 || s.Dropped != 1 || s.Reserved != 30 {
		t.Errorf("got %+v", s)
	}
	if !places[2].Small([]byte("x")) {
		t.Error("an answer with a place was refused")
	}
}

func TestRoom(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := New(Options{QueueBytes: 10, BatchBytes: 5})
		if err := w.Room(t.Context()); err != nil {
			t.Fatal(err)
		}
		for range 3 {
			w.Small([]byte("12345"))
		}
		stopped, cancel := context.WithCancel(t.Context())
		cancel()
		if err := w.Room(stopped); !errors.Is(err, context.Canceled) {
			t.Errorf("got %v, want the end of ctx", err)
		}
		var waiting sync.WaitGroup
		for range 3 {
			waiting.Go(func() {
				if err := w.Room(t.Context()); err != nil {
					t.Error(err)
				}
				if w.Full() {
					t.Error("no room")
				}
			})
		}
		host, _ := serve(t.Context(), w)
		expect(t, host, "1234512345")
		waiting.Wait()
		_ = host.Close()
	})
}

// TestLostConnection: a stanza that the connection took is gone, one that was
// cut goes out again as a whole, and the order stays.
func TestLostConnection(t *testing.T) {
	t.Parallel()
	for taken, want := range map[int]string{
		0:  "<aaa><bbb><ccc><bulk>",
		3:  "<aaa><bbb><ccc><bulk>",
		5:  "<bbb><ccc><bulk>",
		9:  "<bbb><ccc><bulk>",
		15: "<bulk>",
		18: "<bulk>",
		21: "",
	} {
		t.Run(fmt.Sprint(taken), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := New(Options{})
				for _, s := range []string{"<aaa>", "<bbb>", "<ccc>"} {
					w.Small([]byte(s))
				}
				w.Bulk(chunk("<bulk>"))
				host, result := serve(t.Context(), w)
				if _, err := io.ReadFull(host, make([]byte, taken)); err != nil {
					t.Fatal(err)
				}
				synctest.Wait()
				_ = host.Close()
				if taken < 21 {
					if err := <-result; err == nil {
						t.Error("no error")
					}
				} else {
					w.Small([]byte("x")) // notices the loss
					<-result
					want = "x"
				}
				host, result = serve(t.Context(), w)
				go func() { _ = w.Drain(t.Context()) }()
				if got := readAll(t, host); got != want+streamEnd {
					t.Errorf("got %q, want %q", got, want)
				}
				<-result
			})
		})
	}
}

// TestBlockingHost: a host that reads nothing loses the connection, and blocks
// nobody meanwhile.
func TestBlockingHost(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := New(Options{WriteTimeout: 30 * time.Second})
		w.Small([]byte("x"))
		began := time.Now()
		host, result := serve(t.Context(), w)
		synctest.Wait()
		if !w.Small([]byte("y")) {
			t.Error("not taken")
		}
		var timeout net.Error
		if err := <-result; !errors.As(err, &timeout) || !timeout.Timeout() {
			t.Errorf("got %v, want a time-out", err)
		}
		if took := time.Since(began); took != 30*time.Second {
			t.Errorf("took %v", took)
		}
		_ = host.Close()
	})
}

func TestServeEndsWithContext(t *testing.T) {
	t.Parallel()
	for _, blocked := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			w := New(Options{})
			if blocked {
				w.Small([]byte("x"))
			}
			ctx, cancel := context.WithCancelCause(t.Context())
			host, result := serve(ctx, w)
			synctest.Wait()
			if err := w.Serve(ctx, host); !errors.Is(err, ErrServing) {
				t.Errorf("second Serve: %v", err)
			}
			want := errors.New("enough")
			cancel(want)
			if err := <-result; !errors.Is(err, want) {
				t.Errorf("blocked %v: got %v, want %v", blocked, err, want)
			}
			_ = host.Close()
		})
	}
}

func TestDrain(t *testing.T) {
	t.Parallel()
	t.Run("waits for open places", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			w := New(Options{})
			place, _ := w.Reserve(SmallAnswer)
			other, _ := w.Reserve(SmallAnswer)
			host, result := serve(t.Context(), w)
			synctest.Wait()
			drained := make(chan error, 1)
			go func() { drained <- w.Drain(t.Context()) }()
			synctest.Wait()
			if _, ok := w.Reserve(1); ok {
				t.Error("a place while draining")
			}
			if err := w.Refuse(t.Context(), []byte("[wait]")); err != nil {
				t.Errorf("refusals work to the end: %v", err)
			}
			expect(t, host, "[wait]")
			place.Bulk(chunk("[big]"))
			expect(t, host, "[big]")
			synctest.Wait()
			other.Release()
			expect(t, host, streamEnd)
			if err := errors.Join(<-drained, <-result); err != nil {
				t.Error(err)
			}
		})
	})
	t.Run("no connection", func(t *testing.T) {
		t.Parallel()
		w := New(Options{})
		if err := w.Drain(t.Context()); !errors.Is(err, ErrDetached) {
			t.Errorf("got %v", err)
		}
	})
	t.Run("connection lost", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			w := New(Options{})
			w.Small([]byte("x"))
			host, result := serve(t.Context(), w)
			synctest.Wait()
			drained := make(chan error, 1)
			go func() { drained <- w.Drain(t.Context()) }()
			synctest.Wait()
			_ = host.Close()
			if err := <-drained; !errors.Is(err, ErrDetached) {
				t.Errorf("got %v", err)
			}
			if <-result == nil {
				t.Error("no error")
			}
		})
	})
	t.Run("time is up", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			w := New(Options{})
			w.Small([]byte("x"))
			host, result := serve(t.Context(), w)
			synctest.Wait()
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			if err := w.Drain(ctx); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("got %v", err)
			}
			_ = host.Close()
			<-result
		})
	})
}

// TestBadChunks: an error or a panic costs its chunk, not the writer.
func TestBadChunks(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := New(Options{})
		w.Bulk(Chunk{Produce: func() ([]byte, error) { return nil, errors.New("no") }})
		w.Bulk(Chunk{Produce: func() ([]byte, error) { panic("no") }})
		w.Bulk(Chunk{Produce: func() ([]byte, error) { return nil, nil }})
		w.Bulk(chunk("[good]"))
		host, result := serve(t.Context(), w)
		go func() { _ = w.Drain(t.Context()) }()
		if got, want := readAll(t, host), "[good]"+streamEnd; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
		if err := <-result; err != nil {
			t.Error(err)
		}
	})
}

// TestNothingLost: many goroutines, real sockets that break again and again.
// Every stanza arrives once or was in the buffer of a broken socket, and each
// goroutine's come in its order.
func TestNothingLost(t *testing.T) {
	t.Parallel()
	const senders, each = 8, 200
	w := New(Options{QueueBytes: 4 << 10})
	var sending sync.WaitGroup
	for s := range senders {
		sending.Go(func() {
			for i := range each {
				stanza := fmt.Appendf(nil, "<%d %d>", s, i)
				if i%10 == 9 {
					for !w.Bulk(chunk(string(stanza))) {
						time.Sleep(time.Millisecond)
					}
					continue
				}
				if err := w.Room(t.Context()); err != nil || !w.Small(stanza) {
					t.Errorf("not taken: %v", err)
				}
			}
		})
	}
	sent := make(chan struct{})
	go func() { sending.Wait(); close(sent) }()
	got := make(map[string]int)
	var cut sync.WaitGroup
	for lives := 0; ; lives++ {
		ours, host := tcpPair(t)
		over := make(chan struct{})
		ctx, cancel := context.WithCancel(t.Context())
		cut.Go(func() {
			limit := int64(1 << 40)
			if lives < 20 {
				limit = 300
				cut.Go(func() { // what is left may be less than the limit
					select {
					case <-sent:
						_ = host.SetReadDeadline(time.Unix(1, 0))
					case <-over:
					}
				})
			}
			defer close(over)
			read, _ := io.ReadAll(io.LimitReader(host, limit))
			for f := range strings.SplitAfterSeq(string(read), ">") {
				got[f]++
			}
			_ = host.Close()
			if lives < 20 {
				cancel() // as the reader of the stream does
			}
		})
		if lives == 20 {
			go func() {
				<-sent
				_ = w.Drain(t.Context())
			}()
		}
		err := w.Serve(ctx, ours)
		cancel()
		_ = ours.Close()
		cut.Wait()
		if err == nil {
			break
		}
	}
	arrived := 0
	for s := range senders {
		for i := range each {
			switch n := got[fmt.Sprintf("<%d %d>", s, i)]; n {
			case 0:
			case 1:
				arrived++
			default:
				t.Errorf("<%d %d> came %d times", s, i, n)
			}
		}
	}
	stats := w.Stats()
	if stats.Written != senders*each {
		t.Errorf("%d of %d were written; %+v", stats.Written, senders*each, stats)
	}
	if got[streamEnd] != 1 || arrived == 0 {
		t.Errorf("%d arrived, the end %d times", arrived, got[streamEnd])
	}
}
