package device

import (
	"fmt"
	"testing"

	"pepvault/pep"
	"pepvault/pep/wire"
	"pepvault/vault"
)

// instead has a client take a download for half of its syncs, also to go on with
// one from where a page or a chunk ended.
func (c *client) instead(op pep.Op) pep.Op {
	if _, is := op.(pep.Sync); !is || c.world.one(2) {
		return op
	}
	c.downloads++
	download, _ := c.Pushed(fmt.Sprint(c.sender.Resource, ".", c.downloads))
	download.ChunkBytes = 1 + c.world.chance.IntN(600)
	return download
}

// lookForChunks has the client go on by itself where no chunk is to come any
// more, or where it gives up too early.
func (c *client) lookForChunks() {
	if c.Downloading() && (len(c.bulk) == 0 && len(c.in) == 0 || c.world.one(15)) {
		c.world.note("%s misses the next chunk", c.sender.Resource)
		c.Stalled()
	}
}

// sendChunk puts the next chunk of a download on its way, to be read when its
// turn has come or, since more than one is under way, before.
func (c *client) sendChunk(begun pep.DownloadBegun, cursor string, seq int) {
	read := func() func(*client) {
		page, err := begun.Read(cursor)
		if err != nil || c.asked != begun.ID {
			return func(*client) {} // it ends without a word
		}
		chunk := pep.Chunk{Download: begun.ID, Seq: seq, Page: page}
		if c.world.wired {
			if chunk, err = wire.DecodeChunk(wire.AppendChunk(nil, wire.Header{}, chunk)); err != nil {
				panic(err)
			}
		}
		if page.More && !c.world.one(10) {
			c.sendChunk(begun, page.Cursor, seq+1)
		}
		return func(c *client) {
			c.world.note("%s gets chunk %d of %s", c.sender.Resource, chunk.Seq, chunk.Download)
			for range [...]int{1, 1, 1, 1, 1, 1, 0, 2}[c.world.chance.IntN(8)] { // or it is lost, or comes twice
				c.Chunk(chunk)
			}
		}
	}
	d := delivery{read: read}
	c.bulk = append(c.bulk, d)
	if c.world.one(2) {
		c.bulk[len(c.bulk)-1] = delivery{give: read()}
	}
}

func TestReplicaTakesOnlyTheNextChunk(t *testing.T) {
	t.Parallel()
	chunk := func(id string, seq int, more bool, record string) pep.Chunk {
		payload := vault.Payload{Form: vault.Native, Data: []byte("x")}
		return pep.Chunk{Download: id, Seq: seq, Page: pep.SyncPage{
			Cursor: fmt.Sprint("c", seq), More: more, Reset: vault.ResetNew, First: seq == 0,
			Changes: []vault.Change{{Record: vault.Record{ID: record, Revision: vault.Revision(seq + 1), Payload: payload}}},
		}}
	}
	r := New(node)
	if r.Chunk(chunk("", 0, true, "a")) {
		t.Error("a chunk that nobody asked for was taken")
	}
	r.Ask()
	op, ok := r.Pushed("d")
	if want := (pep.Download{ID: "d", Node: node, Cursor: pep.NoCursor}); op != want || !ok {
		t.Fatalf("asks %+v, %v", op, ok)
	}
	r.Answered(pep.DownloadBegun{ID: "d"})
	for _, step := range []struct {
		chunk pep.Chunk
		want  bool
	}{
		{chunk("d", 1, true, "b"), false},
		{chunk("other", 0, true, "a"), false},
		{chunk("d", 0, true, "a"), true},
		{chunk("d", 0, true, "a"), false},
		{chunk("d", 1, true, "b"), true},
	} {
		if got := r.Chunk(step.chunk); got != step.want {
			t.Errorf("chunk %d of %s is taken: %v", step.chunk.Seq, step.chunk.Download, got)
		}
		if op := r.Ask(); op != nil {
			t.Errorf("asks %+v while chunks come", op)
		}
	}
	if len(r.Records()) != 0 {
		t.Errorf("shows %v before the end", r.Records())
	}
	r.Stalled()
	if got, want := r.Ask(), (pep.Sync{Node: node, Cursor: "c1"}); got != pep.Op(want) {
		t.Errorf("goes on with %+v, want %+v", got, want)
	}
	if _, ok := r.Pushed("e"); !ok {
		t.Error("it can't go on by a download")
	}
	if r.Chunk(chunk("d", 2, true, "c")) {
		t.Error("a chunk of the download before was taken")
	}
	last := chunk("e", 0, false, "c")
	last.Page.First = false
	if !r.Chunk(last) || len(r.Records()) != 3 || r.Downloading() || r.Ask() != nil {
		t.Errorf("ends with %v", r.Records())
	}
	if _, ok := r.Pushed("f"); ok {
		t.Error("what was not asked for is pushed")
	}
}
