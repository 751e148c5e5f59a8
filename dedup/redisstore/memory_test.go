package redisstore_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/sqsonce/sqsonce/dedup"
	"github.com/sqsonce/sqsonce/dedup/redisstore"
	"github.com/sqsonce/sqsonce/internal/granted"
	"github.com/sqsonce/sqsonce/internal/testserver"
)

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
	stuck, err := s.Inspect(ctx, lease("reopened").Key)
	if err != nil {
		t.Fatal(err)
	}
	set := func(maxmemory string) {
		t.Helper()
		if err := client.ConfigSet(ctx, "maxmemory", maxmemory).Err(); err != nil {
			t.Fatal(err)
		}
	}
	set("1")
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
	if err := s.Complete(ctx, completed, dedup.Result{}); err != nil {
		t.Errorf("complete: %v", err)
	}
	data := strings.Repeat("x", 4096)
	if err := s.Complete(ctx, replayed, dedup.Result{Data: []byte(data), Validation: "hash"}); err != nil {
		t.Errorf("complete with a result: %v", err)
	}
	if err := s.Release(ctx, released, errors.New(strings.Repeat("x", 256))); err != nil {
		t.Errorf("release: %v", err)
	}
	if err := s.Reopen(ctx, stuck, strings.Repeat("x", 256), func(o *dedup.ReopenOptions) { o.Force = true }); err != nil {
		t.Errorf("reopen: %v", err)
	}
	if err := s.Delete(ctx, deleted.Key, func(o *redisstore.DeleteOptions) { o.Force = true }); err != nil {
		t.Errorf("delete: %v", err)
	}

	set("0")
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
