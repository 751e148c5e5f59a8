package sqlstore

import (
	"database/sql"
	"database/sql/driver"
	"errors"
	"reflect"
)

// The drivers' errors are told apart without importing the drivers, which are the user's choice.
//
//   - PostgreSQL: pgx's error has a method SQLState, and so has lib/pq's.
//   - SQLite: modernc's error has a method Code, the extended result code.
//   - MySQL: go-sql-driver's error has no method but Error and Is; its field Number is exported and is read by reflection.
//     The text begins with the number too, but the text also quotes values, which are the sender's.

// withoutAnswer classifies an error that is not the server's.
func withoutAnswer(err error) class {
	switch {
	case errors.Is(err, driver.ErrBadConn):
		return unwritten // a driver says this only where the server cannot have got the statement
	case errors.Is(err, sql.ErrNoRows), errors.Is(err, sql.ErrTxDone):
		return other
	case isClosed(err):
		return closed
	}
	// A connection that broke, a timeout, an answer that could not be read.
	return unknown
}

// isClosed knows the error of a closed sql.DB, which has no name, by its text; it is never wrapped.
func isClosed(err error) bool { return err != nil && err.Error() == "sql: database is closed" }

// sqlState is met by the errors of pgx and of lib/pq.
type sqlState interface {
	error
	SQLState() string
}

// See https://www.postgresql.org/docs/current/errcodes-appendix.html.
func classifyPostgreSQL(err error) class {
	e, ok := errors.AsType[sqlState](err)
	if !ok {
		return withoutAnswer(err)
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
	"53300": unwritten, // too many connections
	"57P03": unwritten, // starting up
	"40003": unknown,
	"57P01": unknown, // shut down while the statement was at work
	"57P02": unknown,
	"57P05": unknown,
	"25006": readOnly,
	"42P01": noTable,
	"3D000": noTable, // database
	"3F000": noTable, // schema
	"42703": noColumn,
	"42501": denied,
	"42601": notSpoken,
	"42883": notSpoken, // no such function
	"42704": notSpoken, // no such object
	"42P10": noColumn,  // no unique constraint for ON CONFLICT
}

var postgresqlClasses = map[string]class{"08": unknown, "28": denied}

// See https://dev.mysql.com/doc/mysql-errors/8.0/en/server-error-reference.html and
// https://mariadb.com/kb/en/mariadb-error-codes/.
func classifyMySQL(err error) class {
	number, ok := mysqlNumber(err)
	if !ok {
		return withoutAnswer(err)
	}
	return mysqlNumbers[number]
}

var mysqlNumbers = map[uint64]class{
	1062: duplicate,
	1213: unwritten, // deadlock
	1205: unwritten, // lock wait timeout: the statement was rolled back
	1020: unwritten, // changed since last read: MariaDB's innodb_snapshot_isolation
	3572: unwritten, // NOWAIT
	1040: unwritten, // too many connections
	1203: unwritten, // of this user
	1226: unwritten, // of this user, by its limits
	3024: unwritten, // max_execution_time
	1969: unwritten, // max_statement_time, MariaDB
	4031: unwritten, // the session was ended before, idle for wait_timeout, MySQL 8.0.24
	1053: unknown,   // shutting down
	1317: unknown,   // killed
	1927: unknown,   // connection killed, MariaDB
	3169: unknown,   // session killed
	1290: readOnly,  // running with --read-only
	1792: readOnly,  // in a transaction READ ONLY
	1836: readOnly,  // in read-only mode
	1146: noTable,
	1049: noTable, // database
	1046: noTable, // no database chosen
	1054: noColumn,
	1044: denied, 1045: denied, 1142: denied, 1143: denied, 1227: denied, 1698: denied,
	1064: notSpoken,
	1305: notSpoken, // no such function
	1128: notSpoken,
	1461: unprepared, // max_prepared_stmt_count
	1243: unprepared, // no such statement
	1295: unprepared, // this one cannot be
	1615: unprepared, // it has to be prepared again
}

// mysqlNumber finds an error struct with a field Number in err's tree.
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
