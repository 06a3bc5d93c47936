package pep_test

import (
	"slices"
	"strings"
	"testing"

	"pepvault/pep"
	"pepvault/vault"
)

// works tells whether requests succeed.
func (w *world) works(from string, owner vault.Account, ops ...pep.Op) bool {
	for _, op := range ops {
		if _, err := w.askOf(from, owner, op); err != nil {
			return false
		}
	}
	return true
}

// offers tells whether the default configuration has this value.
func offers(field, value string) func(*world) bool {
	return func(w *world) bool {
		return w.settings(laptop, "notes")[field] == value
	}
}

// takes tells whether an existing vault can be configured so.
func takes(fields ...string) func(*world) bool {
	return func(w *world) bool {
		return w.works(laptop, alice, pep.Configure{Node: "notes", Form: configForm(fields...)})
	}
}

// grants tells whether an affiliation can be given, and whether with it one
// may do the first of these and not the others.
func grants(name string, may pep.Op, not ...pep.Op) func(*world) bool {
	return func(w *world) bool {
		if !w.works(laptop, alice, changes("mallory@localhost", name)) || may != nil && !w.works(mallory, alice, may) {
			return false
		}
		return !slices.ContainsFunc(not, func(op pep.Op) bool { return w.works(mallory, alice, op) })
	}
}

// does tells whether Alice's requests succeed.
func does(ops ...pep.Op) func(*world) bool {
	return func(w *world) bool { return w.works(laptop, alice, ops...) }
}

// hears tells whether a device of an account, there with the capabilities to
// hear of a node, is told of a publish to "notes".
func (w *world) hears(from, node string) bool {
	caps := pep.CapsHash{Hash: "sha-1:" + node, Node: "urn:example#" + node}
	w.Arrive(pep.Presence{Sender: device(from), Owner: alice, Caps: []pep.CapsHash{caps}})
	w.Learn(device(from), caps, pep.Announced{Nodes: []string{node}}, true)
	out := w.must(laptop, publish("x"))
	return slices.ContainsFunc(out.Notices, func(n pep.Notice) bool { return n.To == from })
}

var readNotes, writeNotes = pep.Items{Node: "notes"}, publish("b")

// proofs has for each feature of XEP-0060 §10 that a request can show what
// shows it, in a world with "notes", which hold a record "a".
var proofs = map[string]func(*world) bool{
	"access-authorize":       offers("pubsub#access_model", "authorize"),
	"access-open":            offers("pubsub#access_model", "open"),
	"access-presence":        offers("pubsub#access_model", "presence"),
	"access-roster":          offers("pubsub#access_model", "roster"),
	"access-whitelist":       offers("pubsub#access_model", "whitelist"),
	"auto-create":            does(pep.Publish{Node: "new", Items: []pep.Item{item("a", "x")}}),
	"auto-subscribe":         func(w *world) bool { return w.hears(phone, "notes") },
	"config-node":            does(pep.ReadConfig{Node: "notes"}, pep.Configure{Node: "notes", Form: configForm("pubsub#title", "x")}),
	"config-node-max":        takes("pubsub#max_items", "max", "pubsub#item_expire", "max"),
	"create-and-configure":   does(pep.Create{Node: "new", Config: form(pep.FormConfig, "pubsub#title", "x")}),
	"create-nodes":           does(pep.Create{Node: "new"}),
	"delete-items":           does(pep.Retract{Node: "notes", IDs: []string{"a"}}),
	"delete-nodes":           does(pep.Delete{Node: "notes"}),
	"filtered-notifications": func(w *world) bool { return w.hears(phone, "notes") && !w.hears(laptop, "other") },
	"instant-nodes":          does(pep.Create{}),
	"item-ids": func(w *world) bool {
		return slices.Equal(w.must(laptop, publish("mine")).Answer.(pep.Published).IDs, []string{"mine"})
	},
	"last-published": func(w *world) bool {
		w.must(laptop, pep.Configure{Node: "notes", Form: configForm("pubsub#send_last_published_item", "on_sub")})
		out := w.must(laptop, pep.Subscribe{Node: "notes", JID: "alice@localhost"})
		return len(out.Notices) == 1 && out.Notices[0].Event.Past
	},
	"leased-subscription": does(pep.Subscribe{Node: "notes", JID: "alice@localhost", Options: form(pep.FormSubscribe, "pubsub#expire", "2099-01-01T00:00:00Z")}),
	"member-affiliation":  grants("member", readNotes, writeNotes),
	"meta-data": func(w *world) bool {
		info := w.must(laptop, pep.DescribeVault{Node: "notes"}).Answer.(pep.VaultInfo)
		return slices.ContainsFunc(info.Forms, func(f pep.Form) bool { return f.Type == pep.FormMetaData })
	},
	"modify-affiliations": does(changes("mallory@localhost", "member"), changes("mallory@localhost", "none")),
	"multi-items": func(w *world) bool {
		return takes("pubsub#max_items", "3")(w) && w.works(laptop, alice, publish("b")) && len(w.contents(laptop, "notes")) == 2
	},
	"multi-subscribe": func(w *world) bool {
		for range 2 {
			w.must(laptop, pep.Subscribe{Node: "notes", JID: "alice@localhost"})
		}
		return len(w.must(laptop, pep.ListSubscriptions{}).Answer.(pep.SubscriptionList).List) > 1
	},
	"outcast-affiliation": grants("outcast", nil, readNotes, writeNotes),
	"persistent-items": func(w *world) bool {
		return takes("pubsub#persist_items", "1")(w) && len(w.contents(laptop, "notes")) == 1
	},
	"presence-notifications": takes("pubsub#presence_based_delivery", "1"),
	"presence-subscribe":     func(w *world) bool { return w.hears(mallory, "notes") },
	"publish":                does(writeNotes),
	"publish-node-full": func(w *world) bool {
		return takes("pubsub#max_items", "1", "pubsub#publish_node_full", "retract-oldest")(w) &&
			w.works(laptop, alice, publish("b")) && slices.Equal(w.contents(laptop, "notes"), []string{"b=data of b"})
	},
	"publish-only-affiliation": grants("publish-only", writeNotes, readNotes),
	"publish-options": func(w *world) bool {
		return w.works(laptop, alice, with(publish("b"), "pubsub#persist_items", "1")) &&
			!w.works(laptop, alice, with(publish("c"), "pubsub#title", "another"))
	},
	"publisher-affiliation":      grants("publisher", writeNotes, pep.Purge{Node: "notes"}),
	"purge-nodes":                func(w *world) bool { return does(pep.Purge{Node: "notes"})(w) && len(w.contents(laptop, "notes")) == 0 },
	"retract-items":              does(pep.Retract{Node: "notes", IDs: []string{"a"}}),
	"retrieve-affiliations":      does(pep.ListAffiliations{}, pep.ReadAffiliations{Node: "notes"}),
	"retrieve-default":           does(pep.DefaultConfig{}),
	"retrieve-default-sub":       does(pep.ReadOptions{}),
	"retrieve-items":             does(readNotes, pep.Items{Node: "notes", IDs: []string{"a"}}),
	"retrieve-subscriptions":     does(pep.ListSubscriptions{}, pep.ListSubscriptions{Node: "notes"}),
	"rsm":                        does(pep.Items{Node: "notes", Page: &pep.PageRequest{Max: 1, Last: true}}),
	"subscribe":                  does(pep.Subscribe{Node: "notes", JID: "alice@localhost"}, pep.Unsubscribe{Node: "notes", JID: "alice@localhost"}),
	"subscription-notifications": takes("pubsub#notify_sub", "1"),
	"subscription-options": does(
		pep.Subscribe{Node: "notes", JID: "alice@localhost", Options: form(pep.FormSubscribe, "pubsub#deliver", "1")},
		pep.ReadOptions{Node: "notes", JID: "alice@localhost"},
		pep.SetOptions{Node: "notes", JID: "alice@localhost", Form: *form(pep.FormSubscribe, "pubsub#deliver", "1")},
	),
}

// XEP-0060 §5.1: exactly the features that work. There are two more in §10,
// get-pending and manage-subscriptions, for which there is no request.
func TestFeaturesAreWhatWorks(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	var working []string
	for name, proof := range proofs {
		w.erase(alice)
		w.erase("mallory@localhost")
		w.must(laptop, publish("a"))
		if proof(w) {
			working = append(working, name)
		}
	}
	slices.Sort(working)
	info := w.must(laptop, pep.DescribeService{}).Answer.(pep.ServiceInfo)
	equal(t, "features", info.Features, working)
	stranger, err := w.askOf(mallory, alice, pep.DescribeService{})
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "what a stranger is told", stranger.Answer.(pep.ServiceInfo), info)
}

// formValues reads a form as name → values.
func formValues(f pep.Form) map[string]string {
	values := map[string]string{}
	for _, field := range f.Fields {
		values[field.Name] = strings.Join(field.Values, "|")
	}
	return values
}

// PROTOCOL §3: the bounds that a device has to know.
func TestLimitsForm(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	info := w.must(laptop, pep.DescribeService{}).Answer.(pep.ServiceInfo)
	if len(info.Forms) != 1 || info.Forms[0].Type != pep.FormLimits {
		t.Fatalf("the forms are %v", info.Forms)
	}
	equal(t, "limits", formValues(info.Forms[0]), map[string]string{
		"max-records": "4", "max-record-bytes": "100", "max-vaults": "2", "max-account-bytes": "250",
		"max-request-bytes": "200000", "max-stanza-bytes": "100500", "max-chunk-bytes": "32000",
		"max-batch-records": "8", "max-resources": "3", "max-subscriptions": "2", "tombstones": "4",
	})
}

// XEP-0060 §5.4 and PROTOCOL §3: what a vault tells about itself; C46 for a
// vault that a publish made.
func TestDescribeVault(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	op := publish("a", "b")
	op.Items[1].KeyVersion = 7
	op.State = true
	cursor := w.must(laptop, op).Answer.(pep.Published).State.Cursor
	w.here(laptop)
	w.must(laptop, pep.Subscribe{Node: "notes", JID: laptop})
	w.must(laptop, pep.Subscribe{Node: "notes", JID: "alice@localhost"})
	info := w.must(laptop, pep.DescribeVault{Node: "notes"}).Answer.(pep.VaultInfo)
	equal(t, "node and title", info.Node+"/"+info.Title, "notes/")
	if len(info.Forms) != 2 || info.Forms[0].Type != pep.FormMetaData || info.Forms[1].Type != pep.FormUsage {
		t.Fatalf("the forms are %v", info.Forms)
	}
	made := w.vault(laptop, "notes").Created.Format("2006-01-02T15:04:05Z")
	equal(t, "metadata", formValues(info.Forms[0]), map[string]string{
		"pubsub#owner": "alice@localhost", "pubsub#creation_date": made, "pubsub#num_subscribers": "2",
		"pubsub#max_items": "max", "pubsub#access_model": "whitelist", "pubsub#publish_model": "publishers",
	})
	equal(t, "usage", formValues(info.Forms[1]), map[string]string{
		"records": "2", "bytes": "18", "cursor": cursor, "lowest-key-version": "3", "highest-key-version": "7", "key-version-floor": "0",
	})

	w.must(laptop, pep.Configure{Node: "notes", Form: configForm(
		"pubsub#title", "Notes", "pubsub#type", "urn:example:notes", "pubsub#max_items", "3", "x-pepvault-key-version-floor", "2")})
	w.must(laptop, pep.Purge{Node: "notes"})
	info = w.must(laptop, pep.DescribeVault{Node: "notes"}).Answer.(pep.VaultInfo)
	equal(t, "title", info.Title, "Notes")
	meta, usage := formValues(info.Forms[0]), formValues(info.Forms[1])
	equal(t, "metadata", []string{meta["pubsub#title"], meta["pubsub#type"], meta["pubsub#max_items"]}, []string{"Notes", "urn:example:notes", "3"})
	equal(t, "usage", []string{usage["records"], usage["bytes"], usage["lowest-key-version"], usage["key-version-floor"]}, []string{"0", "0", "0", "2"})
}
