package component_test

import (
	"context"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"pepvault/component/hosttest"
	"pepvault/pep"
	"pepvault/pep/wire"
)

var downloadSeed = flag.Uint64("downloadseed", 1, "the first seed of TestDownloadsAtRandom")

// mirror is a device that only downloads and syncs: what it holds of the notes,
// and where it stands.
type mirror struct {
	*hosttest.Device
	chance *rand.Rand
	cursor string
	held   map[string]string
	seen   map[string]bool // of the pass under way; nil = none

	id      string // of the download under way; "" = none
	next    int
	count   int
	unacked []string // ids of chunks that were taken
	waits   bool     // for the rest of what the latest request asked for
	done    bool     // it holds a whole state
}

// page takes one in.
func (m *mirror) page(p pep.SyncPage) {
	if p.First {
		m.seen = map[string]bool{}
	}
	for _, c := range p.Changes {
		if delete(m.held, c.ID); !c.Gone {
			m.held[c.ID] = string(c.Payload.Data)
		}
		if m.seen != nil {
			m.seen[c.ID] = true
		}
	}
	if m.cursor = p.Cursor; p.More {
		return
	}
	if m.seen != nil {
		maps.DeleteFunc(m.held, func(id, _ string) bool { return !m.seen[id] })
	}
	m.seen, m.done, m.waits = nil, true, false
}

// begin asks for a download or, at times, for one page.
func (m *mirror) begin() {
	m.count++
	m.id, m.next, m.waits, m.done = "", 0, true, false
	var call wire.Call = pep.Sync{Node: "notes", Cursor: m.cursor, Bytes: 1 + m.chance.IntN(3000)}
	if m.chance.IntN(4) > 0 {
		m.id = fmt.Sprint(m.Bare(), m.JID(), m.count)
		call = pep.Download{
			ID: m.id, Node: "notes", Cursor: m.cursor,
			ChunkBytes: m.chance.IntN(3000), Window: m.chance.IntN(5),
		}
	}
	kind, payload := wire.Ask(call)
	// The id tells a late page of an earlier request from the one that is due.
	_ = m.Send(fmt.Appendf(nil, "<iq type='%s' id='%d' to='vault.localhost'>%s</iq>", kind, m.count, payload))
}

// take takes in what has come.
func (m *mirror) take(t *testing.T) {
	for m.Waiting() > 0 {
		m.takeOne(t)
	}
}

func (m *mirror) takeOne(t *testing.T) {
	s, err := m.Recv(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	switch {
	case s.Name != "iq":
	case s.Type == "error":
		m.waits = m.waits && s.ID != fmt.Sprint(m.count)
	case s.Type == "result":
		answer, err := wire.DecodeReply(s.Raw, pep.Sync{})
		if err == nil && s.ID == fmt.Sprint(m.count) {
			m.waits = false
			m.page(answer.(pep.SyncPage))
		}
	default:
		c, err := wire.DecodeChunk(s.Raw)
		if err != nil {
			t.Fatalf("%v: %s", err, s)
		}
		if m.id == "" || c.Download != m.id || c.Seq != m.next {
			_ = m.Refuse(s, "cancel", "item-not-found")
			return
		}
		m.next++
		m.page(c.Page)
		m.unacked = append(m.unacked, s.ID)
	}
}

// answer acknowledges one of the chunks that came, or, at times, refuses it.
func (m *mirror) answer() {
	if len(m.unacked) == 0 {
		return
	}
	i := m.chance.IntN(len(m.unacked))
	kind := "result"
	if m.chance.IntN(30) == 0 {
		kind = "error"
	}
	m.acknowledge(i, kind)
}

func (m *mirror) acknowledge(i int, kind string) {
	_ = m.Send([]byte("<iq type='" + kind + "' id='" + m.unacked[i] + "' to='vault.localhost'/>"))
	m.unacked = slices.Delete(m.unacked, i, i+1)
}

// finish asks until all is there.
func (m *mirror) finish(t *testing.T) {
	for m.done = false; !m.done; {
		m.take(t)
		m.begin()
		for m.waits {
			m.takeOne(t)
			for len(m.unacked) > 0 {
				m.acknowledge(0, "result")
			}
		}
	}
}

// Downloads and syncs in any mixture, from any chunk on, under writes and with
// losses of every kind, end with what the service has.
func TestDownloadsAtRandom(t *testing.T) {
	t.Parallel()
	for i := range uint64(requests(20)) {
		t.Run(fmt.Sprint("seed ", *downloadSeed+i), func(t *testing.T) {
			t.Parallel()
			downloadsAtRandom(t, rand.New(rand.NewPCG(*downloadSeed+i, 3)))
		})
	}
}

func downloadsAtRandom(t *testing.T, chance *rand.Rand) {
	host := hosttest.New(t)
	store := openStore(t, filepath.Join(t.TempDir(), "vault.db"))
	restart := func() *running {
		return serve(t, host, func(s *setup) {
			s.store, s.downloads, s.chunk = store, 8, 4000
			s.limits.Records, s.limits.TombstonesFactor = 12, 1
		})
	}
	r := restart()
	writer := host.Device("alice/writer")
	mirrors := make([]*mirror, 4)
	for i := range mirrors {
		mirrors[i] = &mirror{Device: host.Device(fmt.Sprint("alice/", i)), chance: chance, held: map[string]string{}}
	}
	contents := 0
	write := func() {
		id := fmt.Sprint(chance.IntN(12))
		var payload string
		switch chance.IntN(12) {
		case 0:
			payload = `<pubsub xmlns='http://jabber.org/protocol/pubsub'><retract node='notes'><item id='` + id + `'/></retract></pubsub>`
		case 1:
			if chance.IntN(4) == 0 {
				payload = `<pubsub xmlns='http://jabber.org/protocol/pubsub#owner'><delete node='notes'/></pubsub>`
				break
			}
			fallthrough
		default:
			contents++
			payload = publication("notes", id, native(fmt.Sprint(contents, "-", string(make([]byte, chance.IntN(1000))))))
		}
		if _, err := writer.IQ(t.Context(), "set", "vault.localhost", payload); err != nil {
			t.Fatal(err)
		}
	}
	for range 300 {
		m := mirrors[chance.IntN(len(mirrors))]
		switch kind := chance.IntN(60); {
		case kind == 0:
			number := host.AwaitAttached()
			host.Drop()
			host.AwaitReattached(number)
		case kind == 1:
			r.stop()
			if err := r.front.Stop(context.WithoutCancel(t.Context())); err != nil {
				t.Fatal(err)
			}
			host.AwaitDetached()
			r = restart()
		case kind < 15:
			write()
		case kind < 22:
			m.begin()
		case kind < 40:
			m.take(t)
		default:
			m.answer()
		}
	}
	want := contentsOf(t, writer)
	for i, m := range mirrors {
		m.finish(t)
		if diff := cmp.Diff(want, m.held); diff != "" {
			t.Errorf("device %d holds (-want +got)\n%s", i, diff)
		}
	}
}

// contentsOf reads the notes as any client does.
func contentsOf(t *testing.T, d *hosttest.Device) map[string]string {
	t.Helper()
	op := pep.Items{Node: "notes"}
	kind, payload := wire.Ask(op)
	answer, err := d.IQ(t.Context(), kind, "vault.localhost", string(payload))
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]string{}
	page, err := wire.DecodeReply(answer.Raw, op)
	if err != nil { // there is no vault
		return found
	}
	for _, r := range page.(pep.ItemsPage).Records {
		found[r.ID] = string(r.Payload.Data)
	}
	return found
}
