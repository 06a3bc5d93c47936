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
	vaultRun
	vaultNodes
	indexRecords
	indexTombstones
	indexSubscribers
	accountUsage
	readItem
	readRow
	readRange
	readResources

	beginWrite
	savepoint
	rollbackTo
	release
	insertVault
	configureVault
	pruneVault
	deleteVault
	endEpoch
	insertRun
	insertRecord
	updateRecord
	deleteRecord
	insertTombstone
	deleteTombstone
	deleteTombstones
	insertSubscription
	deleteSubscription
	keepResource
	dropResource
	probe

	allStatements
)

// readStatements are what a reader needs: those before it.
const readStatements = beginWrite

const recordColumns = "revision, key_version, form, publisher, published, payload"

var statementText = [allStatements]string{
	begin:    "BEGIN",
	commit:   "COMMIT",
	rollback: "ROLLBACK",
	touch:    "SELECT only FROM meta",

	vaultID: "SELECT id FROM vault WHERE account = ? AND node = ?",
	vaultRow: `SELECT id, epoch, config, created, revision, pruned
		FROM vault WHERE account = ? AND node = ?`,
	vaultRun:   "SELECT run FROM run WHERE vault = ? ORDER BY first DESC LIMIT 1",
	vaultNodes: "SELECT node FROM vault WHERE account = ? ORDER BY node",
	indexRecords: `SELECT id, item, revision, key_version, form, publisher, length(payload)
		FROM record WHERE id BETWEEN ? AND ?`,
	indexTombstones:  "SELECT revision, item FROM tombstone WHERE vault = ? ORDER BY revision",
	indexSubscribers: "SELECT account FROM subscription WHERE vault = ? ORDER BY account",
	// By range of ids: by the vault column it would visit the rows one by one.
	accountUsage: `SELECT count(DISTINCT v.id), coalesce(sum(length(r.payload)), 0)
		FROM vault v LEFT JOIN record r ON r.id BETWEEN v.id << 16 AND (v.id << 16) + 65535
		WHERE v.account = ?`,
	readItem:      "SELECT " + recordColumns + " FROM record WHERE vault = ? AND item = ?",
	readRow:       "SELECT " + recordColumns + " FROM record WHERE id = ?",
	readRange:     "SELECT id, " + recordColumns + " FROM record WHERE id BETWEEN ? AND ?",
	readResources: "SELECT account, name, address, seen, nodes FROM resource ORDER BY account, name",

	beginWrite: "BEGIN IMMEDIATE",
	savepoint:  "SAVEPOINT job",
	rollbackTo: "ROLLBACK TO job",
	release:    "RELEASE job",
	insertVault: `INSERT INTO vault (account, node, epoch, config, created, revision)
		VALUES (?, ?, ?, ?, ?, ?)`,
	configureVault: "UPDATE vault SET config = ?, revision = ? WHERE id = ?",
	pruneVault:     "UPDATE vault SET pruned = ? WHERE id = ?",
	deleteVault:    "DELETE FROM vault WHERE id = ?", // all that belongs to it goes along
	endEpoch:       "INSERT INTO ended_epoch (epoch) VALUES (?)",
	insertRun:      "INSERT INTO run (vault, first, run) VALUES (?, ?, ?)",
	insertRecord: `INSERT INTO record (` + recordColumns + `, id, vault, item)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)`,
	updateRecord: `UPDATE record SET revision = ?, key_version = ?, form = ?, publisher = ?,
		published = ?, payload = ? WHERE id = ?`,
	deleteRecord:       "DELETE FROM record WHERE id = ?",
	insertTombstone:    "INSERT INTO tombstone (vault, revision, item) VALUES (?, ?, ?)",
	deleteTombstone:    "DELETE FROM tombstone WHERE vault = ? AND revision = ?",
	deleteTombstones:   "DELETE FROM tombstone WHERE vault = ? AND revision <= ?",
	insertSubscription: "INSERT INTO subscription (vault, account) VALUES (?, ?)",
	deleteSubscription: "DELETE FROM subscription WHERE vault = ? AND account = ?",
	keepResource:       "INSERT OR REPLACE INTO resource (account, name, address, seen, nodes) VALUES (?, ?, ?, ?, ?)",
	dropResource:       "DELETE FROM resource WHERE account = ? AND name = ?",
	probe:              "UPDATE meta SET store = store",
}

// conn is one connection to the database with its prepared statements. One
// goroutine uses it at a time.
type conn struct {
	sql        *sql.Conn
	statements []*sql.Stmt
}

// connect takes a connection from db and prepares the first n statements.
func connect(ctx context.Context, db *sql.DB, n statement) (*conn, error) {
	raw, err := db.Conn(ctx)
	if err != nil {
		return nil, err
	}
	c := &conn{sql: raw, statements: make([]*sql.Stmt, n)}
	for i, text := range statementText[:n] {
		if c.statements[i], err = raw.PrepareContext(ctx, text); err != nil {
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
	revision, keyVersion, form, published int64
	publisher                             string
	payload                               []byte
}

func (r *scanned) dest() []any {
	return []any{&r.revision, &r.keyVersion, &r.form, &r.publisher, &r.published, &r.payload}
}

func (r *scanned) record(id string) vault.Record {
	return vault.Record{
		ID:         id,
		Revision:   vault.Revision(r.revision),
		KeyVersion: uint32(r.keyVersion),
		Payload:    vault.Payload{Form: vault.Form(r.form), Data: r.payload},
		Publisher:  vault.Account(r.publisher),
		Published:  time.UnixMilli(r.published).UTC(),
	}
}
