package sqlite

import (
	"database/sql/driver"
	"slices"
	"testing"
)

// TestContentOfDamagedRow: the schema is strict about the types of columns, a
// damaged page isn't.
func TestContentOfDamagedRow(t *testing.T) {
	t.Parallel()
	whole := []driver.Value{int64(7), int64(1), "alice@example.org", int64(1), []byte(nil)}
	var row content
	if err := row.take(whole); err != nil || row.revision != 7 || row.publisher != "alice@example.org" {
		t.Errorf("got %+v, error %v", row, err)
	}
	for i := range whole {
		for _, other := range []driver.Value{nil, 1.5} {
			damaged := slices.Clone(whole)
			damaged[i] = other
			wantStorageError(t, row.take(damaged), "damaged")
		}
	}
}
