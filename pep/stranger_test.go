package pep_test

import (
	"context"
	"slices"
	"testing"

	"pepvault/pep"
	"pepvault/vault"
)

// watchful is a store that notes which vaults are looked at.
type watchful struct {
	vault.Store
	looked []string // nodes
}

func (s *watchful) View(ctx context.Context, fn func(vault.View) error) error {
	return s.Store.View(ctx, func(v vault.View) error { return fn(watchfulView{v, s}) })
}

func (s *watchful) Glance(ctx context.Context, fn func(vault.View) error) error {
	return s.Store.Glance(ctx, func(v vault.View) error { return fn(watchfulView{v, s}) })
}

type watchfulView struct {
	vault.View
	store *watchful
}

func (v watchfulView) note(key vault.Key) { v.store.looked = append(v.store.looked, key.Node) }

func (v watchfulView) Vault(key vault.Key) (vault.Vault, error) {
	v.note(key)
	return v.View.Vault(key)
}

func (v watchfulView) Affiliations(key vault.Key) ([]vault.Affiliated, error) {
	v.note(key)
	return v.View.Affiliations(key)
}

func (v watchfulView) Vaults(account vault.Account) ([]vault.Vault, error) {
	vaults, err := v.View.Vaults(account)
	for _, state := range vaults {
		v.note(state.Key)
	}
	return vaults, err
}

// Whoever lists somebody else's vaults has none looked at that are not shared
// with it: it could ask for those of many accounts.
func TestStrangersListCostsLittle(t *testing.T) {
	t.Parallel()
	s := &watchful{}
	bounds := limits
	bounds.Vaults = 9
	w := newWorld(t, func(o *pep.Options) { s.Store, o.Store, o.Limits = o.Store, s, bounds })
	for _, node := range []string{"a", "b", "c", "d"} {
		w.must(laptop, pep.Create{Node: node})
	}
	w.must(laptop, pep.SetAffiliations{Node: "b", Changes: []pep.AffiliationChange{{JID: "carol@localhost", Affiliation: "member"}}})
	w.must(laptop, pep.SetAffiliations{Node: "c", Changes: []pep.AffiliationChange{{JID: "carol@localhost", Affiliation: "outcast"}}})
	for _, test := range []struct {
		who           string
		sees, looksAt []string
	}{
		{mallory, nil, nil},
		{"carol@localhost/x", []string{"b"}, []string{"b", "c"}}, // it may look at what it is told nothing of
	} {
		for _, op := range []pep.Op{pep.ListVaults{}, pep.ListSubscriptions{}, pep.ListAffiliations{}} {
			s.looked = nil
			out, err := w.askOf(test.who, "alice@localhost", op)
			if err != nil {
				t.Fatal(err)
			}
			var sees []string
			switch list := out.Answer.(type) {
			case pep.VaultList:
				for _, state := range list.Vaults {
					sees = append(sees, state.Key.Node)
				}
			case pep.AffiliationList:
				for _, a := range list.List {
					sees = append(sees, a.Node)
				}
			default:
				sees = test.sees // it has no subscriptions
			}
			slices.Sort(s.looked)
			looked := slices.Compact(s.looked)
			if !slices.Equal(sees, test.sees) || !slices.Equal(looked, test.looksAt) {
				t.Errorf("%T by %s: sees %v, has looked at %v, want %v and %v", op, test.who, sees, looked, test.sees, test.looksAt)
			}
		}
	}
}
