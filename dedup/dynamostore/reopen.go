package dynamostore

import (
	"context"

	"github.com/sqsonce/sqsonce/dedup"
	"github.com/sqsonce/sqsonce/dedup/internal/operate"
)

// Reopen implements [dedup.Reopener]. It needs the permission dynamodb:UpdateItem.
func (s *Store) Reopen(ctx context.Context, seen dedup.Record, note string, optFns ...func(*dedup.ReopenOptions)) error {
	o, err := operate.NewReopening("dynamostore", seen, note, optFns)
	if err != nil {
		return err
	}
	if err := checkKey("seen.Key", seen.Key); err != nil {
		return err
	}
	status := inProgress
	if seen.Completed {
		status = completed
	}
	for range maxAttempts {
		m := s.clock.look()
		fence := max(s.clock.holder(m), seen.Fence+1)
		v := values{
			":seen": text(seen.Owner), ":seenfence": number(seen.Fence), ":seenstatus": text(status),
			":op": text(o.Owner), ":p": inProgressValue, ":fence": number(fence), ":zero": number(0),
			":exp": number(max(retainUntil(fence, o.Retention, 0), seen.ExpiresAt.Unix())),
		}
		if o.Note != "" {
			v[":note"] = text(o.Note)
		}
		if o.EndCrashes {
			v[":e"] = text("")
		}
		if !o.Force {
			v[":d"], v[":now"] = completedValue, number(s.clock.taker(m))
		}
		_, refusal, err := s.write(ctx, s.updateInput(seen.Key, reopening(v), v))
		if err != nil || refusal == nil {
			return s.explain("reopen", err)
		}
		if len(refusal.Item) == 0 {
			return dedup.ErrChanged
		}
		r, err := decode(refusal.Item)
		switch {
		case err != nil:
			return s.explain("reopen", err)
		case r.owner == o.Owner:
			return nil // the answer to an earlier attempt was lost
		case r.owner != seen.Owner || valueOf(r.fence) != seen.Fence || r.status != status:
			return dedup.ErrChanged
		}
		if err := s.checkTime(); err != nil {
			return err
		}
		if !r.leaseOver(s.clock.taker(s.clock.look())) {
			return &dedup.InProgressError{Until: s.liveUntil(r)}
		}
		// The clock had no Date before this refusal, so that the time clause was off. Now it has one.
	}
	return s.explain("reopen", errContended)
}
