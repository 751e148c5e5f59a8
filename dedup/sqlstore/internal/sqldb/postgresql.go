package sqldb

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"strings"
)

var postgresql = &engine{
	name:        "PostgreSQL",
	identity:    "SELECT version()",
	is:          func(version string) bool { return strings.HasPrefix(version, "PostgreSQL") },
	schemas:     yes,
	onlySchema:  none,
	schemaOf:    "SELECT n.nspname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.oid = to_regclass('*')",
	quote:       `"`,
	placeholder: func(n int) string { return "$" + strconv.Itoa(n) },

	// clock_timestamp, not now, which is the start of the transaction: a statement that waited for a lock, or that is in a
	// long transaction, would judge leases by an old time.
	now:         "floor(extract(epoch from clock_timestamp()) * 1000)::bigint",
	past:        "floor(extract(epoch from statement_timestamp()) * 1000)::bigint",
	greatest:    "greatest",
	ignore:      "ON CONFLICT (id) DO NOTHING",
	keepVersion: "ON CONFLICT (version) DO NOTHING",
	skipLocked:  "FOR UPDATE SKIP LOCKED",
	commits:     none,
	bytes:       "?",
	raw:         "*",
	rowList:     none,
	returned:    returning,
	// An array is evaluated once. A subquery in IN may be evaluated again, each time with other rows.
	anyOf: "= ANY(ARRAY(*))",
	// Two statements delete different rows, and neither waits for the other.
	deleteOldest: func(table, key, where, order string) string {
		return "DELETE FROM " + table + " WHERE " + key + " = ANY(ARRAY(SELECT " + key + " FROM " + table + " WHERE " + where +
			" ORDER BY " + order + " LIMIT ? {skip locked})) AND " + where
	},

	oneWriter:    no,
	prepares:     no, // see nameless
	nameless:     execMode,
	resetSession: []string{},
	tables: tableWords{
		stringOf: bytewise, string: bytewise, textOf: bytewise, text: bytewise, blob: "bytea",
		numbered: "bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY",
		table:    none, keyedTable: none,
		newColumn: " IF NOT EXISTS", partialIndexes: yes, namedOnce: yes,
	},
	// Any number works, as long as every Migrate of a prefix uses the same one.
	migrate: inTx("BEGIN", "SELECT pg_advisory_xact_lock(hashtext($1))"),

	classify:   classifyPostgreSQL,
	isLogin:    isPostgreSQLLogin,
	readOnly:   "SELECT CASE WHEN pg_is_in_recovery() OR current_setting('transaction_read_only') = 'on' THEN 1 ELSE 0 END",
	failsOver:  yes,
	autocommit: none,

	server: server{
		connections: "SELECT current_setting('max_connections')::int - current_setting('superuser_reserved_connections')::int" +
			" - coalesce(current_setting('reserved_connections', true)::int, 0), pg_backend_pid()", // reserved_connections: since 16
		sessionOf: pgxSession,
	},
	largestStatement: none,
	largestBlob:      1<<30 - 1,

	outbox: Outbox{
		// The recursion goes from the first row of a group to the first row of the next one.
		Groups: "WITH RECURSIVE g AS (" +
			"(SELECT o.aggregateid, o.created_at, o.parked, 1 AS n FROM {outbox} o WHERE o.aggregatetype = ? AND o.aggregateid > ?" +
			" ORDER BY o.aggregateid, o.seq LIMIT 1)" +
			" UNION ALL SELECT f.aggregateid, f.created_at, f.parked, g.n + 1 FROM g CROSS JOIN LATERAL" +
			" (SELECT o.aggregateid, o.created_at, o.parked FROM {outbox} o WHERE o.aggregatetype = ? AND o.aggregateid > g.aggregateid" +
			" ORDER BY o.aggregateid, o.seq LIMIT 1) f WHERE g.n < ?)" +
			" SELECT g.aggregateid, l.seq, {now} - g.created_at, g.parked FROM g CROSS JOIN LATERAL" +
			" (SELECT o.seq FROM {outbox} o WHERE o.aggregatetype = ? AND (o.aggregateid, o.seq) <= (g.aggregateid, 9223372036854775807)" +
			" ORDER BY o.aggregateid DESC, o.seq DESC LIMIT 1) l",
		GroupArgs: func(box, after string, limit int) []any { return []any{box, after, box, limit, box} },
		// The form of the condition leaves the planner no order but the index's.
		Span:             "{outbox} WHERE (aggregatetype, aggregateid, seq) > (?, ?, 0) AND (aggregatetype, aggregateid, seq) <= (?, ?, ?)",
		First:            "aggregatetype, aggregateid, seq",
		Last:             "aggregatetype DESC, aggregateid DESC, seq DESC",
		SpanArgs:         func(box, group string, bound int64) []any { return []any{box, group, box, group, bound} },
		Heads:            headsOfList,
		Lock:             GroupLock{Take: lockAdvisory, Try: tryAdvisory, Check: noProblem, Tables: none},
		ReadsUncommitted: func(context.Context, Queryer) (bool, error) { return false, nil }, // its READ UNCOMMITTED is READ COMMITTED
		IdentityProblem:  sequenceProblem,
	},
}

const bytewise = `text COLLATE "C"`

func headsOfList(box string, groups []string) (text string, args []any, err error) {
	names, err := json.Marshal(groups)
	return "SELECT g.name, f.seq, l.seq FROM json_array_elements_text(CAST(CAST(? AS text) AS json)) AS g (name) CROSS JOIN LATERAL" +
		" (SELECT o.aggregatetype, o.aggregateid, o.seq FROM {outbox} o WHERE (o.aggregatetype, o.aggregateid, o.seq) > (?, g.name, 0)" +
		" ORDER BY o.aggregatetype, o.aggregateid, o.seq LIMIT 1) f CROSS JOIN LATERAL" +
		" (SELECT o.seq FROM {outbox} o WHERE (o.aggregatetype, o.aggregateid, o.seq) <= (?, g.name, 9223372036854775807)" +
		" ORDER BY o.aggregatetype DESC, o.aggregateid DESC, o.seq DESC LIMIT 1) l" +
		" WHERE f.aggregatetype = ? AND f.aggregateid = g.name", []any{string(names), box, box, box}, err
}

// lockAdvisory takes advisory locks. The statement orders them; one that is named twice is taken twice, and counted by the
// database. The subquery is not merged into the outer query, so that the locks are taken in the order of their numbers.
func lockAdvisory(ctx context.Context, tx *sql.Tx, d Dialect, hashes []uint64) (problem string, err error) {
	_, err = d.In(tx).ExecContext(ctx, d.SQL("SELECT pg_advisory_xact_lock(k) FROM "+sortedLocks), advisoryLocks(hashes))
	return "", err
}

const sortedLocks = "(SELECT k FROM unnest(CAST(string_to_array(?, ',') AS bigint[])) AS k ORDER BY k OFFSET 0) AS sorted"

// advisoryLocks is the argument of sortedLocks.
func advisoryLocks(hashes []uint64) string {
	all := make([]string, len(hashes))
	for i, h := range hashes {
		all[i] = strconv.FormatInt(int64(h), 10)
	}
	return strings.Join(all, ",")
}

func tryAdvisory(ctx context.Context, tx *sql.Tx, d Dialect, hashes []uint64) (taken []uint64, err error) {
	return All(ctx, d.In(tx), func(r Row) (uint64, error) {
		var k int64
		err := r.Scan(&k)
		return uint64(k), err
	}, d.SQL("SELECT k FROM "+sortedLocks+" WHERE pg_try_advisory_xact_lock(k)"), advisoryLocks(hashes))
}

func sequenceProblem(ctx context.Context, q Queryer, d Dialect) (problem string, err error) {
	var cache, increment int64
	var cycle bool
	err = d.In(q).QueryRowContext(ctx, "SELECT seqcache, seqincrement, seqcycle FROM pg_sequence WHERE seqrelid = CAST(pg_get_serial_sequence($1, 'seq') AS regclass)",
		d.SQL("{outbox}")).Scan(&cache, &increment, &cycle)
	if cache > 1 || increment < 1 || cycle {
		problem = fmt.Sprintf("cache %d, increment %d, cycle %t", cache, increment, cycle)
	}
	return problem, err
}

// execMode is pgx.QueryExecModeExec if the driver is pgx: it sends a statement and its arguments at once. By default pgx prepares
// statements under names that its connection is to remember. The type is found without importing the driver.
func execMode(d driver.Driver) any {
	t := reflect.TypeOf(d)
	if t == nil || t.Kind() != reflect.Pointer || t.Elem().Kind() != reflect.Struct || !strings.HasSuffix(t.Elem().PkgPath(), "/pgx/v5/stdlib") {
		return nil
	}
	configs, ok := t.Elem().FieldByName("configs")
	if !ok || configs.Type.Kind() != reflect.Map || configs.Type.Elem().Kind() != reflect.Pointer || configs.Type.Elem().Elem().Kind() != reflect.Struct {
		return nil
	}
	field, ok := configs.Type.Elem().Elem().FieldByName("DefaultQueryExecMode")
	if !ok || field.Type.Kind() != reflect.Int32 {
		return nil
	}
	for n := range int64(10) {
		mode := reflect.New(field.Type).Elem()
		if mode.SetInt(n); fmt.Sprint(mode) == "exec" {
			return mode.Interface()
		}
	}
	return nil
}

// pgxSession is the number of the session that pgx was given when it connected. The field is found without importing the driver.
func pgxSession(conn any) uint64 {
	v := reflect.ValueOf(conn)
	for _, field := range []string{"conn", "pgConn", "pid"} {
		if v = reflect.Indirect(v); v.Kind() != reflect.Struct {
			return 0
		}
		v = v.FieldByName(field)
	}
	if !v.IsValid() || !v.CanUint() {
		return 0
	}
	return v.Uint()
}

// sqlState is implemented by the errors of pgx and lib/pq.
type sqlState interface {
	error
	SQLState() string
}

// See https://www.postgresql.org/docs/current/errcodes-appendix.html.
// A role without CONNECT is refused with the code of a statement, and with another severity. Both drivers have that as a field.
func isPostgreSQLLogin(err error) bool {
	e, ok := errors.AsType[sqlState](err)
	if !ok {
		return false
	}
	if code := e.SQLState(); code != "42501" {
		return strings.HasPrefix(code, "28") || code == "3D000"
	}
	v := reflect.Indirect(reflect.ValueOf(e))
	return v.Kind() == reflect.Struct && v.FieldByName("Severity").IsValid() && v.FieldByName("Severity").String() == "FATAL"
}

func classifyPostgreSQL(err error) Class {
	e, ok := errors.AsType[sqlState](err)
	if !ok {
		return classifyNoReply(err)
	}
	code := e.SQLState()
	if c, ok := postgresqlCodes[code]; ok {
		return c
	}
	if len(code) < 2 {
		return Unknown
	}
	return postgresqlClasses[code[:2]]
}

var postgresqlCodes = map[string]Class{
	"23505": Duplicate,
	"40001": Conflict,  // serialization failure
	"40P01": Conflict,  // deadlock
	"55P03": Conflict,  // lock_timeout
	"57014": Unwritten, // statement_timeout, or cancelled: the statement was rolled back
	"57P03": Unwritten, // the server is starting
	"40003": Unknown,
	"57P01": Unknown, // shut down while the statement ran
	"57P02": Unknown,
	"57P05": Unknown,
	"25006": ReadOnly,
	"25P02": Aborted,
	"42P01": NoTable,
	"3D000": NoTable, // database
	"57P04": NoTable, // database dropped
	"3F000": NoTable, // schema
	"42703": NoColumn,
	"42501": Denied,
	"42601": UnknownSyntax,
	"42883": UnknownSyntax, // no such function
	"42704": UnknownSyntax, // no such object
	"42P10": NoColumn,      // no unique constraint for ON CONFLICT
}

var postgresqlClasses = map[string]Class{
	"08": Unknown,
	"28": Denied,
	"53": Unwritten, // too many connections, disk full, out of memory
	"58": Unwritten, // the server's files or its operating system
}
