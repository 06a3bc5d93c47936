package echo

import (
	"fmt"
	"strconv"
	"strings"

	"pepvault/pep"
	"pepvault/vault"
)

// content is what every vault seems to hold.
type content struct {
	records int
	data    []byte // of each record
}

// record makes one.
func (c content) record(id string) vault.Record {
	return vault.Record{ID: id, KeyVersion: 1, Payload: vault.Payload{Form: vault.Native, Data: c.data}}
}

// id names the n-th record, in as many bytes as devices' UUIDs have.
func id(n int) string { return fmt.Sprintf("00000000-0000-4000-8000-%012x", n) }

// items answers a read: whatever ids are asked for are there.
func (c content) items(op pep.Items) (pep.ItemsPage, error) {
	page := pep.ItemsPage{Node: op.Node}
	for _, id := range op.IDs {
		page.Records = append(page.Records, c.record(id))
	}
	if op.IDs != nil {
		return page, nil
	}
	all := c.records
	if op.Max > 0 {
		all = min(all, op.Max)
	}
	from, most, err := window(op.Page, all)
	if err != nil {
		return page, err
	}
	for n, cost := from, 0; n < all && n < from+most; n++ {
		record := c.record(id(n))
		if cost += record.Cost(); cost > answerBytes && len(page.Records) > 0 {
			break
		}
		page.Records = append(page.Records, record)
	}
	if op.Page == nil && len(page.Records) == all {
		return page, nil
	}
	page.Set = &pep.ResultSet{Index: from, Count: all}
	if n := len(page.Records); n > 0 {
		page.Set.First, page.Set.Last = strconv.Itoa(from), strconv.Itoa(from+n-1)
	}
	return page, nil
}

// window is where a page begins and how many records it may have. Names of
// places are the numbers of records.
func window(page *pep.PageRequest, all int) (from, most int, err error) {
	if page == nil {
		return 0, all, nil
	}
	most = page.Max
	if most < 0 {
		most = all
	}
	switch {
	case page.Index != nil:
		return *page.Index, most, nil
	case page.After != "":
		last, err := strconv.Atoi(page.After)
		if err != nil || last < 0 || last >= all {
			return 0, 0, pep.ErrUnknownPage
		}
		return last + 1, most, nil
	case page.Last:
		return max(0, all-most), most, nil
	case page.Before != "":
		next, err := strconv.Atoi(page.Before)
		if err != nil || next < 0 || next > all {
			return 0, 0, pep.ErrUnknownPage
		}
		from = max(0, next-most)
		return from, next - from, nil
	}
	return 0, most, nil
}

// sync answers a cursor, which is a revision and, inside a pass, the number of
// the next record. Who holds nothing gets all records, who holds a state as
// many as were written since.
func (c content) sync(owner vault.Account, now vault.Revision, op pep.Sync) (pep.SyncPage, error) {
	page := pep.SyncPage{Owner: owner, Node: op.Node, Records: c.records}
	held, next, whole, err := parseCursor(op.Cursor)
	if err != nil || held > now {
		return page, pep.Refuse(pep.ErrBadRequest, "a cursor of somebody else")
	}
	last := c.records
	if whole {
		page.Reset, page.First = vault.ResetNew, next == 0
	} else {
		last = int(min(now-held, vault.Revision(c.records)))
	}
	cost := 0
	for n := next; n < last; n++ {
		record := c.record(id(n))
		record.Revision = vault.Revision(n + 1)
		cost += record.Cost()
		if len(page.Changes) > 0 && (cost > answerBytes || op.Bytes > 0 && cost > op.Bytes || op.Max > 0 && len(page.Changes) == op.Max) {
			page.More = true
			break
		}
		page.Changes = append(page.Changes, vault.Change{Record: record})
	}
	switch {
	case !page.More:
		page.Cursor = cursor(now)
	case whole:
		page.Cursor = fmt.Sprintf("echo.%d.%d", now, next+len(page.Changes))
	default: // the rest is what a device that held more would get
		page.Cursor = cursor(now - vault.Revision(last-len(page.Changes)))
	}
	return page, nil
}

func cursor(revision vault.Revision) string {
	return "echo." + strconv.FormatUint(uint64(revision), 10)
}

// parseCursor reads what cursor and sync make; whole says that the device is in
// a pass through the vault.
func parseCursor(text string) (held vault.Revision, next int, whole bool, err error) {
	if text == "" || text == pep.NoCursor {
		return 0, 0, true, nil
	}
	parts := strings.Split(text, ".")
	if parts[0] != "echo" || len(parts) < 2 || len(parts) > 3 {
		return 0, 0, false, pep.ErrBadRequest
	}
	revision, err := strconv.ParseUint(parts[1], 10, 63)
	if err == nil && len(parts) == 3 {
		next, err = strconv.Atoi(parts[2])
		whole = true
	}
	if next < 0 {
		err = pep.ErrBadRequest
	}
	return vault.Revision(revision), next, whole, err
}

// stateOf is the <state/> of a publication, by the revision before it.
func stateOf(owner vault.Account, before vault.Revision, op pep.Publish) pep.State {
	state := pep.State{Owner: owner, Node: op.Node, Previous: cursor(before)}
	for i, item := range op.Items {
		state.Items = append(state.Items, pep.StateItem{ID: item.ID, Revision: before + vault.Revision(i+1)})
	}
	state.Cursor = cursor(before + vault.Revision(len(op.Items)))
	return state
}

// costOf bounds what records take on the wire.
func costOf(records []vault.Record) (cost int) {
	for i := range records {
		cost += records[i].Cost()
	}
	return cost
}

func costOfChanges(changes []vault.Change) (cost int) {
	for i := range changes {
		cost += changes[i].Cost()
	}
	return cost
}
