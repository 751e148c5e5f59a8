package sqloutbox

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"

	"github.com/sqsonce/sqsonce/dedup/sqlstore/internal/sqldb"
)

// What can be wrong with an outbox's database, beside the errors of package sqlstore. A [*sqlstore.DatabaseError] matches one
// of them.
var (
	// ErrIsolation: the sessions of the relay's pool read what is not committed, and may be rolled back.
	ErrIsolation = errors.New("isolation level is READ UNCOMMITTED: use READ COMMITTED or a higher level")
	// ErrIdentity: the numbers of the table's rows are not an order: the sequence has a cache or does not count upwards, or the
	// column is no identity. Without it a later event may have a lower number.
	ErrIdentity = errors.New("identity of the table is not made one after the other: create the table with Migrate, and leave its sequence as it is")
	// ErrLockRows: the table of locks does not have its 4,096 rows. Without them transactions of a group do not exclude one
	// another.
	ErrLockRows = errors.New("rows of the table of locks are missing: run the INSERT of DDL again")
)

// Check asks the database whether it can be used: it is of the dialect's kind, the tables exist and are of [SchemaVersion] or
// later, the server takes writes and commits them, sessions read only what is committed, and identities are an order. The
// error joins one [*sqlstore.DatabaseError] per problem: see also [ErrIsolation], [ErrIdentity], [ErrLockRows]. Check cannot
// see that a server is a replica that takes writes. A relay's first call does what Check does. Call it at start, or in a
// deployment's test, to know before.
func (o *Outbox) Check(ctx context.Context) error {
	if o.db == nil {
		return fieldError("db", "is nil: this outbox can only add")
	}
	err := o.base.Retry(ctx, "check", func(ctx context.Context) error { return check(ctx, o.db, o.dialect) })
	if err == nil {
		o.checked.Store(true)
	}
	return err
}

// ensureChecked calls Check until it has succeeded once.
func (o *Outbox) ensureChecked(ctx context.Context) error {
	if o.checked.Load() {
		return nil
	}
	return o.Check(ctx)
}

func check(ctx context.Context, q sqldb.Queryer, d sqldb.Dialect) error {
	if err := reporter.CheckKind(ctx, q, d); err != nil {
		return err
	}
	err := errors.Join(schema.CheckVersion(ctx, q, d), reporter.CheckWrites(ctx, q, d))
	if err != nil {
		return err
	}
	return errors.Join(checkIsolation(ctx, q, d), checkIdentity(ctx, q, d), checkLocks(ctx, q, d))
}

// checkIsolation looks at the session. PostgreSQL's READ UNCOMMITTED is READ COMMITTED.
func checkIsolation(ctx context.Context, q sqldb.Queryer, d sqldb.Dialect) error {
	var name, level string
	var err error
	switch {
	case d.Is(sqldb.MySQL):
		err = q.QueryRowContext(ctx, "SHOW VARIABLES WHERE Variable_name IN ('transaction_isolation', 'tx_isolation')").Scan(&name, &level)
	case d.Is(sqldb.SQLite):
		err = q.QueryRowContext(ctx, "SELECT CASE read_uncommitted WHEN 1 THEN 'READ-UNCOMMITTED' ELSE '' END FROM pragma_read_uncommitted").Scan(&level)
	}
	switch {
	case err != nil:
		return reporter.Explain(d, "isolation level", err)
	case level == "READ-UNCOMMITTED":
		return reporter.Unusable(d, ErrIsolation, "", nil)
	}
	return nil
}

// checkIdentity reports whether a transaction that comes later gets a higher number, and none is used again.
func checkIdentity(ctx context.Context, q sqldb.Queryer, d sqldb.Dialect) error {
	var problem string
	var err error
	switch {
	case d.Is(sqldb.PostgreSQL):
		var cache, increment int64
		var cycle bool
		err = q.QueryRowContext(ctx, "SELECT seqcache, seqincrement, seqcycle FROM pg_sequence WHERE seqrelid = CAST(pg_get_serial_sequence($1, 'seq') AS regclass)",
			d.SQL("{outbox}")).Scan(&cache, &increment, &cycle)
		if cache > 1 || increment < 1 || cycle {
			problem = fmt.Sprintf("cache %d, increment %d, cycle %t", cache, increment, cycle)
		}
	case d.Is(sqldb.SQLite):
		var text string
		err = q.QueryRowContext(ctx, "SELECT sql FROM sqlite_master WHERE type = 'table' AND name = ?", d.SQL("{outbox}")).Scan(&text)
		if !strings.Contains(strings.ToUpper(text), "AUTOINCREMENT") {
			problem = "no AUTOINCREMENT"
		}
	default:
		var extra string
		var field, kind, null, key, standard sql.NullString
		err = q.QueryRowContext(ctx, d.SQL("SHOW COLUMNS FROM {outbox} LIKE 'seq'")).Scan(&field, &kind, &null, &key, &standard, &extra)
		if !strings.Contains(strings.ToLower(extra), "auto_increment") {
			problem = "no AUTO_INCREMENT"
		}
	}
	switch {
	case errors.Is(err, sql.ErrNoRows):
		problem = "no identity"
	case err != nil:
		return reporter.Explain(d, "identity", err)
	case problem == "":
		return nil
	}
	return reporter.Unusable(d, ErrIdentity, problem, nil)
}

func checkLocks(ctx context.Context, q sqldb.Queryer, d sqldb.Dialect) error {
	if !d.Is(sqldb.MySQL) {
		return nil
	}
	var rows int
	if err := q.QueryRowContext(ctx, d.SQL("SELECT COUNT(*) FROM {outbox_locks}")).Scan(&rows); err != nil {
		return reporter.Explain(d, "locks", err)
	}
	if rows != stripes {
		return reporter.Unusable(d, ErrLockRows, fmt.Sprintf("%d rows", rows), nil)
	}
	return nil
}
