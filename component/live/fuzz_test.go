// Package live_test fuzzes the live service. It stands apart from the other
// tests of the component since the fuzzer's work grows with all code that is
// linked in: there is no SQLite here.
package live_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"testing"
	"time"

	"pepvault/component/link"
	"pepvault/component/loopback"
)

// The states of the account that sends what was made up.
const (
	stateEmpty = iota // no vault, nobody known
	stateUsed         // a vault with records, subscribed in both ways
	stateFull         // no room for another record or vault
	states
)

var (
	fuzzNames = [...]string{"iq", "iq", "iq", "iq", "presence", "message", "message"}
	fuzzTypes = [...]string{"get", "set", "result", "error", "", "", "error"}
	fuzzTo    = [...]string{"vault.localhost", `alice\40localhost@vault.localhost`, `bob\40localhost@vault.localhost`}
)

// FuzzService sends one made-up stanza after the other to a live service. The
// connection lasts, each get and set is answered exactly once and nothing else
// is, nothing of ours panics, and another account keeps what it has.
//
// The state of the account goes by the first number, the kind of stanza by the
// second, whom it is for by the third.
func FuzzService(f *testing.F) {
	for _, inner := range fuzzSeeds {
		for state := range uint8(states) {
			f.Add(state, uint8(0), uint8(0), "", inner)
			f.Add(state, uint8(1), uint8(0), "", inner)
		}
		f.Add(uint8(stateUsed), uint8(1), uint8(2), "", inner)
		f.Add(uint8(stateUsed), uint8(2), uint8(0), "", inner)
	}
	for _, kind := range []string{"", " type='unavailable'", " type='subscribe'", " type='probe'", " type='error'"} {
		f.Add(uint8(stateUsed), uint8(4), uint8(0), kind, "<priority>1</priority>")
		f.Add(uint8(stateFull), uint8(4), uint8(1), kind, "")
	}
	f.Add(uint8(stateUsed), uint8(6), uint8(0), "", "<error type='cancel'><gone xmlns='urn:ietf:params:xml:ns:xmpp-stanzas'/></error>")

	a := newArena(f)
	f.Fuzz(func(t *testing.T, state, kind, to uint8, attrs, inner string) {
		a.try(t, int(state%states), int(kind)%len(fuzzNames), fuzzTo[int(to)%len(fuzzTo)], attrs, inner)
	})
}

// arena is a live service with a device that misbehaves and one that does not.
type arena struct {
	host       *loopback.Host
	alice, bob *loopback.Device
	got        chan string // ids of answers to both, Bob's prefixed if right
	faults     *tape
	count      int
	state      int  // of Alice's account, before the latest stanza
	changed    bool // by it
}

func newArena(f *testing.F) *arena {
	host, err := loopback.Start(loopback.Options{})
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { host.Close() })
	a := &arena{host: host, got: make(chan string, 4096), faults: new(tape)}
	serve(f, host, slog.New(slog.NewTextHandler(a.faults, &slog.HandlerOptions{Level: slog.LevelError})))
	for d, jid := range map[**loopback.Device]string{&a.alice: "alice@localhost/phone", &a.bob: "bob@localhost/phone"} {
		if *d, err = host.ConnectFunc(jid, a.receive); err != nil {
			f.Fatal(err)
		}
	}
	if _, err := host.Attached(f.Context()); err != nil {
		f.Fatal(err)
	}
	if answer, err := a.bob.IQ(f.Context(), "set", fuzzTo[0], publishing("his")); err != nil || answer.Type != "result" {
		f.Fatal(answer, err)
	}
	return a
}

func (a *arena) receive(d *loopback.Device, s loopback.Stanza) {
	switch {
	case s.Name != "iq" || s.Type != "result" && s.Type != "error":
	case d == a.alice && s.Type == "result" && strings.HasPrefix(s.ID, "f"):
		a.got <- "!" + s.ID
	case d == a.bob && !strings.Contains(string(s.Raw), "id='his'"):
		a.got <- "Bob reads " + string(s.Raw)
	default:
		a.got <- s.ID
	}
}

// try sends one stanza, then a ping behind it and Bob's read beside it, and
// takes the answers.
func (a *arena) try(t *testing.T, state, kind int, to, attrs, inner string) {
	a.count++
	id := fmt.Sprint("f", a.count)
	number := a.host.Link()
	a.prepare(t, state)
	a.changed = kind > 3 // presence may change who is known
	raw := stanzaOf(fuzzNames[kind], fuzzTypes[kind], id, to, attrs, inner)
	if a.alice.Send([]byte(raw)) != nil {
		raw = stanzaOf(fuzzNames[kind], fuzzTypes[kind], id, to, " from='alice@localhost/phone'"+attrs, inner)
		if !framed(raw, fuzzTypes[kind], id) {
			return
		}
		if err := a.host.Inject([]byte(raw)); err != nil {
			t.Fatal(err)
		}
	}
	afterwards, beside := fmt.Sprint("p", a.count), fmt.Sprint("o", a.count)
	a.ask(t, a.alice, afterwards, ping)
	a.ask(t, a.bob, beside, getNotes)
	want := map[string]bool{afterwards: true, beside: true}
	if kind < 2 {
		want[id] = true
	}
	patience, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	for len(want) > 0 {
		select {
		case got := <-a.got:
			if id, done := strings.CutPrefix(got, "!"); done {
				got = id
				a.changed = a.changed || kind == 1
			}
			if !want[got] {
				t.Fatalf("%s led to an answer that is not owed: %s", raw, got)
			}
			delete(want, got)
		case <-patience.Done():
			t.Fatalf("%s: no answer to %v", raw, want)
		}
	}
	if now := a.host.Link(); now != number {
		t.Fatalf("%s has cost the connection: %d, was %d", raw, now, number)
	}
	if fault := a.faults.take(); fault != "" {
		t.Fatalf("%s has made a fault: %s", raw, fault)
	}
}

func (a *arena) ask(t *testing.T, d *loopback.Device, id, payload string) {
	if err := d.Send(fmt.Appendf(nil, `<iq type='get' id='%s' to='vault.localhost'>%s</iq>`, id, payload)); err != nil {
		t.Fatal(err)
	}
}

func stanzaOf(name, kind, id, to, attrs, inner string) string {
	if kind != "" {
		kind = " type='" + kind + "'"
	}
	return "<" + name + kind + " id='" + id + "' to='" + to + "'" + attrs + ">" + inner + "</" + name + ">"
}

// framed tells whether raw is one stanza to the framer, and still the one that
// it was meant to be: then a host could bring it.
func framed(raw, kind, id string) bool {
	framer := link.NewFramer(bufio.NewReader(strings.NewReader(raw)), link.Limits{}, nil)
	s, err := framer.Next()
	if err != nil || s.ID != id || kind != "" && s.Type != kind || s.From != "alice@localhost/phone" {
		return false
	}
	_, err = framer.Next()
	return errors.Is(err, io.EOF) && s.RawBytes == int64(len(raw))
}
