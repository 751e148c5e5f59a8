package memstore

import (
	"context"
	"fmt"
	"time"

	"github.com/sqsonce/sqsonce/dedup"
	"github.com/sqsonce/sqsonce/dedup/internal/counter"
	"github.com/sqsonce/sqsonce/internal/counting"
	"github.com/sqsonce/sqsonce/limit"
)

// keyCounter is what NewCounter returns.
type keyCounter struct {
	slots
	store *Store
}

type slots = counter.Slots

var _ limit.Counter = (*keyCounter)(nil)

// NewCounter returns a [limit.Counter] in memory, for tests. Its keys and slots are records of s. Counters of one store share
// them, like those of several processes.
func NewCounter(s *Store) limit.Counter { return &keyCounter{slots{Store: s, Package: "memstore"}, s} }

// Take implements [limit.Counter].
func (c *keyCounter) Take(ctx context.Context, t counting.Take) (g counting.Grant, err error) {
	a, err := counter.NewAsk("memstore", t)
	if err != nil {
		return counting.Grant{}, err
	}
	return g, c.store.schedule(ctx, a.Key, func(s counter.State) counter.State {
		g, s.Tat = a.Take(s)
		return s
	})
}

// Line implements [limit.Counter].
func (c *keyCounter) Line(ctx context.Context, key string, n int, step time.Duration) (first time.Duration, err error) {
	span, err := counter.Span("memstore", key, n, step)
	if err != nil {
		return 0, err
	}
	return first, c.store.schedule(ctx, counter.RecordKey(key), func(s counter.State) counter.State {
		place := max(s.Tat, s.Line, 0)
		first, s.Line = counter.Duration(place), place+span
		return s
	})
}

// schedule changes a key's schedule.
func (s *Store) schedule(ctx context.Context, key string, change func(counter.State) counter.State) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	s.sweepLocked(now)
	r, micros := s.findLocked(key, now), now.UnixMicro()
	if r == nil {
		r = &record{lease: dedup.Lease{Key: key, Owner: counter.Owner}, released: true, tat: micros, line: micros}
		s.records[key] = r
	}
	if r.tat == 0 {
		return fmt.Errorf("memstore: key %q: %w", key, dedup.ErrRecord)
	}
	next := change(counter.State{Tat: r.tat - micros, Line: r.line - micros})
	r.tat, r.line = micros+next.Tat, micros+next.Line
	r.expires = time.UnixMicro(max(r.tat, r.line, micros)).Add(counter.Retention)
	return nil
}
