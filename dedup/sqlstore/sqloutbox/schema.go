package sqloutbox

import (
	"context"
	"database/sql"
	"embed"
	"errors"

	"github.com/sqsonce/sqsonce/dedup/sqlstore"
	"github.com/sqsonce/sqsonce/dedup/sqlstore/internal/sqldb"
)

//go:embed schema
var schemaFiles embed.FS

var schema = sqldb.Schema{Files: schemaFiles, Table: "{outbox_schema}", Reporter: reporter}

// DDL returns the statements that [Migrate] runs on an empty database, for reading or for another tool. It has all versions,
// each with the row that records it. You may run the statements again, except those that add a column. DDL panics if [New] would
// refuse the dialect.
func DDL(d sqlstore.Dialect) string {
	if err := sqldb.Dialect(d).Check(pkg); err != nil {
		panic(err)
	}
	return schema.DDL(sqldb.Dialect(d))
}

// Migrate creates the tables of this package alone, or brings them to the current version. The tables are the dialect's prefix
// followed by outbox, outbox_later, outbox_schema and, on MySQL, outbox_locks with its 4,096 rows. Like [sqlstore.Migrate], any
// number of processes may call it at once, and at every start. It needs the right to create tables.
//
// The error matches [sqsonce.ErrUnavailable] if the database is of another kind than the dialect's, is read-only, refuses access
// or its pool is closed.
func Migrate(ctx context.Context, db *sql.DB, d sqlstore.Dialect) error {
	err := sqldb.Dialect(d).Check(pkg)
	if db == nil {
		err = errors.Join(fieldError("db", "is nil"), err)
	}
	if err != nil {
		return err
	}
	return schema.Migrate(ctx, db, sqldb.Dialect(d), schema.Last())
}
