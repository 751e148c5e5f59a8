// Package sqldb is what the packages of this module share: the SQL of each kind of database, what the drivers' errors mean,
// how statements are repeated, and how tables are made.
package sqldb

import (
	"regexp"
	"strconv"
	"strings"

	"github.com/sqsonce/sqsonce"
)

// Dialect is the SQL of one kind of database, and the prefix of its tables. The zero Dialect can only be checked.
type Dialect struct {
	engine *engine
	prefix string
}

// The dialects: see those of package sqlstore.
var (
	PostgreSQL = Dialect{postgresql, defaultPrefix}
	MySQL      = Dialect{mysql, defaultPrefix}
	SQLite     = Dialect{sqlite, defaultPrefix}
)

const defaultPrefix = "sqsonce_"

// engine is what differs between the kinds of database.
type engine struct {
	name string
	// now is the database's clock in whole milliseconds since the Unix epoch, rounded down. It is evaluated where it stands.
	now string
	// past is now or a little earlier, as one value for the whole statement, so that an index can be searched for it.
	past string
	// greatest is the function that returns the larger of its arguments.
	greatest string
	// numbered says that placeholders are $1, $2. Otherwise they are ?.
	numbered bool
	// returning says that a statement can return a number of the row it wrote. MySQL has LAST_INSERT_ID for that.
	returning bool
	// ignore is the end of an INSERT that writes nothing if the id exists. If it is empty, the database reports a duplicate
	// as an error.
	ignore string
	// skipLocked is the clause that skips rows locked by other transactions.
	skipLocked string
	// commits is a condition that is false in a session that does not commit by itself, to be added to another condition.
	commits string
	// prepares says that it is cheaper to prepare a statement once per connection than to send its text each time.
	// PostgreSQL's driver does that by itself where the server, or a proxy before it, allows it.
	prepares bool
	// classify says what an error of the driver means.
	classify func(error) Class
	// identity is a query for the database's version, and is reports whether that version is of this kind.
	identity string
	is       func(version string) bool
	// bytes is a text argument that the server stores as the bytes that it gets, whatever character set the connection has.
	bytes string
	// raw and rawEnd stand around a column that is returned as its bytes.
	raw, rawEnd string
	// readOnly is a query that returns 1 if this server, or this connection, takes no writes.
	readOnly string
}

var postgresql = &engine{
	name: "PostgreSQL",
	// clock_timestamp, not now, which is the start of the transaction: a statement that waited for a lock, or that is in a
	// long transaction, would judge leases by an old time.
	now:        "floor(extract(epoch from clock_timestamp()) * 1000)::bigint",
	past:       "floor(extract(epoch from statement_timestamp()) * 1000)::bigint",
	greatest:   "greatest",
	numbered:   true,
	returning:  true,
	ignore:     "ON CONFLICT (id) DO NOTHING",
	skipLocked: "FOR UPDATE SKIP LOCKED",
	classify:   classifyPostgreSQL,
	bytes:      "?",
	identity:   "SELECT version()",
	is:         func(version string) bool { return strings.HasPrefix(version, "PostgreSQL") },
	readOnly:   "SELECT CASE WHEN pg_is_in_recovery() OR current_setting('transaction_read_only') = 'on' THEN 1 ELSE 0 END",
}

var mysql = &engine{
	name: "MySQL",
	// UTC_TIMESTAMP is the start of the statement: one value wherever it stands in it, and the same on a replica. A statement
	// that then waited for a lock uses an old time. That is safe: it takes fewer leases than it could and asks for a shorter
	// one, and its caller also counts from before the statement. SYSDATE would be later, but it is in the session's time
	// zone, where one hour a year comes twice.
	now:      "(TIMESTAMPDIFF(MICROSECOND, '1970-01-01 00:00:00', UTC_TIMESTAMP(3)) DIV 1000)",
	past:     "{now}",
	greatest: "greatest",
	// INSERT IGNORE would also cut a key that is too long, and the rows affected by ON DUPLICATE KEY UPDATE depend on the
	// driver's clientFoundRows.
	ignore:     "",
	skipLocked: "FOR UPDATE SKIP LOCKED",
	commits:    " AND @@session.autocommit",
	prepares:   true,
	classify:   classifyMySQL,
	bytes:      "CAST(? AS BINARY)",
	raw:        "CAST(",
	rawEnd:     " AS BINARY)",
	identity:   "SELECT VERSION()",
	is:         func(version string) bool { return version != "" && version[0] >= '0' && version[0] <= '9' },
	readOnly:   "SELECT CASE WHEN @@global.read_only OR @@global.innodb_read_only THEN 1 ELSE 0 END",
}

var sqlite = &engine{
	name: "SQLite",
	// SQLite evaluates 'now' once for a whole step of a statement.
	now:       "(CAST(strftime('%s', 'now') AS INTEGER) * 1000 + CAST(substr(strftime('%f', 'now'), 4) AS INTEGER))",
	past:      "{now}",
	greatest:  "max",
	returning: true,
	ignore:    "ON CONFLICT (id) DO NOTHING",
	// Not needed: a writing transaction locks the whole file.
	skipLocked: "",
	prepares:   true,
	classify:   classifySQLite,
	bytes:      "?",
	identity:   "SELECT sqlite_version()",
	is:         func(version string) bool { return strings.HasPrefix(version, "3.") },
	readOnly:   "SELECT query_only FROM pragma_query_only",
}

// String returns the name of the kind of database.
func (d Dialect) String() string {
	if d.engine == nil {
		return "no dialect"
	}
	return d.engine.name
}

// prefixes matches table names that need no quotes in any dialect, with or without a schema. PostgreSQL's names have at
// most 63 bytes.
var prefixes = regexp.MustCompile(`^([a-z_][a-z0-9_]{0,62}\.)?[a-z_][a-z0-9_]{0,39}$`)

// WithPrefix returns the dialect with other table names.
func (d Dialect) WithPrefix(prefix string) Dialect {
	d.prefix = prefix
	return d
}

// Is reports whether d is for the same kind of database as other, with any prefix.
func (d Dialect) Is(other Dialect) bool { return d.engine == other.engine }

// Past is the database's clock or a little earlier, as one value for the whole statement, so that an index can be searched
// for it.
func (d Dialect) Past() string { return d.engine.past }

// IgnoresDuplicates says that an INSERT with {ignore} writes nothing if the id exists. Otherwise it fails.
func (d Dialect) IgnoresDuplicates() bool { return d.engine.ignore != "" }

// Prepares says that it is cheaper to prepare a statement once per connection than to send its text each time.
func (d Dialect) Prepares() bool { return d.engine.prepares }

// Check returns a [*sqsonce.OptionError] of the package that was given the dialect, if it cannot be used.
func (d Dialect) Check(pkg string) error {
	fieldError := func(field, problem string) error {
		return &sqsonce.OptionError{Package: pkg, Field: field, Problem: problem}
	}
	switch {
	case d.engine == nil:
		return fieldError("dialect", "is none of PostgreSQL, MySQL and SQLite")
	case !prefixes.MatchString(d.prefix):
		return fieldError("dialect", "has prefix "+strconv.Quote(d.prefix)+", which is not 1 to 40 characters of a-z, 0-9 and '_', with at most one schema and '.' before them")
	case d.engine == sqlite && strings.Contains(d.prefix, "."):
		return fieldError("dialect", "has prefix "+strconv.Quote(d.prefix)+" with a schema, and SQLite has no schemas")
	default:
		return nil
	}
}

// SQL completes a statement: table names and the words that differ are in braces, and arguments are question marks. A
// statement uses braces and question marks for nothing else.
func (d Dialect) SQL(text string) string {
	index := d.prefix
	if _, name, qualified := strings.Cut(d.prefix, "."); qualified {
		index = name // an index is in its table's schema
	}
	text = strings.NewReplacer(
		"{records}", d.prefix+"records",
		"{inbox}", d.prefix+"inbox",
		"{schema}", d.prefix+"schema",
		"{outbox}", d.prefix+"outbox",
		"{outbox_locks}", d.prefix+"outbox_locks",
		"{outbox_schema}", d.prefix+"outbox_schema",
		"{index}", index,
		"{now}", d.engine.now,
		"{greatest}", d.engine.greatest,
		"{ignore}", d.engine.ignore,
		"{skip locked}", d.engine.skipLocked,
		"{commits}", d.engine.commits,
		"{bytes}", d.engine.bytes,
		"{raw}", d.engine.raw,
		"{/raw}", d.engine.rawEnd,
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
