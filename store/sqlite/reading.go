package sqlite

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"slices"

	"pepvault/vault"
)

// source is what a View and a Tx do differently.
type source interface {
	// pin runs a query in the transaction, which the first one begins.
	pin(query func() error) error
	// find returns the order index of a vault, or vault.ErrNoVault.
	find(key vault.Key) (*index, error)
	// rebuild makes an index anew that did not fit its rows.
	rebuild(key vault.Key) (*index, error)
	// account returns what an account has stored.
	account(account vault.Account) (usage, error)
	// swiftly tells that there is no transaction: only rows whose revision an
	// index vouches for may be read.
	swiftly() bool
	// guess returns the row that the vault had at some moment. While there is
	// a vault with that row, it is this one.
	guess(key vault.Key) (id int64, known bool)
}

// reading carries out the methods of vault.View in one transaction.
type reading struct {
	// ctx can't be cancelled: a cancellable one costs 5 µs a query. It lives
	// as long as the transaction.
	ctx    context.Context
	conn   *conn
	source source
	// recent has records that were read lately; nil where what is read may
	// not be committed yet.
	recent *cache[place, recentRecord]
	// failed is the first failure of the database; nothing works after it,
	// because it may have ended the transaction.
	failed error
}

// run carries out SQL in the transaction. Its error is sql.ErrNoRows or a
// failure of the store.
func (r *reading) run(doing string, query func() error) error {
	if r.failed != nil {
		return r.failed
	}
	err := r.source.pin(query)
	if err == nil || errors.Is(err, sql.ErrNoRows) {
		return err
	}
	r.failed = failure(doing, err)
	return r.failed
}

func (r *reading) row(doing string, s statement, args []any, dest ...any) error {
	return r.run(doing, func() error { return r.conn.row(r.ctx, s, args, dest...) })
}

func (r *reading) each(doing string, s statement, args []any, dest []any, next func()) error {
	return r.run(doing, func() error {
		return r.conn.each(r.ctx, s, args, dest, func() error { next(); return nil })
	})
}

// Vault implements vault.View.
func (r *reading) Vault(key vault.Key) (vault.Vault, error) {
	ix, err := r.source.find(key)
	if err != nil {
		return vault.Vault{}, err
	}
	return ix.state, nil
}

// Accounts implements vault.View.
func (r *reading) Accounts() ([]vault.Account, error) {
	if err := r.unswift(); err != nil {
		return nil, err
	}
	var account string
	var accounts []vault.Account
	err := r.each("list accounts", vaultAccounts, nil, []any{&account},
		func() { accounts = append(accounts, vault.Account(account)) })
	return accounts, err
}

// Vaults implements vault.View.
func (r *reading) Vaults(account vault.Account) ([]vault.Vault, error) {
	if err := r.unswift(); err != nil {
		return nil, err
	}
	var node string
	var nodes []string
	err := r.each("list vaults", vaultNodes, []any{string(account)}, []any{&node},
		func() { nodes = append(nodes, node) })
	if err != nil {
		return nil, err
	}
	vaults := make([]vault.Vault, len(nodes))
	for i, node := range nodes {
		if vaults[i], err = r.Vault(vault.Key{Account: account, Node: node}); err != nil {
			return nil, err
		}
	}
	return vaults, nil
}

// Shared implements vault.View.
func (r *reading) Shared(owner, with vault.Account) ([]vault.Key, error) {
	if err := r.unswift(); err != nil {
		return nil, err
	}
	var node string
	var keys []vault.Key
	err := r.each("list shared vaults", sharedNodes, []any{string(owner), string(with)}, []any{&node},
		func() { keys = append(keys, vault.Key{Account: owner, Node: node}) })
	return keys, err
}

// unswift ends a swift view before a query that no index vouches for.
func (r *reading) unswift() error {
	if !r.source.swiftly() {
		return nil
	}
	_, err := r.source.rebuild(vault.Key{})
	return err
}

// Records implements vault.View. In a transaction it needs no index: one record
// is one query.
func (r *reading) Records(key vault.Key, ids []string) ([]vault.Record, error) {
	if r.source.swiftly() {
		return r.indexed(key, ids)
	}
	if id, known := r.source.guess(key); known {
		found, err := r.recordsOf(id, ids)
		if err != nil || len(found) > 0 {
			return found, err
		}
	}
	var id int64
	err := r.row("find a vault", vaultID, []any{string(key.Account), key.Node}, &id)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, vault.ErrNoVault
	}
	if err != nil {
		return nil, err
	}
	return r.recordsOf(id, ids)
}

// indexed reads records whose rows an index names.
func (r *reading) indexed(key vault.Key, ids []string) ([]vault.Record, error) {
	page, err := r.page(key, func(ix *index) (entries []*entry, more bool) {
		for _, id := range ids {
			if e, known := ix.find(id); known && !e.gone && !slices.Contains(entries, e) {
				entries = append(entries, e)
			}
		}
		return entries, false
	})
	if err != nil {
		return nil, err
	}
	records := make([]vault.Record, len(page.Changes))
	for i, c := range page.Changes {
		records[i] = c.Record
	}
	return records, nil
}

func (r *reading) recordsOf(id int64, ids []string) ([]vault.Record, error) {
	found := make([]vault.Record, 0, len(ids))
	var seen map[string]bool
	if len(ids) > 1 {
		seen = make(map[string]bool, len(ids))
	}
	for _, item := range ids {
		if seen[item] {
			continue
		}
		if seen != nil {
			seen[item] = true
		}
		var row scanned
		err := r.row("read a record", readItem, []any{id, item}, row.dest()...)
		if errors.Is(err, sql.ErrNoRows) {
			continue
		}
		if err != nil {
			return nil, err
		}
		found = append(found, row.record(item))
	}
	return found, nil
}

// Heads implements vault.View.
func (r *reading) Heads(key vault.Key, ids []string) ([]vault.Head, error) {
	ix, err := r.source.find(key)
	if err != nil {
		return nil, err
	}
	heads := make([]vault.Head, len(ids))
	for i, id := range ids {
		heads[i] = ix.head(id)
	}
	return heads, nil
}

// Inventory implements vault.View.
func (r *reading) Inventory(key vault.Key) ([]vault.Head, error) {
	ix, err := r.source.find(key)
	if err != nil {
		return nil, err
	}
	heads := make([]vault.Head, 0, ix.live.Len())
	ix.live.Scan(func(_ vault.Revision, e *entry) bool {
		heads = append(heads, ix.head(e.id))
		return true
	})
	return heads, nil
}

// Latest implements vault.View.
func (r *reading) Latest(key vault.Key, below vault.Revision, limit vault.PageLimit) (vault.Page, error) {
	return r.page(key, func(ix *index) ([]*entry, bool) { return ix.latest(below, limit) })
}

// Changes implements vault.View.
func (r *reading) Changes(key vault.Key, after vault.Revision, limit vault.PageLimit) (vault.Page, error) {
	return r.page(key, func(ix *index) ([]*entry, bool) { return ix.after(after, limit) })
}

// Rank implements vault.View.
func (r *reading) Rank(key vault.Key, revision vault.Revision) (int, error) {
	ix, err := r.source.find(key)
	if err != nil {
		return 0, err
	}
	return ix.rank(revision), nil
}

// Nth implements vault.View.
func (r *reading) Nth(key vault.Key, n int) (vault.Revision, error) {
	ix, err := r.source.find(key)
	if err != nil {
		return 0, err
	}
	revision, _, _ := ix.live.GetAt(n)
	return revision, nil
}

// KeyVersions implements vault.View.
func (r *reading) KeyVersions(key vault.Key) (low, high uint32, err error) {
	ix, err := r.source.find(key)
	if err != nil {
		return 0, 0, err
	}
	low, high = ix.keyVersions()
	return low, high, nil
}

// page reads the changes that pick chooses, from an index made anew if the
// one at hand does not fit the rows.
func (r *reading) page(key vault.Key, pick func(*index) (entries []*entry, more bool)) (vault.Page, error) {
	ix, err := r.source.find(key)
	if err != nil {
		return vault.Page{}, err
	}
	entries, more := pick(ix)
	changes, err := r.changes(ix, entries)
	if errors.Is(err, errMismatch) {
		if ix, err = r.source.rebuild(key); err != nil {
			return vault.Page{}, err
		}
		entries, more = pick(ix)
		changes, err = r.changes(ix, entries)
		err = r.settled(err)
	}
	if err != nil {
		return vault.Page{}, err
	}
	return vault.Page{Changes: changes, More: more}, nil
}

// changes reads the records of the entries that are not gone. errMismatch.
func (r *reading) changes(ix *index, entries []*entry) ([]vault.Change, error) {
	changes := make([]vault.Change, len(entries))
	wanted := make(map[vault.Revision]int, len(entries)) // revision: place
	low, high := slots, 0
	for i, e := range entries {
		if e.gone {
			changes[i] = e.buried()
			continue
		}
		if known, found := r.recall(ix.id, e); found {
			changes[i].Record = known
			continue
		}
		wanted[e.revision] = i
		low, high = min(low, int(e.slot)), max(high, int(e.slot))
	}
	take := func(row *content) {
		revision := vault.Revision(row.revision)
		i, found := wanted[revision]
		if !found {
			return
		}
		changes[i].Record = entries[i].record(row)
		delete(wanted, revision)
		if r.recent != nil && len(entries) <= fewRecords {
			r.recent.offer(place{ix.id, revision}, recentRecord{changes[i].Record}, 0)
		}
	}
	var err error
	switch n := len(wanted); {
	case n == 0:
	case n == 1:
		err = r.contents(readRow, take, ix.row(uint16(low)))
	case high-low < 2*n: // to pass over a row is cheaper than to look one up
		err = r.contents(readRange, take, ix.row(uint16(low)), ix.row(uint16(high)))
	default:
		rows := make([]int64, 0, n)
		for _, i := range wanted {
			rows = append(rows, ix.row(entries[i].slot))
		}
		slices.Sort(rows)
		var list []byte
		if list, err = json.Marshal(rows); err == nil {
			err = r.contents(readRows, take, string(list))
		}
	}
	if err == nil && len(wanted) > 0 {
		err = errMismatch
	}
	return changes, err
}

// place names what a vault held at a revision: it never changes, and neither
// part is used again.
type place struct {
	vault    int64 // the vault's row
	revision vault.Revision
}

// recentRecord is a record that was read lately.
type recentRecord struct{ vault.Record }

func (r recentRecord) bytes() int {
	return 256 + len(r.ID) + len(r.Publisher) + len(r.Payload.Data)
}

// fewRecords is how many records a page may have to be kept in mind: whole
// vaults would drive out what is asked for one by one.
const fewRecords = 8

func (r *reading) recall(id int64, e *entry) (vault.Record, bool) {
	if r.recent == nil {
		return vault.Record{}, false
	}
	known, found := r.recent.get(place{id, e.revision}, latest)
	return known.Record, found
}

// contents reads rows of records whose entries are known.
func (r *reading) contents(s statement, take func(*content), args ...any) error {
	return r.run("read records", func() error { return r.conn.contents(r.ctx, s, args, take) })
}

// errMismatch says that an index names a row that is not as it says.
var errMismatch = errors.New("order index does not fit the rows")

// settled turns a mismatch that is still there into a failure of the store.
func (r *reading) settled(err error) error {
	if errors.Is(err, errMismatch) {
		r.failed = &storageError{doing: "read records", text: err.Error(), cause: err}
		return r.failed
	}
	return err
}
