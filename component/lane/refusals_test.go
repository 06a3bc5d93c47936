package lane

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// refuses has a refusal wait for its turn, in a goroutine of its own, and tells
// what came of it.
func refuses(ctx context.Context, w *Writer, b []byte) (result chan error) {
	result = make(chan error, 1)
	go func() { result <- w.Refuse(ctx, b) }()
	synctest.Wait()
	return result
}

func TestRefusalsStandBetweenTheLanes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := New(Options{BatchBytes: 8})
		w.Bulk(chunk("[bulk]"))
		for i := range 3 {
			if err := w.Refuse(t.Context(), fmt.Appendf(nil, "[no%d]", i)); err != nil {
				t.Error(err)
			}
		}
		w.Small([]byte("[a]"))
		host, result := serve(t.Context(), w)
		synctest.Wait() // the first batch is on its way
		w.Small([]byte("[b]"))
		if s := w.Stats(); s.Refusals != 3 || s.RefusalBytes != 15 || s.SmallBytes != 6 || s.Reserved != 0 {
			t.Errorf("got %+v", s)
		}
		go func() { _ = w.Drain(t.Context()) }()
		// "[no1]" fits no more into the batch of "[a][no0]", nor "[no2]" behind
		// "[b][no1]".
		if got, want := readAll(t, host), "[a][no0][b][no1][bulk][no2]"+streamEnd; got != want {
			t.Errorf("got %s, want %s", got, want)
		}
		if err := <-result; err != nil {
			t.Error(err)
		}
		if s := w.Stats(); s.Refusals != 0 || s.RefusalBytes != 0 || s.Written != 6 {
			t.Errorf("left over: %+v", s)
		}
	})
}

// TestFloodOfRefusals: refusals fill their own queue and nothing else; then who
// refuses waits, and others' answers keep their room and their way.
func TestFloodOfRefusals(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := New(Options{QueueBytes: 4 << 10, RefusalBytes: 20, BatchBytes: 10})
		first, second := refuses(t.Context(), w, []byte("<no 1234>")), refuses(t.Context(), w, []byte("<no 2345>"))
		third := refuses(t.Context(), w, []byte("<no 3456>"))
		gone, cancel := context.WithCancelCause(t.Context())
		fourth := refuses(gone, w, []byte("<no 4567>"))
		if len(first) != 1 || len(second) != 1 || len(third) != 0 {
			t.Error("two fit into 20 bytes")
		}
		for range 2 {
			if p, ok := w.Reserve(2 << 10); !ok || !p.Small([]byte("<yes>")) {
				t.Error("refusals took an answer's room")
			}
		}
		if err := w.Room(t.Context()); err != nil || w.Full() {
			t.Errorf("refusals fill lane 0: %v", err)
		}
		why := errors.New("cut")
		cancel(why)
		if err := <-fourth; !errors.Is(err, why) {
			t.Errorf("got %v, want %v", err, why)
		}
		host, _ := serve(t.Context(), w)
		expect(t, host, "<yes><yes>")
		expect(t, host, "<no 1234>")
		synctest.Wait()
		if len(third) != 1 {
			t.Error("it waits although there is room")
		}
		expect(t, host, "<no 2345><no 3456>")
		_ = host.Close()
	})
}

// TestLargeRefusal: one is taken whatever its size, when nothing else waits.
func TestLargeRefusal(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := New(Options{RefusalBytes: 20})
		if err := <-refuses(t.Context(), w, []byte(strings.Repeat("x", 100))); err != nil {
			t.Error(err)
		}
		next := refuses(t.Context(), w, []byte("y"))
		if len(next) != 0 {
			t.Error("a second one found room behind it")
		}
		host, _ := serve(t.Context(), w)
		expect(t, host, strings.Repeat("x", 100)+"y")
		_ = host.Close()
	})
}

// TestNobodyStarvesByRefusals: lane 0 without an end lets a batch of refusals
// through now and then, and refusals without an end let bulk through.
func TestNobodyStarvesByRefusals(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const batch = 1000
		h := newScriptedHost(Options{QueueBytes: 8 << 20, RefusalBytes: 1 << 20, BatchBytes: batch, HostWindow: -1})
		w := h.w
		small, no := filled("small", "", 500), filled("no", "", 500)
		for range 4000 {
			w.Small(small)
		}
		for range 1000 {
			_ = w.Refuse(t.Context(), no)
		}
		for range 20 {
			w.Bulk(Chunk{For: "a", Size: 500, Produce: func() ([]byte, error) { return filled("bulk", "", 500), nil }})
		}
		h.attach(t.Context())
		for h.read(500) > 0 { // so slowly that the next chunk is always made in time
		}
		passed, behind, refusals, bulk := 0, 0, 0, 0
		for i, stanza := range h.everything {
			switch stanza {
			case "small":
				if passed += 500; passed > passSmall+batch && refusals < 1000 {
					t.Fatalf("stanza %d: %d bytes of lane 0 went before a refusal, want at most %d", i, passed, passSmall+batch)
				}
			case "no":
				passed = 0
				refusals++
				if bulk > 0 && bulk < 20 {
					if behind += 500; behind > batch {
						t.Fatalf("stanza %d: %d bytes of refusals went before bulk, want at most %d", i, behind, batch)
					}
				}
			case "bulk":
				behind = 0
				bulk++
			}
		}
		if refusals != 1000 || bulk != 20 || len(h.everything) != 5020 {
			t.Errorf("%d stanzas came, %d refusals and %d of bulk", len(h.everything), refusals, bulk)
		}
		_ = h.cut()
	})
}

// TestWaitingForRefusals: a host is not judged by its silence while nobody reads
// what it says, because as many refusals wait as may.
func TestWaitingForRefusals(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := newScriptedHost(Options{RefusalBytes: 20, HostWindow: 1000, ConfirmTimeout: 10 * time.Second, WriteTimeout: time.Hour})
		h.attach(t.Context())
		h.readAll() // it answers pings
		h.w.Bulk(large("a", "1", 500))
		h.read(500 + len("<ping 2>")) // which it would answer behind all that it has said
		refuses(t.Context(), h.w, filled("no", "", 15))
		for i := range 20 {
			said := refuses(t.Context(), h.w, filled("no", "", 15))
			if len(said) > 0 {
				t.Fatalf("refusal %d found room", i)
			}
			time.Sleep(8 * time.Second)
			if h.read(15); len(said) == 0 {
				t.Fatalf("refusal %d still waits", i)
			}
		}
		select {
		case err := <-h.result:
			t.Fatalf("the connection was given up: %v", err)
		default:
		}
		h.readAll()
		_ = h.cut()
	})
}
