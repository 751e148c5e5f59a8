package sqlstore

import (
	"context"
	"database/sql"

	"github.com/sqsonce/sqsonce/dedup"
	"github.com/sqsonce/sqsonce/dedup/internal/operate"
)

// Reopen implements [dedup.Reopener]. While an [Inbox] runs the event's handler, its transaction has locked the row. Reopen
// then waits for the end of the transaction until ctx ends, at most eight times Options.Timeout, also with Force.
func (s *Store) Reopen(ctx context.Context, seen dedup.Record, note string, optFns ...func(*dedup.ReopenOptions)) error {
	o, err := operate.NewReopening("sqlstore", seen, note, optFns)
	if err != nil {
		return err
	}
	if err := checkText("seen.Key", seen.Key, maxKey); err != nil {
		return err
	}
	status := inProgress
	if seen.Completed {
		status = completed
	}
	return s.retry(ctx, "reopen", func(ctx context.Context) error {
		text := s.stmts().reopen
		if o.Force {
			text = s.stmts().reopenAny
		}
		written, err := s.dialect.Write(ctx, s.db, text, o.Owner, o.Retention.Milliseconds(), o.Note, sql.NullString{Valid: o.EndCrashes}, seen.Key, seen.Owner, seen.Fence, status)
		if written || err != nil {
			return err
		}
		r, err := s.find(ctx, s.db, seen.Key)
		switch {
		case isMissing(err):
			return dedup.ErrChanged
		case err != nil:
			return err
		case r.owner == o.Owner:
			return nil // the reply of an earlier attempt was lost
		case r.owner != seen.Owner || r.fence != seen.Fence || r.status != status:
			return dedup.ErrChanged
		}
		return s.inProgress(ctx, r)
	})
}
