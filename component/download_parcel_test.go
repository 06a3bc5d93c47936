package component

import (
	"context"
	"log/slog"
	"maps"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"pepvault/component/lane"
	"pepvault/component/link"
	"pepvault/pep"
	"pepvault/pep/wire"
	"pepvault/vault"
)

const ackTimeout = time.Minute

// parcel is one download without a host and without a store: the test sees
// what is sent, and answers it. The vault has so many pages; the cursor of each
// is its number.
type parcel struct {
	t        fataler
	service  *Service
	download *download
	conn     net.Conn // where the host would read
	cut      context.CancelFunc

	pages int

	mu       sync.Mutex
	failing  error // of reading the next page
	read     []string
	expected map[string]func(link.Stanza, error) // by id
	ids      int
	pings    []func(error)

	got     []pep.Chunk
	unacked map[string]bool // ids of chunks that came
}

// fataler is a test of any kind.
type fataler interface {
	Helper()
	Fatalf(format string, args ...any)
	Errorf(format string, args ...any)
}

// newParcel begins a download of so many pages; in a bubble of synctest.
func newParcel(t fataler, pages, window int) *parcel {
	p := &parcel{t: t, pages: pages, expected: map[string]func(link.Stanza, error){}, unacked: map[string]bool{}}
	writer := lane.New(lane.Options{QueueBytes: 1 << 20, WriteTimeout: 24 * time.Hour})
	p.service = &Service{
		writer: writer, maxStanza: 1 << 20, log: slog.New(slog.DiscardHandler), meter: silence{},
		downloads: downloads{bounds: Downloads{OfAccount: 4, Overall: 4, AckTimeout: ackTimeout}, all: map[vault.Account]map[course]*download{}},
		expect:    p.expect, ping: p.ping,
	}
	ours, theirs := net.Pipe()
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan struct{})
	go func() { defer close(served); _ = writer.Serve(ctx, ours) }()
	p.conn, p.cut = theirs, func() { cancel(); <-served; _ = ours.Close(); _ = theirs.Close() }
	p.download = newDownload(p.service, pep.DownloadBegun{
		ID: "d", Bytes: int64(pages) * 1000, ChunkBytes: 1000, Window: window, Read: p.page,
	}, "")
	p.download.to, p.download.from = "alice@localhost/phone", "vault.localhost"
	if _, err := p.service.downloads.add(p.download); err != nil {
		t.Fatalf("no room for one download: %v", err)
	}
	return p
}

func (p *parcel) expect(to string, _ time.Duration, done func(link.Stanza, error)) (string, func()) {
	if to != "alice@localhost/phone" {
		p.t.Errorf("an answer is expected of %s", to)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ids++
	id := "x" + strconv.Itoa(p.ids)
	p.expected[id] = done
	return id, func() { p.expectation(id) }
}

// expectation takes out what was expected with an id, nil if nothing is.
func (p *parcel) expectation(id string) func(link.Stanza, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	done := p.expected[id]
	delete(p.expected, id)
	return done
}

func (p *parcel) ping(_ time.Duration, done func(error)) []byte {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.pings = append(p.pings, done)
	return []byte("<ping/>")
}

// pinged tells how many pings the host has not answered.
func (p *parcel) pinged() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.pings)
}

// hostAnswers answers all pings.
func (p *parcel) hostAnswers() {
	p.mu.Lock()
	pings := p.pings
	p.pings = nil
	p.mu.Unlock()
	for _, done := range pings {
		done(nil)
	}
}

// page reads the one behind a cursor.
func (p *parcel) page(cursor string) (pep.SyncPage, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.read = append(p.read, cursor)
	if p.failing != nil {
		return pep.SyncPage{}, p.failing
	}
	number, _ := strconv.Atoi(cursor)
	data := vault.Payload{Form: vault.Native, Data: make([]byte, 700)}
	return pep.SyncPage{
		Cursor: strconv.Itoa(number + 1), More: number+1 < p.pages,
		Changes: []vault.Change{{Record: vault.Record{ID: "a", Revision: vault.Revision(number + 1), Payload: data}}},
	}, nil
}

// take reads what is on its way until nothing more comes.
func (p *parcel) take() {
	p.t.Helper()
	buffer := make([]byte, 1<<20)
	for {
		synctest.Wait()
		_ = p.conn.SetReadDeadline(time.Now().Add(time.Nanosecond))
		n, err := p.conn.Read(buffer)
		if err != nil {
			return
		}
		raw := buffer[:n]
		if strings.HasPrefix(string(raw), "<ping/>") {
			continue
		}
		chunk, err := wire.DecodeChunk(raw)
		if err != nil {
			p.t.Fatalf("%v: %s", err, raw)
		}
		header, _ := wire.ReadHeader(raw)
		if chunk.Seq != len(p.got) || chunk.Page.Cursor != strconv.Itoa(len(p.got)+1) || chunk.Download != "d" {
			p.t.Errorf("chunk %d came as number %d with the cursor %s", chunk.Seq, len(p.got), chunk.Page.Cursor)
		}
		p.got = append(p.got, chunk)
		p.unacked[header.ID] = true
	}
}

// answer has the device answer a chunk.
func (p *parcel) answer(id, kind string) {
	delete(p.unacked, id)
	if done := p.expectation(id); done != nil { // as the link does: each once
		done(link.Stanza{Type: kind, ID: id, From: "alice@localhost/phone"}, nil)
	}
}

// oldest is the chunk that has waited longest for an answer.
func (p *parcel) oldest() string { return slices.Sorted(maps.Keys(p.unacked))[0] }

func (p *parcel) active() int {
	p.service.downloads.mu.Lock()
	defer p.service.downloads.mu.Unlock()
	return len(p.service.downloads.all["" /* of no account */])
}

// over holds that the download has ended and left nothing behind.
func (p *parcel) over() {
	p.t.Helper()
	p.take()
	if p.active() != 0 || len(p.expected) != 0 {
		p.t.Errorf("%d downloads are under way, %d answers expected", p.active(), len(p.expected))
	}
	if stats := p.service.writer.Stats(); stats.Reserved != 0 || stats.BulkChunks != 0 {
		p.t.Errorf("the writer holds %+v", stats)
	}
}

func (p *parcel) end() {
	p.download.end()
	p.cut()
}

func inBubble(t *testing.T, pages, window int, f func(t *testing.T, p *parcel)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newParcel(t, pages, window)
		defer p.end()
		p.download.fill()
		f(t, p)
	})
}
