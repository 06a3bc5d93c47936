package component_test

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"pepvault/component"
	"pepvault/component/hosttest"
	"pepvault/component/lane"
	"pepvault/component/link"
	"pepvault/component/loopback"
)

// These tests are about large answers: whose turn it is, and how far ahead of
// the host they go. A large one is bigVault bytes in one stanza.
const (
	bigRecords = 20
	bigRecord  = 15_000
	bigVault   = bigRecords * bigRecord
)

// bulky is a service whose accounts may have such vaults.
func bulky(t *testing.T, host *hosttest.Host, change func(*setup)) *running {
	t.Helper()
	return serve(t, host, func(s *setup) {
		s.limits.Records, s.limits.RecordBytes, s.limits.AccountBytes = 64, 20_000, 10<<20
		s.queue, s.pending = 4<<20, 1000
		s.unread = 64 << 10
		if change != nil {
			change(s)
		}
	})
}

// fill gives the device's account a large vault.
func fill(d *hosttest.Device) {
	for i := range bigRecords {
		d.Asks("set", fmt.Sprintf(`<pubsub xmlns='http://jabber.org/protocol/pubsub'><publish node='notes'><item id='%d'><n xmlns='urn:example'>%s</n></item></publish></pubsub>`,
			i, strings.Repeat("x", bigRecord)))
	}
}

func asksAll(d *hosttest.Device, id string) {
	d.Sends(`<iq type='get' id='` + id + `' to='$component'>` + getNotes + `</iq>`)
}

// whole waits for an answer with a large vault. To compare all of it costs more
// than to make it.
func whole(t *testing.T, d *hosttest.Device) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	s, err := d.Recv(ctx)
	if err != nil || s.Name != "iq" || s.Type != "result" || len(s.Raw) < bigVault {
		t.Fatalf("got %.200s, %v; want a vault of %d bytes", s.Raw, err, bigVault)
	}
}

// await yields until the writer's queues are so.
func await(t *testing.T, w *lane.Writer, what string, so func(lane.Stats) bool) {
	t.Helper()
	for limit := time.Now().Add(patience); !so(w.Stats()); runtime.Gosched() {
		if time.Now().After(limit) {
			t.Fatalf("%s: %+v", what, w.Stats())
		}
	}
}

// record has the host note all that the component sends from now on: for whom,
// and with which id. Pings to the host are "ping".
func record(host *hosttest.Host) (order func() []string) {
	var sent []string
	release := host.Hold(loopback.FromComponent, func(s loopback.Stanza) bool {
		name := s.To[strings.LastIndexByte(s.To, '/')+1:] + " " + s.ID
		if s.To == host.Domain() {
			name = "ping"
		}
		sent = append(sent, name)
		return false // goes on
	})
	return func() []string { release(); return sent }
}

// An account that asks for a whole vault fifty times hurts itself alone: what
// others ask for meanwhile comes before all but what is on its way already.
func TestWholeVaultsFiftyTimes(t *testing.T) {
	t.Parallel()
	host := hosttest.New(t, func(o *loopback.Options) { o.ReadBuffer = 16 << 10 })
	r := bulky(t, host, nil)
	alice, bob, carol := host.Device("alice/many"), host.Device("bob/vault"), host.Device("carol/small")
	for _, d := range []*hosttest.Device{alice, bob, host.Device("dave/fills")} {
		fill(d)
	}
	complete := make(chan struct{})
	dave, err := host.ConnectFunc("dave@localhost/download", func(d *loopback.Device, s loopback.Stanza) {
		if s.Type != "set" {
			return
		}
		// Before the host comes to what follows: the order is none of chance.
		if err := d.Reply(s, ""); err != nil {
			t.Error(err)
		}
		if strings.Contains(string(s.Raw), "last=") {
			close(complete)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	carol.Asks("set", publishing("hers"))
	same := host.SameConnection()
	order := record(host)
	host.StallReads()
	for i := range 50 {
		asksAll(alice, fmt.Sprint(i))
	}
	await(t, r.writer, "Alice's answers wait, one is being written", func(s lane.Stats) bool { return s.BulkChunks == 49 && s.Unconfirmed > 0 })
	asksAll(bob, "his")
	await(t, r.writer, "Bob's waits too", func(s lane.Stats) bool { return s.BulkChunks == 50 })
	download := `<iq type='set' id='his' to='vault.localhost'><download xmlns='urn:pepvault:sync:0' id='x' node='notes' cursor='none' chunk-bytes='32768' window='4'/></iq>`
	if err := dave.Send([]byte(download)); err != nil {
		t.Fatal(err)
	}
	await(t, r.writer, "and Dave's first chunks", func(s lane.Stats) bool { return s.BulkChunks > 50 })
	asksAll(carol, "hers")
	await(t, r.writer, "and Carol's", func(s lane.Stats) bool { return s.SmallStanzas == 2 })
	host.Resume()
	select {
	case <-complete:
	case <-time.After(patience):
		t.Fatal("the last chunk has not come")
	}
	for range 50 {
		whole(t, alice)
	}
	bob.Receives(`<iq type='result' id='his' from='*'>*</iq>`)
	carol.Receives(`<iq type='result' id='hers' from='*'>*</iq>`)
	same()

	sent := order()
	alices := func(before string) int {
		n := 0
		at := slices.Index(sent, before)
		for _, s := range sent[:max(at, 0)] {
			if strings.HasPrefix(s, "many ") {
				n++
			}
		}
		return n
	}
	// One was being written.
	if got := alices("small hers"); got > 1 {
		t.Errorf("%d of Alice's vaults went before Carol's record, want at most 1", got)
	}
	// Bob's turn came when it was paid for, as Alice's was.
	if got := alices("vault his"); got > 4 {
		t.Errorf("%d of Alice's vaults went before Bob's, want at most 4", got)
	}
	// Dave's chunks are as many bytes as one of Alice's vaults. Each window of
	// them waits for a few turns of hers.
	last := 0
	for i, s := range sent {
		if strings.HasPrefix(s, "download ") {
			last = i
		}
	}
	n := 0
	for _, s := range sent[:last] {
		if strings.HasPrefix(s, "many ") {
			n++
		}
	}
	if n > 20 {
		t.Errorf("%d of Alice's vaults went before the end of Dave's download, want at most 20", n)
	}
}

// Large answers that wait for the host count as requests of their account: it
// can't take the room of all others.
func TestLargeAnswersCountUntilTheyGo(t *testing.T) {
	t.Parallel()
	const pending, asked = 20, 60
	host := hosttest.New(t, func(o *loopback.Options) { o.ReadBuffer = 16 << 10 })
	meter := newTally(t)
	r := bulky(t, host, func(s *setup) { s.pending, s.meter = pending, meter })
	alice, bob := host.Device("alice/many"), host.Device("bob/phone")
	fill(alice)
	fill(bob)
	host.StallReads()
	// One after the other, so that none is served while another one comes.
	for i := range asked + 1 {
		if i < asked {
			asksAll(alice, fmt.Sprint(i))
		} else {
			asksAll(bob, "his")
		}
		await(t, r.writer, "one is being written, all others wait or are refused", func(s lane.Stats) bool {
			return s.Unconfirmed > 0 && 1+s.BulkChunks+meter.all()[string(component.TooMany)] == i+1
		})
	}
	if got := r.writer.Stats().BulkChunks; got > pending+1 {
		t.Errorf("%d large answers wait, want at most %d and Bob's", got, pending)
	}
	host.Resume()
	bob.Receives(`<iq type='result' id='his' from='*'>*</iq>`)
	results := 0
	for range asked {
		s, err := alice.Recv(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if s.Type == "result" {
			results++
			continue
		}
		wantError(t, s.Err(), "wait", "resource-constraint")
	}
	// The one that was being written counted no more. One that is about to wait
	// counts twice for a moment, the last one of fill may still count.
	if results < pending-2 || results > pending+1 {
		t.Errorf("%d were answered, want %d", results, pending+1)
	}
	alice.Asks("get", getNotes)
}

// So much is unconfirmed in the host at most, and while it takes nothing, small
// answers only wait for what is on its way.
func TestBulkWaitsForTheHost(t *testing.T) {
	t.Parallel()
	for name, pingTo := range map[string]string{"answers": "", "answers with errors": "nobody@localhost/gone"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			host := hosttest.New(t)
			r := bulky(t, host, func(s *setup) { s.pingTo = pingTo })
			alice := host.Device("alice/phone")
			fill(alice)
			order := record(host)
			release := host.Hold(loopback.FromComponent, func(s loopback.Stanza) bool { // its answers come late
				return s.To == host.Domain() || s.To == pingTo
			})
			for i := range 8 {
				asksAll(alice, fmt.Sprint(i))
			}
			whole(t, alice)
			await(t, r.writer, "the next one is made and waits", func(s lane.Stats) bool { return s.BulkChunks == 6 })
			if got := r.writer.Stats().Unconfirmed; got < bigVault || got > bigVault*3/2 {
				t.Errorf("%d bytes are unconfirmed, want one vault of %d", got, bigVault)
			}
			alice.Asks("get", ping)
			if alice.Waiting() > 0 {
				t.Error("another vault came before the host had confirmed the first")
			}
			if release() == 0 {
				t.Error("nothing was asked")
			}
			for range 7 {
				whole(t, alice)
			}
			await(t, r.writer, "all is confirmed", func(s lane.Stats) bool { return s.Unconfirmed == 0 && s.BulkChunks == 0 })
			_ = order()
		})
	}
}

// A host that answers no ping gets large answers all the same.
func TestHostWithoutPings(t *testing.T) {
	t.Parallel()
	host := hosttest.New(t)
	host.Lose(loopback.FromComponent, 1<<30, func(s loopback.Stanza) bool { return s.To == host.Domain() })
	bulky(t, host, func(s *setup) { s.confirm = 50 * time.Millisecond })
	same := host.SameConnection()
	alice := host.Device("alice/phone")
	fill(alice)
	for range 3 {
		alice.Asks("get", getNotes)
	}
	same()
}

// A host that hangs in the middle of a window, or of which the line is dead, is
// left; what was asked for on the next connection is answered there.
func TestHostHangsInAWindow(t *testing.T) {
	t.Parallel()
	for name, fault := range map[string]func(*hosttest.Host){
		"silent":        (*hosttest.Host).CutSilently,
		"stopped":       (*hosttest.Host).Stall,
		"reads nothing": (*hosttest.Host).StallReads,
		"cut":           (*hosttest.Host).Cut,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			host := hosttest.New(t, func(o *loopback.Options) { o.ReadBuffer, o.Fast = 16<<10, true })
			r := bulky(t, host, func(s *setup) {
				s.confirm, s.connect = 5*time.Second, 2*time.Second
				s.write, s.alive = 0, link.KeepAlive{} // lane's and link's
			})
			alice, bob := host.Device("alice/phone"), host.Device("bob/phone")
			fill(alice)
			alice.Asks("get", getNotes)
			await(t, r.writer, "the host answers pings", func(s lane.Stats) bool { return s.Unconfirmed == 0 })
			number := host.AwaitAttached()
			before := r.link.Reconnects()
			release := host.Hold(loopback.FromComponent, func(s loopback.Stanza) bool { return s.To == host.Domain() })
			for i := range 4 {
				asksAll(alice, fmt.Sprint(i))
			}
			await(t, r.writer, "a window is full", func(s lane.Stats) bool { return s.Unconfirmed > 0 && s.BulkChunks == 2 })
			fault(host)
			await(t, r.writer, "the connection is left", func(lane.Stats) bool {
				attached, _ := r.link.State()
				return !attached || r.link.Reconnects() > before
			})
			release()
			host.Resume()
			host.AwaitReattached(number)
			bob.Asks("set", publishing("his"))
			// What waited is sent on the new connection: three at least.
			for range 3 {
				whole(t, alice)
			}
			alice.Asks("get", ping)
			await(t, r.writer, "nothing is left", func(s lane.Stats) bool { return s.Unconfirmed == 0 && s.BulkChunks == 0 && s.Reserved == 0 })
		})
	}
}

// A pause that is shorter than the host may stay silent costs nothing.
func TestHostPauses(t *testing.T) {
	t.Parallel()
	host := hosttest.New(t, func(o *loopback.Options) { o.ReadBuffer = 16 << 10 })
	r := bulky(t, host, nil)
	alice := host.Device("alice/phone")
	fill(alice)
	same := host.SameConnection()
	for range 5 {
		host.Stall()
		for i := range 4 {
			asksAll(alice, fmt.Sprint(i))
		}
		host.Resume()
		for range 4 {
			whole(t, alice)
		}
	}
	await(t, r.writer, "all is confirmed", func(s lane.Stats) bool { return s.Unconfirmed == 0 && s.Reserved == 0 })
	same()
}
