package sqlstore

import (
	"context"
	"errors"
	"time"
)

// Check asks the database whether it can be used. The database must be of the dialect's kind. The tables must exist and be
// of the current schema version or later. The server must accept writes and commit them. The error joins one error per
// problem. Check can't see that a SQLite file was opened read-only. The first write reports that. The first acquire calls
// Check by itself. Call it at start, or in a deployment's test, to know before the first message comes.
func (s *Store) Check(ctx context.Context) error {
	err := s.base.Retry(ctx, "check", func(ctx context.Context) error { return s.check(ctx) })
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
func (s *Store) check(ctx context.Context) error {
	if err := reporter.CheckKind(ctx, s.db, s.dialect); err != nil {
		return err
	}
	if err := s.place.Find(ctx, s.db); err != nil {
		return err
	}
	err := errors.Join(schema.CheckVersion(ctx, s.db, s.place.Dialect(), schema.Last()), reporter.CheckWrites(ctx, s.db, s.dialect))
	if err == nil {
		ctx, cancel := context.WithTimeout(ctx, time.Second) // the number is only for a warning
		defer cancel()
		s.allowed.Store(int64(s.dialect.ServerConnections(ctx, s.db)))
	}
	return err
}

// retry is [sqldb.DB.Retry] for f, which takes its statements when it is called: the place of the tables is then known.
func (s *Store) retry(ctx context.Context, op string, f func(context.Context) error) error {
	return s.base.Retry(ctx, op, func(ctx context.Context) error {
		if err := s.place.Find(ctx, s.db); err != nil {
			return err
		}
		return f(ctx)
	})
}
