package sqlite

import (
	"bufio"
	"context"
	"database/sql"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"pepvault/vault"
)

// operatorEnv makes the test binary an operator at work, to be killed; it holds
// the task and its files, a line each.
const operatorEnv = "PEPVAULT_TEST_OPERATOR"

func openSQL(t *testing.T, path string) *sql.DB {
	t.Helper()
	db, err := sql.Open("sqlite", dsn(path, "_busy_timeout=5000"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db
}

// operator does its task again and again until it is killed.
func operator(task []string) {
	if task[0] == "confined" {
		confined(task[1], task[2])
		return
	}
	fmt.Println("ready")
	for n := 0; ; n++ {
		var err error
		switch task[0] {
		case "backup": // PATH FOLDER
			_, err = Backup(context.Background(), task[1], filepath.Join(task[2], fmt.Sprint(n, ".db")))
		case "restore": // PATH BACKUP BACKUP
			_, _, err = Restore(context.Background(), task[2+n%2], task[1])
		}
		if err != nil {
			fmt.Println("failed", err)
			os.Exit(1)
		}
		fmt.Println("done")
	}
}

// killOperator runs a task and kills it at some moment of its first rounds.
func killOperator(t *testing.T, task ...string) {
	t.Helper()
	command := exec.CommandContext(t.Context(), os.Args[0])
	command.Env = append(os.Environ(), operatorEnv+"="+strings.Join(task, "\n"))
	output, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(output)
	if !lines.Scan() || lines.Text() != "ready" {
		t.Fatal("the process did not begin:", lines.Text())
	}
	for range rand.IntN(3) {
		if !lines.Scan() || lines.Text() != "done" {
			t.Fatal("the process ended:", lines.Text())
		}
	}
	timer := time.AfterFunc(time.Duration(rand.IntN(60))*time.Millisecond, func() { command.Process.Kill() })
	defer timer.Stop()
	for lines.Scan() {
		if lines.Text() != "done" {
			t.Error(lines.Text())
		}
	}
	command.Wait()
}

// TestKillBackup: the store is as it was, and what has the name of a backup is
// a whole one.
func TestKillBackup(t *testing.T) {
	t.Parallel()
	path := filled(t, 200)
	want := mustVerify(t, path)
	for range *killRounds {
		dir := t.TempDir()
		killOperator(t, "backup", path, dir)
		if got := mustVerify(t, path); got != want {
			t.Errorf("the store holds %+v, want %+v", got, want)
		}
		for _, name := range names(t, dir) {
			if strings.HasPrefix(name, ".") {
				continue
			}
			if got := mustVerify(t, filepath.Join(dir, name)); got != want {
				t.Errorf("%s holds %+v, want %+v", name, got, want)
			}
		}
	}
}

// TestKillRestore: the store is always one or the other backup, in full.
func TestKillRestore(t *testing.T) {
	t.Parallel()
	one, first := backedUp(t, 150)
	two, second := backedUp(t, 200)
	path := filepath.Join(t.TempDir(), "vault.db")
	mustRestore(t, one, path)
	seen := map[vault.ContentHash]int{}
	for range *killRounds {
		killOperator(t, "restore", path, one, two)
		got := mustVerify(t, path)
		if got != first && got != second {
			t.Fatalf("the store holds %+v, want %+v or %+v", got, first, second)
		}
		seen[got.Hash]++
		s := openWith(t, Options{Path: path})
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("%d times one, %d times the other", seen[first.Hash], seen[second.Hash])
}
