package echo

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"pepvault/component/link"
	"pepvault/component/loopback"
	"pepvault/pep"
	"pepvault/pep/wire"
	"pepvault/vault"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const node = "notes"

// start attaches an echo to a host of its own.
func start(t testing.TB, host loopback.Options, o Options) *loopback.Host {
	t.Helper()
	h, err := loopback.Start(host)
	if err != nil {
		t.Fatal(err)
	}
	ready := make(chan struct{})
	o.Server, o.JID, o.Secret = h.Addr(), h.Component(), link.Secret(h.Secret())
	o.Ready = sync.OnceFunc(func() { close(ready) })
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- Run(ctx, o) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("it ended with %v", err)
		}
		h.Close()
	})
	select {
	case <-ready:
	case err := <-ended:
		ended <- err
		t.Fatal(err)
	}
	return h
}

func connect(t testing.TB, h *loopback.Host, jid string) *loopback.Device {
	t.Helper()
	d, err := h.Connect(jid)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// ask puts a call to the echo and returns its decoded answer with the size of
// the stanza.
func ask(t testing.TB, d *loopback.Device, call wire.Call) (any, int, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	kind, payload := wire.Ask(call)
	s, err := d.IQ(ctx, kind, d.Host().Component(), string(payload))
	if err != nil {
		t.Fatal(err)
	}
	answer, err := wire.DecodeReply(s.Raw, call)
	return answer, len(s.Raw), err
}

func mustAsk[A any](t testing.TB, d *loopback.Device, call wire.Call) (A, int) {
	t.Helper()
	answer, size, err := ask(t, d, call)
	if err != nil {
		t.Fatalf("%T: %v", call, err)
	}
	return answer.(A), size
}

// ids checks the size of records and returns their ids.
func ids(t testing.TB, records []vault.Record, bytes int) (all []string) {
	t.Helper()
	for _, r := range records {
		if len(r.Payload.Data) != bytes || r.Payload.Form != vault.Native {
			t.Errorf("record %s has %d bytes, want %d", r.ID, len(r.Payload.Data), bytes)
		}
		all = append(all, r.ID)
	}
	return all
}

func TestReads(t *testing.T) {
	t.Parallel()
	d := connect(t, start(t, loopback.Options{}, Options{}), "alice@localhost/phone")
	page, size := mustAsk[pep.ItemsPage](t, d, pep.Items{Node: node, IDs: []string{"any"}})
	if got := ids(t, page.Records, 924); len(got) != 1 || got[0] != "any" || page.Set != nil {
		t.Errorf("by id: %v", got)
	}
	if size < 1300 || size > 1700 {
		t.Errorf("one record takes %d bytes on the wire", size)
	}
	page, size = mustAsk[pep.ItemsPage](t, d, pep.Items{Node: node})
	if got := ids(t, page.Records, 924); len(got) != 256 || page.Set != nil {
		t.Errorf("plain: %d records, %v", len(got), page.Set)
	}
	if size < 256*1300 || size > 256*1450 {
		t.Errorf("a vault takes %d bytes on the wire", size)
	}
}

// TestPages goes through a vault that is larger than a stanza may be, as a
// device does that is given a first page unasked, and through a small one.
func TestPages(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name         string
		records, max int
		first        *pep.PageRequest
		pages        int
	}{
		{"large", 1000, -1, nil, 3},
		{"asked for", 256, 24, &pep.PageRequest{Max: 24}, 11},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			d := connect(t, start(t, loopback.Options{}, Options{Records: test.records, RecordBytes: 900}), "alice@localhost/phone")
			request := pep.Items{Node: node, Page: test.first}
			seen, pages := make(map[string]bool), 0
			for {
				page, size := mustAsk[pep.ItemsPage](t, d, request)
				if size > stanzaBytes {
					t.Errorf("a stanza of %d bytes", size)
				}
				if page.Set == nil || page.Set.Count != test.records {
					t.Fatalf("page %d: %+v", pages, page.Set)
				}
				if len(page.Records) == 0 {
					break
				}
				pages++
				for _, id := range ids(t, page.Records, 900) {
					if seen[id] {
						t.Errorf("%s came twice", id)
					}
					seen[id] = true
				}
				request.Page = &pep.PageRequest{Max: test.max, After: page.Set.Last}
			}
			if len(seen) != test.records || pages != test.pages {
				t.Errorf("%d records on %d pages, want %d on %d", len(seen), pages, test.records, test.pages)
			}
		})
	}
}

func TestWindow(t *testing.T) {
	t.Parallel()
	seven := 7
	for name, test := range map[string]struct {
		page       *pep.PageRequest
		from, most int
		err        error
	}{
		"none":             {nil, 0, 10, nil},
		"first":            {&pep.PageRequest{Max: 4}, 0, 4, nil},
		"all":              {&pep.PageRequest{Max: -1}, 0, 10, nil},
		"after":            {&pep.PageRequest{Max: 4, After: "3"}, 4, 4, nil},
		"last":             {&pep.PageRequest{Max: 4, Last: true}, 6, 4, nil},
		"before":           {&pep.PageRequest{Max: 4, Before: "6"}, 2, 4, nil},
		"before the start": {&pep.PageRequest{Max: 4, Before: "2"}, 0, 2, nil},
		"index":            {&pep.PageRequest{Max: 4, Index: &seven}, 7, 4, nil},
		"beyond":           {&pep.PageRequest{Max: 4, After: "10"}, 0, 0, pep.ErrUnknownPage},
		"no place":         {&pep.PageRequest{Max: 4, Before: "x"}, 0, 0, pep.ErrUnknownPage},
	} {
		from, most, err := window(test.page, 10)
		if from != test.from || most != test.most || err != test.err {
			t.Errorf("%s: got %d, %d, %v; want %d, %d, %v", name, from, most, err, test.from, test.most, test.err)
		}
	}
}

// TestSync follows a vault by its cursor: all of it first, then what was
// written, in pages.
func TestSync(t *testing.T) {
	t.Parallel()
	d := connect(t, start(t, loopback.Options{}, Options{Records: 10}), "alice@localhost/phone")
	pass := func(cursor string, max int) (changes, pages int, at string) {
		for {
			page, _ := mustAsk[pep.SyncPage](t, d, pep.Sync{Node: node, Cursor: cursor, Max: max})
			changes, pages, cursor = changes+len(page.Changes), pages+1, page.Cursor
			if page.Records != 10 {
				t.Errorf("the vault has %d records", page.Records)
			}
			if !page.More {
				return changes, pages, cursor
			}
		}
	}
	changes, pages, at := pass("", 4)
	if changes != 10 || pages != 3 {
		t.Errorf("a new device got %d changes on %d pages, want 10 on 3", changes, pages)
	}
	if changes, _, same := pass(at, 4); changes != 0 || same != at {
		t.Errorf("nothing was written, but %d changes came", changes)
	}
	item := pep.Item{ID: "x", KeyVersion: 1, Payload: vault.Payload{Form: vault.Native, Data: []byte("cipher")}}
	for range 5 {
		mustAsk[pep.Published](t, d, pep.Publish{Node: node, Items: []pep.Item{item}})
	}
	if changes, pages, later := pass(at, 2); changes != 5 || pages != 3 || later == at {
		t.Errorf("after five saves %d changes came on %d pages, want 5 on 3", changes, pages)
	}
	for _, cursor := range []string{"echo.99", "echo.x", "echo.1.-1", "echo.1.2.3", "other.1"} {
		if _, _, err := ask(t, d, pep.Sync{Node: node, Cursor: cursor}); err == nil {
			t.Errorf("cursor %q was taken", cursor)
		}
	}
}

// TestNotifies holds that all devices of the account that are there hear of a
// save, with the record and the state, and nobody else.
func TestNotifies(t *testing.T) {
	t.Parallel()
	h := start(t, loopback.Options{}, Options{})
	devices := make(map[string]*loopback.Device)
	for _, jid := range []string{"alice@localhost/phone", "alice@localhost/laptop", "alice@localhost/gone", "alice@localhost/silent", "bob@localhost/phone"} {
		devices[jid] = connect(t, h, jid)
		if !strings.HasSuffix(jid, "silent") {
			send(t, devices[jid], "<presence to='vault.localhost'/>")
		}
	}
	devices["alice@localhost/gone"].Close()
	// Requests of all come behind their presence.
	for jid, d := range devices {
		if !strings.HasSuffix(jid, "gone") {
			mustAsk[wire.Pong](t, d, wire.Ping{})
		}
	}
	data := []byte(strings.Repeat("x", 924))
	published, _ := mustAsk[pep.Published](t, devices["alice@localhost/phone"], pep.Publish{
		Node: node, State: true,
		Items: []pep.Item{{ID: "a", KeyVersion: 3, Payload: vault.Payload{Form: vault.Native, Data: data}}},
	})
	if published.State == nil || published.IDs[0] != "a" {
		t.Errorf("answer %+v", published)
	}
	for jid, d := range devices {
		if strings.HasSuffix(jid, "gone") {
			continue
		}
		mustAsk[wire.Pong](t, d, wire.Ping{}) // what is for it has come
		messages := d.Messages()
		if strings.HasPrefix(jid, "bob") || strings.HasSuffix(jid, "silent") {
			if len(messages) > 0 {
				t.Errorf("%s got %s", jid, messages[0])
			}
			continue
		}
		if len(messages) != 1 {
			t.Errorf("%s got %d messages, want 1", jid, len(messages))
			continue
		}
		n, err := wire.DecodeMessage(messages[0].Raw)
		if err != nil {
			t.Fatal(err)
		}
		if len(n.Changes) != 1 || string(n.Changes[0].Payload.Data) != string(data) || n.State == nil || n.State.Cursor != published.State.Cursor {
			t.Errorf("%s was told %s", jid, messages[0])
		}
	}
	if got := h.Stats().Vanished; got > 0 {
		t.Errorf("%d stanzas were for a device that is gone", got)
	}
}

func send(t testing.TB, d *loopback.Device, raw string) {
	t.Helper()
	if err := d.Send([]byte(raw)); err != nil {
		t.Fatal(err)
	}
}

// TestPushes takes pushed downloads as a device does, acknowledges each chunk
// late, and holds that no more than a window is under way.
func TestPushes(t *testing.T) {
	t.Parallel()
	h := start(t, loopback.Options{}, Options{Records: 100})
	d := connect(t, h, "alice@localhost/phone")
	begun, _ := mustAsk[pep.DownloadBegun](t, d, pep.Download{ID: "mine", Node: node, ChunkBytes: 10_000, Window: 2})
	if begun.Records != 100 || begun.ChunkBytes != 10_000 || begun.Window != 2 || begun.Reset != vault.ResetNew {
		t.Errorf("it begins with %+v", begun)
	}
	records, cursor := 0, ""
	for seq, last := 0, false; !last; {
		var waiting []loopback.Stanza
		for len(waiting) < 2 {
			s := receive(t, d)
			chunk, err := wire.DecodeChunk(s.Raw)
			if err != nil {
				t.Fatal(err)
			}
			if chunk.Seq != seq || chunk.Download != "mine" || chunk.Page.First != (seq == 0) {
				t.Errorf("chunk %d is %+v", seq, chunk)
			}
			waiting = append(waiting, s)
			seq++
			records += len(chunk.Page.Changes)
			cursor, last = chunk.Page.Cursor, !chunk.Page.More
			if len(s.Raw) > 12_000 {
				t.Errorf("a chunk of %d bytes", len(s.Raw))
			}
			if last {
				break
			}
		}
		mustAsk[wire.Pong](t, d, wire.Ping{}) // what would be too much has come
		if early := d.Waiting(); early > 0 {
			t.Errorf("%d stanzas beyond the window", early)
		}
		for _, s := range waiting {
			if err := d.Reply(s, ""); err != nil {
				t.Fatal(err)
			}
		}
	}
	if records != 100 {
		t.Errorf("%d records came", records)
	}
	page, _ := mustAsk[pep.SyncPage](t, d, pep.Sync{Node: node, Cursor: cursor})
	if len(page.Changes) > 0 || page.Reset != vault.NoReset {
		t.Errorf("the last cursor does not stand for all: %+v", page)
	}

	// A refused chunk ends the download.
	mustAsk[pep.DownloadBegun](t, d, pep.Download{ID: "other", Node: node, ChunkBytes: 10_000, Window: 1})
	if err := d.Refuse(receive(t, d), "cancel", "item-not-found"); err != nil {
		t.Fatal(err)
	}
	mustAsk[wire.Pong](t, d, wire.Ping{})
	mustAsk[wire.Pong](t, d, wire.Ping{}) // bulk had its turn between the two
	if more := d.Waiting(); more > 0 {
		t.Errorf("%d stanzas behind a refusal", more)
	}
	if _, _, err := ask(t, d, pep.Download{ID: "bad", Node: node, Cursor: "other"}); err == nil {
		t.Error("a foreign cursor was taken")
	}
}

func receive(t testing.TB, d *loopback.Device) loopback.Stanza {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	s, err := d.Recv(ctx)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestOtherRequests(t *testing.T) {
	t.Parallel()
	d := connect(t, start(t, loopback.Options{}, Options{}), "alice@localhost/phone")
	created, _ := mustAsk[pep.Created](t, d, pep.Create{Node: node})
	if created.Node != node {
		t.Errorf("created %q", created.Node)
	}
	mustAsk[pep.Configured](t, d, pep.Configure{Node: node, Form: pep.Form{Type: pep.FormConfig}})
	mustAsk[pep.VaultList](t, d, pep.ListVaults{})
	mustAsk[wire.VersionInfo](t, d, wire.Version{})
	info, _ := mustAsk[pep.ServiceInfo](t, d, pep.DescribeService{})
	if info.Name != "echo" {
		t.Errorf("it is called %q", info.Name)
	}
	if _, _, err := ask(t, d, pep.Purge{Node: node}); err == nil {
		t.Error("a purge was answered as if it were done")
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for _, payload := range []string{"<what xmlns='urn:example'/>", "<pubsub xmlns='http://jabber.org/protocol/pubsub'><items/></pubsub>"} {
		s, err := d.IQ(ctx, "get", "vault.localhost", payload)
		if err != nil || s.Err() == nil {
			t.Errorf("%s: got %v, %v; want an error stanza", payload, s, err)
		}
	}
}

func TestBadOptions(t *testing.T) {
	t.Parallel()
	if err := Run(t.Context(), Options{Server: "nowhere", JID: "vault.localhost"}); err == nil {
		t.Error("an echo without secret ran")
	}
}
