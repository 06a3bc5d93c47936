package component_test

import (
	"context"
	"encoding/xml"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"pepvault/component/hosttest"
	"pepvault/component/loopback"
)

// watcher is a known resource that is interested in a vault in which little
// happens, and answers when it is asked.
type watcher struct {
	t      *testing.T
	device *loopback.Device

	mu       sync.Mutex
	changed  chan struct{}
	stage    int    // of the welcome by a new connection
	welcomed int    // times
	cursor   string // the last one heard
	broken   bool   // an event did not follow the one before
	events   int
}

const quietNode = "quiet"

func quietPublish(host *loopback.Host, n int, text string) string {
	return fmt.Sprintf(`<iq type='set' id='q%d' to='%s'><pubsub xmlns='http://jabber.org/protocol/pubsub'>`+
		`<publish node='%s'><item id='%d'><n xmlns='urn:example'>%s</n></item></publish></pubsub></iq>`, n, host.Component(), quietNode, n%50, text)
}

// watch makes the vault, has every resource of the account hear of it, and
// joins.
func watch(t *testing.T, host *loopback.Host, jid string) *watcher {
	t.Helper()
	device, err := host.Connect(jid)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for _, payload := range []string{
		strings.ReplaceAll(publishing("0"), "notes", quietNode),
		`<pubsub xmlns='http://jabber.org/protocol/pubsub'><subscribe node='` + quietNode + `' jid='` + device.Bare() + `'/></pubsub>`,
	} {
		if answer, err := device.IQ(ctx, "set", host.Component(), payload); err != nil || answer.Type != "result" {
			t.Fatalf("%s: %s %v", jid, answer.Raw, err)
		}
	}
	return join(t, host, jid)
}

// join connects and waits until it has been told the state of the vault.
func join(t *testing.T, host *loopback.Host, jid string) *watcher {
	t.Helper()
	w := &watcher{t: t, changed: make(chan struct{})}
	device, err := host.ConnectFunc(jid, w.receive)
	if err != nil {
		t.Fatal(err)
	}
	w.device = device
	if err := device.Send([]byte(`<presence to='` + host.Component() + `'/>`)); err != nil {
		t.Fatal(err)
	}
	w.await("is told the state", func() bool { return w.cursor != "" })
	return w
}

func (w *watcher) receive(d *loopback.Device, s loopback.Stanza) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case s.Name == "presence" && s.Type == "":
		w.stage = 1
	case s.Name == "iq" && s.Type == "get":
		if w.stage == 1 {
			w.stage = 2
		}
		go func() { _ = d.Reply(s.Clone(), `<query xmlns='http://jabber.org/protocol/disco#info'/>`) }()
	case s.Name == "message":
		w.hear(s)
	}
	close(w.changed)
	w.changed = make(chan struct{})
}

func (w *watcher) hear(s loopback.Stanza) {
	var m struct {
		Event *struct{} `xml:"event"`
		State struct {
			Node     string `xml:"node,attr"`
			Previous string `xml:"previous,attr"`
			Cursor   string `xml:"cursor,attr"`
		} `xml:"state"`
	}
	if err := xml.Unmarshal(s.Raw, &m); err != nil || m.State.Node != quietNode {
		w.t.Errorf("heard %s: %v", s.Raw, err)
		return
	}
	switch {
	case m.Event != nil:
		w.events++
		w.broken = w.broken || m.State.Previous != w.cursor
	case w.stage == 2:
		w.stage = 0
		w.welcomed++
		w.broken = w.broken || m.State.Cursor != w.cursor // nothing has happened in it
	}
	w.cursor = m.State.Cursor
}

// await waits until what is to be has come; holds is called under mu.
func (w *watcher) await(what string, holds func() bool) {
	w.t.Helper()
	limit := time.After(patience)
	for {
		w.mu.Lock()
		changed, done := w.changed, holds()
		w.mu.Unlock()
		if done {
			return
		}
		select {
		case <-changed:
		case <-limit:
			w.t.Fatalf("%s: not: %s", w.device.JID(), what)
		}
	}
}

// welcomes counts how often a connection has begun with presence, query and
// the state of the vault.
func (w *watcher) welcomes() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.welcomed
}

func (w *watcher) awaitWelcome(times int) {
	w.t.Helper()
	w.await("gets presence, is asked and told the state", func() bool { return w.welcomed >= times })
}

// checkHears has another device write, which the watcher hears of, and of
// nothing else.
func (w *watcher) checkHears(d *hosttest.Device) {
	w.t.Helper()
	d.Sends(quietPublish(d.Host(), 1, "news"))
	d.Receives(`<iq type='result' id='q1' from='*'>*</iq>`)
	w.checkChain(1)
}

// checkChain waits for so many events, each of which must follow the one
// before.
func (w *watcher) checkChain(events int) {
	w.t.Helper()
	w.await(fmt.Sprintf("hears of %d changes", events), func() bool { return w.events >= events })
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.broken || w.events != events {
		w.t.Errorf("%s heard %d events, want %d; a gap: %t", w.device.JID(), w.events, events, w.broken)
	}
}
