package report

import (
	"bytes"
	"errors"
	"flag"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

var update = flag.Bool("update", false, "write the golden files anew")

// golden compares text with a file of testdata.
func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
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
		t.Errorf("%s: -want +got\n%s", name, diff)
	}
}

// epoch is the moment at which the tests' files begin.
var epoch = time.Date(2026, 11, 30, 15, 0, 0, 0, time.UTC)

// testEnvironment is a run of two targets.
func testEnvironment() Environment {
	return Environment{
		Program: "pepvault-bench devel",
		Command: Command([]string{"pepvault-bench", "run", "mix", "--password", "hush", "--seed", "7"}, "--password"),
		Machine: Platform{Go: "go1.26", System: "linux/amd64", Kernel: "6.1", CPU: "a processor", Cores: 2, Memory: 4 << 30},
		Host:    Host{Name: "prosody", Version: "13.0.1", Settings: map[string]string{"gc": "tuned"}},
		Work: Workload{
			Name: "mix", Users: 100, Devices: 3, Records: 256, RecordBytes: 924, Rate: 100,
			Duration: 10 * time.Second, Download: "plain", Seed: 7, Rounds: 2,
		},
		Targets: []string{"component", "pep"},
	}
}

// fill records a run of two rounds in which the first target is twice as fast
// as the second, and returns the verdict.
func fill(t *testing.T, r *Recorder) Verdict {
	t.Helper()
	r.Machine(Machine{At: 1, Round: 1, Memory: 90, Syncs: 50, SyncP50: time.Millisecond, SyncP99: 3 * time.Millisecond, SyncMax: 5 * time.Millisecond})
	at := time.Second
	for round := 1; round <= 2; round++ {
		for i, target := range []string{"component", "pep"} {
			slow := time.Duration(i + 1)
			sample := func(after time.Duration, cpu time.Duration) {
				now := at + after
				for _, name := range []string{Generator, "host"} {
					r.Process(Process{
						At: now, Name: name, Count: 1, User: now/10 + cpu, System: now / 20, Resident: 30 << 20, Peak: 40 << 20,
						Written: int64(now / 1000), Yielded: int64(now / time.Millisecond),
					})
				}
				r.Noise(Noise{At: now, Busy: now / 2, Others: now / 10, Runnable: 2})
			}
			sample(0, 0)
			for n := range 100 {
				kind := [...]Kind{Read, Save, Download, Notify}[n%4]
				latency := slow * time.Duration(n+1) * time.Millisecond
				result := OK
				if n == 50 {
					result = "timeout"
				}
				r.Operation(Operation{
					Target: target, Round: round, Phase: PhaseSteady, Kind: kind,
					Planned: at + time.Duration(n)*100*time.Millisecond,
					Latency: latency, Service: latency / 2, Result: result, Bytes: 924,
				})
			}
			sample(10*time.Second, slow*time.Second)
			r.Phase(Phase{Target: target, Round: round, Name: PhaseSteady, From: at, To: at + 10*time.Second})
			r.Storage(Storage{At: at, Target: target, Round: round, Bytes: 140_000 * int64(slow), Records: 100})
			at += 11 * time.Second
		}
	}
	r.Check(Check{Target: "component", Saves: 50, Notifications: 50})
	r.Check(Check{Target: "pep", Saves: 50, Notifications: 49})
	verdict, err := r.Finish(nil)
	if err != nil {
		t.Fatal(err)
	}
	return verdict
}

// same compares results, histograms by what they hold.
var same = cmp.Options{cmp.AllowUnexported(Results{}, series{}, seriesKey{}, turn{}), cmpopts.EquateEmpty(),
	cmpopts.IgnoreFields(Results{}, "Verdict"),
	cmp.Comparer(func(a, b *hdrhistogram.Histogram) bool { return a.Equals(b) })}

func TestFileIsGolden(t *testing.T) {
	t.Parallel()
	var file bytes.Buffer
	r, err := newRecorder(&file, testEnvironment(), epoch)
	if err != nil {
		t.Fatal(err)
	}
	fill(t, r)
	lines := strings.SplitAfter(file.String(), "\n")
	var kept strings.Builder // the first line of each kind, and the verdict
	seen := make(map[string]bool)
	for _, line := range lines {
		kind, _, _ := strings.Cut(line, ",")
		if !seen[kind] {
			kept.WriteString(line)
		}
		seen[kind] = true
	}
	golden(t, "file.jsonl", kept.String())
	if strings.Contains(file.String(), "hush") {
		t.Error("a secret of the command line is in the file")
	}
}

func TestLoadGivesWhatTheRecorderHad(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "run.jsonl")
	r, err := Create(path, testEnvironment())
	if err != nil {
		t.Fatal(err)
	}
	verdict := fill(t, r)
	results, err := LoadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(r.results, results, same); diff != "" {
		t.Errorf("-recorded +loaded\n%s", diff)
	}
	if results.Verdict == nil || results.Cut {
		t.Fatalf("verdict %v, cut %t", results.Verdict, results.Cut)
	}
	if got, want := results.Verdict.Line(), verdict.Line(); got != want {
		t.Errorf("verdict\ngot  %s\nwant %s", got, want)
	}
	if got, want := results.Judge(nil).Line(), verdict.Line(); got != want {
		t.Errorf("computed again\ngot  %s\nwant %s", got, want)
	}
	if _, err := Create(path, testEnvironment()); !errors.Is(err, os.ErrExist) {
		t.Errorf("a second run in the same file: %v", err)
	}
}

// failing takes so many bytes and then fails.
type failing struct{ left int }

var errDisk = errors.New("disk full")

func (f *failing) Write(p []byte) (int, error) {
	if f.left -= len(p); f.left < 0 {
		return 0, errDisk
	}
	return len(p), nil
}

func TestFullDiskIsToldByFinish(t *testing.T) {
	t.Parallel()
	r, err := NewRecorder(&failing{left: 2000}, testEnvironment())
	if err != nil {
		t.Fatal(err)
	}
	for range 10_000 {
		r.Operation(Operation{Target: "component", Round: 1, Phase: PhaseSteady, Kind: Read, Latency: 1, Result: OK})
	}
	r.Phase(Phase{Target: "component", Round: 1, Name: PhaseSteady, To: time.Second})
	verdict, err := r.Finish(nil)
	if !errors.Is(err, errDisk) {
		t.Errorf("got %v, want %v", err, errDisk)
	}
	if got := verdict.Rate; got != 10_000 {
		t.Errorf("rate %v: the figures did not go on without the file", got)
	}
}

func TestFailedRunHasNoFigures(t *testing.T) {
	t.Parallel()
	var file bytes.Buffer
	r, err := newRecorder(&file, testEnvironment(), epoch)
	if err != nil {
		t.Fatal(err)
	}
	r.Operation(Operation{Target: "component", Round: 1, Phase: PhaseSteady, Kind: Read, Latency: 1, Result: OK})
	r.Phase(Phase{Target: "component", Round: 1, Name: PhaseSteady, To: time.Second})
	verdict, err := r.Finish(errors.New("user 3's record 7 is another one"))
	if err != nil {
		t.Fatal(err)
	}
	const want = `{"workload":"mix","ok":false,"reason":"user 3's record 7 is another one"}`
	if got := verdict.Line(); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	size := file.Len()
	r.Operation(Operation{})
	r.Noise(Noise{})
	if again, err := r.Finish(nil); err != nil || file.Len() != size {
		t.Errorf("after the end: %v, %v, %d bytes more", again, err, file.Len()-size)
	}
}

func TestOperationIsWrittenAsJSONWouldBe(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"ok", "", `q"uote`, `back\slash`, "line\nbreak", "é♥", "a<b", "a>b", "a&b", "\x7f", "\xff"} {
		o := Operation{Target: text, Round: -1, Phase: text, Kind: Kind(text), Planned: 1, Latency: -2, Service: 3, Result: text, Bytes: 1 << 40}
		want, err := encode(o.kind(), o)
		if err != nil {
			t.Fatal(err)
		}
		if got := appendOperation(nil, &o); !bytes.Equal(got, want) {
			t.Errorf("%q\ngot  %s\nwant %s", text, got, want)
		}
	}
}

func BenchmarkOperation(b *testing.B) {
	r, err := NewRecorder(io.Discard, testEnvironment())
	if err != nil {
		b.Fatal(err)
	}
	o := Operation{Target: "component", Round: 1, Phase: PhaseSteady, Kind: Save, Planned: 12_345_678_901, Latency: 1_234_567, Service: 1_134_567, Result: OK, Bytes: 924}
	b.ReportAllocs()
	for b.Loop() {
		r.Operation(o)
	}
}
