package sqldb

import (
	"context"
	"database/sql"
	"database/sql/driver"
)

// engine is everything in which the kinds of database differ: one value in a file per kind. Nothing outside of that file
// asks which kind a database is. Each field has a value in each engine, none or no where a database does not need it:
// TestEngines finds a field that was forgotten.
type engine struct {
	name string
	// identity is a query for the database's version, and is reports whether that version is of this kind.
	identity string
	is       func(version string) bool
	// schemas says that a table's name may have a schema before it.
	schemas choice
	// onlySchema is the schema of all tables, whatever the session has. none: schemaOf is a query for the schema in which the
	// session finds a table, here *, and returns no row if it finds none.
	onlySchema, schemaOf string
	// quote begins and ends the name of a schema. Inside of it stand two for one.
	quote string
	// placeholder is the nth argument of a statement. The first is 1.
	placeholder func(n int) string

	// now is the database's clock in whole milliseconds since the Unix epoch, rounded down. It is evaluated where it stands.
	now string
	// past is now or a little earlier, as one value for the whole statement, so that an index can be searched for it.
	past string
	// greatest is the function that returns the larger of its arguments.
	greatest string
	// ignore is the end of an INSERT that writes nothing if the id exists. If it is none, the database reports a duplicate as
	// an error.
	ignore string
	// keepVersion is the end of an INSERT of a version that may exist.
	keepVersion string
	// skipLocked is the clause that skips rows locked by other transactions.
	skipLocked string
	// commits is a condition that is false in a session that does not commit by itself, to be added to another condition.
	commits string
	// bytes is a text argument that the server stores as the bytes that it gets, whatever character set the connection has.
	bytes string
	// raw is a column, here *, that is returned as its bytes.
	raw string
	// rowList is the word before a list of rows in IN.
	rowList string
	// returned is how a statement returns a number of the row it wrote.
	returned returned
	// anyOf is the condition that a column is in the rows of a query, here *, in an UPDATE that returns rows. The database
	// evaluates the query once, although it has a limit and locks. none: an UPDATE cannot return rows.
	anyOf string
	// deleteOldest is a statement that deletes up to ? rows of a table, in the order of a column. key is the table's key.
	deleteOldest func(table, key, where, order string) string

	// oneWriter says that one transaction writes at a time. Statements of one process then take turns.
	oneWriter choice
	// prepares says that it is cheaper to prepare a statement once per connection than to send its text each time.
	prepares choice
	// nameless returns the argument that keeps a driver from naming the statements that it prepares by itself; nil: it does not.
	nameless func(driver.Driver) any
	// resetSession are statements that undo what a handler may have changed of its session. They end its transaction.
	resetSession []string
	// tables are the words of the statements that make the tables.
	tables tableWords
	// migrate runs apply behind a lock that every other migration of that name waits for, in a transaction if the database
	// can roll back what makes tables.
	migrate func(ctx context.Context, conn *sql.Conn, name string, apply func() error) error

	// classify says what an error of the driver means.
	classify func(error) Class
	// isLogin says that an error of the driver refuses a connection: see IsLogin.
	isLogin func(error) bool
	// readOnly is a query that returns 1 if this server, or this connection, takes no writes.
	readOnly string
	// failsOver says that a database that takes no writes may do so because of a failover, and for a while.
	failsOver choice
	// autocommit is a query that returns 0 if nothing that the session writes is committed by itself.
	autocommit string
	// server is how much it can take of all programs.
	server server
	// largestStatement is a query for how many bytes a statement may have. none: more than an event has.
	largestStatement string
	// largestBlob is how many bytes a blob of the tables keeps.
	largestBlob int

	outbox Outbox
}

// neverNamed is nameless of a database whose drivers prepare nothing by themselves.
func neverNamed(driver.Driver) any { return nil }

// none is a clause that a database does not need.
const none = "{none}"

// choice is a decision. Its zero value is that nobody has decided.
type choice int

const (
	no choice = iota + 1
	yes
)
