package pep_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"pepvault/pep"
	"pepvault/store"
	"pepvault/vault"
)

// batchMachine has an engine and the model go through the same.
type batchMachine struct {
	*batchModel
	t       *rapid.T
	engine  *pep.Engine
	store   vault.Store
	path    string
	clock   time.Time
	devices map[string]held
	writes  int
	// follower reads on by sync after every step.
	follower follower
}

var someItems = []string{"a", "b", "c"}

func (m *batchMachine) open() {
	var err error
	if m.store, err = store.Open(context.Background(), store.Options{Driver: "sqlite", Path: m.path}); err != nil {
		m.t.Fatal(err)
	}
	l := limits
	l.TombstonesFactor, l.AccountBytes, l.StagedBytes = 1000, 1<<30, 1<<30
	m.engine = pep.New(pep.Options{
		Store: m.store, Limits: l, Domains: []string{"localhost"}, AnswerBytes: 100_000, InlineBytes: 10_000,
		BatchRecords: 8, Now: func() time.Time { return m.clock },
	})
}

func (m *batchMachine) ask(from string, op pep.Op) (out pep.Outcome, err error) {
	request := pep.Request{Sender: device(from), Owner: "alice@localhost", Op: op}
	err = m.engine.Do(context.Background(), request, func(o pep.Outcome) { out = o })
	return out, err
}

// same holds the outcome of a request to the model's.
func (m *batchMachine) same(what string, got, want error) {
	if !errors.Is(got, want) || want == nil && got != nil {
		m.t.Fatalf("%s: %v, want %v", what, got, want)
	}
}

func (m *batchMachine) device(t *rapid.T) (from string, key string, id string, owner bool) {
	m.t = t
	from = rapid.SampledFrom([]string{laptop, phone, bob}).Draw(t, "device")
	// Mostly one that is open, or hardly any batch would get far.
	names := []string{"x", "y", "z"}
	for _, name := range names[:3] {
		if b := m.find(string(device(from).Account)+" "+name, m.clock); b != nil && b.end == "" {
			names = append(names, name, name, name, name)
		}
	}
	id = rapid.SampledFrom(names).Draw(t, "batch")
	return from, string(device(from).Account) + " " + id, id, from != bob
}

func (m *batchMachine) record(t *rapid.T) (string, modelRecord) {
	m.writes++
	keyVersion := rapid.Uint32Range(0, 3).Draw(t, "key version")
	return rapid.SampledFrom(someItems).Draw(t, "id"), modelRecord{fmt.Sprint("write ", m.writes), keyVersion}
}

// look has a device learn the vault's state.
func (m *batchMachine) look(t *rapid.T) {
	from, _, _, _ := m.device(t)
	m.learn(from)
}

func (m *batchMachine) learn(from string) {
	out, err := m.ask(laptop, pep.Sync{Node: "notes"})
	if err != nil {
		m.t.Fatal(err)
	}
	m.devices[from] = held{out.Answer.(pep.SyncPage).Cursor, m.history, m.now}
	if !m.there {
		m.devices[from] = held{cursor: pep.NoCursor}
	}
}

func (m *batchMachine) save(t *rapid.T) {
	from, _, _, owner := m.device(t)
	id, r := m.record(t)
	_, err := m.ask(from, pep.Publish{Node: "notes", Items: []pep.Item{sealed(r.keyVersion, id, r.data)}})
	switch {
	case !owner && !m.there:
		m.same("save", err, pep.ErrForbidden)
		return
	case m.there && r.keyVersion < m.floor:
		m.same("save", err, pep.ErrKeyVersionTooLow)
		return
	}
	m.same("save", err, nil)
	fresh := !m.there
	m.make(r, id)
	if fresh {
		_, err = m.ask(laptop, pep.SetAffiliations{Node: "notes", Changes: []pep.AffiliationChange{{JID: "bob@localhost", Affiliation: "publisher"}}})
		m.same("affiliation", err, nil)
	}
}

func (m *batchMachine) retract(t *rapid.T) {
	from, _, _, owner := m.device(t)
	id := rapid.SampledFrom(someItems).Draw(t, "id")
	_, err := m.ask(from, pep.Retract{Node: "notes", IDs: []string{id}})
	_, live := m.records[id]
	switch {
	case !owner && !m.there:
		m.same("retract", err, pep.ErrForbidden)
	case !m.there:
		m.same("retract", err, vault.ErrNoVault)
	case !live:
		m.same("retract", err, vault.ErrNoRecord)
	default:
		m.same("retract", err, nil)
		m.change(id, nil)
	}
}

func (m *batchMachine) beginBatch(t *rapid.T) {
	from, key, id, owner := m.device(t)
	m.beginAs(from, key, id, owner, uint32(max(rapid.IntRange(-3, 3).Draw(t, "rotate to"), 0)))
}

func (m *batchMachine) beginAs(from, key, id string, owner bool, rotate uint32) {
	h := m.devices[from]
	_, err := m.ask(from, pep.BeginBatch{Node: "notes", ID: id, Cursor: h.cursor, RotateTo: rotate})
	m.same("begin", err, m.begin(key, string(device(from).Account), h, rotate, owner, m.clock))
}

func (m *batchMachine) stageChange(t *rapid.T) {
	from, key, batch, owner := m.device(t)
	id, r := m.record(t)
	m.stageAs(from, key, batch, owner, id, r, rapid.IntRange(0, 3).Draw(t, "gone at 0") == 0)
}

func (m *batchMachine) stageAs(from, key, batch string, owner bool, id string, r modelRecord, gone bool) {
	s := modelStaged{modelRecord: r, gone: gone, held: m.devices[from]}
	var op pep.Op = staging(batch, s.held.cursor, sealed(r.keyVersion, id, r.data))
	if s.gone {
		op = removing(batch, s.held.cursor, id)
	}
	_, err := m.ask(from, op)
	m.same("stage", err, m.stage(key, id, s, owner, m.clock))
}

// stageAll stages every record, as a rotation needs it.
func (m *batchMachine) stageAll(t *rapid.T) {
	m.stageAllAs(m.device(t))
}

func (m *batchMachine) stageAllAs(from, key, batch string, owner bool) {
	b := m.find(key, m.clock)
	if b == nil || b.end != "" {
		return
	}
	m.learn(from)
	for _, id := range slices.Sorted(maps.Keys(m.records)) {
		m.writes++
		r := modelRecord{fmt.Sprint("write ", m.writes), max(b.rotate, m.floor)}
		s := modelStaged{modelRecord: r, held: m.devices[from]}
		_, err := m.ask(from, staging(batch, s.held.cursor, sealed(r.keyVersion, id, r.data)))
		m.same("stage", err, m.stage(key, id, s, owner, m.clock))
	}
}

func (m *batchMachine) unstage(t *rapid.T) {
	from, key, batch, _ := m.device(t)
	id := rapid.SampledFrom(someItems).Draw(t, "id")
	_, err := m.ask(from, pep.Unstage{ID: batch, IDs: []string{id}})
	if b := m.find(key, m.clock); b == nil || b.end != "" {
		m.same("unstage", err, vault.ErrNoBatch)
	} else {
		m.same("unstage", err, nil)
		delete(b.staged, id)
	}
}

func (m *batchMachine) commitBatch(t *rapid.T) {
	from, key, id, _ := m.device(t)
	if rapid.Bool().Draw(t, "synced") {
		m.learn(from)
	}
	m.commitAs(from, key, id)
}

func (m *batchMachine) commitAs(from, key, id string) {
	h := m.devices[from]
	out, err := m.ask(from, pep.CommitBatch{ID: id, Cursor: h.cursor})
	m.same("commit", err, m.commit(key, h, m.clock))
	for _, n := range out.Notices {
		if len(n.Event.State.Items) == 0 && len(n.Event.Changes) > 0 {
			m.t.Fatal("a state without the names of its changes")
		}
	}
}

// rotatePast has the floor rise above what is staged in another batch: hardly
// any history would come to that by itself.
func (m *batchMachine) rotatePast(t *rapid.T) {
	m.t = t
	id, r := m.record(t)
	if !m.there || m.floor >= 3 {
		return
	}
	of := string(device(laptop).Account) + " "
	m.learn(laptop)
	m.beginAs(laptop, of+"x", "x", true, 0)
	m.beginAs(laptop, of+"y", "y", true, m.floor+1)
	m.stageAs(laptop, of+"x", "x", true, id, r, false)
	m.stageAllAs(laptop, of+"y", "y", true)
	m.commitAs(laptop, of+"y", "y")
	m.learn(laptop)
	m.commitAs(laptop, of+"x", "x")
}

func (m *batchMachine) abort(t *rapid.T) {
	from, key, id, _ := m.device(t)
	_, err := m.ask(from, pep.AbortBatch{ID: id})
	if b := m.find(key, m.clock); b == nil || b.end == "committed" {
		m.same("abort", err, vault.ErrNoBatch)
	} else {
		m.same("abort", err, nil)
		b.end, b.staged = "aborted", nil
	}
}

// Now and then the service ends, time goes by, or the vault is deleted.
func (m *batchMachine) rare(t *rapid.T) {
	m.t = t
	switch rapid.IntRange(0, 9).Draw(t, "what") {
	case 0:
		if err := m.store.Close(); err != nil {
			t.Fatal(err)
		}
		m.open()
	case 1:
		m.clock = m.clock.Add(rapid.SampledFrom([]time.Duration{time.Minute, 40 * time.Minute}).Draw(t, "time"))
	case 2:
		if err := m.engine.Expire(context.Background()); err != nil {
			t.Fatal(err)
		}
	case 3:
		_, err := m.ask(laptop, pep.Delete{Node: "notes"})
		if !m.there {
			m.same("delete", err, vault.ErrNoVault)
			return
		}
		m.same("delete", err, nil)
		m.end()
	}
}

// check compares what readers see, by reading all and by following.
func (m *batchMachine) check(t *rapid.T) {
	m.t = t
	want := map[string]string{}
	for id, r := range m.records {
		want[id] = r.data
	}
	for {
		out, err := m.ask(laptop, pep.Sync{Node: "notes", Cursor: m.follower.cursor})
		if err != nil {
			t.Fatal(err)
		}
		page := out.Answer.(pep.SyncPage)
		for _, c := range page.Changes {
			if !c.Gone && c.KeyVersion < m.floor {
				t.Fatalf("record %s has key version %d below the floor %d", c.ID, c.KeyVersion, m.floor)
			}
		}
		if m.follower.page(page); !page.More {
			break
		}
	}
	if !maps.Equal(m.follower.held, want) {
		t.Fatalf("a device that follows has %v, want %v", m.follower.held, want)
	}
	if !m.there {
		return
	}
	out, err := m.ask(laptop, pep.Items{Node: "notes"})
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, r := range out.Answer.(pep.ItemsPage).Records {
		got[r.ID] = string(r.Payload.Data)
	}
	if !maps.Equal(got, want) {
		t.Fatalf("a reader sees %v, want %v", got, want)
	}
}

// Several devices write, stage and commit in any order, across restarts and
// deletions: what readers see is the model's, after every step.
func TestBatchesRandomly(t *testing.T) {
	t.Parallel()
	dir, n := t.TempDir(), 0
	rapid.Check(t, func(t *rapid.T) {
		n++
		m := &batchMachine{
			t: t, path: fmt.Sprint(dir, "/", n, ".db"), clock: time.UnixMilli(1_700_000_000_000),
			batchModel: &batchModel{batches: map[string]*modelBatch{}, records: map[string]modelRecord{}},
			devices:    map[string]held{laptop: {cursor: pep.NoCursor}, phone: {cursor: pep.NoCursor}, bob: {cursor: pep.NoCursor}},
		}
		m.open()
		defer func() { m.store.Close() }()
		t.Repeat(map[string]func(*rapid.T){
			"look": m.look, "save": m.save, "retract": m.retract, "begin": m.beginBatch, "stage": m.stageChange,
			"stage more": m.stageChange, "stage all": m.stageAll, "unstage": m.unstage,
			"rotate past": m.rotatePast, "commit": m.commitBatch, "commit again": m.commitBatch, "abort": m.abort, "rare": m.rare, "": m.check,
		})
	})
}

// While rotations go on, every reader sees one of them as a whole, and none that
// is older than what it saw before.
func TestReadersSeeOldOrNewOnly(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(o *pep.Options) { o.Limits.AccountBytes, o.Limits.StagedBytes = 1<<30, 1<<30 })
	w.must(laptop, publish("a", "b", "c", "d"))
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var readers sync.WaitGroup
	for range 3 {
		readers.Go(func() {
			last := uint32(0)
			for ctx.Err() == nil {
				request := pep.Request{Sender: device(phone), Owner: "alice@localhost", Op: pep.Items{Node: "notes"}}
				var seen []vault.Record
				err := w.Do(context.WithoutCancel(ctx), request, func(out pep.Outcome) { seen = out.Answer.(pep.ItemsPage).Records })
				if err != nil || len(seen) != 4 {
					t.Errorf("%d records, %v", len(seen), err)
					return
				}
				for _, r := range seen {
					if r.KeyVersion != seen[0].KeyVersion {
						t.Errorf("half a rotation: key versions %d and %d", seen[0].KeyVersion, r.KeyVersion)
						return
					}
				}
				if seen[0].KeyVersion < last {
					t.Errorf("key version %d after %d", seen[0].KeyVersion, last)
				}
				last = seen[0].KeyVersion
			}
		})
	}
	for version := range uint32(12) {
		id := fmt.Sprint(version)
		w.rotation(laptop, id, version+4)
		w.mustCommit(laptop, id)
	}
	stop()
	readers.Wait()
}
