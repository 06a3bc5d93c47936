package lane

import (
	"errors"
	"strconv"
	"testing"
	"testing/synctest"
	"time"
)

// TestWindow: so much bulk goes unconfirmed and no more, while small answers
// go on; any answer to a ping makes room.
func TestWindow(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := newScriptedHost(Options{HostWindow: 100})
		for i := range 5 {
			h.w.Bulk(large("a", strconv.Itoa(i), 40))
		}
		h.attach(t.Context())
		h.read(1000)
		if got, want := h.seen(), "bulk 0, bulk 1"; got != want {
			t.Errorf("unconfirmed: got %s, want %s", got, want)
		}
		if got := h.w.Stats().Unconfirmed; got != 80 {
			t.Errorf("%d bytes are unconfirmed, want 80", got)
		}
		h.w.Small(filled("small", "0", 500))
		h.read(1000)
		if got, want := h.seen(), "small 0"; got != want {
			t.Errorf("beside a full window: got %s, want %s", got, want)
		}
		h.answer(2) // the one that the connection began with, too
		h.read(1000)
		if got, want := h.seen(), "bulk 2"; got != want {
			t.Errorf("after one confirmation: got %s, want %s", got, want)
		}
		h.readAll()
		if got, want := h.seen(), "bulk 3, bulk 4"; got != want {
			t.Errorf("after all: got %s, want %s", got, want)
		}
		if got := h.w.Stats(); got.Unconfirmed != 0 || got.BulkChunks != 0 || got.Reserved != 0 {
			t.Errorf("left over: %+v", got)
		}
		_ = h.cut()
	})
}

// TestLargerThanTheWindow: a stanza of any size goes when nothing is
// unconfirmed, and alone.
func TestLargerThanTheWindow(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := newScriptedHost(Options{HostWindow: 100})
		h.attach(t.Context())
		h.readAll()
		for i, size := range []int{20, 1000, 5000, 20} {
			h.w.Bulk(large("a", strconv.Itoa(i), size))
		}
		for _, want := range []string{"bulk 0", "bulk 1", "bulk 2", "bulk 3"} {
			h.read(10_000)
			if got := h.seen(); got != want {
				t.Errorf("got %s, want %s", got, want)
			}
			h.answer(len(h.pings))
		}
		_ = h.cut()
	})
}

// TestPingsAreFew: not each small piece of bulk is followed by one.
func TestPingsAreFew(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := newScriptedHost(Options{HostWindow: 1000})
		for i := range 1000 {
			h.w.Bulk(large("a", strconv.Itoa(i), 20))
		}
		h.attach(t.Context())
		h.readAll()
		if len(h.stanzas) != 1000 {
			t.Errorf("%d stanzas came, want 1000", len(h.stanzas))
		}
		if h.asked > 120 {
			t.Errorf("%d pings for 20 windows", h.asked)
		}
		_ = h.cut()
	})
}

// TestCutInAWindow: what was unconfirmed is gone with its connection, what was
// cut goes out again, and a late answer of the old connection says nothing.
func TestCutInAWindow(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := newScriptedHost(Options{HostWindow: 100})
		for i := range 5 {
			h.w.Bulk(large("a", strconv.Itoa(i), 40))
		}
		h.attach(t.Context())
		h.read(60) // with the ping behind the first one
		old := h.pings
		if err := h.cut(); err == nil {
			t.Error("no error")
		}
		if got, want := h.seen(), "bulk 0"; got != want {
			t.Errorf("before the cut: %s, want %s", got, want)
		}
		if got := h.w.Stats(); got.BulkChunks != 3 {
			t.Errorf("%d chunks wait, want 3", got.BulkChunks)
		}
		h.attach(t.Context())
		h.read(1000)
		if got, want := h.seen(), "bulk 1, bulk 2"; got != want {
			t.Errorf("after the cut: %s, want %s", got, want)
		}
		for _, name := range old {
			h.dones[name](nil)
		}
		h.read(1000)
		if got := h.seen(); got != "" {
			t.Errorf("the answer of an old connection let %s go", got)
		}
		h.readAll()
		if got, want := h.seen(), "bulk 3, bulk 4"; got != want {
			t.Errorf("at the end: %s, want %s", got, want)
		}
		_ = h.cut()
	})
}

// TestHalfOpen: a host that has answered and does not any more is given up.
func TestHalfOpen(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := newScriptedHost(Options{ConfirmTimeout: 10 * time.Second})
		h.attach(t.Context())
		h.readAll()
		h.w.Bulk(large("a", "0", 40))
		h.w.Bulk(large("a", "1", 40))
		began := time.Now()
		h.read(1000)
		if err := <-h.result; !errors.Is(err, ErrUnconfirmed) {
			t.Errorf("got %v, want %v", err, ErrUnconfirmed)
		}
		if took := time.Since(began); took != 10*time.Second {
			t.Errorf("took %v", took)
		}
		// The next connection begins anew.
		h.attach(t.Context())
		h.w.Bulk(large("a", "2", 40))
		h.readAll()
		if got, want := h.seen(), "bulk 0, bulk 1, bulk 2"; got != want {
			t.Errorf("got %s, want %s", got, want)
		}
		_ = h.cut()
	})
}

// TestBusyHost: one that is heard of, and does not come to the ping, is not
// left. After a long time it counts as one that answers no pings.
func TestBusyHost(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		heard int // seconds for which it is
		want  string
	}{
		"for some seconds": {15, ""},
		"for a minute":     {61, "bulk 1"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				h := newScriptedHost(Options{ConfirmTimeout: 10 * time.Second})
				h.attach(t.Context())
				h.readAll()
				h.w.Bulk(large("a", "0", 100_000))
				h.w.Bulk(large("a", "1", 100_000))
				h.read(1_000_000)
				h.seen()
				for range test.heard {
					time.Sleep(time.Second)
					h.hears(time.Now())
				}
				h.read(1_000_000)
				if got := h.seen(); got != test.want {
					t.Errorf("got %q, want %q", got, test.want)
				}
				if test.want == "" { // now it falls silent
					began := time.Now()
					if err := <-h.result; !errors.Is(err, ErrUnconfirmed) || time.Since(began) != 10*time.Second {
						t.Errorf("got %v after %v", err, time.Since(began))
					}
					return
				}
				_ = h.cut()
			})
		})
	}
}

// TestHostThatAnswersNoPings: bulk goes to it slowly and one by one, on the
// next connection too, until it answers in time.
func TestHostThatAnswersNoPings(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const size = silentRate / 4
		h := newScriptedHost(Options{ConfirmTimeout: 10 * time.Second})
		n := 0
		more := func() {
			h.w.Bulk(large("a", strconv.Itoa(n), size))
			n++
		}
		for range 4 {
			more()
		}
		wait := func(d time.Duration, want string) {
			t.Helper()
			time.Sleep(d)
			h.read(2 * size)
			if got := h.seen(); got != want {
				t.Errorf("got %q, want %q", got, want)
			}
		}
		h.attach(t.Context())
		wait(0, "bulk 0")
		wait(10*time.Second-time.Millisecond, "")
		wait(time.Millisecond, "bulk 1")
		wait(250*time.Millisecond-time.Millisecond, "")
		wait(time.Millisecond, "bulk 2")
		wait(250*time.Millisecond, "bulk 3")
		// One answer that comes late makes it no better host.
		time.Sleep(time.Second)
		h.answer(1)
		more()
		more()
		wait(0, "bulk 4")
		wait(249*time.Millisecond, "")
		wait(time.Millisecond, "bulk 5")
		// It is asked anew instead.
		if len(h.pings) != 2 {
			t.Errorf("%d pings are out, want 2", len(h.pings))
		}
		_ = h.cut()

		h.attach(t.Context())
		more()
		more()
		wait(0, "bulk 6")
		wait(250*time.Millisecond, "bulk 7")
		more()
		h.answer(len(h.pings)) // the one that the connection began with: in time
		h.readAll()
		if got, want := h.seen(), "bulk 8"; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
		more()
		h.read(2 * size)
		more()
		h.read(2 * size)
		if got, want := h.seen(), "bulk 9"; got != want {
			t.Errorf("with a window again: got %q, want %q", got, want)
		}
		_ = h.cut()
	})
}

// TestSilenceThatIsNone: time in which this process was stopped, or in which
// the reader waited for room, is not held against the host.
func TestSilenceThatIsNone(t *testing.T) {
	t.Parallel()
	t.Run("stopped", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			h := newScriptedHost(Options{ConfirmTimeout: 10 * time.Second, WriteTimeout: 2 * time.Hour})
			h.attach(t.Context())
			h.readAll()
			h.w.Bulk(large("a", "0", 40))
			h.read(1000)
			h.w.Small(filled("small", "0", 40)) // nothing is done before it is read
			synctest.Wait()
			time.Sleep(time.Hour)
			h.read(1000)
			time.Sleep(10 * time.Second)
			h.answer(len(h.pings))
			h.w.Bulk(large("a", "1", 40))
			h.readAll()
			if got, want := h.seen(), "bulk 0, small 0, bulk 1"; got != want {
				t.Errorf("got %s, want %s", got, want)
			}
			_ = h.cut()
		})
	})
	t.Run("stopped, then silence", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			h := newScriptedHost(Options{ConfirmTimeout: 10 * time.Second, WriteTimeout: 2 * time.Hour})
			h.attach(t.Context())
			h.readAll()
			h.w.Bulk(large("a", "0", 40))
			h.read(1000)
			h.w.Small(filled("small", "0", 40))
			synctest.Wait()
			time.Sleep(time.Hour)
			began := time.Now()
			h.read(1000)
			if err := <-h.result; !errors.Is(err, ErrUnconfirmed) || time.Since(began) != 10*time.Second+lastLook {
				t.Errorf("got %v after %v", err, time.Since(began))
			}
		})
	})
	t.Run("no room for the reader", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			h := newScriptedHost(Options{ConfirmTimeout: 10 * time.Second, WriteTimeout: time.Hour, QueueBytes: 5000, BatchBytes: 10})
			h.attach(t.Context())
			h.readAll()
			h.w.Bulk(large("a", "0", 40))
			h.read(1000)
			for range 4 {
				h.w.Small(filled("small", "0", 2500))
			}
			synctest.Wait()
			for range 2 { // so full that the reader waits
				time.Sleep(time.Minute)
				h.read(2500)
			}
			time.Sleep(9 * time.Second)
			h.answer(len(h.pings))
			h.readAll()
			if got, want := h.seen(), "bulk 0, small 0, small 0, small 0, small 0"; got != want {
				t.Errorf("got %s, want %s", got, want)
			}
			_ = h.cut()
		})
	})
}

// TestNoWindow: without a way to ask, or when it is turned off, nothing waits.
func TestNoWindow(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := newScriptedHost(Options{HostWindow: -1})
		for i := range 20 {
			h.w.Bulk(large("a", strconv.Itoa(i), 100_000))
		}
		h.attach(t.Context())
		h.read(3_000_000)
		if len(h.stanzas) != 20 || h.asked != 0 {
			t.Errorf("%d stanzas came, %d pings", len(h.stanzas), h.asked)
		}
		_ = h.cut()
	})
}
