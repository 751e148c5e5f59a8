package sqldb

import (
	"errors"
	"fmt"

	"github.com/sqsonce/sqsonce"
)

// What can be wrong with a database. A [*DatabaseError] matches one of them.
var (
	ErrDialect       = errors.New("database is not of the dialect's kind: choose its own dialect")
	ErrNoTable       = errors.New("table does not exist: run Migrate, or check the prefix: that of the dialect, or ?prefix= in sqsonce-full --store")
	ErrSchemaVersion = errors.New("schema version is too old: run Migrate")
	ErrReadOnly      = errors.New("database is read-only: connect to the primary")
	ErrAccessDenied  = errors.New("access denied: check the user, its password and its rights on the tables")
	ErrClosed        = errors.New("connection pool is closed")
	ErrAutocommit    = errors.New("autocommit is off so nothing would be committed: turn it on in the data source name")
)

var problems = map[Class]error{
	ReadOnly:       ErrReadOnly,
	NoTable:        ErrNoTable,
	NoColumn:       ErrSchemaVersion,
	Denied:         ErrAccessDenied,
	UnknownSyntax:  ErrDialect,
	ConnPoolClosed: ErrClosed,
}

// Reporter gives the errors of one package their form.
type Reporter struct {
	// Package begins an error's text.
	Package string
	// Unusable returns the package's error of a database that cannot be used. problem is one of the errors above, detail is
	// the operation or the value that was found instead, err is the driver's error or nil.
	Unusable func(d Dialect, problem error, detail string, err error) error
	// Final reports whether an error has its form already: one of Unusable, or a result that is no failure.
	Final func(error) bool
}

// Explain gives an operation's final error its type and its name. It is for statements of this module alone: whatever the
// database answers them, also at the login, is [sqsonce.Unavailable]. It returns nil and what is Final unchanged.
func (r Reporter) Explain(d Dialect, op string, err error) error {
	err = r.ExplainIn(d, op, err)
	if err == nil || r.Final(err) || errors.Is(err, sqsonce.ErrUnavailable) {
		return err
	}
	return sqsonce.Unavailable(err)
}

// ExplainIn is Explain for a statement in a transaction of the caller, whose own statements may be the reason for an answer:
// unavailable are only no connection, no reply, a lock, a deadlock, and a server without resources.
func (r Reporter) ExplainIn(d Dialect, op string, err error) error {
	if err == nil || r.Final(err) {
		return err
	}
	c := d.Classify(err)
	if problem := problems[c]; problem != nil {
		return r.Unusable(d, problem, op, err)
	}
	err = fmt.Errorf("%s: %s: %w", r.Package, op, err)
	if c == Conflict || c == Unwritten || c == Unknown {
		return sqsonce.Unavailable(err)
	}
	return err
}
