package sqlite

import (
	"encoding/json"
	"slices"

	"pepvault/vault"
)

// burialNames is how many tombstones of a purge lie in one row.
const burialNames = 128

// bury writes tombstones that follow each other.
func (t *tx) bury(id int64, purged []*entry) error {
	items := make([]string, len(purged))
	for i, e := range purged {
		items[i] = e.id
	}
	list, err := json.Marshal(items)
	if err != nil {
		return err
	}
	_, err = t.write("purge a vault", insertBurial, id,
		int64(purged[0].revision), int64(purged[len(purged)-1].revision), string(list))
	return err
}

// Purge implements vault.Tx. Only the tombstones are written, many in a row;
// the records are waste from then on.
func (t *tx) Purge(key vault.Key) ([]vault.Change, error) {
	const doing = "purge a vault"
	ix, u, err := t.change(key)
	if err != nil || ix.live.Len() == 0 {
		return nil, err
	}
	first, err := t.advance(ix)
	if err != nil {
		return nil, err
	}
	before := ix.state
	purged := ix.purge(first)
	gone := make([]vault.Change, len(purged))
	for i, e := range purged {
		gone[i] = e.buried()
	}
	rows := 0
	for together := range slices.Chunk(purged, burialNames) {
		if err := t.bury(ix.id, together); err != nil {
			return nil, err
		}
		rows++
	}
	if _, err := t.write(doing, purgeVault, int64(ix.purged), rows, ix.id); err != nil {
		return nil, err
	}
	u.follow(before, ix.state)
	t.keep(key, ix, u)
	return gone, nil
}

// Prune implements vault.Tx.
func (t *tx) Prune(key vault.Key, keep int) error {
	const doing = "forget tombstones"
	ix, u, err := t.change(key)
	if err != nil {
		return err
	}
	highest, forgotten := ix.prune(keep)
	if forgotten == 0 {
		return nil
	}
	waste := forgotten > sliceRows
	if !waste {
		// What waits for the clean-up already may be many.
		if err := t.row(doing, hasWaste, []any{ix.id, int64(highest)}, &waste); err != nil {
			return err
		}
	}
	if !waste {
		if _, err := t.write(doing, deleteTombstones, ix.id, int64(highest)); err != nil {
			return err
		}
	}
	if _, err := t.write(doing, pruneVault, int64(highest), waste, ix.id); err != nil {
		return err
	}
	t.keep(key, ix, u)
	return nil
}
