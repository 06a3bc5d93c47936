package component

import (
	"sync"
	"time"

	"pepvault/component/lane"
	"pepvault/component/link"
	"pepvault/pep"
	"pepvault/pep/wire"
	"pepvault/vault"
)

// download sends a device one vault's changes, chunk by chunk. While the
// device's window has free places, chunks are queued, two at most: one may be
// made while the other waits. Each is read from the store when its turn has
// come, so what waits is no more than a cursor.
//
// It ends without a word: to a device that is gone there is nothing to say, and
// any other one asks again with the cursor of the last chunk that it has.
type download struct {
	service  *Service
	account  vault.Account // of the device
	course   course
	from, to string // our address and the device's, verbatim
	begun    pep.DownloadBegun

	mu     sync.Mutex     // taken before those of the writer and of the link
	cursor string         // of the latest chunk that was made
	next   int            // the number of the one after it
	left   int64          // about how many bytes are to come
	queued int            // chunks that wait for their turn
	sent   map[int]func() // chunks without an answer, each with what forgets it
	acks   uint64
	last   bool // the last chunk was made
	ended  bool
	alarm  *time.Timer // for silence, or for a try to queue again
}

const (
	// tryAgain is how soon a chunk that found no room in the writer is queued
	// again, when no answer is to come that would make us do so.
	tryAgain = 250 * time.Millisecond
	// maxQueued is how many chunks of a download wait for their turn at most.
	maxQueued = 2
	// forever is longer than any connection.
	forever = 1 << 62
)

func newDownload(s *Service, begun pep.DownloadBegun, cursor string) *download {
	d := &download{
		service: s, begun: begun,
		cursor: cursor, left: begun.Bytes, sent: map[int]func(){},
	}
	d.alarm = time.AfterFunc(forever, d.silence)
	return d
}

// fill queues a chunk for every free place of the window. Before the first one
// is made, and when little is left, fewer are enough. It does not block.
func (d *download) fill() {
	d.mu.Lock()
	defer d.mu.Unlock()
	for d.wants() {
		size := int(min(int64(d.begun.ChunkBytes), max(d.left, lane.SmallAnswer)))
		remaining := int(min(max(d.left, int64(size)), 1<<31-1))
		c := lane.Chunk{Account: string(d.account), For: d.to, Size: size, Remaining: remaining, Produce: d.produce}
		if !d.service.writer.Bulk(c) {
			if d.queued == 0 && len(d.sent) == 0 {
				d.alarm.Reset(tryAgain)
			}
			return
		}
		d.queued++
	}
}

// wants reports whether one more chunk should be queued. It needs d.mu.
func (d *download) wants() bool {
	switch {
	case d.ended, d.last, d.queued >= maxQueued, d.queued+len(d.sent) >= d.begun.Window:
		return false
	case d.queued == 0:
		return true
	}
	return d.next > 0 && int64(d.queued)*int64(d.begun.ChunkBytes) < d.left
}

// produce makes the next chunk, or nothing if there is none. The writer makes
// one after the other.
func (d *download) produce() (stanza []byte, err error) {
	defer func() {
		if fault := recover(); fault != nil {
			_ = d.service.panicked(fault) // it is logged
			d.end()
			stanza = nil
		}
	}()
	cursor, seq, goesOn := d.turn()
	if !goesOn {
		return nil, nil
	}
	page, err := d.begun.Read(cursor)
	if err != nil {
		d.service.note(err)
		d.end()
		return nil, nil
	}
	id, forget := d.service.expect(d.to, forever, func(answer link.Stanza, err error) { d.answered(seq, answer, err) })
	header := wire.Header{From: d.from, To: d.to, ID: id}
	room := 1024 // the start tags
	for i := range page.Changes {
		room += page.Changes[i].Cost()
	}
	stanza = wire.AppendChunk(make([]byte, 0, room), header, pep.Chunk{Download: d.begun.ID, Seq: seq, Page: page})
	if len(stanza) > d.service.maxStanza { // the host would close the stream for everybody
		d.service.log.Error("a chunk was too large", "bytes", len(stanza))
		forget()
		d.end()
		return nil, nil
	}
	if !d.made(page, len(stanza), forget) {
		forget()
		return nil, nil
	}
	d.fill()
	return stanza, nil
}

// turn takes one of the queued chunks; goesOn is false if it is not needed any
// more.
func (d *download) turn() (cursor string, seq int, goesOn bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.queued--
	return d.cursor, d.next, !d.ended && !d.last
}

// made counts a chunk as sent; false if the download ended meanwhile.
func (d *download) made(page pep.SyncPage, bytes int, forget func()) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.ended {
		return false
	}
	if len(d.sent) == 0 {
		d.alarm.Reset(d.service.downloads.bounds.AckTimeout)
	}
	d.sent[d.next] = forget
	d.next++
	d.cursor, d.last = page.Cursor, !page.More
	d.left -= int64(bytes)
	d.service.meter.Chunk(bytes)
	return true
}

// answered takes in what became of a chunk: an acknowledgement frees its place
// in the window, all else ends the download. It does not block.
func (d *download) answered(seq int, answer link.Stanza, err error) {
	if err != nil || answer.Type != "result" {
		d.end()
		return
	}
	d.mu.Lock()
	if d.ended {
		d.mu.Unlock()
		return
	}
	delete(d.sent, seq)
	d.acks++
	d.alarm.Stop()
	if len(d.sent) > 0 {
		d.alarm.Reset(d.service.downloads.bounds.AckTimeout)
	}
	complete := d.last && len(d.sent) == 0
	d.mu.Unlock()
	if complete {
		d.end()
	} else {
		d.fill()
	}
}

// silence is called when nothing was acknowledged for long. Answers may be
// under way, since we may have been stopped meanwhile, or the host: what comes
// from one stream comes in order, so the device was silent if the host answers
// a ping and no acknowledgement came before that.
func (d *download) silence() {
	d.mu.Lock()
	acks, waits, ended := d.acks, len(d.sent) > 0, d.ended
	d.mu.Unlock()
	switch {
	case ended:
		return
	case !waits:
		d.fill()
		return
	}
	ping := d.service.ping(0, func(err error) {
		if err == nil {
			d.judge(acks)
		}
	})
	if !d.service.writer.Small(ping) {
		d.lookAgain()
	}
}

// judge ends the download of a silent device.
func (d *download) judge(acks uint64) {
	d.mu.Lock()
	silent := !d.ended && d.acks == acks && len(d.sent) > 0
	d.mu.Unlock()
	if silent {
		d.end()
	}
}

// lookAgain has the silence looked at later.
func (d *download) lookAgain() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.ended {
		d.alarm.Reset(d.service.downloads.bounds.AckTimeout)
	}
}

// end frees all that the download holds. It may be called again.
func (d *download) end() {
	d.mu.Lock()
	if d.ended {
		d.mu.Unlock()
		return
	}
	d.ended = true
	d.alarm.Stop()
	sent := d.sent
	d.sent = nil
	d.mu.Unlock()
	for _, forget := range sent {
		forget()
	}
	d.service.downloads.remove(d)
	d.service.meter.Downloads(-1)
}
