package device

import (
	"fmt"
	"reflect"
	"slices"
	"testing"

	"pepvault/pep"
	"pepvault/pep/wire"
	"pepvault/vault"
)

func (d delivery) notification() wire.Notification {
	if d.news != nil {
		return *d.news
	}
	n, err := wire.DecodeMessage(d.raw)
	if err != nil {
		panic(err)
	}
	return n
}

// notifications are what wire.DecodeMessage reads of wire.EventBody, as far as a
// device looks at it.
func notifications(n pep.Notice) []*wire.Notification {
	ev, detail := n.Event, wire.DetailOf(n)
	last := &wire.Notification{Node: ev.Node, State: &ev.State}
	switch {
	case ev.Muted, detail == wire.StateOnly:
	case ev.Deleted:
		last.Deleted = true
	case ev.Purged:
		last.Purged = true
	case ev.Config != nil && len(ev.Changes) == 0:
		last.Config = new(pep.Form)
	case len(ev.Changes) == 1 && ev.Config == nil, detail == wire.Full && len(ev.Changes) > 0:
		return ofChanges(ev, detail == wire.Quiet || ev.Bare)
	}
	return []*wire.Notification{last}
}

func ofChanges(ev *pep.Event, bare bool) (list []*wire.Notification) {
	for i, c := range ev.Changes {
		told := vault.Change{Record: vault.Record{ID: c.ID}, Gone: c.Gone}
		if !bare && !c.Gone {
			told.KeyVersion, told.Payload = c.KeyVersion, c.Payload
		}
		n := &wire.Notification{Node: ev.Node, Changes: []vault.Change{told}, Past: ev.Past}
		if i == len(ev.Changes)-1 && ev.Config == nil {
			n.State = &ev.State
			at := slices.IndexFunc(ev.State.Items, func(item pep.StateItem) bool { return item.ID == c.ID })
			if at >= 0 {
				n.Changes[0].Revision = ev.State.Items[at].Revision
			}
		}
		list = append(list, n)
	}
	if ev.Config != nil {
		list = append(list, &wire.Notification{Node: ev.Node, Config: new(pep.Form), State: &ev.State})
	}
	return list
}

// What goes without XML in most histories is what XML would bring.
func TestShortcutIsTheWire(t *testing.T) {
	t.Parallel()
	record := func(id string, revision vault.Revision) vault.Change {
		return vault.Change{Record: vault.Record{
			ID: id, Revision: revision, KeyVersion: 2, Payload: vault.Payload{Form: vault.Native, Data: []byte("v" + id)},
		}}
	}
	gone := vault.Change{Record: vault.Record{ID: "c", Revision: 9}, Gone: true}
	form := &pep.Form{Type: pep.FormConfig, Fields: []pep.Field{{Name: "pubsub#title", Values: []string{"x"}}}}
	events := map[string]pep.Event{
		"state alone":    {},
		"record":         {Changes: []vault.Change{record("a", 7)}},
		"removal":        {Changes: []vault.Change{gone}},
		"several":        {Changes: []vault.Change{record("a", 7), record("b", 8), gone}},
		"bare":           {Changes: []vault.Change{record("a", 7)}, Bare: true},
		"rotation":       {Changes: []vault.Change{record("a", 7), record("b", 8)}, Config: form, Batch: true},
		"configuration":  {Config: form},
		"purge":          {Purged: true},
		"deleted vault":  {Deleted: true},
		"muted":          {Changes: []vault.Change{record("a", 7)}, Muted: true},
		"small rotation": {Changes: []vault.Change{record("a", 7)}, Config: form, Batch: true},
	}
	for name, ev := range events {
		ev.Owner, ev.Node = owner, node
		ev.State = pep.State{Owner: owner, Node: node, Previous: "p", Cursor: "c"}
		for _, c := range ev.Changes {
			ev.State.Items = append(ev.State.Items, pep.StateItem{ID: c.ID, Revision: c.Revision, Gone: c.Gone})
		}
		for _, notice := range []pep.Notice{{Event: &ev}, {Event: &ev, StateOnly: true}, {Event: &ev, Quiet: true}} {
			var want []wire.Notification
			for _, body := range wire.EventBody(&ev, wire.DetailOf(notice)) {
				raw := wire.AppendMessage(nil, "vault.localhost", string(owner), "m", body)
				n := delivery{raw: raw}.notification()
				if n.Config != nil {
					n.Config = new(pep.Form)
				}
				want = append(want, n)
			}
			var got []wire.Notification
			for _, n := range notifications(notice) {
				got = append(got, *n)
			}
			if !reflect.DeepEqual(got, want) {
				t.Errorf("%s, %+v:\n got %s\nwant %s", name, notice, fmt.Sprintf("%+v", got), fmt.Sprintf("%+v", want))
			}
		}
	}
}
