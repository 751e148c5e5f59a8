package sqldb

import (
	"context"
	"database/sql"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"
)

var mysql = &engine{
	name:        "MySQL",
	identity:    "SELECT VERSION()",
	is:          func(version string) bool { return version != "" && version[0] >= '0' && version[0] <= '9' },
	schemas:     yes,
	onlySchema:  none,
	schemaOf:    "SELECT DATABASE() FROM information_schema.tables WHERE table_schema = DATABASE() AND table_name = '*'",
	quote:       "`",
	placeholder: func(int) string { return "?" },

	now:      mysqlNow,
	past:     mysqlNow,
	greatest: "greatest",
	// INSERT IGNORE would also cut a key that is too long, and the rows affected by ON DUPLICATE KEY UPDATE depend on the
	// driver's clientFoundRows.
	ignore:      none,
	keepVersion: "ON DUPLICATE KEY UPDATE version = version",
	skipLocked:  "FOR UPDATE SKIP LOCKED",
	commits:     " AND @@session.autocommit",
	bytes:       "CAST(? AS BINARY)",
	raw:         "CAST(* AS BINARY)",
	rowList:     none,
	returned:    lastInsertID,
	anyOf:       none,
	deleteOldest: func(table, _, where, order string) string {
		return "DELETE FROM " + table + " WHERE " + where + " ORDER BY " + order + " LIMIT ?"
	},

	oneWriter: no,
	prepares:  yes,
	// The handler may have turned autocommit off, and the connection goes back to the pool, where statements of others must be
	// committed. The ROLLBACK comes first because the SET commits.
	nameless:     neverNamed,
	resetSession: []string{"ROLLBACK", "SET autocommit = 1"},
	migrate:      behindNamedLock,
	tables: tableWords{
		stringOf: "varbinary($1)", string: "mediumblob", textOf: "varchar($1)", text: "mediumtext", blob: "mediumblob",
		numbered: "bigint NOT NULL AUTO_INCREMENT PRIMARY KEY",
		table:    mysqlTable, keyedTable: mysqlTable,
		newColumn: none, partialIndexes: no, namedOnce: no,
	},

	classify:   classifyMySQL,
	isLogin:    isMySQLLogin,
	readOnly:   "SELECT CASE WHEN @@global.read_only OR @@global.innodb_read_only THEN 1 ELSE 0 END",
	failsOver:  yes,
	autocommit: "SELECT @@session.autocommit",

	server:           server{connections: "SELECT @@max_connections, connection_id()", sessionOf: unknownSession},
	largestStatement: "SELECT @@max_allowed_packet",
	largestBlob:      1<<24 - 1, // a session that is not strict cuts the rest off

	outbox: Outbox{
		// The index is read group by group, the first and the last row of each. MySQL does so only if the grouping begins with the
		// index, which it does not where the outbox's column is compared with one value. No outbox has the name ''.
		Groups: "SELECT g.name, g.highest, {now} - f.created_at, f.parked FROM" +
			" (SELECT aggregateid AS name, MIN(seq) AS lowest, MAX(seq) AS highest FROM {outbox} FORCE INDEX FOR GROUP BY ({index}outbox_group)" +
			" WHERE aggregatetype IN (?, '') AND aggregateid > ? GROUP BY aggregatetype, aggregateid ORDER BY aggregatetype, aggregateid LIMIT ?) g" +
			" JOIN {outbox} f ON f.seq = g.lowest ORDER BY g.name",
		GroupArgs: func(box, after string, limit int) []any { return []any{box, after, limit} },
		Span:      "{outbox} FORCE INDEX ({index}outbox_group) WHERE aggregatetype = ? AND aggregateid = ? AND seq <= ?",
		// MariaDB sorts the whole group if the order names more than the number.
		First:            "seq",
		Last:             "seq DESC",
		SpanArgs:         spanArgs,
		Heads:            headsOfEach,
		Lock:             GroupLock{Take: lockStripes, Try: tryStripes, Check: missingStripes, Tables: lockTable},
		ReadsUncommitted: isolationIsLow,
		IdentityProblem:  autoIncrementProblem,
	},
}

const mysqlTable = " ENGINE = InnoDB ROW_FORMAT = DYNAMIC CHARACTER SET utf8mb4 COLLATE utf8mb4_bin"

// UTC_TIMESTAMP is the start of the statement: one value wherever it stands in it, and the same on a replica. A statement
// that then waited for a lock uses an old time. That is safe: it takes fewer leases than it could and asks for a shorter
// one, and its caller also counts from before the statement. SYSDATE would be later, but it is in the session's time
// zone, where one hour a year comes twice.
const mysqlNow = "(TIMESTAMPDIFF(MICROSECOND, '1970-01-01 00:00:00', UTC_TIMESTAMP(3)) DIV 1000)"

// migrateWait limits how long a migration waits for another process that migrates.
const migrateWait = time.Minute

// behindNamedLock applies a migration statement by statement, behind a named lock of the server.
func behindNamedLock(ctx context.Context, conn *sql.Conn, name string, apply func() error) error {
	var got sql.NullInt64
	if err := conn.QueryRowContext(ctx, "SELECT GET_LOCK(?, ?)", name, int(migrateWait.Seconds())).Scan(&got); err != nil {
		return err
	}
	if got.Int64 != 1 {
		return fmt.Errorf("lock %q: another process has been migrating for more than %v; call Migrate again", name, migrateWait)
	}
	// The lock belongs to the connection: closing it frees the lock.
	defer Discard(conn)
	return apply()
}

// stripes is how many rows the table of locks has. Two groups share one with a probability of 1/4,096: then they wait for
// one another, and nothing else.
const stripes = 4096

const lockTable = `-- What writers of a group lock. A lock row that is made on demand is a deadlock for those who make it at once.
CREATE TABLE IF NOT EXISTS {outbox_locks} (
    stripe int NOT NULL PRIMARY KEY -- 0 to 4095
) ENGINE = InnoDB;

INSERT IGNORE INTO {outbox_locks} (stripe)
WITH RECURSIVE digits (n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM digits WHERE n < 15)
SELECT a.n * 256 + b.n * 16 + c.n FROM digits a, digits b, digits c;
`

// lockRows limits the stripes of one statement: with more, MySQL might prefer to read, and lock, the whole table.
const lockRows = 64

// lockStripes locks the rows of the table of locks that the groups have.
func lockStripes(ctx context.Context, tx *sql.Tx, d Dialect, hashes []uint64) (problem string, err error) {
	for some := range slices.Chunk(stripesOf(hashes), lockRows) {
		locked, err := lockSome(ctx, tx, d, some, "FOR UPDATE")
		switch {
		case err != nil:
			return "", err
		case len(locked) != len(some): // a row that is not there is no lock
			return fmt.Sprintf("%d of %d rows", len(locked), len(some)), nil
		}
	}
	return "", nil
}

// stripesOf are the stripes of the groups, each once and in order.
func stripesOf(hashes []uint64) (all []uint64) {
	for _, h := range hashes {
		all = append(all, h%stripes)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

func lockSome(ctx context.Context, tx *sql.Tx, d Dialect, some []uint64, end string) (locked []uint64, err error) {
	args := make([]any, len(some))
	for i, stripe := range some {
		args[i] = stripe
	}
	return All(ctx, tx, func(r Row) (stripe uint64, err error) {
		err = r.Scan(&stripe)
		return stripe, err
	}, d.SQL("SELECT stripe FROM {outbox_locks} WHERE stripe IN (?"+strings.Repeat(", ?", len(some)-1)+") ORDER BY stripe "+end), args...)
}

// tryStripes takes a row that is not there for one that another transaction has.
func tryStripes(ctx context.Context, tx *sql.Tx, d Dialect, hashes []uint64) (taken []uint64, err error) {
	for some := range slices.Chunk(stripesOf(hashes), lockRows) {
		locked, err := lockSome(ctx, tx, d, some, "{skip locked}")
		if err != nil {
			return nil, err
		}
		for _, h := range hashes {
			if slices.Contains(locked, h%stripes) {
				taken = append(taken, h)
			}
		}
	}
	return taken, nil
}

func missingStripes(ctx context.Context, q Queryer, d Dialect) (problem string, err error) {
	var rows int
	err = q.QueryRowContext(ctx, d.SQL("SELECT COUNT(*) FROM {outbox_locks}")).Scan(&rows)
	if err == nil && rows != stripes {
		problem = fmt.Sprintf("%d rows", rows)
	}
	return problem, err
}

// isolationIsLow looks at the session. The variable's name depends on the version.
func isolationIsLow(ctx context.Context, q Queryer) (bool, error) {
	var name, level string
	err := q.QueryRowContext(ctx, "SHOW VARIABLES WHERE Variable_name IN ('transaction_isolation', 'tx_isolation')").Scan(&name, &level)
	return level == "READ-UNCOMMITTED", err
}

func autoIncrementProblem(ctx context.Context, q Queryer, d Dialect) (problem string, err error) {
	var extra string
	var field, kind, null, key, standard sql.NullString
	err = q.QueryRowContext(ctx, d.SQL("SHOW COLUMNS FROM {outbox} LIKE 'seq'")).Scan(&field, &kind, &null, &key, &standard, &extra)
	if !strings.Contains(strings.ToLower(extra), "auto_increment") {
		problem = "no AUTO_INCREMENT"
	}
	return problem, err
}

// See https://dev.mysql.com/doc/mysql-errors/8.0/en/server-error-reference.html and
// https://mariadb.com/kb/en/mariadb-error-codes/.
func classifyMySQL(err error) Class {
	number, ok := mysqlNumber(err)
	if !ok {
		return classifyNoReply(err)
	}
	return mysqlNumbers[number]
}

func isMySQLLogin(err error) bool {
	number, _ := mysqlNumber(err)
	return mysqlLogins[number]
}

// mysqlLogins are the numbers of MySQL and MariaDB. 1044 refuses the database to a login; a statement's table is 1142.
var mysqlLogins = map[uint64]bool{
	1044: true, 1045: true, 1049: true, 1129: true, 1130: true, 1698: true, 1820: true, 1862: true, 3118: true, 4151: true,
}

var mysqlNumbers = map[uint64]Class{
	1062: Duplicate,
	1060: Exists,                                      // column
	1061: Exists,                                      // index
	1213: Conflict,                                    // deadlock
	1205: Conflict,                                    // lock wait timeout: the statement was rolled back
	1020: Conflict,                                    // changed since last read: MariaDB's innodb_snapshot_isolation
	3572: Conflict,                                    // NOWAIT
	1040: Unwritten,                                   // too many connections
	1203: Unwritten,                                   // too many connections of this user
	1226: Unwritten,                                   // a limit of this user
	3024: Unwritten,                                   // max_execution_time
	1969: Unwritten,                                   // max_statement_time, MariaDB
	4031: Unwritten,                                   // the session had ended after wait_timeout, MySQL 8.0.24
	1047: Unwritten,                                   // the node is not ready: Galera
	3101: Conflict,                                    // conflict with another node: group replication
	1021: Unwritten,                                   // disk full
	1114: Unwritten,                                   // table full
	1037: Unwritten, 1038: Unwritten, 1041: Unwritten, // out of memory
	1053: Unknown,  // the server is shutting down
	1317: Unknown,  // killed
	1927: Unknown,  // connection killed, MariaDB
	3169: Unknown,  // session killed
	1290: ReadOnly, // the server runs with --read-only
	1792: ReadOnly, // in a transaction READ ONLY
	1836: ReadOnly, // the server is in read-only mode
	1146: NoTable,
	1049: NoTable, // database
	1046: NoTable, // no database chosen
	1054: NoColumn,
	1044: Denied, 1045: Denied, 1142: Denied, 1143: Denied, 1227: Denied, 1698: Denied,
	1129: Denied, 1130: Denied, // the host is blocked, or not allowed
	1820: Denied, 1862: Denied, 3118: Denied, 4151: Denied, // the password has expired, the account is locked
	1064: UnknownSyntax,
	1305: UnknownSyntax, // no such function
	1128: UnknownSyntax,
	1461: NotPrepared, // max_prepared_stmt_count
	1243: NotPrepared, // unknown statement
	1295: NotPrepared, // not supported in the prepared protocol
	1615: NotPrepared, // needs to be prepared again
}

// mysqlNumber returns the field Number of the first *MySQLError in err's tree. The error of go-sql-driver has no method but
// Error and Is. Its text begins with the number too, but the text also quotes values, which the sender chooses.
func mysqlNumber(err error) (uint64, bool) {
	if err == nil {
		return 0, false
	}
	v := reflect.Indirect(reflect.ValueOf(err))
	if v.Kind() == reflect.Struct && v.Type().Name() == "MySQLError" {
		if f := v.FieldByName("Number"); f.IsValid() && f.CanUint() {
			return f.Uint(), true
		}
	}
	switch e := err.(type) {
	case interface{ Unwrap() error }:
		return mysqlNumber(e.Unwrap())
	case interface{ Unwrap() []error }:
		for _, err := range e.Unwrap() {
			if n, ok := mysqlNumber(err); ok {
				return n, true
			}
		}
	}
	return 0, false
}
