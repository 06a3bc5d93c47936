package component_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"pepvault/component/hosttest"
	"pepvault/component/loopback"
	"pepvault/pep"
	"pepvault/pep/wire"
	"pepvault/vault"
)

// An answer counts from whom the chunk was sent to, and once.
func TestForgedAcknowledgements(t *testing.T) {
	t.Parallel()
	s, count := newDownloads(t, nil)
	writesNotes(s.alice, 6)
	laptop := s.host.Device("alice/laptop")
	begins(t, s.alice, pep.Download{ID: "d", Node: "notes", ChunkBytes: 1, Window: 2})
	first, second := chunk(t, s.alice), chunk(t, s.alice)
	for _, other := range []*hosttest.Device{laptop, s.bob} {
		acknowledges(t, other, first)
		send(t, other, `<iq type='error' id='`+second.id+`' to='vault.localhost'><error type='cancel'/></iq>`)
	}
	send(t, s.alice, `<iq type='result' id='never' to='vault.localhost'/>`)
	for _, d := range []*hosttest.Device{laptop, s.bob, s.alice} {
		d.Asks("get", ping) // what they have sent is read
	}
	if s.alice.Waiting() != 0 || count.all()["downloads"] != 1 {
		t.Errorf("%d stanzas came, %d downloads are under way", s.alice.Waiting(), count.all()["downloads"])
	}
	acknowledges(t, s.alice, first)
	acknowledges(t, s.alice, first)
	chunk(t, s.alice)
	if s.alice.ReceivesNothing(); s.alice.Waiting() != 0 {
		t.Error("one acknowledgement made two chunks come")
	}
}

// A client that knows no chunks answers each with an error.
func TestUnmodifiedClientEndsDownload(t *testing.T) {
	t.Parallel()
	s, count := newDownloads(t, nil)
	writesNotes(s.alice, 20)
	begins(t, s.alice, pep.Download{ID: "d", Node: "notes", ChunkBytes: 1})
	c := chunk(t, s.alice)
	send(t, s.alice, `<iq type='error' id='`+c.id+`' to='vault.localhost'><error type='cancel'><service-unavailable xmlns='urn:ietf:params:xml:ns:xmpp-stanzas'/></error></iq>`)
	s.none(count)
	if got := ids(pulls(t, s.alice, c.Page.Cursor)...); len(got) != 19 {
		t.Errorf("%d records are left, want 19", len(got))
	}
}

// Who never answers loses the download, and only that.
func TestSilentDevice(t *testing.T) {
	t.Parallel()
	s, count := newDownloads(t, func(s *setup) { s.ack, s.downloads = 50*time.Millisecond, 1 })
	writesNotes(s.alice, 20)
	// Silence is judged once the host has answered a ping: not before all three
	// are there, however long that takes.
	release := s.host.Hold(loopback.FromComponent, func(st loopback.Stanza) bool { return st.To == s.host.Domain() })
	begins(t, s.alice, pep.Download{ID: "d", Node: "notes", ChunkBytes: 1, Window: 3})
	chunks := []arrived{chunk(t, s.alice), chunk(t, s.alice), chunk(t, s.alice)}
	release()
	s.none(count)
	for _, c := range chunks {
		acknowledges(t, s.alice, c)
	}
	if s.alice.Asks("get", ping); s.alice.Waiting() != 0 {
		t.Error("a late acknowledgement made chunks come")
	}
	if got := ids(pulls(t, s.alice, chunks[2].Page.Cursor)...); len(got) != 17 {
		t.Errorf("%d records are left, want 17", len(got))
	}
	begins(t, s.alice, pep.Download{ID: "e", Node: "notes"}) // for which there is room
	if c := chunk(t, s.alice); c.Download != "e" || c.Page.More {
		t.Errorf("the next download brings %+v", c.Chunk)
	}
	s.survived()
}

// While the host answers nothing, nobody is silent.
func TestStoppedHostIsNoSilence(t *testing.T) {
	t.Parallel()
	s, _ := newDownloads(t, func(s *setup) { s.ack = 10 * time.Millisecond })
	writesNotes(s.alice, 6)
	asked := make(chan struct{}, 100)
	release := s.host.Hold(loopback.FromComponent, func(st loopback.Stanza) bool {
		isPing := st.Type == "get"
		if isPing {
			asked <- struct{}{}
		}
		return isPing
	})
	begins(t, s.alice, pep.Download{ID: "d", Node: "notes", ChunkBytes: 1, Window: 1})
	c := chunk(t, s.alice)
	<-asked // whether it has taken the chunk
	<-asked // whether the silence is one
	acknowledges(t, s.alice, c)
	if next := chunk(t, s.alice); next.Seq != 1 {
		t.Errorf("chunk %d came, want 1", next.Seq)
	}
	release()
}

// A resource that is gone has no downloads: it says so, or its host does.
func TestDownloadEndsWithItsDevice(t *testing.T) {
	t.Parallel()
	s, count := newDownloads(t, func(s *setup) { s.limits.Resources = 8 })
	writesNotes(s.alice, 6)
	for what, end := range map[string]string{
		"unavailable": `<presence type='unavailable' from='alice@localhost/DEVICE' to='vault.localhost'/>`,
		"bounced":     `<presence type='error' from='alice@localhost/DEVICE' to='vault.localhost'/>`,
		"gone":        `<message type='error' from='alice@localhost/DEVICE' to='vault.localhost'><error type='cancel'><gone xmlns='urn:ietf:params:xml:ns:xmpp-stanzas'/></error></message>`,
	} {
		d := s.host.Device("alice/" + what)
		begins(t, d, pep.Download{ID: "d", Node: "notes", ChunkBytes: 1})
		begins(t, s.alice, pep.Download{ID: "d", Node: "notes", ChunkBytes: 1})
		s.host.Inject(strings.ReplaceAll(end, "DEVICE", what))
		s.bob.Asks("get", ping)
		if got := count.all()["downloads"]; got != 1 {
			t.Errorf("%s: %d downloads are under way, want that of the other device", what, got)
		}
	}
	// Directed presence to others' vaults concerns those alone.
	s.bob.Asks("set", `<pubsub xmlns='http://jabber.org/protocol/pubsub#owner'><affiliations node='notes'><affiliation jid='alice@localhost' affiliation='member'/></affiliations></pubsub>`)
	s.host.Inject(`<presence type='unavailable' from='alice@localhost/phone' to='bob\40localhost@vault.localhost'/>`)
	s.bob.Asks("get", ping)
	if got := count.all()["downloads"]; got != 1 {
		t.Errorf("%d downloads are under way, want 1", got)
	}
}

// More than an account may have are refused with a hint, and room that gets
// free is used.
func TestTooManyDownloads(t *testing.T) {
	t.Parallel()
	s, count := newDownloads(t, func(s *setup) { s.downloads = 2 })
	writesNotes(s.alice, 6)
	kind, payload := wire.Ask(pep.Download{ID: "d", Node: "notes", ChunkBytes: 1})
	others := []*hosttest.Device{s.host.Device("alice/a"), s.host.Device("alice/b")}
	for _, d := range others {
		d.Asks(kind, string(payload))
	}
	answer, err := s.alice.IQ(t.Context(), kind, "vault.localhost", string(payload))
	if err != nil {
		t.Fatal(err)
	}
	if got := outcome(answer); got != "wait/resource-constraint+retry" {
		t.Errorf("a third download is answered %q", got)
	}
	// Somebody else's are none of theirs.
	downloads(t, s.bob, pep.Download{ID: "d", Node: "notes"})
	c := chunk(t, others[0])
	send(t, others[0], `<iq type='error' id='`+c.id+`' to='vault.localhost'><error type='cancel'/></iq>`)
	for count.all()["downloads"] > 1 {
		s.bob.Asks("get", ping)
	}
	if got := ids(downloads(t, s.alice, pep.Download{ID: "d", Node: "notes"})...); len(got) != 6 {
		t.Errorf("%d records came, want 6", len(got))
	}
}

// Asking fifty times has one download go on, and costs nobody else anything.
func TestFiftyRequests(t *testing.T) {
	t.Parallel()
	s, count := newDownloads(t, nil)
	writesNotes(s.alice, 20)
	for i := range 50 {
		kind, payload := wire.Ask(pep.Download{ID: fmt.Sprint("d", i), Node: "notes", ChunkBytes: 2000, Window: 4})
		send(t, s.alice, fmt.Sprintf(`<iq type='%s' id='q%d' to='vault.localhost'>%s</iq>`, kind, i, payload))
		s.bob.Asks("get", ping)
	}
	answered, latest := 0, []arrived{}
	for answered < 50 || len(latest) < 4 {
		st, err := s.alice.Recv(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if st.Type == "result" {
			answered++
			continue
		}
		c, err := wire.DecodeChunk(st.Raw)
		if err != nil {
			t.Fatal(err)
		}
		if c.Download == "d49" {
			latest = append(latest, arrived{c, st.ID})
		}
	}
	if got := count.all()["downloads"]; got != 1 {
		t.Errorf("%d downloads are under way, want 1", got)
	}
	got := 0
	for i := 0; i < len(latest); i++ {
		got += len(latest[i].Page.Changes)
		acknowledges(t, s.alice, latest[i])
		if latest[len(latest)-1].Page.More {
			latest = append(latest, chunk(t, s.alice))
		}
	}
	if got != 20 {
		t.Errorf("%d records came, want 20", got)
	}
	s.none(count)
	s.survived()
}

// With the connection its downloads end; the device goes on from the chunks
// that it has.
func TestLinkLossEndsDownloads(t *testing.T) {
	t.Parallel()
	s, count := newDownloads(t, nil)
	writesNotes(s.alice, 20)
	begins(t, s.alice, pep.Download{ID: "d", Node: "notes", ChunkBytes: 1, Window: 2})
	c := chunk(t, s.alice)
	number := s.host.AwaitAttached()
	s.host.Drop()
	s.host.AwaitReattached(number)
	s.none(count)
	for s.alice.Waiting() > 0 { // the second one, if it was not lost
		if _, err := s.alice.Recv(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	acknowledges(t, s.alice, c)
	rest := downloads(t, s.alice, pep.Download{ID: "e", Node: "notes", Cursor: c.Page.Cursor})
	if got := ids(rest...); len(got) != 19 || rest[0].First {
		t.Errorf("%d records are left, want 19 of the same pass", len(got))
	}
}

// A store that fails ends it; nothing is lost.
func TestStorageFailureEndsDownload(t *testing.T) {
	t.Parallel()
	count := newTally(t)
	host := hosttest.New(t)
	_, store := serveFaulty(t, host, func(s *setup) { s.limits.Records, s.meter = 64, count })
	d, other := host.Device("alice/phone"), host.Device("bob/phone")
	writesNotes(d, 6)
	for what, fault := range map[string]func() error{
		"fails":  func() error { return fmt.Errorf("read: %w", vault.ErrStorage) },
		"panics": func() error { panic("made by the test") },
	} {
		begins(t, d, pep.Download{ID: what, Node: "notes", ChunkBytes: 1, Window: 1})
		c := chunk(t, d)
		store.set(fault)
		acknowledges(t, d, c)
		for count.all()["downloads"] > 0 {
			other.Asks("get", ping)
		}
		store.set(func() error { return nil })
		if got := ids(downloads(t, d, pep.Download{ID: what + "again", Node: "notes", Cursor: c.Page.Cursor})...); len(got) != 5 {
			t.Errorf("%s: %d records are left, want 5", what, len(got))
		}
	}
}

// A service that stops does not wait for devices.
func TestStopEndsDownloads(t *testing.T) {
	t.Parallel()
	s, count := newDownloads(t, nil)
	writesNotes(s.alice, 20)
	begins(t, s.alice, pep.Download{ID: "d", Node: "notes", ChunkBytes: 1})
	chunk(t, s.alice)
	ctx := context.WithoutCancel(t.Context())
	if err := s.service.front.Stop(ctx); err != nil {
		t.Error(err)
	}
	if got := count.all()["downloads"]; got != 0 {
		t.Errorf("%d downloads are under way", got)
	}
	if err := s.service.writer.Drain(ctx); err != nil {
		t.Error(err)
	}
}

// While a device takes nothing, others are served, and what waits for it is as
// little as its window.
func TestBlockedDeviceHurtsOnlyItself(t *testing.T) {
	t.Parallel()
	s, count := newDownloads(t, nil)
	writesNotes(s.alice, 20)
	begins(t, s.alice, pep.Download{ID: "d", Node: "notes", ChunkBytes: 1, Window: 4})
	other := s.host.Device("alice/other")
	for i := range 20 {
		if got := ids(downloads(t, other, pep.Download{ID: fmt.Sprint("o", i), Node: "notes", ChunkBytes: 5000})...); len(got) != 20 {
			t.Fatalf("%d records came, want 20", len(got))
		}
	}
	other.Asks("get", ping) // its acknowledgements are read
	var kept []loopback.Stanza
	for s.alice.Waiting() > 0 {
		st, err := s.alice.Recv(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		kept = append(kept, st)
	}
	if len(kept) != 4 || count.all()["downloads"] != 1 {
		t.Errorf("%d chunks wait for it, %d downloads; want 4 and 1", len(kept), count.all()["downloads"])
	}
	s.survived()
}
