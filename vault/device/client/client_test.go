package client

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"pepvault/pep"
	"pepvault/store"
	"pepvault/vault"
	"pepvault/vault/seal"
)

func same(t *testing.T, p *person, want map[string]string) {
	t.Helper()
	if got := p.shown(); !maps.Equal(got, want) {
		t.Errorf("shows %q, want %q", got, want)
	}
}

func TestTwoDevicesShareAVault(t *testing.T) {
	t.Parallel()
	w := newService(t)
	a, b := w.person("p").mustJoin(), w.person("p").mustJoin()
	a.put("one", "1")
	a.put("two", "2")
	a.mustSync()
	if err := a.Remove("two"); err != nil {
		t.Fatal(err)
	}
	a.again() // it was only kept
	a.mustSync()
	b.mustSync()
	for _, p := range []*person{a, b} {
		same(t, p, map[string]string{"one": "1"})
		p.again()
		same(t, p, map[string]string{"one": "1"})
	}
	if err := w.person("other").join(); !errors.Is(err, seal.ErrWrongSecret) {
		t.Errorf("a third with another secret: %v", err)
	}
}

// Two devices that make the vault at the same time end with one key, and nothing
// of either is lost.
func TestTwoMakeTheVault(t *testing.T) {
	t.Parallel()
	w := newService(t)
	a, b := w.person("p"), w.person("p")
	w.cut = func(op any, done bool) bool { _, publishes := op.(pep.Publish); return publishes && !done }
	if err := a.join(); !isCut(err) {
		t.Fatal(err)
	}
	w.cut = nil
	b.mustJoin()
	b.put("b", "of b")
	b.mustSync()
	a.again()
	a.put("a", "of a")
	a.mustSync()
	b.mustSync()
	for _, p := range []*person{a, b} {
		same(t, p, map[string]string{"a": "of a", "b": "of b"})
		if bad := p.Tampered(); len(bad) > 0 || len(p.Conflicts()) > 0 {
			t.Errorf("tampered %q, conflicts %q", bad, p.Conflicts())
		}
	}
}

func TestConflictsKeepBoth(t *testing.T) {
	t.Parallel()
	w := newService(t)
	a, b := w.person("p").mustJoin(), w.person("p").mustJoin()
	for _, name := range []string{"x", "y", "alike"} {
		a.put(name, "old")
	}
	a.mustSync()
	b.mustSync()
	for _, name := range []string{"x", "y"} {
		b.put(name, "of b")
		a.put(name, "of a")
	}
	a.put("alike", "new")
	b.put("alike", "new")
	a.mustSync()
	b.mustSync()
	b.again()
	if got := b.Conflicts(); !slices.Equal(got, []string{"x", "y"}) {
		t.Fatalf("conflicts: %q", got)
	}
	e, err := b.Get("x")
	if err != nil || string(e.Content) != "of a" || string(e.Conflict.Content) != "of b" {
		t.Errorf("%+v, %v", e, err)
	}
	if err := errors.Join(b.Settle("x", true), b.Settle("y", false)); err != nil {
		t.Fatal(err)
	}
	b.mustSync()
	a.mustSync()
	for _, p := range []*person{a, b} {
		same(t, p, map[string]string{"x": "of b", "y": "of a", "alike": "new"})
	}
}

func TestDeletedVaultBeginsAnew(t *testing.T) {
	t.Parallel()
	w := newService(t)
	a := w.person("p").mustJoin()
	a.put("old", "1")
	a.mustSync()
	w.tool(pep.Delete{Node: node})
	a.put("new", "2")
	for range 2 {
		if err := a.sync(); !errors.Is(err, ErrNoVault) {
			t.Fatalf("sync: %v", err)
		}
		a.again()
	}
	if err := a.Renew(); err != nil {
		t.Fatal(err)
	}
	a.mustSync()
	b := w.person("p").mustJoin()
	same(t, b, map[string]string{"new": "2"})
}

// A put of which the answer was lost, on a device that was killed, is not made
// again after somebody has removed what it made.
func TestRepeatIsNothingNew(t *testing.T) {
	t.Parallel()
	w := newService(t)
	a, b := w.person("p").mustJoin(), w.person("p").mustJoin()
	a.put("one", "1")
	state := filepath.Join(a.dir, "vault.sealed")
	var kept []byte
	w.cut = func(op any, done bool) bool {
		if _, publishes := op.(pep.Publish); !publishes || !done {
			return false
		}
		var err error
		if kept, err = os.ReadFile(state); err != nil {
			t.Error(err)
		}
		return true
	}
	if err := a.sync(); !isCut(err) {
		t.Fatal(err)
	}
	w.cut = nil
	if err := os.WriteFile(state, kept, 0o600); err != nil {
		t.Fatal(err)
	}
	b.mustSync()
	if err := b.Remove("one"); err != nil {
		t.Fatal(err)
	}
	b.mustSync()
	a.again()
	a.mustSync()
	b.mustSync()
	same(t, b, map[string]string{})
	if got := a.Conflicts(); !slices.Equal(got, []string{"one"}) {
		t.Errorf("conflicts: %q", got)
	}
}

// restored brings the store back to what it was when keep was called.
func (w *service) restored() (restore func()) {
	w.t.Helper()
	o, copied := w.options("store.db"), filepath.Join(w.dir, "copy.db")
	if _, err := store.BackupOnline(context.Background(), o, copied); err != nil {
		w.t.Fatal(err)
	}
	return func() {
		w.t.Helper()
		if err := w.store.Close(); err != nil {
			w.t.Fatal(err)
		}
		w.store = nil
		if _, _, err := store.Restore(context.Background(), o, copied); err != nil {
			w.t.Fatal(err)
		}
		w.open("store.db")
	}
}

// A restored backup is no tampering, and takes nothing away.
func TestRestoredBackup(t *testing.T) {
	t.Parallel()
	w := newService(t)
	a, b := w.person("p").mustJoin(), w.person("p").mustJoin()
	a.put("one", "old")
	a.mustSync()
	restore := w.restored()
	a.put("one", "new")
	a.put("two", "2")
	a.mustSync()
	if err := a.Rotate(nil, Source{}); err != nil {
		t.Fatal(err)
	}
	a.mustSync()
	b.mustSync()
	restore()
	for _, p := range []*person{a, b, a} {
		p.Changed = func(c Change) {
			if c.Tampered != "" {
				t.Errorf("nobody tampered, and it says %+v", c)
			}
		}
		p.mustSync()
	}
	for _, p := range []*person{a, b} {
		same(t, p, map[string]string{"one": "new", "two": "2"})
	}
}

// What goes into an empty service again, goes there behind the vault's keys.
func TestKeysComeFirst(t *testing.T) {
	t.Parallel()
	w := newService(t)
	a := w.person("p").mustJoin()
	a.put("one", "1")
	a.mustSync()
	a.put("waiting", "2")
	w.open("another.db")
	w.cut = func(_ any, done bool) bool {
		if !done {
			return false
		}
		answer, err := w.do("tool", pep.Sync{Node: node})
		if page, is := answer.(pep.SyncPage); err == nil && is && len(page.Changes) > 0 &&
			!slices.ContainsFunc(page.Changes, func(c vault.Change) bool { return c.ID == KeyRecord }) {
			t.Error("the vault has records without their keys")
		}
		return false
	}
	a.mustSync()
	w.cut = nil
	same(t, w.person("p").mustJoin(), map[string]string{"one": "1", "waiting": "2"})
}

// A service whose store is another one can't read a device's cursor; what the
// device has is not lost.
func TestAnotherStore(t *testing.T) {
	t.Parallel()
	w := newService(t)
	a := w.person("p").mustJoin()
	a.put("one", "1")
	a.mustSync()
	if err := a.Rotate(nil, Source{}); err != nil {
		t.Fatal(err)
	}
	a.mustSync()
	w.open("another.db")
	a.mustSync()
	b := w.person("p").mustJoin()
	same(t, b, map[string]string{"one": "1"})
}

func TestRotationReachesOthers(t *testing.T) {
	t.Parallel()
	w := newService(t)
	a, b := w.person("p").mustJoin(), w.person("p").mustJoin()
	a.put("one", "1")
	a.mustSync()
	b.put("two", "2") // under the old key
	if err := a.Rotate(nil, Source{}); err != nil {
		t.Fatal(err)
	}
	a.mustSync()
	b.mustSync()
	a.mustSync()
	for _, p := range []*person{a, b} {
		same(t, p, map[string]string{"one": "1", "two": "2"})
		if p.KeyVersion() != 2 {
			t.Errorf("key version %d", p.KeyVersion())
		}
	}
	if err := b.Rotate([]byte(strings.Repeat("n", 40)), Source{Kind: seal.KeyFile, File: "new"}); err != nil {
		t.Fatal(err)
	}
	b.mustSync()
	if b.Source.File != "new" {
		t.Errorf("b reads its secret from %q", b.Source.File)
	}
	a.put("three", "3")
	if err := errors.Join(a.sync(), a.Locked()); !errors.Is(err, ErrPassPhraseChanged) {
		t.Errorf("a: %v", err)
	}
	// Who stays connected is told too: it could show nothing of what comes.
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	if err := a.Run(ctx, w.dial, Live); err != nil || !errors.Is(a.Locked(), ErrPassPhraseChanged) {
		t.Errorf("a, connected: %v, %v", err, a.Locked())
	}
	if bad := a.Tampered(); len(bad) > 0 {
		t.Errorf("a change of the pass phrase is taken for %q", bad)
	}
}

func TestStoppedSyncGoesOn(t *testing.T) {
	t.Parallel()
	w := newService(t)
	a, b := w.person("p").mustJoin(), w.person("p").mustJoin()
	for i := range 30 {
		a.put(fmt.Sprint(i), strings.Repeat("x", 3000))
	}
	a.mustSync()
	pages := 0
	w.cut = func(op any, done bool) bool {
		if _, is := op.(pep.Sync); is && !done {
			pages++
			return pages%3 == 0
		}
		return false
	}
	tries := 0
	for ; tries < 20; tries++ {
		err := b.sync()
		if err == nil {
			break
		}
		if !isCut(err) {
			t.Fatal(err)
		}
		if len(b.shown()) > 0 {
			t.Fatalf("a part is shown: %d", len(b.shown()))
		}
		b.again()
	}
	if len(b.shown()) != 30 || tries < 2 {
		t.Errorf("%d records after %d tries", len(b.shown()), tries)
	}
}

func TestRefusedForItself(t *testing.T) {
	t.Parallel()
	w := newService(t)
	a := w.person("p").mustJoin()
	a.put("large", strings.Repeat("x", 9000))
	a.put("small", "1")
	a.mustSync()
	why, err := a.Withdraw("large")
	if err != nil || !strings.Contains(why, "payload-too-big") {
		t.Errorf("withdrawn for %q, %v", why, err)
	}
	same(t, a, map[string]string{"small": "1"})
}

// C24: one record is too large for the service. It is offered once, told by its
// name, and holds up nothing else.
func TestOversizedRecordHoldsUpNobody(t *testing.T) {
	t.Parallel()
	w := newService(t)
	a := w.person("p").mustJoin()
	offered := 0
	w.heard = func(raw []byte) { offered += strings.Count(string(raw), "<publish ") }
	a.put("large", strings.Repeat("x", 9000))
	a.put("small", "1")
	for range 3 {
		a.mustSync()
		a.again()
	}
	if offered != 2 {
		t.Errorf("%d records were offered, want each once", offered)
	}
	shown, _ := a.List()
	told := slices.IndexFunc(shown, func(e Entry) bool { return e.Name == "large" && e.Conflict != nil })
	if told < 0 || !strings.Contains(shown[told].Conflict.Why, "payload-too-big") {
		t.Errorf("the refusal is not told in %d records", len(shown))
	}
	same(t, w.person("p").mustJoin(), map[string]string{"small": "1"})
}

// A service that asks for patience, as the server does in the place of one that is
// not running, is no refusal: what was changed waits for the next session.
func TestPatienceEnds(t *testing.T) {
	t.Parallel()
	s := &session{Device: new(Device), said: errors.New("wait/service-unavailable")}
	for i := range pausesMost {
		if err := s.pause(0); err != nil {
			t.Fatalf("pause %d: %v", i, err)
		}
	}
	if err := s.pause(0); !errors.Is(err, ErrNotNow) || !errors.Is(err, s.said) || errors.Is(err, ErrRefused) {
		t.Errorf("behind the last pause: %v", err)
	}
}

// What no server lets through is refused at once: kept, it would end each session
// that offers it.
func TestTooLargeForAnyServer(t *testing.T) {
	t.Parallel()
	w := newService(t)
	a := w.person("p").mustJoin()
	if err := a.Put("huge", make([]byte, MaxSealed)); !errors.Is(err, seal.ErrTooLong) {
		t.Errorf("put: %v, want %v", err, seal.ErrTooLong)
	}
	if n := a.Waiting(); n != 0 {
		t.Errorf("%d changes wait", n)
	}
	if err := a.Put("large", make([]byte, 170<<10)); err != nil {
		t.Errorf("put: %v", err)
	}
}
