package main_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"pepvault/pep"
	"pepvault/pep/wire"
	"pepvault/vault/device/c2s"
)

const mallory = "mallory@localhost"

// testMisbehaving has devices of one account do what they can: one never reads,
// one acknowledges nothing, one vanishes, one asks fifty times. Each hurts only
// itself; in the end they get all that they asked for, too.
func (h *host) testMisbehaving(t *testing.T) {
	h.serve(t, chunkJID, "[limits]\nrate_per_second = 100000\nrate_burst = 1000000\n[stream]\nack_timeout = \"8s\"\n")
	laptop := h.withNotes(t, alice, 30)
	h.withNotes(t, mallory, 30)

	h.deafDevice(t, mallory, "deaf", chunkJID)
	mute := mustConnectRaw(t, h.server, mallory, "mute", chunkJID)
	mute.begins(pep.Download{ID: "mute", Node: "notes", ChunkBytes: 500})
	gone := mustConnectRaw(t, h.server, mallory, "gone", chunkJID)
	gone.begins(pep.Download{ID: "gone", Node: "notes", ChunkBytes: 500})
	gone.chunk()
	gone.Cut()
	greedy := mustConnectRaw(t, h.server, mallory, "greedy", chunkJID)
	for i := range 50 {
		kind, payload := wire.Ask(pep.Download{ID: fmt.Sprint("greedy", i), Node: "notes", ChunkBytes: 500})
		for what, request := range map[string][]byte{
			"download": fmt.Appendf(nil, "<iq type='%s' id='d%d' to='%s'>%s</iq>", kind, i, chunkJID, payload),
			"vault":    fmt.Appendf(nil, "<iq type='get' id='v%d' to='%s'>%s</iq>", i, chunkJID, items("notes", "", "")),
		} {
			if err := greedy.Send(request); err != nil {
				t.Fatalf("%s: %v", what, err)
			}
		}
	}
	for i := range 10 {
		if got, fault := laptop.takesAll(pep.Download{ID: fmt.Sprint("beside", i), Node: "notes", ChunkBytes: 2000}); fault != "" || len(got) != 30 {
			t.Fatalf("beside them, laptop got %d records, %q", len(got), fault)
		}
		laptop.must("get", items("notes", "", "<item id='record-00'/>"))
	}
	answers := map[string]int{}
	for len(answers) < 100 {
		s := greedy.hears()
		if s.Type != "set" {
			answers[s.ID]++
		}
		if answers[s.ID] > 1 {
			t.Fatalf("%s was answered twice", s.ID)
		}
	}
	if got := mute.takesRest(pep.Download{ID: "mute again", Node: "notes"}); len(got) != 30 {
		t.Errorf("mute got %d records in the end, want 30", len(got))
	}
	if got := greedy.takesRest(pep.Download{ID: "greedy again", Node: "notes"}); len(got) != 30 {
		t.Errorf("greedy got %d records in the end, want 30", len(got))
	}
}

// testInactive has a device take a download while its client says that nobody
// looks at it (XEP-0352): the host may hold back what is sent to it.
func (h *host) testInactive(t *testing.T) {
	h.serve(t, chunkJID, "[limits]\nmax_downloads = 1\n[stream]\nack_timeout = \"8s\"\n")
	h.withNotes(t, alice, 30)
	phone := mustConnectRaw(t, h.server, alice, "phone", chunkJID)
	if err := phone.Send([]byte("<inactive xmlns='urn:xmpp:csi:0'/>")); err != nil {
		t.Fatal(err)
	}
	if got, fault := phone.takesAll(pep.Download{ID: "inactive", Node: "notes", ChunkBytes: 500}); fault != "" || len(got) != 30 {
		t.Errorf("got %d records, %q, want 30", len(got), fault)
	}
	if err := phone.Send([]byte("<active xmlns='urn:xmpp:csi:0'/>")); err != nil {
		t.Fatal(err)
	}
	if got, fault := phone.takesAll(pep.Download{ID: "active", Node: "notes", ChunkBytes: 500}); fault != "" || len(got) != 30 {
		t.Errorf("active again, got %d records, %q, want 30", len(got), fault)
	}
}

// testBlocks has an account block the service in the middle of a download
// (XEP-0191): it ends, and goes on where it was when the account thinks better
// of it.
func (h *host) testBlocks(t *testing.T) {
	h.serve(t, chunkJID, "[limits]\nmax_downloads = 1\n[stream]\nack_timeout = \"8s\"\n")
	laptop := h.withNotes(t, alice, 30)
	h.withNotes(t, bob, 30)
	phone := mustConnectRaw(t, h.server, bob, "phone", chunkJID)
	held := phone.takesUntil("", 3)
	blocking := func(what string) {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		answer, err := phone.IQ(ctx, "set", "", []byte("<"+what+" xmlns='urn:xmpp:blocking'><item jid='"+chunkJID+"'/></"+what+">"))
		if err != nil || answer.Type != "result" {
			t.Fatalf("%s: %s, %v", what, answer.Raw, err)
		}
	}
	blocking("block")
	if got, fault := laptop.takesAll(pep.Download{ID: "beside", Node: "notes"}); fault != "" || len(got) != 30 {
		t.Errorf("laptop got %d records, %q", len(got), fault)
	}
	blocking("unblock")
	got := phone.takesRest(pep.Download{ID: "rest", Node: "notes", Cursor: held.cursor})
	if all := slices.Concat(held.ids, got); len(all) != 30 || slices.Contains(held.ids, got[0]) {
		t.Errorf("phone got %q beside %q", got, held.ids)
	}
}

// testServiceRestarts ends the service in the middle of a download, in order
// and by SIGKILL: the device, which stays connected, goes on from its last
// chunk.
func (h *host) testServiceRestarts(t *testing.T) {
	s := h.serve(t, chunkJID, "")
	h.withNotes(t, alice, 30)
	phone := mustConnectRaw(t, h.server, alice, "phone", chunkJID)
	for what, end := range map[string]func(){"killed": s.kill, "terminated": s.terminate} {
		held := phone.takesUntil("", 3)
		end()
		s.start()
		phone.forgets()
		got := phone.takesRest(pep.Download{ID: what, Node: "notes", Cursor: held.cursor})
		if all := slices.Concat(held.ids, got); len(all) != 30 || slices.Contains(held.ids, got[0]) {
			t.Errorf("%s: phone got %q beside %q", what, got, held.ids)
		}
	}
}

// testHostRestartsInDownload restarts the host in the middle of a download.
func (h *host) testHostRestartsInDownload(t *testing.T) {
	s := h.serve(t, chunkJID, "")
	h.withNotes(t, alice, 30)
	held := mustConnectRaw(t, h.server, alice, "phone", chunkJID).takesUntil("", 3)
	attached := s.log.count("msg=attached")
	if err := h.server.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.awaitAttached(attached + 1)
	phone := mustConnectRaw(t, h.server, alice, "phone", chunkJID)
	got := phone.takesRest(pep.Download{ID: "rest", Node: "notes", Cursor: held.cursor})
	if all := slices.Concat(held.ids, got); len(all) != 30 || slices.Contains(held.ids, got[0]) {
		t.Errorf("phone got %q beside %q", got, held.ids)
	}
}

// withNotes connects a device that has stored so many records.
func (h *host) withNotes(t *testing.T, account string, n int) *rawDevice {
	t.Helper()
	d := mustConnectRaw(t, h.server, account, "laptop", chunkJID)
	for i := range n {
		d.must("set", publish("notes", fmt.Sprintf("record-%02d", i), record(1, fmt.Sprint(i))))
	}
	return d
}

// deafDevice connects a device that asks for a download and for its vault fifty
// times, and from then on reads nothing.
func (h *host) deafDevice(t *testing.T, account, resource, service string) {
	t.Helper()
	heard := make(chan struct{})
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	conn, err := c2s.Dial(ctx, c2s.Options{
		Server: h.server.Addr, JID: account, Resource: resource, Password: password, TLS: h.server.TLS(),
		Handle: func(c2s.Stanza) bool { <-heard; return true },
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { close(heard); conn.Cut() })
	kind, payload := wire.Ask(pep.Download{ID: "deaf", Node: "notes", ChunkBytes: 500})
	requests := [][]byte{fmt.Appendf(nil, "<iq type='%s' id='d' to='%s'>%s</iq>", kind, service, payload)}
	for i := range 50 {
		requests = append(requests, fmt.Appendf(nil, "<iq type='get' id='v%d' to='%s'>%s</iq>", i, service, items("notes", "", "")))
	}
	for _, request := range requests {
		if err := conn.Send(request); err != nil {
			t.Fatal(err)
		}
	}
}

// takesUntil takes and acknowledges so many chunks and leaves the download
// there: the next chunk has come and is without an answer.
func (d *rawDevice) takesUntil(cursor string, n int) (t taken) {
	d.t.Helper()
	if fault := d.begins(pep.Download{ID: "some", Node: "notes", Cursor: cursor, ChunkBytes: 500, Window: 1}); fault != "" {
		d.t.Fatal(fault)
	}
	for range n {
		c, s := d.chunk()
		d.acknowledges(s)
		t.cursor = c.Page.Cursor
		for _, change := range c.Page.Changes {
			t.ids = append(t.ids, change.ID)
		}
	}
	d.chunk()
	return t
}

// forgets drops what has come and was not read.
func (d *rawDevice) forgets() {
	d.must("get", "<ping xmlns='urn:xmpp:ping'/>")
	for len(d.heard) > 0 {
		<-d.heard
	}
}

// takesRest takes a download to its end. While it is refused for now, because
// the one that was left counts, it is asked for again.
func (d *rawDevice) takesRest(op pep.Download) []string {
	d.t.Helper()
	id, began := op.ID, time.Now()
	for try := 0; ; try++ {
		op.ID = fmt.Sprint(id, " ", try)
		got, fault := d.takesAll(op)
		if fault == "" {
			return got
		}
		if fault != "wait/resource-constraint" || time.Since(began) > patience {
			d.t.Fatalf("%s is answered %q", op.ID, fault)
		}
		d.must("get", "<ping xmlns='urn:xmpp:ping'/>")
	}
}
