package lane

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"
)

// history drives a Writer and its host through one sequence of operations, and
// holds what the host reads against lists. The connection is a pipe: what the
// Writer has written the host has read, so nothing may be lost.
type history struct {
	*scriptedHost
	fatalf func(format string, args ...any)
	draw   func(below int) int // the next choice

	limit  int // the host's window
	queue  int // bytes
	places []*Place
	next   int

	small   []string            // what has to come, in order
	refused []string            // likewise, the refusals
	bulk    map[string][]string // by device
	sizes   map[string]int      // of bulk, by name
	device  map[string]string   // of bulk, by name
	flight  []string            // bulk that was read and not confirmed, or a ping
	judged  int                 // how many stanzas were
	stale   []string            // pings of earlier connections
	silent  bool                // the host answers nothing: it goes by time
	passed  map[string]int      // bulk that went before a small stanza that waited
	drained chan error
}

const (
	opSmall = iota
	opRefuse
	opBulk
	opManyBulk
	opReserve
	opPlaceSmall
	opPlaceBulk
	opRelease
	opRead
	opReadMuch
	opAnswer
	opLateAnswer
	opCut
	opWait
	ops
)

func newHistory(fatalf func(string, ...any), draw func(int) int) *history {
	h := &history{
		fatalf: fatalf, draw: draw,
		limit: []int{1, 100, 1000, 4096}[draw(4)], queue: []int{5_000, 100_000}[draw(2)],
		bulk: map[string][]string{}, sizes: map[string]int{}, device: map[string]string{}, passed: map[string]int{},
	}
	h.scriptedHost = newScriptedHost(Options{
		QueueBytes: h.queue, HostWindow: h.limit, BatchBytes: 500, WriteTimeout: 1000 * time.Hour, ConfirmTimeout: 10 * time.Second,
		RefusalBytes: h.limit + 5000,
	})
	return h
}

func (h *history) name() string { h.next++; return fmt.Sprint(h.next) }

// step does one operation.
func (h *history) step(t *testing.T) {
	switch h.draw(ops) {
	case opSmall:
		if name := h.name(); h.w.Small(filled("small", name, h.draw(300))) {
			h.waits(name)
		}
	case opRefuse:
		for range 1 + h.draw(30) {
			h.refuse(t)
		}
	case opBulk:
		h.pushBulk(h.w.Bulk)
	case opManyBulk:
		for range h.draw(20) {
			h.pushBulk(h.w.Bulk)
		}
	case opReserve:
		if p, ok := h.w.Reserve(SmallAnswer + h.draw(1000)); ok {
			h.places = append(h.places, p)
		}
	case opPlaceSmall, opPlaceBulk, opRelease:
		h.place(h.draw(3))
	case opRead:
		h.reads(1 + h.draw(200))
	case opReadMuch:
		h.reads(1 + h.draw(20_000))
	case opAnswer:
		h.answers(min(len(h.pings), 1+h.draw(3)))
	case opLateAnswer:
		for _, name := range h.stale {
			h.dones[name](nil)
		}
		for _, done := range h.dones { // as when the connection ends
			done(errors.New("detached"))
		}
		synctest.Wait()
	case opCut:
		_ = h.cut()
		h.again(t)
	case opWait:
		time.Sleep(time.Duration(h.draw(12_000)) * time.Millisecond)
		synctest.Wait()
	}
	h.givenUp(t)
	h.bounds()
	h.silent = h.goesByTime() || h.silent && len(h.flight) > 0
}

// goesByTime tells whether bulk goes by time now, the host being silent.
func (h *history) goesByTime() bool {
	h.w.mu.Lock()
	defer h.w.mu.Unlock()
	return h.w.window.silent
}

// givenUp attaches anew if the Writer has given the silent host up.
func (h *history) givenUp(t *testing.T) {
	select {
	case err := <-h.result:
		if !errors.Is(err, ErrUnconfirmed) {
			h.fatalf("serve: %v", err)
		}
		_ = h.conn.Close()
		h.again(t)
	default:
	}
}

// again attaches anew: what was unconfirmed is gone, what was cut comes whole.
func (h *history) again(t *testing.T) {
	h.flight, h.stale = nil, append(h.stale, h.pings...)
	h.attach(t.Context())
}

// refuse refuses something, unless that would have to wait for the host.
func (h *history) refuse(t *testing.T) {
	b := filled("no", h.name(), h.draw(900))
	h.w.mu.Lock()
	fits := h.w.refusals.fits(len(b))
	h.w.mu.Unlock()
	if !fits {
		return
	}
	if err := h.w.Refuse(t.Context(), b); err != nil {
		h.fatalf("refuse: %v", err)
	}
	h.refused = append(h.refused, fmt.Sprint(h.next))
	synctest.Wait()
}

// waits notes a small stanza that was taken.
func (h *history) waits(name string) {
	h.small = append(h.small, name)
	h.passed[name] = 0
	synctest.Wait()
}

func (h *history) pushBulk(push func(Chunk) bool) {
	who := string(rune('a' + h.draw(4)))
	size, kind := []int{20, 120, 900, 1500, 6000}[h.draw(5)], h.draw(8)
	c := large(who, h.name(), size)
	name := fmt.Sprint(h.next)
	switch kind {
	case 0:
		c.Produce = func() ([]byte, error) { return nil, errors.New("no") }
	case 1:
		c.Produce = func() ([]byte, error) { panic("no") }
	case 2:
		c.Size = 0
	case 3:
		c.Remaining = 100_000
	}
	if !push(c) {
		return
	}
	if kind > 1 {
		h.bulk[who] = append(h.bulk[who], name)
		h.sizes[name], h.device[name] = size, who
	}
	synctest.Wait()
}

// place uses up a place that was reserved.
func (h *history) place(how int) {
	if len(h.places) == 0 {
		return
	}
	p := h.places[0]
	h.places = h.places[1:]
	switch how {
	case 0:
		name := h.name()
		if !p.Small(filled("small", name, h.draw(3000))) {
			h.fatalf("an answer with a place was refused")
		}
		h.waits(name)
	case 1:
		h.pushBulk(p.Bulk)
	default:
		p.Release()
		synctest.Wait()
	}
	if p.Release() {
		h.fatalf("a place was used twice")
	}
}

// answers answers pings, each of which confirms what was read before it.
func (h *history) answers(n int) {
	for range n {
		for len(h.flight) > 0 {
			first := h.flight[0]
			h.flight = h.flight[1:]
			if first == "ping "+h.pings[0] {
				break
			}
		}
		h.answer(1)
	}
}

// reads reads, and judges what came.
func (h *history) reads(n int) int {
	n = h.scriptedHost.read(n)
	// A write that lasted until now may have kept the Writer from noticing the
	// silence: what it wrote behind that was read here already.
	h.silent = h.silent || h.goesByTime()
	for ; h.judged < len(h.everything); h.judged++ {
		h.judge(h.everything[h.judged])
	}
	return n
}

func (h *history) judge(stanza string) {
	kind, name, _ := strings.Cut(stanza, " ")
	switch kind {
	case "ping":
		h.flight = append(h.flight, stanza)
	case "small":
		if len(h.small) == 0 || h.small[0] != name {
			h.fatalf("small %s came, want the first of %v", name, h.small)
		}
		h.small = h.small[1:]
		delete(h.passed, name)
	case "no":
		if len(h.refused) == 0 || h.refused[0] != name {
			h.fatalf("refusal %s came, want the first of %v", name, h.refused)
		}
		h.refused = h.refused[1:]
	case "bulk":
		list := h.bulk[h.device[name]]
		if len(list) == 0 || list[0] != name {
			h.fatalf("bulk %s came for %s, want the first of %v", name, h.device[name], list)
		}
		h.bulk[h.device[name]] = list[1:]
		// One may have been on its way when the small one came.
		for small := range h.passed {
			if h.passed[small]++; h.passed[small] > 1 {
				h.fatalf("bulk %s went before small %s, which waited", name, small)
			}
		}
		h.flight = append(h.flight, stanza)
		h.judgeWindow(name)
	default:
		h.fatalf("got %q", stanza)
	}
}

// judgeWindow holds that no more bulk is unconfirmed than may be. To a host
// that answers nothing it goes by time.
func (h *history) judgeWindow(name string) {
	bytes, stanzas := 0, 0
	for _, stanza := range h.flight {
		if name, bulk := strings.CutPrefix(stanza, "bulk "); bulk {
			bytes += h.sizes[name]
			stanzas++
		}
	}
	if bytes > h.limit && stanzas > 1 && !h.silent {
		h.fatalf("bulk %s: %d bytes in %d stanzas are unconfirmed, want at most %d", name, bytes, stanzas, h.limit)
	}
}

// bounds holds that what is held in memory is bounded.
func (h *history) bounds() {
	s := h.w.Stats()
	if s.RefusalBytes > h.limit+5000 {
		h.fatalf("%d bytes of refusals wait, want at most %d", s.RefusalBytes, h.limit+5000)
	}
	if s.SmallBytes > 2*h.queue+300+3000*len(h.places)+h.queue || s.Reserved > h.queue || s.BulkChunks*SmallAnswer > h.queue {
		h.fatalf("too much is held: %+v of %d", s, h.queue)
	}
}

// finish has the host read and answer all; then everything has come.
func (h *history) finish(t *testing.T) {
	for _, p := range h.places {
		p.Release()
	}
	// A write that lasted until now may have kept the Writer from noticing that
	// the silence is too long; from the first answer on it is not.
	h.reads(100_000)
	h.givenUp(t)
	h.answers(len(h.pings))
	h.drained = make(chan error, 1)
	go func() { h.drained <- h.w.Drain(t.Context()) }()
	synctest.Wait()
	for rounds := 0; h.reads(100_000) > 0 || len(h.pings) > 0 || h.more(); rounds++ {
		if rounds > 10_000 {
			h.fatalf("stuck: %+v", h.w.Stats())
		}
		h.answers(len(h.pings))
		time.Sleep(time.Second) // a host that was silent gets it slowly
		synctest.Wait()
	}
	if err := errors.Join(<-h.drained, <-h.result); err != nil {
		h.fatalf("at the end: %v", err)
	}
	h.cancel()
	if string(h.pending) != "" || h.ended != 1 {
		h.fatalf("behind the last stanza: %q, %d ends", h.pending, h.ended)
	}
	if len(h.small) > 0 {
		h.fatalf("small ones that did not come: %v", h.small)
	}
	if len(h.refused) > 0 {
		h.fatalf("refusals that did not come: %v", h.refused)
	}
	for who, list := range h.bulk {
		if len(list) > 0 {
			h.fatalf("bulk for %s that did not come: %v", who, list)
		}
	}
	if s := h.w.Stats(); s.SmallBytes != 0 || s.SmallStanzas != 0 || s.RefusalBytes != 0 || s.Refusals != 0 || s.BulkBytes != 0 || s.BulkChunks != 0 || s.Reserved != 0 {
		h.fatalf("left over: %+v", s)
	}
	_ = h.conn.Close()
}

// more tells whether something is still to be made or written.
func (h *history) more() bool {
	s := h.w.Stats()
	return s.SmallStanzas > 0 || s.Refusals > 0 || s.BulkChunks > 0 || len(h.drained) == 0
}

// play runs the history that the choices spell, and returns what was wrong.
func play(t *testing.T, choices []byte) (fault string) {
	synctest.Test(t, func(t *testing.T) {
		type failed struct{ text string }
		h := newHistory(
			func(format string, args ...any) { panic(failed{fmt.Sprintf(format, args...)}) },
			func(below int) (n int) {
				for width := below - 1; width > 0; width >>= 8 {
					if len(choices) == 0 {
						return 0
					}
					n, choices = n<<8|int(choices[0]), choices[1:]
				}
				return n % below
			})
		defer func() {
			if p := recover(); p != nil {
				f, ours := p.(failed)
				if !ours {
					panic(p)
				}
				fault = f.text
				_ = h.conn.Close()
				h.cancel()
			}
		}()
		h.attach(t.Context())
		for len(choices) > 0 {
			h.step(t)
		}
		h.finish(t)
	})
	return fault
}

// TestHistories: whatever happens in whatever order, nothing is lost or sent
// twice, each device's order holds, small ones go first, and the bounds hold.
func TestHistories(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		if fault := play(t, rapid.SliceOfN(rapid.Byte(), 10, 400).Draw(rt, "choices")); fault != "" {
			rt.Fatal(fault)
		}
	})
}

// FuzzHistories is TestHistories with choices by the fuzzer.
func FuzzHistories(f *testing.F) {
	f.Add([]byte{2, 0, opManyBulk, 9, 1, 2, 3, 4, 5, 6, 7, opReadMuch, 200, 100, opAnswer, 0, opCut, opSmall, 20, 0, opRead, 100, 0})
	f.Add([]byte{1, 1, opBulk, 1, 4, 7, opRead, 40, opWait, 250, 250, opCut, opReserve, 10, 10, opPlaceBulk, 1, 1, 1, 1, opRead, 1})
	// The host is found to be silent, late, while it reads: 20 bytes and, by time,
	// 1500 more in one step.
	f.Add([]byte{1, 0, opRead, 199, opSmall, 1, 43, opWait, 42, 248, opReadMuch, 3, 232, opBulk, 0, 0, 7, opWait, 11, 184, opBulk, 0, 3, 7, opReadMuch, 78, 31})
	// Likewise, after it has answered: it is given up when it reads at the end.
	f.Add([]byte{1, 0, opBulk, 0, 0, 7, opReadMuch, 0, 200, opAnswer, 2, opBulk, 0, 0, 7, opReadMuch, 0, 200, opSmall, 1, 43, opSmall, 1, 43, opWait, 42, 248, opReadMuch, 1, 100, opWait, 7, 208})
	f.Fuzz(func(t *testing.T, choices []byte) {
		if fault := play(t, choices[:min(len(choices), 2000)]); fault != "" {
			t.Fatal(fault)
		}
	})
}
