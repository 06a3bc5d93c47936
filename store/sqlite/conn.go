package sqlite

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"time"

	"pepvault/vault"
)

// statement names a prepared statement.
type statement int

const (
	begin statement = iota
	commit
	rollback
	touch

	vaultID
	vaultRow
	vaultRuns
	forkOf
	hasEnded
	vaultNodes
	vaultRows
	vaultAccounts
	sharedNodes
	countAll
	indexRecords
	countNames
	indexTombstones
	indexBurials
	indexSubscribers
	indexAffiliated
	accountUsage
	sizeRecords
	sizeTombstones
	readItem
	readRow // the first of contentStatements
	readRange
	readRows
	readResources
	readCapabilities
	readBatch
	readBatches
	readStaged
	readStagedPayload
	wasteBatch
	wasteStaged
	wasteVault
	wasteRecords
	wasteTombstones
	wasteBurials
	readPage

	beginWrite
	savepoint
	rollbackTo
	release
	insertVault
	configureVault
	pruneVault
	purgeVault
	countBurials
	discardVault
	deleteSubscribers
	deleteAffiliated
	discardVaultsBatches
	endEpochs
	forkVault
	insertLineage
	insertRun
	insertRecord
	updateRecord
	deleteRecord
	clearPlace
	insertBurial
	hasWaste
	insertTombstone
	deleteTombstone
	deleteTombstones
	insertSubscription
	deleteSubscription
	keepAffiliation
	deleteAffiliation
	elsewhere
	withdrawSubscriptions
	withdrawAffiliations
	withdrawBatches
	keepResource
	dropResource
	forgetResources
	keepCapabilities
	dropCapabilities
	insertBatch
	openBatch
	stagedBytes
	putStaged
	deleteStaged
	countStaged
	endBatch
	discardBatch
	endAccountsBatches
	endOpenBatches
	expireBatches
	removeRecord
	removeStaged
	removeBurial
	cutBurial
	removeVault
	settleVault
	removeBatch
	settleBatch
	writePage
	probe
	settleStore

	allStatements
)

// readStatements are what a reader needs: those before it.
const readStatements = beginWrite

const recordColumns = "revision, key_version, form, publisher, published, rotated_from, payload"

// batchFrom is what is read of batches, and from where.
const batchFrom = `b.name, v.account, v.node, b.rotate_to, b.expires, b.changes, b.bytes, b.outcome, b.previous, b.cursor
	FROM batch b JOIN vault v ON v.id = b.vault`

const stagedFrom = "FROM staged s JOIN batch b ON b.id = s.batch WHERE b.account = ? AND b.name = ? AND b.outcome = 0"

// ofOthers excludes an account's own vaults.
const ofOthers = " NOT IN (SELECT id FROM vault WHERE account = ?1)"

// discardBatches is what is done with batches instead of deleting them.
const discardBatches = "UPDATE batch SET account = '', name = id, changes = 0, bytes = 0, waste = 1 WHERE "

var statementText = [allStatements]string{
	begin:    "BEGIN",
	commit:   "COMMIT",
	rollback: "ROLLBACK",
	touch:    "SELECT only FROM meta",

	vaultID: "SELECT id FROM vault WHERE account = ? AND node = ?",
	vaultRow: `SELECT id, epoch, config, created, revision, pruned, purged,
		burials <> (SELECT count(*) FROM burial WHERE vault = vault.id)
		FROM vault WHERE account = ? AND node = ?`,
	vaultRuns:     "SELECT first, run FROM run WHERE vault = ? ORDER BY first",
	forkOf:        "SELECT fork FROM lineage WHERE vault = ? AND epoch = ?",
	hasEnded:      "SELECT count(*) FROM ended_epoch WHERE epoch = ?",
	vaultNodes:    "SELECT node FROM vault WHERE account = ? ORDER BY node",
	vaultRows:     "SELECT id, node, revision, pruned, purged FROM vault WHERE account = ? ORDER BY node",
	vaultAccounts: "SELECT DISTINCT account FROM vault WHERE account > '' ORDER BY account",
	// From the owner's vaults, which are bounded, to one row for each: whoever
	// is affiliated with many others' costs nobody more.
	sharedNodes: `SELECT v.node FROM vault v CROSS JOIN affiliation a ON a.vault = v.id AND a.account = ?2
		WHERE v.account = ?1 ORDER BY v.node`,
	countAll: `SELECT (SELECT count(*) FROM vault WHERE account > ''), (SELECT count(*) FROM record) - (
		SELECT count(*) FROM vault v JOIN record r ON r.id BETWEEN v.id << 16 AND (v.id << 16) + 65535
		WHERE v.waste = 1 AND (v.account = '' OR r.revision <= v.purged))`,
	indexRecords: `SELECT id, item, revision, key_version, form, publisher, rotated_from, length(payload)
		FROM record WHERE id BETWEEN ? AND ?`,
	countNames:       "SELECT count(*) FROM record INDEXED BY sqlite_autoindex_record_1 WHERE vault = ?",
	indexBurials:     "SELECT first, items FROM burial WHERE vault = ? AND last > ? ORDER BY first",
	indexTombstones:  "SELECT revision, item FROM tombstone WHERE vault = ? AND revision > ? ORDER BY revision",
	indexSubscribers: "SELECT account FROM subscription WHERE vault = ? ORDER BY account",
	indexAffiliated:  "SELECT account, affiliation FROM affiliation WHERE vault = ? ORDER BY account",
	// By range of ids: by the vault column it would visit the rows one by one.
	accountUsage: `SELECT count(DISTINCT v.id), count(r.id), coalesce(sum(length(r.payload)), 0)
		FROM vault v LEFT JOIN record r ON r.id BETWEEN v.id << 16 AND (v.id << 16) + 65535 AND r.revision > v.purged
		WHERE v.account = ?`,
	sizeRecords: `SELECT count(*), coalesce(sum(length(payload)), 0), coalesce(max(revision), 0)
		FROM record WHERE id BETWEEN ?1 << 16 AND (?1 << 16) + 65535 AND revision > ?2`,
	// Of each id the latest counts, unless there is a record.
	sizeTombstones: `SELECT count(*), coalesce(max(latest), 0) FROM (
		SELECT item AS name, max(revision) AS latest FROM (
			SELECT item, revision FROM tombstone WHERE vault = ?1 AND revision > ?2
			UNION ALL SELECT n.value, b.first + n.key FROM burial b, json_each(b.items) n
			WHERE b.vault = ?1 AND b.last > ?2 AND b.first + n.key > ?2)
		GROUP BY item)
		WHERE NOT EXISTS (SELECT 1 FROM record r WHERE r.vault = ?1 AND r.item = name AND r.revision > latest)`,
	readItem: "SELECT " + recordColumns + ` FROM record
		WHERE vault = ?1 AND item = ?2 AND revision > (SELECT purged FROM vault WHERE id = ?1)`,
	readRow:   "SELECT " + contentColumns + " FROM record WHERE id = ?",
	readRange: "SELECT " + contentColumns + " FROM record WHERE id BETWEEN ? AND ?",
	// In the order of the list, so that the rows of a page lie beside each other.
	readRows: "SELECT " + contentColumns + " FROM json_each(?) wanted CROSS JOIN record ON record.id = wanted.value",
	readResources: `SELECT account, name, address, seen, owners, vaults, caps
		FROM resource ORDER BY account, name`,
	readCapabilities: "SELECT hash, nodes, sync, used FROM capability ORDER BY hash",
	readBatch:        "SELECT " + batchFrom + " WHERE b.account = ? AND b.name = ?",
	readBatches:      "SELECT " + batchFrom + " WHERE b.account = ? ORDER BY b.id",
	readStaged: `SELECT s.item, s.gone, s.key_version, s.epoch, s.held, length(s.payload)
		` + stagedFrom + " ORDER BY s.id",
	readStagedPayload: "SELECT s.form, s.payload " + stagedFrom + " AND s.item = ? AND NOT s.gone",

	// What is out of sight; see waste.go.
	wasteBatch:      "SELECT id, account FROM batch WHERE waste = 1 LIMIT 1",
	wasteStaged:     "SELECT id, length(payload) FROM staged WHERE batch = ? LIMIT ?",
	wasteVault:      "SELECT id, account, purged, pruned FROM vault WHERE waste = 1 LIMIT 1",
	wasteRecords:    "SELECT id, length(payload) FROM record WHERE id BETWEEN ?1 << 16 AND (?1 << 16) + 65535 AND revision <= ?2 LIMIT ?3",
	wasteTombstones: "SELECT revision FROM tombstone WHERE vault = ? AND revision <= ? ORDER BY revision LIMIT ?",
	wasteBurials:    "SELECT first, length(items) FROM burial WHERE vault = ? AND last <= ? ORDER BY first LIMIT ?",
	readPage:        "SELECT data FROM sqlite_dbpage WHERE pgno = ?",

	beginWrite: "BEGIN IMMEDIATE",
	savepoint:  "SAVEPOINT job",
	rollbackTo: "ROLLBACK TO job",
	release:    "RELEASE job",
	insertVault: `INSERT INTO vault (account, node, epoch, config, created, revision)
		VALUES (?, ?, ?, ?, ?, ?)`,
	configureVault: "UPDATE vault SET config = ?, revision = ? WHERE id = ?",
	pruneVault:     "UPDATE vault SET pruned = ?, waste = max(waste, ?) WHERE id = ?",
	purgeVault:     "UPDATE vault SET purged = ?, burials = burials + ?, waste = 1 WHERE id = ?",
	countBurials:   "UPDATE vault SET burials = burials - ? WHERE id = ?",
	// Its row goes last, with the runs and the earlier epochs.
	discardVault:         "UPDATE vault SET account = '', node = id, config = '{}', waste = 1 WHERE id = ?",
	deleteSubscribers:    "DELETE FROM subscription WHERE vault = ?",
	deleteAffiliated:     "DELETE FROM affiliation WHERE vault = ?",
	discardVaultsBatches: discardBatches + "vault = ? AND account > ''",
	endEpochs: `INSERT INTO ended_epoch (epoch) SELECT epoch FROM vault WHERE id = ?1
		UNION SELECT epoch FROM lineage WHERE vault = ?1`,
	forkVault:     "UPDATE vault SET epoch = ? WHERE id = ?",
	insertLineage: "INSERT INTO lineage (vault, epoch, fork) VALUES (?, ?, ?)",
	insertRun:     "INSERT INTO run (vault, first, run) VALUES (?, ?, ?)",
	insertRecord: `INSERT INTO record (` + recordColumns + `, id, vault, item)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
	updateRecord: `UPDATE record SET revision = ?, key_version = ?, form = ?, publisher = ?,
		published = ?, rotated_from = ?, payload = ? WHERE id = ?`,
	deleteRecord: "DELETE FROM record WHERE id = ?",
	// What a purge left there is in the way of a new record.
	clearPlace:         "DELETE FROM record WHERE (id = ?1 OR vault = ?2 AND item = ?3) AND revision <= ?4",
	insertBurial:       "INSERT INTO burial (vault, first, last, items) VALUES (?, ?, ?, ?)",
	hasWaste:           "SELECT waste = 1 OR EXISTS (SELECT 1 FROM burial WHERE vault = ?1 AND first <= ?2) FROM vault WHERE id = ?1",
	insertTombstone:    "INSERT INTO tombstone (vault, revision, item) VALUES (?, ?, ?)",
	deleteTombstone:    "DELETE FROM tombstone WHERE vault = ? AND revision = ?",
	deleteTombstones:   "DELETE FROM tombstone WHERE vault = ? AND revision <= ?",
	insertSubscription: "INSERT INTO subscription (vault, account) VALUES (?, ?)",
	deleteSubscription: "DELETE FROM subscription WHERE vault = ? AND account = ?",
	keepAffiliation:    "INSERT OR REPLACE INTO affiliation (vault, account, affiliation) VALUES (?, ?, ?)",
	deleteAffiliation:  "DELETE FROM affiliation WHERE vault = ? AND account = ?",
	elsewhere: `SELECT account, node FROM vault WHERE account <> ? AND id IN (
		SELECT vault FROM affiliation WHERE account = ? UNION SELECT vault FROM subscription WHERE account = ?)
		ORDER BY account, node`,
	withdrawSubscriptions: "DELETE FROM subscription WHERE account = ?1 AND vault" + ofOthers,
	withdrawAffiliations:  "DELETE FROM affiliation WHERE account = ?1 AND vault" + ofOthers,
	withdrawBatches: discardBatches + `account = ?1 AND vault IN (
		SELECT vault FROM affiliation WHERE account = ?1 UNION SELECT vault FROM subscription WHERE account = ?1) AND vault` + ofOthers,
	keepResource: `INSERT OR REPLACE INTO resource (account, name, address, seen, owners, vaults, caps)
		VALUES (?, ?, ?, ?, ?, ?, ?)`,
	dropResource:     "DELETE FROM resource WHERE account = ? AND name = ?",
	keepCapabilities: "INSERT OR REPLACE INTO capability (hash, nodes, sync, used) VALUES (?, ?, ?, ?)",
	dropCapabilities: "DELETE FROM capability WHERE hash = ?",
	forgetResources:  "DELETE FROM resource WHERE account = ?",
	insertBatch: `INSERT INTO batch (vault, account, name, rotate_to, expires, changes, bytes, outcome, previous, cursor)
		VALUES (?, ?, ?, ?, ?, 0, 0, 0, '', '')`,
	openBatch:   "SELECT id FROM batch WHERE account = ? AND name = ? AND outcome = 0",
	stagedBytes: "SELECT length(payload) FROM staged WHERE batch = ? AND item = ?",
	putStaged: `INSERT INTO staged (batch, item, gone, key_version, epoch, held, form, payload)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (batch, item) DO UPDATE SET
		gone = excluded.gone, key_version = excluded.key_version, epoch = excluded.epoch,
		held = excluded.held, form = excluded.form, payload = excluded.payload`,
	deleteStaged: "DELETE FROM staged WHERE batch = ? AND item = ?",
	countStaged:  "UPDATE batch SET changes = changes + ?, bytes = bytes + ? WHERE id = ?",
	endBatch: `UPDATE batch SET outcome = ?, previous = ?, cursor = ?, waste = changes > 0, changes = 0, bytes = 0
		WHERE id = ?`,
	discardBatch:       discardBatches + "account = ? AND name = ?",
	endAccountsBatches: discardBatches + "vault = ? AND account = ?",
	endOpenBatches:     discardBatches + "vault = ? AND account > '' AND outcome = 0",
	expireBatches:      discardBatches + "id IN (SELECT id FROM batch WHERE expires <= ? AND account > '' LIMIT ?)",

	removeRecord: "DELETE FROM record WHERE id = ? AND revision <= ?",
	removeStaged: "DELETE FROM staged WHERE id = ?",
	removeBurial: "DELETE FROM burial WHERE first = ? AND vault = ?",
	cutBurial: `UPDATE burial SET first = ?2 + 1, items = (
		SELECT json_group_array(value ORDER BY key) FROM json_each(items) WHERE first + key > ?2)
		WHERE vault = ?1 AND first <= ?2 AND last > ?2`,
	removeVault: "DELETE FROM vault WHERE id = ? AND account = ''", // all that belongs to it goes along
	settleVault: "UPDATE vault SET waste = 0 WHERE id = ? AND purged = ? AND pruned = ? AND account > ''",
	removeBatch: "DELETE FROM batch WHERE id = ? AND account = ''",
	settleBatch: "UPDATE batch SET waste = 0 WHERE id = ? AND account > ''",
	writePage:   "UPDATE sqlite_dbpage SET data = ? WHERE pgno = ?",
	probe:       "UPDATE meta SET tidy = 0",
	settleStore: "UPDATE meta SET tidy = 1",
}

// conn is one connection to the database with its prepared statements. One
// goroutine uses it at a time.
type conn struct {
	sql        *sql.Conn
	statements []*sql.Stmt
	direct     [contentStatements]driver.Stmt // instead, of those that read content
}

// connect takes a connection from db and prepares the first n statements.
func connect(ctx context.Context, db *sql.DB, n statement) (*conn, error) {
	raw, err := db.Conn(ctx)
	if err != nil {
		return nil, err
	}
	c := &conn{sql: raw, statements: make([]*sql.Stmt, n)}
	for i, text := range statementText[:n] {
		if readsContent(statement(i)) {
			err = c.prepareDirect(ctx, statement(i))
		} else {
			c.statements[i], err = raw.PrepareContext(ctx, text)
		}
		if err != nil {
			c.close()
			return nil, err
		}
	}
	return c, nil
}

// close closes the connection itself: back in the pool it might bring a fault
// of its own to the next user.
func (c *conn) close() {
	for _, s := range c.statements {
		if s != nil {
			s.Close()
		}
	}
	c.closeDirect()
	// This is how database/sql is told to throw a connection away.
	c.sql.Raw(func(any) error { return driver.ErrBadConn })
	c.sql.Close()
}

func (c *conn) exec(ctx context.Context, s statement, args ...any) (sql.Result, error) {
	return c.statements[s].ExecContext(ctx, args...)
}

// row runs a query for one row; sql.ErrNoRows if there is none.
func (c *conn) row(ctx context.Context, s statement, args []any, dest ...any) error {
	return c.statements[s].QueryRowContext(ctx, args...).Scan(dest...)
}

// each runs a query and calls next after scanning each row into dest.
func (c *conn) each(ctx context.Context, s statement, args []any, dest []any, next func() error) error {
	rows, err := c.statements[s].QueryContext(ctx, args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		if err := rows.Scan(dest...); err != nil {
			return err
		}
		if err := next(); err != nil {
			return err
		}
	}
	return rows.Err()
}

// scanned is a row of a record in the order of recordColumns.
type scanned struct {
	revision, keyVersion, form, published, rotatedFrom int64
	publisher                                          string
	payload                                            []byte
}

func (r *scanned) dest() []any {
	return []any{&r.revision, &r.keyVersion, &r.form, &r.publisher, &r.published, &r.rotatedFrom, &r.payload}
}

func (r *scanned) record(id string) vault.Record {
	return vault.Record{
		ID:         id,
		Revision:   vault.Revision(r.revision),
		KeyVersion: uint32(r.keyVersion),
		Payload:    vault.Payload{Form: vault.Form(r.form), Data: r.payload},
		Publisher:  vault.Account(r.publisher),
		Published:  time.UnixMilli(r.published).UTC(),

		RotatedFrom: vault.Revision(r.rotatedFrom),
	}
}
