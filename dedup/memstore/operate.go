package memstore

import (
	"context"
	"errors"
	"iter"
	"maps"
	"slices"
	"time"

	"github.com/sqsonce/sqsonce/dedup"
	"github.com/sqsonce/sqsonce/dedup/internal/operate"
)

// Inspect implements [dedup.Inspector].
func (s *Store) Inspect(ctx context.Context, key string) (dedup.Record, error) {
	if err := ctx.Err(); err != nil {
		return dedup.Record{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.findLocked(key, time.Now())
	if r == nil {
		return dedup.Record{}, dedup.ErrNotFound
	}
	return r.public(), nil
}

// public is the record as operators see it.
func (r *record) public() dedup.Record {
	rec := dedup.Record{Lease: r.lease, Completed: r.completed, Result: clone(r.result), ExpiresAt: r.expires, Note: r.note}
	rec.LastError = r.lastError
	if r.released {
		rec.Until = time.Time{}
	}
	return rec
}

// Reopen implements [dedup.Reopener].
func (s *Store) Reopen(ctx context.Context, seen dedup.Record, note string, optFns ...func(*dedup.ReopenOptions)) error {
	o, err := operate.NewReopening("memstore", seen, note, optFns)
	if err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	r := s.findLocked(seen.Key, now)
	switch {
	case r == nil || r.lease.Owner != seen.Owner || r.lease.Fence != seen.Fence || r.completed != seen.Completed:
		return dedup.ErrChanged
	case !r.completed && !r.released && now.Before(r.lease.Until) && !o.Force:
		return &dedup.InProgressError{Until: r.lease.Until}
	}
	l := dedup.Lease{Key: seen.Key, Owner: o.Owner, Fence: max(now.UnixMilli(), seen.Fence+1), ReceiveCount: r.lease.ReceiveCount}
	expires := r.expires
	if least := now.Add(o.Retention); least.After(expires) {
		expires = least
	}
	lastError := r.lastError
	if o.EndCrashes {
		lastError = ""
	}
	s.records[seen.Key] = &record{lease: l, released: true, lastError: lastError, note: o.Note, expires: expires}
	return nil
}

// Keep implements [dedup.Keeper].
func (s *Store) Keep(ctx context.Context, seen dedup.Record, operator string, data []byte, d time.Duration) (dedup.Record, error) {
	owner, err := operate.NewKept("memstore", seen, operator, data, d)
	if err != nil {
		return dedup.Record{}, err
	}
	if err := ctx.Err(); err != nil {
		return dedup.Record{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	switch r := s.findLocked(seen.Key, now); {
	case r == nil && seen.Owner == "":
	case r == nil || !r.completed || r.lease.Owner != seen.Owner || r.lease.Fence != seen.Fence:
		return dedup.Record{}, dedup.ErrChanged
	}
	r := &record{
		lease:     dedup.Lease{Key: seen.Key, Owner: owner, Fence: max(now.UnixMilli(), seen.Fence+1)},
		completed: true, result: dedup.Result{Data: slices.Clone(data)}, expires: now.Add(d),
	}
	s.records[seen.Key] = r
	return r.public(), nil
}

// List implements [dedup.Lister]. It returns the records in the order of their keys.
func (s *Store) List(ctx context.Context, optFns ...func(*dedup.ListOptions)) iter.Seq2[dedup.Record, error] {
	return func(yield func(dedup.Record, error) bool) {
		l := operate.NewList(time.Now, optFns)
		for _, key := range s.keys() {
			if key <= l.After {
				continue
			}
			r, err := s.Inspect(ctx, key)
			switch {
			case errors.Is(err, dedup.ErrNotFound):
				continue
			case err != nil:
				yield(dedup.Record{}, err)
				return
			case !l.Send(r, yield):
				return
			}
		}
	}
}

func (s *Store) keys() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Sorted(maps.Keys(s.records))
}

// Delete deletes the record of key in any state, for good. To run an event again, use [Store.Reopen] instead. A handler that
// runs with the record's lease gets [sqsonce.ErrLeaseLost]. The error is nil if the key has no record.
//
// A process acknowledges an event that it saw completed for a minute without a look at its record, also after a Delete.
func (s *Store) Delete(ctx context.Context, key string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.records, key)
	return nil
}
