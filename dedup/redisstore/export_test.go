package redisstore

import (
	"context"
	"strings"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/sqsonce/sqsonce/dedup"
	"github.com/sqsonce/sqsonce/limit"
)

// A list of the conformance suite takes several SCANs.
func init() { scanCount = 10 }

// Ahead has scripts see a clock of the server that is an hour ahead while on is set.
func Ahead(on *atomic.Bool) func(args []any) {
	texts := map[any]string{}
	for _, source := range []string{acquireSource, renewSource, completeSource, releaseSource, reopenSource, deleteSource, inspectSource} {
		texts[load(source).Hash()] = strings.Replace(clockSource, "return t[1]", "return 3600000 + t[1]", 1) + source
	}
	return func(args []any) {
		if text, ok := texts[args[1]]; ok && on.Load() {
			args[0], args[1] = "eval", text
		}
	}
}

// Explain is explain.
var Explain = explain

// ServerError is serverError.
type ServerError = serverError

// The problems of a server.
var (
	ErrEviction     = errEviction
	ErrVolatile     = errVolatile
	ErrReplica      = errReplica
	ErrMemory       = errMemory
	ErrDisk         = errDisk
	ErrAccessDenied = errAccessDenied
	ErrCommand      = errCommand
	ErrNotTold      = errNotTold
)

// Attributes are the record's fields, by the names of DynamoDB's attributes. Its time to live stands for the end of retention.
func (s *Store) Attributes(ctx context.Context, key string) (map[string]string, error) {
	c := s.client.(redis.UniversalClient)
	got, err := c.HGetAll(ctx, s.prefix+key).Result()
	if err != nil || len(got) == 0 {
		return nil, err
	}
	got["id"], got["in_progress_expiration"] = key, got["until"]
	delete(got, "until")
	delete(got, "lease_length") // no attribute of the protocol
	ttl, err := c.PExpireTime(ctx, s.prefix+key).Result()
	if ttl > 0 {
		got["expiration"] = ttl.String()
	}
	return got, err
}

// Leave leaves another program's data under a key: a text, or the fields of a hash and their values.
func Leave(data ...any) func(context.Context, dedup.Store, string) error {
	return func(ctx context.Context, s dedup.Store, key string) error {
		c, at := s.(*Store).client.(redis.UniversalClient), s.(*Store).prefix+key
		if len(data) == 1 {
			return c.Set(ctx, at, data[0], time.Minute).Err()
		}
		return c.HSet(ctx, at, data...).Err()
	}
}

// Age moves the times in all records of the store into the past.
func Age(ctx context.Context, s dedup.Store, by time.Duration) error {
	store, keys := s.(*Store), map[string]bool{} // a list may have a key twice
	for r, err := range store.List(ctx) {
		if err != nil {
			return err
		}
		keys[r.Key] = true
	}
	for key := range keys {
		if err := AgeHash(ctx, store.client.(redis.UniversalClient), store.prefix+key, by); err != nil {
			return err
		}
	}
	return nil
}

// AgeHash moves a record's times into the past. Redis deletes a key whose expiry is not positive.
func AgeHash(ctx context.Context, c redis.UniversalClient, key string, by time.Duration) error {
	until, err := c.HGet(ctx, key, "until").Int64()
	if err == nil && until > 0 { // else it is released
		err = c.HIncrBy(ctx, key, "until", -by.Milliseconds()).Err()
	}
	if err != nil {
		return err
	}
	return c.PExpire(ctx, key, c.PTTL(ctx, key).Val()-by).Err()
}

// ShiftClock makes the store believe that the server's clock differs by d from what the server said.
func (s *Store) ShiftClock(d time.Duration) {
	r := *s.clock.Load()
	r.server += d.Milliseconds()
	s.clock.Store(&r)
}

// ServerTime is the server's time as the store estimates it, d after its reading on the monotonic clock and w after it on
// the wall clock.
func ServerTime(d, w time.Duration) int64 {
	at := moment{monotonic: time.Hour, wall: 1000 * time.Hour}
	r := &reading{server: 1_000_000, at: at}
	return r.now(moment{monotonic: at.monotonic + d, wall: at.wall + w})
}

// Late are the limits of an acquire's age.
const (
	MaxAge     = maxAge
	LateTries  = lateTries
	ClockSlack = clockSlack
)

// CounterStore is the counter's store.
func CounterStore(c limit.Counter) *Store { return c.(*keyCounter).store }
