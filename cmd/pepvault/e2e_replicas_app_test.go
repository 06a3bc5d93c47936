package main_test

import (
	"crypto/rand"
	"fmt"
	"maps"
	"slices"
	"strings"

	"pepvault/vault"
	"pepvault/vault/device"
)

// app is the program around a replica: it has the keys, keeps the memory, and
// does what a person wants.
type app struct {
	number int
	kept   device.Memory
	key    string // that the rotation under way seals with
	cursor string // of what was looked at
}

// firstKeys are those of a vault that was never rotated, by key version.
func firstKeys() map[uint32]string { return map[uint32]string{1: "first"} }

// sealOf makes a ciphertext; it hides nothing.
func sealOf(content, key string) vault.Payload {
	return vault.Payload{Form: vault.Native, Data: fmt.Append(nil, markedText, "|", key, "|", content)}
}

// open returns under which key a payload was sealed, and its content.
func open(p vault.Payload) (key, content string) {
	_, rest, _ := strings.Cut(string(p.Data), "|")
	key, content, _ = strings.Cut(rest, "|")
	return key, content
}

func contentOf(p vault.Payload) string {
	_, content := open(p)
	return content
}

// limits has one device take all at once, and the others piece by piece.
func (d *liveDevice) limits() {
	d.replica.PageBy(d.number)
	d.replica.StageBy(d.number)
}

// keep is what device.Memory tells to do.
func (d *liveDevice) keep() { d.kept = d.replica.Memory() }

// crash has the device end without notice and begin again with what was kept.
func (d *liveDevice) crash() {
	if d.fleet.muddled { // it may be the only one that has something
		d.keep()
	}
	d.cut()
	d.fleet.note("%s crashes", d.name)
	d.replica = device.Load(d.kept)
	d.limits()
	d.keep()
}

// care does what the replica waits for.
func (d *liveDevice) care() {
	r := d.replica
	if to := r.Due(); to > 0 {
		key := ""
		for _, c := range r.Changes() { // that of what the service has lost
			if c.KeyVersion == to {
				key, _ = open(c.Payload)
			}
		}
		d.rotate(to, key)
	}
	for _, s := range r.Unsealed() {
		if key := d.keyFor(s); key != "" { // else it has not got it yet
			r.Seal(s, sealOf(contentOf(s.Payload), key))
		}
	}
	if r.PutOff() {
		r.Again()
	}
	for i, x := range slices.Backward(r.Conflicts()) { // only who has the keys can compare
		if x.Theirs != nil && !x.Mine.Gone && contentOf(x.Theirs.Payload) == contentOf(x.Mine.Payload) {
			r.Settle(i)
		}
	}
	if r.Confirming() > 0 {
		r.Confirm()
	}
	d.keep()
}

func (d *liveDevice) keyFor(s device.Sealing) string {
	if batch, _ := d.replica.Batch(); batch.RotateTo > 0 && s.To == batch.RotateTo && s.To > d.replica.KeyVersion() {
		return d.key
	}
	return d.fleet.keyIn(d.replica.Records(), s.To)
}

// keyIn is the key of a version, as the records have it, or as it was last.
func (f *fleet) keyIn(records map[string]device.Record, version uint32) string {
	for _, r := range records {
		if r.KeyVersion == version {
			key, _ := open(r.Payload)
			return key
		}
	}
	return f.keys[version]
}

// newest is the newest key that a device has for what it shows.
func (d *liveDevice) newest() (version uint32, key string) {
	for version = max(d.replica.KeyVersion(), 1); version > 1; version-- {
		if key = d.fleet.keyIn(d.replica.Records(), version); key != "" {
			return version, key
		}
	}
	return 1, d.fleet.keyIn(d.replica.Records(), 1)
}

// look holds that a device shows no part of a rotation: all that it has is
// sealed under one key.
func (d *liveDevice) look() {
	if d.replica.Cursor() == d.cursor {
		return
	}
	d.cursor = d.replica.Cursor()
	keys := map[string]uint32{}
	for _, r := range d.replica.Records() {
		key, _ := open(r.Payload)
		keys[key] = r.KeyVersion
		d.fleet.keys[r.KeyVersion] = key
	}
	if len(keys) > 1 {
		d.fleet.fault("%s shows records under the keys %v", d.name, keys)
	}
}

// rotate begins a rotation; "" stands for a new key.
func (d *liveDevice) rotate(to uint32, key string) {
	f := d.fleet
	f.count++
	if key == "" {
		key = fmt.Sprintf("key%d-%s-%d", to, d.name, f.count)
	}
	if d.replica.Rotate(rand.Text(), to) {
		f.note("%s begins to rotate to %s", d.name, key)
		d.key = key
		d.keep()
	}
}

// token makes a content that never was before.
func (f *fleet) token() string {
	f.count++
	return fmt.Sprint("v", f.count)
}

// edit has a person change what a device shows.
func (d *liveDevice) edit(id string, remove bool) {
	f, seen := d.fleet, d.shown(id)
	if remove {
		f.note("%s removes %s", d.name, id)
		d.replica.Remove(id)
		delete(f.kept, seen)
	} else {
		content := f.token()
		version, key := d.newest()
		f.note("%s saves %s = %s under %s", d.name, id, content, key)
		d.replica.Save(id, version, sealOf(content, key))
		f.made(seen, content)
	}
	d.keep()
}

// made notes that somebody who saw a content put another one in its place.
func (f *fleet) made(seen, content string) {
	delete(f.kept, seen)
	f.kept[content], f.madeOf[content] = true, seen
}

// together has a person change several records at once.
func (d *liveDevice) together(ids ...string) {
	f, records := d.fleet, d.replica.Records()
	version, key := d.newest()
	var changes []device.Change
	for _, id := range ids {
		content := f.token()
		changes = append(changes, device.Change{ID: id, KeyVersion: version, Payload: sealOf(content, key)})
	}
	if !d.replica.Together(rand.Text(), changes) {
		return
	}
	f.note("%s begins a batch of %v", d.name, ids)
	for _, c := range changes {
		f.made(contentOf(records[c.ID].Payload), contentOf(c.Payload))
		f.batched[contentOf(c.Payload)] = true
	}
	d.keep()
}

// shown is the content that a person sees.
func (d *liveDevice) shown(id string) string {
	batch, _ := d.replica.Batch()
	for _, c := range slices.Backward(slices.Concat(batch.Changes, d.replica.Changes())) {
		if c.ID == id {
			return contentOf(c.Payload)
		}
	}
	return contentOf(d.replica.Records()[id].Payload)
}

// has tells whether a content is anywhere on the device.
func (d *liveDevice) has(content string) bool {
	m := d.replica.Memory()
	changes := slices.Concat(m.Changes, m.Refused, m.Onto)
	if m.Batch != nil {
		changes = append(changes, m.Batch.Changes...)
	}
	for _, x := range m.Conflicts {
		changes = append(changes, x.Mine)
		if x.Theirs != nil {
			changes = append(changes, device.Change{Payload: x.Theirs.Payload})
		}
	}
	is := func(p vault.Payload) bool { return contentOf(p) == content }
	return slices.ContainsFunc(changes, func(c device.Change) bool { return is(c.Payload) }) ||
		slices.ContainsFunc(slices.Collect(maps.Values(m.Records)), func(r device.Record) bool { return is(r.Payload) })
}
