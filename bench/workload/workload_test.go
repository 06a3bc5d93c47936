package workload_test

import (
	"errors"
	"math"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"pepvault/bench/workload"
)

func drawShape(t *rapid.T) workload.Shape {
	return workload.Shape{
		Seed:    rapid.Uint64().Draw(t, "seed"),
		Users:   rapid.IntRange(1, 300).Draw(t, "users"),
		Devices: rapid.IntRange(1, workload.MaxDevices).Draw(t, "devices"),
		Records: rapid.IntRange(1, 5000).Draw(t, "records"),
		Bytes:   rapid.IntRange(16, 1500).Draw(t, "bytes"),
	}
}

func drawContent(t *rapid.T, s workload.Shape) workload.Content {
	return workload.Content{
		User:    rapid.IntRange(0, s.Users-1).Draw(t, "user"),
		Record:  rapid.IntRange(0, s.Records-1).Draw(t, "record"),
		Version: rapid.Uint32().Draw(t, "version"),
	}
}

// TestContentIsRecognised holds that every content is told from its bytes, and
// that no changed byte, no length and no other seed goes unseen.
func TestContentIsRecognised(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		s := drawShape(t)
		want := drawContent(t, s)
		text := s.AppendRecord(nil, want)
		if len(text) != s.Bytes {
			t.Fatalf("%d bytes, want %d", len(text), s.Bytes)
		}
		got, scratch, err := s.Judge(text, nil)
		if err != nil || got != want {
			t.Fatalf("got %v, %v, want %v", got, err, want)
		}
		changed := slices.Clone(text)
		at := rapid.IntRange(0, len(text)-1).Draw(t, "at")
		changed[at] ^= byte(rapid.IntRange(1, 255).Draw(t, "bits"))
		// Of sixteen bytes nothing but the names is left, so other names are right.
		if got, _, err := s.Judge(changed, scratch); err == nil && (got == want || s.Bytes > 24) {
			t.Fatalf("byte %d was changed, and it passes for %v", at, got)
		}
		for _, wrong := range [][]byte{text[1:], append(slices.Clone(text), 0), nil} {
			if _, _, err := s.Judge(wrong, nil); !errors.Is(err, workload.ErrForeign) {
				t.Fatalf("%d bytes pass: %v", len(wrong), err)
			}
		}
		other := s
		other.Seed++
		if _, _, err := other.Judge(text, nil); !errors.Is(err, workload.ErrForeign) {
			t.Fatalf("it passes under another seed: %v", err)
		}
	})
}

func TestRecordIDs(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		s := drawShape(t)
		want := rapid.IntRange(0, s.Records-1).Draw(t, "record")
		if got, ok := s.Record(s.RecordID(want)); !ok || got != want {
			t.Fatalf("got %d, %t, want %d", got, ok, want)
		}
		for _, id := range []string{"", s.RecordID(s.Records), "x" + s.RecordID(want)[1:], s.RecordID(want) + "0"} {
			if got, ok := s.Record(id); ok {
				t.Fatalf("%q passes for record %d", id, got)
			}
		}
	})
}

// TestPlanIsFixed holds that a plan is the same each time, that its parts are
// not, and that no two saves have one version.
func TestPlanIsFixed(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		plan := workload.Plan{Shape: drawShape(t), Mix: workload.StandardMix, Part: rapid.IntRange(0, workload.MaxPart-1).Draw(t, "part")}
		rate := rapid.Float64Range(1, 500).Draw(t, "rate")
		within := time.Duration(rapid.IntRange(1, 5000).Draw(t, "ms")) * time.Millisecond
		ops := plan.Open(rate, within)
		if !slices.Equal(ops, plan.Open(rate, within)) {
			t.Fatal("the second time it is another plan")
		}
		next := plan
		next.Part++
		seen := map[uint32]bool{}
		last := time.Duration(0)
		for i, op := range slices.Concat(ops, next.Open(rate, within)) {
			if i == len(ops) {
				last = 0
			}
			if op.At < last || op.At >= within {
				t.Fatalf("operation %d is due at %v after one at %v", i, op.At, last)
			}
			last = op.At
			if op.User >= plan.Shape.Users || op.Device >= plan.Shape.Devices || op.Record >= plan.Shape.Records {
				t.Fatalf("operation %d is of nobody: %+v", i, op)
			}
			if op.Kind != workload.Save {
				continue
			}
			if op.Version == 0 || seen[op.Version] {
				t.Fatalf("version %d is used twice", op.Version)
			}
			seen[op.Version] = true
		}
		for i, op := range ops {
			op.At = 0
			if got := plan.Op(i); got != op {
				t.Fatalf("operation %d is %+v by itself, %+v in the row", i, got, op)
			}
		}
	})
}

// TestPlanIsMixed looks at rate and shares of a long plan.
func TestPlanIsMixed(t *testing.T) {
	t.Parallel()
	shape := workload.Shape{Seed: 7, Users: 100, Devices: 3, Records: 256, Bytes: workload.RecordBytes}
	ops := workload.Plan{Shape: shape, Mix: workload.StandardMix}.Open(1000, 60*time.Second)
	counts := map[workload.Kind]int{}
	users := map[int]int{}
	for _, op := range ops {
		counts[op.Kind]++
		users[op.User]++
	}
	total := float64(len(ops))
	for what, of := range map[string]struct{ got, want float64 }{
		"rate":      {total / 60, 1000},
		"downloads": {float64(counts[workload.Download]) / total, 0.08},
		"saves":     {float64(counts[workload.Save]) / total, 0.20},
		"reads":     {float64(counts[workload.Read]) / total, 0.72},
		"users":     {float64(len(users)), 100},
	} {
		if math.Abs(of.got/of.want-1) > 0.05 {
			t.Errorf("%s: got %.3f, want %.3f", what, of.got, of.want)
		}
	}
}

func TestShapeIsChecked(t *testing.T) {
	t.Parallel()
	good := workload.Shape{Users: 1, Devices: 1, Records: 1, Bytes: 16}
	tests := map[string]struct {
		change func(*workload.Shape)
		ok     bool
	}{
		"least":         {func(*workload.Shape) {}, true},
		"no users":      {func(s *workload.Shape) { s.Users = 0 }, false},
		"devices":       {func(s *workload.Shape) { s.Devices = workload.MaxDevices + 1 }, false},
		"no records":    {func(s *workload.Shape) { s.Records = 0 }, false},
		"small records": {func(s *workload.Shape) { s.Bytes = 15 }, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := good
			test.change(&s)
			if err := s.Check(); (err == nil) != test.ok {
				t.Errorf("got %v, want ok %t", err, test.ok)
			}
		})
	}
}

func BenchmarkJudge(b *testing.B) {
	s := workload.Shape{Seed: 1, Users: 1, Devices: 1, Records: 1, Bytes: workload.RecordBytes}
	text := s.AppendRecord(nil, workload.Content{})
	var scratch []byte
	for b.Loop() {
		var err error
		if _, scratch, err = s.Judge(text, scratch); err != nil {
			b.Fatal(err)
		}
	}
}
