package sqlstore

import (
	"errors"
	"fmt"
)

// What can be wrong with a database. A [*DatabaseError] matches one of them.
var (
	ErrDialect       = errors.New("the database is of another kind than the dialect")
	ErrNoTable       = errors.New("there is no such table: see Migrate")
	ErrSchemaVersion = errors.New("the schema's version is too old: see Migrate")
	ErrReadOnly      = errors.New("the database takes no writes")
	ErrAccessDenied  = errors.New("access was refused")
	ErrClosed        = errors.New("the pool is closed")
	ErrAutocommit    = errors.New("autocommit is off: nothing would be committed")
)

// DatabaseError says why the database cannot be used. No retry mends it, but for ErrReadOnly in a failover.
type DatabaseError struct {
	// Dialect is the one that the store was made with.
	Dialect Dialect
	// Problem is one of the errors above.
	Problem error
	// Detail is the operation, or what was found instead.
	Detail string
	// Err is the database's answer, if there was one.
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

// Unwrap returns the problem and the database's answer.
func (e *DatabaseError) Unwrap() []error {
	if e.Err == nil {
		return []error{e.Problem}
	}
	return []error{e.Problem, e.Err}
}

var problems = map[class]error{
	readOnly:  ErrReadOnly,
	noTable:   ErrNoTable,
	noColumn:  ErrSchemaVersion,
	denied:    ErrAccessDenied,
	notSpoken: ErrDialect,
	closed:    ErrClosed,
}

// explain gives an operation's final error its type and its name. It leaves nil, what says something about the record,
// and what is explained already.
func explain(d Dialect, op string, err error) error {
	if err == nil || isAnswer(err) {
		return err
	}
	if _, done := errors.AsType[*DatabaseError](err); done {
		return err
	}
	if problem := problems[d.classify(err)]; problem != nil {
		return &DatabaseError{Dialect: d, Problem: problem, Detail: op, Err: err}
	}
	return fmt.Errorf("sqlstore: %s: %w", op, err)
}
