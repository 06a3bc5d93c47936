package sqlite

import (
	"database/sql"
	"strings"
	"testing"

	"pepvault/vault"
)

// TestGlanceIsSwift: these need no transaction once the vault is known. Others
// do, and say so.
func TestGlanceIsSwift(t *testing.T) {
	t.Parallel()
	s := faulty(t)
	mustUpdate(t, s, func(tx vault.Tx) error {
		if err := tx.Subscribe(faultKey, vault.Subscription{Account: "bob@example.org"}); err != nil {
			return err
		}
		return tx.Affiliate(faultKey, vault.Affiliated{Account: "bob@example.org", Affiliation: vault.Member})
	})
	limit := vault.PageLimit{Records: 9, Cost: 1 << 20}
	for _, test := range []struct {
		name   string
		call   func(vault.View) error
		missed bool
	}{
		{"Vault", func(v vault.View) error { _, err := v.Vault(faultKey); return err }, false},
		{"Usage", func(v vault.View) error { _, err := v.Usage(faultKey.Account); return err }, false},
		{"Heads", func(v vault.View) error { _, err := v.Heads(faultKey, []string{"first"}); return err }, false},
		{"Records", func(v vault.View) error { _, err := v.Records(faultKey, []string{"first"}); return err }, false},
		{"Latest", func(v vault.View) error { _, err := v.Latest(faultKey, 3, limit); return err }, false},
		{"Changes", func(v vault.View) error { _, err := v.Changes(faultKey, 0, limit); return err }, false},
		{"Rank", func(v vault.View) error { _, err := v.Rank(faultKey, 3); return err }, false},
		{"Nth", func(v vault.View) error { _, err := v.Nth(faultKey, 0); return err }, false},
		{"KeyVersions", func(v vault.View) error { _, _, err := v.KeyVersions(faultKey); return err }, false},
		{"Subscriptions", func(v vault.View) error { _, err := v.Subscriptions(faultKey); return err }, false},
		{"Affiliations", func(v vault.View) error { _, err := v.Affiliations(faultKey); return err }, false},
		{"Accounts", func(v vault.View) error { _, err := v.Accounts(); return err }, true},
		{"Vaults", func(v vault.View) error { _, err := v.Vaults(faultKey.Account); return err }, true},
		{"Sizes", func(v vault.View) error { _, err := v.Sizes(faultKey.Account); return err }, true},
		{"Shared", func(v vault.View) error { _, err := v.Shared(faultKey.Account, "bob@example.org"); return err }, true},
		{"Totals", func(v vault.View) error { _, err := v.Totals(); return err }, true},
		{"Resources", func(v vault.View) error { _, err := v.Resources(); return err }, true},
		{"Capabilities", func(v vault.View) error { _, err := v.Capabilities(); return err }, true},
	} {
		v := &view{store: s, swift: true}
		err := v.run(t.Context(), func(v *view) error { return test.call(v) })
		if v.missed != test.missed || (err != nil) != test.missed {
			t.Errorf("%s: missed %v, error %v", test.name, v.missed, err)
		}
	}
}

// TestPlans: no statement reads a whole table but those that are for it.
func TestPlans(t *testing.T) {
	t.Parallel()
	s := openAt(t, t.TempDir())
	whole := map[statement]bool{touch: true, vaultAccounts: true, readResources: true, readCapabilities: true, probe: true, countAll: true, settleStore: true}
	for i, text := range statementText {
		if !strings.Contains(text, "FROM") && !strings.Contains(text, "UPDATE") {
			continue
		}
		rows, err := s.writer.sql.QueryContext(t.Context(), "EXPLAIN QUERY PLAN "+text, make([]any, strings.Count(text, "?"))...)
		if err != nil {
			t.Fatal(text, err)
		}
		for _, step := range planOf(t, rows) {
			if strings.HasPrefix(step, "SCAN ") && !strings.Contains(step, "(subquery") && !strings.Contains(step, "VIRTUAL TABLE") && !whole[statement(i)] {
				t.Errorf("%s\n%s", text, step)
			}
		}
	}
}

func planOf(t *testing.T, rows *sql.Rows) (steps []string) {
	t.Helper()
	defer rows.Close()
	for rows.Next() {
		var id, parent, unused int
		var step string
		if err := rows.Scan(&id, &parent, &unused, &step); err != nil {
			t.Fatal(err)
		}
		steps = append(steps, step)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return steps
}
