package memstore

import (
	"context"
	"time"

	"github.com/sqsonce/sqsonce/dedup"
)

// Inspect returns the record of key, or [dedup.ErrNotFound]. A released record has a zero Until.
func (s *Store) Inspect(ctx context.Context, key string) (dedup.Record, error) {
	if err := ctx.Err(); err != nil {
		return dedup.Record{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.retainedLocked(key, s.now())
	if r == nil {
		return dedup.Record{}, dedup.ErrNotFound
	}
	rec := dedup.Record{Lease: r.lease, Completed: r.completed, Result: clone(r.result), ExpiresAt: r.expires}
	rec.LastError = r.lastError
	if r.released {
		rec.Until = time.Time{}
	}
	return rec, nil
}

// Delete forgets the record of key, whatever its state: a handler that runs under it loses its lease. Deleting a key
// without a record is nil.
func (s *Store) Delete(ctx context.Context, key string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.records, key)
	return nil
}

// Check reports whether the store can be used. Memory always can.
func (s *Store) Check(ctx context.Context) error { return ctx.Err() }
