package redisstore_test

import (
	"context"
	"errors"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/sqsonce/sqsonce/dedup/redisstore"
	"github.com/sqsonce/sqsonce/internal/testserver"
)

func TestCheck(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	client := connect(t, testserver.Redis.Start(t, testserver.AppendOnly))
	s := newStore(t, client)
	if err := s.Check(ctx); err != nil {
		t.Errorf("append only, no eviction: %v", err)
	}
	set := func(name, value string) {
		t.Helper()
		if err := client.ConfigSet(ctx, name, value).Err(); err != nil {
			t.Fatal(err)
		}
	}
	want := func(when string, want error, not ...error) {
		t.Helper()
		err := s.Check(ctx)
		if _, ok := errors.AsType[*redisstore.ServerError](err); !ok || !errors.Is(err, want) {
			t.Errorf("%s: got %v, want a *ServerError with %v", when, err, want)
		}
		for _, n := range not {
			if errors.Is(err, n) {
				t.Errorf("%s: got %v too", when, n)
			}
		}
	}
	for _, policy := range []string{"allkeys-lru", "volatile-lru", "volatile-ttl", "allkeys-random"} {
		set("maxmemory-policy", policy)
		want(policy, redisstore.ErrEviction, redisstore.ErrVolatile)
	}
	set("appendonly", "no")
	want("both", redisstore.ErrEviction)
	want("both", redisstore.ErrVolatile)
	set("maxmemory-policy", "noeviction")
	want("no file", redisstore.ErrVolatile, redisstore.ErrEviction)
	accepted := newStore(t, client, func(o *redisstore.Options) { o.Volatile = true })
	if err := accepted.Check(ctx); err != nil {
		t.Errorf("no file, accepted: %v", err)
	}

	ended, cancel := context.WithCancel(ctx)
	cancel()
	if err := s.Check(ended); !errors.Is(err, context.Canceled) {
		t.Errorf("ended context: got %v", err)
	}
}

// Problems that real servers report: each is a typed error, and never a lease.
func TestUnfitServers(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	server := testserver.Redis.Start(t)
	admin := connect(t, server)
	needUsers := func(t *testing.T) {
		if err := admin.Do(ctx, "ACL", "WHOAMI").Err(); err != nil {
			t.Skipf("Redis before 6 has no users: %v", err)
		}
	}

	t.Run("replica", func(t *testing.T) {
		replica := testserver.Redis.Start(t, func(o *testserver.Options) {
			o.Args = []string{"--replicaof", testserver.Host, portOf(server)}
		})
		s := newStore(t, connect(t, replica))
		if err := s.Check(ctx); !errors.Is(err, redisstore.ErrReplica) {
			t.Errorf("check: got %v, want ErrReplica", err)
		}
		if l, err := s.Acquire(ctx, claim("a")); !errors.Is(err, redisstore.ErrReplica) {
			t.Errorf("acquire: got %+v, %v, want ErrReplica", l, err)
		}
	})
	t.Run("no permission", func(t *testing.T) {
		needUsers(t)
		if err := admin.Do(ctx, "ACL", "SETUSER", "reader", "on", "nopass", "~*", "+@read", "+@connection", "+eval", "+evalsha", "+time").Err(); err != nil {
			t.Fatal(err)
		}
		s := newStore(t, connect(t, server, func(o *redis.Options) { o.Username, o.Password = "reader", "x" }))
		if l, err := s.Acquire(ctx, claim("a")); !errors.Is(err, redisstore.ErrAccessDenied) {
			t.Errorf("a command inside the script: got %+v, %v, want ErrAccessDenied", l, err)
		}
		if err := s.Check(ctx); !errors.Is(err, redisstore.ErrAccessDenied) {
			t.Errorf("check: got %v, want ErrAccessDenied", err)
		}
	})
	t.Run("wrong password", func(t *testing.T) {
		needUsers(t)
		s := newStore(t, connect(t, server, func(o *redis.Options) { o.Username, o.Password = "nobody", "x" }))
		if l, err := s.Acquire(ctx, claim("a")); !errors.Is(err, redisstore.ErrAccessDenied) {
			t.Errorf("got %+v, %v, want ErrAccessDenied", l, err)
		}
	})
}
