package sqlstore

import (
	"errors"
	"fmt"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/dedup/sqlstore/internal/sqldb"
)

// These errors are the problems of a database. A [*DatabaseError] matches one of them.
var (
	// ErrDialect says that the store was made with a dialect for another kind of database.
	ErrDialect = sqldb.ErrDialect
	// ErrNoTable says that a table, or its database or schema, doesn't exist.
	ErrNoTable = sqldb.ErrNoTable
	// ErrSchemaVersion says that the tables are of an older version than [SchemaVersion].
	ErrSchemaVersion = sqldb.ErrSchemaVersion
	// ErrReadOnly says that the server or the connection refuses writes, like a replica. A failover can cause it for a
	// while.
	ErrReadOnly = sqldb.ErrReadOnly
	// ErrAccessDenied says that the user may not log in, or may not use the tables.
	ErrAccessDenied = sqldb.ErrAccessDenied
	// ErrClosed says that this program has closed the connection pool.
	ErrClosed = sqldb.ErrClosed
	// ErrAutocommit says that the MySQL session has autocommit off, so the store's statements would not be committed.
	ErrAutocommit = sqldb.ErrAutocommit
)

// DatabaseError says why the database can't be used. Retries don't help, so it matches [sqsonce.ErrMisconfigured]. The
// exception is ErrReadOnly, which a failover causes for a while. It matches [sqsonce.ErrUnavailable] only, except on
// SQLite.
type DatabaseError struct {
	// Dialect is the dialect that the store was made with.
	Dialect Dialect
	// Problem is one of the errors above.
	Problem error
	// Detail is the operation, or the value that was found instead.
	Detail string
	// Err is the driver's error, or nil.
	Err error
}

func (e *DatabaseError) Error() string {
	s := fmt.Sprintf("sqlstore: %s: %v", e.Dialect, e.Problem)
	if e.Detail != "" {
		s += " (" + e.Detail + ")"
	}
	if e.Err != nil {
		s += ": " + e.Err.Error()
	}
	return s
}

// Is reports a match with [sqsonce.ErrUnavailable] and [sqsonce.ErrMisconfigured].
func (e *DatabaseError) Is(target error) bool {
	failover := e.Problem == ErrReadOnly && sqldb.Dialect(e.Dialect).FailsOver()
	return target == sqsonce.ErrUnavailable || target == sqsonce.ErrMisconfigured && !failover
}

// Unwrap returns the problem and the driver's error.
func (e *DatabaseError) Unwrap() []error {
	if e.Err == nil {
		return []error{e.Problem}
	}
	return []error{e.Problem, e.Err}
}

var reporter = sqldb.Reporter{
	Package: "sqlstore",
	Unusable: func(d sqldb.Dialect, problem error, detail string, err error) error {
		return &DatabaseError{Dialect: Dialect(d.Unplaced()), Problem: problem, Detail: detail, Err: err}
	},
	Final: func(err error) bool { return isRefusal(err) || isDatabaseError(err) },
}

// explain is [sqldb.DB.Explain].
func (s *Store) explain(op string, err error) error { return s.base.Explain(op, err) }

func isDatabaseError(err error) bool {
	_, is := errors.AsType[*DatabaseError](err)
	return is
}

// isPermanent reports whether no retry helps, also not after a failover or a change of a password.
func isPermanent(err error) bool {
	e, is := errors.AsType[*DatabaseError](err)
	return is && e.Problem != ErrReadOnly && !sqldb.Dialect(e.Dialect).IsLogin(e.Err)
}
