package sqlstore

import (
	"context"
	"errors"
	"fmt"
)

// Check asks the database whether it can be used: it is of the dialect's kind, the tables exist and are of
// [SchemaVersion] or later, the server takes writes, and they are committed. The error joins one [*DatabaseError] per
// problem. Check cannot see that a SQLite file was opened read-only; the first write reports that. The first acquire calls
// Check by itself. Call it at start, or in a deployment's test, to know before the first message comes.
func (s *Store) Check(ctx context.Context) error {
	err := s.retry(ctx, "check", func(ctx context.Context) error { return check(ctx, s.db, s.dialect) })
	if err == nil {
		s.checked.Store(true)
	}
	return err
}

// ensureChecked calls Check until it has succeeded once.
func (s *Store) ensureChecked(ctx context.Context) error {
	if s.checked.Load() {
		return nil
	}
	return s.Check(ctx)
}

// check reports everything that is wrong with the database: see [Store.Check].
func check(ctx context.Context, q queryer, d Dialect) error {
	if err := checkKind(ctx, q, d); err != nil {
		return err
	}
	v, err := version(ctx, q, d)
	if err == nil && v < SchemaVersion {
		err = &DatabaseError{Dialect: d, Problem: ErrSchemaVersion, Detail: fmt.Sprintf("it is %d, and %d is needed", v, SchemaVersion)}
	}
	return errors.Join(explain(d, "schema version", err), checkWrites(ctx, q, d))
}

// checkKind reports whether the database is of the dialect's kind.
func checkKind(ctx context.Context, q queryer, d Dialect) error {
	var version string
	err := q.QueryRowContext(ctx, d.engine.identity).Scan(&version)
	switch {
	case err == nil && d.engine.is(version):
		return nil
	case err == nil:
		return &DatabaseError{Dialect: d, Problem: ErrDialect, Detail: fmt.Sprintf("it is %q", version)}
	case d.classify(err) == connPoolClosed:
		return explain(d, "identify", err)
	}
	// The dialect may not recognise the errors of another database's driver, so ask for the other kinds too.
	for _, other := range []Dialect{PostgreSQL, MySQL, SQLite} {
		var version string
		if other.engine != d.engine && q.QueryRowContext(ctx, other.engine.identity).Scan(&version) == nil && other.engine.is(version) {
			return &DatabaseError{Dialect: d, Problem: ErrDialect, Detail: "it is " + other.String() + " " + version, Err: err}
		}
	}
	return explain(d, "identify", err)
}

// checkWrites reports whether writes are accepted and committed. A replica may still accept the writes of a privileged
// user; they are lost later, or break the replication.
func checkWrites(ctx context.Context, q queryer, d Dialect) error {
	var yes int
	if err := q.QueryRowContext(ctx, d.engine.readOnly).Scan(&yes); err != nil {
		return explain(d, "read only", err)
	}
	if yes != 0 {
		return &DatabaseError{Dialect: d, Problem: ErrReadOnly}
	}
	if d.engine != mysql {
		return nil
	}
	if err := q.QueryRowContext(ctx, "SELECT @@session.autocommit").Scan(&yes); err != nil {
		return explain(d, "autocommit", err)
	}
	if yes == 0 {
		return &DatabaseError{Dialect: d, Problem: ErrAutocommit}
	}
	return nil
}
