// Package sqldb is shared by the packages of this module. It has the SQL of each kind of database, the meanings of the
// drivers' errors, the repetition of statements, and the creation of tables.
package sqldb

import (
	"database/sql"
	"regexp"
	"strconv"
	"strings"

	"github.com/sqsonce/sqsonce"
)

// Dialect is the SQL of one kind of database, and the prefix of its tables. The zero Dialect can only be checked.
type Dialect struct {
	engine *engine
	prefix string
	schema string // with its quotes and a dot, before the prefix: see Place
	mode   any    // the first argument of each statement; nil: none. See For
}

// The dialects: see those of package sqlstore.
var (
	PostgreSQL = Dialect{engine: postgresql, prefix: defaultPrefix}
	MySQL      = Dialect{engine: mysql, prefix: defaultPrefix}
	SQLite     = Dialect{engine: sqlite, prefix: defaultPrefix}

	engines = []*engine{postgresql, mysql, sqlite}
)

const defaultPrefix = "sqsonce_"

// Dialects are all dialects, with the default prefix.
func Dialects() (all []Dialect) {
	for _, e := range engines {
		all = append(all, Dialect{engine: e, prefix: defaultPrefix})
	}
	return all
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

// Unplaced is the dialect as its user has it, without the schema that was found and without For.
func (d Dialect) Unplaced() Dialect {
	d.schema, d.mode = "", nil
	return d
}

// For is the dialect for statements in the sessions of a pool. It keeps the driver from giving them names in the session: a pooler may
// run the next statement in another session, which knows another set of names. nil: the driver is not known.
func (d Dialect) For(db *sql.DB) Dialect {
	d.mode = nil
	if db != nil {
		d.mode = d.engine.nameless(db.Driver())
	}
	return d
}

// withMode are the arguments of a statement.
func (d Dialect) withMode(args ...any) []any {
	if d.mode == nil {
		return args
	}
	return append([]any{d.mode}, args...)
}

// What the statements and the calls of the other packages need to know of the dialect: see the fields of engine.

// Prepares says that it is cheaper to prepare a statement once per connection than to send its text each time.
func (d Dialect) Prepares() bool { return d.engine.prepares == yes }

// LargestStatement is a query for the most bytes that a statement may have. ok is false if the database doesn't set a limit
// that an event could exceed.
func (d Dialect) LargestStatement() (query string, ok bool) {
	return d.engine.largestStatement, d.engine.largestStatement != none
}

// LargestBlob is how many bytes a blob of the tables keeps.
func (d Dialect) LargestBlob() int { return d.engine.largestBlob }

// OneWriter says that one transaction writes at a time.
func (d Dialect) OneWriter() bool { return d.engine.oneWriter == yes }

// FailsOver says that a database may refuse writes for a while because of a failover. This is true of the zero Dialect.
func (d Dialect) FailsOver() bool { return d.engine == nil || d.engine.failsOver == yes }

// ResetSession are statements that undo the changes that a handler may have made to its session. They end its transaction.
func (d Dialect) ResetSession() []string { return d.engine.resetSession }

// AnyOf is the condition that a column is in the rows of a query, in an UPDATE that returns rows. It reports false if an
// UPDATE cannot return rows.
func (d Dialect) AnyOf(query string) (condition string, ok bool) {
	return strings.Replace(d.engine.anyOf, "*", query, 1), d.engine.anyOf != none
}

// DeleteOldest is a statement that deletes up to ? rows of a table, in the order of a column. key is the table's key.
func (d Dialect) DeleteOldest(table, key, where, order string) string {
	return d.SQL(d.engine.deleteOldest(table, key, where, order))
}

// Outbox is the part that differs in package sqloutbox.
func (d Dialect) Outbox() Outbox { return d.engine.outbox }

// Check returns a [*sqsonce.OptionError] of the package that was given the dialect, if it cannot be used.
func (d Dialect) Check(pkg string) error {
	fieldError := func(field, problem string) error {
		return &sqsonce.OptionError{Package: pkg, Field: field, Problem: problem}
	}
	switch {
	case d.engine == nil:
		return fieldError("dialect", "is none of "+names())
	case !prefixes.MatchString(d.prefix):
		return fieldError("dialect", "has prefix "+strconv.Quote(d.prefix)+", which is not 1 to 40 characters of a-z, 0-9 and '_', with at most one schema and '.' before them")
	case d.engine.schemas == no && strings.Contains(d.prefix, "."):
		return fieldError("dialect", "has prefix "+strconv.Quote(d.prefix)+" with a schema, and "+d.engine.name+" has no schemas")
	default:
		return nil
	}
}

// names are the dialects' for a sentence.
func names() string {
	var all []string
	for _, e := range engines {
		all = append(all, e.name)
	}
	last := len(all) - 1
	return strings.Join(all[:last], ", ") + " and " + all[last]
}

// SQL completes a statement: table names and the words that differ are in braces, and arguments are question marks. A
// statement uses braces and question marks for nothing else.
func (d Dialect) SQL(text string) string {
	index := d.prefix
	if _, name, qualified := strings.Cut(d.prefix, "."); qualified {
		index = name // an index is in its table's schema
	}
	raw, rawEnd, _ := strings.Cut(d.engine.raw, "*")
	text = strings.NewReplacer(
		"{now}", d.engine.now,
		"{past}", d.engine.past,
		"{greatest}", d.engine.greatest,
		"{ignore}", clause(d.engine.ignore),
		"{keep version}", d.engine.keepVersion,
		"{skip locked}", clause(d.engine.skipLocked),
		"{commits}", clause(d.engine.commits),
		"{bytes}", d.engine.bytes,
		"{raw}", raw,
		"{/raw}", rawEnd,
		"{row list}", clause(d.engine.rowList),
	).Replace(text)
	// The names come last: that of a schema may have question marks.
	table := d.schema + d.prefix
	names := strings.NewReplacer(
		"{records}", table+"records",
		"{inbox}", table+"inbox",
		"{schema}", table+"schema",
		"{outbox}", table+"outbox",
		"{outbox_later}", table+"outbox_later",
		"{outbox_locks}", table+"outbox_locks",
		"{outbox_schema}", table+"outbox_schema",
		"{index}", index,
	)
	var b strings.Builder
	for n := 1; ; n++ {
		before, after, found := strings.Cut(text, "?")
		b.WriteString(before)
		if !found {
			return names.Replace(b.String())
		}
		b.WriteString(d.engine.placeholder(n))
		text = after
	}
}

func clause(text string) string {
	if text == none {
		return ""
	}
	return text
}
