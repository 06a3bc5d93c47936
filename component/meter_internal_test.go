package component

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestEveryRequestHasAnOperation compares the table with the operations of
// package pep and with what serve takes beside them.
func TestEveryRequestHasAnOperation(t *testing.T) {
	t.Parallel()
	want := slices.Concat(engineOperations(t), otherCalls(t))
	slices.Sort(want)
	got := []string{}
	for of := range operations {
		got = append(got, of.String())
	}
	slices.Sort(got)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("requests in the source (-) and in the table (+):\n%s", diff)
	}
	names := slices.Sorted(maps.Values(operations))
	if unique := slices.Compact(slices.Clone(names)); len(unique) != len(names) {
		t.Errorf("names occur twice: %v", names)
	}
	for _, name := range Operations() {
		if !regexp.MustCompile(`^[a-z]+(_[a-z]+)*$`).MatchString(name) {
			t.Errorf("%q is no name for a label", name)
		}
	}
	if got, want := len(Operations()), len(operations)+2; got != want {
		t.Errorf("%d values of op, want %d", got, want)
	}
}

func parse(t *testing.T, path string) *ast.File {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	return file
}

// engineOperations are the types with the method that makes a pep.Op.
func engineOperations(t *testing.T) (names []string) {
	t.Helper()
	paths, err := filepath.Glob("../pep/*.go")
	if err != nil || len(paths) == 0 {
		t.Fatal("no sources of pep", err)
	}
	for _, path := range paths {
		for _, decl := range parse(t, path).Decls {
			f, ok := decl.(*ast.FuncDecl)
			if !ok || f.Name.Name != "target" || f.Recv == nil {
				continue
			}
			names = append(names, "pep."+f.Recv.List[0].Type.(*ast.Ident).Name)
		}
	}
	return names
}

// otherCalls are those of package wire in the type switch of serve.
func otherCalls(t *testing.T) (names []string) {
	t.Helper()
	for _, decl := range parse(t, "service.go").Decls {
		f, ok := decl.(*ast.FuncDecl)
		if !ok || f.Name.Name != "serve" {
			continue
		}
		ast.Inspect(f, func(n ast.Node) bool {
			clause, ok := n.(*ast.CaseClause)
			if !ok {
				return true
			}
			for _, e := range clause.List {
				if s, ok := e.(*ast.SelectorExpr); ok && s.X.(*ast.Ident).Name == "wire" {
					names = append(names, "wire."+s.Sel.Name)
				}
			}
			return true
		})
	}
	return names
}

// TestEveryReasonIsListed: what is counted has a series from the beginning.
func TestEveryReasonIsListed(t *testing.T) {
	t.Parallel()
	declared := map[string]int{}
	for _, decl := range parse(t, "meter.go").Decls {
		group, ok := decl.(*ast.GenDecl)
		if !ok || group.Tok != token.CONST {
			continue
		}
		for _, spec := range group.Specs {
			if of, typed := spec.(*ast.ValueSpec).Type.(*ast.Ident); typed {
				declared[of.Name]++
			}
		}
	}
	want := map[string]int{"Delivery": len(Deliveries()), "Rejection": len(Rejections())}
	if diff := cmp.Diff(want, declared); diff != "" {
		t.Errorf("constants that are listed (-) and declared (+):\n%s", diff)
	}
}
