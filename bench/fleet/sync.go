package fleet

import (
	"context"
	"fmt"
	"slices"
	"time"

	"pepvault/pep"
	"pepvault/pep/wire"
)

// held is what a device has of a vault: enough to sync by cursor.
type held struct {
	cursor   string
	versions []uint32
}

// sync asks for what is new since the device's cursor, page by page
// (urn:pepvault:sync:0).
func (d *Device) sync(ctx context.Context, target int) ([]uint32, Answer, error) {
	d.mu.Lock()
	mine := d.held[target]
	d.mu.Unlock()
	var raws [][]byte
	answer := Answer{}
	for more := true; more; {
		raw, err := d.ask(ctx, target, pep.Sync{Node: Node, Cursor: mine.cursor})
		answer.At = time.Now()
		if err != nil {
			return nil, answer, err
		}
		raws = append(raws, raw)
		page, found := findTag(raw, "sync")
		cursor, there := page.attr("cursor")
		if !found || !there || cursor == "" {
			return nil, answer, fmt.Errorf("%w: a page without a cursor", wire.ErrBadReply)
		}
		mine.cursor = cursor
		word, _ := page.attr("more")
		more = word == "true"
	}
	versions, count, err := d.takePass(target, "sync", raws, slices.Clone(mine.versions))
	answer.Records = count
	if err != nil {
		return nil, answer, err
	}
	mine.versions = versions
	d.mu.Lock()
	defer d.mu.Unlock()
	d.held[target] = mine
	return slices.Clone(versions), answer, nil
}

// takePass takes in pages of a sync or chunks of a download, in elements of that
// name, on top of what the device holds, and counts their records.
func (d *Device) takePass(target int, element string, raws [][]byte, versions []uint32) ([]uint32, int, error) {
	count := 0
	for _, raw := range raws {
		page, _ := findTag(raw, element)
		if first, _ := page.attr("first"); first == "true" {
			versions = absent(d.fleet.options.Shape.Records)
		}
		if versions == nil && !d.fleet.options.Targets[target].Echo {
			return nil, count, fmt.Errorf("%w: changes of a vault that the device does not hold", wire.ErrBadReply)
		}
		n, err := d.takeItems(target, raw, versions, true)
		count += n
		if err != nil {
			return nil, count, err
		}
	}
	return versions, count, nil
}
