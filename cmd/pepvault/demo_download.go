package main

import (
	"context"
	"crypto/rand"
	"fmt"
	"time"

	"pepvault/pep"
	"pepvault/pep/wire"
)

// demoChunk is small, so that even the demo's short records make many chunks.
const demoChunk = 4096

// download has the phone take the whole vault in chunks, while the laptop reads
// one record after the other.
func (s *story) download(ctx context.Context, laptop, phone *demoDevice) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	reads := make(chan steadyReads, 1)
	done := make(chan struct{})
	go func() { reads <- readSteadily(ctx, laptop, done) }()
	began := time.Now()
	chunks, records, err := takeDownload(ctx, phone)
	took := took(began)
	close(done)
	if err != nil {
		stop(err)
	}
	beside := <-reads
	switch {
	case err != nil:
		return fmt.Errorf("phone's download: %w", err)
	case beside.err != nil:
		return fmt.Errorf("a read beside the download: %w", beside.err)
	case records != demoRecords-1 || chunks < 2:
		return fmt.Errorf("phone got %d records in %d chunks, not %d in several", records, chunks, demoRecords-1)
	}
	s.say("phone downloaded the vault in %s: %d records in %d chunks, each acknowledged", took, records, chunks)
	s.say("laptop read on meanwhile: %d times, the longest took %.1f ms", beside.n, float64(beside.longest.Microseconds())/1000)
	return nil
}

// takeDownload answers chunks until the last one has come.
func takeDownload(ctx context.Context, d *demoDevice) (chunks, records int, err error) {
	op := pep.Download{ID: rand.Text(), Node: demoNode, ChunkBytes: demoChunk}
	if _, err := ask[pep.DownloadBegun](ctx, d, op); err != nil {
		return 0, 0, err
	}
	for {
		raw, err := d.next(ctx)
		if err != nil {
			return chunks, records, err
		}
		header, err := wire.ReadHeader(raw)
		if err != nil || header.Name == "message" {
			continue
		}
		c, err := wire.DecodeChunk(raw)
		if err != nil || c.Download != op.ID || c.Seq != chunks {
			return chunks, records, fmt.Errorf("chunk %d is not what comes next: %w", c.Seq, err)
		}
		if err := d.send(wire.AppendAck(nil, header)); err != nil {
			return chunks, records, err
		}
		chunks++
		if records += len(c.Page.Changes); !c.Page.More {
			return chunks, records, nil
		}
	}
}

// steadyReads is what became of steady reads.
type steadyReads struct {
	n       int
	longest time.Duration
	err     error
}

// readSteadily reads a record again and again, once at least, until done.
func readSteadily(ctx context.Context, d *demoDevice, done <-chan struct{}) (r steadyReads) {
	for {
		began := time.Now()
		if _, r.err = ask[pep.ItemsPage](ctx, d, pep.Items{Node: demoNode, IDs: []string{"login-1"}}); r.err != nil {
			return r
		}
		r.n++
		r.longest = max(r.longest, time.Since(began))
		select {
		case <-done:
			return r
		default:
		}
	}
}
