// Package storetest is the conformance suite of [vault.Store]: every adapter
// passes all of it. It also has [Model], the reference that random operations
// are compared with.
package storetest

import (
	"bytes"
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"pepvault/vault"
)

// Open opens the store that lives in dir, or makes one there.
type Open func(t *testing.T, dir string) vault.Store

// Run checks an adapter. open is called by several tests at once, each with a
// directory of its own; the suite closes what it opened.
func Run(t *testing.T, open Open) {
	for _, test := range []struct {
		name string
		run  func(f *fixture)
	}{
		{"Create", testCreate},
		{"Configure", testConfigure},
		{"Put", testPut},
		{"PutTimes", testPutTimes},
		{"Retract", testRetract},
		{"Prune", testPrune},
		{"Purge", testPurge},
		{"PurgeLarge", testPurgeLarge},
		{"Delete", testDelete},
		{"CreateAgain", testCreateAgain},
		{"Subscriptions", testSubscriptions},
		{"Affiliations", testAffiliations},
		{"Shared", testShared},
		{"AffiliationEndsSubscription", testAffiliationEndsSubscription},
		{"AffiliateOwner", testAffiliateOwner},
		{"Withdraw", testWithdraw},
		{"Resources", testResources},
		{"Capabilities", testCapabilities},
		{"AbsentVault", testAbsentVault},
		{"Records", testRecords},
		{"Heads", testHeads},
		{"Latest", testLatest},
		{"LatestBelow", testLatestBelow},
		{"Rank", testRank},
		{"KeyVersions", testKeyVersions},
		{"Changes", testChanges},
		{"Paging", testPaging},
		{"Scattered", testScattered},
		{"Accounts", testAccounts},
		{"LargePayload", testLargePayload},
		{"FreedPlaces", testFreedPlaces},
		{"OwnWrites", testOwnWrites},
		{"Error", testError},
		{"Panic", testPanic},
		{"AfterCommit", testAfterCommit},
		{"Context", testContext},
		{"Closed", testClosed},
		{"CloseWaits", testCloseWaits},
		{"Concurrent", testConcurrent},
		{"CommitOrder", testCommitOrder},
		{"ConsistentView", testConsistentView},
		{"ViewDuringWrites", testViewDuringWrites},
		{"Reopen", testReopen},
		{"Runs", testRuns},
		{"Ledger", testLedger},
		{"Fork", testFork},
		{"Batch", testBatch},
		{"BatchEnds", testBatchEnds},
		{"BatchOfAnAbsentVault", testBatchOfAnAbsentVault},
		{"Expire", testExpire},
		{"RotatedFrom", testRotatedFrom},
		{"Inventory", testInventory},
		{"Random", testRandom},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			f := &fixture{T: t, dir: t.TempDir(), opener: open}
			f.open()
			defer func() { f.store.Close() }()
			test.run(f)
		})
	}
}

// fixture is one test's store.
type fixture struct {
	*testing.T
	dir    string
	opener Open
	store  vault.Store
}

func (f *fixture) open() { f.store = f.opener(f.T, f.dir) }

// reopen closes the store and opens it again.
func (f *fixture) reopen() {
	f.Helper()
	if err := f.store.Close(); err != nil {
		f.Fatal("close:", err)
	}
	f.open()
}

var (
	alice = vault.Account("alice@example.org")
	bob   = vault.Account("bob@example.org")
	notes = vault.Key{Account: alice, Node: "notes"}
	tasks = vault.Key{Account: alice, Node: "tasks"}
)

// at is a time as the store keeps it.
var at = time.Date(2026, 5, 4, 3, 2, 1, 987_000_000, time.UTC)

func record(id, payload string) vault.Record {
	return vault.Record{
		ID:         id,
		KeyVersion: 3,
		Payload:    vault.Payload{Form: vault.Native, Data: []byte(payload)},
		Publisher:  alice,
		Published:  at,
	}
}

// numbered is a record as the store gives it back.
func numbered(revision vault.Revision, r vault.Record) vault.Record {
	r.Revision = revision
	return r
}

func live(r vault.Record) vault.Change { return vault.Change{Record: r} }

func gone(revision vault.Revision, id string) vault.Change {
	return vault.Change{Record: vault.Record{ID: id, Revision: revision}, Gone: true}
}

// unlimited is a limit that no test reaches.
var unlimited = vault.PageLimit{Records: 1 << 20, Cost: 1 << 30}

func (f *fixture) update(fn func(vault.Tx) error) {
	f.Helper()
	if err := f.store.Update(f.Context(), notes, fn); err != nil {
		f.Fatal("update:", err)
	}
}

func (f *fixture) view(fn func(vault.View) error) {
	f.Helper()
	if err := f.store.View(f.Context(), fn); err != nil {
		f.Fatal("view:", err)
	}
}

func (f *fixture) glance(fn func(vault.View) error) {
	f.Helper()
	if err := f.store.Glance(f.Context(), fn); err != nil {
		f.Fatal("glance:", err)
	}
}

func (f *fixture) create(key vault.Key) vault.Vault {
	f.Helper()
	var v vault.Vault
	f.update(func(tx vault.Tx) (err error) {
		v, err = tx.Create(key, vault.Config{})
		return err
	})
	return v
}

func (f *fixture) put(key vault.Key, r vault.Record) vault.Revision {
	f.Helper()
	var revision vault.Revision
	f.update(func(tx vault.Tx) (err error) {
		revision, err = tx.Put(key, r)
		return err
	})
	return revision
}

func (f *fixture) retract(key vault.Key, id string) vault.Revision {
	f.Helper()
	var revision vault.Revision
	f.update(func(tx vault.Tx) (err error) {
		revision, err = tx.Retract(key, id)
		return err
	})
	return revision
}

func (f *fixture) vault(key vault.Key) vault.Vault {
	f.Helper()
	return look(f, func(v vault.View) (vault.Vault, error) { return v.Vault(key) })
}

func (f *fixture) changes(key vault.Key, after vault.Revision, limit vault.PageLimit) vault.Page {
	f.Helper()
	return look(f, func(v vault.View) (vault.Page, error) { return v.Changes(key, after, limit) })
}

// look returns what one call of a View gives.
func look[T any](f *fixture, call func(vault.View) (T, error)) T {
	f.Helper()
	var got T
	f.view(func(v vault.View) (err error) {
		got, err = call(v)
		return err
	})
	return got
}

// lookErr returns the error of one call of a View.
func lookErr(f *fixture, call func(vault.View) error) error {
	f.Helper()
	return f.store.View(f.Context(), call)
}

func (f *fixture) wantErr(got, want error) {
	f.Helper()
	if !errors.Is(got, want) {
		f.Errorf("got error %v, want %v", got, want)
	}
}

// same says what counts as equal: nil and empty slices are. Payloads are
// compared as a whole, because cmp would take each byte by itself.
var same = cmp.Options{
	cmpopts.EquateEmpty(),
	cmpopts.EquateErrors(),
	cmp.Comparer(func(a, b vault.Payload) bool { return a.Form == b.Form && bytes.Equal(a.Data, b.Data) }),
}

// equal fails the test if got is not want.
func (f *fixture) equal(got, want any) {
	f.Helper()
	if diff := cmp.Diff(want, got, same); diff != "" {
		f.Errorf("not as wanted (-want +got):\n%s", diff)
	}
}

// deadline bounds what must not take for ever.
func (f *fixture) deadline() context.Context {
	ctx, cancel := context.WithTimeout(f.Context(), 2*time.Minute)
	f.Cleanup(cancel)
	return ctx
}
