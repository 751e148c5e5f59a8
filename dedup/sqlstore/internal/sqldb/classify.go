package sqldb

import (
	"database/sql"
	"database/sql/driver"
	"errors"
	"reflect"
	"strings"
)

// Class is what a driver's error says about the statement.
type Class int

const (
	Other          Class = iota // any other answer: a retry at once does not help
	Duplicate                   // a row with this key exists
	Unwritten                   // nothing was written, and a retry may succeed: deadlock, serialization failure, lock timeout, busy
	Unknown                     // unknown outcome: the connection broke, or no reply came
	ReadOnly                    // the server takes no writes
	NoTable                     // a table, or its database or schema, does not exist
	NoColumn                    // the table exists and lacks the column
	Denied                      // the user may not do this
	UnknownSyntax               // the statement's words are unknown: another kind of database, or a version too old
	ConnPoolClosed              // this program has closed the pool
	NotPrepared                 // the server does not have the prepared statement, and did nothing
	Aborted                     // the transaction can only be rolled back, because of an earlier error
)

// Classify says what err means for a statement of the dialect.
func (d Dialect) Classify(err error) Class { return d.engine.classify(err) }

// RolledBack reports whether a transaction that ended in err was rolled back and may be run again, such as a deadlock's
// victim. It is false for an error after which the commit's outcome is unknown.
func (d Dialect) RolledBack(err error) bool { return err != nil && d.Classify(err) == Unwritten }

// The drivers' errors are recognised without importing the drivers, which are the user's choice:
//
//   - PostgreSQL: the errors of pgx and lib/pq have a method SQLState.
//   - SQLite: modernc's error has a method Code, the extended result code.
//   - MySQL: go-sql-driver's error has no method but Error and Is. Its exported field Number is read by reflection. The text
//     begins with the number too, but the text also quotes values, which the sender chooses.

// classifyNoReply classifies an error that is not the server's.
func classifyNoReply(err error) Class {
	switch {
	case errors.Is(err, driver.ErrBadConn):
		return Unwritten // a driver returns this only if the server cannot have received the statement
	case errors.Is(err, sql.ErrNoRows), errors.Is(err, sql.ErrTxDone):
		return Other
	case isClosed(err):
		return ConnPoolClosed
	case IsScan(err):
		return Other
	}
	// A connection that broke, a timeout, a reply that could not be read.
	return Unknown
}

// IsScan reports whether a column could not be read: another program has written it. It is recognised by its text, as isClosed.
func IsScan(err error) bool { return err != nil && strings.HasPrefix(err.Error(), "sql: Scan error") }

// isClosed recognises the error of a closed sql.DB by its text: database/sql does not export it, and never wraps it.
func isClosed(err error) bool { return err != nil && err.Error() == "sql: database is closed" }

// sqlState is implemented by the errors of pgx and lib/pq.
type sqlState interface {
	error
	SQLState() string
}

// See https://www.postgresql.org/docs/current/errcodes-appendix.html.
func classifyPostgreSQL(err error) Class {
	e, ok := errors.AsType[sqlState](err)
	if !ok {
		return classifyNoReply(err)
	}
	code := e.SQLState()
	if c, ok := postgresqlCodes[code]; ok {
		return c
	}
	if len(code) < 2 {
		return Unknown
	}
	return postgresqlClasses[code[:2]]
}

var postgresqlCodes = map[string]Class{
	"23505": Duplicate,
	"40001": Unwritten, // serialization failure
	"40P01": Unwritten, // deadlock
	"55P03": Unwritten, // lock_timeout
	"57014": Unwritten, // statement_timeout, or cancelled: the statement was rolled back
	"57P03": Unwritten, // the server is starting
	"40003": Unknown,
	"57P01": Unknown, // shut down while the statement ran
	"57P02": Unknown,
	"57P05": Unknown,
	"25006": ReadOnly,
	"25P02": Aborted,
	"42P01": NoTable,
	"3D000": NoTable, // database
	"57P04": NoTable, // database dropped
	"3F000": NoTable, // schema
	"42703": NoColumn,
	"42501": Denied,
	"42601": UnknownSyntax,
	"42883": UnknownSyntax, // no such function
	"42704": UnknownSyntax, // no such object
	"42P10": NoColumn,      // no unique constraint for ON CONFLICT
}

var postgresqlClasses = map[string]Class{
	"08": Unknown,
	"28": Denied,
	"53": Unwritten, // too many connections, disk full, out of memory
	"58": Unwritten, // the server's files or its operating system
}

// See https://dev.mysql.com/doc/mysql-errors/8.0/en/server-error-reference.html and
// https://mariadb.com/kb/en/mariadb-error-codes/.
func classifyMySQL(err error) Class {
	number, ok := mysqlNumber(err)
	if !ok {
		return classifyNoReply(err)
	}
	return mysqlNumbers[number]
}

var mysqlNumbers = map[uint64]Class{
	1062: Duplicate,
	1213: Unwritten,                                   // deadlock
	1205: Unwritten,                                   // lock wait timeout: the statement was rolled back
	1020: Unwritten,                                   // changed since last read: MariaDB's innodb_snapshot_isolation
	3572: Unwritten,                                   // NOWAIT
	1040: Unwritten,                                   // too many connections
	1203: Unwritten,                                   // too many connections of this user
	1226: Unwritten,                                   // a limit of this user
	3024: Unwritten,                                   // max_execution_time
	1969: Unwritten,                                   // max_statement_time, MariaDB
	4031: Unwritten,                                   // the session had ended after wait_timeout, MySQL 8.0.24
	1047: Unwritten,                                   // the node is not ready: Galera
	3101: Unwritten,                                   // conflict with another node: group replication
	1021: Unwritten,                                   // disk full
	1114: Unwritten,                                   // table full
	1037: Unwritten, 1038: Unwritten, 1041: Unwritten, // out of memory
	1053: Unknown,  // the server is shutting down
	1317: Unknown,  // killed
	1927: Unknown,  // connection killed, MariaDB
	3169: Unknown,  // session killed
	1290: ReadOnly, // the server runs with --read-only
	1792: ReadOnly, // in a transaction READ ONLY
	1836: ReadOnly, // the server is in read-only mode
	1146: NoTable,
	1049: NoTable, // database
	1046: NoTable, // no database chosen
	1054: NoColumn,
	1044: Denied, 1045: Denied, 1142: Denied, 1143: Denied, 1227: Denied, 1698: Denied,
	1129: Denied, 1130: Denied, // the host is blocked, or not allowed
	1820: Denied, 1862: Denied, 3118: Denied, 4151: Denied, // the password has expired, the account is locked
	1064: UnknownSyntax,
	1305: UnknownSyntax, // no such function
	1128: UnknownSyntax,
	1461: NotPrepared, // max_prepared_stmt_count
	1243: NotPrepared, // unknown statement
	1295: NotPrepared, // not supported in the prepared protocol
	1615: NotPrepared, // needs to be prepared again
}

// mysqlNumber returns the field Number of the first *MySQLError in err's tree.
func mysqlNumber(err error) (uint64, bool) {
	if err == nil {
		return 0, false
	}
	v := reflect.Indirect(reflect.ValueOf(err))
	if v.Kind() == reflect.Struct && v.Type().Name() == "MySQLError" {
		if f := v.FieldByName("Number"); f.IsValid() && f.CanUint() {
			return f.Uint(), true
		}
	}
	switch e := err.(type) {
	case interface{ Unwrap() error }:
		return mysqlNumber(e.Unwrap())
	case interface{ Unwrap() []error }:
		for _, err := range e.Unwrap() {
			if n, ok := mysqlNumber(err); ok {
				return n, true
			}
		}
	}
	return 0, false
}

// resultCode is implemented by the error of modernc.org/sqlite.
type resultCode interface {
	error
	Code() int
}

// See https://www.sqlite.org/rescode.html.
func classifySQLite(err error) Class {
	e, ok := errors.AsType[resultCode](err)
	if !ok {
		return classifyNoReply(err)
	}
	switch e.Code() { // the extended code
	case 1555, 2067: // primary key, unique
		return Duplicate
	}
	switch e.Code() & 0xff { // the primary code
	case 5, 6, 7, 13: // busy, locked, out of memory, disk full
		return Unwritten
	case 8:
		return ReadOnly
	case 9, 10, 14: // interrupted, I/O error, cannot open
		return Unknown
	case 3, 23: // no permission
		return Denied
	case 26: // not a database
		return UnknownSyntax
	case 1: // SQLITE_ERROR: only the text says more
		return classifySQLiteText(err.Error())
	}
	return Other
}

func classifySQLiteText(text string) Class {
	for _, t := range []struct {
		part  string
		class Class
	}{
		{"no such table", NoTable},
		{"no such column", NoColumn},
		{"has no column named", NoColumn},
		{"ON CONFLICT clause does not match", NoColumn},
		{"no such function", UnknownSyntax},
		{"syntax error", UnknownSyntax},
		{"unrecognized token", UnknownSyntax},
	} {
		if strings.Contains(text, t.part) {
			return t.class
		}
	}
	return Other
}
