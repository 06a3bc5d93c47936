package sqlite

import (
	"bufio"
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"pepvault/vault"
)

// victimEnv makes the test binary a process to be killed; it holds the path.
const victimEnv = "PEPVAULT_TEST_VICTIM"

var killRounds = flag.Int("kill-rounds", 10, "how often TestKill kills a writing process")

// setSize is how many records each transaction of the victim writes.
const setSize = 8

func victimKey(writer int) vault.Key {
	return vault.Key{Account: vault.Account(fmt.Sprintf("w%d@example.org", writer)), Node: "notes"}
}

// victim writes until it is killed, and prints what was acknowledged.
func victim(path string) {
	ctx := context.Background()
	s, err := Open(ctx, Options{Path: path, Logger: quiet()})
	if err != nil {
		fmt.Println("failed", err)
		os.Exit(1)
	}
	fmt.Println("ready")
	var done sync.WaitGroup
	for writer := range 4 {
		done.Go(func() {
			for n := 0; ; n++ {
				revision, err := writeSet(ctx, s, victimKey(writer), n)
				if err != nil {
					fmt.Println("failed", err)
					os.Exit(1)
				}
				fmt.Println("saved", writer, revision) // one write call
			}
		})
	}
	done.Wait()
}

// writeSet gives all records of a set the same payload, or retracts all, in
// one transaction. Now and then it forgets the tombstones.
func writeSet(ctx context.Context, s *Store, key vault.Key, n int) (last vault.Revision, err error) {
	err = s.Update(ctx, key, func(tx vault.Tx) error {
		if _, err := tx.Vault(key); err != nil {
			if _, err := tx.Create(key, vault.Config{}); err != nil {
				return err
			}
		}
		stamp := fmt.Sprint("stamp ", n, rand.Uint64())
		for i := range setSize {
			id := fmt.Sprintf("set%d-%d", n%5, i)
			if n%7 == 6 {
				heads, err := tx.Heads(key, []string{id})
				if err != nil {
					return err
				}
				if heads[0].Revision != 0 && !heads[0].Gone {
					if last, err = tx.Retract(key, id); err != nil {
						return err
					}
					continue
				}
			}
			record := sample(i)
			record.ID, record.Payload.Data = id, []byte(stamp)
			var err error
			if last, err = tx.Put(key, record); err != nil {
				return err
			}
		}
		if n%11 == 10 {
			return tx.Prune(key, 0)
		}
		return nil
	})
	return last, err
}

func TestKill(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "vault.db")
	saved := map[int]vault.Revision{}
	for round := range *killRounds {
		runVictim(t, path, saved)
		checkVictim(t, path, saved)
		if t.Failed() {
			t.Fatalf("in round %d", round)
		}
	}
	if len(saved) == 0 {
		t.Error("nothing was ever saved")
	}
}

// runVictim starts the process, kills it at some moment, and notes what it
// had acknowledged.
func runVictim(t *testing.T, path string, saved map[int]vault.Revision) {
	t.Helper()
	command := exec.CommandContext(t.Context(), os.Args[0])
	command.Env = append(os.Environ(), victimEnv+"="+path)
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
	timer := time.AfterFunc(time.Duration(rand.IntN(300))*time.Millisecond, func() { command.Process.Kill() })
	defer timer.Stop()
	for lines.Scan() {
		var writer int
		var revision vault.Revision
		if _, err := fmt.Sscanf(lines.Text(), "saved %d %d", &writer, &revision); err == nil {
			saved[writer] = revision
		} else if strings.HasPrefix(lines.Text(), "failed") {
			t.Error(lines.Text())
		}
	}
	command.Wait()
}

// checkVictim opens what is left: all that was acknowledged is there, and of
// each transaction all or nothing.
func checkVictim(t *testing.T, path string, saved map[int]vault.Revision) {
	t.Helper()
	s, err := Open(t.Context(), Options{Path: path, Logger: quiet()})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for writer, revision := range saved {
		err := s.View(t.Context(), func(v vault.View) error {
			key := victimKey(writer)
			state, err := v.Vault(key)
			if err != nil {
				return err
			}
			if state.Revision < revision {
				t.Errorf("revision %v was acknowledged, the store has %v", revision, state.Revision)
			}
			page, err := v.Changes(key, 0, vault.PageLimit{Records: 1 << 20, Cost: 1 << 40})
			if err != nil {
				return err
			}
			checkSets(t, page.Changes)
			if n := len(page.Changes); n > 0 && max(state.Pruned, page.Changes[n-1].Revision) != state.Revision {
				t.Errorf("the last change is %v, the vault has %v", page.Changes[n-1].Revision, state.Revision)
			}
			return nil
		})
		if err != nil {
			t.Error(err)
		}
	}
	for _, query := range []string{"PRAGMA integrity_check", "SELECT coalesce((SELECT 'broken' FROM pragma_foreign_key_check LIMIT 1), 'ok')"} {
		var finding string
		if err := s.writer.sql.QueryRowContext(t.Context(), query).Scan(&finding); err != nil || finding != "ok" {
			t.Errorf("%s: %s, %v", query, finding, err)
		}
	}
}

// checkSets finds sets of which only a part was written.
func checkSets(t *testing.T, changes []vault.Change) {
	t.Helper()
	stamps := map[string]map[string]int{}
	for _, c := range changes {
		set, _, _ := strings.Cut(c.ID, "-")
		if stamps[set] == nil {
			stamps[set] = map[string]int{}
		}
		if c.Gone {
			stamps[set]["gone"]++
		} else {
			stamps[set][string(c.Payload.Data)]++
		}
	}
	for set, counts := range stamps {
		if len(counts) != 1 {
			t.Errorf("%s is half of one transaction and half of another: %v", set, counts)
		}
		for _, n := range counts {
			if n != setSize {
				t.Errorf("%s has %d of %d", set, n, setSize)
			}
		}
	}
}
