package sqlite

import (
	"context"
	"math"
)

// What is deleted is out of sight in the transaction that deletes it, whatever
// its size: a mark is set (migration 4), and no query returns what is marked.
// The rows go afterwards, in slices between other people's commits, so that
// nobody waits for them. secure_delete has each of them overwritten.

const (
	// sliceRows and sliceBytes bound what one transaction removes; a single row
	// may be larger.
	sliceRows  = 128
	sliceBytes = 256 << 10
	// findRows bounds what is looked for at once.
	findRows = 4096
)

// countWaste counts what something is left of.
const countWaste = `SELECT (SELECT count(*) FROM vault WHERE waste = 1)
	+ (SELECT count(*) FROM batch WHERE waste = 1)`

// wasteRow is a row that is to go.
type wasteRow struct{ id, bytes int64 }

// cutSlices cuts rows into what one transaction removes.
func cutSlices(rows []wasteRow) (cut [][]wasteRow) {
	begin, bytes := 0, int64(0)
	for i, row := range rows {
		if i > begin && (i-begin == sliceRows || bytes+row.bytes > sliceBytes) {
			cut = append(cut, rows[begin:i])
			begin, bytes = i, 0
		}
		bytes += row.bytes
	}
	if begin < len(rows) {
		cut = append(cut, rows[begin:])
	}
	return cut
}

// sweep removes all waste that there is. It takes what there is from a reader,
// so a writer never searches.
func (c *cleaner) sweep(ctx context.Context) error {
	for _, step := range []func(context.Context) (bool, error){c.sweepBatch, c.sweepVault} {
		for more := true; more; {
			var err error
			if more, err = step(ctx); err != nil {
				return err
			}
		}
	}
	return nil
}

// sweepBatch removes some of what an ended batch left, and reports whether
// there was anything.
func (c *cleaner) sweepBatch(ctx context.Context) (more bool, err error) {
	var batch int64
	var account string
	var found bool
	var rows []wasteRow
	err = c.read(ctx, func() error {
		if found, err = c.look.one(ctx, wasteBatch, nil, &batch, &account); err != nil || !found {
			return err
		}
		rows, err = c.look.rows(ctx, wasteStaged, batch, findRows)
		return err
	})
	if err != nil || !found {
		return false, err
	}
	if len(rows) > 0 {
		return true, c.remove(ctx, removeStaged, rows)
	}
	last := settleBatch
	if account == "" {
		last = removeBatch
	}
	return true, c.write(ctx, func(t *tx) error {
		_, err := t.write("clean up a batch", last, batch)
		return err
	})
}

// wasteOf is a vault of which something is to go.
type wasteOf struct {
	id             int64
	account        string
	purged, pruned int64
	records        []wasteRow
	tombstones     []int64    // revisions, in order
	burials        []wasteRow // by their first revision
}

// sweepVault is sweepBatch for vaults.
func (c *cleaner) sweepVault(ctx context.Context) (more bool, err error) {
	w, found, err := c.findVault(ctx)
	if err != nil || !found {
		return false, err
	}
	if len(w.records) > 0 {
		return true, c.remove(ctx, removeRecord, w.records, w.purged)
	}
	if len(w.tombstones) > 0 {
		return true, c.forget(ctx, w)
	}
	if len(w.burials) > 0 {
		return true, c.removeBurials(ctx, w)
	}
	return true, c.write(ctx, func(t *tx) error {
		const doing = "clean up a vault"
		if w.account == "" {
			_, err := t.write(doing, removeVault, w.id)
			return err
		}
		// Of a purge that is forgotten in part, at most one row is left.
		if _, err := t.write(doing, cutBurial, w.id, w.pruned); err != nil {
			return err
		}
		_, err := t.write(doing, settleVault, w.id, w.purged, w.pruned) // unless there is more by now
		return err
	})
}

func (c *cleaner) findVault(ctx context.Context) (w wasteOf, found bool, err error) {
	err = c.read(ctx, func() error {
		if found, err = c.look.one(ctx, wasteVault, nil, &w.id, &w.account, &w.purged, &w.pruned); err != nil || !found {
			return err
		}
		if w.account == "" {
			w.purged, w.pruned = math.MaxInt64, math.MaxInt64
		}
		if w.records, err = c.look.rows(ctx, wasteRecords, w.id, w.purged, findRows); err != nil || len(w.records) > 0 {
			return err
		}
		var revision int64
		err := c.look.each(ctx, wasteTombstones, []any{w.id, w.pruned, findRows}, []any{&revision}, func() error {
			w.tombstones = append(w.tombstones, revision)
			return nil
		})
		if err == nil {
			w.burials, err = c.look.rows(ctx, wasteBurials, w.id, w.pruned, findRows)
		}
		return err
	})
	return w, found, err
}

// remove deletes rows by their ids, in slices.
func (c *cleaner) remove(ctx context.Context, s statement, rows []wasteRow, bounds ...any) error {
	for _, slice := range cutSlices(rows) {
		err := c.write(ctx, func(t *tx) error {
			for _, row := range slice {
				if _, err := t.write("clean up", s, append([]any{row.id}, bounds...)...); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// forget deletes tombstones, in slices.
func (c *cleaner) forget(ctx context.Context, w wasteOf) error {
	for begin := 0; begin < len(w.tombstones); begin += sliceRows {
		last := w.tombstones[min(begin+sliceRows, len(w.tombstones))-1]
		err := c.write(ctx, func(t *tx) error {
			_, err := t.write("clean up tombstones", deleteTombstones, w.id, last)
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// removeBurials deletes rows of purges that are forgotten, in slices.
func (c *cleaner) removeBurials(ctx context.Context, w wasteOf) error {
	const doing = "clean up a purge"
	for _, slice := range cutSlices(w.burials) {
		err := c.write(ctx, func(t *tx) error {
			removed := int64(0)
			for _, row := range slice {
				result, err := t.write(doing, removeBurial, row.id, w.id)
				if err != nil {
					return err
				}
				n, err := result.RowsAffected()
				if err != nil {
					return failure(doing, err)
				}
				removed += n
			}
			_, err := t.write(doing, countBurials, removed, w.id)
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// write has the commit loop carry out one slice, among the others' work. A log
// that the slices made long is moved between them, so that what goes to the disk
// at once stays small.
func (c *cleaner) write(ctx context.Context, fn func(*tx) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := c.gather(); err != nil {
		return err
	}
	if c.position.frames >= c.moveAt {
		if err := c.keepShort(ctx); err != nil {
			return err
		}
		// A reader may keep it from being used anew: it is not tried at each slice.
		c.moveAt = c.position.frames + logFrames
	}
	return c.store.submit(ctx, fn)
}

// rows reads ids and sizes.
func (c *conn) rows(ctx context.Context, s statement, args ...any) (found []wasteRow, err error) {
	var row wasteRow
	err = c.each(ctx, s, args, []any{&row.id, &row.bytes}, func() error {
		found = append(found, row)
		return nil
	})
	return found, err
}
