package redisstore_test

import (
	"context"
	"testing"
	"time"

	"github.com/sqsonce/sqsonce/internal/must"

	"github.com/redis/go-redis/v9"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/dedup"
	"github.com/sqsonce/sqsonce/dedup/redisstore"
	"github.com/sqsonce/sqsonce/internal/testserver"
)

// consumer returns a handler that acts as another process: it shares no memory with other deliveries.
func consumer(t *testing.T, s *redisstore.Store, h sqsonce.Handler) sqsonce.Handler {
	t.Helper()
	once := must.Get(dedup.New(s, "billing", func(o *dedup.Options) { o.CacheSize, o.PeerWait, o.LeaseDuration = -1, -1, time.Second }))(t)
	return once.Handler(h)
}

func message(receive int) *sqsonce.Message {
	return &sqsonce.Message{
		ID: "m-1", QueueARN: "arn:aws:sqs:us-east-1:000000000000:orders", Body: "{}", ReceiveCount: receive,
		Attributes: map[string]sqsonce.Attribute{sqsonce.AttrEventID: {Type: "String", String: "ord-1/paid"}, sqsonce.AttrEventSource: {Type: "String", String: "orders"}},
	}
}

// A restart, as the package documentation describes it: an event is handled, Redis is killed and started again, and the
// message is delivered a second time.
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
				must.Do(t, consumer(t, s, func(context.Context, *sqsonce.Message) error { effects++; return nil })(t.Context(), message(receive)))
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

// A complete that began before a restart of Redis succeeds after it.
func TestCompleteOutlivesARestart(t *testing.T) {
	t.Parallel()
	server := testserver.Redis.Start(t, testserver.AppendOnly)
	s := newStore(t, connect(t, server))
	effects := 0
	once := must.Get(dedup.New(s, "billing", func(o *dedup.Options) { o.CallTimeout = time.Minute }))(t)
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
	must.Do(t, h(t.Context(), message(1)))
	must.Do(t, <-restarted)
	must.Do(t, consumer(t, s, func(context.Context, *sqsonce.Message) error { effects++; return nil })(t.Context(), message(2)))
	if effects != 1 {
		t.Errorf("%d effects, want 1", effects)
	}
}

// Replication is asynchronous: what the master has acknowledged and the replica has not received is lost in a failover.
// Here the link is cut before the event is handled, as by a partition.
func TestFailoverLosesWhatTheReplicaLacks(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	master := testserver.Redis.Start(t, testserver.AppendOnly)
	replica := testserver.Redis.Start(t, testserver.AppendOnly, replicaOf(master))
	onMaster, onReplica := connect(t, master), connect(t, replica)
	prefix := "failover:"
	storeOn := func(c *redis.Client) *redisstore.Store {
		return must.Get(redisstore.New(c, func(o *redisstore.Options) { o.Prefix, o.Volatile = prefix, true }))(t)
	}
	effects := 0
	deliver := func(s *redisstore.Store, m *sqsonce.Message) {
		t.Helper()
		must.Do(t, consumer(t, s, func(context.Context, *sqsonce.Message) error { effects++; return nil })(ctx, m))
	}
	replicated, unreplicated := message(1), message(1)
	replicated.Attributes = map[string]sqsonce.Attribute{sqsonce.AttrEventKey: {Type: "String", String: "replicated"}}
	unreplicated.Attributes = map[string]sqsonce.Attribute{sqsonce.AttrEventKey: {Type: "String", String: "unreplicated"}}

	deliver(storeOn(onMaster), replicated)
	awaitReplica(t, onMaster)
	if err := onReplica.Do(ctx, "REPLICAOF", testserver.Host, "1").Err(); err != nil { // no server has this port
		t.Fatal(err)
	}
	deliver(storeOn(onMaster), unreplicated)
	master.Kill()
	must.Do(t, onReplica.Do(ctx, "REPLICAOF", "NO", "ONE").Err())
	deliver(storeOn(onReplica), replicated)
	if effects != 2 {
		t.Errorf("%d effects: the event that the replica had received ran again", effects)
	}
	deliver(storeOn(onReplica), unreplicated)
	if effects != 3 {
		t.Errorf("%d effects: the event that the replica had not received did not run again; is replication synchronous?", effects)
	}
}

func replicaOf(master *testserver.Server) func(*testserver.Options) {
	return func(o *testserver.Options) {
		o.Args = append(o.Args, "--replicaof", testserver.Host, portOf(master), "--repl-diskless-sync-delay", "0")
	}
}

// awaitReplica waits until a replica has received all earlier writes.
func awaitReplica(t *testing.T, master *redis.Client) {
	t.Helper()
	conn := master.Conn()
	closeWith(t, conn)
	// WAIT waits for what its own connection has written.
	must.Do(t, conn.Incr(t.Context(), "steps").Err())
	for deadline := time.Now().Add(20 * time.Second); ; {
		n, err := conn.Wait(t.Context(), 1, time.Second).Result()
		if err == nil && n >= 1 {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("the replica has not received all writes: %d, %v", n, err)
		}
	}
}
