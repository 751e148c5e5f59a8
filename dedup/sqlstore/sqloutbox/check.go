package sqloutbox

import (
	"context"
	"database/sql"
	"errors"

	"github.com/sqsonce/sqsonce/dedup/sqlstore/internal/sqldb"
)

// The problems of an outbox's database, in addition to those of package sqldb.
var (
	// errIsolation says that the sessions of the relay's pool read rows that are not committed and may be rolled back.
	errIsolation = errors.New("isolation level is READ UNCOMMITTED: use READ COMMITTED or a higher level")
	// errIdentity says that the numbers of the table's rows aren't an order. The sequence has a cache or doesn't count upwards,
	// or the column isn't an identity. Then a later event may have a lower number.
	errIdentity = errors.New("identity of the table is not made one after the other: create the table with Migrate, and leave its sequence as it is")
	// errLockRows says that the table of locks doesn't have its 4,096 rows. Without them transactions of a group don't exclude
	// one another.
	errLockRows = errors.New("rows of the table of locks are missing: run the INSERT of DDL again")
)

// Check asks the database whether it can be used. It must be of the dialect's kind, with the tables of the current schema version or
// later. The server must accept writes and commit them, sessions must read only committed rows, and identities must be an
// order. The error joins one error per problem, which matches [sqsonce.ErrUnavailable] or [sqsonce.ErrMisconfigured] and says what
// to do. Check can't see that a server is a replica that accepts writes. A relay's first call makes the same checks, but tables of
// version 1 are enough for it. It then publishes, and only [Outbox.Move] fails. Call Check at start, or in a deployment's test, to
// know before.
func (o *Outbox) Check(ctx context.Context) error {
	if o.db == nil {
		return fieldError("db", "is nil: this outbox can only add")
	}
	return o.checkFor(ctx, schema.Last())
}

// published is the version of the tables that publishing needs. A relay begins to publish before they have been migrated.
const published = 1

func (o *Outbox) checkFor(ctx context.Context, version int) error {
	err := o.base.Retry(ctx, "check", func(ctx context.Context) error { return o.check(ctx, version) })
	if err == nil {
		o.checked.Store(true)
	}
	return err
}

// ensureChecked makes the checks of a relay until they have succeeded once.
func (o *Outbox) ensureChecked(ctx context.Context) error {
	if o.checked.Load() {
		return nil
	}
	return o.checkFor(ctx, published)
}

func (o *Outbox) check(ctx context.Context, version int) error {
	if err := reporter.CheckKind(ctx, o.db, o.dialect); err != nil {
		return err
	}
	if err := o.place.Find(ctx, o.db); err != nil {
		return err
	}
	q, d := o.db, o.place.Dialect()
	err := errors.Join(schema.CheckVersion(ctx, q, d, version), reporter.CheckWrites(ctx, q, d))
	if err != nil {
		return err
	}
	return errors.Join(checkIsolation(ctx, q, d), checkIdentity(ctx, q, d), checkLocks(ctx, q, d))
}

func checkIsolation(ctx context.Context, q sqldb.Queryer, d sqldb.Dialect) error {
	low, err := d.Outbox().ReadsUncommitted(ctx, q)
	switch {
	case err != nil:
		return reporter.Explain(d, "isolation level", err)
	case low:
		return reporter.Unusable(d, errIsolation, "", nil)
	}
	return nil
}

// checkIdentity reports whether a transaction that comes later gets a higher number, and none is used again.
func checkIdentity(ctx context.Context, q sqldb.Queryer, d sqldb.Dialect) error {
	problem, err := d.Outbox().IdentityProblem(ctx, q, d)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		problem = "no identity"
	case err != nil:
		return reporter.Explain(d, "identity", err)
	case problem == "":
		return nil
	}
	return reporter.Unusable(d, errIdentity, problem, nil)
}

func checkLocks(ctx context.Context, q sqldb.Queryer, d sqldb.Dialect) error {
	problem, err := d.Outbox().Lock.Check(ctx, q, d)
	switch {
	case err != nil:
		return reporter.Explain(d, "locks", err)
	case problem != "":
		return reporter.Unusable(d, errLockRows, problem, nil)
	}
	return nil
}
