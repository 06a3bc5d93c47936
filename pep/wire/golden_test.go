package wire

import (
	"bytes"
	"encoding/xml"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"pepvault/pep"
	"pepvault/vault"
)

var update = flag.Bool("update", false, "write the golden files anew")

var request = Header{From: "alice@localhost/phone", To: "vault.localhost", ID: "r1", Type: "get", Name: "iq"}

// golden compares a stanza with testdata/NAME.xml, and holds it to what every
// stanza of ours must be.
func golden(t *testing.T, what string, got []byte) {
	t.Helper()
	checkStanza(t, got)
	compareGolden(t, strings.ReplaceAll(what, " ", "-")+".xml", string(got)+"\n")
}

func compareGolden(t *testing.T, file, got string) {
	t.Helper()
	path := filepath.Join("testdata", file)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got)\n%s", path, diff)
	}
}

// checkStanza wants well-formed XML with both addresses and without a
// namespace of its own.
func checkStanza(t *testing.T, raw []byte) {
	t.Helper()
	header, err := ReadHeader(raw)
	if err != nil || header.From == "" || header.To == "" {
		t.Errorf("header %+v, %v", header, err)
	}
	d := xml.NewDecoder(bytes.NewReader(raw))
	for first := true; ; first = false {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			t.Fatalf("%v in %s", err, raw)
		}
		if s, ok := token.(xml.StartElement); ok && first && s.Name.Space != "" {
			t.Errorf("the stanza has a namespace: %s", raw)
		}
	}
}

func testRecord(id string) vault.Record {
	return vault.Record{ID: id, KeyVersion: 3, Payload: native("hello"), Publisher: "alice@localhost"}
}

func testState() *pep.State {
	return &pep.State{Owner: "alice@localhost", Node: "notes", Previous: "c-1", Cursor: "c-2", Items: []pep.StateItem{
		{ID: "a<'\">", Revision: 42}, {ID: "b", Revision: 43, Gone: true},
	}}
}

func TestResults(t *testing.T) {
	t.Parallel()
	foreignRecord := testRecord("f")
	foreignRecord.KeyVersion, foreignRecord.Payload = 0, element0("<note xmlns='urn:example:notes'>text</note>")
	made := time.Date(2026, 11, 30, 9, 0, 0, 120e6, time.UTC)
	notes := vault.Vault{Key: vault.Key{Account: "alice@localhost", Node: "notes"}, Created: made, Config: vault.Config{Title: "My <notes>"}}
	tests := map[string]struct {
		call   Call
		answer any
	}{
		"published":            {pep.Publish{}, pep.Published{Node: "notes", IDs: []string{"a", "b&c"}}},
		"published state":      {pep.Publish{}, pep.Published{Node: "notes", IDs: []string{"a"}, State: testState()}},
		"published repeated":   {pep.Publish{}, pep.Published{Node: "notes", IDs: []string{"a"}, State: &pep.State{Owner: "alice@localhost", Node: "notes", Cursor: "c-2"}}},
		"retracted":            {pep.Retract{}, pep.Retracted{}},
		"retracted state":      {pep.Retract{}, pep.Retracted{State: testState()}},
		"deleted":              {pep.Delete{}, pep.Deleted{}},
		"items":                {pep.Items{}, pep.ItemsPage{Node: "notes", Records: []vault.Record{testRecord("a"), foreignRecord}}},
		"items none":           {pep.Items{}, pep.ItemsPage{Node: "notes"}},
		"items page":           {pep.Items{}, pep.ItemsPage{Node: "notes", Records: []vault.Record{testRecord("a")}, Set: &pep.ResultSet{First: "u1", Last: "u1", Count: 7}}},
		"items count":          {pep.Items{}, pep.ItemsPage{Node: "notes", Set: &pep.ResultSet{Count: 7}}},
		"subscribed":           {pep.Subscribe{}, pep.Subscribed{Node: "notes", JID: "alice@localhost/phone"}},
		"unsubscribed":         {pep.Unsubscribe{}, pep.Unsubscribed{}},
		"disco service":        {pep.DescribeService{}, pep.ServiceInfo{Name: "pepvault", Features: []string{"auto-create", "publish", "rsm"}}},
		"disco vault":          {pep.DescribeVault{}, pep.VaultInfo{Vault: notes}},
		"disco vault untitled": {pep.DescribeVault{}, pep.VaultInfo{Vault: vault.Vault{Key: notes.Key, Created: made.Truncate(time.Second)}}},
		"disco vaults":         {pep.ListVaults{}, pep.VaultList{Vaults: []vault.Vault{{Key: vault.Key{Node: "a"}}, {Key: vault.Key{Node: "b"}, Config: vault.Config{Title: "B"}}}}},
		"disco vaults none":    {pep.ListVaults{}, pep.VaultList{}},
		"disco names":          {ItemNames{}, ItemNamesPage{pep.ItemsPage{Node: "notes", Records: []vault.Record{{ID: "a"}, {ID: "b"}}, Set: &pep.ResultSet{First: "u1", Last: "u2", Count: 9}}}},
		"version":              {Version{}, VersionInfo{Name: "pepvault", Version: "1.0 & more"}},
		"pong":                 {Ping{}, Pong{}},
	}
	for what, test := range tests {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			raw := AppendResult(nil, request, test.answer)
			golden(t, "result "+what, raw)
			got, err := DecodeReply(raw, test.call)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.answer, got); diff != "" {
				t.Errorf("read again (-want +got)\n%s", diff)
			}
		})
	}
}

func TestResultAppends(t *testing.T) {
	t.Parallel()
	got := AppendResult([]byte("before"), request, Pong{})
	want := "before<iq type='result' from='vault.localhost' to='alice@localhost/phone' id='r1'/>"
	if string(got) != want {
		t.Errorf("got %s", got)
	}
	defer func() {
		if recover() == nil {
			t.Error("a pep.Later was written")
		}
	}()
	AppendResult(nil, request, pep.Later{})
}

// Whatever a host let through in an address or an id, and whatever stands in a
// text, the stream goes on.
func TestHeadersAreEscaped(t *testing.T) {
	t.Parallel()
	odd := Header{From: "a'b&<>\"@localhost/\u2665", To: "vault.localhost", ID: "\t\n\r'\x00\xff\uFFFE"}
	raw := AppendError(nil, odd, pep.Refuse(pep.ErrPolicy, "bad \x01\xfe\uFFFF]]> text"))
	checkStanza(t, raw)
	header, err := ReadHeader(raw)
	if err != nil || header.To != odd.From || header.From != odd.To || header.ID != "\t\n\r'\uFFFD\uFFFD\uFFFD" {
		t.Errorf("got %+v, %v", header, err)
	}
}

func TestErrors(t *testing.T) {
	t.Parallel()
	for what, err := range map[string]error{
		"closed node":       pep.Refuse(pep.ErrClosedNode, "this vault belongs to somebody else"),
		"bad request":       pep.ErrBadRequest,
		"payload too big":   pep.Refuse(pep.ErrPayloadTooBig, "a record may take %d bytes", 65536),
		"node full":         pep.ErrNodeFull,
		"quota exceeded":    &pep.Refusal{Err: pep.ErrQuotaExceeded, Text: "full", Bytes: 1001, Limit: 1000},
		"overloaded":        &pep.Refusal{Err: pep.ErrOverloaded, Text: "later", RetryAfter: 7},
		"unsupported":       unsupported("create-nodes"),
		"unsupported other": pep.Refuse(pep.ErrUnsupported, "no such operation"),
		"unknown namespace": pep.ErrUnknownNamespace,
		"too many vaults":   pep.ErrTooManyVaults,
		"no vault":          vault.ErrNoVault,
		"storage":           vault.ErrStorage,
	} {
		golden(t, "error "+what, AppendError(nil, request, err))
	}
}

// Every row of the table as it goes out, one a line.
func TestEveryFault(t *testing.T) {
	t.Parallel()
	var got bytes.Buffer
	for _, what := range slices.Sorted(maps.Keys(sentinels)) {
		raw := AppendError(nil, request, sentinels[what])
		checkStanza(t, raw)
		fmt.Fprintf(&got, "%s %s\n", what, raw)
	}
	compareGolden(t, "faults.txt", got.String())
}

func TestEvents(t *testing.T) {
	t.Parallel()
	change := func(id string, revision vault.Revision) vault.Change {
		r := testRecord(id)
		r.Revision = revision
		return vault.Change{Record: r}
	}
	gone := vault.Change{Record: vault.Record{ID: "b", Revision: 43}, Gone: true}
	state := func(items ...pep.StateItem) pep.State {
		s := *testState()
		s.Items = items
		return s
	}
	tests := map[string]struct {
		event pep.Event
		quiet bool
	}{
		"publish": {event: pep.Event{Owner: "alice@localhost", Node: "notes", Changes: []vault.Change{change("a", 42)},
			State: state(pep.StateItem{ID: "a", Revision: 42})}},
		"quiet": {quiet: true, event: pep.Event{Owner: "alice@localhost", Node: "notes", Changes: []vault.Change{change("a", 42)},
			State: state(pep.StateItem{ID: "a", Revision: 42})}},
		"retract": {event: pep.Event{Owner: "alice@localhost", Node: "notes", Changes: []vault.Change{gone},
			State: state(pep.StateItem{ID: "b", Revision: 43, Gone: true})}},
		"several": {event: pep.Event{Owner: "alice@localhost", Node: "notes", Changes: []vault.Change{change("a", 42), gone},
			State: state(pep.StateItem{ID: "a", Revision: 42}, pep.StateItem{ID: "b", Revision: 43, Gone: true})}},
		"first": {event: pep.Event{Owner: "alice@localhost", Node: "notes", Changes: []vault.Change{change("a", 2)},
			State: pep.State{Owner: "alice@localhost", Node: "notes", Previous: pep.NoCursor, Cursor: "c-1", Items: []pep.StateItem{{ID: "a", Revision: 2}}}}},
		"state": {event: pep.Event{Owner: "alice@localhost", Node: "notes",
			State: pep.State{Owner: "alice@localhost", Node: "notes", Cursor: "c-2"}}},
		"delete": {event: pep.Event{Owner: "alice@localhost", Node: "notes", Deleted: true,
			State: pep.State{Owner: "alice@localhost", Node: "notes", Previous: "c-1"}}},
	}
	for what, test := range tests {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			bodies := EventBody(&test.event, test.quiet)
			var got pep.Event
			for i, body := range bodies {
				raw := AppendMessage(nil, "vault.localhost", "alice@localhost/phone", "m1", body)
				golden(t, "event "+what+[]string{"", " 2"}[i], raw)
				n, err := DecodeMessage(raw)
				if err != nil {
					t.Fatal(err)
				}
				if last := i == len(bodies)-1; (n.State != nil) != last {
					t.Errorf("state in message %d of %d", i+1, len(bodies))
				}
				got.Node, got.Deleted = n.Node, n.Deleted
				got.Changes = append(got.Changes, n.Changes...)
				if n.State != nil {
					got.State, got.Owner = *n.State, n.State.Owner
				}
			}
			want := test.event
			want.Changes = append([]vault.Change(nil), want.Changes...)
			for i := range want.Changes {
				if i < len(want.Changes)-1 {
					want.Changes[i].Revision = 0 // told by the last message only
				}
				if test.quiet {
					want.Changes[i].Payload, want.Changes[i].KeyVersion = vault.Payload{}, 0
				}
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("read again (-want +got)\n%s", diff)
			}
		})
	}
}

func TestDecodeMessage(t *testing.T) {
	t.Parallel()
	n, err := DecodeMessage([]byte("<message from='v' to='a'><state xmlns='urn:pepvault:sync:0' owner='o' node='n' cursor='c'/></message>"))
	if err != nil || n.Node != "n" || n.State == nil || len(n.Changes) > 0 {
		t.Errorf("a state alone: %+v, %v", n, err)
	}
	bounce := new(StanzaError)
	_, err = DecodeMessage([]byte("<message type='error'><body/><error type='cancel'><gone xmlns='urn:ietf:params:xml:ns:xmpp-stanzas'/></error></message>"))
	if !errors.As(err, &bounce) || bounce.Condition != "gone" || bounce.Type != "cancel" {
		t.Errorf("bounce: %v", err)
	}
	for _, raw := range []string{
		"", "<message/>", "<iq/>", "<message><body>hello</body></message>",
		"<message><event xmlns='http://jabber.org/protocol/pubsub#event'/></message>",
		"<message><state xmlns='urn:pepvault:sync:0'><item id='a' revision='-1'/></state></message>",
	} {
		if n, err := DecodeMessage([]byte(raw)); !errors.Is(err, ErrBadReply) {
			t.Errorf("%q: %+v, %v", raw, n, err)
		}
	}
}

func TestDecodeReplyRefuses(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		raw  string
		call Call
	}{
		{"", Ping{}},
		{"<message/>", Ping{}},
		{"<iq type='get'/>", Ping{}},
		{"<iq type='result'/>", pep.Publish{}},
		{"<iq type='result'/>", pep.Items{}},
		{"<iq type='result'/>", pep.DescribeVault{}},
		{iq("result", pubsub("<items node='n'><item id='a'/></items>")), pep.Items{}},
		{iq("result", pubsub("<items node='n'/>"+rsmSet+"</set>")), pep.Items{}},
		{iq("result", pubsub("<subscription subscription='pending'/>")), pep.Subscribe{}},
		{iq("result", "<query xmlns='http://jabber.org/protocol/disco#info'/>"), pep.DescribeVault{}},
	} {
		if got, err := DecodeReply([]byte(test.raw), test.call); !errors.Is(err, ErrBadReply) {
			t.Errorf("%q for a %T: %v, %v", test.raw, test.call, got, err)
		}
	}
}

// A commit of several records is told to a bare JID in one message, which has
// the state alone.
func TestQuietEventOfSeveralChanges(t *testing.T) {
	t.Parallel()
	event := pep.Event{Owner: "alice@localhost", Node: "notes", State: *testState(), Changes: []vault.Change{
		{Record: testRecord("a")}, {Record: vault.Record{ID: "b", Revision: 43}, Gone: true},
	}}
	bodies := EventBody(&event, true)
	if len(bodies) != 1 {
		t.Fatalf("%d messages, want 1", len(bodies))
	}
	n, err := DecodeMessage(AppendMessage(nil, "vault.localhost", "alice@localhost", "m1", bodies[0]))
	if err != nil || n.State == nil || len(n.Changes) != 0 {
		t.Errorf("told %+v, %v; want the state alone", n, err)
	}
}
