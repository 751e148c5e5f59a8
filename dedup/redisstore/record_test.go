package redisstore_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/sqsonce/sqsonce/internal/must"

	"github.com/redis/go-redis/v9"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/dedup"
	"github.com/sqsonce/sqsonce/dedup/redisstore"
	"github.com/sqsonce/sqsonce/internal/granted"
	"github.com/sqsonce/sqsonce/internal/testserver"
)

// A record that has lost its lease's end is reopened.
func TestReopenWithoutAnEnd(t *testing.T) {
	t.Parallel()
	client := connect(t, testserver.Redis.Shared(t))
	s := newStore(t, client, func(o *redisstore.Options) { o.Prefix = t.Name() + ":" })
	acquire(t, s, claim("a"))
	seen := must.Get(s.Inspect(t.Context(), claim("a").Key))(t)
	must.Do(t, client.HDel(t.Context(), t.Name()+":"+seen.Key, "until").Err()) // by another program
	must.Do(t, s.Reopen(t.Context(), seen, "note"))
	acquire(t, s, claim("b"))
}

// A lease was written while the server's clock was ahead by an hour. Whoever meets it shortens it: its owner keeps it as long as it
// believes, and after a crash another one takes it over when that time has passed, with a fence that is greater all the same.
func TestClockOfTheServerStepsBack(t *testing.T) {
	t.Parallel()
	const length = 500 * time.Millisecond
	ctx, client := t.Context(), connect(t, testserver.Redis.Shared(t))
	prefix := t.Name() + ":"
	s := goldenStore(t, client, prefix)
	other := func(l dedup.Lease) error {
		got, err := granted.Lease(s.Acquire(ctx, dedup.Claim{Key: l.Key, Owner: "b", Lease: length, Retention: time.Hour}))
		if err == nil && got.Fence != l.Fence+1 {
			t.Errorf("%s: fence %d, want %d", l.Key, got.Fence, l.Fence+1)
		}
		return err
	}
	for name, meet := range map[string]func(dedup.Lease) error{
		"acquire": other,
		"reopen":  func(l dedup.Lease) error { return s.Reopen(ctx, dedup.Record{Lease: l}, "note") },
		"delete":  func(l dedup.Lease) error { return s.Delete(ctx, l.Key) },
	} {
		c := claim("a")
		c.Key, c.Lease = "test#"+name, length
		l := acquire(t, s, c)
		for when, until := range []func() time.Time{
			func() time.Time { return inProgressUntil(meet(l)) },
			func() time.Time { return must.Get(s.Renew(ctx, l, length))(t).Until },
			func() time.Time { return inProgressUntil(meet(l)) }, // its length is still known
			func() time.Time { return acquire(t, s, c).Until },
		} {
			ageHash(t, client, prefix+c.Key, -time.Hour)
			if end := until(); end.IsZero() || time.Until(end) > length {
				t.Errorf("%s, step %d: the lease lasts to %v, want %v", name, when, end, length)
			}
		}
		l.Fence = must.Get(client.HIncrBy(ctx, prefix+c.Key, "fence", time.Hour.Milliseconds()).Result())(t)
		ageHash(t, client, prefix+c.Key, -time.Hour)
		time.Sleep(min(time.Until(inProgressUntil(other(l))), 2*length))
		must.Do(t, other(l))
	}
}

// inProgressUntil is the lease's end in the error; zero: it is another error, or none.
func inProgressUntil(err error) time.Time {
	in, _ := errors.AsType[*dedup.InProgressError](err)
	if in == nil {
		return time.Time{}
	}
	return in.Until
}

func TestDelete(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	s := newStore(t, connect(t, testserver.Redis.Shared(t)))
	c := claim("a")
	must.Do(t, s.Delete(ctx, c.Key))
	l := acquire(t, s, c)
	err := s.Delete(ctx, c.Key)
	if in, ok := errors.AsType[*dedup.InProgressError](err); !ok || in.Until.Before(l.Until) {
		t.Errorf("a live lease: got %v, want *InProgressError with the lease's end", err)
	}
	force := func(o *dedup.DeleteOptions) { o.Force = true }
	must.Do(t, s.Delete(ctx, c.Key, force))
	if err := s.Complete(ctx, l, dedup.Result{}); !errors.Is(err, sqsonce.ErrLeaseLost) {
		t.Errorf("complete after a forced delete: got %v, want ErrLeaseLost", err)
	}
	must.Do(t, redisstore.Leave("x")(ctx, s, c.Key))
	must.Do(t, s.Delete(ctx, c.Key, force))
	c.Owner = "b"
	must.Do(t, s.Complete(ctx, acquire(t, s, c), dedup.Result{}))
	must.Do(t, s.Delete(ctx, c.Key))
	c.Owner = "c"
	if l := acquire(t, s, c); l.Takeover {
		t.Errorf("after a delete: got %+v, want a fresh lease", l)
	}
}

func TestBadInputIsTyped(t *testing.T) {
	t.Parallel()
	field := func(what string, err error) {
		t.Helper()
		if _, ok := errors.AsType[*sqsonce.OptionError](err); !ok {
			t.Errorf("%s: got %v, want *sqsonce.OptionError", what, err)
		}
	}
	_, err := redisstore.New(nil)
	field("no client", err)
	var none *redis.Client
	_, err = redisstore.New(none)
	field("a nil client", err)
	ring := redis.NewRing(&redis.RingOptions{Addrs: map[string]string{"a": "127.0.0.1:1"}})
	closeWith(t, ring)
	_, err = redisstore.New(ring)
	field("a Ring", err)

	closed := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1"})
	must.Do(t, closed.Close())
	s := newStore(t, closed)
	ctx := t.Context()
	for _, c := range []dedup.Claim{{Key: "", Owner: "a"}, {Key: "k", Owner: ""}} {
		_, err := granted.Lease(s.Acquire(ctx, c))
		field("acquire", err)
		l := dedup.Lease{Key: c.Key, Owner: c.Owner}
		_, err = s.Renew(ctx, l, time.Minute)
		field("renew", err)
		field("complete", s.Complete(ctx, l, dedup.Result{}))
		field("release", s.Release(ctx, l, nil))
	}
	_, err = s.Inspect(ctx, "")
	field("inspect", err)
	field("delete", s.Delete(ctx, ""))
	for _, err := range s.List(ctx, func(o *dedup.ListOptions) { o.After = "k" }) {
		field("list", err)
	}

	start := time.Now()
	if _, err := granted.Lease(s.Acquire(ctx, claim("a"))); !errors.Is(err, redis.ErrClosed) || time.Since(start) > time.Second {
		t.Errorf("closed client: got %v after %v, want redis.ErrClosed at once", err, time.Since(start))
	}
}

// A server whose memory is full refuses new records, so that no handler starts. Of a record that it has it takes every end,
// and the renewals until then: an event whose handler has run does not run again because of the server's memory.
func TestMemoryFull(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	client := connect(t, testserver.Redis.Start(t))
	s := newStore(t, client)
	lease := func(name string) dedup.Lease {
		c := claim("a")
		c.Key = "test#" + name
		return acquire(t, s, c)
	}
	completed, replayed, released, renewed, deleted := lease("completed"), lease("replayed"), lease("released"), lease("renewed"), lease("deleted")
	stuck := must.Get(s.Inspect(ctx, lease("reopened").Key))(t)
	set := setting(t, client)
	set("maxmemory", "1")
	if err := client.Set(ctx, "other", strings.Repeat("x", 100), 0).Err(); err == nil {
		t.Fatal("the server's memory is not full")
	}

	c := claim("a")
	c.Key = "test#new"
	if l, err := granted.Lease(s.Acquire(ctx, c)); !errors.Is(err, redisstore.ErrMemory) {
		t.Errorf("acquire: got %+v, %v, want ErrMemory", l, err)
	}
	if l, err := s.Renew(ctx, renewed, time.Hour); err != nil || time.Until(l.Until) < 59*time.Minute {
		t.Errorf("renew: got %+v, %v", l, err)
	}
	must.Do(t, s.Complete(ctx, completed, dedup.Result{}))
	data := strings.Repeat("x", 4096)
	must.Do(t, s.Complete(ctx, replayed, dedup.Result{Data: []byte(data), Validation: "hash"}))
	must.Do(t, s.Release(ctx, released, errors.New(strings.Repeat("x", 256))))
	must.Do(t, s.Reopen(ctx, stuck, strings.Repeat("x", 256), func(o *dedup.ReopenOptions) { o.Force = true }))
	must.Do(t, s.Delete(ctx, deleted.Key, func(o *dedup.DeleteOptions) { o.Force = true }))

	set("maxmemory", "0")
	again := claim("b")
	for _, l := range []dedup.Lease{completed, replayed} {
		again.Key = l.Key
		g, err := s.Acquire(ctx, again)
		if g.Verdict != dedup.VerdictCompleted || l == replayed && string(g.Result.Data) != data {
			t.Errorf("%s, with memory again: got %v and error %v, want completed", l.Key, g.Verdict, err)
		}
	}
	again.Key = released.Key
	if l := acquire(t, s, again); l.Takeover || l.LastError == "" {
		t.Errorf("released: got %+v, want a released record with its error", l)
	}
	if l := acquire(t, s, c); l.Takeover {
		t.Errorf("after the refused acquire: got %+v, want a new lease", l)
	}
}
