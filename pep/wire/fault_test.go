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
	"pep.ErrMalformedJID": pep.ErrMalformedJID, "pep.ErrNotSubscribed": pep.ErrNotSubscribed,
	"pep.ErrPresenceRequired": pep.ErrPresenceRequired, "pep.ErrTooManySubscriptions": pep.ErrTooManySubscriptions,
	"pep.ErrUnknownPage": pep.ErrUnknownPage, "pep.ErrUnsupported": pep.ErrUnsupported,
	"pep.ErrUnknownNamespace": pep.ErrUnknownNamespace, "pep.ErrPolicy": pep.ErrPolicy, "pep.ErrOverloaded": pep.ErrOverloaded,
	"vault.ErrMalformedAddress": vault.ErrMalformedAddress, "vault.ErrBadCursor": vault.ErrBadCursor,
	"vault.ErrNoVault": vault.ErrNoVault, "vault.ErrNoRecord": vault.ErrNoRecord, "vault.ErrVaultExists": vault.ErrVaultExists,
	"vault.ErrStorage": vault.ErrStorage, "vault.ErrClosed": vault.ErrClosed, "vault.ErrInUse": vault.ErrInUse,
	"vault.ErrNewerSchema": vault.ErrNewerSchema,
}

func TestEverySentinelHasItsFault(t *testing.T) {
	t.Parallel()
	found := append(exportedErrors(t, "..", "pep"), exportedErrors(t, "../../vault", "vault")...)
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
		refusal := &pep.Refusal{Err: sentinel, Text: "a < b & 'c'", Feature: "f", Bytes: 12, Limit: 10, RetryAfter: 3}
		raw := AppendError(nil, request, fmt.Errorf("engine: %w", refusal))
		_, err := DecodeReply(raw, Ping{})
		got := new(StanzaError)
		if !errors.As(err, &got) {
			t.Fatalf("%s: %v", what, err)
		}
		f := faultOf(sentinel)
		want := &StanzaError{Type: f.kind, Condition: f.condition, Pubsub: f.pubsub, Text: refusal.Text}
		switch sentinel {
		case pep.ErrUnsupported:
			want.Feature = "f"
		case pep.ErrQuotaExceeded:
			want.Bytes, want.Limit = 12, 10
		case pep.ErrOverloaded:
			want.RetryAfter = 3
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
