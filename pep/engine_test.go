package pep_test

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"pepvault/pep"
	"pepvault/store"
	"pepvault/vault"
)

var limits = vault.Limits{
	Records: 4, RecordBytes: 100, Vaults: 2, AccountBytes: 250, TombstonesFactor: 1,
	Subscriptions: 2, Affiliations: 3, Resources: 3, Capabilities: 16, ForeignPayloads: true,
	Batches: 2, StagedBytes: 200, BatchExpiry: time.Hour, MassDeleteShare: 0.9, MassDeleteMin: 8,
}

// world is an engine on a real store.
type world struct {
	*pep.Engine
	t       *testing.T
	store   vault.Store
	path    string
	options pep.Options
}

// restart opens the store anew, under a new engine.
func (w *world) restart() {
	w.t.Helper()
	if err := w.store.Close(); err != nil {
		w.t.Fatal(err)
	}
	w.open()
	w.Engine = pep.New(w.options)
}

func (w *world) open() {
	w.t.Helper()
	s, err := store.Open(w.t.Context(), store.Options{Driver: "sqlite", Path: w.path})
	if err != nil {
		w.t.Fatal(err)
	}
	w.store, w.options.Store = s, s
}

func newWorld(t *testing.T, change func(*pep.Options)) *world {
	t.Helper()
	w := &world{t: t, path: filepath.Join(t.TempDir(), "vault.db"), options: pep.Options{
		Limits: limits, Domains: []string{"localhost"}, AnswerBytes: 100_000, InlineBytes: 10_000,
		StanzaBytes: 100_500, ChunkBytes: 32_000, BatchRecords: 8,
		Now: func() time.Time { return time.UnixMilli(1_700_000_000_000) },
	}}
	w.open()
	t.Cleanup(func() {
		if err := w.store.Close(); err != nil {
			t.Error(err)
		}
	})
	if change != nil {
		change(&w.options)
	}
	w.Engine = pep.New(w.options)
	return w
}

func device(address string) pep.Sender {
	bare, resource := vault.SplitAddress(address)
	account, err := vault.PrepareAccount(bare)
	if err != nil {
		panic(err)
	}
	return pep.Sender{Account: account, Address: address, Resource: resource}
}

const (
	laptop  = "alice@localhost/laptop"
	phone   = "alice@localhost/phone"
	mallory = "mallory@localhost/x"
)

// ask has a device do op on its own vaults.
func (w *world) ask(from string, op pep.Op) (pep.Outcome, error) {
	w.t.Helper()
	sender := device(from)
	return w.askOf(from, sender.Account, op)
}

func (w *world) askOf(from string, owner vault.Account, op pep.Op) (pep.Outcome, error) {
	w.t.Helper()
	var outs []pep.Outcome
	err := w.Do(w.t.Context(), pep.Request{Sender: device(from), Owner: owner, Op: op}, func(out pep.Outcome) {
		outs = append(outs, out)
	})
	if (err == nil) != (len(outs) == 1) {
		w.t.Fatalf("%T: done was called %d times, and Do returned %v", op, len(outs), err)
	}
	if err != nil {
		return pep.Outcome{}, err
	}
	return outs[0], nil
}

func (w *world) must(from string, op pep.Op) pep.Outcome {
	w.t.Helper()
	out, err := w.ask(from, op)
	if err != nil {
		w.t.Fatalf("%T by %s: %v", op, from, err)
	}
	return out
}

func item(id, data string) pep.Item {
	return pep.Item{ID: id, KeyVersion: 3, Payload: vault.Payload{Form: vault.Native, Data: []byte(data)}}
}

func publish(ids ...string) pep.Publish {
	op := pep.Publish{Node: "notes"}
	for _, id := range ids {
		op.Items = append(op.Items, item(id, "data of "+id))
	}
	return op
}

// here has a device send directed presence, for its own account's vaults.
func (w *world) here(addresses ...string) {
	for _, a := range addresses {
		w.Arrive(pep.Presence{Sender: device(a), Owner: device(a).Account})
	}
}

// contents reads a vault as "id=data" in the order of changes.
func (w *world) contents(from, node string) []string {
	w.t.Helper()
	page, ok := w.must(from, pep.Items{Node: node}).Answer.(pep.ItemsPage)
	if !ok {
		w.t.Fatalf("items of %s are no page", node)
	}
	list := []string{}
	for _, r := range page.Records {
		list = append(list, r.ID+"="+string(r.Payload.Data))
	}
	return list
}

// vault looks up the state of a device's vault.
func (w *world) vault(from, node string) vault.Vault {
	w.t.Helper()
	var state vault.Vault
	err := w.store.View(w.t.Context(), func(v vault.View) (err error) {
		state, err = v.Vault(vault.Key{Account: device(from).Account, Node: node})
		return err
	})
	if err != nil {
		w.t.Fatal(err)
	}
	return state
}

func refused(t *testing.T, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("refused with %v, want %v", err, want)
	}
}

func equal(t *testing.T, what string, got, want any) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

func TestPublishMakesTheVaultAndOverwrites(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.must(laptop, publish("a", "b"))
	w.must(phone, pep.Publish{Node: "notes", Items: []pep.Item{item("a", "newer")}})
	equal(t, "contents", w.contents(laptop, "notes"), []string{"b=data of b", "a=newer"})

	page := w.must(laptop, pep.Items{Node: "notes", IDs: []string{"a"}}).Answer.(pep.ItemsPage)
	want := vault.Record{
		ID: "a", Revision: 4, KeyVersion: 3, Publisher: "alice@localhost",
		Payload:   vault.Payload{Form: vault.Native, Data: []byte("newer")},
		Published: time.UnixMilli(1_700_000_000_000).UTC(),
	}
	equal(t, "record a", page.Records, []vault.Record{want})
}

func TestPublishGeneratesIDs(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	op := publish("", "b", "")
	published := w.must(laptop, op).Answer.(pep.Published)
	if len(published.IDs) != 3 || published.IDs[0] == "" || published.IDs[1] != "b" || published.IDs[0] == published.IDs[2] {
		t.Errorf("ids are %q", published.IDs)
	}
	if !slices.IsSorted([]string{published.IDs[0], published.IDs[2]}) {
		t.Errorf("generated ids %q are not in the order of their making", published.IDs)
	}
	equal(t, "number of records", len(w.contents(laptop, "notes")), 3)
}

func TestFullVaultRefusesAndKeepsAll(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.must(laptop, publish("a", "b", "c", "d"))
	before := w.contents(laptop, "notes")

	_, err := w.ask(laptop, publish("e"))
	refused(t, err, pep.ErrNodeFull)
	_, err = w.ask(laptop, publish("a", "e"))
	refused(t, err, pep.ErrNodeFull)
	_, err = w.ask(laptop, publish("1", "2", "3", "4", "5"))
	refused(t, err, pep.ErrMaxItemsExceeded)
	equal(t, "contents after the refusals", w.contents(laptop, "notes"), before)

	w.must(laptop, publish("a", "b"))
	w.must(laptop, pep.Retract{Node: "notes", IDs: []string{"c"}})
	w.must(laptop, publish("e"))
	equal(t, "contents", w.contents(laptop, "notes"), []string{"d=data of d", "a=data of a", "b=data of b", "e=data of e"})
}

func TestBoundsOfAnAccount(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	big := strings.Repeat("x", 100)
	w.must(laptop, pep.Publish{Node: "one", Items: []pep.Item{item("a", big), item("b", big)}})

	_, err := w.ask(laptop, pep.Publish{Node: "two", Items: []pep.Item{item("c", big)}})
	refused(t, err, pep.ErrQuotaExceeded)
	var refusal *pep.Refusal
	if errors.As(err, &refusal) {
		equal(t, "quota", []int64{refusal.Bytes, refusal.Limit}, []int64{200, 250})
	}
	list := w.must(laptop, pep.ListVaults{}).Answer.(pep.VaultList)
	equal(t, "vaults after a refusal", len(list.Vaults), 1)

	w.must(laptop, pep.Publish{Node: "two", Items: []pep.Item{item("c", "small")}})
	_, err = w.ask(laptop, pep.Publish{Node: "three", Items: []pep.Item{item("d", "small")}})
	refused(t, err, pep.ErrTooManyVaults)
	_, err = w.ask(laptop, pep.Publish{Node: "two", Items: []pep.Item{item("c", big+"x")}})
	refused(t, err, pep.ErrPayloadTooBig)
	// What shrinks is let in, and another account is not concerned.
	w.must(laptop, pep.Publish{Node: "one", Items: []pep.Item{item("a", "small")}})
	w.must(mallory, pep.Publish{Node: "one", Items: []pep.Item{item("a", big)}})
}

func TestAccountsAreApart(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.must(laptop, publish("a"))
	w.must(mallory, pep.Publish{Node: "notes", Items: []pep.Item{item("a", "mine")}})
	equal(t, "Alice's", w.contents(phone, "notes"), []string{"a=data of a"})
	equal(t, "Mallory's", w.contents(mallory, "notes"), []string{"a=mine"})
}

// Rights come before existence: a stranger gets the same for a vault that is
// there and for one that is not.
func TestStrangersLearnNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.must(laptop, publish("a"))
	tests := []struct {
		name string
		op   func(node string) pep.Op
		want error
	}{
		{"items", func(n string) pep.Op { return pep.Items{Node: n} }, pep.ErrClosedNode},
		{"items by id", func(n string) pep.Op { return pep.Items{Node: n, IDs: []string{"a"}} }, pep.ErrClosedNode},
		{"describe", func(n string) pep.Op { return pep.DescribeVault{Node: n} }, pep.ErrClosedNode},
		{"subscribe", func(n string) pep.Op { return pep.Subscribe{Node: n, JID: "mallory@localhost"} }, pep.ErrClosedNode},
		{"unsubscribe", func(n string) pep.Op { return pep.Unsubscribe{Node: n, JID: "mallory@localhost"} }, pep.ErrClosedNode},
		{"publish", func(n string) pep.Op { return pep.Publish{Node: n, Items: []pep.Item{item("b", "x")}} }, pep.ErrForbidden},
		{"retract", func(n string) pep.Op { return pep.Retract{Node: n, IDs: []string{"a"}} }, pep.ErrForbidden},
		{"delete", func(n string) pep.Op { return pep.Delete{Node: n} }, pep.ErrForbidden},
	}
	for _, tt := range tests {
		for _, node := range []string{"notes", "absent"} {
			_, err := w.askOf(mallory, "alice@localhost", tt.op(node))
			if !errors.Is(err, tt.want) {
				t.Errorf("%s of %s: %v, want %v", tt.name, node, err, tt.want)
			}
		}
	}
	for _, owner := range []vault.Account{"alice@localhost", "nobody@localhost"} {
		out, err := w.askOf(mallory, owner, pep.ListVaults{})
		if list, ok := out.Answer.(pep.VaultList); err != nil || !ok || len(list.Vaults) != 0 {
			t.Errorf("list of %s: %v, %v; want an empty one", owner, out.Answer, err)
		}
	}
	equal(t, "contents", w.contents(laptop, "notes"), []string{"a=data of a"})
}

func TestRetractIsAtomic(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.must(laptop, publish("a", "b"))
	_, err := w.ask(laptop, pep.Retract{Node: "notes", IDs: []string{"a", "absent"}})
	refused(t, err, vault.ErrNoRecord)
	equal(t, "contents", w.contents(laptop, "notes"), []string{"a=data of a", "b=data of b"})
	_, err = w.ask(laptop, pep.Retract{Node: "absent", IDs: []string{"a"}})
	refused(t, err, vault.ErrNoVault)
}

func TestTombstonesAreBounded(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	for i := range 12 {
		id := strconv.Itoa(i)
		w.must(laptop, publish(id))
		w.must(laptop, pep.Retract{Node: "notes", IDs: []string{id}})
	}
	state := w.vault(laptop, "notes")
	// 1 for the creation, then a record and a tombstone each time; four
	// tombstones are kept: 19, 21, 23 and 25.
	equal(t, "highest pruned tombstone", state.Pruned, vault.Revision(17))
	equal(t, "revision", state.Revision, vault.Revision(25))
}

func TestAbsentVaults(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	for _, op := range []pep.Op{
		pep.Items{Node: "absent"}, pep.DescribeVault{Node: "absent"}, pep.Delete{Node: "absent"},
		pep.Subscribe{Node: "absent", JID: "alice@localhost"}, pep.Unsubscribe{Node: "absent", JID: laptop},
	} {
		_, err := w.ask(laptop, op)
		if !errors.Is(err, vault.ErrNoVault) {
			t.Errorf("%T: %v, want ErrNoVault", op, err)
		}
	}
}

func TestDoneRunsInCommitOrder(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(o *pep.Options) { o.Limits.AccountBytes = 1 << 30 })
	w.must(laptop, publish("a"))
	var mu sync.Mutex
	var seen []vault.Revision // states in the order in which they were told
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() { // a writer
			for range 50 {
				op := publish("a")
				op.State = true
				err := w.Do(context.Background(), pep.Request{Sender: device(laptop), Owner: "alice@localhost", Op: op}, func(out pep.Outcome) {
					mu.Lock()
					defer mu.Unlock()
					seen = append(seen, out.Answer.(pep.Published).State.Items[0].Revision)
				})
				if err != nil {
					t.Error(err)
				}
			}
		})
		group.Go(func() { // a reader
			for range 50 {
				err := w.Do(context.Background(), pep.Request{Sender: device(phone), Owner: "alice@localhost", Op: pep.Items{Node: "notes"}}, func(out pep.Outcome) {
					mu.Lock()
					defer mu.Unlock()
					seen = append(seen, out.Answer.(pep.ItemsPage).Records[0].Revision)
				})
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	group.Wait()
	if !slices.IsSorted(seen) {
		t.Errorf("an older state was told after a newer one")
	}
	equal(t, "number of answers", len(seen), 800)
}
