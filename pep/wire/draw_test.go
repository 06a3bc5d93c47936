package wire

import (
	"fmt"

	"pgregory.net/rapid"

	"pepvault/pep"
	"pepvault/vault"
)

// What a request may hold, at random.
var (
	names    = rapid.StringN(1, 40, 120).Filter(vault.ValidName)
	payloads = rapid.Custom(func(t *rapid.T) pep.Item {
		item := pep.Item{ID: rapid.OneOf(names, rapid.Just("")).Draw(t, "id")}
		if rapid.Bool().Draw(t, "native") {
			item.KeyVersion = rapid.Uint32Range(0, vault.MaxKeyVersion).Draw(t, "key version")
			item.Namespace = nsRecord
			item.Payload = vault.Payload{Form: vault.Native, Data: rapid.SliceOfN(rapid.Byte(), 1, 50).Draw(t, "data")}
			return item
		}
		item.KeyVersion, item.Namespace = rapid.Uint32Range(0, 9).Draw(t, "key version"), "u"
		text := appendText(fmt.Appendf(nil, "<x xmlns='u' key-version='%d'>", item.KeyVersion), rapid.StringMatching(`[a-z&<>'"é]*`).Draw(t, "text"))
		var err error
		if item.Payload, _, err = ForeignPayload(append(text, "</x>"...)); err != nil {
			t.Fatal(err)
		}
		return item
	})
	texts = rapid.StringMatching(`[a-z&<>'"\t\r\n é]*`)
	uids  = rapid.StringMatching(`[a-z&<>'"\t\r\n é]+`)
	pages = rapid.Custom(func(t *rapid.T) *pep.PageRequest {
		page := &pep.PageRequest{Max: rapid.IntRange(-1, 1000).Draw(t, "max")}
		switch rapid.IntRange(0, 5).Draw(t, "page") {
		case 0:
			return nil
		case 1:
			page.After = uids.Draw(t, "after")
		case 2:
			page.Before = uids.Draw(t, "before")
		case 3:
			page.Last = true
		case 4:
			page.Index = number(rapid.IntRange(0, 1000).Draw(t, "index"))
		}
		return page
	})
	// forms are as a device submits them.
	forms = rapid.Custom(func(t *rapid.T) pep.Form {
		form := pep.Form{Type: texts.Draw(t, "type")}
		for _, name := range rapid.SliceOfNDistinct(uids, 0, 4, rapid.ID).Draw(t, "fields") {
			field := pep.Field{Name: name}
			for range rapid.IntRange(0, 3).Draw(t, "values") {
				field.Values = append(field.Values, texts.Draw(t, "value"))
			}
			form.Fields = append(form.Fields, field)
		}
		return form
	})
	formOrNone = rapid.Custom(func(t *rapid.T) *pep.Form {
		if rapid.Bool().Draw(t, "no form") {
			return nil
		}
		form := forms.Draw(t, "form")
		return &form
	})
	batchIDs  = names.Filter(vault.ValidBatchID)
	refOrNone = rapid.Custom(func(t *rapid.T) *pep.BatchRef {
		if rapid.Bool().Draw(t, "no batch") {
			return nil
		}
		return &pep.BatchRef{ID: batchIDs.Draw(t, "batch id"), Cursor: uids.Draw(t, "cursor")}
	})
	nodeOrNone = rapid.OneOf(names, rapid.Just(""))
)

// rapid makes the name of a generator when something first asks for it, and reads
// it unguarded: so names are made before tests share generators in parallel.
func init() {
	for _, g := range []fmt.Stringer{names, payloads, texts, uids, pages, forms, formOrNone, refOrNone, nodeOrNone, infos} {
		_ = g.String()
	}
}

func drawCall(t *rapid.T) Call {
	return rapid.SampledFrom([]func(t *rapid.T, node string) Call{drawItems, drawSync, drawBatch, drawNode, drawSubscription, drawAffiliation, drawDisco}).
		Draw(t, "kind of call")(t, names.Draw(t, "node"))
}

func drawItems(t *rapid.T, node string) Call {
	distinct := rapid.SliceOfNDistinct(names, 1, 5, rapid.ID)
	switch rapid.IntRange(0, 3).Draw(t, "call") {
	case 0:
		items := rapid.SliceOfNDistinct(payloads, 1, 4, func(i pep.Item) string { return i.ID }).Draw(t, "items")
		return pep.Publish{Node: node, Items: items, Options: formOrNone.Draw(t, "options"), State: rapid.Bool().Draw(t, "state"),
			Batch: refOrNone.Draw(t, "batch")}
	case 1:
		return pep.Retract{Node: node, IDs: distinct.Draw(t, "ids"), Notify: rapid.Bool().Draw(t, "notify"), State: rapid.Bool().Draw(t, "state"),
			Confirm: rapid.Bool().Draw(t, "confirm"), Batch: refOrNone.Draw(t, "batch")}
	case 2:
		return pep.Items{Node: node, IDs: distinct.Draw(t, "ids")}
	default:
		return pep.Items{Node: node, Max: rapid.IntRange(0, 1<<31-1).Draw(t, "max"), Page: pages.Draw(t, "page")}
	}
}

func drawSync(t *rapid.T, node string) Call {
	bound := rapid.IntRange(0, 1<<31-1)
	cursor := rapid.OneOf(uids, rapid.Just("")).Draw(t, "cursor")
	if rapid.Bool().Draw(t, "pull") {
		return pep.Sync{Node: node, Cursor: cursor, Max: bound.Draw(t, "max"), Bytes: bound.Draw(t, "bytes")}
	}
	return pep.Download{
		Node: node, Cursor: cursor, ID: names.Draw(t, "id"),
		ChunkBytes: bound.Draw(t, "chunk bytes"), Window: bound.Draw(t, "window"),
	}
}

func drawBatch(t *rapid.T, node string) Call {
	id, cursor := batchIDs.Draw(t, "batch id"), uids.Draw(t, "cursor")
	switch rapid.IntRange(0, 3).Draw(t, "call") {
	case 0:
		return pep.BeginBatch{Node: node, ID: id, Cursor: cursor, RotateTo: rapid.Uint32Range(0, vault.MaxKeyVersion).Draw(t, "rotate to")}
	case 1:
		return pep.Unstage{ID: id, IDs: rapid.SliceOfNDistinct(names, 1, 5, rapid.ID).Draw(t, "ids")}
	case 2:
		return pep.CommitBatch{ID: id, Cursor: cursor, Changes: rapid.IntRange(0, 1<<31-1).Draw(t, "changes"), Confirm: rapid.Bool().Draw(t, "confirm")}
	default:
		return pep.AbortBatch{ID: id}
	}
}

func drawNode(t *rapid.T, node string) Call {
	switch rapid.IntRange(0, 6).Draw(t, "call") {
	case 0:
		return pep.Create{Node: nodeOrNone.Draw(t, "node"), Config: formOrNone.Draw(t, "config")}
	case 1:
		return pep.ReadConfig{Node: node}
	case 2:
		return pep.DefaultConfig{}
	case 3:
		return pep.Configure{Node: node, Form: forms.Draw(t, "form")}
	case 4:
		return pep.Configure{Node: node, Cancel: true}
	case 5:
		return pep.Purge{Node: node}
	default:
		return pep.Delete{Node: node}
	}
}

func drawSubscription(t *rapid.T, node string) Call {
	jid := names.Draw(t, "jid")
	switch rapid.IntRange(0, 6).Draw(t, "call") {
	case 0:
		return pep.Subscribe{Node: node, JID: jid, Options: formOrNone.Draw(t, "options")}
	case 1:
		return pep.Unsubscribe{Node: node, JID: jid}
	case 2:
		return pep.ListSubscriptions{Node: nodeOrNone.Draw(t, "node")}
	case 3:
		return pep.ReadOptions{Node: node, JID: jid}
	case 4:
		return pep.ReadOptions{Node: nodeOrNone.Draw(t, "node")}
	case 5:
		return pep.SetOptions{Node: node, JID: jid, Form: forms.Draw(t, "form")}
	default:
		return pep.SetOptions{Node: node, JID: jid, Cancel: true}
	}
}

func drawAffiliation(t *rapid.T, node string) Call {
	changes := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) pep.AffiliationChange {
		return pep.AffiliationChange{JID: names.Draw(t, "jid"), Affiliation: uids.Draw(t, "affiliation")}
	}), 1, 4)
	switch rapid.IntRange(0, 2).Draw(t, "call") {
	case 0:
		return pep.ListAffiliations{Node: nodeOrNone.Draw(t, "node")}
	case 1:
		return pep.ReadAffiliations{Node: node}
	default:
		return pep.SetAffiliations{Node: node, Changes: changes.Draw(t, "changes")}
	}
}

func drawDisco(t *rapid.T, node string) Call {
	switch rapid.IntRange(0, 9).Draw(t, "call") {
	case 0:
		return pep.DescribeService{}
	case 1:
		return pep.DescribeVault{Node: node}
	case 2:
		return ItemNames{pep.Items{Node: node, Page: pages.Draw(t, "page")}}
	case 3:
		return pep.ListVaults{Page: pages.Draw(t, "page")}
	case 4:
		return Version{}
	case 5:
		return DescribeCommands{}
	case 6:
		return DescribeCommand{Node: CommandPrefix + node}
	case 7:
		return ListCommands{Node: rapid.SampledFrom([]string{CommandsNode, CommandPrefix + "x"}).Draw(t, "node")}
	case 8:
		action := rapid.SampledFrom([]string{"execute", "cancel", "prev", "next", "complete"}).Draw(t, "action")
		return Command{Node: node, Session: texts.Draw(t, "session"), Action: action, Form: formOrNone.Draw(t, "form")}
	default:
		return Ping{}
	}
}
