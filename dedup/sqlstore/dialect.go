package sqlstore

import (
	"regexp"
	"strconv"
	"strings"

	"github.com/sqsonce/sqsonce"
)

// Dialect is the SQL of one kind of database: [PostgreSQL], [MySQL] or [SQLite]. It is a value and can be compared. The
// zero Dialect is refused wherever one is asked for.
type Dialect struct {
	engine *engine
	prefix string
}

// The dialects. Their tables are named sqsonce_records, sqsonce_inbox and sqsonce_schema; see [Dialect.WithPrefix].
var (
	// PostgreSQL is for version 12 and later, with the driver github.com/jackc/pgx/v5/stdlib.
	PostgreSQL = Dialect{postgresql, defaultPrefix}
	// MySQL is for MySQL 8.0 and MariaDB 10.6 and later, with the driver github.com/go-sql-driver/mysql. The parameter
	// interpolateParams=true in the data source name saves two round trips with every statement. The parameter autocommit
	// must not be off: nothing of the store would be committed.
	MySQL = Dialect{mysql, defaultPrefix}
	// SQLite is for version 3.35 and later, with the driver modernc.org/sqlite. The file must be on a disk of the machine
	// itself: leases are as good as its locks. _pragma=busy_timeout(5000) and _pragma=journal_mode(WAL) in the data source
	// name let connections wait for one another.
	SQLite = Dialect{sqlite, defaultPrefix}
)

const defaultPrefix = "sqsonce_"

// engine is what the kinds of database do differently.
type engine struct {
	name string
	// now is the database's clock in whole milliseconds of the epoch, rounded down. It is evaluated where it stands.
	now string
	// past is now, or a little before it, as one value for a whole statement, by which an index can be searched.
	past string
	// greatest is the function that returns the larger of its arguments.
	greatest string
	// numbered placeholders are $1, $2; others are ?.
	numbered bool
	// returning says that a statement can hand back a number of the row it wrote. MySQL has LAST_INSERT_ID for that.
	returning bool
	// ignore ends an INSERT that writes nothing where the id is there already. Where it is empty the database answers a
	// duplicate with an error.
	ignore string
	// skipLocked is the clause that passes over rows which others have locked.
	skipLocked string
	// prepares says that a statement of which each connection prepares a copy once is cheaper than its text each time.
	// PostgreSQL's driver does that by itself where the server, or what is before it, allows.
	prepares bool
	// classify says what an error of the driver means.
	classify func(error) class
	// identity is a query whose answer says which kind of database this is, and is how its answer looks.
	identity string
	is       func(answer string) bool
	// readOnly is a query that is true where this server, or this connection, takes no writes.
	readOnly string
}

// String returns the name of the kind of database.
func (d Dialect) String() string {
	if d.engine == nil {
		return "no dialect"
	}
	return d.engine.name
}

// prefixes are names of tables without quotes, in every dialect, with or without a schema before them. PostgreSQL's
// longest name has 63 bytes.
var prefixes = regexp.MustCompile(`^([a-z_][a-z0-9_]{0,62}\.)?[a-z_][a-z0-9_]{0,39}$`)

// WithPrefix returns the dialect with other table names: prefix followed by records, inbox and schema. A prefix may begin
// with the name of a database schema and a dot: "app.once_". It has lower case letters, digits and underscores, at most
// 40 of them after the dot. Default: "sqsonce_".
func (d Dialect) WithPrefix(prefix string) Dialect {
	d.prefix = prefix
	return d
}

// check returns what is wrong with the dialect as an argument, or nil.
func (d Dialect) check() error {
	switch {
	case d.engine == nil:
		return fieldError("dialect", "is none of PostgreSQL, MySQL and SQLite")
	case !prefixes.MatchString(d.prefix):
		return fieldError("dialect", "has a prefix "+strconv.Quote(d.prefix)+" that is no table's name of a-z, 0-9 and '_', with at most one '.'")
	case d.engine == sqlite && strings.Contains(d.prefix, "."):
		return fieldError("dialect", "has a prefix with a schema, which SQLite has not")
	default:
		return nil
	}
}

// sql completes a statement: the names of our tables and the words that differ are in braces, and arguments are question
// marks. A statement holds neither in any other meaning.
func (d Dialect) sql(text string) string {
	index := d.prefix
	if _, name, qualified := strings.Cut(d.prefix, "."); qualified {
		index = name // an index is in its table's schema
	}
	text = strings.NewReplacer(
		"{records}", d.prefix+"records",
		"{inbox}", d.prefix+"inbox",
		"{schema}", d.prefix+"schema",
		"{index}", index,
		"{now}", d.engine.now,
		"{greatest}", d.engine.greatest,
		"{ignore}", d.engine.ignore,
		"{skip locked}", d.engine.skipLocked,
	).Replace(text)
	if !d.engine.numbered {
		return text
	}
	var b strings.Builder
	for n := 1; ; n++ {
		before, after, found := strings.Cut(text, "?")
		b.WriteString(before)
		if !found {
			return b.String()
		}
		b.WriteString("$" + strconv.Itoa(n))
		text = after
	}
}

func fieldError(field, problem string) error {
	return &sqsonce.FieldError{Package: "sqlstore", Field: field, Problem: problem}
}

// class is what an error of the database says about the statement.
type class int

const (
	other      class = iota // an answer that no retry mends
	duplicate               // a row with this key is there
	unwritten               // nothing was written, and a retry may succeed: deadlock, serialization failure, lock timeout, busy
	unknown                 // it may have been written: the connection broke, or there was no answer
	readOnly                // the server takes no writes
	noTable                 // a table, or its database or schema, is not there
	noColumn                // a table is there and has not the column
	denied                  // the user may not
	notSpoken               // the statement's words are unknown: another kind of database, or a version too old
	closed                  // the pool was closed by this program
	unprepared              // the server has not the prepared statement, and did nothing
)

// classify says what err means for a statement of the dialect.
func (d Dialect) classify(err error) class { return d.engine.classify(err) }

// retryable reports whether a whole transaction that ended in err may be run again: it was rolled back, as a deadlock's
// victim for one. Never for an error that leaves the outcome of a commit open.
func (d Dialect) retryable(err error) bool { return err != nil && d.classify(err) == unwritten }
