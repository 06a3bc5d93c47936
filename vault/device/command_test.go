package device

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"pepvault/pep"
)

// tool is a program of the account that is no device.
func (w *world) tool(op pep.Op) error {
	w.note("a tool asks %T %s", op, spoken{op})
	sender := pep.Sender{Account: owner, Address: string(owner) + "/tool", Resource: "tool"}
	return w.engine.Do(context.Background(), pep.Request{Sender: sender, Owner: owner, Op: op}, func(out pep.Outcome) {
		w.tell(out.Notices)
	})
}

// command is what somebody does on purpose with the whole vault.
func (w *world) command(op pep.Op) {
	before := w.contents()
	if w.tool(op) != nil {
		return
	}
	switch op.(type) {
	case pep.Purge:
		w.forget(before)
	case pep.Delete, pep.Erase:
		w.deleted = true
		// Whoever still held something of the vault gives it up with it.
		w.forget(before)
		for _, c := range w.clients {
			w.forget(c.records)
			w.forget(c.kept.Records) // after a crash
		}
	}
	if _, erased := op.(pep.Erase); erased {
		for _, c := range w.clients { // the service knows none of them any more
			c.missed = true
		}
	}
}

// several has a tool write or remove two records at once, which relies on what
// there is.
func (w *world) several() {
	there := w.contents()
	expect := &pep.Expect{Cursor: w.cursor()}
	var ids []string
	for _, i := range w.chance.Perm(4)[:2] {
		ids = append(ids, fmt.Sprint(i))
	}
	if expect.Cursor != pep.NoCursor {
		for _, id := range ids {
			expect.Items = append(expect.Items, pep.Expected{ID: id, Revision: there[id].Revision})
		}
	}
	if w.one(3) {
		if w.tool(pep.Retract{Node: node, IDs: ids, Expect: expect, State: true, Confirm: w.one(2)}) == nil {
			for _, id := range ids {
				delete(w.kept, content(there[id].Payload))
			}
		}
		return
	}
	version := uint32(1)
	for _, record := range there {
		version = max(version, record.KeyVersion)
	}
	op := pep.Publish{Node: node, Expect: expect, State: true}
	for _, id := range ids {
		op.Items = append(op.Items, pep.Item{ID: id, KeyVersion: version, Payload: seal(w.token(), w.keyIn(there, version))})
	}
	if w.tool(op) != nil {
		return
	}
	for _, item := range op.Items {
		seen, made := content(there[item.ID].Payload), content(item.Payload)
		delete(w.kept, seen)
		w.kept[made], w.madeOf[made] = true, seen
	}
}

// configure changes what is told, and whether a full vault makes room.
func (w *world) configure() {
	full := "reject"
	if w.one(3) {
		full = "retract-oldest"
	}
	w.command(pep.Configure{Node: node, Form: pep.Form{Type: pep.FormConfig, Fields: []pep.Field{
		{Name: "pubsub#title", Values: []string{fmt.Sprint(w.count)}},
		{Name: "pubsub#deliver_payloads", Values: []string{fmt.Sprint(!w.one(3))}},
		{Name: "pubsub#publish_node_full", Values: []string{full}},
	}}})
}

// forget notes that records were removed on purpose.
func (w *world) forget(records map[string]Record) {
	for _, record := range records {
		delete(w.kept, content(record.Payload))
	}
}

// restartService has the service end and begin again; what was asked of it and
// not answered is not answered any more.
func (w *world) restartService(store func()) {
	for _, c := range w.clients {
		if c.online {
			c.cut()
		}
	}
	store()
	w.start()
}

// restore brings an older state back. What nobody has any more is gone.
func (w *world) restore() {
	w.note("an older store comes back, by hand %v", w.byHand)
	w.restored = true
	w.restartService(func() { w.store.putBack(w.saved, !w.byHand) })
	w.giveUp()
	// What the older state has is there again, whatever became of it.
}

// giveUp forgets what nobody has, after a store was lost.
func (w *world) giveUp() {
	for content := range w.kept {
		if !w.has(content) {
			delete(w.kept, content)
		}
	}
}

// spoken puts a request into words.
type spoken struct{ pep.Op }

func (s spoken) String() string { return says(s.Op) }

func says(op pep.Op) string {
	switch op := op.(type) {
	case pep.Publish:
		var text string
		for _, item := range op.Items {
			text += fmt.Sprintf("%s = %s/%d, ", item.ID, item.Payload.Data, item.KeyVersion)
		}
		return text + relyingOn(op.Expect, op.Batch)
	case pep.Retract:
		return fmt.Sprintf("%v, %s", op.IDs, relyingOn(op.Expect, op.Batch))
	case pep.BeginBatch:
		return fmt.Sprintf("%s, to %d", op.ID, op.RotateTo)
	case pep.CommitBatch:
		return fmt.Sprintf("%s of %d, confirmed %v", op.ID, op.Changes, op.Confirm)
	case pep.Unstage, pep.AbortBatch:
		return fmt.Sprintf("%+v", op)
	default:
		return ""
	}
}

func relyingOn(x *pep.Expect, batch *pep.BatchRef) string {
	switch {
	case batch != nil:
		return "staged in " + batch.ID
	case x == nil:
		return "relying on nothing"
	case x.Items == nil:
		return "relying on the whole vault"
	}
	return fmt.Sprintf("expecting %+v", x.Items)
}

// keyIn is the key of a version, as the records of a vault show it.
func (w *world) keyIn(records map[string]Record, version uint32) string {
	for _, id := range slices.Sorted(maps.Keys(records)) {
		if records[id].KeyVersion == version {
			return keyOf(records[id].Payload)
		}
	}
	return w.keys[version]
}
