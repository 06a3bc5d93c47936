package wire

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"pepvault/pep"
	"pepvault/vault"
)

// sentinels are all exported ones, by the name that the source gives them.
var sentinels = map[string]error{
	"pep.ErrForbidden": pep.ErrForbidden, "pep.ErrClosedNode": pep.ErrClosedNode, "pep.ErrBadRequest": pep.ErrBadRequest,
	"pep.ErrNodeRequired": pep.ErrNodeRequired, "pep.ErrItemRequired": pep.ErrItemRequired,
	"pep.ErrPayloadRequired": pep.ErrPayloadRequired, "pep.ErrInvalidPayload": pep.ErrInvalidPayload,
	"pep.ErrPayloadTooBig": pep.ErrPayloadTooBig, "pep.ErrBadName": pep.ErrBadName, "pep.ErrNodeFull": pep.ErrNodeFull,
	"pep.ErrMaxItemsExceeded": pep.ErrMaxItemsExceeded, "pep.ErrTooManyVaults": pep.ErrTooManyVaults,
	"pep.ErrQuotaExceeded": pep.ErrQuotaExceeded, "pep.ErrInvalidJID": pep.ErrInvalidJID,
	"pep.ErrRevisionMismatch": pep.ErrRevisionMismatch,
	"pep.ErrMalformedJID":     pep.ErrMalformedJID, "pep.ErrNotSubscribed": pep.ErrNotSubscribed,
	"pep.ErrPresenceRequired": pep.ErrPresenceRequired, "pep.ErrTooManySubscriptions": pep.ErrTooManySubscriptions,
	"pep.ErrUnknownPage": pep.ErrUnknownPage, "pep.ErrUnsupported": pep.ErrUnsupported,
	"pep.ErrUnknownNamespace": pep.ErrUnknownNamespace, "pep.ErrPolicy": pep.ErrPolicy, "pep.ErrOverloaded": pep.ErrOverloaded,
	"pep.ErrRate":               pep.ErrRate,
	"vault.ErrMalformedAddress": vault.ErrMalformedAddress, "vault.ErrBadCursor": vault.ErrBadCursor,
	"vault.ErrNoVault": vault.ErrNoVault, "vault.ErrNoRecord": vault.ErrNoRecord, "vault.ErrVaultExists": vault.ErrVaultExists,
	"vault.ErrStorage": vault.ErrStorage, "vault.ErrClosed": vault.ErrClosed, "vault.ErrInUse": vault.ErrInUse,
	"vault.ErrNewerSchema": vault.ErrNewerSchema, "vault.ErrDamaged": vault.ErrDamaged,
	"pep.ErrJIDRequired": pep.ErrJIDRequired, "pep.ErrBadConfig": pep.ErrBadConfig, "pep.ErrAccessModel": pep.ErrAccessModel,
	"pep.ErrPrecondition": pep.ErrPrecondition, "pep.ErrInvalidOptions": pep.ErrInvalidOptions,
	"pep.ErrBadAffiliation": pep.ErrBadAffiliation, "pep.ErrKeyVersionTooLow": pep.ErrKeyVersionTooLow,
	"pep.ErrStale": pep.ErrStale, "pep.ErrConfirmRequired": pep.ErrConfirmRequired, "pep.ErrTooManyBatches": pep.ErrTooManyBatches,
	"vault.ErrNoBatch": vault.ErrNoBatch, "vault.ErrBatchExists": vault.ErrBatchExists,
	"wire.ErrMalformedAction": ErrMalformedAction, "wire.ErrBadAction": ErrBadAction, "wire.ErrBadPayload": ErrBadPayload,
	"wire.ErrBadSession": ErrBadSession, "wire.ErrSessionExpired": ErrSessionExpired, "wire.ErrNoCommand": ErrNoCommand,
	"wire.ErrUnknownChunk": ErrUnknownChunk,
}

func TestEverySentinelHasItsFault(t *testing.T) {
	t.Parallel()
	found := slices.Concat(exportedErrors(t, "..", "pep"), exportedErrors(t, "../../vault", "vault"), exportedErrors(t, ".", "wire"))
	// This one is said to a device by itself.
	found = slices.DeleteFunc(found, func(name string) bool { return name == "wire.ErrBadReply" })
	slices.Sort(found)
	if diff := cmp.Diff(slices.Sorted(maps.Keys(sentinels)), found); diff != "" {
		t.Errorf("sentinels known to this test (-) and in the source (+):\n%s", diff)
	}
	for what, err := range sentinels {
		if !slices.ContainsFunc(faults, func(f fault) bool { return f.err == err }) {
			t.Errorf("%s has no row", what)
		}
	}
	if len(faults) != len(sentinels) {
		t.Errorf("%d rows for %d sentinels", len(faults), len(sentinels))
	}
}

func exportedErrors(t *testing.T, dir, pkg string) []string {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, path := range paths {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, decl := range file.Decls {
			if d, ok := decl.(*ast.GenDecl); ok && d.Tok == token.VAR {
				for _, spec := range d.Specs {
					for _, n := range spec.(*ast.ValueSpec).Names {
						if strings.HasPrefix(n.Name, "Err") {
							names = append(names, pkg+"."+n.Name)
						}
					}
				}
			}
		}
	}
	return names
}

func TestErrorsComeBack(t *testing.T) {
	t.Parallel()
	for what, sentinel := range sentinels {
		refusal := &pep.Refusal{Err: sentinel, Text: "a < b & 'c'", Feature: "f", Bytes: 12, Limit: 10, RetryAfter: 3, Floor: 4,
			Cursor: "c-5", Items: []pep.StateItem{{ID: "a&b", Revision: 3}, {ID: "c", Revision: 4, Gone: true}}, Records: 9,
			Node: "notes", Affiliations: []vault.Affiliated{{Account: "alice@localhost", Affiliation: vault.Owner}, {Account: "bob@localhost"}}}
		raw := AppendError(nil, request, fmt.Errorf("engine: %w", refusal))
		_, err := DecodeReply(raw, Ping{})
		got := new(StanzaError)
		if !errors.As(err, &got) {
			t.Fatalf("%s: %v", what, err)
		}
		f := faultOf(sentinel)
		want := &StanzaError{Type: f.kind, Condition: f.condition, Text: refusal.Text}
		switch f.special.space {
		case nsPubsubErrors:
			want.Pubsub = f.special.local
		case nsCommands:
			want.Command = f.special.local
		}
		switch sentinel {
		case pep.ErrBadAffiliation:
			want.Node, want.Affiliations = refusal.Node, refusal.Affiliations
		case pep.ErrKeyVersionTooLow:
			want.Own, want.Floor = "key-version-too-low", 4
		case pep.ErrRevisionMismatch:
			want.Own, want.Cursor, want.Items = "revision-mismatch", refusal.Cursor, refusal.Items
		case pep.ErrStale:
			want.Own, want.Cursor, want.Items = "stale", refusal.Cursor, refusal.Items
		case pep.ErrConfirmRequired:
			want.Own, want.Records = "confirm-required", 9
		case pep.ErrTooManyBatches:
			want.Own, want.Limit = "too-many-batches", 10
		case pep.ErrUnsupported:
			want.Feature = "f"
		case pep.ErrQuotaExceeded:
			want.Own, want.Bytes, want.Limit = "quota-exceeded", 12, 10
		case pep.ErrOverloaded, pep.ErrRate:
			want.Own, want.RetryAfter = "retry", 3
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got)\n%s", what, diff)
		}
	}
}

// What is not for the device stays here.
func TestOnlyRefusalsSpeak(t *testing.T) {
	t.Parallel()
	for _, err := range []error{errors.New("s3cret"), fmt.Errorf("s3cret: %w", vault.ErrStorage), nil} {
		raw := string(AppendError(nil, request, err))
		if strings.Contains(raw, "s3cret") || strings.Contains(raw, "<text") || !strings.Contains(raw, "<internal-server-error") {
			t.Errorf("%v went out as %s", err, raw)
		}
	}
}
