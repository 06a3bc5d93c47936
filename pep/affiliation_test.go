package pep_test

import (
	"errors"
	"fmt"
	"testing"

	"pepvault/pep"
	"pepvault/vault"
)

// affiliated lists who is what to Alice's notes.
func (w *world) affiliated() []string {
	w.t.Helper()
	list := []string{}
	answer := w.must(laptop, pep.ReadAffiliations{Node: "notes"}).Answer.(pep.VaultAffiliations)
	equal(w.t, "node", answer.Node, "notes")
	for _, a := range answer.List {
		list = append(list, fmt.Sprint(a.Account, "=", a.Affiliation))
	}
	return list
}

func changes(pairs ...string) pep.SetAffiliations {
	op := pep.SetAffiliations{Node: "notes"}
	for i := 0; i < len(pairs); i += 2 {
		op.Changes = append(op.Changes, pep.AffiliationChange{JID: pairs[i], Affiliation: pairs[i+1]})
	}
	return op
}

// XEP-0060 §8.9.
func TestSetAffiliations(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.must(laptop, publish("a"))
	before := w.vault(laptop, "notes")
	owner := fmt.Sprint("alice@localhost=", vault.Owner)
	equal(t, "at first", w.affiliated(), []string{owner})
	out := w.must(laptop, changes("Bob@LOCALHOST/x", "publisher", "mallory@localhost", "outcast", "alice@localhost", "owner"))
	equal(t, "told", len(out.Notices), 0)
	equal(t, "then", w.affiliated(), []string{
		owner, fmt.Sprint("bob@localhost=", vault.Publisher), fmt.Sprint("mallory@localhost=", vault.Outcast),
	})
	// §8.9.2: a change that names no affiliation changes nothing.
	w.must(laptop, changes("bob@localhost", "", "mallory@localhost", "none", "carol@localhost", "member", "dave@localhost", "none"))
	equal(t, "in the end", w.affiliated(), []string{
		owner, fmt.Sprint("bob@localhost=", vault.Publisher), fmt.Sprint("carol@localhost=", vault.Member),
	})
	equal(t, "the vault", w.vault(laptop, "notes"), before)
}

func TestSetAffiliationsRefuses(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.must(laptop, publish("a"))
	w.must(laptop, changes("bob@localhost", "publisher"))
	before := w.affiliated()
	none := func(accounts ...vault.Account) (list []vault.Affiliated) {
		for _, a := range accounts {
			list = append(list, vault.Affiliated{Account: a})
		}
		return list
	}
	tests := []struct {
		name    string
		op      pep.SetAffiliations
		want    error
		refused []vault.Affiliated
	}{
		{"the owner leaves", changes("alice@localhost", "none"), pep.ErrBadAffiliation, []vault.Affiliated{{Account: alice, Affiliation: vault.Owner}}},
		{"a second owner", changes("bob@localhost", "owner"), pep.ErrBadAffiliation, []vault.Affiliated{{Account: "bob@localhost", Affiliation: vault.Publisher}}},
		{"unknown", changes("carol@localhost", "publish-only"), pep.ErrBadAffiliation, none("carol@localhost")},
		{"not served", changes("carol@example.org", "member"), pep.ErrBadAffiliation, none("carol@example.org")},
		{"good and bad", changes("carol@localhost", "member", "alice@localhost", "member", "dave@example.org", "outcast"), pep.ErrBadAffiliation,
			[]vault.Affiliated{{Account: alice, Affiliation: vault.Owner}, {Account: "dave@example.org"}}},
		{"too many", changes("carol@localhost", "member", "dave@localhost", "member", "eve@localhost", "outcast"), pep.ErrBadAffiliation, none("eve@localhost")},
		{"unreadable", changes("localhost", "member"), pep.ErrMalformedJID, nil},
		{"twice", changes("carol@localhost", "member", "Carol@localhost", "publisher"), pep.ErrBadRequest, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			_, err := w.ask(laptop, tt.op)
			refused(t, err, tt.want)
			var refusal *pep.Refusal
			if errors.As(err, &refusal) && tt.refused != nil {
				equal(t, "node", refusal.Node, "notes")
				equal(t, "refused, as they are", refusal.Affiliations, tt.refused)
				if refusal.Text == "" {
					t.Error("the refusal says nothing")
				}
			}
			equal(t, "affiliations", w.affiliated(), before)
		})
	}
}

// Who makes room in the same request, has it.
func TestAffiliationsAtTheBound(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.must(laptop, publish("a"))
	w.must(laptop, changes("b@localhost", "member", "c@localhost", "member", "d@localhost", "member"))
	_, err := w.ask(laptop, changes("e@localhost", "member"))
	refused(t, err, pep.ErrBadAffiliation)
	w.must(laptop, changes("e@localhost", "member", "b@localhost", "none", "c@localhost", "publisher"))
	equal(t, "number of affiliations with the owner's", len(w.affiliated()), 4)
	// An account of a domain that is served no longer can still be removed.
	w.Engine = pep.New(pep.Options{Store: w.store, Limits: limits, Domains: []string{"other.localhost"}, AnswerBytes: 100_000, InlineBytes: 10_000})
	w.must(laptop, changes("c@localhost", "none"))
}

// PROTOCOL §2: who loses its right loses its subscriptions at once.
func TestRevocationEndsSubscriptions(t *testing.T) {
	t.Parallel()
	for _, lost := range []string{"none", "outcast"} {
		t.Run(lost, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, nil)
			w.must(laptop, publish("a"))
			w.affiliate("notes", "publisher")
			w.Arrive(pep.Presence{Sender: device(mallory), Owner: alice})
			for _, jid := range []string{mallory, "mallory@localhost"} {
				if _, err := w.askOf(mallory, alice, pep.Subscribe{Node: "notes", JID: jid}); err != nil {
					t.Fatal(err)
				}
			}
			equal(t, "told", len(w.must(laptop, publish("a")).Notices), 1)
			w.affiliate("notes", "member")
			equal(t, "told as a member", len(w.must(laptop, publish("a")).Notices), 1)
			w.affiliate("notes", lost)
			equal(t, "told after the loss", len(w.must(laptop, publish("a")).Notices), 0)
			w.affiliate("notes", "member")
			equal(t, "told as a member again", len(w.must(laptop, publish("a")).Notices), 0)
			out, err := w.askOf(mallory, alice, pep.ListSubscriptions{Node: "notes"})
			if err != nil {
				t.Fatal(err)
			}
			equal(t, "subscriptions", len(out.Answer.(pep.SubscriptionList).List), 0)
		})
	}
}
