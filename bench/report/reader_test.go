package report

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// checkSpoiled changes bytes of a file and holds that what is not JSON of ours
// is refused with its line.
func checkSpoiled(t *testing.T, whole []byte) {
	rapid.Check(t, func(t *rapid.T) {
		spoiled := bytes.Clone(whole)
		for range rapid.IntRange(1, 4).Draw(t, "changes") {
			spoiled[rapid.IntRange(0, len(spoiled)-1).Draw(t, "at")] = rapid.Byte().Draw(t, "byte")
		}
		results, err := Load(bytes.NewReader(spoiled))
		if err == nil {
			results.Summary() // whatever it says now
			return
		}
		if !errors.Is(err, ErrDamaged) && !errors.Is(err, ErrSchema) || !strings.HasPrefix(err.Error(), "line ") {
			t.Errorf("got %v", err)
		}
	})
}

func TestReaderRefuses(t *testing.T) {
	t.Parallel()
	head := `{"record":"environment","schema":1,"workload":{"name":"mix"}}` + "\n"
	for name, test := range map[string]struct {
		text, want string
		err        error
	}{
		"nothing":           {"", "line 1: no environment", ErrDamaged},
		"another file":      {"hello\n", "line 1: no environment", ErrDamaged},
		"no environment":    {`{"record":"noise"}` + "\n", "line 1: no environment", ErrDamaged},
		"newer":             {`{"record":"environment","schema":2}` + "\n", "line 1: its format is 2, this program reads 1", ErrSchema},
		"bad environment":   {`{"record":"environment","schema":1,"workload":3}` + "\n", "line 1: json", ErrDamaged},
		"unknown record":    {head + `{"record":"song"}` + "\n", `line 2: no record is called "song"`, ErrDamaged},
		"environment again": {head + head, `line 2: no record is called "environment"`, ErrDamaged},
		"no JSON":           {head + "\n\n", "line 2: ", ErrDamaged},
		"wrong type":        {head + `{"record":"operation","round":"one"}` + "\n", "line 2: ", ErrDamaged},
		"negative":          {head + `{"record":"check","target":"component","saves":5,"lost_saves":-1}` + "\n", "line 2: lost_saves is -1", ErrDamaged},
		"negative latency":  {head + `{"record":"operation","op":"read","latency_ns":-5}` + "\n", "line 2: latency_ns is -5", ErrDamaged},
		"endless latency":   {head + `{"record":"operation","op":"read","latency_ns":9223372036854775807}` + "\n", "line 2: latency_ns is 9", ErrDamaged},
		"huge":              {head + `{"record":"machine","memory_ns":1e300}` + "\n", "line 2: memory_ns is 1e+300", ErrDamaged},
		"no number":         {head + `{"record":"machine","memory_ns":NaN}` + "\n", "line 2: ", ErrDamaged},
		"negative figure":   {head + `{"record":"machine","memory_ns":-3.5}` + "\n", "line 2: memory_ns is -3.5", ErrDamaged},
		"too huge":          {head + `{"record":"machine","memory_ns":1e999}` + "\n", "line 2: ", ErrDamaged},
		"huge, inside":      {head + `{"record":"capacity-step","people":1,"seen":{"p95_ms":1e300}}` + "\n", "line 2: p95_ms is 1e+300", ErrDamaged},
		"negative, by name": {head + `{"record":"writes","written_bytes":{"prosody":-1}}` + "\n", "line 2: written_bytes is -1", ErrDamaged},
		"negative users":    {`{"record":"environment","schema":1,"workload":{"users":-1}}` + "\n", "line 1: users is -1", ErrDamaged},
		"backwards":         {head + `{"record":"phase","from_ns":2,"to_ns":1}` + "\n", "line 2: from_ns is 2ns, and to_ns is 1ns", ErrDamaged},
		"behind it":         {head + `{"record":"verdict","workload":"mix","ok":false}` + "\n" + `{"record":"check"}` + "\n", "line 3: a check behind the verdict", ErrDamaged},
		"two verdicts":      {head + strings.Repeat(`{"record":"verdict","workload":"mix","ok":false}`+"\n", 2), "line 3: a verdict behind the verdict", ErrDamaged},
		"of another":        {head + `{"record":"verdict","workload":"max","ok":true}` + "\n", `line 2: the verdict is of "max", the file of "mix"`, ErrDamaged},
		"other checks":      {head + `{"record":"check","saves":5}` + "\n" + `{"record":"verdict","workload":"mix","ok":true,"checks":[{"saves":6}]}` + "\n", "line 3: the verdict's checks are not", ErrDamaged},
		"good, and lost":    {head + `{"record":"check","saves":5,"lost_saves":1}` + "\n" + `{"record":"verdict","workload":"mix","ok":true,"checks":[{"saves":5,"lost_saves":1}]}` + "\n", "line 3: the verdict is good, and the check", ErrDamaged},
		"kept, and missed":  {head + `{"record":"gate","gate":"lost","value":3,"most":0,"ok":true}` + "\n" + `{"record":"verdict","workload":"mix","ok":true,"gates":[{"gate":"lost","value":3,"most":0,"ok":true}]}` + "\n", "line 3: the bound", ErrDamaged},
		"more than all":     {head + `{"record":"capacity","people":3,"plan_people":4}` + "\n", "line 2: plan_people is 4, and people is 3", ErrDamaged},
		"endless line":      {head + strings.Repeat("x", lineBytes+1), fmt.Sprintf("line 2: longer than %d bytes", lineBytes), ErrDamaged},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "run.jsonl")
			if err := os.WriteFile(path, []byte(test.text), 0o600); err != nil {
				t.Fatal(err)
			}
			_, err := LoadFile(path)
			if !errors.Is(err, test.err) || !strings.HasPrefix(err.Error(), path+": "+test.want) {
				t.Errorf("got %v, want %q", err, test.want)
			}
		})
	}
	if _, err := LoadFile(filepath.Join(t.TempDir(), "none")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a missing file: %v", err)
	}
}

// TestLongLine holds that a line longer than the buffer is read.
func TestLongLine(t *testing.T) {
	t.Parallel()
	text := strings.Repeat("x", 200_000)
	file := `{"record":"environment","schema":1,"program":"` + text + `"}` + "\n" + `{"record":"operation","result":"` + text + `"}` + "\n"
	r, err := NewReader(strings.NewReader(file))
	if err != nil {
		t.Fatal(err)
	}
	record, err := r.Next()
	if err != nil || record.(Operation).Result != text || r.Environment.Program != text {
		t.Errorf("got %v", err)
	}
}

// TestLastLine: a last line that lacks nothing but its end counts, one that was
// cut off does not.
func TestLastLine(t *testing.T) {
	t.Parallel()
	head := `{"record":"environment","schema":1,"workload":{"name":"mix"}}` + "\n"
	const verdict = `{"record":"verdict","workload":"mix","ok":true}`
	for n := range len(verdict) + 1 {
		results, err := Load(strings.NewReader(head + verdict[:n]))
		if err != nil {
			t.Fatalf("%d bytes: %v", n, err)
		}
		whole := n == len(verdict)
		if got := results.Verdict != nil; got != whole || results.Cut != (n > 0 && !whole) {
			t.Errorf("%d of %d bytes: a verdict %t, cut off %t", n, len(verdict), got, results.Cut)
		}
	}
}

// TestShrinking: a database may become smaller, and a difference of two of the
// kernel's clocks fall below 0.
func TestShrinking(t *testing.T) {
	t.Parallel()
	_, err := Load(strings.NewReader(`{"record":"environment","schema":1}
{"record":"writes","database_grown_bytes":-4096,"log_grown_bytes":-4096}
{"record":"noise","others_ns":-1000}
{"record":"verdict","workload":"","ok":true,"noise":{"others_cores":-0.001}}
`))
	if err != nil {
		t.Error(err)
	}
}
