package sqlstore

import (
	"database/sql"
	"database/sql/driver"
	"errors"
	"reflect"
	"strings"
)

// class is what a driver's error says about the statement.
type class int

const (
	other          class = iota // an error that no retry helps against
	duplicate                   // a row with this key exists
	unwritten                   // nothing was written, and a retry may succeed: deadlock, serialization failure, lock timeout, busy
	unknown                     // unknown outcome: the connection broke, or no reply came
	readOnly                    // the server takes no writes
	noTable                     // a table, or its database or schema, does not exist
	noColumn                    // the table exists and lacks the column
	denied                      // the user may not do this
	unknownSyntax               // the statement's words are unknown: another kind of database, or a version too old
	connPoolClosed              // this program has closed the pool
	notPrepared                 // the server does not have the prepared statement, and did nothing
	aborted                     // the transaction can only be rolled back, because of an earlier error
)

// classify says what err means for a statement of the dialect.
func (d Dialect) classify(err error) class { return d.engine.classify(err) }

// rolledBack reports whether a transaction that ended in err was rolled back and may be run again, such as a deadlock's
// victim. It is false for an error after which the commit's outcome is unknown.
func (d Dialect) rolledBack(err error) bool { return err != nil && d.classify(err) == unwritten }

// The drivers' errors are recognised without importing the drivers, which are the user's choice:
//
//   - PostgreSQL: the errors of pgx and lib/pq have a method SQLState.
//   - SQLite: modernc's error has a method Code, the extended result code.
//   - MySQL: go-sql-driver's error has no method but Error and Is. Its exported field Number is read by reflection. The text
//     begins with the number too, but the text also quotes values, which the sender chooses.

// classifyNoReply classifies an error that is not the server's.
func classifyNoReply(err error) class {
	switch {
	case errors.Is(err, driver.ErrBadConn):
		return unwritten // a driver returns this only if the server cannot have received the statement
	case errors.Is(err, sql.ErrNoRows), errors.Is(err, sql.ErrTxDone):
		return other
	case isClosed(err):
		return connPoolClosed
	case strings.Contains(err.Error(), "sql: Scan error"):
		return other // a column that another program has written
	}
	// A connection that broke, a timeout, a reply that could not be read.
	return unknown
}

// isClosed recognises the error of a closed sql.DB by its text: database/sql does not export it, and never wraps it.
func isClosed(err error) bool { return err != nil && err.Error() == "sql: database is closed" }

// sqlState is implemented by the errors of pgx and lib/pq.
type sqlState interface {
	error
	SQLState() string
}

// See https://www.postgresql.org/docs/current/errcodes-appendix.html.
func classifyPostgreSQL(err error) class {
	e, ok := errors.AsType[sqlState](err)
	if !ok {
		return classifyNoReply(err)
	}
	code := e.SQLState()
	if c, ok := postgresqlCodes[code]; ok {
		return c
	}
	if len(code) < 2 {
		return unknown
	}
	return postgresqlClasses[code[:2]]
}

var postgresqlCodes = map[string]class{
	"23505": duplicate,
	"40001": unwritten, // serialization failure
	"40P01": unwritten, // deadlock
	"55P03": unwritten, // lock_timeout
	"57014": unwritten, // statement_timeout, or cancelled: the statement was rolled back
	"57P03": unwritten, // the server is starting
	"40003": unknown,
	"57P01": unknown, // shut down while the statement ran
	"57P02": unknown,
	"57P05": unknown,
	"25006": readOnly,
	"25P02": aborted,
	"42P01": noTable,
	"3D000": noTable, // database
	"57P04": noTable, // database dropped
	"3F000": noTable, // schema
	"42703": noColumn,
	"42501": denied,
	"42601": unknownSyntax,
	"42883": unknownSyntax, // no such function
	"42704": unknownSyntax, // no such object
	"42P10": noColumn,      // no unique constraint for ON CONFLICT
}

var postgresqlClasses = map[string]class{
	"08": unknown,
	"28": denied,
	"53": unwritten, // too many connections, disk full, out of memory
	"58": unwritten, // the server's files or its operating system
}

// See https://dev.mysql.com/doc/mysql-errors/8.0/en/server-error-reference.html and
// https://mariadb.com/kb/en/mariadb-error-codes/.
func classifyMySQL(err error) class {
	number, ok := mysqlNumber(err)
	if !ok {
		return classifyNoReply(err)
	}
	return mysqlNumbers[number]
}

var mysqlNumbers = map[uint64]class{
	1062: duplicate,
	1213: unwritten,                                   // deadlock
	1205: unwritten,                                   // lock wait timeout: the statement was rolled back
	1020: unwritten,                                   // changed since last read: MariaDB's innodb_snapshot_isolation
	3572: unwritten,                                   // NOWAIT
	1040: unwritten,                                   // too many connections
	1203: unwritten,                                   // too many connections of this user
	1226: unwritten,                                   // a limit of this user
	3024: unwritten,                                   // max_execution_time
	1969: unwritten,                                   // max_statement_time, MariaDB
	4031: unwritten,                                   // the session had ended after wait_timeout, MySQL 8.0.24
	1047: unwritten,                                   // the node is not ready: Galera
	3101: unwritten,                                   // conflict with another node: group replication
	1021: unwritten,                                   // disk full
	1114: unwritten,                                   // table full
	1037: unwritten, 1038: unwritten, 1041: unwritten, // out of memory
	1053: unknown,  // the server is shutting down
	1317: unknown,  // killed
	1927: unknown,  // connection killed, MariaDB
	3169: unknown,  // session killed
	1290: readOnly, // the server runs with --read-only
	1792: readOnly, // in a transaction READ ONLY
	1836: readOnly, // the server is in read-only mode
	1146: noTable,
	1049: noTable, // database
	1046: noTable, // no database chosen
	1054: noColumn,
	1044: denied, 1045: denied, 1142: denied, 1143: denied, 1227: denied, 1698: denied,
	1129: denied, 1130: denied, // the host is blocked, or not allowed
	1820: denied, 1862: denied, 3118: denied, 4151: denied, // the password has expired, the account is locked
	1064: unknownSyntax,
	1305: unknownSyntax, // no such function
	1128: unknownSyntax,
	1461: notPrepared, // max_prepared_stmt_count
	1243: notPrepared, // unknown statement
	1295: notPrepared, // not supported in the prepared protocol
	1615: notPrepared, // needs to be prepared again
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
func classifySQLite(err error) class {
	e, ok := errors.AsType[resultCode](err)
	if !ok {
		return classifyNoReply(err)
	}
	switch e.Code() { // the extended code
	case 1555, 2067: // primary key, unique
		return duplicate
	}
	switch e.Code() & 0xff { // the primary code
	case 5, 6, 7, 13: // busy, locked, out of memory, disk full
		return unwritten
	case 8:
		return readOnly
	case 9, 10, 14: // interrupted, I/O error, cannot open
		return unknown
	case 3, 23: // no permission
		return denied
	case 26: // not a database
		return unknownSyntax
	case 1: // SQLITE_ERROR: only the text says more
		return classifySQLiteText(err.Error())
	}
	return other
}

func classifySQLiteText(text string) class {
	for _, t := range []struct {
		part string
		class
	}{
		{"no such table", noTable},
		{"no such column", noColumn},
		{"has no column named", noColumn},
		{"ON CONFLICT clause does not match", noColumn},
		{"no such function", unknownSyntax},
		{"syntax error", unknownSyntax},
		{"unrecognized token", unknownSyntax},
	} {
		if strings.Contains(text, t.part) {
			return t.class
		}
	}
	return other
}
