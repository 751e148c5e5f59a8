package sqldb

import (
	"context"
	"database/sql"
	"errors"
	"strings"
)

var sqlite = &engine{
	name:        "SQLite",
	identity:    "SELECT sqlite_version()",
	is:          func(version string) bool { return strings.HasPrefix(version, "3.") },
	schemas:     no,
	onlySchema:  "main", // TEMP tables come before it
	schemaOf:    none,
	quote:       `"`,
	placeholder: func(int) string { return "?" },

	now:         sqliteNow,
	past:        sqliteNow,
	greatest:    "max",
	ignore:      "ON CONFLICT (id) DO NOTHING",
	keepVersion: "ON CONFLICT (version) DO NOTHING",
	skipLocked:  none, // a writing transaction locks the whole file
	commits:     none,
	bytes:       "?",
	raw:         "*",
	rowList:     "VALUES ",
	returned:    returning,
	anyOf:       "IN (*)",
	deleteOldest: func(table, key, where, order string) string {
		return "DELETE FROM " + table + " WHERE " + key + " IN (SELECT " + key + " FROM " + table + " WHERE " + where + " ORDER BY " + order + " LIMIT ?)"
	},

	oneWriter:    yes,
	prepares:     yes,
	nameless:     neverNamed,
	resetSession: []string{},
	tables: tableWords{
		stringOf: "TEXT", string: "TEXT", textOf: "TEXT", text: "TEXT", blob: "BLOB",
		numbered: "INTEGER PRIMARY KEY AUTOINCREMENT",
		table:    none, keyedTable: " WITHOUT ROWID",
		newColumn: none, partialIndexes: yes, namedOnce: yes,
	},
	// IMMEDIATE takes the lock. The BEGIN of database/sql takes it at the first write, and may fail then.
	migrate: inTx("BEGIN IMMEDIATE", none),

	classify:   classifySQLite,
	isLogin:    func(error) bool { return false }, // a file has no logins
	readOnly:   "SELECT query_only FROM pragma_query_only",
	failsOver:  no,
	autocommit: none,

	server:           server{connections: none, sessionOf: unknownSession},
	largestStatement: none,
	largestBlob:      1_000_000_000,

	outbox: Outbox{
		Groups: "WITH RECURSIVE g (name, n) AS (" +
			"SELECT * FROM (SELECT aggregateid, 1 FROM {outbox} WHERE aggregatetype = ? AND aggregateid > ? ORDER BY aggregateid LIMIT 1)" +
			" UNION ALL SELECT (SELECT o.aggregateid FROM {outbox} o WHERE o.aggregatetype = ? AND o.aggregateid > g.name" +
			" ORDER BY o.aggregateid LIMIT 1), n + 1 FROM g WHERE g.name IS NOT NULL AND g.n < ?)" +
			" SELECT g.name, (SELECT MAX(o.seq) FROM {outbox} o WHERE o.aggregatetype = ? AND o.aggregateid = g.name), {now} - f.created_at, f.parked" +
			" FROM g CROSS JOIN {outbox} f WHERE f.seq = (SELECT MIN(o.seq) FROM {outbox} o WHERE o.aggregatetype = ? AND o.aggregateid = g.name)" +
			" AND g.name IS NOT NULL ORDER BY g.name",
		GroupArgs: func(box, after string, limit int) []any { return []any{box, after, box, limit, box, box} },
		Span:      "{outbox} INDEXED BY {index}outbox_group WHERE aggregatetype = ? AND aggregateid = ? AND seq <= ?",
		First:     "seq",
		Last:      "seq DESC",
		SpanArgs:  spanArgs,
		Heads:     headsOfEach,
		// The transaction has the file.
		Lock: GroupLock{
			Take:  func(context.Context, *sql.Tx, Dialect, []uint64) (string, error) { return "", nil },
			Try:   func(_ context.Context, _ *sql.Tx, _ Dialect, hashes []uint64) ([]uint64, error) { return hashes, nil },
			Check: noProblem, Tables: none,
		},
		ReadsUncommitted: isReadUncommitted,
		IdentityProblem:  noAutoincrement,
	},
}

// SQLite evaluates 'now' once for a whole step of a statement.
const sqliteNow = "(CAST(strftime('%s', 'now') AS INTEGER) * 1000 + CAST(substr(strftime('%f', 'now'), 4) AS INTEGER))"

func isReadUncommitted(ctx context.Context, q Queryer) (bool, error) {
	var level string
	err := q.QueryRowContext(ctx, "SELECT CASE read_uncommitted WHEN 1 THEN 'READ-UNCOMMITTED' ELSE '' END FROM pragma_read_uncommitted").Scan(&level)
	return level != "", err
}

func noAutoincrement(ctx context.Context, q Queryer, d Dialect) (problem string, err error) {
	var text string
	err = q.QueryRowContext(ctx, "SELECT sql FROM main.sqlite_master WHERE type = 'table' AND name = ?", d.Unplaced().SQL("{outbox}")).Scan(&text)
	if !strings.Contains(strings.ToUpper(text), "AUTOINCREMENT") {
		problem = "no AUTOINCREMENT"
	}
	return problem, err
}

// resultCode is implemented by the error of modernc.org/sqlite. The code is the extended one.
type resultCode interface {
	error
	Code() int
}

// See https://www.sqlite.org/rescode.html.
func classifySQLite(err error) Class {
	e, ok := errors.AsType[resultCode](err)
	if !ok {
		return classifyNoReply(err)
	}
	switch e.Code() { // the extended code
	case 1555, 2067: // primary key, unique
		return Duplicate
	}
	switch e.Code() & 0xff { // the primary code
	case 5, 6: // busy, locked
		return Conflict
	case 7, 13: // out of memory, disk full
		return Unwritten
	case 8:
		return ReadOnly
	case 9, 10, 14: // interrupted, I/O error, cannot open
		return Unknown
	case 3, 23: // no permission
		return Denied
	case 26: // not a database
		return UnknownSyntax
	case 1: // SQLITE_ERROR: only the text says more
		return classifySQLiteText(err.Error())
	}
	return Other
}

func classifySQLiteText(text string) Class {
	for _, t := range []struct {
		part  string
		class Class
	}{
		{"no such table", NoTable},
		{"no such column", NoColumn},
		{"has no column named", NoColumn},
		{"ON CONFLICT clause does not match", NoColumn},
		{"duplicate column name", Exists},
		{"no such function", UnknownSyntax},
		{"syntax error", UnknownSyntax},
		{"unrecognized token", UnknownSyntax},
	} {
		if strings.Contains(text, t.part) {
			return t.class
		}
	}
	return Other
}
