package redisstore_test

import (
	"crypto/rand"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/sqsonce/sqsonce/dedup"
	"github.com/sqsonce/sqsonce/dedup/redisstore"
	"github.com/sqsonce/sqsonce/internal/proof/attack"
	"github.com/sqsonce/sqsonce/internal/testserver"
)

// attacked is where the hosts find the records.
type attacked struct{ Addr, Prefix string }

func TestAttack(t *testing.T) {
	t.Parallel()
	attack.Run(t, func(t *testing.T) attacked {
		return attacked{testserver.Redis.Shared(t).Addr(), rand.Text() + ":"}
	}, func(a attacked) attack.Target {
		return attack.Target{
			Addr: a.Addr,
			// A packet of go-redis is a command, or the greeting of a connection and its first command.
			Doubles: true,
			Store: func(t *testing.T, addr string) dedup.Store {
				client := redis.NewClient(&redis.Options{Addr: addr, ContextTimeoutEnabled: true})
				closeWith(t, client)
				return newStore(t, client, func(o *redisstore.Options) { o.Prefix = a.Prefix })
			},
		}
	})
}
