package pep_test

import (
	"cmp"
	"testing"

	"pepvault/pep"
	"pepvault/vault"
)

// XEP-0060 §5.6: an account's subscriptions, those of its other devices too.
func TestListSubscriptions(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(o *pep.Options) { o.Limits.Subscriptions = 9 })
	for _, node := range []string{"b", "a"} {
		w.must(laptop, pep.Create{Node: node})
	}
	w.here(laptop, phone)
	list := func(from, node string) []pep.Subscribed {
		t.Helper()
		answer := w.must(from, pep.ListSubscriptions{Node: node}).Answer.(pep.SubscriptionList)
		equal(t, "node", answer.Node, node)
		return answer.List
	}
	equal(t, "none yet", len(list(laptop, "")), 0)
	w.must(laptop, pep.Subscribe{Node: "b", JID: laptop})
	w.must(phone, pep.Subscribe{Node: "b", JID: phone})
	w.must(phone, pep.Subscribe{Node: "b", JID: "Alice@localhost"})
	w.must(laptop, pep.Subscribe{Node: "a", JID: "alice@localhost"})
	b := []pep.Subscribed{{Node: "b", JID: "alice@localhost"}, {Node: "b", JID: laptop}, {Node: "b", JID: phone}}
	equal(t, "all", list(phone, ""), append([]pep.Subscribed{{Node: "a", JID: "alice@localhost"}}, b...))
	equal(t, "those of one", list(laptop, "b"), b)

	w.affiliate("a", "member")
	if _, err := w.askOf(mallory, alice, pep.Subscribe{Node: "a", JID: "mallory@localhost"}); err != nil {
		t.Fatal(err)
	}
	out, err := w.askOf(mallory, alice, pep.ListSubscriptions{})
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "a member's", out.Answer.(pep.SubscriptionList).List, []pep.Subscribed{{Node: "a", JID: "mallory@localhost"}})
	equal(t, "Alice's have not changed", len(list(laptop, "")), 4)
	equal(t, "Mallory's own vaults", len(list(mallory, "")), 0)
}

// XEP-0060 §6.3, §6.4: the options are what they are; the form that is given
// out comes back.
func TestSubscriptionOptions(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.must(laptop, publish("a"))
	w.here(laptop)
	values := func(op pep.ReadOptions) map[string]string {
		t.Helper()
		answer := w.must(laptop, op).Answer.(pep.OptionsForm)
		equal(t, "node, JID and FORM_TYPE", answer.Node+" "+answer.JID+" "+answer.Form.Type, op.Node+" "+op.JID+" "+pep.FormSubscribe)
		list := map[string]string{}
		for _, f := range answer.Form.Fields {
			list[f.Name] = f.Values[0]
		}
		return list
	}
	plain := map[string]string{"pubsub#deliver": "1", "pubsub#digest": "0", "pubsub#include_body": "0"}
	equal(t, "the default", values(pep.ReadOptions{}), plain)
	equal(t, "the default of a vault", values(pep.ReadOptions{Node: "notes"}), plain)
	_, err := w.ask(laptop, pep.ReadOptions{Node: "notes", JID: "alice@localhost"})
	refused(t, err, pep.ErrNotSubscribed)

	w.must(laptop, pep.Subscribe{Node: "notes", JID: laptop})
	_, err = w.ask(laptop, pep.ReadOptions{Node: "notes", JID: "alice@localhost"})
	refused(t, err, pep.ErrNotSubscribed)
	w.must(laptop, pep.Subscribe{Node: "notes", JID: "alice@localhost"})
	equal(t, "of the bare JID", values(pep.ReadOptions{Node: "notes", JID: "alice@localhost"}), plain)
	plain["pubsub#expire"] = "presence"
	equal(t, "of the full JID", values(pep.ReadOptions{Node: "notes", JID: laptop}), plain)
	for _, jid := range []string{laptop, "alice@localhost"} {
		given := w.must(laptop, pep.ReadOptions{Node: "notes", JID: jid}).Answer.(pep.OptionsForm).Form
		w.must(laptop, pep.SetOptions{Node: "notes", JID: jid, Form: given})
		w.must(laptop, pep.Subscribe{Node: "notes", JID: jid, Options: &given})
		w.must(laptop, pep.SetOptions{Node: "notes", JID: jid, Form: *form(pep.FormSubscribe, "pubsub#deliver", "0"), Cancel: true})
	}
}

func TestSubscriptionOptionsRefuse(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.must(laptop, publish("a"))
	w.here(laptop)
	w.must(laptop, pep.Subscribe{Node: "notes", JID: laptop})
	w.must(laptop, pep.Subscribe{Node: "notes", JID: "alice@localhost"})
	tests := []struct {
		name, jid string
		form      *pep.Form
		want      error
		subscribe error // nil = want
	}{
		{"not delivered", laptop, form(pep.FormSubscribe, "pubsub#deliver", "0"), pep.ErrInvalidOptions, nil},
		{"digests", laptop, form(pep.FormSubscribe, "pubsub#digest", "true"), pep.ErrInvalidOptions, nil},
		{"bodies", laptop, form(pep.FormSubscribe, "pubsub#include_body", "1"), pep.ErrInvalidOptions, nil},
		{"a lease", laptop, form(pep.FormSubscribe, "pubsub#expire", "2027-01-01T00:00:00Z"), pep.ErrInvalidOptions, nil},
		{"presence of a bare JID", "alice@localhost", form(pep.FormSubscribe, "pubsub#expire", "presence"), pep.ErrInvalidOptions, nil},
		{"unknown", laptop, form(pep.FormSubscribe, "pubsub#colour", "red"), pep.ErrInvalidOptions, nil},
		{"twice", laptop, form(pep.FormSubscribe, "pubsub#deliver", "1", "pubsub#deliver", "1"), pep.ErrInvalidOptions, nil},
		{"another FORM_TYPE", laptop, form(pep.FormConfig), pep.ErrInvalidOptions, nil},
		{"another resource", phone, form(pep.FormSubscribe), pep.ErrInvalidJID, nil},
		{"somebody else", "mallory@localhost", form(pep.FormSubscribe), pep.ErrForbidden, pep.ErrInvalidJID},
		{"no JID", "", form(pep.FormSubscribe), pep.ErrMalformedJID, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			_, err := w.ask(laptop, pep.SetOptions{Node: "notes", JID: tt.jid, Form: *tt.form})
			refused(t, err, tt.want)
			_, err = w.ask(laptop, pep.Subscribe{Node: "notes", JID: tt.jid, Options: tt.form})
			refused(t, err, cmp.Or(tt.subscribe, tt.want))
			if tt.want != pep.ErrInvalidOptions {
				_, err = w.ask(laptop, pep.Unsubscribe{Node: "notes", JID: tt.jid})
				refused(t, err, tt.want)
			}
		})
	}
	for _, op := range []pep.Op{
		pep.SetOptions{Node: "absent", JID: laptop}, pep.ReadOptions{Node: "absent", JID: laptop}, pep.ReadOptions{Node: "absent"},
	} {
		_, err := w.ask(laptop, op)
		refused(t, err, vault.ErrNoVault)
	}
}
