package echo

import (
	"sync"
	"time"

	"pepvault/component/lane"
	"pepvault/component/link"
	"pepvault/pep"
	"pepvault/pep/wire"
	"pepvault/vault"
)

// The bounds of a pushed download, and how long a chunk may stay without an
// answer: the service's defaults.
const (
	chunkBytes = 32 << 10
	pushWindow = 4
	ackTimeout = time.Minute
)

// push is a pushed download under way (PROTOCOL §7): chunks leave while fewer
// than a window are unanswered. It ends without a word when one is refused or
// never answered.
type push struct {
	service  *service
	from, to string // addresses of ours and of the device
	id, node string
	owner    vault.Account
	now      vault.Revision // the state that it ends with
	bytes    int
	window   int

	cursor string // of chunk alone
	seq    int    // likewise

	mu   sync.Mutex
	open int  // chunks that are queued, or sent without an answer
	over bool // none is to come
}

// download answers a request for a pushed download, and returns it; it begins
// with fill.
func (s *service) download(header wire.Header, op pep.Download) (*push, pep.DownloadBegun, error) {
	owner := accountOf(header.From)
	p := &push{
		service: s, from: header.To, to: header.From, id: op.ID, node: op.Node, owner: owner,
		now: s.account(owner).revision, bytes: bounded(op.ChunkBytes, chunkBytes), window: bounded(op.Window, pushWindow), cursor: op.Cursor,
	}
	whole, err := s.vault.sync(owner, p.now, pep.Sync{Node: op.Node, Cursor: op.Cursor})
	if err != nil {
		return nil, pep.DownloadBegun{}, err
	}
	return p, pep.DownloadBegun{
		ID: op.ID, Records: len(whole.Changes), Bytes: int64(costOfChanges(whole.Changes)),
		ChunkBytes: p.bytes, Window: p.window, Reset: whole.Reset,
	}, nil
}

// bounded is what was asked for, up to our own bound; 0 asks for that.
func bounded(asked, most int) int {
	if asked <= 0 {
		return most
	}
	return min(asked, most)
}

// fill queues a chunk for each free place of the window. It does not block.
func (p *push) fill() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for ; !p.over && p.open < p.window; p.open++ {
		if !p.service.writer.Bulk(lane.Chunk{For: p.to, Size: p.bytes, Produce: p.chunk}) {
			p.over = p.open == 0 // nobody would come back to it
			return
		}
	}
}

// chunk makes the next one, or nothing if there is none.
func (p *push) chunk() ([]byte, error) {
	// The writer makes one after the other, so nobody else moves the cursor. The
	// lock is not held for long: without a stream, expect answers at once.
	p.mu.Lock()
	over := p.over
	p.mu.Unlock()
	if over {
		return nil, nil
	}
	page, err := p.service.vault.sync(p.owner, p.now, pep.Sync{Node: p.node, Cursor: p.cursor, Bytes: p.bytes})
	if err != nil {
		p.end()
		return nil, err
	}
	id, _ := p.service.expect(p.to, ackTimeout, p.answered)
	header := wire.Header{From: p.from, To: p.to, ID: id}
	stanza := wire.AppendChunk(make([]byte, 0, p.bytes+1024), header, pep.Chunk{Download: p.id, Seq: p.seq, Page: page})
	p.seq++
	p.cursor = page.Cursor
	if !page.More {
		p.end()
	}
	return stanza, nil
}

func (p *push) end() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.over = true
}

// answered frees the place of a chunk; a refusal or silence ends the download.
func (p *push) answered(answer link.Stanza, err error) {
	p.mu.Lock()
	p.open--
	p.over = p.over || err != nil || answer.Type != "result"
	p.mu.Unlock()
	p.fill()
}
