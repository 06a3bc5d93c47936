package vault_test

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"pepvault/vault"
)

func TestShared(t *testing.T) {
	t.Parallel()
	runs := vault.Runs{{First: 1, Run: 10}, {First: 42, Run: 11}, {First: 50, Run: 12}}
	tests := []struct {
		name     string
		revision vault.Revision
		run      vault.Run
		want     vault.Revision
	}{
		{"the current state", 57, 12, 57},
		{"an earlier state", 45, 11, 45},
		{"the end of a run", 49, 11, 49},
		{"a tail that was lost with its run still known", 47, 10, 41},
		{"ahead, by the latest run", 60, 12, 57},
		{"ahead, by an unknown run", 60, 99, 0},
		{"an unknown run in the middle", 45, 99, 0},
		{"an unknown run at the start", 30, 99, 0},
		{"before the first write of its run", 41, 11, 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got := runs.Shared(vault.Cursor{Revision: tt.revision, Run: tt.run}, 57)
			if got != tt.want {
				t.Errorf("Shared = %d, want %d", got, tt.want)
			}
		})
	}
}

// After a restore that went back to revision 41.
func TestForked(t *testing.T) {
	t.Parallel()
	runs := vault.Runs{{First: 1, Run: 10}, {First: 30, Run: 11}, {First: 42, Run: 12}}
	tests := []struct {
		name     string
		revision vault.Revision
		run      vault.Run
		known    vault.Revision
		want     vault.Revision
	}{
		{"what the backup has", 35, 11, 41, 35},
		{"the run of the backup went on", 45, 11, 41, 41},
		{"another run followed it", 45, 99, 41, 41},
		{"an unknown run where the vault has another", 41, 99, 41, 0},
		{"a rollback by hand, of which nothing is known", 45, 99, 0, 0},
		{"the same, of a known run", 35, 11, 0, 35},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got := runs.Forked(vault.Cursor{Revision: tt.revision, Run: tt.run}, tt.known, 57)
			if got != tt.want {
				t.Errorf("Forked = %d, want %d", got, tt.want)
			}
		})
	}
}

func TestJudge(t *testing.T) {
	t.Parallel()
	runs := vault.Runs{{First: 1, Run: 10}, {First: 42, Run: 11}}
	v := vault.Vault{Revision: 57, Run: 11, Pruned: 30}
	pass := func(start vault.Revision) vault.Pass { return vault.Pass{Reset: vault.ResetNew, Start: start} }
	tests := []struct {
		name   string
		cursor vault.Cursor
		want   vault.Reset
	}{
		{"current", vault.Cursor{Revision: 57, Run: 11}, vault.NoReset},
		{"by an earlier run", vault.Cursor{Revision: 41, Run: 10}, vault.NoReset},
		{"at the highest pruned tombstone", vault.Cursor{Revision: 30, Run: 10}, vault.NoReset},
		{"below it", vault.Cursor{Revision: 29, Run: 10}, vault.ResetPruned},
		{"in a pass that began later", vault.Cursor{Revision: 3, Run: 10, Pass: pass(50)}, vault.NoReset},
		{"in a pass that began below it", vault.Cursor{Revision: 40, Run: 10, Pass: pass(29)}, vault.ResetPruned},
		{"ahead", vault.Cursor{Revision: 58, Run: 11}, vault.ResetLost},
		{"committed by another run", vault.Cursor{Revision: 50, Run: 10}, vault.ResetLost},
		{"before everything", vault.Cursor{Revision: 0, Run: 10}, vault.ResetLost},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if got := runs.Judge(tt.cursor, v); got != tt.want {
				t.Errorf("Judge = %d, want %d", got, tt.want)
			}
		})
	}
}

// copied is a vault as the file of a store has it: what each revision was, and
// which run wrote it.
type copied struct {
	commits []int // a number of its own for each commit that ever was
	runs    vault.Runs
}

func (c copied) clone() copied { return copied{slices.Clone(c.commits), slices.Clone(c.runs)} }

// Whatever is copied back by hand, a cursor counts only if its whole history
// is still the vault's, and no more of one is called shared than is.
func TestRollbacksAreNoticed(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var now copied
		var run vault.Run = 1
		number := 0
		type held struct {
			cursor  vault.Cursor
			commits []int
		}
		var devices []held
		copies := []copied{{}}
		t.Repeat(map[string]func(*rapid.T){
			"commit": func(*rapid.T) {
				number++
				now.commits = append(now.commits, number)
				revision := vault.Revision(len(now.commits))
				if last, known := now.runs.Of(revision); !known || last != run {
					now.runs = append(now.runs, vault.RunStart{First: revision, Run: run})
				}
				devices = append(devices, held{vault.Cursor{Revision: revision, Run: run}, slices.Clone(now.commits)})
			},
			"restart": func(*rapid.T) { run++ },
			"copy":    func(*rapid.T) { copies = append(copies, now.clone()) },
			"copy back": func(t *rapid.T) {
				now = copies[rapid.IntRange(0, len(copies)-1).Draw(t, "copy")].clone()
				run++
			},
			"": func(t *rapid.T) {
				v := vault.Vault{Revision: vault.Revision(len(now.commits))}
				for _, d := range devices {
					common := 0
					for common < min(len(d.commits), len(now.commits)) && d.commits[common] == now.commits[common] {
						common++
					}
					want := vault.ResetLost
					if common == len(d.commits) {
						want = vault.NoReset
					}
					if got := now.runs.Judge(d.cursor, v); got != want {
						t.Fatalf("%v is judged %d, want %d; runs %v", d.cursor, got, want, now.runs)
					}
					if got := now.runs.Shared(d.cursor, v.Revision); got > vault.Revision(common) {
						t.Fatalf("%v: %d revisions are called shared, %d are; runs %v", d.cursor, got, common, now.runs)
					}
				}
			},
		})
	})
}
