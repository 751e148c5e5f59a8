package redisstore_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/sqsonce/sqsonce/internal/must"

	"github.com/redis/go-redis/v9"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/dedup"
	"github.com/sqsonce/sqsonce/dedup/redisstore"
	"github.com/sqsonce/sqsonce/internal/granted"
	"github.com/sqsonce/sqsonce/internal/host"
	"github.com/sqsonce/sqsonce/internal/testserver"
)

func TestCheck(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	client := connect(t, testserver.Redis.Start(t, testserver.AppendOnly))
	s := newStore(t, client, durable)
	must.Do(t, s.Check(ctx))
	set := setting(t, client)
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
	accepted := newStore(t, client)
	must.Do(t, accepted.Check(ctx))

	ended, cancel := context.WithCancel(ctx)
	cancel()
	if err := s.Check(ended); !errors.Is(err, context.Canceled) {
		t.Errorf("ended context: got %v", err)
	}
}

// setting sets a server's parameters.
func setting(t *testing.T, client *redis.Client) func(name, value string) {
	return func(name, value string) {
		t.Helper()
		must.Do(t, client.ConfigSet(t.Context(), name, value).Err())
	}
}

func durable(o *redisstore.Options) { o.Volatile = false }

// The first acquire refuses a server that loses records, and says which setting is wrong.
func TestFirstAcquireChecks(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	client := connect(t, testserver.Redis.Start(t))
	set := setting(t, client)
	refused := func(s *redisstore.Store, want error, setting string) {
		t.Helper()
		l, err := granted.Lease(s.Acquire(ctx, claim("a")))
		if !errors.Is(err, want) || !errors.Is(err, sqsonce.ErrMisconfigured) || !strings.Contains(err.Error(), setting) {
			t.Errorf("got %+v, %v, want ErrMisconfigured with %q and the setting %s", l, err, want, setting)
		}
	}
	s := newStore(t, client, durable)
	refused(s, redisstore.ErrVolatile, "appendonly")
	set("maxmemory-policy", "volatile-lru")
	volatile := newStore(t, client)
	refused(volatile, redisstore.ErrEviction, "maxmemory-policy")
	set("maxmemory-policy", "noeviction")
	acquire(t, volatile, claim("a"))
	refused(s, redisstore.ErrVolatile, "appendonly")
	set("appendonly", "yes")
	acquire(t, s, claim("a"))

	// Once checked it is not checked again.
	set("maxmemory-policy", "volatile-lru")
	acquire(t, s, claim("a"))
}

// A server that does not say how it is configured is used, with one warning. Check reports it.
func TestUntoldConfiguration(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	server := testserver.Redis.Start(t)
	for _, tt := range []struct {
		name   string
		info   func(cmd *redis.StringCmd)
		optFn  func(*redisstore.Options)
		said   string // by Check; "": nothing
		warned bool   // and not refused
	}{
		{"INFO is not permitted", func(cmd *redis.StringCmd) {
			cmd.SetErr(refusal("NOPERM this user has no permissions to run the 'info' command"))
		}, nil, "INFO", true},
		{"INFO is renamed", func(cmd *redis.StringCmd) { cmd.SetErr(refusal("ERR unknown command 'info'")) }, nil, "INFO", true},
		{"no policy in INFO", func(cmd *redis.StringCmd) {
			cmd.SetVal("redis_version:7.0.0\r\nrole:master\r\naof_enabled:1\r\n")
		}, durable, "maxmemory_policy", true},
		{"nothing in INFO but what is accepted", func(cmd *redis.StringCmd) {
			cmd.SetVal("redis_version:7.0.0\r\nrole:master\r\nmaxmemory_policy:noeviction\r\n")
		}, nil, "", false},
		{"a problem and an untold one", func(cmd *redis.StringCmd) {
			cmd.SetVal("redis_version:7.0.0\r\nrole:master\r\naof_enabled:0\r\n")
		}, durable, "appendonly", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			client := connect(t, server)
			client.AddHook(&fault{info: tt.info})
			var log strings.Builder
			var lines host.Lines
			s := newStore(t, client, func(o *redisstore.Options) {
				o.Logger = slog.New(slog.NewTextHandler(&log, nil))
				if tt.optFn != nil {
					tt.optFn(o)
				}
			})
			if err := s.Check(lines.Context(ctx)); tt.said == "" && err != nil || tt.said != "" && (err == nil || !strings.Contains(err.Error(), tt.said)) {
				t.Errorf("check: got %v, want %q", err, tt.said)
			}
			for i := range 3 {
				c := claim("a")
				c.Key = fmt.Sprint(t.Name(), i)
				l, err := granted.Lease(s.Acquire(lines.Context(ctx), c))
				if refused := tt.said != "" && !tt.warned; (err != nil) != refused {
					t.Errorf("acquire: got %+v, %v", l, err)
				}
			}
			lines.Flush(time.Minute)
			warnings := strings.Count(log.String(), "level=WARN")
			if !tt.warned && warnings != 0 || tt.warned && (warnings != 1 || !strings.Contains(log.String(), tt.said)) {
				t.Errorf("%d warnings, want one with %q if any: %s", warnings, tt.said, log.String())
			}
		})
	}
}

// A server that cannot be asked is not taken for one that does not say.
func TestFirstAcquireWithoutAServer(t *testing.T) {
	t.Parallel()
	client := connect(t, testserver.Redis.Start(t))
	away := &fault{info: func(cmd *redis.StringCmd) {
		cmd.SetErr(&net.OpError{Op: "dial", Err: errors.New("connection refused")})
	}}
	client.AddHook(away)
	s := newStore(t, client, durable)
	if l, err := granted.Lease(s.Acquire(t.Context(), claim("a"))); !errors.Is(err, sqsonce.ErrUnavailable) || errors.Is(err, sqsonce.ErrMisconfigured) || errors.Is(err, dedup.ErrOutcomeUnknown) {
		t.Errorf("got %+v, %v, want ErrUnavailable and no unknown outcome", l, err)
	}
	away.info = nil
	if l, err := granted.Lease(s.Acquire(t.Context(), claim("a"))); !errors.Is(err, redisstore.ErrVolatile) {
		t.Errorf("asked again: got %+v, %v, want ErrVolatile", l, err)
	}
}

// Problems that real servers report: each is a typed error, and never a lease.
func TestUnfitServers(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	server := testserver.Redis.Start(t)
	admin := connect(t, server)
	t.Run("replica", func(t *testing.T) {
		replica := testserver.Redis.Start(t, func(o *testserver.Options) {
			o.Args = []string{"--replicaof", testserver.Host, portOf(server)}
		})
		s := newStore(t, connect(t, replica))
		if err := s.Check(ctx); !errors.Is(err, redisstore.ErrReplica) {
			t.Errorf("check: got %v, want ErrReplica", err)
		}
		if l, err := granted.Lease(s.Acquire(ctx, claim("a"))); !errors.Is(err, redisstore.ErrReplica) {
			t.Errorf("acquire: got %+v, %v, want ErrReplica", l, err)
		}
	})
	for user, tt := range map[string]struct {
		may            string // "": there is no such user
		check, acquire error
	}{
		"reader": {"+@read +@connection +eval +evalsha +time", redisstore.ErrAccessDenied, redisstore.ErrAccessDenied}, // a command inside the script
		"silent": {"+@all -info", redisstore.ErrNotTold, nil},
		"nobody": {"", redisstore.ErrAccessDenied, redisstore.ErrAccessDenied},
	} {
		t.Run(user, func(t *testing.T) {
			if err := admin.Do(ctx, "ACL", "WHOAMI").Err(); err != nil {
				t.Skipf("Redis before 6 has no users: %v", err)
			}
			if tt.may != "" {
				args := []any{"ACL", "SETUSER", user, "on", "nopass", "~*"}
				for rule := range strings.FieldsSeq(tt.may) {
					args = append(args, rule)
				}
				must.Do(t, admin.Do(ctx, args...).Err())
			}
			s := newStore(t, connect(t, server, func(o *redis.Options) { o.Username, o.Password = user, "x" }), durable)
			if err := s.Check(ctx); !errors.Is(err, tt.check) || !errors.Is(err, redisstore.ErrAccessDenied) {
				t.Errorf("check: got %v, want %v and ErrAccessDenied", err, tt.check)
			}
			if l, err := granted.Lease(s.Acquire(ctx, claim("a"))); !errors.Is(err, tt.acquire) {
				t.Errorf("acquire: got %+v, %v, want %v", l, err, tt.acquire)
			}
		})
	}
}
