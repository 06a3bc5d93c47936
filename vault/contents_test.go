package vault

import "testing"

// Every part of a record counts for the hash, and where it ends.
func TestContentHash(t *testing.T) {
	t.Parallel()
	base := Record{ID: "a", KeyVersion: 1, Payload: Payload{Form: Native, Data: []byte("xy")}, Publisher: "p@q"}
	key := Key{Account: "alice@example.org", Node: "notes"}
	hashOf := func(key Key, change func(*Record)) ContentHash {
		r := base
		change(&r)
		h := NewContentHasher()
		h.Add(key, r)
		return h.Sum()
	}
	same := hashOf(key, func(*Record) {})
	if other := hashOf(key, func(r *Record) { r.Revision = 7 }); other != same {
		t.Error("a revision counts")
	}
	seen := map[ContentHash]string{same: "the record", NewContentHasher().Sum(): "nothing"}
	for name, hash := range map[string]ContentHash{
		"id":               hashOf(key, func(r *Record) { r.ID = "b" }),
		"key version":      hashOf(key, func(r *Record) { r.KeyVersion = 2 }),
		"form":             hashOf(key, func(r *Record) { r.Payload.Form = Foreign }),
		"payload":          hashOf(key, func(r *Record) { r.Payload.Data = []byte("xz") }),
		"publisher":        hashOf(key, func(r *Record) { r.Publisher = "p@r" }),
		"account":          hashOf(Key{Account: "bob@example.org", Node: "notes"}, func(*Record) {}),
		"node":             hashOf(Key{Account: "alice@example.org", Node: "notez"}, func(*Record) {}),
		"end of node":      hashOf(Key{Account: "alice@example.org", Node: "notesa"}, func(r *Record) { r.ID = "" }),
		"end of publisher": hashOf(key, func(r *Record) { r.ID, r.Publisher = "ap", "@q" }),
	} {
		if before, found := seen[hash]; found {
			t.Errorf("%s has the hash of %s", name, before)
		}
		seen[hash] = name
	}
}
