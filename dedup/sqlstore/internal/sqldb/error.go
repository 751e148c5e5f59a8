package sqldb

import (
	"fmt"

	"github.com/sqsonce/sqsonce"
)

// DatabaseError says why the database can't be used. Retries don't help, so it matches [sqsonce.ErrMisconfigured]. The
// exception is ErrReadOnly, which a failover causes for a while. It matches [sqsonce.ErrUnavailable] only, except on
// SQLite.
type DatabaseError struct {
	Dialect Dialect // as the store was made with it
	Problem error   // one of the errors of this package, or of the outbox's
	Detail  string  // the operation, or the value that was found instead
	Err     error   // the driver's error, or nil
}

// NewDatabaseError returns a [DatabaseError] of a store with the dialect.
func NewDatabaseError(d Dialect, problem error, detail string, err error) *DatabaseError {
	return &DatabaseError{Dialect: d.Unplaced(), Problem: problem, Detail: detail, Err: err}
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
	failover := e.Problem == ErrReadOnly && e.Dialect.FailsOver()
	return target == sqsonce.ErrUnavailable || target == sqsonce.ErrMisconfigured && !failover
}

// Unwrap returns the problem and the driver's error.
func (e *DatabaseError) Unwrap() []error {
	if e.Err == nil {
		return []error{e.Problem}
	}
	return []error{e.Problem, e.Err}
}
