package device

import (
	"encoding/json"
	"fmt"

	"pepvault/pep"
	"pepvault/vault"
)

// app is the program around a replica: it has the keys, keeps the memory, and
// does what a person wants.
type app struct {
	kept  Memory
	key   string            // that the rotation under way seals with
	keyed map[string]string // that of each rotation, by its id
	// whole is what each batch was to make, by its id; of removals, what was there.
	whole  map[string][]Change
	meddle bool // the rule of when to keep it is left out
}

// keep is what [Memory] tells to do.
func (c *client) keep() {
	if c.world.crashes {
		c.kept = c.Memory()
	}
}

// Ask is that of the replica, with what an app has to do before and after it.
func (c *client) Ask() pep.Op {
	if !c.world.crashes || c.world.calming {
		c.tend()
	}
	op := c.Replica.Ask()
	if _, sync := op.(pep.Sync); op != nil && !sync && !c.meddle {
		c.keep()
	}
	return op
}

// crash has the device end without notice and begin again with what was kept.
func (c *client) crash() {
	if c.online {
		c.cut()
	}
	c.world.note("%s crashes", c.sender.Resource)
	rules := c.rules
	c.Replica = Load(c.filed())
	c.rules = rules
	c.Replica.Disconnected() // with those rules
	c.limits()
	c.keep()
	if c.world.restored { // it may have been the only one that had something
		c.world.giveUp()
	}
	c.check()
}

// filed is the memory as it comes back from a file; mostly without one.
func (c *client) filed() (m Memory) {
	if !c.world.wired {
		return c.kept
	}
	file, err := json.Marshal(c.kept)
	if err == nil {
		err = json.Unmarshal(file, &m)
	}
	if err != nil {
		panic(err)
	}
	return m
}

// tend does what the replica waits for.
func (c *client) tend() {
	if to := c.Due(); to > 0 {
		c.rotate(to)
	}
	for _, s := range c.Unsealed() {
		if c.world.calming || !c.world.one(4) {
			c.Seal(s, seal(s.Payload, c.keyFor(s)))
		}
	}
	if c.PutOff() && !c.world.calming {
		c.Again()
	}
	for i := len(c.conflicts) - 1; i >= 0; i-- {
		x := c.conflicts[i] // after a rotation only who has the keys can compare
		if x.Theirs != nil && !x.Mine.Gone && string(x.Theirs.Payload.Data) != string(x.Mine.Payload.Data) &&
			content(x.Theirs.Payload) == content(x.Mine.Payload) {
			c.Settle(i)
		}
	}
	if c.Confirming() > 0 && (c.world.calming || c.world.one(3)) {
		batch, _ := c.Batch()
		c.world.note("%s: a person confirms %s", c.sender.Resource, batch.ID)
		c.world.confirmed[batch.ID] = true
		c.Confirm()
	}
	c.keep()
}

// keyFor is the key that something has to be sealed with.
func (c *client) keyFor(s Sealing) string {
	if batch, _ := c.Batch(); batch.RotateTo > 0 && s.To == batch.RotateTo && s.To > c.KeyVersion() {
		return c.key
	}
	if s.To < 2 {
		return ""
	}
	return c.world.keyIn(c.records, s.To)
}

// rotate begins a rotation with a new key, or, after a restore, with that of
// what the service has lost.
func (c *client) rotate(to uint32) {
	c.world.count++
	id, key := fmt.Sprint("b", c.world.count), fmt.Sprintf("%d%s-%d", to, c.sender.Resource, c.world.count)
	for _, change := range c.changes {
		if c.above(change) && change.KeyVersion == to {
			key = keyOf(change.Payload)
		}
	}
	if c.Rotate(id, to) {
		c.world.note("%s begins the rotation %s to %d", c.sender.Resource, id, to)
		c.key = key
		if c.keyed == nil {
			c.keyed = map[string]string{}
		}
		c.keyed[id] = key
		c.keep()
	}
}

// together begins a batch of two or three changes.
func (c *client) together() {
	w := c.world
	w.count++
	id := fmt.Sprint("b", w.count)
	var changes []Change
	for _, i := range w.chance.Perm(4)[:2+w.chance.IntN(2)] {
		x := Change{ID: fmt.Sprint(i), Gone: w.one(3)}
		if !x.Gone {
			x.KeyVersion = max(c.KeyVersion(), 1)
			x.Payload = seal(w.token(), w.keyIn(c.records, x.KeyVersion))
		}
		changes = append(changes, x)
	}
	if !c.Together(id, changes) {
		return
	}
	w.note("%s begins the batch %s of %+v", c.sender.Resource, id, changes)
	if c.whole == nil {
		c.whole = map[string][]Change{}
	}
	for _, x := range changes {
		seen := c.records[x.ID].Payload
		if !x.Gone {
			seen = x.Payload
		}
		c.whole[id] = append(c.whole[id], Change{ID: x.ID, Gone: x.Gone, Payload: seen})
		w.made(content(c.records[x.ID].Payload), x)
		w.batched[content(x.Payload)] = true
	}
	c.keep()
}

// made notes that somebody who saw a content put something in its place.
func (w *world) made(seen string, x Change) {
	delete(w.kept, seen)
	if !x.Gone {
		text := content(x.Payload)
		w.kept[text], w.madeOf[text] = true, seen
	}
}

// abandon has a person drop the batch under way.
func (c *client) abandon() {
	batch, _ := c.Batch()
	if !c.Abandon() {
		return
	}
	c.world.note("%s abandons %s", c.sender.Resource, batch.ID)
	for _, x := range batch.Changes {
		delete(c.world.kept, content(x.Payload))
	}
	c.keep()
}

// edit has a person change what the device shows.
func (c *client) edit(id string, payload *vault.Payload) {
	x := Change{ID: id, Gone: payload == nil}
	seen := c.shown(id)
	if x.Gone {
		c.world.note("%s removes %s", c.sender.Resource, id)
		c.Remove(id)
	} else {
		x.KeyVersion = max(c.KeyVersion(), 1)
		x.Payload = *payload
		if x.KeyVersion > 1 {
			x.Payload = seal(*payload, c.world.keyIn(c.records, x.KeyVersion))
		}
		c.world.note("%s saves %s = %s", c.sender.Resource, id, x.Payload.Data)
		c.Save(id, x.KeyVersion, x.Payload)
	}
	c.world.made(seen, x)
	if in := c.batch.change(id); in != nil && in.Gone == x.Gone && string(in.Payload.Data) == string(x.Payload.Data) {
		c.world.batched[content(x.Payload)] = true
		changes := c.whole[c.batch.ID]
		for i := range changes {
			if changes[i].ID != id {
				continue
			}
			changes[i].Gone, changes[i].Payload = x.Gone, x.Payload
			if x.Gone {
				changes[i].Payload = vault.Payload{Data: []byte(seen)}
			}
		}
	}
	c.keep()
}

// shown is the content that a person sees.
func (c *client) shown(id string) string {
	for i := len(c.changes) - 1; i >= 0; i-- {
		if c.changes[i].ID == id {
			return content(c.changes[i].Payload)
		}
	}
	if x := c.batch.change(id); x != nil {
		return content(x.Payload)
	}
	return content(c.records[id].Payload)
}
