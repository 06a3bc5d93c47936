package pep

import (
	"testing"
	"time"

	"pepvault/vault"
)

// The hash that was not used for longest goes first, also of those that were
// stored under a higher bound; when one was used is stored once a day.
func TestCapabilitiesThatAreUsedStay(t *testing.T) {
	t.Parallel()
	now := time.UnixMilli(1_700_000_000_000)
	i := newInterest(vault.Limits{Resources: 4, Capabilities: 2}, func() time.Time { return now })
	i.restore(nil, []vault.Capabilities{{Hash: "a", Used: now}, {Hash: "b", Used: now}, {Hash: "c", Used: now}})
	if i.caps.look("a", now) != nil || len(i.caps.known) != 2 {
		t.Errorf("%d hashes are known, the oldest among them", len(i.caps.known))
	}
	clear(i.caps.unsaved)
	now = now.Add(23 * time.Hour)
	i.caps.look("b", now)
	now = now.Add(2 * time.Hour)
	if n := len(i.caps.unsaved); n != 0 {
		t.Errorf("%d hashes have to be stored that were used within a day", n)
	}
	i.caps.keep("d", &features{}, now)
	if i.caps.look("b", now) == nil || i.caps.look("c", now) != nil {
		t.Error("the hash used last went, and not the other")
	}
}
