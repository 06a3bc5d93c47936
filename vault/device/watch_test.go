package device

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strings"

	"pepvault/pep"
	"pepvault/vault"
)

// watch sees what must never be, at every moment of a history.
type watch struct {
	wrong []string
	// kept are contents that must be somewhere: saved on a device, and neither
	// overwritten nor removed by somebody who saw them.
	kept   map[string]bool
	madeOf map[string]string // content: the one that its author saw before
	// batched are contents that were to be made in a batch.
	batched map[string]bool
	// states are those that the service had between its commits, by cursor.
	states map[string]map[string]Record
	live   map[string]bool   // contents that the service has
	dead   map[string]bool   // contents that it had
	first  map[string]bool   // contents that may have made the vault
	unique bool              // each content is written once
	keys   map[uint32]string // the latest key of each key version
	// committed are the batches that were, confirmed those of which a person said
	// that nearly all may go.
	committed, confirmed map[string]bool
	rotations            int // that were committed
}

func newWatch() watch {
	return watch{
		kept: map[string]bool{}, madeOf: map[string]string{}, batched: map[string]bool{}, states: map[string]map[string]Record{pep.NoCursor: {}},
		live: map[string]bool{}, dead: map[string]bool{}, first: map[string]bool{}, keys: map[uint32]string{},
		committed: map[string]bool{}, confirmed: map[string]bool{},
	}
}

func (w *world) fault(format string, args ...any) {
	w.wrong = append(w.wrong, fmt.Sprintf(format, args...))
	w.note("WRONG: "+format, args...)
}

// A payload is a content, and for key versions from 2 the key that seals it: each
// rotation makes one of its own.
func seal(p vault.Payload, key string) vault.Payload {
	p = vault.Payload{Form: p.Form, Data: []byte(content(p))}
	if key != "" {
		p.Data = fmt.Appendf(p.Data, "#%s", key)
	}
	return p
}

func content(p vault.Payload) string {
	text, _, _ := strings.Cut(string(p.Data), "#")
	return text
}

func keyOf(p vault.Payload) string {
	_, key, _ := strings.Cut(string(p.Data), "#")
	return key
}

// looks sees each state of the service: all records have one key version and one
// key, and none has come back that was removed.
func (w *world) looks() {
	now := w.contents()
	w.states[w.cursor()] = now
	live := map[string]bool{}
	key := map[uint32]string{}
	for _, id := range slices.Sorted(maps.Keys(now)) {
		record := now[id]
		text := content(record.Payload)
		live[text] = true
		// A device that knew of no vault can't know either that one was deleted.
		if w.dead[text] && w.unique && !w.restored && !(w.deleted && w.first[text]) {
			w.fault("%s was removed and is there again", text)
		}
		had, found := key[record.KeyVersion]
		if key[record.KeyVersion] = keyOf(record.Payload); found && had != key[record.KeyVersion] {
			w.fault("the service has two keys of version %d: %s and %s", record.KeyVersion, had, key[record.KeyVersion])
		}
	}
	if len(key) > 1 && w.unique {
		w.fault("the service has a half of a rotation: %s", inWords(now))
	}
	maps.Copy(w.keys, key)
	evicts := false
	w.view(func(v vault.View) error {
		state, err := v.Vault(vault.Key{Account: owner, Node: node})
		evicts = state.Config.EvictOldest
		return err
	})
	for text := range w.live {
		if !live[text] {
			w.dead[text] = true
			if evicts {
				delete(w.kept, text)
			}
		}
	}
	w.live = live
}

// check sees that a device shows a state that the service had, whole, and that
// what it says about its batches is true.
func (c *client) check() {
	w := c.world
	want, known := w.states[c.cursor]
	if !known || !same(c.records, want) {
		w.fault("%s shows %s, which is no state of the service: %s", c.sender.Resource, inWords(c.records), inWords(want))
	}
	// After an ended history two may rotate with one key: then both are right.
	if end := c.Ended(); end.RotateTo > 0 && end.End == BatchMade && !w.committed[end.ID] && w.keys[end.RotateTo] != c.keyed[end.ID] {
		w.fault("%s takes its rotation %s for made", c.sender.Resource, end.ID)
	}
}

func same(a, b map[string]Record) bool {
	if len(a) != len(b) {
		return false
	}
	for id, record := range a {
		other, found := b[id]
		if !found || record.Revision != other.Revision || record.KeyVersion != other.KeyVersion ||
			!bytes.Equal(record.Payload.Data, other.Payload.Data) {
			return false
		}
	}
	return true
}

// asking looks at a request and returns what looks at its outcome before anybody
// hears of it: a batch is made as a whole, and nearly all goes only if a person said so.
func (c *client) asking(op pep.Op) func() {
	if publish, is := op.(pep.Publish); is && publish.Expect != nil && publish.Expect.Cursor == pep.NoCursor {
		c.world.first[content(publish.Items[0].Payload)] = true
	}
	commit, is := op.(pep.CommitBatch)
	if !is {
		return func() {}
	}
	name, _, _ := strings.Cut(commit.ID, ".")
	if commit.Confirm && !c.world.confirmed[name] {
		c.world.fault("%s confirms %s, which nobody did", c.sender.Resource, name)
	}
	batch, _ := c.Batch()
	all := slices.Clone(c.whole[name])
	return func() {
		if c.world.committed[name] || batch.ID != name {
			return
		}
		c.world.committed[name] = true
		if batch.RotateTo > 0 {
			c.world.rotations++
		}
		there := c.world.contents()
		for _, x := range all {
			record, found := there[x.ID]
			// What was to go may have gone, and something else come; after a
			// restore even the same, from another device, and after a deletion from
			// one that did not hear that it had made the vault.
			again := c.world.restored || c.world.deleted && c.world.first[content(x.Payload)]
			if x.Gone && found && !again && content(record.Payload) == content(x.Payload) ||
				!x.Gone && content(record.Payload) != content(x.Payload) {
				c.world.fault("%s was committed without %s", name, x.ID)
			}
		}
	}
}

// follows reports whether the author of a content had seen the other one. Where a
// batch is in between, that is no matter: it could not be made as a whole.
func (w *world) follows(content, other string) bool {
	for content != "" && !w.batched[content] {
		if content = w.madeOf[content]; content == other {
			return other != ""
		}
	}
	return false
}

// has tells whether a content is anywhere.
func (w *world) has(text string) bool {
	if w.live[text] {
		return true
	}
	return slices.ContainsFunc(w.clients, func(c *client) bool { return c.has(text) })
}

func (c *client) has(text string) bool {
	for _, record := range c.records {
		if content(record.Payload) == text {
			return true
		}
	}
	is := func(change Change) bool { return content(change.Payload) == text }
	batch, _ := c.Batch()
	return slices.ContainsFunc(c.changes, is) || slices.ContainsFunc(c.refused, is) || slices.ContainsFunc(batch.Changes, is) ||
		slices.ContainsFunc(c.conflicts, func(x Conflict) bool {
			return is(x.Mine) || x.Theirs != nil && content(x.Theirs.Payload) == text
		})
}

// faults says what is not as it must be in the end.
func (w *world) faults() []string {
	found := slices.Clone(w.wrong)
	now, cursor := w.contents(), w.cursor()
	for _, c := range w.clients {
		name := c.sender.Resource
		if !same(c.records, now) || c.cursor != cursor {
			found = append(found, fmt.Sprintf("%s holds %s at %s, the service %s at %s", name, inWords(c.records), c.cursor, inWords(now), cursor))
		}
		if len(c.changes) > 0 {
			found = append(found, fmt.Sprintf("%s still has %+v to say", name, c.changes))
		}
		if batch, under := c.Batch(); under {
			found = append(found, fmt.Sprintf("%s has the batch %+v under way", name, batch))
		}
		found = append(found, c.falseConflicts()...)
	}
	for _, text := range slices.Sorted(maps.Keys(w.kept)) {
		if !w.has(text) {
			found = append(found, text+" is nowhere")
		}
	}
	return found
}

// falseConflicts are those between two contents of which the device's was made
// of the other.
func (c *client) falseConflicts() (found []string) {
	w := c.world
	for _, x := range c.conflicts {
		if x.Theirs == nil || x.Mine.Gone || x.Theirs.KeyVersion != x.Mine.KeyVersion {
			continue // what was not answered before a rotation, only who has the keys finds in it
		}
		mine, theirs := content(x.Mine.Payload), content(x.Theirs.Payload)
		// A record knows of one rotation only.
		if mine == theirs || !w.restored && !w.deleted && w.rotations < 2 && w.follows(mine, theirs) {
			found = append(found, fmt.Sprintf("%s has a conflict between %s and %s, which it was made of", c.sender.Resource, mine, theirs))
		}
	}
	return found
}
