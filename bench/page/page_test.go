package page_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pepvault/bench/page"
)

var update = flag.Bool("update", false, "write the golden files anew")

// runs are those of testdata/runs: real ones, of which most samples were left
// out, so their rates are too low.
func runs(t *testing.T) []page.Run {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("testdata", "runs", "*.jsonl"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no runs: %v", err)
	}
	var all []page.Run
	for _, file := range files {
		run, err := page.Load(file)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, run)
	}
	return all
}

func write(t *testing.T, path string, to func(io.Writer) error) {
	t.Helper()
	var b bytes.Buffer
	if err := to(&b); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, b.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
}

// TestGolden holds Markdown and JSON of real runs to what was read and found
// right. `-update` writes them anew.
func TestGolden(t *testing.T) {
	t.Parallel()
	report := page.Build(runs(t))
	for name, writer := range map[string]func(io.Writer) error{"report.md": report.WriteMarkdown, "report.json": report.WriteJSON} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			golden := filepath.Join("testdata", name)
			if *update {
				write(t, golden, writer)
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			var got bytes.Buffer
			if err := writer(&got); err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(got.Bytes(), want) {
				t.Errorf("differs from %s: %s", golden, firstDifference(got.String(), string(want)))
			}
		})
	}
}

func firstDifference(got, want string) string {
	a, b := strings.Split(got, "\n"), strings.Split(want, "\n")
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			return "line " + a[i] + "\nwant " + b[i]
		}
	}
	return "one is longer"
}

// TestOrder: the report does not depend on the order of the files.
func TestOrder(t *testing.T) {
	t.Parallel()
	forth := runs(t)
	back := slices.Clone(forth)
	slices.Reverse(back)
	var a, b bytes.Buffer
	if err := page.Build(forth).WriteHTML(&a); err != nil {
		t.Fatal(err)
	}
	if err := page.Build(back).WriteHTML(&b); err != nil {
		t.Fatal(err)
	}
	if a.String() != b.String() {
		t.Error(firstDifference(a.String(), b.String()))
	}
}

// TestNoFolders: nothing says where the files lay when they were measured.
func TestNoFolders(t *testing.T) {
	t.Parallel()
	report := page.Build(runs(t))
	for name, writer := range map[string]func(io.Writer) error{"HTML": report.WriteHTML, "Markdown": report.WriteMarkdown, "JSON": report.WriteJSON} {
		var got bytes.Buffer
		if err := writer(&got); err != nil {
			t.Fatal(err)
		}
		for _, folder := range []string{"/home/bench", "results/", "testdata"} {
			if strings.Contains(got.String(), folder) {
				t.Errorf("%s names the folder %s", name, folder)
			}
		}
		if !strings.Contains(got.String(), "--out storm.jsonl") {
			t.Errorf("%s does not say how the storm is repeated", name)
		}
	}
}

// TestJSON: what was written is read as the same report.
func TestJSON(t *testing.T) {
	t.Parallel()
	report := page.Build(runs(t))
	var first, second bytes.Buffer
	if err := report.WriteJSON(&first); err != nil {
		t.Fatal(err)
	}
	var again page.Report
	if err := json.Unmarshal(first.Bytes(), &again); err != nil {
		t.Fatal(err)
	}
	if err := again.WriteJSON(&second); err != nil {
		t.Fatal(err)
	}
	if first.String() != second.String() {
		t.Error(firstDifference(second.String(), first.String()))
	}
}
