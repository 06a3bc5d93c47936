package wire

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"pepvault/pep"
	"pepvault/vault"
)

func TestSyncPages(t *testing.T) {
	t.Parallel()
	change := func(id string, r vault.Revision, p vault.Payload, keyVersion uint32) vault.Change {
		return vault.Change{Record: vault.Record{ID: id, Revision: r, Payload: p, KeyVersion: keyVersion}}
	}
	changes := []vault.Change{
		change("a", 42, native("hello"), 3),
		{Record: vault.Record{ID: "b&c", Revision: 43}, Gone: true},
		change("z", 44, element0("<note xmlns='urn:example:foreign'>text</note>"), 0),
	}
	rotated := change("r", 46, native("sealed anew"), 4)
	rotated.RotatedFrom = 41
	page := pep.SyncPage{Owner: "alice@localhost", Node: "notes", Cursor: "c-44", Records: 256}
	with := func(change func(*pep.SyncPage)) pep.SyncPage {
		p := page
		change(&p)
		return p
	}
	for what, answer := range map[string]pep.SyncPage{
		"sync none":    page,
		"sync":         with(func(p *pep.SyncPage) { p.Changes, p.More = changes, true }),
		"sync first":   with(func(p *pep.SyncPage) { p.Changes, p.Reset, p.First = changes[:1], vault.ResetNew, true }),
		"sync lost":    with(func(p *pep.SyncPage) { p.Changes, p.Reset, p.Fork = changes[:1], vault.ResetLost, 41 }),
		"sync rotated": with(func(p *pep.SyncPage) { p.Changes = []vault.Change{rotated} }),
		"sync ended":   with(func(p *pep.SyncPage) { p.Cursor, p.Records, p.Reset, p.First = pep.NoCursor, 0, vault.ResetEnded, true }),
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			raw := AppendResult(nil, request, answer)
			golden(t, "result "+what, raw)
			got, err := DecodeReply(raw, pep.Sync{})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(answer, got); diff != "" {
				t.Errorf("read again (-want +got)\n%s", diff)
			}
		})
	}
}

func TestSyncRequests(t *testing.T) {
	t.Parallel()
	expect := &pep.Expect{Cursor: "c-41", Items: []pep.Expected{{ID: "a", Revision: 41}, {ID: "b&c"}}}
	item := pep.Item{ID: "a", KeyVersion: 3, Namespace: nsRecord, Payload: native("hello")}
	for what, call := range map[string]Call{
		"sync":              pep.Sync{Node: "notes"},
		"sync page":         pep.Sync{Node: "notes", Cursor: "c-41", Max: 50, Bytes: 32768},
		"publish expecting": pep.Publish{Node: "notes", Items: []pep.Item{item}, Expect: expect},
		"publish first":     pep.Publish{Node: "notes", Items: []pep.Item{item}, Expect: &pep.Expect{Cursor: pep.NoCursor}, State: true},
		"retract expecting": pep.Retract{Node: "notes", IDs: []string{"a"}, Expect: expect},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			raw := AppendRequest(nil, request, call)
			golden(t, "request "+what, raw)
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

func TestSyncRequestsRefused(t *testing.T) {
	t.Parallel()
	publish := func(beside string) string {
		return iq("set", pubsub("<publish node='n'><item id='a'><x xmlns='u'/></item></publish>"+beside))
	}
	expect := func(attrs, content string) string {
		return "<expect xmlns='urn:pepvault:sync:0' " + attrs + ">" + content + "</expect>"
	}
	tests := map[string]struct {
		raw  string
		want error
	}{
		"no node":              {iq("get", "<sync xmlns='urn:pepvault:sync:0'/>"), pep.ErrNodeRequired},
		"set":                  {iq("set", "<sync xmlns='urn:pepvault:sync:0' node='n'/>"), pep.ErrBadRequest},
		"max 0":                {iq("get", "<sync xmlns='urn:pepvault:sync:0' node='n' max='0'/>"), pep.ErrBadRequest},
		"max-bytes of words":   {iq("get", "<sync xmlns='urn:pepvault:sync:0' node='n' max-bytes='many'/>"), pep.ErrBadRequest},
		"with content":         {iq("get", "<sync xmlns='urn:pepvault:sync:0' node='n'><item id='a'><x xmlns='u'/></item></sync>"), pep.ErrBadRequest},
		"with text":            {iq("get", "<sync xmlns='urn:pepvault:sync:0' node='n'>text</sync>"), pep.ErrBadRequest},
		"no cursor":            {publish(expect("", "")), pep.ErrBadRequest},
		"two expectations":     {publish(expect("cursor='c'", "") + expect("cursor='c'", "")), pep.ErrBadRequest},
		"text":                 {publish(expect("cursor='c'", "text")), pep.ErrBadRequest},
		"no revision":          {publish(expect("cursor='c'", "<item id='a'/>")), pep.ErrBadRequest},
		"negative revision":    {publish(expect("cursor='c'", "<item id='a' revision='-1'/>")), pep.ErrBadRequest},
		"no id":                {publish(expect("cursor='c'", "<item revision='1'/>")), pep.ErrBadName},
		"one id twice":         {publish(expect("cursor='c'", "<item id='a' revision='1'/><item id='a' revision='1'/>")), pep.ErrBadRequest},
		"another element":      {publish(expect("cursor='c'", "<retract id='a' revision='1'/>")), pep.ErrBadRequest},
		"expectation of items": {iq("get", pubsub("<items node='n'/>"+expect("cursor='c'", ""))), pep.ErrBadRequest},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got, err := DecodeRequest([]byte(tt.raw), testLimits); !errors.Is(err, tt.want) {
				t.Errorf("DecodeRequest = %+v, %v; want %v", got, err, tt.want)
			}
		})
	}
}

func TestMismatch(t *testing.T) {
	t.Parallel()
	refusal := &pep.Refusal{
		Err: pep.ErrRevisionMismatch, Text: "a record has changed", Cursor: "c-57",
		Items: []pep.StateItem{{ID: "a", Revision: 57}, {ID: "b&c", Revision: 44, Gone: true}},
	}
	raw := AppendError(nil, request, refusal)
	golden(t, "error revision mismatch", raw)
	_, err := DecodeReply(raw, pep.Publish{})
	var got *StanzaError
	if !errors.As(err, &got) {
		t.Fatalf("read as %v", err)
	}
	want := &StanzaError{Own: "revision-mismatch", Type: "cancel", Condition: "conflict", Text: refusal.Text, Cursor: refusal.Cursor, Items: refusal.Items}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestSyncPagesAreReadAgain(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		page := drawPass(t)
		page.Owner, page.Node = "alice@localhost", names.Draw(t, "node")
		page.Records = rapid.IntRange(0, 1<<31-1).Draw(t, "records")
		got, err := DecodeReply(AppendResult(nil, request, page), pep.Sync{})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(any(page), got); diff != "" {
			t.Fatalf("(-want +got)\n%s", diff)
		}
	})
}

// drawPass draws what a page of a sync and a chunk share.
func drawPass(t *rapid.T) pep.SyncPage {
	page := pep.SyncPage{
		Cursor: "c", More: rapid.Bool().Draw(t, "more"),
		Reset: vault.Reset(rapid.IntRange(0, 4).Draw(t, "reset")), First: rapid.Bool().Draw(t, "first"),
	}
	if page.Reset == vault.ResetLost {
		page.Fork = vault.Revision(rapid.Uint64Range(0, 1<<63).Draw(t, "fork"))
	}
	for _, item := range rapid.SliceOfN(payloads, 0, 4).Draw(t, "items") {
		c := vault.Change{Record: vault.Record{ID: names.Draw(t, "id"), Revision: vault.Revision(rapid.Uint64Range(0, 1<<63).Draw(t, "revision"))}}
		if c.Gone = rapid.Bool().Draw(t, "gone"); !c.Gone {
			c.KeyVersion, c.Payload = item.KeyVersion, item.Payload
			c.RotatedFrom = vault.Revision(rapid.Uint64Range(0, 1<<63).Draw(t, "rotated from"))
		}
		page.Changes = append(page.Changes, c)
	}
	return page
}
