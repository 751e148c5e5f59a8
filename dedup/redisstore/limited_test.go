//go:build unix

package redisstore_test

import (
	"crypto/rand"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/sqsonce/sqsonce/dedup/redisstore"
	"github.com/sqsonce/sqsonce/internal/proof/limited"
	"github.com/sqsonce/sqsonce/internal/testserver"
	"github.com/sqsonce/sqsonce/limit"
)

func TestCounterUnderKills(t *testing.T) {
	t.Parallel()
	limited.Run(t, func(t *testing.T) attacked {
		return attacked{testserver.Redis.Shared(t).Addr(), rand.Text() + ":"}
	}, func(t *testing.T, a attacked) limit.Counter {
		client := redis.NewClient(&redis.Options{Addr: a.Addr, ContextTimeoutEnabled: true})
		return redisstore.NewCounter(newStore(t, client, func(o *redisstore.Options) { o.Prefix = a.Prefix }))
	})
}
