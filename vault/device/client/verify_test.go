package client

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"pepvault/pep"
	"pepvault/vault"
	"pepvault/vault/seal"
)

// What a service answers of an older state of one record, sealed with the present
// key, is noticed by who has seen the newer one.
func TestRecordsGoingBack(t *testing.T) {
	t.Parallel()
	w := newService(t)
	a, b := w.person("p").mustJoin(), w.person("p").mustJoin()
	a.put("one", "old")
	a.mustSync()
	id := a.idOf("one")
	old := a.r.Records()[id].Payload.Data
	a.put("one", "new")
	a.mustSync()
	w.publish(id, 1, old)
	a.mustSync()
	if bad := strings.Join(a.Tampered(), "; "); !strings.Contains(bad, "went back to an older version") {
		t.Errorf("noticed %q", bad)
	}
	same(t, a, map[string]string{"one": "new"}) // the last good one
	b.mustSync()
	if bad := b.Tampered(); len(bad) > 0 {
		t.Errorf("b has not seen the newer one, and says %q", bad)
	}
	// A name that was removed and made again begins anew.
	a.put("one", "newer")
	a.mustSync()
	b.mustSync()
	if err := a.Remove("one"); err != nil {
		t.Fatal(err)
	}
	a.mustSync()
	a.put("one", "again")
	a.mustSync()
	b.mustSync()
	same(t, b, map[string]string{"one": "again"})
	if bad := append(a.Tampered(), b.Tampered()...); len(bad) > 0 {
		t.Errorf("nobody tampered, and it says %q", bad)
	}
}

// publish stores a record as a service could.
func (w *service) publish(id string, version uint32, data []byte) {
	w.t.Helper()
	w.tool(pep.Publish{Node: node, Items: []pep.Item{{ID: id, KeyVersion: version, Payload: vault.Payload{Form: vault.Native, Data: data}}}})
}

func TestKeyRecordsOfNobody(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		spoil func(w *service, a *person)
		want  string
	}{
		"gone": {func(w *service, _ *person) {
			w.tool(pep.Retract{Node: node, IDs: []string{KeyRecord}})
		}, "is gone"},
		"damaged": {func(w *service, a *person) { w.publish(KeyRecord, a.KeyVersion(), []byte("?")) }, "damaged"},
		"changed": {func(w *service, a *person) {
			text := slices.Clone(a.state.KeyRecord)
			text[len(text)-1] ^= 1
			w.publish(KeyRecord, a.KeyVersion(), text)
		}, "changed"},
		"another key of that version": {func(w *service, a *person) {
			keys := seal.Keys{Records: seal.NewKey(), Names: a.state.names()}
			w.publish(KeyRecord, a.KeyVersion(), seal.Wrap(a.root, a.lock, a.at, a.KeyVersion(), keys, nil))
		}, "another key"},
		"forged after a rotation": {func(w *service, a *person) {
			lock := seal.NewLock(seal.KeyFile)
			root, err := lock.Root(make([]byte, 40))
			if err != nil {
				w.t.Fatal(err)
			}
			old, _ := a.state.key(a.state.KeyID)
			text := seal.Wrap(root, lock, a.at, a.KeyVersion()+1, seal.Keys{Records: seal.NewKey()}, &old)
			text[65] ^= 1 // of the proof
			w.publish(KeyRecord, a.KeyVersion()+1, text)
		}, "forged"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newService(t)
			a := w.person("p").mustJoin()
			a.put("one", "1")
			a.mustSync()
			good := slices.Clone(a.state.KeyRecord)
			test.spoil(w, a)
			a.mustSync()
			a.again()
			if bad := strings.Join(a.Tampered(), "; "); !strings.Contains(bad, test.want) {
				t.Errorf("noticed %q, want %q", bad, test.want)
			}
			same(t, a, map[string]string{"one": "1"})
			if err := w.person("p").join(); err == nil && test.want != "another key" || test.want == "damaged" && !errors.Is(err, ErrTampered) {
				t.Errorf("a new device: %v", err)
			}
			w.publish(KeyRecord, 1, good)
			a.mustSync()
			if bad := a.Tampered(); len(bad) > 0 || a.Locked() != nil {
				t.Errorf("mended, it still says %q, %v", bad, a.Locked())
			}
		})
	}
}

// A service that answers with an older key, or an older state, within the same
// history.
func TestKeysGoingBack(t *testing.T) {
	t.Parallel()
	w := newService(t)
	a := w.person("p").mustJoin()
	a.put("one", "1")
	a.mustSync()
	old := a.r.Records()
	for range 2 {
		if err := a.Rotate(nil, Source{}); err != nil {
			t.Fatal(err)
		}
		a.mustSync()
	}
	w.change = func(answer any) any {
		page, is := answer.(pep.SyncPage)
		if !is {
			return answer
		}
		page.Reset = vault.NoReset
		for id, r := range old {
			page.Changes = append(page.Changes, vault.Change{Record: vault.Record{ID: id, Revision: 1000, KeyVersion: r.KeyVersion, Payload: r.Payload}})
		}
		page.Cursor = strings.Repeat("x", 20)
		return page
	}
	a.mustSync()
	bad := strings.Join(a.Tampered(), "; ")
	if !strings.Contains(bad, "went back from version 3 to 1") {
		t.Errorf("noticed %q", bad)
	}
	same(t, a, map[string]string{"one": "1"})
}

// A record that was sealed with a key that the vault has left behind is one that
// nobody offers any more: only a service that lies has it.
func TestRecordsUnderAnOlderKey(t *testing.T) {
	t.Parallel()
	w := newService(t)
	a := w.person("p").mustJoin()
	a.put("one", "1")
	a.mustSync()
	id := a.idOf("one")
	old := a.r.Records()[id]
	if err := a.Rotate(nil, Source{}); err != nil {
		t.Fatal(err)
	}
	a.mustSync()
	w.change = func(answer any) any {
		page, is := answer.(pep.SyncPage)
		if is {
			page.Changes = append(page.Changes, vault.Change{Record: vault.Record{ID: id, Revision: 1000, KeyVersion: old.KeyVersion, Payload: old.Payload}})
			page.Cursor = strings.Repeat("x", 20)
			return page
		}
		return answer
	}
	a.mustSync()
	if bad := strings.Join(a.Tampered(), "; "); !strings.Contains(bad, "older key") {
		t.Errorf("noticed %q", bad)
	}
	same(t, a, map[string]string{"one": "1"})
}

// A record that is spoiled while a rotation is under way holds that up, but not what
// mends it.
func TestSpoiledInARotation(t *testing.T) {
	t.Parallel()
	w := newService(t)
	a := w.person("p").mustJoin()
	a.put("one", "1")
	a.put("two", "2")
	a.mustSync()
	if err := a.Rotate(nil, Source{}); err != nil {
		t.Fatal(err)
	}
	w.cut = func(op any, _ bool) bool { _, begins := op.(pep.BeginBatch); return begins }
	if err := a.sync(); !isCut(err) {
		t.Fatal(err)
	}
	w.cut = nil
	id := a.idOf("one")
	w.publish(id, 1, a.r.Records()[a.idOf("two")].Payload.Data)
	a.again()
	a.mustSync()
	if bad := a.Tampered(); len(bad) != 1 || a.KeyVersion() != 1 {
		t.Fatalf("noticed %q, key version %d", bad, a.KeyVersion())
	}
	a.put("one", "mended")
	a.mustSync()
	if bad := a.Tampered(); len(bad) > 0 || a.KeyVersion() != 2 {
		t.Errorf("mended, it still says %q, key version %d", bad, a.KeyVersion())
	}
	same(t, a, map[string]string{"one": "mended", "two": "2"})
}

// TestOtherVaultsFolder holds that what is kept of one vault is never taken for
// another one's, where somebody moved files between folders.
func TestOtherVaultsFolder(t *testing.T) {
	t.Parallel()
	w := newService(t)
	p := w.person("laptop").mustJoin()
	p.put("a", "1")
	if err := p.Store.Close(); err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(*Options){
		"node":    func(o *Options) { o.Node = "other" },
		"account": func(o *Options) { o.Account = "bob@localhost" },
	} {
		o := p.options()
		change(&o)
		if _, err := Open(o); !errors.Is(err, ErrOtherVault) {
			t.Errorf("opened with another %s: %v, want %v", name, err, ErrOtherVault)
		}
		if err := o.Store.Close(); err != nil {
			t.Fatal(err)
		}
	}
	p.again()
}
