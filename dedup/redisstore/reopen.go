package redisstore

import (
	"context"

	"github.com/sqsonce/sqsonce/dedup"
	"github.com/sqsonce/sqsonce/dedup/internal/field"
	"github.com/sqsonce/sqsonce/dedup/internal/operate"
)

// Reopen implements [dedup.Reopener].
func (s *Store) Reopen(ctx context.Context, seen dedup.Record, note string, optFns ...func(*dedup.ReopenOptions)) error {
	o, err := operate.NewReopening("redisstore", seen, note, optFns)
	if err != nil {
		return err
	}
	status := "INPROGRESS"
	if seen.Completed {
		status = "COMPLETED"
	}
	args := []any{seen.Owner, seen.Fence, status, o.Owner, o.Retention.Milliseconds(), o.Note, flag(o.Force), "data"}
	for _, f := range field.Texts {
		if f.OfResult {
			args = append(args, f.Name)
		}
	}
	if o.EndCrashes {
		args = append(args, "error")
	}
	r, err := s.call(ctx, reopenScript, seen.Key, args...)
	if err != nil {
		return explain("reopen", err)
	}
	switch r.status() {
	case "done":
		return nil
	case "changed":
		return dedup.ErrChanged
	case "leased":
		until := r.othersEnd(1)
		if r.err == nil {
			return &dedup.InProgressError{Until: until}
		}
	}
	return explain("reopen", r.unexpected())
}
