package redisstore_test

import (
	"errors"
	"fmt"
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

const nodes = 3

// startCluster starts a cluster of masters, each with a third of the slots.
func startCluster(t *testing.T, optFns ...func(*testserver.Options)) (*redis.ClusterClient, []*redis.Client) {
	t.Helper()
	optFns = append(optFns, func(o *testserver.Options) {
		o.Args = append(o.Args, "--cluster-enabled", "yes", "--cluster-node-timeout", "2000")
	})
	addrs, admins := []string{}, []*redis.Client{}
	for i := range nodes {
		server := testserver.Redis.Start(t, optFns...)
		admin := connect(t, server)
		must.Do(t, admin.ClusterAddSlotsRange(t.Context(), 16384*i/nodes, 16384*(i+1)/nodes-1).Err())
		if i > 0 {
			must.Do(t, admins[0].Do(t.Context(), "CLUSTER", "MEET", testserver.Host, server.Port).Err())
		}
		addrs, admins = append(addrs, server.Addr()), append(admins, admin)
	}
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(50 * time.Millisecond) {
		agreed := 0
		for _, a := range admins {
			info := a.ClusterInfo(t.Context()).Val()
			if containsAll(info, "cluster_state:ok", fmt.Sprintf("cluster_known_nodes:%d", nodes)) {
				agreed++
			}
		}
		if agreed == nodes {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d of %d nodes agree", agreed, nodes)
		}
	}
	client := redis.NewClusterClient(&redis.ClusterOptions{Addrs: addrs[:1], ContextTimeoutEnabled: true})
	closeWith(t, client)
	return client, admins
}

func TestCluster(t *testing.T) {
	t.Parallel()
	client, admins := startCluster(t)
	t.Run("conformance", func(t *testing.T) { conformance(t, client) })
	t.Run("counters", func(t *testing.T) { counters(t, client) })
	t.Run("keys on every node", func(t *testing.T) {
		s := newStore(t, client)
		for i := range 100 {
			c := claim("a")
			c.Key = fmt.Sprintf("test#{%d}", i)
			must.Do(t, s.Complete(t.Context(), acquire(t, s, c), dedup.Result{}))
			c.Owner = "b"
			if _, err := granted.Lease(s.Acquire(t.Context(), c)); !isCompleted(err) {
				t.Errorf("%s again: got %v, want completed", c.Key, err)
			}
		}
		listed := map[string]bool{}
		for r, err := range s.List(t.Context()) {
			if err != nil || !r.Completed {
				t.Fatalf("list: got %+v, %v", r, err)
			}
			listed[r.Key] = true
		}
		if len(listed) != 100 {
			t.Errorf("list: got %d records, want 100", len(listed))
		}
		for i, a := range admins {
			if n := a.DBSize(t.Context()).Val(); n == 0 {
				t.Errorf("node %d has no keys", i)
			}
		}
	})
	t.Run("check asks every node", func(t *testing.T) {
		s := newStore(t, client)
		must.Do(t, s.Check(t.Context()))
		must.Do(t, admins[nodes-1].ConfigSet(t.Context(), "maxmemory-policy", "allkeys-lru").Err())
		if err := s.Check(t.Context()); !errors.Is(err, redisstore.ErrEviction) {
			t.Errorf("one node evicts: got %v, want ErrEviction", err)
		}
		if l, err := granted.Lease(s.Acquire(t.Context(), claim("a"))); !errors.Is(err, redisstore.ErrEviction) {
			t.Errorf("one node evicts: acquire: got %+v, %v, want ErrEviction", l, err)
		}
	})
}

func isCompleted(err error) bool { return errors.Is(err, granted.ErrCompleted) }

// A sentinel promotes the replica when the master is killed. The store continues with the same client, and finds the
// records that the replica had received.
func TestSentinelFailover(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	master := testserver.Redis.Start(t, testserver.AppendOnly)
	replica := testserver.Redis.Start(t, testserver.AppendOnly, replicaOf(master))
	awaitReplica(t, connect(t, master))
	sentinel := testserver.Redis.Start(t, func(o *testserver.Options) {
		o.Config = fmt.Sprintf("sentinel monitor orders %s %d 1\nsentinel down-after-milliseconds orders 500\nsentinel failover-timeout orders 3000\n", testserver.Host, master.Port)
		o.Args = []string{"--sentinel"}
	})
	client := redis.NewFailoverClient(&redis.FailoverOptions{MasterName: "orders", SentinelAddrs: []string{sentinel.Addr()}, ContextTimeoutEnabled: true})
	closeWith(t, client)
	s := newStore(t, client, durable)
	must.Do(t, s.Check(ctx))
	done := claim("a")
	done.Key = "test#done"
	must.Do(t, s.Complete(ctx, acquire(t, s, done), dedup.Result{}))
	l := acquire(t, s, claim("a"))
	awaitReplica(t, connect(t, master))
	// The sentinel must know the replica before the kill.
	sentinelAdmin := redis.NewSentinelClient(&redis.Options{Addr: sentinel.Addr()})
	closeWith(t, sentinelAdmin)
	await(t, "the sentinel knows the replica", func() bool {
		replicas, err := sentinelAdmin.Replicas(ctx, "orders").Result()
		return err == nil && len(replicas) == 1 && replicas[0]["master-link-status"] == "ok"
	})

	master.Kill()
	await(t, "the replica is the master", func() bool {
		_, err := s.Renew(ctx, l, time.Minute)
		if errors.Is(err, sqsonce.ErrLeaseLost) {
			t.Fatalf("the replica lacks what it had acknowledged: %v", err)
		}
		return err == nil
	})
	if role := connect(t, replica).Info(ctx, "replication").Val(); !containsAll(role, "role:master") {
		t.Errorf("the lease was renewed, and the replica's role is %s", role)
	}
	must.Do(t, s.Complete(ctx, l, dedup.Result{}))
	done.Owner = "b"
	if _, err := granted.Lease(s.Acquire(ctx, done)); !isCompleted(err) {
		t.Errorf("completed before the failover: got %v", err)
	}
}

func await(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(2 * time.Minute); !ok(); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not within 2 min: %s", what)
		}
	}
}

func containsAll(text string, parts ...string) bool {
	for _, p := range parts {
		if !strings.Contains(text, p) {
			return false
		}
	}
	return true
}
