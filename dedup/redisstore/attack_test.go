package redisstore_test

import (
	"crypto/rand"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/sqsonce/sqsonce/dedup"
	"github.com/sqsonce/sqsonce/dedup/redisstore"
	"github.com/sqsonce/sqsonce/internal/attack"
	"github.com/sqsonce/sqsonce/internal/testserver"
)

func TestAttack(t *testing.T) {
	t.Parallel()
	server := testserver.Redis.Shared(t)
	prefix := rand.Text() + ":"
	attack.Run(t, attack.Target{
		Addr: server.Addr(),
		// A packet of go-redis is a command, or the greeting of a connection and its first command.
		Doubles: true,
		Store: func(t *testing.T, addr string) dedup.Store {
			client := connect(t, server, func(o *redis.Options) { o.Addr = addr })
			return newStore(t, client, func(o *redisstore.Options) { o.Prefix = prefix })
		},
	})
}
