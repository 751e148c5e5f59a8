package sqlstore

import (
	"errors"
	"fmt"

	"github.com/sqsonce/sqsonce"
)

// What can be wrong with a database. A [*DatabaseError] matches one of them.
var (
	// ErrDialect: the store was made with a dialect for another kind of database.
	ErrDialect = errors.New("database is not of the dialect's kind: choose its own dialect")
	// ErrNoTable: a table, or its database or schema, does not exist.
	ErrNoTable = errors.New("table does not exist: run Migrate, or check the dialect's prefix")
	// ErrSchemaVersion: the tables are of an older version than [SchemaVersion].
	ErrSchemaVersion = errors.New("schema version is too old: run Migrate")
	// ErrReadOnly: the server or the connection takes no writes, as a replica does. A failover can cause it for a while.
	ErrReadOnly = errors.New("database is read-only: connect to the primary")
	// ErrAccessDenied: the user may not log in, or may not use the tables.
	ErrAccessDenied = errors.New("access denied: check the user, its password and its rights on the tables")
	// ErrClosed: this program has closed the connection pool.
	ErrClosed = errors.New("connection pool is closed")
	// ErrAutocommit: the MySQL session has autocommit off, so nothing of the store would be committed.
	ErrAutocommit = errors.New("autocommit is off and nothing would be committed: turn it on in the data source name")
)

// DatabaseError says why the database cannot be used. No retry helps: it matches [sqsonce.ErrMisconfigured]. The exception
// is ErrReadOnly, which a failover causes for a while: it matches [sqsonce.ErrUnavailable] only, except on SQLite.
type DatabaseError struct {
	// Dialect is the one that the store was made with.
	Dialect Dialect
	// Problem is one of the errors above.
	Problem error
	// Detail is the operation, or what was found instead.
	Detail string
	// Err is the driver's error, if there is one.
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
	failover := e.Problem == ErrReadOnly && e.Dialect.engine != sqlite
	return target == sqsonce.ErrUnavailable || target == sqsonce.ErrMisconfigured && !failover
}

// Unwrap returns the problem and the driver's error.
func (e *DatabaseError) Unwrap() []error {
	if e.Err == nil {
		return []error{e.Problem}
	}
	return []error{e.Problem, e.Err}
}

var problems = map[class]error{
	readOnly:       ErrReadOnly,
	noTable:        ErrNoTable,
	noColumn:       ErrSchemaVersion,
	denied:         ErrAccessDenied,
	unknownSyntax:  ErrDialect,
	connPoolClosed: ErrClosed,
}

// explain gives an operation's final error its type and its name. What no message causes (no connection, no reply, a lock, a
// deadlock, a server without resources) is [sqsonce.Unavailable]. It returns nil, a refusal by the record and a
// [*DatabaseError] unchanged.
func explain(d Dialect, op string, err error) error {
	if err == nil || isRefusal(err) || isDatabaseError(err) {
		return err
	}
	c := d.classify(err)
	if problem := problems[c]; problem != nil {
		return &DatabaseError{Dialect: d, Problem: problem, Detail: op, Err: err}
	}
	err = fmt.Errorf("sqlstore: %s: %w", op, err)
	if c == unwritten || c == unknown {
		return sqsonce.Unavailable(err)
	}
	return err
}

func isDatabaseError(err error) bool {
	_, is := errors.AsType[*DatabaseError](err)
	return is
}

// isPermanent reports whether no retry helps, also not after a failover.
func isPermanent(err error) bool { return isDatabaseError(err) && !errors.Is(err, ErrReadOnly) }
