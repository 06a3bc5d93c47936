package cache_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pepvault/vault/device/cache"
	"pepvault/vault/seal"
)

// locked is a lock with its root.
func locked(t *testing.T, text string) (seal.Lock, seal.Root) {
	t.Helper()
	lock := seal.NewLock(seal.KeyFile)
	root, err := lock.Root([]byte(strings.Repeat(text, seal.MinKeyFile)))
	if err != nil {
		t.Fatal(err)
	}
	return lock, root
}

func acquire(t *testing.T, dir string) *cache.Store {
	t.Helper()
	s, err := cache.Acquire(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// saved is a folder in which a state is kept.
func saved(t *testing.T, state string) (dir string, root seal.Root, names seal.NameKey) {
	t.Helper()
	dir, names = filepath.Join(t.TempDir(), "a", "b"), seal.NewNameKey()
	lock, root := locked(t, "k")
	s := acquire(t, dir)
	s.Relock(lock, root, names)
	if err := errors.Join(s.Save([]byte("before")), s.Save([]byte(state)), s.Close()); err != nil {
		t.Fatal(err)
	}
	return dir, root, names
}

// opened reads what is kept.
func opened(s *cache.Store, root seal.Root) (string, error) {
	if _, err := s.Lock(); err != nil {
		return "", err
	}
	state, err := s.Unlock(root)
	return string(state), err
}

func TestWhatIsKeptComesBack(t *testing.T) {
	t.Parallel()
	dir, root, names := saved(t, "state")
	s := acquire(t, dir)
	if got, err := opened(s, root); err != nil || got != "state" {
		t.Errorf("opened %q, %v", got, err)
	}
	if got, err := s.UnlockByNames(names); err != nil || string(got) != "state" {
		t.Errorf("by the names %q, %v", got, err)
	}
	_, other := locked(t, "x")
	if _, err := s.Unlock(other); !errors.Is(err, seal.ErrWrongSecret) {
		t.Errorf("with another root: %v", err)
	}
	if _, err := s.UnlockByNames(seal.NewNameKey()); !errors.Is(err, seal.ErrWrongSecret) {
		t.Errorf("with other names: %v", err)
	}
	for _, name := range []string{"vault.sealed", "lock"} {
		info, err := os.Stat(filepath.Join(dir, name))
		if err != nil || info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s: %v, %v", name, info.Mode(), err)
		}
	}
}

// A new lock opens what is kept from then on, and the old one does not.
func TestRelock(t *testing.T) {
	t.Parallel()
	dir, root, names := saved(t, "state")
	s := acquire(t, dir)
	if _, err := opened(s, root); err != nil {
		t.Fatal(err)
	}
	if err := s.AddPage([]byte("page")); err != nil {
		t.Fatal(err)
	}
	lock, next := locked(t, "n")
	s.Relock(lock, next, names)
	if err := errors.Join(s.Save([]byte("later")), s.Close()); err != nil {
		t.Fatal(err)
	}
	s = acquire(t, dir)
	if got, err := opened(s, next); err != nil || got != "later" {
		t.Errorf("opened %q, %v", got, err)
	}
	if pages, err := s.Pages(); err != nil || len(pages) != 1 {
		t.Errorf("pages: %q, %v", pages, err)
	}
	if _, err := s.Unlock(root); !errors.Is(err, seal.ErrWrongSecret) {
		t.Errorf("by the old root: %v", err)
	}
}

func TestOneProcessAtATime(t *testing.T) {
	t.Parallel()
	dir, root, _ := saved(t, "state")
	first := acquire(t, dir)
	if _, err := cache.Acquire(dir); !errors.Is(err, cache.ErrInUse) {
		t.Errorf("a second one: %v", err)
	}
	if got, err := opened(cache.Look(dir), root); err != nil || got != "state" {
		t.Errorf("looked at: %q, %v", got, err)
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	acquire(t, dir)
}

func TestNothingAndDamage(t *testing.T) {
	t.Parallel()
	if _, err := opened(acquire(t, t.TempDir()), seal.Root{}); !errors.Is(err, cache.ErrNone) {
		t.Errorf("an empty folder: %v", err)
	}
	dir, root, _ := saved(t, "state")
	file := filepath.Join(dir, "vault.sealed")
	good, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(good); i += 3 {
		for what, bad := range map[string][]byte{"cut": good[:i], "changed": append(append(append([]byte{}, good[:i]...), good[i]^1), good[i+1:]...)} {
			if err := os.WriteFile(file, bad, 0o600); err != nil {
				t.Fatal(err)
			}
			// A salt makes another root, a slot is told by none; the rest is damage.
			got, err := opened(cache.Look(dir), root)
			inLock, inSlot := i >= 11 && i < 27, i >= 27 && i < 27+2*72
			if err == nil && !inLock && !inSlot || got != "" && got != "state" {
				t.Errorf("%s at %d: opened %q, %v", what, i, got, err)
			}
		}
	}
}

// A page that was not written to its end is as good as none, and the next one
// takes its place.
func TestPages(t *testing.T) {
	t.Parallel()
	dir, root, _ := saved(t, "state")
	s := acquire(t, dir)
	if _, err := opened(s, root); err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		if err := s.AddPage(fmt.Append(nil, "page ", i)); err != nil {
			t.Fatal(err)
		}
	}
	file := filepath.Join(dir, "pass.sealed")
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	each := len(text) / 3
	for left := range len(text) + 1 {
		if err := os.WriteFile(file, text[:left], 0o600); err != nil {
			t.Fatal(err)
		}
		pages, err := s.Pages()
		if err != nil || len(pages) != left/each {
			t.Fatalf("of %d bytes: %d pages, %v", left, len(pages), err)
		}
		if left%each != each/2 {
			continue
		}
		if err := s.AddPage([]byte("again")); err != nil {
			t.Fatal(err)
		}
		if pages, err = s.Pages(); err != nil || len(pages) != left/each+1 || string(pages[left/each]) != "again" {
			t.Fatalf("behind %d bytes: %q, %v", left, pages, err)
		}
	}
	if err := s.DropPass(); err != nil {
		t.Fatal(err)
	}
	if pages, err := s.Pages(); err != nil || len(pages) != 0 {
		t.Errorf("dropped: %q, %v", pages, err)
	}
}
