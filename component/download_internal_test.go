package component

import (
	"crypto/rand"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"pepvault/pep"
	"pepvault/pep/wire"
	"pepvault/vault"
)

func TestWindowIsFilledAndKept(t *testing.T) {
	inBubble(t, 10, 3, func(t *testing.T, p *parcel) {
		p.take()
		if len(p.got) != 3 {
			t.Fatalf("%d chunks came, want 3", len(p.got))
		}
		for want := 4; want <= 10; want++ {
			p.answer(p.oldest(), "result")
			if p.take(); len(p.got) != want {
				t.Fatalf("%d chunks came, want %d", len(p.got), want)
			}
		}
		if len(p.read) != 10 {
			t.Errorf("%d pages were read, want 10", len(p.read))
		}
		for len(p.unacked) > 0 {
			if p.active() != 1 {
				t.Error("ended before all was acknowledged")
			}
			p.answer(p.oldest(), "result")
		}
		p.over()
	})
}

// What waits in the writer is no page: it is read when it is its turn.
func TestNothingIsReadAhead(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newParcel(t, 100, 64)
		defer p.end()
		p.download.fill()
		synctest.Wait() // the host reads nothing
		if stats := p.service.writer.Stats(); stats.BulkChunks > maxQueued {
			t.Errorf("%d chunks wait in the writer, want at most %d", stats.BulkChunks, maxQueued)
		}
		if len(p.read) > 2 {
			t.Errorf("%d pages were read, want one on its way and one made", len(p.read))
		}
		p.take()
		if len(p.got) != 64 {
			t.Errorf("%d chunks came, want 64", len(p.got))
		}
	})
}

// Two chunks of the default size fit into the default window of the host, so
// one is under way while the next is made: what a record costs counts more than
// what it takes on the wire, and from six records on that pays for the elements
// around.
func TestTwoChunksFitTheWindow(t *testing.T) {
	t.Parallel()
	const chunk, window = 32768, 65536
	route := wire.Header{From: `alice\40example.org@vault.example.org`, To: "bob.with.a.long.name@example.org/a-phone-with-a-long-name", ID: rand.Text()}
	for _, form := range []vault.Form{vault.Native, vault.Foreign} {
		for n := 6; n <= 100; n++ {
			largest := vault.Record{ID: "0190f3c4-7c4b-7e0a-9c55-3d6f8f0b7a10", Revision: 1 << 40, KeyVersion: 1<<31 - 1, Publisher: "alice@example.org"}
			grow := func(bytes int) {
				data := []byte("<n xmlns='urn:example'>" + strings.Repeat("x", bytes) + "</n>")
				largest.Payload = vault.Payload{Form: form, Data: data}
			}
			bytes := 0
			for grow(bytes); n*largest.Cost() <= chunk; grow(bytes) {
				bytes += 3
			}
			grow(bytes - 3)
			page := pep.SyncPage{Cursor: strings.Repeat("c", 100), Reset: vault.ResetPruned, Fork: 1 << 40, First: true, More: true}
			for range n {
				page.Changes = append(page.Changes, vault.Change{Record: largest})
			}
			got := wire.AppendChunk(nil, route, pep.Chunk{Download: rand.Text(), Seq: 1 << 20, Page: page})
			if 2*len(got) > window {
				t.Errorf("%d records of form %v take %d bytes, want at most half of %d", n, form, len(got), window)
			}
		}
	}
}

func TestErrorEndsDownload(t *testing.T) {
	inBubble(t, 10, 3, func(t *testing.T, p *parcel) {
		p.take()
		p.answer(p.oldest(), "error")
		p.over()
		p.answer(p.oldest(), "result") // too late
		if p.take(); len(p.got) != 3 {
			t.Errorf("%d chunks came, want 3", len(p.got))
		}
	})
}

func TestFailedReadEndsDownload(t *testing.T) {
	inBubble(t, 10, 2, func(t *testing.T, p *parcel) {
		p.take()
		p.failing = errors.New("made by the test")
		p.answer(p.oldest(), "result")
		p.over()
	})
}

func TestPanicEndsDownload(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newParcel(t, 10, 2)
		defer p.end()
		p.download.begun.Read = func(string) (pep.SyncPage, error) { panic("made by the test") }
		p.download.fill()
		p.over()
	})
}

// Silence lasts from the latest acknowledgement on, and counts once the host
// has answered a ping that was sent later.
func TestSilenceEndsDownload(t *testing.T) {
	inBubble(t, 10, 3, func(t *testing.T, p *parcel) {
		p.take()
		time.Sleep(ackTimeout - time.Second)
		p.answer(p.oldest(), "result")
		p.take()
		time.Sleep(ackTimeout - time.Second)
		if p.take(); p.pinged() != 0 {
			t.Error("the host is pinged too early")
		}
		time.Sleep(time.Second)
		if p.take(); p.pinged() != 1 || p.active() != 1 {
			t.Fatalf("%d pings, %d downloads; want 1 and 1", p.pinged(), p.active())
		}
		time.Sleep(time.Hour) // of which the host says nothing
		if p.active() != 1 {
			t.Error("silence was judged without the host")
		}
		p.hostAnswers()
		p.over()
	})
}

// An acknowledgement that comes before the host's answer counts.
func TestLateAcknowledgementCounts(t *testing.T) {
	inBubble(t, 10, 1, func(t *testing.T, p *parcel) {
		p.take()
		time.Sleep(2 * ackTimeout)
		p.take()
		p.answer(p.oldest(), "result")
		p.hostAnswers()
		if p.take(); len(p.got) != 2 || p.active() != 1 {
			t.Fatalf("%d chunks, %d downloads; want 2 and 1", len(p.got), p.active())
		}
		time.Sleep(2 * ackTimeout) // the clock runs again
		if p.take(); p.pinged() != 1 {
			t.Fatalf("%d pings, want 1", p.pinged())
		}
		p.hostAnswers()
		p.over()
	})
}

// A writer without room makes a download wait, not end.
func TestFullWriterIsTriedAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newParcel(t, 3, 2)
		defer p.end()
		hoard, ok := p.service.writer.Reserve(1 << 20)
		if !ok {
			t.Fatal("no room to hoard")
		}
		p.download.fill()
		if p.take(); len(p.got) != 0 {
			t.Fatal("a chunk came without a place")
		}
		time.Sleep(10 * tryAgain)
		hoard.Release()
		time.Sleep(tryAgain)
		if p.take(); len(p.got) != 2 {
			t.Fatalf("%d chunks came, want 2", len(p.got))
		}
	})
}

// Whatever happens in whatever order, no more than the window is without an
// answer, and a download that got all of them is complete.
func TestRandomAnswers(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		synctest.Test(t, func(t *testing.T) {
			pages, window := rapid.IntRange(1, 20).Draw(r, "pages"), rapid.IntRange(1, 5).Draw(r, "window")
			p := newParcel(r, pages, window)
			defer p.end()
			p.download.fill()
			refused, silentFor := false, time.Duration(0)
			for step := 0; p.active() > 0; step++ {
				p.take()
				if !refused && len(p.unacked) > window {
					r.Fatalf("%d chunks are without an answer, want at most %d", len(p.unacked), window)
				}
				ids := slices.Sorted(maps.Keys(p.unacked))
				switch rapid.IntRange(0, 9).Draw(r, "what") {
				case 0:
					pause := time.Duration(rapid.IntRange(1, 40).Draw(r, "seconds")) * time.Second
					time.Sleep(pause)
					silentFor += pause
				case 1:
					p.hostAnswers()
				case 2:
					if step > 30 && len(ids) > 0 {
						refused = true
						p.answer(rapid.SampledFrom(ids).Draw(r, "refused"), "error")
					}
				default:
					if len(ids) > 0 {
						p.answer(rapid.SampledFrom(ids).Draw(r, "taken"), "result")
						silentFor = 0
					}
				}
			}
			if complete := len(p.got) == pages && len(p.unacked) == 0; !complete && !refused && silentFor < ackTimeout {
				r.Fatalf("ended with %d of %d chunks after %v of silence", len(p.got), pages, silentFor)
			}
			p.over()
		})
	})
}

// A second download of the same device and vault takes the place of the first,
// another one adds to them, up to the bound.
func TestDownloadsOfAnAccount(t *testing.T) {
	t.Parallel()
	const alice, bob = vault.Account("alice@localhost"), vault.Account("bob@localhost")
	s := &Service{meter: silence{}}
	ds := &s.downloads
	ds.bounds, ds.all = Downloads{OfAccount: 2, Overall: 3}, map[vault.Account]map[course]*download{}
	begin := func(account vault.Account, resource, node string) (began, replaced *download, err error) {
		d := newDownload(s, pep.DownloadBegun{ID: resource + node}, "")
		d.account, d.course = account, course{resource, vault.Key{Account: account, Node: node}}
		replaced, err = ds.add(d)
		return d, replaced, err
	}
	first, _, _ := begin(alice, "phone", "notes")
	second, replaced, err := begin(alice, "phone", "notes")
	if replaced != first || err != nil {
		t.Fatalf("replaced %v, %v", replaced, err)
	}
	first.end()
	tablet, replaced, err := begin(alice, "tablet", "notes")
	if replaced != nil || err != nil {
		t.Fatalf("another device replaced %v, %v", replaced, err)
	}
	if _, _, err := begin(alice, "phone", "other"); !errors.Is(err, pep.ErrOverloaded) {
		t.Errorf("a third one of an account: %v", err)
	}
	if _, replaced, err := begin(alice, "tablet", "notes"); err != nil || replaced != tablet {
		t.Errorf("at the bound, one can be replaced: %v", err)
	}
	if _, _, err := begin(bob, "phone", "notes"); err != nil {
		t.Errorf("another account's: %v", err)
	}
	if _, _, err := begin("carol@localhost", "phone", "notes"); !errors.Is(err, pep.ErrOverloaded) {
		t.Errorf("a fourth one overall: %v", err)
	}
	second.end()
	second.end() // again
	if _, _, err := begin(alice, "phone", "other"); err != nil {
		t.Errorf("in the place of one that ended: %v", err)
	}
	ds.endOf(alice, "phone", "")
	ds.endOf(alice, "tablet", bob)
	if got := len(ds.all[alice]); got != 1 || ds.n != 2 {
		t.Errorf("%d are under way, %d overall, want 1 and 2", got, ds.n)
	}
	ds.endAll(true)
	if _, _, err := begin(alice, "phone", "notes"); !errors.Is(err, pep.ErrOverloaded) || len(ds.all) != 0 || ds.n != 0 {
		t.Errorf("after the end: %v, %d are under way", err, ds.n)
	}
}
