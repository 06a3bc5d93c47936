package component_test

import (
	"context"
	"fmt"
	"net"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"pepvault/component/hosttest"
	"pepvault/component/link"
)

// meter counts what a service reads, so that a test knows what has arrived.
type meter struct {
	mu    sync.Mutex
	more  sync.Cond
	bytes int
}

func newMeter() *meter {
	m := new(meter)
	m.more.L = &m.mu
	return m
}

type meteredConn struct {
	net.Conn
	meter *meter
}

func (c meteredConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.meter.mu.Lock()
	c.meter.bytes += n
	c.meter.mu.Unlock()
	c.meter.more.Broadcast()
	return n, err
}

func (m *meter) dial(ctx context.Context, network, address string) (net.Conn, error) {
	conn, err := new(net.Dialer).DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	return meteredConn{conn, m}, nil
}

func (m *meter) now() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.bytes
}

// reach waits until so many bytes have been read.
func (m *meter) reach(bytes int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for m.bytes < bytes {
		m.more.Wait()
	}
}

// heap is what lives on the heap.
func heap() uint64 {
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return stats.HeapAlloc
}

// A stanza of any size is followed in constant memory and answered from its
// start. Not parallel: other tests would use memory beside it.
func TestEndlessStanzas(t *testing.T) {
	const (
		million = 1_000_000
		piece   = 1 << 20
		room    = 12 << 20 // the framer's 2 MiB, what is under way, and noise
	)
	text, levels, ends := strings.Repeat("x", piece), strings.Repeat("<x>", million/100), strings.Repeat("</x>", million/100)
	publish, after, _ := strings.Cut(storing(`<n xmlns='urn:example'>|</n>`), "|")
	query, afterQuery, _ := strings.Cut(oddGet+`<ping xmlns='urn:xmpp:ping'>|</ping>`+end, "|")
	tag, afterTag, _ := strings.Cut(oddGet+`<ping xmlns='urn:xmpp:ping' a='|'/>`+end, "|")
	repeated := func(what string, n int) (all []string) {
		for range n {
			all = append(all, what)
		}
		return all
	}
	for _, row := range []struct {
		name, before, after string
		pieces              []string
		want                string
	}{
		{"100 MB of text in a publish", publish, after, repeated(text, 100), "modify/not-acceptable+payload-too-big"},
		{"100 MB of text in a ping", query, afterQuery, repeated(text, 100), "modify/policy-violation"},
		{"100 MB in an attribute", tag, afterTag, repeated(text, 100), "modify/policy-violation"},
		{"a million levels in a publish", publish, after, append(repeated(levels, 100), repeated(ends, 100)...), "modify/not-acceptable+payload-too-big"},
		{"a million levels in a ping", query, afterQuery, append(repeated(levels, 100), repeated(ends, 100)...), "modify/policy-violation"},
		{"100 MB of CDATA", publish, after, append(append([]string{"<![CDATA["}, repeated(strings.ReplaceAll(text, "xxx", "]]<"), 100)...), "]]>"), "modify/not-acceptable+payload-too-big"},
	} {
		t.Run(row.name, func(t *testing.T) {
			m := newMeter()
			s := newStage(t, func(s *setup) { s.dial = m.dial })
			before, most, sent := heap(), uint64(0), m.now()
			inject := func(raw string) {
				s.host.Inject(raw)
				sent += len(raw)
				m.reach(sent)
			}
			inject(row.before)
			for i, piece := range row.pieces {
				inject(piece)
				if i%25 == 24 {
					most = max(most, heap())
				}
			}
			inject(row.after)
			if most > before+room {
				t.Errorf("the heap grew from %d to %d bytes, want at most %d more", before, most, room)
			}
			s.answered(row.want)
			s.survived()
		})
	}
}

// The line breaks at every byte of a publish: nothing of it is stored, and the
// service comes back.
func TestCutAnywhere(t *testing.T) {
	t.Parallel()
	host := hosttest.New(t)
	m := newMeter()
	serve(t, host, func(s *setup) {
		s.dial, s.backoff = m.dial, link.Backoff{First: time.Millisecond, Max: time.Millisecond}
	})
	alice := host.Device("alice/phone")
	alice.Asks("set", publishing("kept"))
	raw := storing(`<n xmlns='urn:example' a="&apos;">text<![CDATA[</n>]]><m/></n>`)
	for at := 1; at < len(raw); at++ {
		number := host.AwaitAttached()
		alice.Asks("get", ping)
		sent := m.now() + at
		host.Inject(raw[:at])
		m.reach(sent)
		host.Drop()
		host.AwaitReattached(number)
		answer := alice.Asks("get", getNotes)
		if got := strings.Count(string(answer.Raw), "<item "); got != 1 || alice.Waiting() > 0 {
			t.Fatalf("cut at %d: %d records, %d stanzas wait; %s", at, got, alice.Waiting(), answer)
		}
	}
	host.Inject(raw)
	alice.Receives(`<iq type='result' id='odd' from='*'>*</iq>`)
	if answer := alice.Asks("get", getNotes); strings.Count(string(answer.Raw), "<item ") != 2 {
		t.Errorf("the whole publish led to %s", answer)
	}
}

// 256 KiB of quotes, which a host makes 1.5 MB of, are stored where the limit
// allows it, and come back.
func TestQuotes(t *testing.T) {
	t.Parallel()
	s := newStage(t, func(s *setup) { s.limits.RecordBytes = 300_000 })
	quotes := strings.Repeat("'", 250<<10)
	if got := put(t, s.alice, "notes", "a", `<n xmlns='urn:example'>`+quotes+`</n>`); got != "result" {
		t.Fatalf("answered %s", got)
	}
	var read struct {
		Text string `xml:"pubsub>items>item>n"`
	}
	if err := s.alice.Asks("get", getNotes).Decode(&read); err != nil || read.Text != quotes {
		t.Errorf("%d bytes came back, want %d (%v)", len(read.Text), len(quotes), err)
	}
	// In attributes they stay six times as long.
	if got := put(t, s.alice, "notes", "b", `<n xmlns='urn:example' a="`+quotes+`"/>`); got != "modify/not-acceptable+payload-too-big" {
		t.Errorf("answered %s", got)
	}
	s.survived()
}

// C21: the limit itself is stored, one byte more is refused at once by a text
// that names the limit.
func TestC21PayloadLimit(t *testing.T) {
	t.Parallel()
	const limit = 3000
	for _, row := range []struct{ name, payload, over string }{
		{"native",
			native(strings.Repeat("x", limit)), native(strings.Repeat("x", limit+1))},
		{"foreign",
			foreign(strings.Repeat("x", limit-len(foreign("")))), foreign(strings.Repeat("x", limit-len(foreign(""))+1))},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			s := newStage(t, func(s *setup) { s.limits.RecordBytes = limit })
			fault := s.alice.AsksInVain("set", publication("notes", "a", row.over))
			if fault.Specific.Local != "payload-too-big" || !strings.Contains(fault.Text, fmt.Sprint(limit)) {
				t.Errorf("refused with %v, want payload-too-big and the limit", fault)
			}
			if fault := s.alice.AsksInVain("get", getNotes); fault.Condition != "item-not-found" {
				t.Errorf("the vault is there: %v", fault)
			}
			if got := put(t, s.alice, "notes", "a", row.payload); got != "result" {
				t.Errorf("the limit itself: answered %s", got)
			}
			s.survived()
		})
	}
}
