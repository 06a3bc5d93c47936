package wire

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"pepvault/pep"
	"pepvault/vault"
)

func number(n int) *int { return &n }

// configForm is a form as a device submits it.
func configForm() pep.Form {
	return pep.Form{Type: pep.FormConfig, Fields: []pep.Field{
		{Name: "pubsub#title", Values: []string{"My <notes>"}},
		{Name: "pubsub#max_items", Values: []string{"100"}},
		{Name: "pubsub#contact", Values: []string{"a", "", "b&c"}},
		{Name: "pubsub#type"},
	}}
}

// Every request as we write it, and what the service makes of that.
func TestRequestsAsWritten(t *testing.T) {
	t.Parallel()
	form := configForm()
	options := pep.Form{Type: pep.FormSubscribe, Fields: []pep.Field{{Name: "pubsub#deliver", Values: []string{"1"}}}}
	preconditions := pep.Form{Type: pep.FormPublish, Fields: []pep.Field{
		{Name: "pubsub#persist_items", Values: []string{"true"}}, {Name: "pubsub#access_model", Values: []string{"whitelist"}}}}
	item := pep.Item{ID: "a", KeyVersion: 3, Namespace: nsRecord, Payload: vault.Payload{Form: vault.Native, Data: []byte("hello")}}
	for what, call := range map[string]Call{
		"publish":         pep.Publish{Node: "notes", Items: []pep.Item{item}, State: true},
		"publish options": pep.Publish{Node: "notes", Items: []pep.Item{item}, Options: &preconditions, State: true},
		"retract":         pep.Retract{Node: "notes", IDs: []string{"a", "b"}, State: true},
		"retract notify":  pep.Retract{Node: "notes", IDs: []string{"a"}, Notify: true},
		"items":           pep.Items{Node: "notes"},
		"items ids":       pep.Items{Node: "notes", IDs: []string{"a", "b"}},
		"items after":     pep.Items{Node: "notes", Page: &pep.PageRequest{Max: 10, After: "u1"}},
		"items before":    pep.Items{Node: "notes", Page: &pep.PageRequest{Max: 10, Before: "u1"}},
		"items last":      pep.Items{Node: "notes", Page: &pep.PageRequest{Max: 10, Last: true}},
		"items index":     pep.Items{Node: "notes", Page: &pep.PageRequest{Max: 10, Index: number(20)}},
		"items count":     pep.Items{Node: "notes", Page: &pep.PageRequest{}},
		"items latest":    pep.Items{Node: "notes", Max: 50, Page: &pep.PageRequest{Max: 10, Index: number(0)}},

		"create":           pep.Create{Node: "notes"},
		"create instant":   pep.Create{},
		"create configure": pep.Create{Node: "notes", Config: &form},
		"configure read":   pep.ReadConfig{Node: "notes"},
		"configure":        pep.Configure{Node: "notes", Form: form},
		"configure cancel": pep.Configure{Node: "notes", Cancel: true},
		"default":          pep.DefaultConfig{},
		"purge":            pep.Purge{Node: "notes"},
		"delete":           pep.Delete{Node: "notes"},

		"subscribe":          pep.Subscribe{Node: "notes", JID: "alice@localhost"},
		"subscribe options":  pep.Subscribe{Node: "notes", JID: "alice@localhost", Options: &options},
		"unsubscribe":        pep.Unsubscribe{Node: "notes", JID: "alice@localhost/phone"},
		"subscriptions":      pep.ListSubscriptions{},
		"subscriptions node": pep.ListSubscriptions{Node: "notes"},
		"options read":       pep.ReadOptions{Node: "notes", JID: "alice@localhost"},
		"options":            pep.SetOptions{Node: "notes", JID: "alice@localhost", Form: options},
		"options cancel":     pep.SetOptions{Node: "notes", JID: "alice@localhost", Cancel: true},
		"options default":    pep.ReadOptions{Node: "notes"},

		"affiliations":       pep.ListAffiliations{},
		"affiliations node":  pep.ListAffiliations{Node: "notes"},
		"affiliations vault": pep.ReadAffiliations{Node: "notes"},
		"affiliations set": pep.SetAffiliations{Node: "notes", Changes: []pep.AffiliationChange{
			{JID: "bob@localhost", Affiliation: "publisher"}, {JID: "Carol@localhost/x", Affiliation: "none"}}},

		"disco service":       pep.DescribeService{},
		"disco vault":         pep.DescribeVault{Node: "notes"},
		"disco vaults":        pep.ListVaults{},
		"disco vaults page":   pep.ListVaults{Page: &pep.PageRequest{Max: 5, After: "u1"}},
		"disco names":         ItemNames{pep.Items{Node: "notes", Page: &pep.PageRequest{Max: -1}}},
		"disco commands":      DescribeCommands{},
		"disco command":       DescribeCommand{Node: CommandPrefix + "usage"},
		"disco commands list": ListCommands{Node: CommandsNode},
		"disco command list":  ListCommands{Node: CommandPrefix + "usage"},
		"command":             Command{Node: CommandPrefix + "usage", Action: "execute"},
		"command complete": Command{Node: CommandPrefix + "usage", Session: "s1", Action: "complete",
			Form: &pep.Form{Fields: []pep.Field{{Name: "account", Values: []string{"bob@localhost"}}}}},
		"command cancel": Command{Node: CommandPrefix + "usage", Session: "s1", Action: "cancel"},
		"ping":           Ping{},
		"erase":          pep.Erase{},
		"version":        Version{},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			raw := AppendRequest(nil, request, call)
			golden(t, "request "+what, raw)
			kind, payload := Ask(call)
			if !strings.HasPrefix(string(raw), "<iq type='"+kind+"'") || !strings.Contains(string(raw), ">"+string(payload)+"</iq>") {
				t.Errorf("asked apart: %s %s", kind, payload)
			}
			got, err := DecodeRequest(raw, testLimits)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(call, got); diff != "" {
				t.Errorf("read again (-want +got)\n%s", diff)
			}
		})
	}
}
