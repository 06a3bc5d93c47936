package sqlite

import (
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"pepvault/vault"
)

// frozen makes a database as a release wrote it, and more rows.
func frozen(t *testing.T, version int, more string) (path string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", fmt.Sprintf("schema_v%d.sql", version)))
	if err != nil {
		t.Fatal(err)
	}
	path = filepath.Join(t.TempDir(), "vault.db")
	execSQL(t, path, string(text)+more)
	return path
}

// migrated is what a database of an earlier version shows now.
type migrated struct {
	Config       vault.Config
	Subscribers  []vault.Subscription
	Affiliated   []vault.Affiliated
	Resources    []vault.Resource
	Capabilities []vault.Capabilities
	Usage        vault.Usage
	RotatedFrom  vault.Revision // of record a
	Batches      []vault.Batch
	Staged       []vault.Staged
}

func inventory(t *testing.T, s *Store, key vault.Key) (got migrated) {
	t.Helper()
	err := s.View(t.Context(), func(v vault.View) error {
		state, err := v.Vault(key)
		got.Config = state.Config
		if state.Revision != 6 || state.Records != 2 || state.Pruned != 4 ||
			state.Run != 77 || state.Epoch != vault.Epoch([]byte("epoch-0001")) {
			t.Errorf("vault %+v", state)
		}
		page, err1 := v.Changes(key, 0, vault.PageLimit{Records: 9, Cost: 1 << 20})
		if len(page.Changes) != 3 || !page.Changes[2].Gone || string(page.Changes[0].Payload.Data) != "sealed" {
			t.Errorf("changes %+v", page)
		}
		var err2, err3, err4, err5, err6 error
		got.Subscribers, err2 = v.Subscriptions(key)
		got.Affiliated, err3 = v.Affiliations(key)
		got.Resources, err4 = v.Resources()
		got.Capabilities, err5 = v.Capabilities()
		got.Usage, err6 = v.Usage(key.Account)
		got.RotatedFrom = page.Changes[0].RotatedFrom
		for _, account := range []vault.Account{"alice@example.org", "bob@example.org"} {
			batches, err := v.Batches(account)
			if err != nil {
				return err
			}
			got.Batches = append(got.Batches, batches...)
			for _, b := range batches {
				staged, err := v.Staged(b.BatchKey)
				if err != nil {
					return err
				}
				got.Staged = append(got.Staged, staged...)
			}
		}
		return errors.Join(err, err1, err2, err3, err4, err5, err6)
	})
	if err != nil {
		t.Fatal(err)
	}
	if got := s.CursorKey(); got != vault.CursorKey([]byte("0123456789abcdef0123456789abcdef")) {
		t.Error("another cursor key")
	}
	return got
}

// TestMigrate opens databases as each release wrote them. A change of the
// schema gets a migration of its own and a golden file of its own; the old ones
// stay.
func TestMigrate(t *testing.T) {
	t.Parallel()
	alice, bob := vault.Account("alice@example.org"), vault.Account("bob@example.org")
	key := vault.Key{Account: alice, Node: "notes"}
	seen := time.UnixMilli(1770000000000).UTC()
	usage := vault.Usage{Vaults: 1, Records: 2, Bytes: 20}
	second := migrated{
		Config: vault.Config{
			Title: "Notes", Type: "urn:example:note", MaxItems: 9, EvictOldest: true,
			SendLast: vault.SendOnSubscriptionAndPresence, KeyVersionFloor: 3,
			MuteRetract: true, MuteDelete: true, MuteConfig: true, MutePayloads: true, MuteAll: true,
		},
		Subscribers: []vault.Subscription{{Account: bob}},
		Affiliated: []vault.Affiliated{
			{Account: bob, Affiliation: vault.Publisher},
			{Account: "carol@example.org", Affiliation: vault.Member},
			{Account: "eve@example.org", Affiliation: vault.Outcast},
		},
		Resources: []vault.Resource{
			{Account: alice, Name: "phone", Address: "alice@example.org/phone", Seen: seen,
				Owners: []vault.Account{alice}, Vaults: []vault.Key{key}, Caps: "sha-256:BBBB"},
			{Account: bob, Name: "desk", Address: "bob@example.org/desk", Seen: seen, Owners: []vault.Account{alice, bob}},
		},
		Capabilities: []vault.Capabilities{
			{Hash: "sha-1:AAAA", Used: seen.Add(3 * time.Millisecond)},
			{Hash: "sha-256:BBBB", Nodes: []string{"notes"}, Sync: true, Used: seen.Add(4 * time.Millisecond)},
		},
		Usage: usage,
	}
	third := second
	third.RotatedFrom = 1
	third.Batches = []vault.Batch{
		{
			BatchKey: vault.BatchKey{Account: alice, ID: "open"}, Vault: key, RotateTo: 4,
			Expires: seen.Add(5 * time.Millisecond), Changes: 2, Bytes: 8,
		},
		{
			BatchKey: vault.BatchKey{Account: bob, ID: "done"}, Vault: key, Expires: seen.Add(6 * time.Millisecond),
			Outcome: vault.BatchOutcome{End: vault.BatchCommitted, Previous: "before", Cursor: "after"},
		},
	}
	epoch := vault.Epoch([]byte("epoch-0001"))
	third.Staged = []vault.Staged{
		{ID: "a", KeyVersion: 4, Bytes: 8, Epoch: epoch, Held: 6},
		{ID: "c", Gone: true, Epoch: epoch, Held: 6},
	}
	for _, test := range []struct {
		version int
		more    string
		want    migrated
	}{
		{
			version: 1,
			more: `INSERT INTO resource VALUES
				('alice@example.org', 'laptop', 'Alice@example.org/laptop', 1770000000001, 'null'),
				('bob@example.org', 'x/y', 'bob@example.org/x/y', 1770000000002, '["notes","\u003c\"ä\"\u0026","a"]');`,
			want: migrated{
				Config:      vault.Config{Title: "Notes"},
				Subscribers: []vault.Subscription{{Account: bob}},
				Resources: []vault.Resource{
					{Account: alice, Name: "laptop", Address: "Alice@example.org/laptop", Seen: seen.Add(time.Millisecond),
						Owners: []vault.Account{alice}},
					{Account: alice, Name: "phone", Address: "alice@example.org/phone", Seen: seen,
						Owners: []vault.Account{alice}, Vaults: []vault.Key{key}},
					{Account: bob, Name: "x/y", Address: "bob@example.org/x/y", Seen: seen.Add(2 * time.Millisecond),
						Owners: []vault.Account{bob},
						Vaults: []vault.Key{{Account: bob, Node: `<"ä"&`}, {Account: bob, Node: "a"}, {Account: bob, Node: "notes"}}},
				},
				Usage: usage,
			},
		},
		{version: 2, want: second},
		{version: 3, want: third},
		{version: 4, want: third},
		{version: 5, want: third},
	} {
		t.Run(fmt.Sprint("from ", test.version), func(t *testing.T) {
			t.Parallel()
			path := frozen(t, test.version, test.more)
			for _, when := range []string{"migrated", "opened again"} {
				s := openWith(t, Options{Path: path})
				if diff := cmp.Diff(test.want, inventory(t, s, key), cmpopts.EquateEmpty()); diff != "" {
					t.Errorf("%s (-want +got):\n%s", when, diff)
				}
				if err := s.Close(); err != nil {
					t.Fatal(err)
				}
			}
			s := openWith(t, Options{Path: path})
			fill(t, s, 3)
			err := s.Update(t.Context(), key, func(tx vault.Tx) error {
				return tx.Affiliate(key, vault.Affiliated{Account: bob, Affiliation: vault.Outcast})
			})
			if err != nil {
				t.Fatal(err)
			}
			if got := inventory(t, s, key); len(got.Subscribers) != 0 || got.Affiliated[0].Affiliation != vault.Outcast {
				t.Errorf("after a write: %+v", got)
			}
		})
	}
}

// TestSchema compares what the migrations make with what was frozen: a change
// of a released one would leave existing databases behind.
func TestSchema(t *testing.T) {
	t.Parallel()
	made := filepath.Join(t.TempDir(), "made.db")
	for version := range schemaVersion {
		version++
		text, err := migration(version)
		if err != nil {
			t.Fatal(err)
		}
		execSQL(t, made, text)
		if want, got := schemaOf(t, frozen(t, version, "")), schemaOf(t, made); want != got {
			t.Errorf("the migrations to %d make\n%s\nwant\n%s", version, got, want)
		}
	}
}

func schemaOf(t *testing.T, path string) (text string) {
	t.Helper()
	db, err := sql.Open("sqlite", dsn(path, ""))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	rows, err := db.Query("SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL ORDER BY name")
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var one string
		if err := rows.Scan(&one); err != nil {
			t.Fatal(err)
		}
		text += one + ";\n"
	}
	return text
}
