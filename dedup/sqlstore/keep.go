package sqlstore

import (
	"context"
	"time"

	"github.com/sqsonce/sqsonce/dedup"
	"github.com/sqsonce/sqsonce/dedup/internal/operate"
)

// Keep implements [dedup.Keeper].
func (s *Store) Keep(ctx context.Context, seen dedup.Record, operator string, data []byte, d time.Duration) (dedup.Record, error) {
	owner, err := operate.NewKept("sqlstore", seen, operator, data, d)
	if err != nil {
		return dedup.Record{}, err
	}
	if err := checkText("seen.Key", seen.Key, maxKey); err != nil {
		return dedup.Record{}, err
	}
	var kept dedup.Record
	err = s.retry(ctx, "keep", func(ctx context.Context) error {
		if err := s.keep(ctx, seen, owner, data, d); err != nil {
			return err
		}
		sent := time.Now()
		r, err := s.find(ctx, s.db, seen.Key)
		switch {
		case isMissing(err):
			return dedup.ErrChanged
		case err != nil:
			return err
		case r.owner != owner:
			return dedup.ErrChanged
		}
		kept = r.public(sent) // of this attempt, or of an earlier one whose answer was lost
		return nil
	})
	return kept, err
}

func (s *Store) keep(ctx context.Context, seen dedup.Record, owner string, data []byte, d time.Duration) error {
	args := []any{data, owner, d.Milliseconds(), seen.Key}
	if seen.Owner != "" {
		_, err := s.dialect.Write(ctx, s.db, s.stmts().keep, append(args, seen.Owner, seen.Fence)...)
		return err
	}
	written, err := s.dialect.Write(ctx, s.db, s.stmts().keepNew, seen.Key, owner, data, d.Milliseconds())
	if written || err != nil {
		return err
	}
	_, err = s.dialect.Write(ctx, s.db, s.stmts().keepOver, args...)
	return err
}
