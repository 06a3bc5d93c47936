package sqlite

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"flag"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"pepvault/vault"
)

func TestMain(m *testing.M) {
	if path := os.Getenv(victimEnv); path != "" {
		victim(path)
		return
	}
	if task := os.Getenv(operatorEnv); task != "" {
		operator(strings.Split(task, "\n"))
		return
	}
	// The command line may still say otherwise.
	if err := flag.Set("rapid.checks", randomChecks); err != nil {
		panic(err)
	}
	goleak.VerifyTestMain(m)
}

func quiet() *slog.Logger { return slog.New(slog.DiscardHandler) }

// execSQL changes a database from outside.
func execSQL(t *testing.T, path, text string) {
	t.Helper()
	db, err := sql.Open("sqlite", dsn(path, "_busy_timeout=5000"))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.Exec(text); err != nil {
		t.Fatal(err)
	}
}

func TestOpenRefuses(t *testing.T) {
	t.Parallel()
	create := func(t *testing.T, path string) {
		t.Helper()
		s, err := Open(t.Context(), Options{Path: path, Logger: quiet()})
		if err != nil {
			t.Fatal(err)
		}
		fill(t, s, 300)
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	write := func(t *testing.T, path string, data []byte) {
		t.Helper()
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, test := range []struct {
		name string
		set  func(t *testing.T, path string)
		want error  // or nil
		text string // in the message
	}{
		{"no folder", func(t *testing.T, path string) { os.Remove(filepath.Dir(path)) }, nil, "create it"},
		{"a folder", func(t *testing.T, path string) { os.Mkdir(path, 0o700) }, nil, "not a regular file"},
		{"text", func(t *testing.T, path string) { write(t, path, []byte(strings.Repeat("not a database\n", 999))) },
			vault.ErrStorage, "not a database"},
		{"another program's", func(t *testing.T, path string) { execSQL(t, path, "CREATE TABLE t (x)") }, nil, "another program"},
		{"newer", func(t *testing.T, path string) { create(t, path); execSQL(t, path, "PRAGMA user_version = 999") },
			vault.ErrNewerSchema, "schema 999"},
		{"damaged", func(t *testing.T, path string) { create(t, path); damage(t, path) }, vault.ErrStorage, "damaged"},
		{"cut", func(t *testing.T, path string) { create(t, path); os.Truncate(path, 40960) }, vault.ErrStorage, "damaged"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "sub", "vault.db")
			os.Mkdir(filepath.Dir(path), 0o700)
			test.set(t, path)
			s, err := Open(t.Context(), Options{Path: path, Logger: quiet()})
			if err == nil {
				s.Close()
				t.Fatal("opened it")
			}
			if test.want != nil && !errors.Is(err, test.want) {
				t.Errorf("got %v, want %v", err, test.want)
			}
			if !strings.Contains(err.Error(), test.text) || !strings.Contains(err.Error(), path) ||
				strings.Contains(err.Error(), "\n") {
				t.Errorf("message %q", err)
			}
		})
	}
	if _, err := Open(t.Context(), Options{Logger: quiet()}); err == nil {
		t.Error("opened an empty path")
	}
}

// damage overwrites the middle of a file, so that no page there is one.
func damage(t *testing.T, path string) {
	t.Helper()
	file, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		t.Fatal(err)
	}
	noise := make([]byte, info.Size()/2)
	rand.Read(noise)
	if _, err := file.WriteAt(noise, info.Size()/4); err != nil {
		t.Fatal(err)
	}
}

func TestOpenTwice(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "vault.db")
	s := openWith(t, Options{Path: path})
	link := filepath.Join(t.TempDir(), "link.db")
	if err := os.Symlink(path, link); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{path, link} {
		_, err := Open(t.Context(), Options{Path: name, Logger: quiet()})
		if !errors.Is(err, vault.ErrInUse) || strings.Contains(err.Error(), "\n") {
			t.Errorf("got %v, want %v", err, vault.ErrInUse)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	openWith(t, Options{Path: link})
}

func TestOpenFiles(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "a b?c#d%20'e.db")
	s := openWith(t, Options{Path: path})
	fill(t, s, 3)
	names := map[string]bool{}
	filepath.WalkDir(filepath.Dir(path), func(file string, d fs.DirEntry, err error) error {
		if info, err := d.Info(); err == nil && !d.IsDir() {
			names[filepath.Base(file)] = true
			if info.Mode().Perm() != 0o600 {
				t.Errorf("%s has mode %v", file, info.Mode())
			}
		}
		return err
	})
	if base := filepath.Base(path); !names[base] || !names[base+"-wal"] || !names[base+".lock"] {
		t.Errorf("files %v", names)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(path + "-wal"); err == nil && info.Size() > 0 {
		t.Errorf("%d bytes of log are left", info.Size())
	}
}

// TestConnections checks the settings that the durability rests on.
func TestConnections(t *testing.T) {
	t.Parallel()
	s := openAt(t, t.TempDir())
	get := func(c *conn, pragma string) (value string) {
		if err := c.sql.QueryRowContext(t.Context(), "PRAGMA "+pragma).Scan(&value); err != nil {
			t.Fatal(err)
		}
		return value
	}
	for pragma, want := range map[string]string{
		"journal_mode": "wal", "synchronous": "2", "page_size": "4096", "foreign_keys": "1",
		"cache_size": "-4000", "journal_size_limit": "67108864", "busy_timeout": "5000",
	} {
		if got := get(s.writer, pragma); got != want {
			t.Errorf("writer: %s = %s, want %s", pragma, got, want)
		}
	}
	c := <-s.readers
	defer func() { s.readers <- c }()
	for pragma, want := range map[string]string{"query_only": "1", "cache_size": "-1000", "busy_timeout": "5000"} {
		if got := get(c, pragma); got != want {
			t.Errorf("reader: %s = %s, want %s", pragma, got, want)
		}
	}
}

func fill(t testing.TB, s vault.Store, n int) {
	t.Helper()
	key := vault.Key{Account: "fill@example.org", Node: "fill"}
	err := s.Update(context.WithoutCancel(t.Context()), key, func(tx vault.Tx) error {
		if _, err := tx.Create(key, vault.Config{}); err != nil {
			return err
		}
		for i := range n {
			if _, err := tx.Put(key, sample(i)); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
