package sqlstore

import (
	"context"
	"database/sql"
	"embed"
	"errors"

	"github.com/sqsonce/sqsonce/dedup/sqlstore/internal/sqldb"
)

//go:embed schema
var schemaFiles embed.FS

var schema = sqldb.Schema{Files: schemaFiles, Table: "{schema}", Reporter: reporter}

// DDL returns the statements that [Migrate] runs on an empty database, for reading or for another tool. They are the
// statements of all versions, each with the row that records it. You may run them again, except those that add
// a column. DDL panics if [New] would refuse the dialect.
func DDL(d Dialect) string {
	if err := d.check(); err != nil {
		panic(err)
	}
	return schema.DDL(sqldb.Dialect(d))
}

// Migrate creates the tables, or brings them to the current version: see [DDL]. Any number of processes may call it at once,
// and at every start. If the tables are up to date, it only reads. It doesn't change a schema of a later version.
//
// Migrate needs the right to create tables, which the rest of the package doesn't need. A deployment may call it with
// another user. A migration that fails doesn't change the database, except MySQL, which can't roll back the statements of a
// schema. The first statements stay there, and the next call continues after them.
//
// The error matches [sqsonce.ErrUnavailable] if the database is of another kind than the dialect's, is read-only, refuses access or
// its pool is closed.
func Migrate(ctx context.Context, db *sql.DB, d Dialect) error {
	return migrateTo(ctx, db, d, schema.Last())
}

func migrateTo(ctx context.Context, db *sql.DB, d Dialect, target int) error {
	if err := errors.Join(checkDB(db), d.check()); err != nil {
		return err
	}
	return schema.Migrate(ctx, db, sqldb.Dialect(d), target)
}
