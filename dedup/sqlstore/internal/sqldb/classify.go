package sqldb

import (
	"database/sql"
	"database/sql/driver"
	"errors"
	"strings"
)

// Class is the meaning of a driver's error for the statement.
type Class int

const (
	Other          Class = iota // any other answer: a retry at once does not help
	Duplicate                   // a row with this key exists
	Exists                      // a column or an index of this name exists
	Conflict                    // nothing was written, because of another transaction: deadlock, serialization failure, lock timeout, busy
	Unwritten                   // nothing was written for another reason, and a retry may succeed: a timeout, no resources, a session that has ended
	Unknown                     // unknown outcome: the connection broke, or no reply came
	ReadOnly                    // the server refuses writes
	NoTable                     // a table, or its database or schema, does not exist
	NoColumn                    // the table exists and lacks the column
	Denied                      // the user may not do this
	UnknownSyntax               // the statement's words are unknown: another kind of database, or a version too old
	ConnPoolClosed              // this program has closed the pool
	NotPrepared                 // the server does not have the prepared statement, and did nothing
	Aborted                     // the transaction can only be rolled back, because of an earlier error
)

// Classify returns the meaning of err for a statement of the dialect.
func (d Dialect) Classify(err error) Class { return d.engine.classify(err) }

// IsLogin reports that the database refused a connection, and no statement: a password, the host, or the account. It says nothing
// about what the role may do.
func (d Dialect) IsLogin(err error) bool { return d.engine.isLogin(err) }

// RolledBack reports whether a transaction that ended in err was rolled back and may be run again, such as a deadlock's
// victim. It is false for an error after which the commit's outcome is unknown.
func (d Dialect) RolledBack(err error) bool {
	return err != nil && (d.Classify(err) == Unwritten || d.IsConflict(err))
}

// IsConflict reports whether err rolled the transaction back because of another transaction.
func (d Dialect) IsConflict(err error) bool { return err != nil && d.Classify(err) == Conflict }

// The drivers' errors are recognised without importing the drivers, which are the user's choice: by a method, or by
// reflection.

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
