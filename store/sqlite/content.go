package sqlite

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
)

// contentColumns are those that an entry of the index doesn't have, and the one
// that says whether the row is what the entry is of. Each column of each row costs.
const contentColumns = "revision, form, publisher, published, payload"

// contentStatements is how many statements read content, from readRow on.
const contentStatements = readRows - readRow + 1

func readsContent(s statement) bool { return s >= readRow && s <= readRows }

// content is a row of a record in the order of contentColumns.
type content struct {
	revision, form int64
	publisher      string
	published      int64 // milliseconds since 1970
	payload        []byte
}

// take fills c from a row; the payload is not copied. The driver makes one of
// its own for each row.
func (c *content) take(row []driver.Value) error {
	var ok [5]bool
	c.revision, ok[0] = row[0].(int64)
	c.form, ok[1] = row[1].(int64)
	c.publisher, ok[2] = row[2].(string)
	c.published, ok[3] = row[3].(int64)
	c.payload, ok[4] = row[4].([]byte)
	for i, fits := range ok {
		if !fits {
			return &storageError{
				doing: "read records", text: "the database is damaged",
				cause: fmt.Errorf("column %d of a record is of type %T", i, row[i]),
			}
		}
	}
	return nil
}

// prepareDirect prepares one of the statements that read content.
func (c *conn) prepareDirect(ctx context.Context, s statement) error {
	return c.sql.Raw(func(driven any) (err error) {
		c.direct[s-readRow], err = driven.(driver.ConnPrepareContext).PrepareContext(ctx, statementText[s])
		return err
	})
}

// closeDirect needs the connection still open.
func (c *conn) closeDirect() {
	for _, s := range c.direct {
		if s != nil {
			s.Close()
		}
	}
}

// contents runs one of the statements that read content and calls next with each
// row, which the one after overwrites, but for the payload.
//
// It asks the driver itself: what database/sql does for each row, with locks,
// conversions and a copy of the payload, is 40 % of what a whole vault costs.
func (c *conn) contents(ctx context.Context, s statement, args []any, next func(*content)) error {
	named := make([]driver.NamedValue, len(args))
	for i, value := range args {
		named[i] = driver.NamedValue{Ordinal: i + 1, Value: value}
	}
	return c.sql.Raw(func(any) (err error) {
		rows, err := c.direct[s-readRow].(driver.StmtQueryContext).QueryContext(ctx, named)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, rows.Close()) }()
		columns := make([]driver.Value, len(rows.Columns()))
		var row content
		for {
			if err := rows.Next(columns); err == io.EOF {
				return nil
			} else if err != nil {
				return err
			}
			if err := row.take(columns); err != nil {
				return err
			}
			next(&row)
		}
	})
}
