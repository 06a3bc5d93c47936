package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

const module = "pepvault"

// arrows says which packages of ours a package may import; a name that ends
// in /... stands for all packages below it, too. docs/architecture.md says
// why.
var arrows = []struct {
	from string
	to   []string
}{
	{"vault", nil},
	{"vault/seal", []string{"vault"}},
	{"vault/device/...", []string{"vault", "vault/seal", "vault/device/...", "pep", "pep/wire"}},
	{"pep", []string{"vault"}},
	{"pep/wire", []string{"pep", "vault"}},
	{"component", []string{"component/link", "component/lane", "pep", "pep/wire", "vault"}},
	{"component/link", nil},
	{"component/lane", nil},
	{"component/loopback", nil},
	{"component/hosttest", []string{"component/loopback"}},
	// Tests alone, apart from those of component: the store that they use is
	// storetest's.
	{"component/live", []string{"component", "component/link", "component/lane", "pep", "pep/wire", "vault"}},
	{"store/sqlite", []string{"vault"}},
	{"store/postgres", []string{"vault"}},
	{"store/storetest", []string{"vault"}},
	// Open returns a vault.Store, so the store needs vault beside its drivers.
	{"store", []string{"store/sqlite", "store/postgres", "vault"}},
	// The echo is the service without its engine and store.
	{"bench/echo", []string{"component/link", "component/lane", "pep", "pep/wire", "vault"}},
	{"bench/...", []string{"bench/...", "vault", "vault/seal", "vault/device/...", "pep", "pep/wire", "component/loopback"}},
	{"configs", nil},
	{"cmd/...", []string{"vault/...", "pep/...", "component", "component/link", "component/lane", "component/loopback", "store", "store/sqlite", "store/postgres", "bench/...", "configs"}},
}

// testArrows are what any test may import beside that.
var testArrows = []string{"component/hosttest", "component/loopback", "store/storetest", "store"}

// foreign says what of others a package must do without.
var foreign = []struct {
	from   string
	banned []string
}{
	{"vault", []string{"encoding/xml", "mellium.im/...", "database/sql/...", "modernc.org/...", "net"}},
	{"pep", []string{"encoding/xml", "mellium.im/...", "database/sql/...", "modernc.org/...", "net"}},
	{"store/sqlite", []string{"encoding/xml", "mellium.im/..."}},
}

// topFolders are all folders that the project's top level may have.
var topFolders = []string{".ci", ".git", "bench", "cmd", "component", "configs", "docs", "pep", "store", "vault"}

// goPackage is what "go list -json" tells of a package.
type goPackage struct {
	ImportPath   string
	Imports      []string
	TestImports  []string
	XTestImports []string
}

// within reports whether path is name or, if name ends in /..., below it.
func within(path, name string) bool {
	if above, ok := strings.CutSuffix(name, "/..."); ok {
		return path == above || strings.HasPrefix(path, above+"/")
	}
	return path == name
}

func anyWithin(path string, names []string) bool {
	return slices.ContainsFunc(names, func(name string) bool { return within(path, name) })
}

// ours returns those of the imports that are packages of this module, without
// its name.
func ours(imports []string) []string {
	var all []string
	for _, path := range imports {
		if rest, ok := strings.CutPrefix(path, module+"/"); ok {
			all = append(all, rest)
		}
	}
	return all
}

// strays returns what is wrong with the imports of a package, a sentence each.
func strays(p goPackage) []string {
	from := strings.TrimPrefix(p.ImportPath, module+"/")
	i := slices.IndexFunc(arrows, func(row struct {
		from string
		to   []string
	}) bool {
		return within(from, row.from)
	})
	if i < 0 {
		return []string{from + " has no row in the table of imports"}
	}
	var wrong []string
	for _, to := range ours(p.Imports) {
		if !anyWithin(to, arrows[i].to) {
			wrong = append(wrong, from+" imports "+to)
		}
	}
	for _, to := range ours(slices.Concat(p.TestImports, p.XTestImports)) {
		if to != from && !anyWithin(to, arrows[i].to) && !anyWithin(to, testArrows) {
			wrong = append(wrong, "a test of "+from+" imports "+to)
		}
	}
	for _, row := range foreign {
		for _, to := range p.Imports {
			if row.from == from && anyWithin(to, row.banned) {
				wrong = append(wrong, from+" imports "+to)
			}
		}
	}
	return wrong
}

func TestImports(t *testing.T) {
	t.Parallel()
	decoder := json.NewDecoder(bytes.NewReader(goCommand(t, "list", "-e", "-json=ImportPath,Imports,TestImports,XTestImports", "./...")))
	count := 0
	for {
		var p goPackage
		err := decoder.Decode(&p)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		count++
		for _, wrong := range strays(p) {
			t.Error(wrong)
		}
	}
	if count < 2 { // at least this one and configs
		t.Errorf("go list knows %d packages", count)
	}
}

// TestImportsAreNoticed holds that the table refuses what it should.
func TestImportsAreNoticed(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		p    goPackage
		want string
	}{
		"engine to component":  {goPackage{ImportPath: "pepvault/pep", Imports: []string{"pepvault/component"}}, "pep imports component"},
		"domain to store":      {goPackage{ImportPath: "pepvault/vault", Imports: []string{"pepvault/store"}}, "vault imports store"},
		"service to device":    {goPackage{ImportPath: "pepvault/component", Imports: []string{"pepvault/vault/device"}}, "component imports vault/device"},
		"service to seal":      {goPackage{ImportPath: "pepvault/component", Imports: []string{"pepvault/vault/seal"}}, "component imports vault/seal"},
		"program to hosttest":  {goPackage{ImportPath: "pepvault/cmd/pepvault", Imports: []string{"pepvault/component/hosttest"}}, "cmd/pepvault imports component/hosttest"},
		"program to storetest": {goPackage{ImportPath: "pepvault/cmd/pepvault", Imports: []string{"pepvault/store/storetest"}}, "cmd/pepvault imports store/storetest"},
		"test":                 {goPackage{ImportPath: "pepvault/pep", TestImports: []string{"pepvault/pep/wire"}}, "a test of pep imports pep/wire"},
		"outer test":           {goPackage{ImportPath: "pepvault/pep", XTestImports: []string{"pepvault/pep", "pepvault/component"}}, "a test of pep imports component"},
		"XML in the engine":    {goPackage{ImportPath: "pepvault/pep", Imports: []string{"encoding/xml"}}, "pep imports encoding/xml"},
		"SQL in the domain":    {goPackage{ImportPath: "pepvault/vault", Imports: []string{"database/sql/driver"}}, "vault imports database/sql/driver"},
		"XML in the store":     {goPackage{ImportPath: "pepvault/store/sqlite", Imports: []string{"mellium.im/xmlstream"}}, "store/sqlite imports mellium.im/xmlstream"},
		"new package":          {goPackage{ImportPath: "pepvault/util"}, "util has no row in the table of imports"},
		"good":                 {goPackage{ImportPath: "pepvault/component", Imports: []string{"pepvault/pep/wire", "net"}, XTestImports: []string{"pepvault/component", "pepvault/component/hosttest", "pepvault/store"}}, ""},
		"device inside":        {goPackage{ImportPath: "pepvault/vault/device", Imports: []string{"pepvault/vault/device/c2s", "pepvault/pep/wire"}}, ""},
		"demo":                 {goPackage{ImportPath: "pepvault/cmd/pepvault", Imports: []string{"pepvault/component/loopback", "pepvault/vault/device/c2s"}}, ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := strings.Join(strays(test.p), "\n"); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

func TestTopFolders(t *testing.T) {
	t.Parallel()
	entries, err := os.ReadDir("../..")
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		if entry.IsDir() && !slices.Contains(topFolders, entry.Name()) {
			t.Errorf("folder %s at the top is none of %v", entry.Name(), topFolders)
		}
	}
}

// TestMelliumVersion holds the version that the stream was measured with.
func TestMelliumVersion(t *testing.T) {
	t.Parallel()
	const want = "v0.22.0"
	got := strings.TrimSpace(string(goCommand(t, "list", "-m", "-f", "{{.Version}}", "mellium.im/xmpp")))
	if got != want {
		t.Errorf("mellium.im/xmpp is %s, want %s", got, want)
	}
}

// goCommand runs the go command at the top of the module.
func goCommand(t *testing.T, args ...string) []byte {
	t.Helper()
	command := exec.CommandContext(t.Context(), "go", args...)
	command.Dir = "../.."
	var stderr bytes.Buffer
	command.Stderr = &stderr
	out, err := command.Output()
	if err != nil {
		t.Fatalf("go %s: %v\n%s", strings.Join(args, " "), err, &stderr)
	}
	return out
}
