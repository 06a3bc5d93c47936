package pep

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"pepvault/vault"
)

// kept counts what there is beside verified hashes and what is not stored yet.
func (i *interest) kept() int {
	return len(i.accounts) + len(i.visitors) + len(i.subscribed) +
		len(i.caps.waiting) + len(i.caps.questions)
}

// Everything at once, from many sides; the race detector has the last word.
func TestInterestFromManySides(t *testing.T) {
	t.Parallel()
	i := newInterest(vault.Limits{Resources: 4, Capabilities: 2}, time.Now)
	key := vault.Key{Account: modelAccounts[0], Node: "notes"}
	hashes := slices.Sorted(maps.Keys(modelTruth))
	var group sync.WaitGroup
	for seed := range 6 {
		group.Go(func() {
			random := rand.New(rand.NewPCG(uint64(seed), 1))
			for range 2000 {
				account := modelAccounts[random.IntN(len(modelAccounts))]
				resource := fmt.Sprint(random.IntN(12))
				s := Sender{Account: account, Resource: resource, Address: string(account) + "/" + resource}
				c := CapsHash{Hash: hashes[random.IntN(len(hashes))]}
				switch random.IntN(8) {
				case 0, 1, 2:
					for _, q := range i.arrive(Presence{Sender: s, Owner: key.Account, Caps: []CapsHash{c}}).Ask {
						i.learn(q.To, q.Caps, modelTruth[q.Caps.Hash], random.IntN(2) == 0)
					}
				case 3:
					i.absent(s, key.Account)
				case 4:
					_ = i.add(s, key, 4) // refused as often as not
				case 5:
					i.greetings(s, random.IntN(2) == 0)
				case 6:
					names, lost := i.takeUnsaved(2)
					for _, n := range names {
						i.describe(n)
					}
					i.giveBack(nil, lost)
				case 7:
					i.notices(key, nil, []vault.Affiliated{{Account: account, Affiliation: vault.Member}}, &Event{})
				}
			}
		})
	}
	group.Wait()
	for _, account := range modelAccounts {
		if n := len(i.accounts[account]); n > 8 {
			t.Errorf("%d resources of %s are known", n, account)
		}
		i.forgetAccount(account)
	}
	for account, busy := range i.caps.questions { // those whose answer led to further ones
		for resource, c := range maps.Clone(busy) {
			i.unknown(Sender{Account: account, Resource: resource}, c)
		}
	}
	if n := i.kept(); n > 0 || len(i.caps.known) > 2 {
		t.Errorf("%d things and %d hashes are kept", n, len(i.caps.known))
	}
}
