package sqlite

import (
	"bufio"
	"context"
	"errors"
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

// setSize is how many records each transaction of the victim writes, but for a
// purge: that takes purgedSets sets at once, whose names need more than one row.
const (
	setSize    = 8
	purgedSets = 1 + 2*burialNames/setSize
)

func victimKey(writer int) vault.Key {
	return vault.Key{Account: vault.Account(fmt.Sprintf("w%d@example.org", writer)), Node: "notes"}
}

// victim writes and cleans up until it is killed, and prints what was
// acknowledged.
func victim(path string) {
	ctx := context.Background()
	s, err := Open(ctx, Options{Path: path, Logger: quiet()})
	if err != nil {
		fmt.Println("failed", err)
		os.Exit(1)
	}
	still(s)
	fmt.Println("ready")
	var done sync.WaitGroup
	done.Go(func() {
		for {
			if _, err := s.cleaner.clean(ctx); err != nil {
				fmt.Println("failed", err)
				os.Exit(1)
			}
		}
	})
	for writer := range 4 {
		done.Go(func() {
			// Not from 0, so that each kind of transaction is as likely.
			for n := rand.IntN(1000); ; n++ {
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
// one transaction. Now and then it purges the vault instead, or forgets the
// tombstones.
func writeSet(ctx context.Context, s *Store, key vault.Key, n int) (last vault.Revision, err error) {
	err = s.Update(ctx, key, func(tx vault.Tx) error {
		if _, err := tx.Vault(key); err != nil {
			if _, err := tx.Create(key, vault.Config{}); err != nil {
				return err
			}
		}
		if n%6 == 5 {
			last, err = purgeSets(tx, key)
			return err
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
		if err := setPeople(tx, key, n); err != nil {
			return err
		}
		if err := setBatch(tx, key, n); err != nil {
			return err
		}
		if n%4 == 2 { // whole sets
			return tx.Prune(key, setSize*rand.IntN(purgedSets))
		}
		return nil
	})
	return last, err
}

// purgeSets writes many sets and purges the vault.
func purgeSets(tx vault.Tx, key vault.Key) (last vault.Revision, err error) {
	for set := range purgedSets {
		for i := range setSize {
			record := sample(i)
			record.ID = fmt.Sprintf("set%d-%d", set, i)
			if _, err := tx.Put(key, record); err != nil {
				return 0, err
			}
		}
	}
	purged, err := tx.Purge(key)
	if len(purged) > 0 {
		last = purged[len(purged)-1].Revision
	}
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
			saved[writer] = max(saved[writer], revision) // 0: nothing was there to purge
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
	before := mustVerify(t, path)
	s, err := Open(t.Context(), Options{Path: path, Logger: quiet()})
	if err != nil {
		t.Fatal(err)
	}
	still(s)
	checkSaved(t, s, saved)
	mustClean(t, s) // what the victim left of it
	for writer := range saved {
		s.vaults.drop(victimKey(writer), s.seq)
	}
	checkSaved(t, s, saved)
	for _, table := range []string{"vault", "batch"} {
		if n := count(t, s, table+" WHERE waste = 1"); n != 0 {
			t.Errorf("%d rows in %s are marked after the clean-up", n, table)
		}
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if after := mustVerify(t, path); after != before {
		t.Errorf("%+v after the clean-up, %+v before", after, before)
	}
}

// checkSaved looks at what everybody sees.
func checkSaved(t *testing.T, s *Store, saved map[int]vault.Revision) {
	t.Helper()
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
			page, err := v.Changes(key, 0, vault.PageLimit{Records: 1 << 20, Cost: 1 << 30})
			if err != nil {
				return err
			}
			checkSets(t, page.Changes)
			checkPeople(t, v, key)
			checkBatch(t, v, key)
			if n := len(page.Changes); n > 0 && max(state.Pruned, page.Changes[n-1].Revision) != state.Revision {
				t.Errorf("the last change is %v, the vault has %v", page.Changes[n-1].Revision, state.Revision)
			}
			return nil
		})
		if err != nil {
			t.Error(err)
		}
	}
}

// people are affiliated and subscribed together.
var people = []vault.Account{"a@example.org", "b@example.org", "c@example.org"}

// setPeople makes all of them members with a subscription, or has all leave.
func setPeople(tx vault.Tx, key vault.Key, n int) error {
	for _, account := range people {
		if n%3 == 2 {
			if err := tx.Affiliate(key, vault.Affiliated{Account: account}); err != nil {
				return err
			}
			continue
		}
		if err := tx.Affiliate(key, vault.Affiliated{Account: account, Affiliation: vault.Member}); err != nil {
			return err
		}
		if err := tx.Subscribe(key, vault.Subscription{Account: account}); err != nil {
			return err
		}
	}
	return nil
}

func checkPeople(t *testing.T, v vault.View, key vault.Key) {
	t.Helper()
	affiliated, err1 := v.Affiliations(key)
	subscribers, err2 := v.Subscriptions(key)
	if err := errors.Join(err1, err2); err != nil {
		t.Error(err)
	}
	if n := len(affiliated); n != len(subscribers) || n != 0 && n != len(people) {
		t.Errorf("%d affiliated, %d subscribed", n, len(subscribers))
	}
}

// setBatch begins a batch and stages a set of changes in it, or ends it.
func setBatch(tx vault.Tx, key vault.Key, n int) error {
	batch := vault.BatchKey{Account: key.Account, ID: "batch"}
	b, err := tx.Batch(batch)
	switch {
	case errors.Is(err, vault.ErrNoBatch):
		if err := tx.BeginBatch(vault.Batch{BatchKey: batch, Vault: key, Expires: time.UnixMilli(1)}); err != nil {
			return err
		}
	case err != nil:
		return err
	case b.Outcome.End == vault.BatchOpen && n%2 == 0:
		return tx.EndBatch(batch, vault.BatchOutcome{End: vault.BatchCommitted, Previous: "before", Cursor: "after"})
	default:
		return tx.DropBatch(batch)
	}
	state, err := tx.Vault(key)
	if err != nil {
		return err
	}
	for i := range setSize {
		record := sample(i)
		staged := vault.Staged{ID: record.ID, Epoch: state.Epoch, Held: state.Revision}
		if err := tx.Stage(batch, staged, record.Payload); err != nil {
			return err
		}
	}
	return nil
}

func checkBatch(t *testing.T, v vault.View, key vault.Key) {
	t.Helper()
	batch, err := v.Batch(vault.BatchKey{Account: key.Account, ID: "batch"})
	if errors.Is(err, vault.ErrNoBatch) {
		return
	}
	staged, err2 := v.Staged(batch.BatchKey)
	if err := errors.Join(err, err2); err != nil {
		t.Error(err)
	}
	want := setSize
	if batch.Outcome.End != vault.BatchOpen {
		want = 0
	}
	if len(staged) != want || batch.Changes != want {
		t.Errorf("%d changes are staged, %d are counted, want %d", len(staged), batch.Changes, want)
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
