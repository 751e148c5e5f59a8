package redisstore_test

import (
	"context"
	"errors"
	"io"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sqsonce/sqsonce/internal/must"

	"github.com/redis/go-redis/v9"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/dedup"
	"github.com/sqsonce/sqsonce/dedup/redisstore"
	"github.com/sqsonce/sqsonce/internal/granted"
	"github.com/sqsonce/sqsonce/internal/proof/netfault"
	"github.com/sqsonce/sqsonce/internal/testserver"
)

// newProxy is a network to a server that can stall: what is sent waits, and arrives later.
func newProxy(t *testing.T, server *testserver.Server) *netfault.Proxy {
	t.Helper()
	p := must.Get(netfault.Start(server.Addr()))(t)
	t.Cleanup(func() { must.Do(t, p.Close()) })
	return p
}

// The requests of an acquire that its caller has given up are refused by a server that executes them later.
func TestLateAcquireIsNotStored(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	server := testserver.Redis.Start(t)
	network := newProxy(t, server)
	client := connect(t, server, func(o *redis.Options) { o.Addr = network.Addr })
	s := newStore(t, client)
	warm(t, s)
	admin := connect(t, server)
	before := scripts(t, admin)
	network.Stall()
	given, cancel := context.WithCancel(ctx)
	defer cancel()
	client.AddHook(&fault{before: func() error { time.AfterFunc(200*time.Millisecond, cancel); return nil }}) // when it is sent
	if l, err := granted.Lease(s.Acquire(given, claim("a"))); !errors.Is(err, dedup.ErrOutcomeUnknown) {
		t.Errorf("got %+v, %v, want ErrOutcomeUnknown", l, err)
	}
	time.Sleep(redisstore.ClockSlack)
	network.Resume()
	await(t, "the server has executed the request", func() bool { return scripts(t, admin) > before })
	if r, err := s.Inspect(ctx, claim("a").Key); !errors.Is(err, dedup.ErrNotFound) {
		t.Errorf("got record %+v, %v, want none", r, err)
	}
}

// A release may overtake the acquire that it is for: it came by another connection. It is repeated when the acquire can no
// longer be executed.
func TestReleaseThatOvertakesItsAcquire(t *testing.T) {
	t.Parallel()
	server := testserver.Redis.Start(t)
	network := newProxy(t, server)
	direct := connect(t, server)
	prefix := func(o *redisstore.Options) { o.Prefix = t.Name() + ":" }
	impatient := connect(t, server, func(o *redis.Options) {
		o.Addr, o.ReadTimeout, o.MaxRetries = network.Addr, 5*time.Second, -1
	})
	a, b := newStore(t, impatient, prefix), newStore(t, direct, prefix)
	warm(t, a)
	network.Stall()
	ctx, cancel := context.WithCancel(t.Context())
	impatient.AddHook(&fault{before: func() error { time.AfterFunc(150*time.Millisecond, cancel); return nil }}) // when it is sent
	if l, err := granted.Lease(a.Acquire(ctx, claim("a"))); !errors.Is(err, dedup.ErrOutcomeUnknown) {
		t.Fatalf("got %+v, %v, want ErrOutcomeUnknown", l, err)
	}
	overtook, released := make(chan struct{}), make(chan error, 1)
	first := sync.OnceFunc(func() { close(overtook) })
	direct.AddHook(&fault{after: func() error { first(); return nil }})
	go func() { released <- b.Release(t.Context(), dedup.Lease{Key: claim("a").Key, Owner: "a"}, nil) }()
	<-overtook
	time.Sleep(500 * time.Millisecond)
	before := scripts(t, direct)
	network.Resume()
	await(t, "the server has executed the acquire", func() bool { return scripts(t, direct) > before })
	if err := <-released; err != nil && !errors.Is(err, sqsonce.ErrLeaseLost) { // lost: the acquire came too late
		t.Errorf("release: got %v", err)
	}
	next := claim("b")
	next.NoTakeover = true
	acquire(t, b, next)
}

// A release that cannot wait so long does not say that nothing is stored.
func TestReleaseOfAnUnknownAcquireIsCutOff(t *testing.T) {
	t.Parallel()
	s := newStore(t, connect(t, testserver.Redis.Shared(t)))
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	err := s.Release(ctx, dedup.Lease{Key: claim("a").Key, Owner: "a"}, nil)
	if !errors.Is(err, sqsonce.ErrUnavailable) || errors.Is(err, sqsonce.ErrLeaseLost) {
		t.Errorf("got %v, want ErrUnavailable", err)
	}
}

// A wrong idea of the server's clock, as after a failover to a server with another one, costs a request and grants nothing
// that is late.
func TestServersClock(t *testing.T) {
	t.Parallel()
	client := connect(t, testserver.Redis.Shared(t))
	requests := 0
	warm(t, newStore(t, client)) // the server knows the script
	s := newStore(t, client)
	takes := time.Duration(0) // the reply
	client.AddHook(&fault{before: func() error { requests++; return nil }, after: func() error { time.Sleep(takes); return nil }})
	c := claim("a")
	lease := func(what string, want int) {
		t.Helper()
		c.Key = "test#" + what
		requests = 0
		start := time.Now()
		acquire(t, s, c)
		if slow := time.Since(start) > redisstore.MaxAge/2; requests != want && !slow { // a request that comes late is sent again
			t.Errorf("%s: %d requests, want %d", what, requests, want)
		}
	}
	lease("not known", 2)
	lease("known", 1)
	s.ShiftClock(10 * time.Minute)
	lease("believed ahead", 2)
	lease("known again", 1)
	s.ShiftClock(-10 * time.Minute)
	lease("believed behind", 2)
	lease("known again, from a refusal", 1)
	s.ShiftClock(redisstore.ClockSlack / 2)
	lease("nearly right", 1)
	takes = redisstore.MaxAge + redisstore.ClockSlack
	lease("slow", 1)
	takes = 0
	lease("known better than from a slow reply", 1)
}

// The estimate is not ahead of the server's clock after a suspend, which one clock of the host does not count, or a jump of
// the other.
func TestServerTimeIsNeverAhead(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name            string
		monotonic, wall time.Duration
		want            int64
	}{
		{"a second", time.Second, time.Second, 1_001_000},
		{"suspended for an hour", time.Second, time.Hour, 1_001_000},
		{"set ahead", time.Second, 10 * time.Minute, 1_001_000},
		{"set back", time.Second, -time.Minute, 940_000},
	} {
		if got := redisstore.ServerTime(tt.monotonic, tt.wall); got != tt.want {
			t.Errorf("%s: %d, want %d", tt.name, got, tt.want)
		}
	}
}

// A request without a reply may have been executed, whatever a later one was told.
func TestLateAfterALostReply(t *testing.T) {
	t.Parallel()
	requests := 0
	f := &fault{}
	s := faulty(t, f)
	s.ShiftClock(10 * time.Minute)
	f.before = func() error {
		if requests++; requests == 3 {
			return refusal("NOAUTH Authentication required.")
		}
		return nil
	}
	f.after = times(1, io.EOF)
	if l, err := granted.Lease(s.Acquire(t.Context(), claim("a"))); !errors.Is(err, dedup.ErrOutcomeUnknown) || requests != 3 {
		t.Errorf("got %+v, %v after %d requests, want ErrOutcomeUnknown after a lost reply, a refusal as late and an error", l, err, requests)
	}
}

// A server that is always too slow is away.
func TestAlwaysLate(t *testing.T) {
	t.Parallel()
	requests := 0
	s := faulty(t, &fault{before: func() error {
		requests++
		time.Sleep(redisstore.MaxAge + 2*redisstore.ClockSlack)
		return nil
	}})
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	l, err := granted.Lease(s.Acquire(ctx, claim("a")))
	if !errors.Is(err, sqsonce.ErrUnavailable) || errors.Is(err, dedup.ErrOutcomeUnknown) || requests != redisstore.LateTries {
		t.Errorf("got %+v, %v after %d requests, want ErrUnavailable and no unknown outcome after %d", l, err, requests, redisstore.LateTries)
	}
}

// scripts is how many scripts the server has executed.
func scripts(t *testing.T, admin *redis.Client) int {
	t.Helper()
	info := must.Get(admin.Info(t.Context(), "commandstats").Result())(t)
	_, rest, _ := strings.Cut(info, "cmdstat_evalsha:calls=")
	n, err := strconv.Atoi(rest[:max(0, strings.IndexByte(rest, ','))])
	if err != nil {
		t.Fatalf("commandstats: %v: %s", err, info)
	}
	return n
}
