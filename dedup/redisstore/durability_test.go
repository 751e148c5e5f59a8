package redisstore_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/dedup"
	"github.com/sqsonce/sqsonce/dedup/redisstore"
	"github.com/sqsonce/sqsonce/internal/testserver"
)

// What the package documentation says about a restart, shown: an event is handled, Redis is killed and started again, and
// the message comes a second time.
func TestRestart(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name    string
		optFns  []func(*testserver.Options)
		effects int
	}{
		{"without an append-only file the handler runs again", nil, 2},
		{"with an append-only file it does not", []func(*testserver.Options){testserver.AppendOnly}, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			server := testserver.Redis.Start(t, tt.optFns...)
			s := newStore(t, connect(t, server))
			effects := 0
			deliver := func(receive int) {
				t.Helper()
				if err := consumer(t, s, func(context.Context, *sqsonce.Message) error { effects++; return nil })(t.Context(), message(receive)); err != nil {
					t.Fatal(err)
				}
			}
			deliver(1)
			server.Kill()
			server.Restart(t)
			deliver(2)
			if effects != tt.effects {
				t.Errorf("%d effects, want %d", effects, tt.effects)
			}
		})
	}
}

// A holder whose record a restart has taken away is told so, and does not bring it back: another may have had the key in
// between.
func TestHolderOfAForgottenRecord(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	server := testserver.Redis.Start(t)
	s := newStore(t, connect(t, server))
	l := acquire(t, s, claim("a"))
	server.Kill()
	server.Restart(t)
	if _, err := s.Renew(ctx, l, time.Minute); !errors.Is(err, sqsonce.ErrLeaseLost) {
		t.Errorf("renew: got %v, want ErrLeaseLost", err)
	}
	if err := s.Complete(ctx, l, dedup.Result{}); !errors.Is(err, sqsonce.ErrLeaseLost) {
		t.Errorf("complete: got %v, want ErrLeaseLost", err)
	}
}

// While Redis is away nothing is acquired, and a completion that began before the restart gets through after it.
func TestCompleteOutlivesARestart(t *testing.T) {
	t.Parallel()
	server := testserver.Redis.Start(t, testserver.AppendOnly)
	s := newStore(t, connect(t, server))
	effects := 0
	once, err := dedup.New(s, "billing")
	if err != nil {
		t.Fatal(err)
	}
	restarted := make(chan error, 1)
	h := once.Handler(func(context.Context, *sqsonce.Message) error {
		effects++
		server.Kill()
		go func() {
			time.Sleep(300 * time.Millisecond)
			restarted <- server.Relaunch(context.Background())
		}()
		return nil
	})
	if err := h(t.Context(), message(1)); err != nil {
		t.Errorf("got %v, want it acknowledged", err)
	}
	if err := <-restarted; err != nil {
		t.Fatal(err)
	}
	if err := consumer(t, s, func(context.Context, *sqsonce.Message) error { effects++; return nil })(t.Context(), message(2)); err != nil {
		t.Error(err)
	}
	if effects != 1 {
		t.Errorf("%d effects, want 1", effects)
	}
}

// Replication is asynchronous: what the master had acknowledged and the replica had not received is gone after a
// failover. Here the link is cut, as by a partition, before the event is handled.
func TestFailoverForgetsWhatTheReplicaHasNot(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	master := testserver.Redis.Start(t, testserver.AppendOnly)
	replica := testserver.Redis.Start(t, testserver.AppendOnly, replicaOf(master))
	onMaster, onReplica := connect(t, master), connect(t, replica)
	prefix := "failover:"
	storeOn := func(c *redis.Client) *redisstore.Store {
		s, err := redisstore.New(c, func(o *redisstore.Options) { o.Prefix = prefix })
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	effects := 0
	deliver := func(s *redisstore.Store, m *sqsonce.Message) {
		t.Helper()
		if err := consumer(t, s, func(context.Context, *sqsonce.Message) error { effects++; return nil })(ctx, m); err != nil {
			t.Fatal(err)
		}
	}
	early, late := message(1), message(1)
	early.Attributes = map[string]sqsonce.Attribute{sqsonce.AttrEventKey: {Type: "String", String: "early"}}
	late.Attributes = map[string]sqsonce.Attribute{sqsonce.AttrEventKey: {Type: "String", String: "late"}}

	deliver(storeOn(onMaster), early)
	inStep(t, onMaster)
	if err := onReplica.Do(ctx, "REPLICAOF", testserver.Host, "1").Err(); err != nil { // where nobody is
		t.Fatal(err)
	}
	deliver(storeOn(onMaster), late)
	master.Kill()
	if err := onReplica.Do(ctx, "REPLICAOF", "NO", "ONE").Err(); err != nil {
		t.Fatal(err)
	}
	deliver(storeOn(onReplica), early)
	if effects != 2 {
		t.Errorf("%d effects: the event that the replica knew of ran again", effects)
	}
	deliver(storeOn(onReplica), late)
	if effects != 3 {
		t.Errorf("%d effects: the event that the replica had not received did not run again; is replication synchronous?", effects)
	}
}

func replicaOf(master *testserver.Server) func(*testserver.Options) {
	return func(o *testserver.Options) {
		o.Args = append(o.Args, "--replicaof", testserver.Host, portOf(master), "--repl-diskless-sync-delay", "0")
	}
}

// inStep waits until a replica has everything that was written before.
func inStep(t *testing.T, master *redis.Client) {
	t.Helper()
	conn := master.Conn()
	closeWith(t, conn)
	// WAIT waits for what its own connection has written.
	if err := conn.Incr(t.Context(), "steps").Err(); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(20 * time.Second); ; {
		n, err := conn.Wait(t.Context(), 1, time.Second).Result()
		if err == nil && n >= 1 {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("the replica is not in step: %d, %v", n, err)
		}
	}
}

// A server that stands still: the acquire that was given up is carried out when it goes on, and must not give the key to
// two.
func TestServerStandsStill(t *testing.T) {
	t.Parallel()
	server := testserver.Redis.Start(t)
	s := newStore(t, connect(t, server))
	c := claim("a")
	c.Lease = time.Second
	acquireAfterPause := func(owner string) (dedup.Lease, error) {
		c := c
		c.Owner = owner
		return s.Acquire(t.Context(), c)
	}
	if err := server.Pause(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	if l, err := s.Acquire(ctx, c); err == nil {
		t.Fatalf("got %+v of a server that stands still", l)
	}
	if err := server.Resume(); err != nil {
		t.Fatal(err)
	}
	var b dedup.Lease
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		var err error
		if b, err = acquireAfterPause("b"); err == nil {
			break
		}
		if !errors.Is(err, sqsonce.ErrInProgress) || time.Now().After(deadline) {
			t.Fatalf("got %v, want in progress and then the key", err)
		}
	}
	if l, err := s.Acquire(t.Context(), c); err == nil {
		t.Errorf("a holds the key beside b: %+v", l)
	}
	if err := s.Complete(t.Context(), b, dedup.Result{}); err != nil {
		t.Error(err)
	}
}
