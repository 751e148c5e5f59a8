package sqlstore

import (
	"context"
	"errors"

	"github.com/sqsonce/sqsonce/dedup/sqlstore/internal/sqldb"
)

// Check asks the database whether it can be used: it is of the dialect's kind, the tables exist and are of
// [SchemaVersion] or later, the server takes writes, and they are committed. The error joins one [*DatabaseError] per
// problem. Check cannot see that a SQLite file was opened read-only; the first write reports that. The first acquire calls
// Check by itself. Call it at start, or in a deployment's test, to know before the first message comes.
func (s *Store) Check(ctx context.Context) error {
	err := s.base.Retry(ctx, "check", func(ctx context.Context) error { return check(ctx, s.db, s.dialect) })
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
func check(ctx context.Context, q sqldb.Queryer, d sqldb.Dialect) error {
	if err := reporter.CheckKind(ctx, q, d); err != nil {
		return err
	}
	return errors.Join(schema.CheckVersion(ctx, q, d), reporter.CheckWrites(ctx, q, d))
}
