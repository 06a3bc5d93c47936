package component_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pepvault/component/hosttest"
	"pepvault/pep"
	"pepvault/pep/wire"
	"pepvault/vault"
)

// writesNotes stores n records of about a kilobyte.
func writesNotes(d *hosttest.Device, n int) {
	for i := range n {
		d.Asks("set", publication("notes", fmt.Sprintf("r%02d", i), native(strings.Repeat("x", 700))))
	}
}

// begins asks for a download, and returns what the service says.
func begins(t testing.TB, d *hosttest.Device, op pep.Download) pep.DownloadBegun {
	t.Helper()
	kind, payload := wire.Ask(op)
	answer, err := wire.DecodeReply(d.Asks(kind, string(payload)).Raw, op)
	if err != nil {
		t.Fatal(err)
	}
	return answer.(pep.DownloadBegun)
}

// arrived is a chunk that has come to a device.
type arrived struct {
	pep.Chunk
	id string
}

// chunk waits for the next one.
func chunk(t testing.TB, d *hosttest.Device) arrived {
	t.Helper()
	for {
		s, err := d.Recv(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if s.Name != "iq" {
			continue
		}
		c, err := wire.DecodeChunk(s.Raw)
		if err != nil {
			t.Fatalf("%v: %s", err, s)
		}
		return arrived{c, s.ID}
	}
}

func acknowledges(t testing.TB, d *hosttest.Device, c arrived) {
	t.Helper()
	send(t, d, `<iq type='result' id='`+c.id+`' to='`+d.Host().Component()+`'/>`)
}

// downloads takes a whole download and returns its pages.
func downloads(t testing.TB, d *hosttest.Device, op pep.Download) []pep.SyncPage {
	t.Helper()
	begins(t, d, op)
	var pages []pep.SyncPage
	for {
		c := chunk(t, d)
		if c.Download != op.ID { // one that was on its way when the link was lost
			send(t, d, `<iq type='error' id='`+c.id+`' to='`+d.Host().Component()+`'><error type='cancel'/></iq>`)
			continue
		}
		if c.Seq != len(pages) {
			t.Fatalf("chunk %d of %q came, want %d of %q", c.Seq, c.Download, len(pages), op.ID)
		}
		acknowledges(t, d, c)
		if pages = append(pages, c.Page); !c.Page.More {
			return pages
		}
	}
}

// pulls takes what a sync brings from a cursor on.
func pulls(t testing.TB, d *hosttest.Device, cursor string) []pep.SyncPage {
	t.Helper()
	var pages []pep.SyncPage
	for {
		op := pep.Sync{Node: "notes", Cursor: cursor, Bytes: 3000}
		kind, payload := wire.Ask(op)
		answer, err := wire.DecodeReply(d.Asks(kind, string(payload)).Raw, op)
		if err != nil {
			t.Fatal(err)
		}
		page := answer.(pep.SyncPage)
		page.Owner, page.Node, page.Records = "", "", 0 // as a chunk has it
		pages, cursor = append(pages, page), page.Cursor
		if !page.More {
			return pages
		}
	}
}

// ids are those of all records on pages, in their order.
func ids(pages ...pep.SyncPage) (list []string) {
	for _, p := range pages {
		for _, c := range p.Changes {
			list = append(list, c.ID)
		}
	}
	return list
}

// newDownloads is a service that counts its downloads.
func newDownloads(t *testing.T, change func(*setup)) (*stage, *tally) {
	t.Helper()
	count := newTally(t)
	s := newStage(t, func(s *setup) {
		s.limits.Records, s.meter = 64, count
		if change != nil {
			change(s)
		}
	})
	return s, count
}

// none waits until no download is under way.
func (s *stage) none(count *tally) {
	s.t.Helper()
	for count.all()["downloads"] > 0 {
		s.bob.Asks("get", ping)
	}
}

// Pages and chunks are one thing: the same bounds give the same.
func TestDownloadIsSyncPushed(t *testing.T) {
	t.Parallel()
	s, count := newDownloads(t, nil)
	writesNotes(s.alice, 20)
	s.alice.Asks("set", `<pubsub xmlns='http://jabber.org/protocol/pubsub'><retract node='notes'><item id='r07'/></retract></pubsub>`)
	pulled := pulls(t, s.alice, "")
	pushed := downloads(t, s.alice, pep.Download{ID: "d", Node: "notes", ChunkBytes: 3000})
	if got, want := fmt.Sprintf("%+v", pushed), fmt.Sprintf("%+v", pulled); got != want {
		t.Errorf("chunks are %.500s\nwant pages   %.500s", got, want)
	}
	if len(pulled) < 5 || len(ids(pulled...)) != 19 {
		t.Errorf("%d pages with %d records", len(pulled), len(ids(pulled...)))
	}
	s.none(count)
	s.survived()
	if count.all()["download ok"] != 1 || count.all()["chunk bytes"] < 19*1000 {
		t.Errorf("counted %v", count.all())
	}
}

// Every chunk's cursor goes on, by either form, to the same end.
func TestEveryChunkResumes(t *testing.T) {
	t.Parallel()
	s, _ := newDownloads(t, nil)
	writesNotes(s.alice, 8)
	pages := downloads(t, s.alice, pep.Download{ID: "d", Node: "notes", ChunkBytes: 2000})
	all := ids(pages...)
	for i, p := range pages {
		want := all[len(ids(pages[:i+1]...)):]
		if got := ids(pulls(t, s.alice, p.Cursor)...); !slices.Equal(got, want) {
			t.Errorf("a sync from chunk %d brings %v, want %v", i, got, want)
		}
		resumed := downloads(t, s.alice, pep.Download{ID: fmt.Sprint("again", i), Node: "notes", Cursor: p.Cursor, ChunkBytes: 1})
		if got := ids(resumed...); !slices.Equal(got, want) {
			t.Errorf("a download from chunk %d brings %v, want %v", i, got, want)
		}
		if resumed[len(resumed)-1].Cursor != pages[len(pages)-1].Cursor {
			t.Errorf("it ends elsewhere")
		}
	}
	s.survived()
}

// Bounds count as far as the service's own go, and a record is never cut.
func TestBoundsOfChunks(t *testing.T) {
	t.Parallel()
	s, _ := newDownloads(t, func(s *setup) { s.chunk, s.window = 5000, 2 })
	writesNotes(s.alice, 12)
	for what, op := range map[string]pep.Download{
		"huge":   {ChunkBytes: 1<<31 - 1, Window: 1<<31 - 1},
		"none":   {},
		"tiny":   {ChunkBytes: 1, Window: 1},
		"normal": {ChunkBytes: 3000, Window: 2},
	} {
		op.ID, op.Node = "<&'"+what+strings.Repeat("é", 200), "notes"
		began := begins(t, s.alice, op)
		if began.ID != op.ID || began.ChunkBytes > 5000 || began.Window > 2 || began.Records != 12 {
			t.Errorf("%s: began %+v", what, began)
		}
		var got []string
		for last := false; !last; {
			c := chunk(t, s.alice)
			for i := 1; i < len(c.Page.Changes); i++ {
				if size := len(wire.AppendChunk(nil, wire.Header{}, c.Chunk)); size > began.ChunkBytes+1000 {
					t.Errorf("%s: a chunk of %d records takes %d bytes", what, len(c.Page.Changes), size)
				}
			}
			got = append(got, ids(c.Page)...)
			last = !c.Page.More
			acknowledges(t, s.alice, c)
		}
		if len(got) != 12 {
			t.Errorf("%s: %d records came, want 12", what, len(got))
		}
	}
	s.survived()
}

// What was changed while a download went on is in it at its end.
func TestDownloadEndsWithThePresent(t *testing.T) {
	t.Parallel()
	s, _ := newDownloads(t, nil)
	writesNotes(s.alice, 4)
	laptop := s.host.Device("alice/laptop")
	begins(t, s.alice, pep.Download{ID: "d", Node: "notes", ChunkBytes: 1, Window: 1})
	acknowledges(t, s.alice, chunk(t, s.alice))
	second := chunk(t, s.alice)
	laptop.Asks("set", publication("notes", "r00", native("newer")))
	laptop.Asks("set", `<pubsub xmlns='http://jabber.org/protocol/pubsub'><retract node='notes'><item id='r03'/></retract></pubsub>`)
	var got []string
	for c := second; ; c = chunk(t, s.alice) {
		got = append(got, ids(c.Page)...)
		acknowledges(t, s.alice, c)
		if !c.Page.More {
			break
		}
	}
	if want := []string{"r01", "r02", "r00", "r03"}; !slices.Equal(got, want) {
		t.Errorf("the rest is %v, want %v", got, want)
	}
}

// A vault that was deleted and made again: the next chunk begins another pass.
func TestVaultOfDownloadIsMadeAnew(t *testing.T) {
	t.Parallel()
	s, count := newDownloads(t, nil)
	writesNotes(s.alice, 4)
	laptop := s.host.Device("alice/laptop")
	begins(t, s.alice, pep.Download{ID: "d", Node: "notes", ChunkBytes: 1, Window: 1})
	first := chunk(t, s.alice)
	laptop.Asks("set", `<pubsub xmlns='http://jabber.org/protocol/pubsub#owner'><delete node='notes'/></pubsub>`)
	writesNotes(laptop, 1)
	acknowledges(t, s.alice, first)
	second := chunk(t, s.alice)
	if p := second.Page; second.Seq != 1 || p.Reset != vault.ResetEnded || !p.First || p.More || len(p.Changes) != 1 {
		t.Errorf("the chunk behind the end is %+v", second)
	}
	acknowledges(t, s.alice, second)

	begins(t, s.alice, pep.Download{ID: "e", Node: "notes", ChunkBytes: 1, Window: 1})
	first = chunk(t, s.alice)
	writesNotes(laptop, 3)
	laptop.Asks("set", `<pubsub xmlns='http://jabber.org/protocol/pubsub#owner'><delete node='notes'/></pubsub>`)
	acknowledges(t, s.alice, first)
	if first.Page.More {
		c := chunk(t, s.alice)
		if p := c.Page; p.Reset != vault.ResetEnded || !p.First || p.More || p.Cursor != pep.NoCursor {
			t.Errorf("the chunk behind the deletion is %+v", c)
		}
		acknowledges(t, s.alice, c)
	}
	s.none(count)
}
