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
		"bad config":        pep.Refuse(pep.ErrBadConfig, "max_items is below the number of records"),
		"access model":      pep.ErrAccessModel,
		"precondition":      pep.ErrPrecondition,
		"invalid options":   pep.ErrInvalidOptions,
		"jid required":      pep.ErrJIDRequired,
		"bad affiliation": &pep.Refusal{Err: pep.ErrBadAffiliation, Text: "the owner stays the owner", Node: "notes",
			Affiliations: []vault.Affiliated{{Account: "alice@localhost", Affiliation: vault.Owner}}},
		"key version too low": &pep.Refusal{Err: pep.ErrKeyVersionTooLow, Text: "rotated", Floor: 4},
		"stale": &pep.Refusal{Err: pep.ErrStale, Text: "overtaken", Cursor: "c-58",
			Items: []pep.StateItem{{ID: "x", Revision: 58}, {ID: "y", Revision: 57, Gone: true}}},
		"confirm required": &pep.Refusal{Err: pep.ErrConfirmRequired, Text: "nearly all", Records: 250},
		"too many batches": &pep.Refusal{Err: pep.ErrTooManyBatches, Text: "two are open", Limit: 2},
		"no batch":         vault.ErrNoBatch,

		"bad action":      ErrBadAction,
		"session expired": ErrSessionExpired,
		"no command":      ErrNoCommand,
		"storage":         vault.ErrStorage,
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
