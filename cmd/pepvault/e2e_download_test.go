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

// testDownloads has devices take downloads that do not behave: one whose host
// keeps it although its connection is gone (XEP-0198), one that knows no
// chunks. They hold up nobody, and go on from what they have.
func (h *host) testDownloads(t *testing.T) {
	h.serve(t, chunkJID, "[limits]\nmax_downloads = 1\nrate_per_second = 100000\nrate_burst = 1000000\n[stream]\nack_timeout = \"8s\"\n")
	laptop := mustConnectRaw(t, h.server, alice, "laptop", chunkJID)
	for i := range 30 {
		laptop.must("set", publish("notes", fmt.Sprintf("record-%02d", i), record(1, fmt.Sprint(i))))
	}

	phone := mustConnectRaw(t, h.server, alice, "phone", chunkJID)
	if err := phone.Send([]byte("<enable xmlns='urn:xmpp:sm:3' resume='true'/>")); err != nil {
		t.Fatal(err)
	}
	for s := range phone.heard {
		if s.Name == "enabled" {
			break
		}
	}
	held := phone.takesChunks("", 3)
	phone.begins(pep.Download{ID: "hibernates", Node: "notes", Cursor: held.cursor, ChunkBytes: 500})
	phone.chunk()
	phone.Cut()

	// The host takes all that is sent to it, and says nothing.
	began := time.Now()
	for waits := 0; ; waits++ {
		got, fault := laptop.takesAll(pep.Download{ID: fmt.Sprint("laptop", waits), Node: "notes"})
		if fault == "" {
			if len(got) != 30 {
				t.Errorf("laptop got %d records, want 30", len(got))
			}
			break
		}
		if fault != "wait/resource-constraint" || time.Since(began) > patience {
			t.Fatalf("laptop's download is answered %q", fault)
		}
		laptop.must("get", "<pubsub xmlns='"+nsPubsub+"'><items node='notes'><item id='record-00'/></items></pubsub>")
	}

	phone = mustConnectRaw(t, h.server, alice, "phone", chunkJID)
	got, fault := phone.takesAll(pep.Download{ID: "back", Node: "notes", Cursor: held.cursor})
	if all := slices.Concat(held.ids, got); fault != "" || len(all) != 30 || slices.Contains(held.ids, got[0]) {
		t.Errorf("phone got %q beside %q, %q", got, held.ids, fault)
	}

	// A library that knows no chunks answers them with an error by itself.
	began = time.Now()
	plain := connectTheirs(t, h.server, alice, "plain", chunkJID)
	plain.must("request_download", "node", "notes", "name", "unknown")
	for {
		if got, fault := phone.takesAll(pep.Download{ID: fmt.Sprint("after", time.Since(began)), Node: "notes"}); fault == "" {
			if len(got) != 30 {
				t.Errorf("phone got %d records beside it, want 30", len(got))
			}
			return
		}
		if time.Since(began) > patience {
			t.Fatal("the download of a client that knows no chunks does not end")
		}
	}
}

// taken is what a device has of a download.
type taken struct {
	cursor string
	ids    []string
}

// begins asks for a download; the fault is "" if it begins.
func (d *rawDevice) begins(op pep.Download) string {
	d.t.Helper()
	ctx, cancel := context.WithTimeout(d.t.Context(), patience)
	defer cancel()
	kind, payload := wire.Ask(op)
	answer, err := d.IQ(ctx, kind, d.service, payload)
	if err != nil {
		d.t.Fatal(err)
	}
	if answer.Type == "error" {
		fault, err := wire.DecodeReply(answer.Raw, op)
		if refusal, is := err.(*wire.StanzaError); is {
			return refusal.Type + "/" + refusal.Condition
		}
		d.t.Fatal(fault, err)
	}
	return ""
}

// chunk waits for the next one.
func (d *rawDevice) chunk() (pep.Chunk, c2s.Stanza) {
	d.t.Helper()
	s := d.hears()
	c, err := wire.DecodeChunk(s.Raw)
	if err != nil {
		d.t.Fatalf("%v: %s", err, s.Raw)
	}
	return c, s
}

// takesChunks takes and acknowledges so many chunks, and then refuses one.
func (d *rawDevice) takesChunks(cursor string, n int) (t taken) {
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
	_, s := d.chunk()
	if err := d.Send(wire.AppendError(nil, wire.Header{From: s.From, To: s.To, ID: s.ID}, wire.ErrUnknownChunk)); err != nil {
		d.t.Fatal(err)
	}
	d.must("get", "<ping xmlns='urn:xmpp:ping'/>") // that is read
	return t
}

func (d *rawDevice) acknowledges(s c2s.Stanza) {
	d.t.Helper()
	if err := d.Send(wire.AppendAck(nil, wire.Header{From: s.From, ID: s.ID})); err != nil {
		d.t.Fatal(err)
	}
}

// takesAll takes a download to its end.
func (d *rawDevice) takesAll(op pep.Download) (ids []string, fault string) {
	d.t.Helper()
	if fault := d.begins(op); fault != "" {
		return nil, fault
	}
	for {
		c, s := d.chunk()
		if c.Download != op.ID {
			continue
		}
		d.acknowledges(s)
		for _, change := range c.Page.Changes {
			ids = append(ids, change.ID)
		}
		if !c.Page.More {
			d.must("get", "<ping xmlns='urn:xmpp:ping'/>") // the last one's acknowledgement is read
			return ids, ""
		}
	}
}
