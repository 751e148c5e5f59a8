package sqlbed

import (
	"bufio"
	"io"
	"strings"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib"
	_ "modernc.org/sqlite"

	"github.com/sqsonce/sqsonce/dedup/sqlstore/internal/sqldb"
	"github.com/sqsonce/sqsonce/internal/testserver"
)

// Kind is a kind of database, with the words in which tests talk to it.
type Kind struct {
	Label   string
	Dialect sqldb.Dialect
	Driver  string
	// without names the fields that the kind leaves empty. TestKinds finds those that were forgotten.
	without string

	server *testserver.Database // nil: the database is a file
	// existing is a database on a new server, and parameters end each data source name.
	existing, parameters string

	// ReadOnly makes a session that takes no writes, and ReadOnlyDSN a data source name for such sessions. nil: there is none
	// that the store recognises, and a test needs a server of its own.
	ReadOnly    string
	ReadOnlyDSN func(dsn string) string
	// ShortLocks changes a data source name for sessions that wait for a lock no longer than LockWait.
	LockWait   time.Duration
	ShortLocks func(dsn string) string
	// Commit is the statement by which the driver commits.
	Commit string
	// SessionID is a query for the session's number, and EndSession ends the session's connection. "": a file has none.
	SessionID, EndSession string
	// Connections is a query for how many connections the server allows to all programs, or "" for a file.
	Connections string
	// Kill is the statement that ends the session of the number %d.
	Kill string
	// SessionStatus is a query for a counter of the session, *, or "" without one. OldClock ends the data source name of sessions whose clock is in
	// the past, or is "" where a session has none.
	SessionStatus, OldClock string
	// Procedures make what Commits need: statements that commit implicitly, by name.
	Procedures []string
	Commits    map[string]string
	// Address is the host and port in a data source name, and OnePacket ends one whose statements are a packet each.
	Address   func(dsn string) string
	OnePacket string
	// RollsBack says that a migration that fails changes nothing.
	RollsBack bool
	// Explain begins a query for a statement's plan, and Analyze renews the statistics of the table *.
	Explain, Analyze string
	// Writer returns the statements that make a login which may not delete, and those that remove it. Login is the login of the
	// data source names.
	Writer func(login, database string) (create, drop []string)
	// Stranger returns the statements that make a login which, unlike another one, may not connect to the database. nil: a login is
	// one for all databases.
	Stranger func(login, other, database string) (create []string, drop string)
	Login    string
	// What sqloutbox sends and expects. OutboxGroup is the name of a group, of the number n and %d groups. OutboxLock and
	// OutboxHeads begin the statements by which Add locks, and by which Claim finds. OutboxGroupsPlan is in the plan for all groups.
	OutboxGroup, OutboxGroupsPlan string
	OutboxLock, OutboxHeads       []string
	// Elsewhere returns a schema next to the database's own, or "" without one, and the settings by which a session finds its
	// tables there.
	Elsewhere func(database string) (schema, use string)
	// Numbered is the type of a column that numbers the rows.
	Numbered string
	// refuse serves a connection to a stub.
	refuse func(s *Stub, r *bufio.Reader, w io.Writer) error
	// Sessions are parameters of other sessions, in which the store's statements mean the same. In those of a file each is
	// "NEW for OLD".
	Sessions map[string]string
}

// Kinds are all kinds. MariaDB and MySQL share a dialect.
var Kinds = []Kind{postgresql, mysqlOn(testserver.MariaDB), mysqlOn(testserver.MySQL), sqlite}

// Names are the labels of all kinds, Servers of those that have a server, and MySQLs of those that share the dialect.
var (
	Names   = labels(func(Kind) bool { return true })
	Servers = labels(Kind.HasServer)
	MySQLs  = labels(func(k Kind) bool { return k.Dialect == sqldb.MySQL })
)

// HasServer reports whether the database is on a server, and no file.
func (k Kind) HasServer() bool { return k.server != nil }

func labels(is func(Kind) bool) (all []string) {
	for _, k := range Kinds {
		if is(k) {
			all = append(all, k.Label)
		}
	}
	return all
}

// KindOf returns the kind with a label.
func KindOf(label string) Kind {
	for _, k := range Kinds {
		if k.Label == label {
			return k
		}
	}
	panic("no kind " + label)
}

var postgresql = Kind{
	Label: "PostgreSQL", Dialect: sqldb.PostgreSQL, Driver: "pgx",
	without: "parameters SessionStatus OldClock Procedures Commits OutboxGroupsPlan",
	server:  testserver.PostgreSQL, existing: "postgres",
	ReadOnly:    "SET default_transaction_read_only = on",
	ReadOnlyDSN: func(dsn string) string { return dsn + "&default_transaction_read_only=on" },
	LockWait:    50 * time.Millisecond,
	ShortLocks:  func(dsn string) string { return dsn + "&lock_timeout=50ms" },
	Commit:      "commit",
	SessionID:   "SELECT pg_backend_pid()",
	EndSession:  "SELECT pg_terminate_backend(pg_backend_pid())",
	Kill:        "SELECT pg_terminate_backend(%d)",
	Connections: "SELECT sum(CASE name WHEN 'max_connections' THEN setting::int ELSE -setting::int END) FROM pg_settings" +
		" WHERE name IN ('max_connections', 'superuser_reserved_connections', 'reserved_connections')",
	Address: func(dsn string) string {
		_, rest, _ := strings.Cut(dsn, "@")
		address, _, _ := strings.Cut(rest, "/")
		return address
	},
	OnePacket: "&default_query_exec_mode=exec",
	RollsBack: true,
	Explain:   "EXPLAIN ",
	Analyze:   "ANALYZE *",
	Writer: func(login, _ string) (create, drop []string) {
		return []string{"CREATE ROLE " + login + " LOGIN", "GRANT SELECT, INSERT, UPDATE ON ALL TABLES IN SCHEMA public TO " + login},
			[]string{"DROP OWNED BY " + login, "DROP ROLE " + login}
	},
	Stranger: func(login, other, database string) (create []string, drop string) {
		return []string{"CREATE ROLE " + login + " LOGIN", "REVOKE CONNECT ON DATABASE " + database + " FROM PUBLIC", "GRANT CONNECT ON DATABASE " + database + " TO " + other},
			"DROP ROLE " + login
	},
	Login:       "postgres",
	OutboxGroup: "'g' || lpad(CAST(CASE WHEN n %% 2 = 0 THEN 0 ELSE (n / 2) %% %d END AS text), 6, '0')",
	OutboxLock:  []string{"SELECT pg_advisory_xact_lock(k)"},
	OutboxHeads: []string{"SELECT g.name,"},
	Elsewhere:   func(string) (schema, use string) { return "elsewhere", "SET search_path = elsewhere" },
	Numbered:    "BIGINT GENERATED ALWAYS AS IDENTITY",
	refuse:      refusePostgreSQL,
	Sessions: map[string]string{
		"serializable":    "default_transaction_isolation=serializable",
		"repeatable read": "default_transaction_isolation=repeatable%20read",
		"far east":        "TimeZone=Pacific/Kiritimati",
		"far west":        "TimeZone=Pacific/Midway",
	},
}

func mysqlOn(server *testserver.Database) Kind {
	return Kind{
		Label: server.Name, Dialect: sqldb.MySQL, Driver: "mysql",
		without: "ReadOnlyDSN OnePacket RollsBack Stranger",
		server:  server, existing: "test", parameters: "?interpolateParams=true",
		ReadOnly:      "SET SESSION TRANSACTION READ ONLY",
		LockWait:      time.Second,
		ShortLocks:    func(dsn string) string { return dsn + "&innodb_lock_wait_timeout=1" },
		Commit:        "COMMIT",
		SessionID:     "SELECT CONNECTION_ID()",
		EndSession:    "KILL CONNECTION_ID()",
		Kill:          "KILL %d",
		Connections:   "SELECT @@global.max_connections",
		SessionStatus: "SHOW SESSION STATUS LIKE '*'",
		OldClock:      "&timestamp=1700000000",
		Procedures:    []string{"CREATE PROCEDURE commits() COMMIT"},
		Commits: map[string]string{
			"definition":  "CREATE TABLE IF NOT EXISTS ledger (account INT)",
			"procedure":   "CALL commits()",
			"transaction": "START TRANSACTION",
		},
		Address: func(dsn string) string {
			_, rest, _ := strings.Cut(dsn, "(")
			address, _, _ := strings.Cut(rest, ")")
			return address
		},
		Explain: "EXPLAIN FORMAT=TRADITIONAL ", // it has another default
		Analyze: "ANALYZE TABLE *",
		Writer: func(login, database string) (create, drop []string) {
			return []string{"CREATE USER " + login, "GRANT SELECT, INSERT, UPDATE ON " + database + ".* TO " + login}, nil
		},
		Login:            "test",
		OutboxGroup:      "CONCAT('g', LPAD(CASE WHEN n %% 2 = 0 THEN 0 ELSE (n DIV 2) %% %d END, 6, '0'))",
		OutboxGroupsPlan: "using index for group-by",
		OutboxLock:       []string{"SELECT stripe"},
		OutboxHeads:      []string{"SELECT ?"},
		Elsewhere: func(database string) (schema, use string) {
			return database + "_elsewhere", "USE " + database + "_elsewhere"
		},
		Numbered: "BIGINT AUTO_INCREMENT PRIMARY KEY",
		refuse:   refuseMySQL,
		Sessions: map[string]string{
			"serializable":           "transaction_isolation=%27SERIALIZABLE%27",
			"read committed":         "transaction_isolation=%27READ-COMMITTED%27",
			"far east":               "time_zone=%27%2B13:00%27",
			"far west":               "time_zone=%27-11:00%27",
			"parsed times":           "parseTime=true&loc=Local",
			"found rows":             "clientFoundRows=true",
			"prepared":               "interpolateParams=false",
			"an old character set":   "charset=latin1",
			"no backslashes, strict": "sql_mode=%27NO_BACKSLASH_ESCAPES,ANSI,TRADITIONAL%27",
		},
	}
}

var sqlite = Kind{
	Label: "SQLite", Dialect: sqldb.SQLite, Driver: "sqlite",
	without: "server existing EndSession Connections Kill SessionStatus OldClock Procedures Commits Address OnePacket Writer Stranger Login" +
		" OutboxGroupsPlan OutboxLock OutboxHeads refuse",
	parameters: "?_pragma=busy_timeout(10000)&_pragma=journal_mode(WAL)&_txlock=immediate",
	ReadOnly:   "PRAGMA query_only = 1",
	ReadOnlyDSN: func(dsn string) string {
		return strings.Replace(dsn, "_txlock=immediate", "_txlock=deferred", 1) + "&_pragma=query_only(1)"
	},
	LockWait: 50 * time.Millisecond,
	ShortLocks: func(dsn string) string {
		return strings.Replace(dsn, "busy_timeout(10000)", "busy_timeout(50)", 1)
	},
	Commit:      "COMMIT",
	SessionID:   "SELECT 0",
	RollsBack:   true,
	Explain:     "EXPLAIN QUERY PLAN ",
	Analyze:     "ANALYZE",
	OutboxGroup: "printf('g%%06d', CASE WHEN n %% 2 = 0 THEN 0 ELSE (n / 2) %% %d END)",
	Elsewhere: func(string) (schema, use string) {
		for _, table := range []string{"records", "inbox", "schema", "outbox", "outbox_later", "outbox_schema"} {
			use += "CREATE TEMP TABLE IF NOT EXISTS sqsonce_" + table + " (id, seq, version);"
		}
		return "", use
	},
	Numbered: "INTEGER PRIMARY KEY AUTOINCREMENT",
	Sessions: map[string]string{
		"rollback journal": "journal_mode(DELETE) for journal_mode(WAL)",
		"deferred":         "_txlock=deferred for _txlock=immediate",
	},
}

// SQLiteError is a result of SQLite, as the driver returns one.
type SQLiteError int

func (e SQLiteError) Error() string { return "SQLite's result" }

// Code returns the result.
func (e SQLiteError) Code() int { return int(e) }
