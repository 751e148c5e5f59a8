package redisstore_test

import (
	"context"
	"crypto/rand"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/sqsonce/sqsonce/dedup"
	"github.com/sqsonce/sqsonce/dedup/redisstore"
	"github.com/sqsonce/sqsonce/internal/testserver"
	"github.com/sqsonce/sqsonce/limit"
	"github.com/sqsonce/sqsonce/limit/limittest"
)

func TestCounter(t *testing.T) {
	t.Parallel()
	counters(t, connect(t, testserver.Redis.Shared(t)))
}

// counters runs the suite of counters on a server, or a cluster.
func counters(t *testing.T, client redisstore.Client) {
	limittest.Run(t, limittest.Harness{
		New: func(t *testing.T) func() limit.Counter {
			prefix := rand.Text() + ":"
			return func() limit.Counter {
				return redisstore.NewCounter(newStore(t, client, func(o *redisstore.Options) { o.Prefix = prefix }))
			}
		},
		Away: func(t *testing.T) limit.Counter {
			server := testserver.Redis.Start(t)
			away := newStore(t, connect(t, server))
			server.Kill()
			return redisstore.NewCounter(away)
		},
		Misconfigured: func(t *testing.T) limit.Counter {
			return redisstore.NewCounter(newStore(t, connect(t, testserver.Redis.Shared(t), func(o *redis.Options) { o.DB = 99 })))
		},
		ReadOnly: func(t *testing.T) limit.Counter { return redisstore.NewCounter(readOnly(t)) },
		Store:    func(c limit.Counter) dedup.Lister { return c.(*redisstore.Counter).Store() },
		Delete: func(ctx context.Context, c limit.Counter, record string) error {
			return c.(*redisstore.Counter).Store().Delete(ctx, record)
		},
		RealTime: true, Step: 2 * time.Second, Grace: 500 * time.Millisecond, Takeover: time.Second,
	})
}
