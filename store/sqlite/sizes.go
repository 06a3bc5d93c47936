package sqlite

import "pepvault/vault"

// Sizes implements vault.View.
func (r *reading) Sizes(account vault.Account) ([]vault.Size, error) {
	const doing = "measure vaults"
	if err := r.unswift(); err != nil {
		return nil, err
	}
	type row struct {
		node                         string
		id, revision, pruned, purged int64
	}
	var one row
	var rows []row
	err := r.each(doing, vaultRows, []any{string(account)},
		[]any{&one.id, &one.node, &one.revision, &one.pruned, &one.purged}, func() { rows = append(rows, one) })
	if err != nil {
		return nil, err
	}
	sizes := make([]vault.Size, len(rows))
	for i, v := range rows {
		size := &sizes[i]
		var record, tombstone int64
		if err := r.row(doing, sizeRecords, []any{v.id, v.purged}, &size.Records, &size.Bytes, &record); err != nil {
			return nil, err
		}
		if err := r.row(doing, sizeTombstones, []any{v.id, v.pruned}, &size.Tombstones, &tombstone); err != nil {
			return nil, err
		}
		size.Key = vault.Key{Account: account, Node: v.node}
		size.Revision = vault.Revision(max(v.revision, v.pruned, record, tombstone))
	}
	return sizes, nil
}

// Totals implements vault.View.
func (r *reading) Totals() (t vault.Totals, err error) {
	if err := r.unswift(); err != nil {
		return t, err
	}
	err = r.row("count", countAll, nil, &t.Vaults, &t.Records)
	return t, err
}

// Usage implements vault.View.
func (r *reading) Usage(account vault.Account) (vault.Usage, error) {
	u, err := r.source.account(account)
	return u.Usage, err
}
