package pep_test

import (
	"testing"

	"pepvault/pep"
	"pepvault/vault"
)

func with(op pep.Publish, fields ...string) pep.Publish {
	op.Options = form(pep.FormPublish, fields...)
	return op
}

// C01: options of a vault that is gone bind nobody, and an error leaves
// nothing behind.
func TestC01OptionsAfterDelete(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(o *pep.Options) { o.Limits.Records = 10 })
	w.must(laptop, with(publish("a"), "pubsub#max_items", "5"))
	w.must(laptop, pep.Delete{Node: "notes"})
	w.must(laptop, with(publish("a"), "pubsub#max_items", "7"))
	equal(t, "max_items", w.settings(laptop, "notes")["pubsub#max_items"], "7")
}

// C02: options that do not fit are told as such, and fit once the vault is
// configured.
func TestC02OptionsThatDoNotFit(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(o *pep.Options) { o.Limits.Records = 20 })
	w.must(laptop, with(publish("a"), "pubsub#max_items", "10"))
	before := w.vault(laptop, "notes")
	_, err := w.ask(phone, with(publish("b"), "pubsub#max_items", "20"))
	says(t, err, pep.ErrPrecondition, "pubsub#max_items")
	equal(t, "the vault", w.vault(laptop, "notes"), before)
	w.must(laptop, pep.Configure{Node: "notes", Form: configForm("pubsub#max_items", "20")})
	w.must(phone, with(publish("b"), "pubsub#max_items", "20"))
	w.must(phone, with(publish("c"), "pubsub#max_items", "max"))
	equal(t, "records", w.vault(laptop, "notes").Records, 3)
}

// C04: max means the service's bound, and a number over it stores nothing.
func TestC04MaxItems(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	_, err := w.ask(laptop, with(publish("a"), "pubsub#max_items", "1000"))
	says(t, err, pep.ErrPrecondition, "4")
	_, err = w.ask(laptop, pep.Items{Node: "notes"})
	refused(t, err, vault.ErrNoVault)
	w.must(laptop, with(publish("a"), "pubsub#max_items", "max"))
	w.must(laptop, publish("b"))
	w.must(laptop, publish("c"))
	w.Engine = pep.New(pep.Options{Store: w.store, Limits: limits, AnswerBytes: 100_000, InlineBytes: 10_000})
	equal(t, "contents after a restart", w.contents(laptop, "notes"), []string{"a=data of a", "b=data of b", "c=data of c"})
}

// XEP-0060 §7.1.5: every field is a precondition, by what it means.
func TestPreconditions(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.must(laptop, pep.Create{Node: "notes", Config: form(pep.FormConfig,
		"pubsub#title", "Notes", "pubsub#notify_delete", "0", "pubsub#publish_node_full", "retract-oldest",
		"x-pepvault-key-version-floor", "2")})
	met := [][]string{
		{},
		{"pubsub#title", "Notes"},
		{"pubsub#notify_delete", "false"},
		{"pubsub#notify_retract", "true"},
		{"pubsub#max_items", "4"},
		{"pubsub#max_items", "max", "pubsub#item_expire", ""},
		{"pubsub#publish_full_node", "retract-oldest"},
		{"pubsub#persist_items", "1", "pubsub#access_model", "whitelist", "pubsub#description", ""},
		{"x-pepvault-key-version-floor", "2"},
	}
	for _, fields := range met {
		if _, err := w.ask(laptop, with(publish("a"), fields...)); err != nil {
			t.Errorf("%q: %v", fields, err)
		}
	}
	before := w.vault(laptop, "notes")
	unmet := []struct {
		name, value, text string
	}{
		{"pubsub#title", "Other", "Notes"},
		{"pubsub#title", "", "Notes"},
		{"pubsub#notify_delete", "1", "pubsub#notify_delete"},
		{"pubsub#max_items", "3", "max"},
		{"pubsub#max_items", "5", "from 1 to 4"},
		{"pubsub#publish_node_full", "discard-oldest", "pubsub#publish_node_full"},
		{"pubsub#access_model", "presence", "whitelist"},
		{"pubsub#persist_items", "false", "pubsub#persist_items"},
		{"x-pepvault-key-version-floor", "1", "x-pepvault-key-version-floor"},
		{"pubsub#colour", "red", "pubsub#colour"},
	}
	for _, tt := range unmet {
		_, err := w.ask(laptop, with(publish("b"), tt.name, tt.value))
		says(t, err, pep.ErrPrecondition, tt.text)
	}
	_, err := w.ask(laptop, pep.Publish{Node: "notes", Items: []pep.Item{item("b", "x")}, Options: form(pep.FormConfig, "pubsub#title", "Notes")})
	refused(t, err, pep.ErrBadRequest)
	equal(t, "the vault", w.vault(laptop, "notes"), before)
}

// An error leaves neither a vault nor a record behind.
func TestPublishThatFailsMakesNoVault(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	tests := []struct {
		name string
		op   pep.Publish
		want error
	}{
		{"unknown option", with(publish("a"), "pubsub#colour", "red"), pep.ErrPrecondition},
		{"option that can't be", with(publish("a"), "pubsub#access_model", "open"), pep.ErrPrecondition},
		{"another FORM_TYPE", pep.Publish{Node: "notes", Items: []pep.Item{item("a", "x")}, Options: form("")}, pep.ErrBadRequest},
		{"too many for the options", with(publish("a", "b"), "pubsub#max_items", "1"), pep.ErrMaxItemsExceeded},
		{"old key for the options", with(publish("a"), "x-pepvault-key-version-floor", "9"), pep.ErrKeyVersionTooLow},
		{"another type than the options", with(publish("a"), "pubsub#type", "urn:example:other"), pep.ErrInvalidPayload},
		{"name", pep.Publish{Node: "a\x00b", Items: []pep.Item{item("a", "x")}}, pep.ErrBadName},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			_, err := w.ask(laptop, tt.op)
			refused(t, err, tt.want)
			list := w.must(laptop, pep.ListVaults{}).Answer.(pep.VaultList)
			equal(t, "vaults", len(list.Vaults), 0)
		})
	}
}

// XEP-0223 §6 and XEP-0490: the options with which private data is stored.
func TestOptionsOfPrivateStorage(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	private := []string{"pubsub#persist_items", "true", "pubsub#access_model", "whitelist"}
	synced := append([]string{"pubsub#max_items", "max", "pubsub#send_last_published_item", "never"}, private...)
	for range 2 { // the vault is absent first, then there
		w.must(laptop, with(pep.Publish{Node: "private", Items: []pep.Item{item("current", "x")}}, private...))
		w.must(laptop, with(pep.Publish{Node: "urn:xmpp:mds:displayed:0", Items: []pep.Item{item("bob@localhost", "x")}}, synced...))
	}
	equal(t, "configuration", w.vault(laptop, "urn:xmpp:mds:displayed:0").Config, vault.Config{})
}
