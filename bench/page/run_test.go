package page_test

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"pepvault/bench/page"
)

// TestLoadOfAPipe: a file is read once, so what can be read once is read in full.
func TestLoadOfAPipe(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(filepath.Join("testdata", "runs", "storm.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	pipe := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	written := make(chan error, 1)
	go func() { written <- os.WriteFile(pipe, text, 0o600) }() // until it is read
	run, err := page.Load(pipe)
	if err != nil {
		t.Fatal(err)
	}
	if err := <-written; err != nil {
		t.Error(err)
	}
	if len(run.Timelines) == 0 || len(run.Timelines[0].Ready) == 0 || len(run.Timelines[0].Probes) == 0 {
		t.Errorf("a storm without its moments: %+v", run.Timelines)
	}
}
