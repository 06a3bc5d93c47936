package limit

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// TestSweepClosesWhatWasLeft makes groups of processes that are there, and of some
// that are not.
func TestSweepClosesWhatWasLeft(t *testing.T) {
	t.Parallel()
	stat := " (a) S 1 1 1 0 -1 4194304 98 0 0 0 1 2 700 800 20 0 1 0 5000 3133440 380\n"
	proc := layout(t, map[string]string{"41/stat": "41" + stat})
	if err := os.Mkdir(filepath.Join(proc, "self"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(proc, "self/ns"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("pid:[4026531836]", filepath.Join(proc, "self/ns/pid")); err != nil {
		t.Fatal(err)
	}
	if got, want := ownerOf(proc, 41), "4026531836-41-5000"; got != want {
		t.Errorf("the owner is %s, want %s", got, want)
	}
	parent := t.TempDir()
	for name, want := range map[string]bool{ // whether it stays
		prefix + "4026531836-41-5000-1": true,
		prefix + "4026531836-41-4999-2": false, // another process had the number
		prefix + "4026531836-42-5000-3": false,
		prefix + "4026531999-42-5000-4": true, // another namespace's
		prefix + "123456789":            true, // who knows whose
		prefix + "4026531836-x-5000-5":  true,
		"system-4026531836-42-5000-6":   true,
	} {
		folder := filepath.Join(parent, name)
		if err := os.Mkdir(folder, 0o700); err != nil {
			t.Fatal(err)
		}
		sweep(parent, proc)
		if _, err := os.Stat(folder); (err == nil) != want {
			t.Errorf("%s: %v; it stays is %t", name, err, want)
		}
	}
}

// TestSweepEndsWhatWasLeft leaves a process in a real group of a process that has
// ended.
func TestSweepEndsWhatWasLeft(t *testing.T) {
	t.Parallel()
	g := real(t, Limits{CPUs: 1})
	if g == nil {
		return
	}
	child := exec.CommandContext(t.Context(), "sleep", "3600")
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	owner := ownerOf("/proc", child.Process.Pid)
	if err := child.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := child.Wait(); err == nil {
		t.Fatal("it ended by itself")
	}
	left := filepath.Join(filepath.Dir(g.made[0]), prefix+owner+"-1")
	if err := os.Mkdir(left, 0o755); err != nil {
		t.Fatal(err)
	}
	old := &Group{version: g.version, made: []string{left}}
	path, args := old.Wrap("sleep", []string{"3600"})
	orphan := exec.CommandContext(t.Context(), path, args...)
	if err := orphan.Start(); err != nil {
		t.Fatal(err)
	}
	next := real(t, Limits{CPUs: 1})
	if next == nil {
		t.Fatal("there are no limits any more")
	}
	if _, err := os.Stat(left); err == nil {
		t.Errorf("the group is still there; its end: %v", old.Close())
	}
	var exit *exec.ExitError
	if err := orphan.Wait(); !errors.As(err, &exit) {
		t.Errorf("it ended with %v", err)
	}
	if _, err := os.Stat(g.made[0]); err != nil {
		t.Errorf("a group that is in use is gone: %v", err)
	}
}
