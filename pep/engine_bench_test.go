package pep_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"pepvault/pep"
	"pepvault/store"
	"pepvault/vault"
)

// benched is an engine on a real store, and how to ask it.
func benched(b *testing.B) (*pep.Engine, func(*testing.B, pep.Op) pep.Outcome) {
	return benchedWith(b, func(*pep.Options) {})
}

func benchedWith(b *testing.B, set func(*pep.Options)) (*pep.Engine, func(*testing.B, pep.Op) pep.Outcome) {
	s, err := store.Open(b.Context(), store.Options{Driver: "sqlite", Path: filepath.Join(b.TempDir(), "vault.db")})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := s.Close(); err != nil {
			b.Error(err)
		}
	})
	large := limits
	large.Records, large.RecordBytes, large.AccountBytes, large.Resources = 4096, 1<<16, 1<<30, 32
	o := pep.Options{Store: s, Limits: large, AnswerBytes: 250_000, InlineBytes: 250_000}
	set(&o)
	e := pep.New(o)
	return e, func(b *testing.B, op pep.Op) (out pep.Outcome) {
		req := pep.Request{Sender: device(laptop), Owner: alice, Op: op}
		if err := e.Do(b.Context(), req, func(o pep.Outcome) { out = o }); err != nil {
			b.Fatal(err)
		}
		return out
	}
}

// BenchmarkPublish saves one record, while resources are interested.
func BenchmarkPublish(b *testing.B) {
	for _, interested := range []int{0, 1, 16} {
		b.Run(fmt.Sprintf("interested=%d", interested), func(b *testing.B) {
			e, ask := benched(b)
			caps := pep.CapsHash{Hash: "sha-1:MQ==", Node: "n"}
			for i := range interested {
				s := device(fmt.Sprintf("alice@localhost/r%d", i))
				e.Arrive(pep.Presence{Sender: s, Owner: alice, Caps: []pep.CapsHash{caps}})
			}
			e.Learn(device("alice@localhost/r0"), caps, pep.Announced{Nodes: []string{"notes"}, Sync: true}, true)
			b.ReportAllocs()
			for b.Loop() {
				if n := len(ask(b, publish("a")).Notices); n != interested {
					b.Fatalf("%d are told", n)
				}
			}
		})
	}
}

// BenchmarkItemsPage reads a page of 32 records out of the middle of a vault,
// in the ways in which a page can be asked for.
func BenchmarkItemsPage(b *testing.B) {
	_, ask := benched(b)
	for _, records := range []int{256, 4096} {
		node := fmt.Sprint(records)
		op := pep.Publish{Node: node}
		for i := range records {
			op.Items = append(op.Items, pep.Item{
				ID: fmt.Sprint(i), Payload: vault.Payload{Form: vault.Native, Data: []byte(strings.Repeat("x", 900))},
			})
			if len(op.Items) == 256 {
				ask(b, op)
				op.Items = nil
			}
		}
		half := records / 2
		middle := ask(b, pep.Items{Node: node, Page: &pep.PageRequest{Max: 1, Index: &half}}).Answer.(pep.ItemsPage).Set.First
		for name, page := range map[string]pep.PageRequest{
			"after": {Max: 32, After: middle}, "before": {Max: 32, Before: middle},
			"last": {Max: 32, Last: true}, "index": {Max: 32, Index: &half}, "count": {},
		} {
			b.Run(fmt.Sprintf("%s/records=%d", name, records), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					got := ask(b, pep.Items{Node: node, Page: &page}).Answer.(pep.ItemsPage)
					if len(got.Records) != page.Max || got.Set.Count != records {
						b.Fatalf("%d records of %d", len(got.Records), got.Set.Count)
					}
				}
			})
		}
	}
}
