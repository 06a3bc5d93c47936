package pep_test

import (
	"errors"
	"fmt"
	"testing"

	"pepvault/pep"
	"pepvault/vault"
)

const (
	alice = vault.Account("alice@localhost")
	bob   = "bob@localhost/x"
)

// affiliate makes mallory what the name says to Alice's vault.
func (w *world) affiliate(node, name string) {
	w.t.Helper()
	w.must(laptop, pep.SetAffiliations{Node: node, Changes: []pep.AffiliationChange{{JID: "mallory@localhost", Affiliation: name}}})
}

// PROTOCOL §2: what each affiliation may do, and that rights come before
// existence: where the vault is absent, everybody but its owner gets what a
// stranger gets.
func TestRights(t *testing.T) {
	t.Parallel()
	const own = "mallory@localhost"
	config := pep.Form{Type: pep.FormConfig, Fields: []pep.Field{{Name: "pubsub#title", Values: []string{"new"}}}}
	ops := []struct {
		name     string
		op       func(node string) pep.Op
		stranger error // and an outcast
		member   error
		publish  error // a publisher
		absent   error // the owner, where the vault is absent
	}{
		{"items", func(n string) pep.Op { return pep.Items{Node: n} }, pep.ErrClosedNode, nil, nil, vault.ErrNoVault},
		{"items by id", func(n string) pep.Op { return pep.Items{Node: n, IDs: []string{"a"}} }, pep.ErrClosedNode, nil, nil, vault.ErrNoVault},
		{"count", func(n string) pep.Op { return pep.Items{Node: n, Page: &pep.PageRequest{}} }, pep.ErrClosedNode, nil, nil, vault.ErrNoVault},
		{"describe", func(n string) pep.Op { return pep.DescribeVault{Node: n} }, pep.ErrClosedNode, nil, nil, vault.ErrNoVault},
		{"subscribe", func(n string) pep.Op { return pep.Subscribe{Node: n, JID: own} }, pep.ErrClosedNode, nil, nil, nil},
		{"unsubscribe", func(n string) pep.Op { return pep.Unsubscribe{Node: n, JID: own} }, pep.ErrClosedNode, pep.ErrNotSubscribed, pep.ErrNotSubscribed, nil},
		{"options", func(n string) pep.Op { return pep.ReadOptions{Node: n, JID: own} }, pep.ErrClosedNode, pep.ErrNotSubscribed, pep.ErrNotSubscribed, nil},
		{"default options", func(n string) pep.Op { return pep.ReadOptions{Node: n} }, pep.ErrClosedNode, nil, nil, vault.ErrNoVault},
		{"set options", func(n string) pep.Op { return pep.SetOptions{Node: n, JID: own} }, pep.ErrClosedNode, pep.ErrNotSubscribed, pep.ErrNotSubscribed, nil},
		{"publish", func(n string) pep.Op { return pep.Publish{Node: n, Items: []pep.Item{item("a", "x")}} }, pep.ErrForbidden, pep.ErrForbidden, nil, nil},
		{"publish too much", func(n string) pep.Op { return pep.Publish{Node: n, Items: make([]pep.Item, 100)} }, pep.ErrForbidden, pep.ErrForbidden, pep.ErrMaxItemsExceeded, pep.ErrMaxItemsExceeded},
		{"retract", func(n string) pep.Op { return pep.Retract{Node: n, IDs: []string{"a"}} }, pep.ErrForbidden, pep.ErrForbidden, nil, vault.ErrNoVault},
		{"create", func(n string) pep.Op { return pep.Create{Node: n} }, pep.ErrForbidden, pep.ErrForbidden, pep.ErrForbidden, nil},
		{"instant node", func(string) pep.Op { return pep.Create{} }, pep.ErrForbidden, pep.ErrForbidden, pep.ErrForbidden, nil},
		{"read configuration", func(n string) pep.Op { return pep.ReadConfig{Node: n} }, pep.ErrForbidden, pep.ErrForbidden, pep.ErrForbidden, vault.ErrNoVault},
		{"configure", func(n string) pep.Op { return pep.Configure{Node: n, Form: config} }, pep.ErrForbidden, pep.ErrForbidden, pep.ErrForbidden, vault.ErrNoVault},
		{"purge", func(n string) pep.Op { return pep.Purge{Node: n} }, pep.ErrForbidden, pep.ErrForbidden, pep.ErrForbidden, vault.ErrNoVault},
		{"delete", func(n string) pep.Op { return pep.Delete{Node: n} }, pep.ErrForbidden, pep.ErrForbidden, pep.ErrForbidden, vault.ErrNoVault},
		{"read affiliations", func(n string) pep.Op { return pep.ReadAffiliations{Node: n} }, pep.ErrForbidden, pep.ErrForbidden, pep.ErrForbidden, vault.ErrNoVault},
		{"set affiliations", func(n string) pep.Op {
			return pep.SetAffiliations{Node: n, Changes: []pep.AffiliationChange{{JID: own, Affiliation: "publisher"}}}
		}, pep.ErrForbidden, pep.ErrForbidden, pep.ErrForbidden, vault.ErrNoVault},
	}
	w := newWorld(t, roomy)
	for _, tt := range ops {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			node := t.Name()
			wants := map[string]error{"none": tt.stranger, "outcast": tt.stranger, "member": tt.member, "publisher": tt.publish}
			for name, want := range wants {
				w.must(laptop, pep.Publish{Node: node, Items: []pep.Item{item("a", "x")}})
				w.affiliate(node, name)
				if _, err := w.askOf(mallory, alice, tt.op(node)); !errors.Is(err, want) {
					t.Errorf("a %s: %v, want %v", name, err, want)
				}
				if _, err := w.askOf(mallory, alice, tt.op("absent")); !errors.Is(err, tt.stranger) {
					t.Errorf("a %s of another vault, where there is none: %v, want %v", name, err, tt.stranger)
				}
			}
			if _, err := w.askOf(mallory, "nobody@localhost", tt.op(node)); !errors.Is(err, tt.stranger) {
				t.Errorf("at an account that there is not: %v, want %v", err, tt.stranger)
			}
			if tt.absent != nil {
				_, err := w.ask(laptop, tt.op("absent"))
				refused(t, err, tt.absent)
			}
		})
	}
}

// What everybody may ask tells a stranger and an outcast nothing.
func TestListsTellOnlyWhatOneMaySee(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(o *pep.Options) { o.Limits.Vaults = 9 })
	for _, node := range []string{"closed", "member", "outcast", "publisher"} {
		w.must(laptop, pep.Create{Node: node})
		if node != "closed" {
			w.affiliate(node, node)
		}
	}
	w.must(mallory, pep.Create{Node: "mine"})
	seen := func(from string, owner vault.Account, op pep.Op) []string {
		t.Helper()
		out, err := w.askOf(from, owner, op)
		if err != nil {
			t.Fatalf("%T: %v", op, err)
		}
		names := []string{}
		switch a := out.Answer.(type) {
		case pep.VaultList:
			for _, v := range a.Vaults {
				names = append(names, v.Key.Node)
			}
		case pep.AffiliationList:
			for _, n := range a.List {
				names = append(names, fmt.Sprint(n.Node, "=", n.Affiliation))
			}
		case pep.SubscriptionList:
			for _, s := range a.List {
				names = append(names, s.Node+" by "+s.JID)
			}
		}
		return names
	}
	may := []string{fmt.Sprint("member=", vault.Member), fmt.Sprint("publisher=", vault.Publisher)}
	equal(t, "Mallory's list of Alice's vaults", seen(mallory, alice, pep.ListVaults{}), []string{"member", "publisher"})
	equal(t, "Mallory's affiliations", seen(mallory, alice, pep.ListAffiliations{}), may)
	equal(t, "Mallory's affiliation to one", seen(mallory, alice, pep.ListAffiliations{Node: "member"}), may[:1])
	equal(t, "Mallory's own", seen(mallory, "mallory@localhost", pep.ListAffiliations{}), []string{fmt.Sprint("mine=", vault.Owner)})
	for _, node := range []string{"closed", "outcast", "absent"} {
		equal(t, "affiliation to "+node, seen(mallory, alice, pep.ListAffiliations{Node: node}), []string{})
		equal(t, "subscriptions to "+node, seen(mallory, alice, pep.ListSubscriptions{Node: node}), []string{})
	}
	for _, owner := range []vault.Account{alice, "nobody@localhost"} {
		equal(t, "Bob's list at "+string(owner), seen(bob, owner, pep.ListVaults{}), []string{})
		equal(t, "Bob's affiliations at "+string(owner), seen(bob, owner, pep.ListAffiliations{}), []string{})
		equal(t, "Bob's subscriptions at "+string(owner), seen(bob, owner, pep.ListSubscriptions{}), []string{})
	}
	for _, op := range []pep.Op{pep.ListAffiliations{Node: "absent"}, pep.ListSubscriptions{Node: "absent"}} {
		_, err := w.ask(laptop, op)
		refused(t, err, vault.ErrNoVault)
	}
}

// A right that ended while a large answer waited for its turn is gone.
func TestRightsAreCheckedAgainLater(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(o *pep.Options) { many(o); o.InlineBytes = 2_000 })
	w.fill(3, 900)
	w.affiliate("notes", "member")
	out, err := w.askOf(mallory, alice, pep.Items{Node: "notes"})
	later, ok := out.Answer.(pep.Later)
	if err != nil || !ok {
		t.Fatalf("a large answer is %T, %v", out.Answer, err)
	}
	if _, err := later.Read(); err != nil {
		t.Errorf("a member can't read: %v", err)
	}
	w.affiliate("notes", "none")
	_, err = later.Read()
	refused(t, err, pep.ErrClosedNode)
	w.must(laptop, pep.Delete{Node: "notes"})
	_, err = later.Read()
	refused(t, err, pep.ErrClosedNode)
}

// A publisher writes under its own name, and makes no vaults.
func TestPublisherOfAnothersVault(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.must(laptop, publish("a"))
	w.affiliate("notes", "publisher")
	if _, err := w.askOf(mallory, alice, publish("b")); err != nil {
		t.Fatal(err)
	}
	page := w.must(phone, pep.Items{Node: "notes", IDs: []string{"a", "b"}}).Answer.(pep.ItemsPage)
	publishers := []vault.Account{page.Records[0].Publisher, page.Records[1].Publisher}
	equal(t, "publishers", publishers, []vault.Account{alice, "mallory@localhost"})

	w.must(laptop, pep.Delete{Node: "notes"})
	_, err := w.askOf(mallory, alice, publish("b"))
	refused(t, err, pep.ErrForbidden)
	w.must(laptop, publish("a"))
	_, err = w.askOf(mallory, alice, publish("b"))
	refused(t, err, pep.ErrForbidden) // the affiliation went with the vault
}
