package storetest

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"pepvault/vault"
)

// testRandom compares the store with a Model under random transactions,
// opening it anew now and then.
func testRandom(f *fixture) {
	n := 0
	rapid.Check(f.T, func(t *rapid.T) {
		n++
		dir := filepath.Join(f.dir, fmt.Sprint("random", n))
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		m := &machine{f: f, dir: dir, store: f.opener(f.T, dir)}
		m.model = NewModel(m.store.Run())
		defer func() { m.store.Close() }()
		t.Repeat(map[string]func(*rapid.T){
			"update": m.update,
			"again":  m.update, // reopening is dear, so it comes more seldom
			"refuse": m.refuse,
			"reopen": m.reopen,
			"":       m.check,
		})
	})
}

// machine has a store and its model go through the same.
type machine struct {
	f     *fixture
	dir   string
	store vault.Store
	model *Model
	seen  []vault.Epoch
}

// step is one call of a transaction. What it returns is compared.
type step struct {
	name string
	call func(vault.Tx) (any, error)
}

var (
	someAccounts = []vault.Account{alice, bob}
	someNodes    = []string{"a", "b"}
	someHashes   = []string{"", "sha-1:AAAA", "sha-256:BBBB"}
	someIDs      = []string{"1", "2", "3", "4", "5", "six"}

	keys    = rapid.Custom(drawKey)
	records = rapid.Custom(drawRecord)
	ids     = rapid.SampledFrom(someIDs)
	limits  = rapid.Custom(drawLimit)
	steps   = rapid.Custom(drawStep)
	configs = rapid.Make[vault.Config]() // whatever fields it has
)

// rapid makes the name of a generator when something first asks for it, and reads
// it unguarded: so names are made before tests share generators in parallel.
func init() {
	for _, g := range []fmt.Stringer{keys, records, ids, limits, steps, configs} {
		_ = g.String()
	}
}

func drawKey(t *rapid.T) vault.Key {
	return vault.Key{
		Account: rapid.SampledFrom(someAccounts).Draw(t, "account"),
		Node:    rapid.SampledFrom(someNodes).Draw(t, "node"),
	}
}

func drawRecord(t *rapid.T) vault.Record {
	return vault.Record{
		ID:         ids.Draw(t, "id"),
		KeyVersion: uint32(rapid.IntRange(0, vault.MaxKeyVersion).Draw(t, "key version")),
		Payload: vault.Payload{
			Form: rapid.SampledFrom([]vault.Form{vault.Native, vault.Foreign}).Draw(t, "form"),
			Data: []byte(strings.Repeat("x", rapid.IntRange(0, 3000).Draw(t, "size"))),
		},
		Publisher: rapid.SampledFrom(someAccounts).Draw(t, "publisher"),
		Published: time.UnixMilli(rapid.Int64Range(0, 1<<42).Draw(t, "published")).UTC(),

		RotatedFrom: vault.Revision(rapid.IntRange(0, 9).Draw(t, "rotated from")),
	}
}

func drawLimit(t *rapid.T) vault.PageLimit {
	return vault.PageLimit{
		Records:   rapid.IntRange(1, 8).Draw(t, "records"),
		Cost:      rapid.IntRange(1, 12000).Draw(t, "cost"),
		Live:      rapid.Bool().Draw(t, "live"),
		GoneAbove: vault.Revision(rapid.IntRange(0, 20).Draw(t, "gone")),
	}
}

// drawStep draws any call of a Tx, those that are refused as well.
func drawStep(t *rapid.T) step {
	key, record, id := keys.Draw(t, "key"), records.Draw(t, "record"), ids.Draw(t, "other id")
	subscription := vault.Subscription{Account: rapid.SampledFrom(someAccounts).Draw(t, "subscriber")}
	keep := rapid.IntRange(0, 3).Draw(t, "keep")
	config := configs.Draw(t, "config")
	affiliated := vault.Affiliated{
		Account:     subscription.Account,
		Affiliation: vault.Affiliation(rapid.IntRange(0, int(vault.Publisher)).Draw(t, "affiliation")),
	}
	capabilities := vault.Capabilities{
		Hash: rapid.SampledFrom(someHashes[1:]).Draw(t, "hash"), Nodes: []string{key.Node}, Sync: keep > 1, Used: record.Published,
	}
	resource := vault.Resource{
		Account: key.Account, Name: id, Address: string(key.Account) + "/" + id, Seen: record.Published,
		Owners: rapid.SampledFrom([][]vault.Account{nil, {key.Account}, someAccounts}).Draw(t, "owners"),
		Vaults: rapid.SampledFrom([][]vault.Key{nil, {key}}).Draw(t, "vaults"),
		Caps:   rapid.SampledFrom(someHashes).Draw(t, "caps"),
	}
	batches := drawBatchSteps(t, key, record, id)
	put := step{"put", func(tx vault.Tx) (any, error) { return tx.Put(key, record) }}
	return rapid.SampledFrom(append(batches, []step{
		put, put, put,
		{"create", func(tx vault.Tx) (any, error) {
			v, err := tx.Create(key, config)
			v.Epoch, v.Created = vault.Epoch{}, time.Time{} // see adopt
			return v, err
		}},
		{"configure", func(tx vault.Tx) (any, error) { return tx.Configure(key, config) }},
		{"fork", func(tx vault.Tx) (any, error) {
			v, err := tx.Fork(key, vault.Revision(keep))
			v.Epoch, v.Created = vault.Epoch{}, time.Time{} // see adopt
			return v, err
		}},
		{"delete", func(tx vault.Tx) (any, error) { return nil, tx.Delete(key) }},
		{"retract", func(tx vault.Tx) (any, error) { return tx.Retract(key, id) }},
		{"purge", func(tx vault.Tx) (any, error) { return tx.Purge(key) }},
		{"affiliate", func(tx vault.Tx) (any, error) { return nil, tx.Affiliate(key, affiliated) }},
		{"withdraw", func(tx vault.Tx) (any, error) { return tx.Withdraw(subscription.Account) }},
		{"keep capabilities", func(tx vault.Tx) (any, error) { return nil, tx.KeepCapabilities(capabilities) }},
		{"drop capabilities", func(tx vault.Tx) (any, error) { return nil, tx.DropCapabilities(capabilities.Hash) }},
		{"prune", func(tx vault.Tx) (any, error) { return nil, tx.Prune(key, keep) }},
		{"subscribe", func(tx vault.Tx) (any, error) { return nil, tx.Subscribe(key, subscription) }},
		{"unsubscribe", func(tx vault.Tx) (any, error) { return tx.Unsubscribe(key, subscription) }},
		{"keep a resource", func(tx vault.Tx) (any, error) { return nil, tx.KeepResource(resource) }},
		{"forget resources", func(tx vault.Tx) (any, error) { return nil, tx.ForgetResources(key.Account) }},
		{"drop a resource", func(tx vault.Tx) (any, error) { return nil, tx.DropResource(key.Account, id) }},
		{"read", func(tx vault.Tx) (any, error) { return tx.Records(key, []string{id, record.ID}) }},
	}...)).Draw(t, "step")
}

// run carries out the steps and notes what each returned.
func run(tx vault.Tx, steps []step) (results []any) {
	for _, s := range steps {
		result, err := s.call(tx)
		results = append(results, s.name, result, sentinel(err))
	}
	return results
}

func sentinel(err error) error {
	for _, known := range []error{vault.ErrNoVault, vault.ErrNoRecord, vault.ErrVaultExists, vault.ErrNoBatch, vault.ErrBatchExists} {
		if errors.Is(err, known) {
			return known
		}
	}
	return err
}

func (m *machine) update(t *rapid.T) { m.transact(t, nil) }

func (m *machine) refuse(t *rapid.T) { m.transact(t, errors.New("refused")) }

// transact runs a transaction that ends with an error in the store and in the
// model.
func (m *machine) transact(t *rapid.T, end error) {
	chosen := rapid.SliceOfN(steps, 1, 6).Draw(t, "steps")
	var got, want []any
	var made []vault.Vault
	err := m.store.Update(m.f.Context(), keys.Draw(t, "key"), func(tx vault.Tx) error {
		got = run(tx, chosen)
		made = nil
		for _, account := range someAccounts {
			vaults, err := tx.Vaults(account)
			if err != nil {
				return err
			}
			made = append(made, vaults...)
		}
		return end
	})
	if err != end {
		t.Fatalf("update: %v, want %v", err, end)
	}
	m.model.Update(func(tx vault.Tx) error {
		want = run(tx, chosen)
		return end
	})
	compare(t, "results", got, want)
	if end == nil {
		m.adopt(made)
	}
}

// adopt tells the model of new vaults' epochs. Those of the others it knows,
// and check compares them.
func (m *machine) adopt(vaults []vault.Vault) {
	for _, v := range vaults {
		if known, err := m.model.Vault(v.Key); err == nil && known.Epoch == (vault.Epoch{}) {
			m.model.Adopt(v)
			m.seen = append(m.seen, v.Epoch)
		}
	}
}

func (m *machine) reopen(t *rapid.T) {
	if rapid.IntRange(0, 7).Draw(t, "reopens at 0") != 0 {
		return
	}
	if err := m.store.Close(); err != nil {
		t.Fatal(err)
	}
	m.store = m.f.opener(m.f.T, m.dir)
	m.model.Run = m.store.Run()
	for _, account := range someAccounts {
		for _, node := range someNodes {
			m.look(t, vault.Key{Account: account, Node: node})
		}
	}
}

// check compares all that can be read, of one vault at a time.
func (m *machine) check(t *rapid.T) { m.look(t, keys.Draw(t, "key")) }

func (m *machine) look(t *rapid.T, key vault.Key) {
	err := m.store.View(m.f.Context(), func(v vault.View) error {
		m.checkVault(t, v, key)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func (m *machine) checkVault(t *rapid.T, v vault.View, key vault.Key) {
	limit := limits.Draw(t, "limit")
	below := vault.Revision(rapid.IntRange(0, 20).Draw(t, "below"))
	after := vault.Revision(rapid.IntRange(0, 20).Draw(t, "after"))
	with := rapid.SampledFrom(someAccounts).Draw(t, "with")
	for name, call := range map[string]func(v vault.View) (any, error){
		"vault":   func(v vault.View) (any, error) { return v.Vault(key) },
		"records": func(v vault.View) (any, error) { return v.Records(key, someIDs) },
		"heads":   func(v vault.View) (any, error) { return v.Heads(key, someIDs) },
		"latest":  func(v vault.View) (any, error) { return v.Latest(key, below, limit) },
		"changes": func(v vault.View) (any, error) { return v.Changes(key, after, limit) },
		"all":     func(v vault.View) (any, error) { return v.Changes(key, 0, unlimited) },
		"runs":    func(v vault.View) (any, error) { return v.Runs(key) },
		"epochs":  func(v vault.View) (any, error) { return m.epochs(v, key) },
		"rank":    func(v vault.View) (any, error) { return v.Rank(key, below) },
		"nth":     func(v vault.View) (any, error) { return v.Nth(key, int(after)%8) },
		"key versions": func(v vault.View) (any, error) {
			low, high, err := v.KeyVersions(key)
			return []uint32{low, high}, err
		},
		"subscriptions": func(v vault.View) (any, error) { return v.Subscriptions(key) },
		"affiliations":  func(v vault.View) (any, error) { return v.Affiliations(key) },
		"capabilities":  func(v vault.View) (any, error) { return v.Capabilities() },
		"inventory":     func(v vault.View) (any, error) { return v.Inventory(key) },
		"batches":       func(v vault.View) (any, error) { return everyBatch(v) },
		"shared":        func(v vault.View) (any, error) { return v.Shared(key.Account, with) },
		"totals":        func(v vault.View) (any, error) { return v.Totals() },
		"usage":         func(v vault.View) (any, error) { return v.Usage(key.Account) },
		"sizes":         func(v vault.View) (any, error) { return v.Sizes(key.Account) },
		"vaults":        func(v vault.View) (any, error) { return v.Vaults(key.Account) },
		"accounts":      func(v vault.View) (any, error) { return v.Accounts() },
		"resources":     func(v vault.View) (any, error) { return v.Resources() },
	} {
		compareCalls(t, v, m.model, name, call)
		m.compareGlance(t, name, call)
	}
}

// epochs tells what became of those that were seen.
func (m *machine) epochs(v vault.View, key vault.Key) (found []any, err error) {
	for _, epoch := range m.seen {
		fork, known, err := v.Forked(key, epoch)
		if err != nil {
			return nil, err
		}
		ended, err := v.Ended(epoch)
		if err != nil {
			return nil, err
		}
		found = append(found, fork, known, ended)
	}
	return found, nil
}

// compareGlance wants the same of a Glance as of a View.
func (m *machine) compareGlance(t *rapid.T, what string, call func(vault.View) (any, error)) {
	var got any
	err := m.store.Glance(m.f.Context(), func(v vault.View) (err error) {
		got, err = call(v)
		return err
	})
	want, wantErr := call(m.model)
	if sentinel(err) != sentinel(wantErr) {
		t.Fatalf("%s at a glance: error %v, want %v", what, err, wantErr)
	}
	compare(t, what+" at a glance", got, want)
}

func compareCalls(t *rapid.T, real vault.View, model *Model, what string, call func(vault.View) (any, error)) {
	got, err := call(real)
	want, wantErr := call(model)
	if sentinel(err) != sentinel(wantErr) {
		t.Fatalf("%s: error %v, want %v", what, err, wantErr)
	}
	compare(t, what, got, want)
}

func compare(t *rapid.T, what string, got, want any) {
	if diff := cmp.Diff(want, got, same); diff != "" {
		t.Fatalf("%s differ (-model +store):\n%s", what, diff)
	}
}
