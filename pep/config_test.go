package pep_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"pepvault/pep"
	"pepvault/vault"
)

func form(kind string, fields ...string) *pep.Form {
	f := &pep.Form{Type: kind}
	for i := 0; i < len(fields); i += 2 {
		f.Fields = append(f.Fields, pep.Field{Name: fields[i], Values: []string{fields[i+1]}})
	}
	return f
}

func configForm(fields ...string) pep.Form { return *form(pep.FormConfig, fields...) }

// roomy leaves the bounds of a vault, but not those of an account.
func roomy(o *pep.Options) { o.Limits.Vaults, o.Limits.AccountBytes = 1000, 1<<20 }

// settings reads the configuration as name → value.
func (w *world) settings(from, node string) map[string]string {
	w.t.Helper()
	values := map[string]string{}
	for _, f := range w.must(from, pep.ReadConfig{Node: node}).Answer.(pep.ConfigForm).Form.Fields {
		values[f.Name] = strings.Join(f.Values, "|")
	}
	return values
}

// says fails unless an error is a refusal whose text has a part.
func says(t *testing.T, err, want error, part string) {
	t.Helper()
	refused(t, err, want)
	var refusal *pep.Refusal
	if !errors.As(err, &refusal) || !strings.Contains(refusal.Text, part) {
		t.Errorf("the refusal is %v, want one that says %q", err, part)
	}
}

// XEP-0060 §8.2, §16.4.4: what is decided, in every spelling.
func TestConfigureField(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name  string
		value string
		want  vault.Config
	}{
		{"pubsub#title", "My notes", vault.Config{Title: "My notes"}},
		{"pubsub#title", "", vault.Config{}},
		{"pubsub#type", "urn:example:notes", vault.Config{Type: "urn:example:notes"}},
		{"pubsub#max_items", "3", vault.Config{MaxItems: 3}},
		{"pubsub#max_items", "4", vault.Config{}},
		{"pubsub#max_items", "max", vault.Config{}},
		{"pubsub#publish_node_full", "retract-oldest", vault.Config{EvictOldest: true}},
		{"pubsub#publish_full_node", "retract-oldest", vault.Config{EvictOldest: true}},
		{"pubsub#publish_node_full", "reject", vault.Config{}},
		{"pubsub#send_last_published_item", "never", vault.Config{}},
		{"pubsub#send_last_published_item", "on_sub", vault.Config{SendLast: vault.SendOnSubscription}},
		{"pubsub#send_last_published_item", "on_sub_and_presence", vault.Config{SendLast: vault.SendOnSubscriptionAndPresence}},
		{"pubsub#notify_retract", "0", vault.Config{MuteRetract: true}},
		{"pubsub#notify_retract", "false", vault.Config{MuteRetract: true}},
		{"pubsub#notify_retract", "1", vault.Config{}},
		{"pubsub#notify_retract", "true", vault.Config{}},
		{"pubsub#notify_delete", "false", vault.Config{MuteDelete: true}},
		{"pubsub#notify_config", "0", vault.Config{MuteConfig: true}},
		{"pubsub#deliver_payloads", "0", vault.Config{MutePayloads: true}},
		{"pubsub#deliver_notifications", "0", vault.Config{MuteAll: true}},
		{"x-pepvault-key-version-floor", "7", vault.Config{KeyVersionFloor: 7}},
		{"x-pepvault-key-version-floor", "2147483647", vault.Config{KeyVersionFloor: vault.MaxKeyVersion}},
		// What is so anyway.
		{"pubsub#persist_items", "true", vault.Config{}},
		{"pubsub#access_model", "whitelist", vault.Config{}},
		{"pubsub#publish_model", "publishers", vault.Config{}},
		{"pubsub#item_expire", "max", vault.Config{}},
		{"pubsub#item_expire", "", vault.Config{}},
		{"pubsub#max_payload_size", "100", vault.Config{}},
		{"pubsub#itemreply", "publisher", vault.Config{}},
		{"pubsub#node_type", "leaf", vault.Config{}},
		{"pubsub#notification_type", "headline", vault.Config{}},
		{"pubsub#subscribe", "1", vault.Config{}},
		{"pubsub#presence_based_delivery", "0", vault.Config{}},
		{"pubsub#notify_sub", "false", vault.Config{}},
		{"pubsub#purge_offline", "0", vault.Config{}},
		{"pubsub#tempsub", "0", vault.Config{}},
		{"pubsub#description", "", vault.Config{}},
		{"pubsub#collection", "", vault.Config{}},
		{"pubsub#roster_groups_allowed", "", vault.Config{}},
	}
	w := newWorld(t, roomy)
	for _, tt := range tests {
		t.Run(tt.name+"="+tt.value, func(t *testing.T) {
			t.Parallel()
			w.must(laptop, pep.Create{Node: t.Name()})
			w.must(laptop, pep.Configure{Node: t.Name(), Form: configForm(tt.name, tt.value)})
			equal(t, "configuration", w.vault(laptop, t.Name()).Config, tt.want)
		})
	}
}

func TestConfigureRefuses(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		form pep.Form
		want error
		text string
	}{
		{"unknown field", configForm("pubsub#colour", "red"), pep.ErrBadConfig, "pubsub#colour"},
		{"unknown field of ours", configForm("x-pepvault-colour", "red"), pep.ErrBadConfig, "x-pepvault-colour"},
		{"another FORM_TYPE", *form(pep.FormPublish, "pubsub#title", "x"), pep.ErrBadConfig, "FORM_TYPE"},
		{"twice", configForm("pubsub#title", "x", "pubsub#title", "x"), pep.ErrBadConfig, "pubsub#title"},
		{"two spellings that differ", configForm("pubsub#publish_node_full", "reject", "pubsub#publish_full_node", "retract-oldest"), pep.ErrBadConfig, "pubsub#publish_full_node"},
		{"two values", pep.Form{Type: pep.FormConfig, Fields: []pep.Field{{Name: "pubsub#title", Values: []string{"a", "b"}}}}, pep.ErrBadConfig, "pubsub#title"},
		{"two booleans", pep.Form{Type: pep.FormConfig, Fields: []pep.Field{{Name: "pubsub#notify_config", Values: []string{"1", "1"}}}}, pep.ErrBadConfig, "pubsub#notify_config"},
		{"no boolean", configForm("pubsub#notify_config", "yes"), pep.ErrBadConfig, "pubsub#notify_config"},
		{"title of two lines", configForm("pubsub#title", "a\nb"), pep.ErrBadConfig, "pubsub#title"},
		{"long title", configForm("pubsub#title", strings.Repeat("x", 513)), pep.ErrBadConfig, "pubsub#title"},
		{"max_items over the bound", configForm("pubsub#max_items", "5"), pep.ErrBadConfig, "from 1 to 4"},
		{"max_items far over the bound", configForm("pubsub#max_items", "99999999999999999999"), pep.ErrBadConfig, "from 1 to 4"},
		{"max_items of none", configForm("pubsub#max_items", "0"), pep.ErrBadConfig, "from 1 to 4"},
		{"max_items with a sign", configForm("pubsub#max_items", "+2"), pep.ErrBadConfig, "from 1 to 4"},
		{"max_items below the count", configForm("pubsub#max_items", "1"), pep.ErrBadConfig, "2 records"},
		{"discard-oldest", configForm("pubsub#publish_node_full", "discard-oldest"), pep.ErrBadConfig, "pubsub#publish_node_full"},
		{"send_last", configForm("pubsub#send_last_published_item", "always"), pep.ErrBadConfig, "on_sub"},
		{"floor too high", configForm("x-pepvault-key-version-floor", "2147483648"), pep.ErrBadConfig, "2147483647"},
		{"floor falls", configForm("x-pepvault-key-version-floor", "1"), pep.ErrBadConfig, "never falls"},
		{"access_model", configForm("pubsub#access_model", "open"), pep.ErrAccessModel, "whitelist"},
		{"persist_items", configForm("pubsub#persist_items", "0"), pep.ErrBadConfig, "pubsub#persist_items"},
		{"publish_model", configForm("pubsub#publish_model", "open"), pep.ErrBadConfig, "publishers"},
		{"item_expire", configForm("pubsub#item_expire", "604800"), pep.ErrBadConfig, "max"},
		{"max_payload_size", configForm("pubsub#max_payload_size", "1028"), pep.ErrBadConfig, "100"},
		{"itemreply", configForm("pubsub#itemreply", "owner"), pep.ErrBadConfig, "publisher"},
		{"node_type", configForm("pubsub#node_type", "collection"), pep.ErrBadConfig, "leaf"},
		{"notification_type", configForm("pubsub#notification_type", "normal"), pep.ErrBadConfig, "headline"},
		{"subscribe", configForm("pubsub#subscribe", "0"), pep.ErrBadConfig, "pubsub#subscribe"},
		{"purge_offline", configForm("pubsub#purge_offline", "1"), pep.ErrBadConfig, "pubsub#purge_offline"},
		{"description", configForm("pubsub#description", "x"), pep.ErrBadConfig, "empty"},
		{"one bad of two", configForm("pubsub#title", "new", "pubsub#tempsub", "1"), pep.ErrBadConfig, "pubsub#tempsub"},
	}
	w := newWorld(t, roomy)
	w.must(laptop, publish("a", "b"))
	w.must(laptop, pep.Configure{Node: "notes", Form: configForm("x-pepvault-key-version-floor", "2")})
	before := w.vault(laptop, "notes")
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			_, err := w.ask(laptop, pep.Configure{Node: "notes", Form: tt.form})
			says(t, err, tt.want, tt.text)
			equal(t, "the vault after a refusal", w.vault(laptop, "notes"), before)
			if tt.name == "max_items below the count" || tt.name == "floor falls" {
				return // about a vault that is there
			}
			_, err = w.ask(laptop, pep.Create{Node: "other", Config: &tt.form})
			refused(t, err, tt.want)
			_, err = w.ask(laptop, pep.ReadConfig{Node: "other"})
			refused(t, err, vault.ErrNoVault)
		})
	}
}

// Generic clients submit the whole form that they were given, and some leave
// out what is not theirs.
func TestWholeFormsAreAccepted(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	given := w.must(laptop, pep.DefaultConfig{}).Answer.(pep.ConfigForm)
	equal(t, "FORM_TYPE", given.Form.Type, pep.FormConfig)
	w.must(laptop, pep.Create{Node: "notes", Config: &given.Form})
	equal(t, "a vault made with the default form", w.vault(laptop, "notes").Config, vault.Config{})

	odd := vault.Config{
		Title: "Notes", Type: "urn:example:notes", MaxItems: 2, EvictOldest: true, SendLast: vault.SendOnSubscription,
		KeyVersionFloor: 5, MuteRetract: true, MuteDelete: true, MuteConfig: true, MutePayloads: true, MuteAll: true,
	}
	if err := w.store.Update(t.Context(), vault.Key{Account: alice, Node: "notes"}, func(tx vault.Tx) error {
		_, err := tx.Configure(vault.Key{Account: alice, Node: "notes"}, odd)
		return err
	}); err != nil {
		t.Fatal(err)
	}
	before := w.vault(laptop, "notes")
	form := w.must(laptop, pep.ReadConfig{Node: "notes"}).Answer.(pep.ConfigForm).Form
	w.must(laptop, pep.Configure{Node: "notes", Form: form})
	form.Type = "" // some clients drop it
	w.must(laptop, pep.Configure{Node: "notes", Form: form})
	equal(t, "the vault after its own form came back", w.vault(laptop, "notes"), before)

	w.must(laptop, pep.Create{Node: "copy", Config: &form})
	equal(t, "a vault made with that form", w.vault(laptop, "copy").Config, odd)
}

// A bound that the operator lowered does not make a vault's own form wrong.
func TestWholeFormAfterTheBoundFell(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.must(laptop, publish("a", "b", "c"))
	w.must(laptop, pep.Configure{Node: "notes", Form: configForm("pubsub#max_items", "3")})
	lower := limits
	lower.Records = 2
	before := w.vault(laptop, "notes")
	w.Engine = pep.New(pep.Options{Store: w.store, Limits: lower, AnswerBytes: 100_000, InlineBytes: 10_000})
	form := w.must(laptop, pep.ReadConfig{Node: "notes"}).Answer.(pep.ConfigForm).Form
	equal(t, "max_items", form.Field("pubsub#max_items").Values, []string{"max"})
	w.must(laptop, pep.Configure{Node: "notes", Form: form})
	equal(t, "the vault", w.vault(laptop, "notes"), before)
	_, err := w.ask(laptop, publish("d"))
	refused(t, err, pep.ErrNodeFull)
	w.must(laptop, publish("a"))
}

// The fields that are given out, each of a kind that a client can show.
func TestConfigFormGivenOut(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	form := w.must(laptop, pep.DefaultConfig{}).Answer.(pep.ConfigForm).Form
	values := map[string]string{}
	for _, f := range form.Fields {
		values[f.Name] = strings.Join(f.Values, "|")
		if f.Label == "" || f.Kind == "" {
			t.Errorf("field %s has kind %q and label %q", f.Name, f.Kind, f.Label)
		}
		offered := slices.ContainsFunc(f.Choices, func(c pep.Choice) bool { return c.Value == values[f.Name] })
		if isList := f.Kind == "list-single"; isList != offered {
			t.Errorf("field %s of kind %s is %q of %v", f.Name, f.Kind, values[f.Name], f.Choices)
		}
	}
	equal(t, "the default", values, map[string]string{
		"pubsub#title": "", "pubsub#type": "", "pubsub#max_items": "max", "pubsub#publish_node_full": "reject",
		"pubsub#send_last_published_item": "never", "pubsub#deliver_notifications": "1", "pubsub#deliver_payloads": "1",
		"pubsub#notify_retract": "1", "pubsub#notify_delete": "1", "pubsub#notify_config": "1",
		"x-pepvault-key-version-floor": "0",
		"pubsub#persist_items":         "1", "pubsub#access_model": "whitelist", "pubsub#publish_model": "publishers",
		"pubsub#item_expire": "max", "pubsub#max_payload_size": "100",
	})
}

// §8.2.4: what changes nothing is no change; what is left out stays; a closed
// form is none.
func TestConfigureTakesARevisionOnlyForAChange(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.must(laptop, publish("a"))
	w.must(laptop, pep.Subscribe{Node: "notes", JID: string(alice)})
	out := w.must(laptop, pep.Configure{Node: "notes", Form: configForm("pubsub#title", "Notes", "pubsub#notify_delete", "0")})
	equal(t, "told", len(out.Notices), 1)
	event := out.Notices[0].Event
	if event.Config == nil || event.Muted || event.State.Previous == "" || event.State.Cursor == event.State.Previous || len(event.State.Items) != 0 {
		t.Errorf("the event is %+v", event)
	} else {
		equal(t, "title in the event", event.Config.Field("pubsub#title").Values, []string{"Notes"})
		for _, f := range event.Config.Fields {
			if len(f.Choices) != 0 {
				t.Errorf("the event lets one choose %s", f.Name)
			}
		}
	}
	before := w.vault(laptop, "notes")
	equal(t, "revision", before.Revision, vault.Revision(3))
	for _, op := range []pep.Configure{
		{Form: configForm("pubsub#title", "Notes")},
		{Form: configForm()},
		{Form: configForm("pubsub#title", "Other"), Cancel: true},
		{Form: configForm("pubsub#max_items", "4", "pubsub#notify_delete", "false")},
	} {
		op.Node = "notes"
		if out := w.must(laptop, op); len(out.Notices) != 0 {
			t.Errorf("%+v is told of", op)
		}
		equal(t, "the vault", w.vault(laptop, "notes"), before)
	}
	out = w.must(laptop, pep.Configure{Node: "notes", Form: configForm("pubsub#deliver_payloads", "0")})
	if len(out.Notices) != 1 || !out.Notices[0].Event.Bare || out.Notices[0].Event.Muted {
		t.Errorf("without payloads, %+v is told", out.Notices)
	}
	for _, field := range []string{"pubsub#notify_config", "pubsub#deliver_notifications"} {
		out := w.must(laptop, pep.Configure{Node: "notes", Form: configForm(field, "0")})
		if len(out.Notices) != 1 || !out.Notices[0].Event.Muted || out.Notices[0].Event.State.Cursor == "" {
			t.Errorf("with %s off, %+v is told", field, out.Notices)
		}
	}
}
