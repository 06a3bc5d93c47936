package fleet

import (
	"encoding/base64"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"pepvault/pep"
	"pepvault/pep/wire"
	"pepvault/vault"
)

// TestEachItemReadsWhatTheServiceWrites compares the quick reader with what
// pep/wire wrote.
func TestEachItemReadsWhatTheServiceWrites(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		want := map[string]string{}
		page := pep.ItemsPage{Node: Node}
		sync := pep.SyncPage{Owner: "a@example.org", Node: Node, Cursor: "c"}
		for range rapid.IntRange(0, 6).Draw(t, "records") {
			id := rapid.StringMatching(`[a-z<>&'" =/-]{1,12}`).Draw(t, "id")
			data := rapid.SliceOfN(rapid.Byte(), 1, 40).Draw(t, "data")
			if _, twice := want[id]; twice {
				continue
			}
			want[id] = string(data)
			r := vault.Record{ID: id, Revision: 1, KeyVersion: 1, Publisher: "a@example.org", Payload: vault.Payload{Form: vault.Native, Data: data}}
			page.Records = append(page.Records, r)
			sync.Changes = append(sync.Changes, vault.Change{Record: r})
		}
		header := wire.Header{From: "a@example.org/d", To: "vault.example.org", ID: "1"}
		stanzas := map[string][]byte{
			"result": wire.AppendResult(nil, header, page),
			"sync":   wire.AppendResult(nil, header, sync),
			"chunk":  wire.AppendChunk(nil, header, pep.Chunk{Download: "d", Page: sync}),
		}
		for name, raw := range stanzas {
			got := map[string]string{}
			if err := eachItem(raw, func(id string, ciphertext []byte) error {
				got[id] = string(ciphertext)
				return nil
			}); err != nil {
				t.Fatalf("%s: %v\n%s", name, err, raw)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Fatalf("%s (-want +got)\n%s", name, diff)
			}
		}
	})
}

func TestEachItemRefuses(t *testing.T) {
	t.Parallel()
	for name, raw := range map[string]string{
		"no id":         "<items><item><record xmlns='r'>AAAA</record></item></items>",
		"no payload":    "<items><item id='a'/></items>",
		"foreign":       "<items><item id='a'><note xmlns='n'>AAAA</note></item></items>x",
		"no base64":     "<items><item id='a'><record xmlns='r'>A*AA</record></item></items>",
		"half a tag":    "<items><item id='a'><record xmlns='r",
		"half a record": "<items><item id='a'><record xmlns='r'>AAAA",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := eachItem([]byte(raw), func(string, []byte) error { return nil })
			if !errors.Is(err, ErrWrong) {
				t.Errorf("got %v, want ErrWrong", err)
			}
		})
	}
}

func TestTags(t *testing.T) {
	t.Parallel()
	const raw = `<iq><items node='n'><set xmlns="r"><first index='0'>x&amp;y</first><last>a&lt;b</last></set><sync cursor="c>&apos;1" more='true'/></iq>`
	for name, test := range map[string]struct{ got, want string }{
		"text":     {elementText([]byte(raw), "last"), "a<b"},
		"first":    {elementText([]byte(raw), "first"), "x&y"},
		"absent":   {elementText([]byte(raw), "las"), ""},
		"escaped":  {attrOf(raw, "sync", "cursor"), "c>'1"},
		"second":   {attrOf(raw, "sync", "more"), "true"},
		"not it":   {attrOf(raw, "sync", "mor"), ""},
		"prefixed": {attrOf(raw, "items", "ode"), ""},
	} {
		if test.got != test.want {
			t.Errorf("%s: got %q, want %q", name, test.got, test.want)
		}
	}
}

func attrOf(raw, element, attr string) string {
	t, _ := findTag([]byte(raw), element)
	value, _ := t.attr(attr)
	return value
}

func BenchmarkEachItem(b *testing.B) {
	item := "<item id='00000001-0000-4000-8000-000000000001' publisher='u1@localhost'><record xmlns='urn:pepvault:record:0' key-version='1'>" +
		base64.StdEncoding.EncodeToString(make([]byte, 924)) + "</record></item>"
	raw := []byte("<iq type='result'><pubsub><items node='n'>" + strings.Repeat(item, 256) + "</items></pubsub></iq>")
	b.SetBytes(int64(len(raw)))
	for b.Loop() {
		if err := eachItem(raw, func(string, []byte) error { return nil }); err != nil {
			b.Fatal(err)
		}
	}
}
