package redisstore

import (
	"context"
	"time"

	"github.com/redis/go-redis/v9"

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

// NewCounter returns a [limit.Counter] on the server of s. It is safe for concurrent use.
//
// Each call is one script on one key, in the server's time. A key is a hash at [Options.Prefix], limit/ and the key,
// and a slot is a record of the store. Both are listed under the consumer limit/NAME of a rule. Their retention is 1 h.
//
// A server that loses keys at a restart, a failover or an eviction loses their limits: a full burst is granted at once,
// and a slot gets a second owner. The first call checks the server like an acquire of the store.
func NewCounter(s *Store) limit.Counter {
	return &keyCounter{slots{Store: s, Package: "redisstore"}, s}
}

// Take implements [limit.Counter].
func (c *keyCounter) Take(ctx context.Context, t counting.Take) (counting.Grant, error) {
	a, err := counter.NewAsk("redisstore", t)
	if err != nil {
		return counting.Grant{}, err
	}
	r, err := c.call(ctx, "take", takeScript, a.Key, a.N, a.Step, a.Tolerance, a.Ahead, a.Within, a.Floor, flag(a.Waited))
	if err != nil {
		return counting.Grant{}, err
	}
	if r.status() != "taken" {
		return counting.Grant{}, explain("take", r.unexpected())
	}
	n, lag, line := r.number(1), r.number(2), r.number(3)
	if r.err != nil {
		return counting.Grant{}, explain("take", r.err)
	}
	if n == 0 {
		return a.Refused(lag, line), nil
	}
	return a.Granted(int(n), lag), nil
}

// Line implements [limit.Counter].
func (c *keyCounter) Line(ctx context.Context, key string, n int, step time.Duration) (time.Duration, error) {
	span, err := counter.Span("redisstore", key, n, step)
	if err != nil {
		return 0, err
	}
	r, err := c.call(ctx, "line", lineScript, counter.RecordKey(key), span)
	if err != nil {
		return 0, err
	}
	if r.status() != "place" {
		return 0, explain("line", r.unexpected())
	}
	return counter.Duration(r.number(1)), explain("line", r.err)
}

func (c *keyCounter) call(ctx context.Context, op string, script *redis.Script, key string, args ...any) (*reply, error) {
	if err := c.store.ensureChecked(ctx); err != nil {
		return nil, err
	}
	r, err := c.store.call(ctx, script, key, args...)
	return r, explain(op, err)
}
