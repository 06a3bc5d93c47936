package sqlite

import (
	"bytes"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"pepvault/vault"
)

func openAt(t testing.TB, dir string) *Store {
	t.Helper()
	return openWith(t, Options{Path: filepath.Join(dir, "vault.db")})
}

// openWith opens a store, and fails the test if an index ever was wrong.
func openWith(t testing.TB, o Options) *Store {
	t.Helper()
	o.Logger = slog.New(slog.NewTextHandler(writer(func(line string) { t.Log(strings.TrimSpace(line)) }), nil))
	s, err := Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		s.Close() // usually the second time
		if n := s.mismatches.Load(); n > 0 {
			t.Errorf("an index did not fit the rows %d times", n)
		}
	})
	return s
}

type writer func(string)

func (w writer) Write(b []byte) (int, error) {
	w(string(b))
	return len(b), nil
}

// sample is a record of about the size that devices save.
func sample(i int) vault.Record {
	return vault.Record{
		ID:        fmt.Sprintf("record-%d", i),
		Payload:   vault.Payload{Form: vault.Native, Data: bytes.Repeat([]byte{byte(i)}, 924)},
		Publisher: "alice@example.org",
		Published: time.UnixMilli(1770000000000).UTC(),
	}
}
