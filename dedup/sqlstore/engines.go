package sqlstore

import "strings"

var postgresql = &engine{
	name: "PostgreSQL",
	// clock_timestamp and not now, which is the start of the transaction: a statement that waited for a lock, or one in a
	// long transaction, would judge leases by a time that is over.
	now:        "floor(extract(epoch from clock_timestamp()) * 1000)::bigint",
	past:       "floor(extract(epoch from statement_timestamp()) * 1000)::bigint",
	greatest:   "greatest",
	numbered:   true,
	returning:  true,
	ignore:     "ON CONFLICT (id) DO NOTHING",
	skipLocked: "FOR UPDATE SKIP LOCKED",
	classify:   classifyPostgreSQL,
	identity:   "SELECT version()",
	is:         func(answer string) bool { return strings.HasPrefix(answer, "PostgreSQL") },
	readOnly:   "SELECT CASE WHEN pg_is_in_recovery() OR current_setting('transaction_read_only') = 'on' THEN 1 ELSE 0 END",
}

var mysql = &engine{
	name: "MySQL",
	// UTC_TIMESTAMP is the start of the statement, one value wherever it stands in it, and the same on a replica. A
	// statement that then waited for a lock has a time that is over: it takes fewer leases than it could and asks for a
	// shorter one, and its caller counts from before the statement too. SYSDATE would be later, but is in the session's
	// time zone, which has an hour twice a year that cannot be told apart.
	now:      "(TIMESTAMPDIFF(MICROSECOND, '1970-01-01 00:00:00', UTC_TIMESTAMP(3)) DIV 1000)",
	past:     "{now}",
	greatest: "greatest",
	// The duplicate is an error then. INSERT IGNORE would also cut a key that is too long, and the rows affected by ON
	// DUPLICATE KEY UPDATE depend on the driver's clientFoundRows.
	ignore:     "",
	skipLocked: "FOR UPDATE SKIP LOCKED",
	prepares:   true,
	classify:   classifyMySQL,
	identity:   "SELECT VERSION()",
	is:         func(answer string) bool { return answer != "" && answer[0] >= '0' && answer[0] <= '9' },
	readOnly:   "SELECT CASE WHEN @@global.read_only OR @@global.innodb_read_only THEN 1 ELSE 0 END",
}

var sqlite = &engine{
	name: "SQLite",
	// 'now' is one instant for the whole of a statement's step.
	now:       "(CAST(strftime('%s', 'now') AS INTEGER) * 1000 + CAST(substr(strftime('%f', 'now'), 4) AS INTEGER))",
	past:      "{now}",
	greatest:  "max",
	returning: true,
	ignore:    "ON CONFLICT (id) DO NOTHING",
	// Others cannot have locked a row: a writing transaction has the whole file.
	skipLocked: "",
	prepares:   true,
	classify:   classifySQLite,
	identity:   "SELECT sqlite_version()",
	is:         func(answer string) bool { return strings.HasPrefix(answer, "3.") },
	readOnly:   "SELECT query_only FROM pragma_query_only",
}
