package pep

import (
	"fmt"
	"testing"
	"time"

	"pepvault/vault"
)

// What addressing an event costs grows with those who hear of it, not with
// those who are known.
func BenchmarkNotices(b *testing.B) {
	const alice = vault.Account("alice@localhost")
	for _, interested := range []int{1, 16} {
		for _, others := range []int{0, 10_000} {
			b.Run(fmt.Sprintf("interested=%d/others=%d", interested, others), func(b *testing.B) {
				i := newInterest(vault.Limits{Resources: 32, Capabilities: 10}, time.Now)
				caps := []CapsHash{{Hash: "sha-1:MQ==", Node: "n"}}
				come := func(account vault.Account, n int, owner vault.Account) {
					resource := fmt.Sprintf("r%d", n)
					s := Sender{Account: account, Resource: resource, Address: string(account) + "/" + resource}
					i.arrive(Presence{Sender: s, Owner: owner, Caps: caps})
				}
				for n := range interested {
					come(alice, n, alice)
				}
				i.learn(Sender{}, caps[0], Announced{Nodes: []string{"notes"}, Sync: true}, true)
				for n := range others {
					account := vault.Account(fmt.Sprintf("user%d@localhost", n/8))
					come(account, n%8, account)
					come(account, n%8, alice) // without any right there
				}
				event := &Event{Changes: make([]vault.Change, 1)}
				key := vault.Key{Account: alice, Node: "notes"}
				b.ReportAllocs()
				for b.Loop() {
					if n := len(i.notices(key, nil, nil, event)); n != interested {
						b.Fatalf("%d are told", n)
					}
				}
			})
		}
	}
}
