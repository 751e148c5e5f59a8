package sqlstore

import (
	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/dedup/sqlstore/internal/sqldb"
)

// Dialect is the SQL of one kind of database. It is a value and can be compared. Functions that use a Dialect refuse the zero
// Dialect.
type Dialect sqldb.Dialect

// The dialects, each with its settings, and the one that may lose the last commits in a power failure. Their tables are named
// sqsonce_records, sqsonce_inbox and sqsonce_schema. [Dialect.WithPrefix] changes that.
var (
	// PostgreSQL is for version 12 and later, with the driver github.com/jackc/pgx/v5/stdlib. It is tested on 15. A power failure
	// loses commits with synchronous_commit = off.
	PostgreSQL = Dialect(sqldb.PostgreSQL)
	// MySQL is for MySQL 8.0 and MariaDB 10.6 and later, with the driver github.com/go-sql-driver/mysql. It is tested on MariaDB
	// 10.11 and MySQL 9.7, but not on 8.0. The parameter interpolateParams=true in the data source name saves two round trips
	// per statement. The parameter autocommit must not be off, because the store's statements would then not be committed. The
	// text columns hold bytes: CONVERT(id USING utf8mb4) shows them. A power failure loses commits with
	// innodb_flush_log_at_trx_commit other than 1.
	MySQL = Dialect(sqldb.MySQL)
	// SQLite is for version 3.35 and later, with the driver modernc.org/sqlite. It is tested on 3.5x. The file must be on a local
	// disk, because leases depend on its locks. With _pragma=busy_timeout(5000) and _pragma=journal_mode(WAL) in the data source
	// name, connections wait for one another. In WAL mode a power failure loses commits with synchronous other than FULL.
	SQLite = Dialect(sqldb.SQLite)
)

// String returns the name of the kind of database.
func (d Dialect) String() string { return sqldb.Dialect(d).String() }

// WithPrefix returns the dialect with other table names: prefix followed by records, inbox and schema, and in package
// sqloutbox by outbox, outbox_locks and outbox_schema. A prefix may begin with the name of a database schema and a dot:
// "app.once_". It has lower case letters, digits and underscores.
//
// Without a schema the first call looks up the schema of the tables, on SQLite "main", and later statements name it.
//
// Default: "sqsonce_". Limits: at most 40 characters after the dot.
func (d Dialect) WithPrefix(prefix string) Dialect {
	return Dialect(sqldb.Dialect(d).WithPrefix(prefix))
}

func (d Dialect) check() error { return sqldb.Dialect(d).Check("sqlstore") }

func fieldError(field, problem string) error {
	return &sqsonce.OptionError{Package: "sqlstore", Field: field, Problem: problem}
}
