package pep

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	"pepvault/vault"
)

// pubsubFeatures are those of XEP-0060 §10 that the engine makes true, sorted.
var pubsubFeatures = []string{
	"access-whitelist",
	"auto-create",
	"auto-subscribe",
	"config-node",
	"config-node-max",
	"create-and-configure",
	"create-nodes",
	"delete-items",
	"delete-nodes",
	"filtered-notifications",
	"instant-nodes",
	"item-ids",
	"last-published",
	"member-affiliation",
	"meta-data",
	"modify-affiliations",
	"multi-items",
	"outcast-affiliation",
	"persistent-items",
	"publish",
	"publish-node-full",
	"publish-options",
	"publisher-affiliation",
	"purge-nodes",
	"retract-items",
	"retrieve-affiliations",
	"retrieve-default",
	"retrieve-default-sub",
	"retrieve-items",
	"retrieve-subscriptions",
	"rsm",
	"subscribe",
	"subscription-options",
}

// ourFeatures are those of the protocol that goes beyond XEP-0060, sorted.
var ourFeatures = []string{"urn:pepvault:batch:0", "urn:pepvault:sync:0"}

func (e *Engine) describeService() ServiceInfo {
	return ServiceInfo{
		Features: slices.Clone(pubsubFeatures),
		Others:   slices.Clone(ourFeatures),
		Forms:    []Form{{Type: FormLimits, Fields: slices.Clone(e.told)}},
	}
}

// maxRequestBytes is what a device may send at once: hosts cut clients at 256
// KiB, and a stanza grows on its way.
const maxRequestBytes = 200_000

// limitFields are the bounds that a device has to know.
func limitFields(o Options) []Field {
	l := o.Limits
	return []Field{
		count("max-records", l.Records),
		count("max-record-bytes", l.RecordBytes),
		count("max-vaults", l.Vaults),
		count("max-account-bytes", l.AccountBytes),
		count("max-request-bytes", maxRequestBytes),
		count("max-stanza-bytes", o.StanzaBytes),
		count("max-chunk-bytes", o.ChunkBytes),
		count("max-batch-records", o.BatchRecords),
		count("max-resources", l.Resources),
		count("max-subscriptions", l.Subscriptions),
		count("tombstones", l.TombstonesFactor*l.Records),
	}
}

func count[N int | int64 | uint32](name string, n N) Field {
	return Field{Name: name, Kind: kindText, Values: []string{strconv.FormatInt(int64(n), 10)}}
}

func (e *Engine) describeVault(ctx context.Context, req Request, op DescribeVault, done func(Outcome)) error {
	key := vault.Key{Account: req.Owner, Node: op.Node}
	return e.ordered(ctx, key, func(v vault.View) (Outcome, error) {
		if err := admit(v, req); err != nil {
			return Outcome{}, err
		}
		state, err := v.Vault(key)
		if err != nil {
			return Outcome{}, err
		}
		subscribed, err := v.Subscriptions(key)
		if err != nil {
			return Outcome{}, err
		}
		low, high, err := v.KeyVersions(key)
		info := VaultInfo{Node: op.Node, Title: state.Config.Title, Forms: []Form{
			e.metaData(state, len(subscribed)+e.interest.count(key)),
			{Type: FormUsage, Fields: []Field{
				count("records", state.Records),
				count("bytes", state.Bytes),
				{Name: "cursor", Kind: kindText, Values: []string{e.sign(state)}},
				count("lowest-key-version", low),
				count("highest-key-version", high),
				count("key-version-floor", state.Config.KeyVersionFloor),
			}},
		}}
		return Outcome{Answer: info}, err
	}, done)
}

// describedConfig are the fields of the configuration that are metadata, too.
var describedConfig = []string{"title", "type", "max_items", "access_model", "publish_model"}

// metaData is what XEP-0060 §5.4 has about a node.
func (e *Engine) metaData(state vault.Vault, subscribers int) Form {
	form := Form{Type: FormMetaData, Fields: []Field{
		{Name: "pubsub#owner", Kind: kindJIDs, Values: []string{string(state.Key.Account)}},
		{Name: "pubsub#creation_date", Kind: kindText, Values: []string{state.Created.UTC().Format(time.RFC3339)}},
		count("pubsub#num_subscribers", subscribers),
	}}
	for _, name := range describedConfig {
		f := find("pubsub#" + name)
		if values := f.show(state.Config, e.limits); values != nil {
			form.Fields = append(form.Fields, Field{Name: f.name, Kind: f.kind, Label: f.label, Values: values})
		}
	}
	return form
}

// listVaults lists what the sender may see, page by page if there is much
// (XEP-0060 §5.2). A vault's UID is its name, so each position is known.
func (e *Engine) listVaults(ctx context.Context, req Request, op ListVaults, done func(Outcome)) error {
	var seen []vault.Vault
	err := e.store.View(ctx, func(v vault.View) (err error) {
		seen, err = visible(v, req)
		return err
	})
	if err != nil {
		return err
	}
	done(Outcome{Answer: e.vaultPage(seen, op.Page)})
	return nil
}

// visible returns the owner's vaults that the sender may read, sorted by node.
// Others it must not even know of, and can't have them looked at either.
func visible(v vault.View, req Request) ([]vault.Vault, error) {
	if req.Sender.Account == req.Owner {
		return v.Vaults(req.Owner)
	}
	shared, err := v.Shared(req.Owner, req.Sender.Account)
	if err != nil {
		return nil, err
	}
	var seen []vault.Vault
	for _, key := range shared {
		a, err := affiliationOf(v, req.Sender.Account, key)
		if err != nil {
			return nil, err
		}
		if !may(a, read) {
			continue
		}
		state, err := v.Vault(key)
		if err != nil {
			return nil, err
		}
		seen = append(seen, state)
	}
	return seen, nil
}

// vaultPage cuts a page out of the vaults; without a request for one, all if
// they fit.
func (e *Engine) vaultPage(vaults []vault.Vault, p *PageRequest) VaultList {
	whole := p == nil
	if whole {
		p = &PageRequest{Max: -1}
	}
	at := func(node string) (int, bool) {
		return slices.BinarySearchFunc(vaults, node, func(v vault.Vault, node string) int {
			return strings.Compare(v.Key.Node, node)
		})
	}
	first, end := 0, len(vaults)
	backward := p.Last || p.Before != ""
	switch {
	case p.After != "":
		i, found := at(p.After)
		if first = i; found {
			first++
		}
	case p.Before != "":
		end, _ = at(p.Before)
	case p.Index != nil:
		first = min(max(*p.Index, 0), end)
	}
	first, end = e.cut(vaults, first, end, p.Max, backward)
	list := VaultList{Vaults: vaults[first:end]}
	if !whole || len(list.Vaults) < len(vaults) {
		list.Set = &ResultSet{Count: len(vaults)}
		if first < end {
			list.Set.Index = first
			list.Set.First, list.Set.Last = vaults[first].Key.Node, vaults[end-1].Key.Node
		}
	}
	return list
}

// cut bounds a run of vaults by number (negative = any) and by the size of an
// answer, from its beginning or from its end. At least one is left, unless
// none is wanted.
func (e *Engine) cut(vaults []vault.Vault, first, end, most int, backward bool) (int, int) {
	if most < 0 {
		most = end - first
	}
	n, bytes := 0, 0
	for n < min(most, end-first) {
		i := first + n
		if backward {
			i = end - 1 - n
		}
		bytes += nameCost(vaults[i].Key.Node) + nameCost(vaults[i].Config.Title)
		if n > 0 && bytes > e.answer {
			break
		}
		n++
	}
	if backward {
		return end - n, end
	}
	return first, first + n
}

// nameCost bounds from above what an element with a name of a device's takes.
func nameCost(name string) int { return vault.Record{ID: name}.Cost() }
