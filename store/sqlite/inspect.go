package sqlite

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	sqlite3 "modernc.org/sqlite/lib"

	"pepvault/vault"
)

// inspect looks for damage in a file that nobody changes, and sums it up.
func inspect(ctx context.Context, file, path string) (vault.Contents, error) {
	var contents vault.Contents
	db, err := sql.Open("sqlite", dsn(file, "mode=ro&immutable=1&_pragma=cache_size(-4000)"))
	if err != nil {
		return contents, fmt.Errorf("database %s: %w", path, failure("open", err))
	}
	defer db.Close()
	db.SetMaxOpenConns(1)
	in := &inspection{ctx: ctx, db: db, hasher: vault.NewContentHasher()}
	version, err := in.identify(path)
	if err != nil {
		return contents, stopped(ctx, err)
	}
	in.damagePages()
	if err := lookPast(ctx, db, version); err != nil && len(in.findings) == 0 {
		in.fails("read the schema", err)
	}
	if len(in.findings) == 0 {
		in.invariants(version)
		in.contents()
	}
	switch {
	case ctx.Err() != nil:
		return contents, ctx.Err()
	case len(in.findings) > 0:
		return contents, wrong(path, in.findings)
	}
	in.sum.Hash = in.hasher.Sum()
	return in.sum, nil
}

// inspection is a way through a database that collects what is wrong.
type inspection struct {
	ctx      context.Context // of one call of inspect
	db       *sql.DB
	findings []string
	sum      vault.Contents
	hasher   *vault.ContentHasher
}

func (in *inspection) find(format string, args ...any) {
	in.findings = append(in.findings, fmt.Sprintf(format, args...))
}

// fails notes an error of the database, if there is one.
func (in *inspection) fails(doing string, err error) bool {
	if err != nil {
		in.find("%s: %s", doing, describe(err))
	}
	return err != nil
}

// identify refuses what is not a store, or too new.
func (in *inspection) identify(path string) (version int, err error) {
	h, err := readHeader(in.ctx, in.db)
	switch {
	case primaryCode(err) == sqlite3.SQLITE_NOTADB:
		return 0, fmt.Errorf("database %s: the file is not a database", path)
	case err != nil:
		return 0, fmt.Errorf("database %s: %w", path, failure("open", err))
	case h.empty():
		return 0, fmt.Errorf("database %s: the file is empty, there is no store in it", path)
	case h.application != applicationID:
		return 0, fmt.Errorf("database %s: it belongs to another program", path)
	case h.version > schemaVersion:
		return 0, tooNew(path, h.version)
	}
	return h.version, nil
}

// damagePages has SQLite check its own structures and all references.
func (in *inspection) damagePages() {
	in.each(fmt.Sprintf("PRAGMA integrity_check(%d)", mostFindings), "check the pages", func(rows *sql.Rows) error {
		var finding string
		err := rows.Scan(&finding)
		if err == nil && finding != "ok" {
			in.find("%s", strings.TrimSpace(strings.ReplaceAll(finding, "\n", ", ")))
		}
		return err
	})
	in.each(`SELECT "table", count(*) FROM pragma_foreign_key_check GROUP BY "table"`, "check the references", func(rows *sql.Rows) error {
		var table string
		var n int
		err := rows.Scan(&table, &n)
		if err == nil {
			in.find("%d rows of the table %s belong to nothing", n, table)
		}
		return err
	})
}

func (in *inspection) invariants(version int) {
	for _, rule := range invariants {
		if rule.since > version {
			continue
		}
		var broken int
		err := in.db.QueryRowContext(in.ctx, rule.query).Scan(&broken)
		if !in.fails("look for "+rule.broken, err) && broken > 0 {
			in.find("%s: %d", rule.broken, broken)
		}
	}
}

// vaultRecords is a vault whose records are to be read.
type vaultRecords struct {
	id  int64
	key vault.Key
}

// contents reads all vaults and records in the order of the hash.
func (in *inspection) contents() {
	var vaults []vaultRecords
	var account vault.Account
	in.each("SELECT id, account, node, config FROM now_vault ORDER BY account, node", "read the vaults", func(rows *sql.Rows) error {
		var v vaultRecords
		var config []byte
		if err := rows.Scan(&v.id, &v.key.Account, &v.key.Node, &config); err != nil {
			return err
		}
		if v.key.Account != account || account == "" {
			account = v.key.Account
			in.sum.Accounts++
		}
		if account == "" || !vault.ValidName(v.key.Node) {
			in.find("vault %q of %q has a name that is not allowed", v.key.Node, account)
		}
		if err := json.Unmarshal(config, new(vault.Config)); err != nil {
			in.find("the configuration of vault %q of %s can't be read", v.key.Node, account)
		}
		vaults = append(vaults, v)
		return nil
	})
	in.sum.Vaults = len(vaults)
	for _, v := range vaults {
		in.records(v)
	}
	err := in.db.QueryRowContext(in.ctx, "SELECT count(*) FROM now_tombstone").Scan(&in.sum.Tombstones)
	in.fails("count the tombstones", err)
}

func (in *inspection) records(v vaultRecords) {
	const query = "SELECT item, key_version, form, publisher, payload FROM now_record WHERE vault = ? ORDER BY item"
	in.each(query, "read the records", func(rows *sql.Rows) error {
		var r vault.Record
		var payload sql.RawBytes
		var keyVersion, form int64
		if err := rows.Scan(&r.ID, &keyVersion, &form, &r.Publisher, &payload); err != nil {
			return err
		}
		if !vault.ValidName(r.ID) {
			in.find("vault %q of %s has a record with a name that is not allowed", v.key.Node, v.key.Account)
		}
		r.KeyVersion, r.Payload = uint32(keyVersion), vault.Payload{Form: vault.Form(form), Data: payload}
		in.hasher.Add(v.key, r)
		in.sum.Records++
		in.sum.Bytes += int64(len(payload))
		return nil
	}, v.id)
}

// each calls next for each row of a query. What fails is a finding.
func (in *inspection) each(query, doing string, next func(*sql.Rows) error, args ...any) {
	rows, err := in.db.QueryContext(in.ctx, query, args...)
	if err == nil {
		defer rows.Close()
		for err == nil && rows.Next() {
			err = next(rows)
		}
		err = errors.Join(err, rows.Err())
	}
	in.fails(doing, err)
}
