package store_test

import (
	"log/slog"
	"path/filepath"
	"strings"
	"testing"

	"pepvault/store"
)

func TestOpen(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ driver, want string }{
		{"sqlite", ""},
		{"postgres", `"postgres" is not built yet`},
		{"", `there is "sqlite"`},
		{"mysql", `"mysql" is unknown: there is "sqlite"`},
	} {
		path := filepath.Join(t.TempDir(), "vault.db")
		s, err := store.Open(t.Context(), store.Options{
			Driver: test.driver, Path: path, Logger: slog.New(slog.DiscardHandler),
		})
		if test.want == "" {
			if err != nil {
				t.Fatalf("driver %q: %v", test.driver, err)
			}
			if err := s.Close(); err != nil {
				t.Error(err)
			}
			continue
		}
		o := store.Options{Driver: test.driver, Path: path}
		_, err1 := store.Backup(t.Context(), o, path+"-copy")
		_, err2 := store.BackupOnline(t.Context(), o, path+"-copy")
		_, err3 := store.Verify(t.Context(), o)
		_, _, err4 := store.Restore(t.Context(), o, path)
		_, err5 := store.Beside(o, ".x")
		for i, other := range []error{err1, err2, err3, err4, err5} {
			if err == nil || other == nil || other.Error() != err.Error() {
				t.Errorf("driver %q: operation %d says %v, open %v", test.driver, i, other, err)
			}
		}
		if s != nil || err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("driver %q: store %v, error %v; want %q", test.driver, s, err, test.want)
		}
	}
}
