package fleet

import (
	"bytes"
	"context"
	"crypto/rand"
	"strconv"
	"time"

	"pepvault/pep"
	"pepvault/pep/wire"
	"pepvault/vault/device/c2s"
)

// pushed is a download whose chunks the service sends by itself. The device's
// lock guards it.
type pushed struct {
	id   string
	from string // the service
	raws [][]byte
	at   time.Time     // when the last chunk was there
	done chan struct{} // closed then
}

// download asks for the whole vault in chunks (urn:pepvault:sync:0). A device
// has one at a time: who wants another waits.
func (d *Device) download(ctx context.Context, target int) ([]uint32, Answer, error) {
	select {
	case d.pushing <- struct{}{}:
	case <-ctx.Done():
		return nil, Answer{}, ctx.Err()
	}
	defer func() { <-d.pushing }()
	p := &pushed{id: rand.Text(), from: d.fleet.options.Targets[target].JID, done: make(chan struct{})}
	d.setPush(p) // chunks may come before the goroutine that asks goes on
	defer d.setPush(nil)
	if _, err := d.ask(ctx, target, pep.Download{ID: p.id, Node: Node}); err != nil {
		return nil, Answer{}, err
	}
	select {
	case <-p.done:
	case <-ctx.Done():
		return nil, Answer{}, ctx.Err()
	}
	versions, count, err := d.takePass(target, "chunk", p.raws, nil)
	return versions, Answer{At: p.at, Records: count}, err
}

func (d *Device) setPush(p *pushed) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.push = p
}

// takeChunk takes in and acknowledges the chunk that is next; any other is
// refused.
func (d *Device) takeChunk(s c2s.Stanza) bool {
	chunk, found := findTag(s.Raw, "chunk")
	conn := d.connection()
	if !found || conn == nil {
		return false
	}
	header := wire.Header{From: s.From, To: s.To, ID: s.ID}
	answer := wire.AppendAck(nil, header)
	if !d.takeNext(s, chunk) {
		answer = wire.AppendError(nil, header, wire.ErrUnknownChunk)
	}
	_ = conn.Send(answer) // if it fails, the connection has ended
	return true
}

func (d *Device) takeNext(s c2s.Stanza, chunk tag) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	p := d.push
	id, _ := chunk.attr("download")
	seq, _ := chunk.attr("seq")
	if p == nil || p.id != id || p.from != s.From || seq != strconv.Itoa(len(p.raws)) {
		return false
	}
	p.raws = append(p.raws, bytes.Clone(s.Raw))
	if last, _ := chunk.attr("last"); last == "true" {
		p.at = time.Now()
		close(p.done)
		d.push = nil
	}
	return true
}
