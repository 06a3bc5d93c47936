package sqlite

import (
	"path/filepath"
	"testing"

	"pepvault/store/storetest"
	"pepvault/vault"
)

func TestConformance(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(t *testing.T, dir string) vault.Store { return openAt(t, dir) })
}

// A cache that holds next to nothing makes every transaction build its
// indexes anew, and races about them likely.
func TestConformanceWithoutCache(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(t *testing.T, dir string) vault.Store {
		return openWith(t, Options{Path: filepath.Join(dir, "vault.db"), IndexBytes: 1})
	})
}
