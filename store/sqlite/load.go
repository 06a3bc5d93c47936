package sqlite

import (
	"database/sql"
	"encoding/json"
	"errors"
	"time"

	"pepvault/vault"
)

// load builds the order index of a vault from its rows; nil if there is none.
func (r *reading) load(key vault.Key) (*index, error) {
	const doing = "read a vault"
	var id, created, revision, pruned, purged int64
	var epoch, config []byte
	var missing bool
	err := r.row(doing, vaultRow, []any{string(key.Account), key.Node},
		&id, &epoch, &config, &created, &revision, &pruned, &purged, &missing)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, nil
	}
	if err == nil && missing {
		err = r.missing(doing)
	}
	if err != nil {
		return nil, err
	}
	state := vault.Vault{
		Key:      key,
		Epoch:    vault.Epoch(epoch),
		Revision: vault.Revision(max(revision, pruned)),
		Pruned:   vault.Revision(pruned),
		Created:  time.UnixMilli(created).UTC(),
	}
	if err := json.Unmarshal(config, &state.Config); err != nil {
		r.failed = &storageError{doing: doing, text: "the configuration of a vault is damaged", cause: err}
		return nil, r.failed
	}
	ix := newIndex(id, state)
	ix.purged = vault.Revision(purged)
	if err := r.loadRuns(ix); err != nil {
		return nil, err
	}
	if err := r.loadBurials(ix); err != nil {
		return nil, err
	}
	if err := r.loadRecords(ix); err != nil {
		return nil, err
	}
	if err := r.loadTombstones(ix); err != nil {
		return nil, err
	}
	return ix, r.loadAccounts(ix)
}

// loadRecords reads the records of a vault. Where a page is damaged SQLite may
// pass over rows without a word, and what is not there counts as deleted: so it
// holds them against their names, which lie in a tree of their own.
func (r *reading) loadRecords(ix *index) error {
	const doing = "read a vault"
	var row, revision, keyVersion, form, rotatedFrom, size int64
	var item, publisher string
	var zeros []byte // stands for each payload: only its size counts here
	rows, names := 0, 0
	err := r.each(doing, indexRecords, []any{ix.row(0), ix.row(slots - 1)},
		[]any{&row, &item, &revision, &keyVersion, &form, &publisher, &rotatedFrom, &size}, func() {
			rows++
			if revision <= int64(ix.purged) {
				return
			}
			if int(size) > len(zeros) {
				zeros = make([]byte, 2*size)
			}
			ix.supersede(live(uint16(row), vault.Record{
				ID:         item,
				Revision:   vault.Revision(revision),
				KeyVersion: uint32(keyVersion),
				Payload:    vault.Payload{Form: vault.Form(form), Data: zeros[:size]},
				Publisher:  vault.Account(publisher),

				RotatedFrom: vault.Revision(rotatedFrom),
			}))
		})
	if err == nil {
		err = r.row(doing, countNames, []any{ix.id}, &names)
	}
	if err == nil && rows != names {
		err = r.missing(doing)
	}
	return err
}

// missing says that there are fewer rows than there were written.
func (r *reading) missing(doing string) error {
	r.failed = &storageError{doing: doing, text: "the database is damaged: rows are missing"}
	return r.failed
}

// loadBurials reads the tombstones of purges. What was written of an id later
// supersedes them.
func (r *reading) loadBurials(ix *index) error {
	var first int64
	var list []byte
	var damaged error
	err := r.each("read a vault", indexBurials, []any{ix.id, int64(ix.state.Pruned)}, []any{&first, &list}, func() {
		var items []string
		if err := json.Unmarshal(list, &items); err != nil {
			damaged = err
		}
		for i, item := range items {
			if e := tombstone(item, vault.Revision(first)+vault.Revision(i)); e.revision > ix.state.Pruned {
				ix.supersede(e)
			}
		}
	})
	if err == nil && damaged != nil {
		r.failed = &storageError{doing: "read a vault", text: "the tombstones of a purge are damaged", cause: damaged}
		return r.failed
	}
	return err
}

func (r *reading) loadTombstones(ix *index) error {
	var revision int64
	var item string
	return r.each("read a vault", indexTombstones, []any{ix.id, int64(ix.state.Pruned)}, []any{&revision, &item}, func() {
		ix.supersede(tombstone(item, vault.Revision(revision)))
	})
}

// loadAccounts reads who subscribed and who is affiliated.
func (r *reading) loadAccounts(ix *index) error {
	var account string
	var what int64
	err := r.each("read a vault", indexSubscribers, []any{ix.id}, []any{&account}, func() {
		ix.subscribe(vault.Account(account))
	})
	if err != nil {
		return err
	}
	return r.each("read a vault", indexAffiliated, []any{ix.id}, []any{&account, &what}, func() {
		ix.affiliate(vault.Affiliated{Account: vault.Account(account), Affiliation: vault.Affiliation(what)})
	})
}

// loadAccount sums up an account from its rows.
func (r *reading) loadAccount(account vault.Account) (usage, error) {
	u := usage{account: account}
	err := r.row("sum up an account", accountUsage, []any{string(account)},
		&u.Vaults, &u.Records, &u.Bytes)
	return u, err
}
