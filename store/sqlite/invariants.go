package sqlite

import (
	"context"
	"database/sql"
)

// invariants are what the schema alone does not hold a database to. Each query
// counts what breaks one; since says from which version on it can be asked.
// now_vault, now_record, now_tombstone, now_batch and now_staged are what is in
// sight; see lookPast.
var invariants = []struct {
	since  int
	broken string
	query  string
}{
	{1, "the key of the store is missing", "SELECT count(*) <> 1 FROM meta"},
	{1, "records outside the range of their vault", "SELECT count(*) FROM record WHERE id >> 16 <> vault"},
	{1, "revisions below 1", `SELECT (SELECT count(*) FROM record WHERE revision < 1)
		+ (SELECT count(*) FROM tombstone WHERE revision < 1)
		+ (SELECT count(*) FROM vault WHERE revision < 1 OR pruned < 0)`},
	{1, "revisions that occur twice in a vault", `SELECT count(*) FROM (SELECT 1 FROM (
			SELECT vault, revision FROM now_record UNION ALL SELECT vault, revision FROM now_tombstone
			UNION ALL SELECT id, revision FROM now_vault)
		GROUP BY vault, revision HAVING count(*) > 1)`},
	{1, "ids with a record and a tombstone", `SELECT count(*) FROM now_tombstone t
		JOIN now_record r ON r.vault = t.vault AND r.item = t.item`},
	{1, "ids with two tombstones", `SELECT count(*) FROM (
		SELECT 1 FROM now_tombstone GROUP BY vault, item HAVING count(*) > 1)`},
	{1, "tombstones that should be forgotten", `SELECT count(*) FROM now_tombstone t
		JOIN vault v ON v.id = t.vault WHERE t.revision <= v.pruned`},
	{1, "payloads of an unknown form", "SELECT count(*) FROM record WHERE form NOT IN (1, 2)"},
	{1, "key versions out of bounds", "SELECT count(*) FROM record WHERE key_version NOT BETWEEN 0 AND 2147483647"},
	{1, "runs that begin above the revision of their vault", "SELECT count(*) FROM run r, (" + latestRevisions + `) l
		WHERE l.vault = r.vault AND r.first NOT BETWEEN 1 AND l.revision`},
	{1, "earlier epochs that fork above the revision of their vault", "SELECT count(*) FROM lineage e, (" + latestRevisions + `) l
		WHERE l.vault = e.vault AND e.fork NOT BETWEEN 0 AND l.revision`},
	{1, "epochs of two histories", `SELECT count(*) FROM (SELECT 1 FROM (
			SELECT epoch FROM now_vault UNION ALL SELECT e.epoch FROM lineage e JOIN now_vault v ON v.id = e.vault
			UNION ALL SELECT epoch FROM ended_epoch)
		GROUP BY epoch HAVING count(*) > 1)`},
	// A floor may be set above what is there; what is written later obeys it.
	{4, "records below the key version floor that are newer than it", `SELECT count(*) FROM now_record r
		JOIN now_vault v ON v.id = r.vault WHERE json_valid(v.config) AND r.revision > v.revision
		AND r.key_version < coalesce(json_extract(v.config, '$.key_version_floor'), 0)`},
	{2, "owners who are affiliated with their own vault", `SELECT count(*) FROM affiliation a
		JOIN vault v ON v.id = a.vault WHERE v.account = a.account`},
	{2, "known resources that can't be read", `SELECT count(*) FROM resource
		WHERE NOT (json_valid(owners) AND json_valid(vaults))`},
	{2, "capabilities that can't be read", "SELECT count(*) FROM capability WHERE NOT json_valid(nodes)"},

	{3, "batches that count their changes wrong", `SELECT count(*) FROM now_batch b
		WHERE b.changes <> (SELECT count(*) FROM now_staged s WHERE s.batch = b.id)
		OR b.bytes <> (SELECT coalesce(sum(length(payload)), 0) FROM now_staged s WHERE s.batch = b.id)`},
	{3, "batches whose outcome does not fit their cursors", `SELECT count(*) FROM now_batch
		WHERE (outcome = 1) <> (previous > '') OR (outcome = 1) <> (cursor > '')`},
	{3, "batches without a time of expiry", "SELECT count(*) FROM now_batch WHERE expires < 1"},
	{3, "batches with a name that is not allowed", "SELECT count(*) FROM now_batch WHERE length(CAST(name AS BLOB)) NOT BETWEEN 1 AND 64"},
	{3, "batches whose account may not write", `SELECT count(*) FROM now_batch b JOIN now_vault v ON v.id = b.vault
		WHERE b.account <> v.account AND (b.rotate_to > 0 OR NOT EXISTS (
			SELECT 1 FROM affiliation a WHERE a.vault = v.id AND a.account = b.account AND a.affiliation = 3))`},
	{3, "rotations to a key version out of bounds", "SELECT count(*) FROM now_batch WHERE rotate_to NOT BETWEEN 0 AND 2147483647"},
	{3, "staged changes that are no record and no removal", `SELECT count(*) FROM now_staged
		WHERE length(CAST(item AS BLOB)) NOT BETWEEN 1 AND 512 OR CASE gone
			WHEN 1 THEN length(payload) > 0 OR key_version <> 0
			ELSE form NOT IN (1, 2) OR key_version NOT BETWEEN 0 AND 2147483647 END`},
	{3, "staged records below the key version that their batch rotates to", `SELECT count(*) FROM now_staged s
		JOIN now_batch b ON b.id = s.batch WHERE NOT s.gone AND s.key_version < b.rotate_to`},
	{3, "staged changes that rely on what their vault never was", "SELECT count(*) FROM now_staged s, (" + latestRevisions + `) l
		JOIN now_batch b ON b.id = s.batch JOIN vault v ON v.id = b.vault
		WHERE l.vault = v.id AND (s.epoch <> v.epoch OR s.held NOT BETWEEN 0 AND l.revision)`},
	{3, "revisions that were rotated from later ones", "SELECT count(*) FROM now_record WHERE rotated_from NOT BETWEEN 0 AND revision - 1"},

	{4, "deleted rows that nobody will clean up", `SELECT
		(SELECT count(*) FROM vault WHERE account = '' AND waste = 0) + (SELECT count(*) FROM batch WHERE account = '' AND waste = 0)
		+ (SELECT count(*) FROM record r JOIN vault v ON v.id = r.vault WHERE v.waste = 0 AND v.purged > 0 AND r.revision <= v.purged)
		+ (SELECT count(*) FROM staged s JOIN batch b ON b.id = s.batch WHERE b.waste = 0 AND b.outcome <> 0)`},
	{buries, "purges that list their tombstones wrong", `SELECT count(*) FROM burial
		WHERE first NOT BETWEEN 1 AND last OR json_array_length(items) <> last - first + 1`},
	{buries, "vaults with missing rows of purges", `SELECT count(*) FROM vault
		WHERE burials <> (SELECT count(*) FROM burial WHERE vault = vault.id)`},
	{buries, "forgotten tombstones that nobody will clean up", `SELECT count(*) FROM burial b
		JOIN vault v ON v.id = b.vault WHERE v.waste = 0 AND b.first <= v.pruned`},
}

// latestRevisions gives the revision of each vault: a counter of it is not
// stored.
const latestRevisions = `SELECT v.id AS vault, max(v.revision, v.pruned,
		coalesce((SELECT max(revision) FROM record WHERE id BETWEEN v.id << 16 AND (v.id << 16) + 65535), 0),
		coalesce((SELECT max(revision) FROM tombstone WHERE vault = v.id), 0),
		coalesce((SELECT max(last) FROM burial WHERE vault = v.id), 0)) AS revision
	FROM vault v WHERE v.account > ''`

// buried are the tombstones of purges, of each id the latest one.
const buried = `SELECT vault, max(revision) AS revision, item FROM (
		SELECT b.vault, b.first + n.key AS revision, n.value AS item FROM burial b, json_each(b.items) n)
	GROUP BY vault, item`

// burials are those in sight: a later row of an id counts instead.
const burials = `SELECT b.vault, b.revision, b.item FROM buried b JOIN vault v ON v.id = b.vault
	LEFT JOIN record r ON r.vault = b.vault AND r.item = b.item AND r.revision > b.revision
	LEFT JOIN tombstone t ON t.vault = b.vault AND t.item = b.item AND t.revision > b.revision
	WHERE v.account > '' AND b.revision > v.pruned AND r.id IS NULL AND t.item IS NULL`

// lookPast makes temporary tables and views that show a database without what
// is only to be cleaned up. A version before 4 has no such rows, and one before
// 5 no burials.
func lookPast(ctx context.Context, db *sql.DB, version int) error {
	made := []string{
		"VIEW now_vault AS SELECT * FROM vault",
		"VIEW now_record AS SELECT * FROM record",
	}
	tombstones := "SELECT vault, revision, item FROM tombstone"
	if version >= overwrites {
		made = []string{
			"VIEW now_vault AS SELECT * FROM vault WHERE account > ''",
			"VIEW now_record AS SELECT r.* FROM record r JOIN vault v ON v.id = r.vault WHERE v.account > '' AND r.revision > v.purged",
		}
		tombstones = `SELECT t.vault, t.revision, t.item FROM tombstone t JOIN vault v ON v.id = t.vault
			WHERE v.account > '' AND (v.waste = 0 OR t.revision > v.pruned)`
	}
	if version >= buries {
		made = append(made, "TABLE buried AS "+buried)
		tombstones += " UNION ALL " + burials
	} else {
		made = append(made, "TABLE burial (vault, first, last, items)")
	}
	made = append(made, "VIEW now_tombstone AS "+tombstones)
	if version >= 3 {
		made = append(made,
			"VIEW now_batch AS SELECT * FROM batch WHERE account > ''",
			"VIEW now_staged AS SELECT s.* FROM staged s JOIN batch b ON b.id = s.batch WHERE b.account > '' AND b.outcome = 0",
		)
	}
	for _, one := range made {
		if _, err := db.ExecContext(ctx, "CREATE TEMP "+one); err != nil {
			return err
		}
	}
	return nil
}
