package redisstore_test

import (
	"context"
	"crypto/rand"
	"strconv"
	"testing"
	"time"

	"github.com/sqsonce/sqsonce/internal/must"

	"github.com/redis/go-redis/v9"

	"github.com/sqsonce/sqsonce/dedup"
	"github.com/sqsonce/sqsonce/dedup/redisstore"
	"github.com/sqsonce/sqsonce/dedup/storetest"
	"github.com/sqsonce/sqsonce/internal/granted"
	"github.com/sqsonce/sqsonce/internal/testserver"
)

func TestMain(m *testing.M) { testserver.Main(m) }

// connect returns a client of the server, closed at the end of the test.
func connect(t testing.TB, s *testserver.Server, optFns ...func(*redis.Options)) *redis.Client {
	t.Helper()
	o := &redis.Options{Addr: s.Addr(), ContextTimeoutEnabled: true}
	for _, fn := range optFns {
		fn(o)
	}
	c := redis.NewClient(o)
	closeWith(t, c)
	return c
}

func closeWith(t testing.TB, c interface{ Close() error }) {
	t.Cleanup(func() { must.Do(t, c.Close()) })
}

// newStore returns a store with a prefix of its own. Most servers of tests have no append-only file.
func newStore(t testing.TB, c redisstore.Client, optFns ...func(*redisstore.Options)) *redisstore.Store {
	t.Helper()
	prefix := rand.Text() + ":"
	return must.Get(redisstore.New(c, append([]func(*redisstore.Options){func(o *redisstore.Options) { o.Prefix, o.Volatile = prefix, true }}, optFns...)...))(t)
}

func TestStore(t *testing.T) {
	t.Parallel()
	client := connect(t, testserver.Redis.Shared(t))
	conformance(t, client)
}

func conformance(t *testing.T, client redisstore.Client) {
	storetest.Run(t, storetest.Harness{
		New: func(t *testing.T) dedup.Store {
			s := newStore(t, client)
			warm(t, s) // the cases measure one request
			return s
		},
		Away: func(t *testing.T) dedup.Store {
			server := testserver.Redis.Start(t)
			away := newStore(t, connect(t, server))
			server.Kill()
			return away
		},
		Misconfigured: func(t *testing.T) dedup.Store {
			return newStore(t, connect(t, testserver.Redis.Shared(t), func(o *redis.Options) { o.DB = 99 })) // there are 16
		},
		Attributes: &storetest.Attributes{
			Of: func(ctx context.Context, s dedup.Store, key string) (map[string]string, error) {
				return s.(*redisstore.Store).Attributes(ctx, key)
			},
		},
		Unlisted: func(t *testing.T) dedup.Store {
			return newStore(t, refuser(t, func(string) string { return "ERR ZZ999 an answer that nobody knows" }))
		},
		ReadOnly: func(t *testing.T) dedup.Store { return readOnly(t) },
		NoRecord: map[string]func(context.Context, dedup.Store, string) error{
			"a text":                    redisstore.Leave("x"),
			"no field of a record":      redisstore.Leave("name", "x"),
			"no owner":                  redisstore.Leave("status", "INPROGRESS"),
			"texts in place of numbers": redisstore.Leave("status", "INPROGRESS", "owner", "x", "fence", "x", "until", "x"),
		},
		RealTime: true, Lease: 2 * time.Second, Grace: time.Second, Age: redisstore.Age,
	})
}

// readOnly is a store whose user may not write.
func readOnly(t *testing.T) *redisstore.Store {
	admin := connect(t, testserver.Redis.Shared(t))
	must.Do(t, admin.Do(t.Context(), "ACL", "SETUSER", "reader", "on", "nopass", "~*", "+@all", "-@write", "+evalsha", "+eval").Err())
	return newStore(t, connect(t, testserver.Redis.Shared(t), func(o *redis.Options) { o.Username, o.Password = "reader", "any" }))
}

func claim(owner string) dedup.Claim {
	return dedup.Claim{Key: "test#event", Owner: owner, Lease: time.Minute, Retention: 24 * time.Hour, ReceiveCount: 1}
}

func acquire(t testing.TB, s dedup.Store, c dedup.Claim) dedup.Lease {
	t.Helper()
	return must.Get(granted.Lease(s.Acquire(context.Background(), c)))(t)
}

// warm makes the store's first acquire, which asks the server for its configuration and its time.
func warm(t testing.TB, s dedup.Store) {
	t.Helper()
	c := claim("warm")
	c.Key = "test#warm"
	acquire(t, s, c)
}

func portOf(s *testserver.Server) string { return strconv.Itoa(s.Port) }
