package redisstore_test

import (
	"context"
	"crypto/rand"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/dedup"
	"github.com/sqsonce/sqsonce/dedup/redisstore"
	"github.com/sqsonce/sqsonce/internal/counting"
	"github.com/sqsonce/sqsonce/internal/limittest"
	"github.com/sqsonce/sqsonce/internal/must"
	"github.com/sqsonce/sqsonce/internal/testserver"
	"github.com/sqsonce/sqsonce/limit"
)

func TestCounter(t *testing.T) {
	t.Parallel()
	counters(t, connect(t, testserver.Redis.Shared(t)))
}

// countsWrites has limittest count the scripts that a server runs.
type countsWrites struct{ fault }

func (*countsWrites) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		err := next(ctx, cmd)
		if strings.HasPrefix(cmd.Name(), "eval") && !redis.HasErrorPrefix(err, "NOSCRIPT") {
			limittest.CountWrite(ctx)
		}
		return err
	}
}

// counters runs the suite of counters on a server, or a cluster.
func counters(t *testing.T, client redis.UniversalClient) {
	client.AddHook(&countsWrites{})
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
		Store:    func(c limit.Counter) dedup.Lister { return redisstore.CounterStore(c) },
		Delete: func(ctx context.Context, c limit.Counter, record string) error {
			return redisstore.CounterStore(c).Delete(ctx, record)
		},
		CountsWrites: true,
		RealTime:     true, Step: 4 * time.Second, Grace: time.Second, Takeover: time.Second,
	})
}

// The first take checks the server like an acquire does.
func TestFirstTakeChecks(t *testing.T) {
	t.Parallel()
	client := connect(t, testserver.Redis.Start(t))
	setting(t, client)("maxmemory-policy", "volatile-lru")
	c := redisstore.NewCounter(newStore(t, client))
	_, take := c.Take(t.Context(), tokens(1))
	_, line := c.Line(t.Context(), "limits#key", 1, time.Second)
	for what, err := range map[string]error{"Take": take, "Line": line} {
		if !errors.Is(err, redisstore.ErrEviction) || !errors.Is(err, sqsonce.ErrMisconfigured) {
			t.Errorf("%s: got error %v, want ErrMisconfigured with %q", what, err, redisstore.ErrEviction)
		}
	}
}

// tokens asks for so many tokens a second, after a rest all of them at once.
func tokens(n int) counting.Take {
	return counting.Take{Key: "limits#key", N: n, Step: time.Second / time.Duration(n), Burst: n}
}

// The server's clock counts in microseconds: a part of a second gives that part of the tokens.
func TestCounterClock(t *testing.T) {
	t.Parallel()
	c := redisstore.NewCounter(newStore(t, connect(t, testserver.Redis.Shared(t)), func(o *redisstore.Options) { o.Prefix = rand.Text() + ":" }))
	const rate = 100_000
	sent := time.Now()
	must.Get(c.Take(t.Context(), tokens(rate)))(t)
	received := time.Now()
	for range 5 {
		time.Sleep(20 * time.Millisecond)
		least := time.Since(received)
		g := must.Get(c.Take(t.Context(), tokens(rate)))(t)
		most := time.Since(sent)
		sent, received = sent.Add(time.Duration(g.N)*time.Second/rate), received.Add(time.Duration(g.N)*time.Second/rate)
		if n := time.Duration(g.N) * time.Second / rate; n < least-time.Millisecond || n > most+time.Millisecond {
			t.Errorf("after %s to %s: got the tokens of %s", least, most, n)
		}
	}
}

// Data of another program under a key's name is not changed.
func TestCounterForeign(t *testing.T) {
	t.Parallel()
	client, prefix := connect(t, testserver.Redis.Shared(t)), rand.Text()+":"
	c := redisstore.NewCounter(newStore(t, client, func(o *redisstore.Options) { o.Prefix = prefix }))
	must.Do(t, client.HSet(t.Context(), prefix+"limit/limits#key", "field", "value").Err())
	_, take := c.Take(t.Context(), tokens(1))
	_, line := c.Line(t.Context(), "limits#key", 1, time.Second)
	for what, err := range map[string]error{"Take": take, "Line": line} {
		if !errors.Is(err, dedup.ErrRecord) {
			t.Errorf("%s: got error %v, want ErrRecord", what, err)
		}
	}
	if data, err := client.HGetAll(t.Context(), prefix+"limit/limits#key").Result(); err != nil || len(data) != 1 {
		t.Errorf("got %v and error %v, want the other program's data", data, err)
	}
}

// A reply that can't be read grants nothing.
func TestCounterUnreadableReply(t *testing.T) {
	t.Parallel()
	for _, reply := range [][]any{{}, {"nonsense"}, {"taken"}, {"taken", "1", int64(0), int64(0)}, {"taken", int64(1), int64(0)}, {"place"}, {"place", "0"}} {
		f := &fault{}
		c := redisstore.NewCounter(faulty(t, f))
		f.reply = reply
		g, take := c.Take(t.Context(), tokens(1))
		d, line := c.Line(t.Context(), "limits#key", 1, time.Second)
		if !errors.Is(take, sqsonce.ErrUnavailable) || g.N != 0 || !errors.Is(line, sqsonce.ErrUnavailable) {
			t.Errorf("reply %q: got %+v with error %v, and %s with error %v, want ErrUnavailable", reply, g, take, d, line)
		}
	}
}
