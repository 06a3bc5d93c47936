package storetest

import (
	"fmt"
	"strings"
	"time"

	"pepvault/vault"
)

var (
	rotation = vault.BatchKey{Account: alice, ID: "one"}
	begun    = vault.Batch{BatchKey: rotation, Vault: notes, RotateTo: 4, Expires: at}
)

// stage puts a change into the batch rotation; without a payload it is a
// removal.
func (f *fixture) stage(id, payload string) {
	f.Helper()
	s := vault.Staged{ID: id, Gone: payload == "", KeyVersion: 4, Epoch: vault.Epoch{1, 2}, Held: 7}
	f.update(func(tx vault.Tx) error {
		return tx.Stage(rotation, s, vault.Payload{Form: vault.Foreign, Data: []byte(payload)})
	})
}

func (f *fixture) begin(b vault.Batch) {
	f.Helper()
	f.update(func(tx vault.Tx) error { return tx.BeginBatch(b) })
}

func (f *fixture) batch(key vault.BatchKey) vault.Batch {
	f.Helper()
	return look(f, func(v vault.View) (vault.Batch, error) { return v.Batch(key) })
}

func (f *fixture) staged() []vault.Staged {
	f.Helper()
	return look(f, func(v vault.View) ([]vault.Staged, error) { return v.Staged(rotation) })
}

func (f *fixture) noBatch(key vault.BatchKey) {
	f.Helper()
	f.wantErr(lookErr(f, func(v vault.View) error { _, err := v.Batch(key); return err }), vault.ErrNoBatch)
	f.wantErr(lookErr(f, func(v vault.View) error { _, err := v.Staged(key); return err }), vault.ErrNoBatch)
	f.wantErr(lookErr(f, func(v vault.View) error { _, err := v.StagedPayload(key, "a"); return err }), vault.ErrNoBatch)
	for _, write := range []func(vault.Tx) error{
		func(tx vault.Tx) error { return tx.Stage(key, vault.Staged{ID: "a"}, vault.Payload{}) },
		func(tx vault.Tx) error { return tx.Unstage(key, []string{"a"}) },
		func(tx vault.Tx) error { return tx.EndBatch(key, vault.BatchOutcome{End: vault.BatchAborted}) },
	} {
		f.wantErr(f.store.Update(f.Context(), notes, write), vault.ErrNoBatch)
	}
}

// testBatch stages changes, which are no part of the vault, and ends the batch.
func testBatch(f *fixture) {
	f.create(notes)
	before := f.vault(notes)
	f.begin(begun)
	f.stage("a", "first")
	f.stage("b", "second")
	f.stage("c", "")
	f.stage("a", "third, longer") // in the place of the first
	f.stage("b", "")              // a removal now
	held := func(id string, gone bool, keyVersion uint32, bytes int) vault.Staged {
		return vault.Staged{ID: id, Gone: gone, KeyVersion: keyVersion, Bytes: bytes, Epoch: vault.Epoch{1, 2}, Held: 7}
	}
	want := begun
	want.Changes, want.Bytes = 3, 13
	for range 2 {
		f.equal(f.batch(rotation), want)
		f.equal(f.staged(), []vault.Staged{held("a", false, 4, 13), held("b", true, 0, 0), held("c", true, 0, 0)})
		f.equal(look(f, func(v vault.View) (vault.Payload, error) { return v.StagedPayload(rotation, "a") }),
			vault.Payload{Form: vault.Foreign, Data: []byte("third, longer")})
		for _, id := range []string{"b", "absent"} {
			f.wantErr(lookErr(f, func(v vault.View) error { _, err := v.StagedPayload(rotation, id); return err }), vault.ErrNoRecord)
		}
		f.equal(f.vault(notes), before)
		f.reopen()
	}
	f.update(func(tx vault.Tx) error { return tx.Unstage(rotation, []string{"c", "absent", "a"}) })
	want.Changes, want.Bytes = 1, 0
	f.equal(f.batch(rotation), want)

	f.wantErr(f.store.Update(f.Context(), notes, func(tx vault.Tx) error { return tx.BeginBatch(begun) }), vault.ErrBatchExists)
	second := vault.Batch{BatchKey: vault.BatchKey{Account: alice, ID: "another"}, Vault: notes, Expires: at.Add(time.Hour)}
	f.begin(second)
	f.begin(vault.Batch{BatchKey: vault.BatchKey{Account: bob, ID: "one"}, Vault: notes, Expires: at}) // names are the account's own
	f.update(func(tx vault.Tx) error {
		return tx.EndBatch(rotation, vault.BatchOutcome{End: vault.BatchCommitted, Previous: "p", Cursor: "c"})
	})
	want.Changes, want.Outcome = 0, vault.BatchOutcome{End: vault.BatchCommitted, Previous: "p", Cursor: "c"}
	f.reopen()
	f.equal(look(f, func(v vault.View) ([]vault.Batch, error) { return v.Batches(alice) }), []vault.Batch{want, second})
	f.equal(f.staged(), []vault.Staged(nil))
	f.wantErr(f.store.Update(f.Context(), notes, func(tx vault.Tx) error {
		return tx.Stage(rotation, vault.Staged{ID: "a"}, vault.Payload{})
	}), vault.ErrNoBatch)
	f.update(func(tx vault.Tx) error { return tx.DropBatch(rotation) })
	f.noBatch(rotation)
	f.update(func(tx vault.Tx) error { return tx.DropBatch(rotation) }) // nothing is there
}

// testBatchEnds has batches end with what they belong to.
func testBatchEnds(f *fixture) {
	of := func(account vault.Account, id string) vault.BatchKey { return vault.BatchKey{Account: account, ID: id} }
	fill := func() {
		f.create(notes)
		f.begin(begun)
		f.stage("a", "1")
		f.update(func(tx vault.Tx) error {
			if err := tx.Affiliate(notes, vault.Affiliated{Account: bob, Affiliation: vault.Publisher}); err != nil {
				return err
			}
			if err := tx.BeginBatch(vault.Batch{BatchKey: of(bob, "his"), Vault: notes, Expires: at}); err != nil {
				return err
			}
			if err := tx.BeginBatch(vault.Batch{BatchKey: of(alice, "done"), Vault: notes, Expires: at}); err != nil {
				return err
			}
			return tx.EndBatch(of(alice, "done"), vault.BatchOutcome{End: vault.BatchCommitted})
		})
	}
	f.create(tasks)
	f.begin(vault.Batch{BatchKey: of(alice, "elsewhere"), Vault: tasks, Expires: at})
	for name, test := range map[string]struct {
		end  func(vault.Tx) error
		left []vault.BatchKey
		gone []vault.BatchKey
	}{
		"delete": {
			func(tx vault.Tx) error { return tx.Delete(notes) },
			nil, []vault.BatchKey{rotation, of(bob, "his"), of(alice, "done")},
		},
		"fork": {
			func(tx vault.Tx) error { _, err := tx.Fork(notes, 1); return err },
			[]vault.BatchKey{of(alice, "done")}, []vault.BatchKey{rotation, of(bob, "his")},
		},
		"a reader": {
			func(tx vault.Tx) error {
				return tx.Affiliate(notes, vault.Affiliated{Account: bob, Affiliation: vault.Member})
			},
			[]vault.BatchKey{rotation, of(alice, "done")}, []vault.BatchKey{of(bob, "his")},
		},
		"a stranger": {
			func(tx vault.Tx) error { _, err := tx.Withdraw(bob); return err },
			[]vault.BatchKey{rotation, of(alice, "done")}, []vault.BatchKey{of(bob, "his")},
		},
		"still a publisher": {
			func(tx vault.Tx) error {
				return tx.Affiliate(notes, vault.Affiliated{Account: bob, Affiliation: vault.Publisher})
			},
			[]vault.BatchKey{rotation, of(alice, "done"), of(bob, "his")}, nil,
		},
	} {
		fill()
		f.update(test.end)
		f.reopen()
		for _, key := range append(test.left, of(alice, "elsewhere")) {
			if err := lookErr(f, func(v vault.View) error { _, err := v.Batch(key); return err }); err != nil {
				f.Errorf("%s: batch %s: %v", name, key.ID, err)
			}
		}
		for _, key := range test.gone {
			f.noBatch(key)
		}
		f.update(func(tx vault.Tx) error {
			if _, err := tx.Vault(notes); err != nil {
				return nil
			}
			return tx.Delete(notes)
		})
	}
	f.noBatch(rotation)
	f.create(notes) // again: nothing of the old one is its own
	f.noBatch(rotation)
}

func testBatchOfAnAbsentVault(f *fixture) {
	f.wantErr(f.store.Update(f.Context(), notes, func(tx vault.Tx) error { return tx.BeginBatch(begun) }), vault.ErrNoVault)
	f.noBatch(rotation)
	f.equal(look(f, func(v vault.View) ([]vault.Batch, error) { return v.Batches(alice) }), []vault.Batch(nil))
}

// testExpire drops what has expired a few batches at a time, and nothing else.
func testExpire(f *fixture) {
	f.create(notes)
	f.begin(begun)
	for i := range 7 {
		f.stage(fmt.Sprint(i), strings.Repeat("x", 5000))
	}
	expired := []vault.BatchKey{rotation}
	for i := range 7 {
		key := vault.BatchKey{Account: bob, ID: fmt.Sprint("expired-", i)}
		f.begin(vault.Batch{BatchKey: key, Vault: notes, Expires: at})
		expired = append(expired, key)
	}
	kept := vault.Batch{BatchKey: vault.BatchKey{Account: bob, ID: "later"}, Vault: notes, Expires: at.Add(time.Millisecond)}
	f.begin(kept)
	expire := func(now time.Time) (more bool) {
		f.update(func(tx vault.Tx) (err error) {
			more, err = tx.Expire(now, 3)
			return err
		})
		return more
	}
	f.equal(expire(at.Add(-time.Millisecond)), false)
	f.equal(len(f.staged()), 7)
	calls := 1
	for expire(at) {
		calls++
	}
	if calls < 3 {
		f.Errorf("8 batches of at most 3 at a time went in %d calls", calls)
	}
	for _, key := range expired {
		f.noBatch(key)
	}
	f.equal(f.batch(kept.BatchKey), kept)
	f.begin(begun) // its name is free again, and nothing of the old one is in it
	f.equal(f.staged(), []vault.Staged(nil))
}

// testRotatedFrom follows the revision that a rotation replaced until the next
// write.
func testRotatedFrom(f *fixture) {
	f.create(notes)
	first := f.put(notes, record("a", "1"))
	sealed := record("a", "sealed anew")
	sealed.RotatedFrom = first
	sealed.Revision = f.put(notes, sealed)
	for range 2 {
		f.equal(f.changes(notes, 0, unlimited).Changes, []vault.Change{live(sealed)})
		heads := look(f, func(v vault.View) ([]vault.Head, error) { return v.Heads(notes, []string{"a"}) })
		f.equal(heads[0].RotatedFrom, first)
		f.reopen()
	}
	f.put(notes, record("a", "written"))
	heads := look(f, func(v vault.View) ([]vault.Head, error) { return v.Heads(notes, []string{"a"}) })
	f.equal(heads[0].RotatedFrom, vault.Revision(0))
}

func testInventory(f *fixture) {
	f.create(notes)
	inventory := func() []vault.Head {
		return look(f, func(v vault.View) ([]vault.Head, error) { return v.Inventory(notes) })
	}
	f.equal(inventory(), []vault.Head(nil))
	for _, id := range []string{"b", "a", "c", "b"} {
		f.put(notes, record(id, "data"))
	}
	f.retract(notes, "c")
	want := look(f, func(v vault.View) ([]vault.Head, error) { return v.Heads(notes, []string{"a", "b"}) })
	f.equal(inventory(), want)
}
