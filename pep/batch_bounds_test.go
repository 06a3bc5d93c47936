package pep_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"pepvault/pep"
	"pepvault/vault"
)

func TestBatchExpires(t *testing.T) {
	t.Parallel()
	var time1 clock
	w := newWorld(t, time1.at)
	w.must(laptop, publish("a"))
	w.begin(laptop, "x", 0)
	w.begin(laptop, "y", 0)
	big := strings.Repeat("x", 100)
	w.must(laptop, staging("x", w.cursor(), item("1", big), item("2", big)))
	time1.now = time1.now.Add(time.Hour - time.Second)
	_, err := w.ask(laptop, staging("y", w.cursor(), item("1", "x")))
	refused(t, err, pep.ErrQuotaExceeded)
	time1.now = time1.now.Add(time.Second)
	for _, op := range []pep.Op{
		pep.CommitBatch{ID: "x", Cursor: w.cursor()}, pep.AbortBatch{ID: "x"},
		staging("x", w.cursor(), item("a", "x")), pep.Unstage{ID: "x", IDs: []string{"a"}},
	} {
		_, err := w.ask(laptop, op)
		refused(t, err, vault.ErrNoBatch)
	}
	w.begin(laptop, "x", 0) // a new one in the old one's place, and beside it
	w.begin(laptop, "z", 0)
	w.must(laptop, staging("x", w.cursor(), item("1", big), item("2", big)))
	if err := w.Expire(t.Context()); err != nil {
		t.Fatal(err)
	}
	equal(t, "batches", w.batchesOf("alice@localhost"), []string{"x", "z"})
	w.mustCommit(laptop, "x")
	equal(t, "records", len(w.contents(laptop, "notes")), 3)
}

func (w *world) batchesOf(account vault.Account) (ids []string) {
	w.t.Helper()
	err := w.store.View(w.t.Context(), func(v vault.View) error {
		all, err := v.Batches(account)
		for _, b := range all {
			ids = append(ids, b.ID)
		}
		return err
	})
	if err != nil {
		w.t.Fatal(err)
	}
	return ids
}

// Ended batches are remembered in bounds.
func TestOutcomesAreBounded(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.must(laptop, publish("a"))
	for i := range 70 {
		id := fmt.Sprint(i)
		w.begin(laptop, id, 0)
		w.must(laptop, pep.AbortBatch{ID: id})
	}
	left := w.batchesOf("alice@localhost")
	if len(left) > 65 || !slices.Contains(left, "69") || slices.Contains(left, "0") {
		t.Errorf("left are %v", left)
	}
}

func TestBoundsOfBatches(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil) // 4 records a vault, 8 changes a batch, 200 bytes staged, 250 in the account
	w.must(laptop, publish("a", "b"))
	now := w.cursor()
	w.begin(laptop, "x", 0)
	w.must(laptop, staging("x", now, item("1", ""), item("2", ""), item("3", "")))
	w.must(laptop, removing("x", now, "4", "5", "6", "7", "8"))
	_, err := w.ask(laptop, removing("x", now, "9"))
	refused(t, err, pep.ErrMaxItemsExceeded)
	w.must(laptop, removing("x", now, "8")) // again
	_, err = w.commit(laptop, "x")
	refused(t, err, pep.ErrNodeFull)
	w.must(laptop, removing("x", now, "1"))
	w.mustCommit(laptop, "x")
	equal(t, "records", len(w.contents(laptop, "notes")), 4)

	w.must(laptop, pep.Purge{Node: "notes"})
	big := strings.Repeat("x", 100)
	w.must(laptop, pep.Publish{Node: "notes", Items: []pep.Item{item("a", big), item("b", big)}})
	w.begin(laptop, "y", 0)
	w.must(laptop, staging("y", w.cursor(), item("c", big)))
	_, err = w.commit(laptop, "y")
	refused(t, err, pep.ErrQuotaExceeded)
	w.must(laptop, removing("y", w.cursor(), "a"))
	w.mustCommit(laptop, "y")
	equal(t, "records", len(w.contents(laptop, "notes")), 2)
	for _, op := range []pep.Op{
		pep.Publish{Node: "notes", Items: []pep.Item{item("a", "x")}, State: true, Batch: &pep.BatchRef{ID: "y"}},
		pep.Retract{Node: "notes", IDs: []string{"a"}, Expect: &pep.Expect{}, Batch: &pep.BatchRef{ID: "y"}},
	} {
		_, err := w.ask(laptop, op)
		refused(t, err, pep.ErrBadRequest)
	}
}

// expiring is a store in which a number of pieces are left to be removed.
type expiring struct {
	vault.Store
	mu    sync.Mutex
	fails error
	left  int
}

func (e *expiring) set(fails error) (left int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.fails = fails
	return e.left
}

func (e *expiring) Update(_ context.Context, _ vault.Key, fn func(vault.Tx) error) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.fails != nil {
		return e.fails
	}
	return fn(pieces{expiring: e})
}

type pieces struct {
	vault.Tx
	*expiring
}

func (p pieces) Expire(time.Time, int) (more bool, err error) {
	p.left--
	return p.left > 0, nil
}

// What expired goes a minute later at most, all of it; a failure is told and
// tried again.
func TestKeepExpiring(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		broken := errors.New("broken")
		s := &expiring{left: 3, fails: broken}
		e := pep.New(pep.Options{Store: s, Limits: limits})
		ctx, cancel := context.WithCancel(t.Context())
		var keeping sync.WaitGroup
		var failures []error
		keeping.Go(func() { e.KeepExpiring(ctx, func(err error) { failures = append(failures, err) }) })
		time.Sleep(61 * time.Second)
		synctest.Wait()
		equal(t, "failed", len(failures) == 1 && errors.Is(failures[0], broken), true)
		s.set(nil)
		time.Sleep(time.Minute)
		synctest.Wait()
		equal(t, "left", s.set(nil), 0)
		cancel()
		keeping.Wait()
	})
}
