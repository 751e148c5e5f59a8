package redisstore_test

import (
	"context"
	"crypto/rand"
	mathrand "math/rand/v2"
	"net"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/sqsonce/sqsonce/dedup"
	"github.com/sqsonce/sqsonce/dedup/redisstore"
	"github.com/sqsonce/sqsonce/internal/proof/attack"
	"github.com/sqsonce/sqsonce/internal/testserver"
)

// attacked is where the hosts find the records.
type attacked struct{ Addr, Prefix string }

func TestAttack(t *testing.T) {
	t.Parallel()
	attack.Run(t, func(t *testing.T) attacked {
		return attacked{testserver.Redis.Shared(t).Addr(), rand.Text() + ":"}
	}, func(a attacked) attack.Target {
		var ill illness
		return attack.Target{
			Addr: a.Addr,
			// A packet of go-redis is a command, or the greeting of a connection and its first command.
			Doubles: true,
			Store: func(t *testing.T, addr string) dedup.Store {
				o := &redis.Options{Addr: addr, ContextTimeoutEnabled: true, Dialer: ill.dial}
				if os.Getenv("SOAK") != "" {
					o.ConnMaxLifetime = 2 * time.Second // also of those that a fault has led elsewhere
				}
				client := redis.NewClient(o)
				closeWith(t, client)
				client.AddHook(&fault{change: redisstore.Ahead(&ill.ahead)})
				return newStore(t, client, func(o *redisstore.Options) { o.Prefix = a.Prefix })
			},
			Faults: ill.faults(a),
		}
	})
}

// illness is what the server of a Target has at present.
type illness struct {
	elsewhere atomic.Pointer[string] // where connections are made; nil: where they are meant to
	ahead     atomic.Bool            // the clock is, by an hour
}

func (i *illness) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	if other := i.elsewhere.Load(); other != nil {
		addr = *other
	}
	return new(net.Dialer).DialContext(ctx, network, addr)
}

func (i *illness) faults(a attacked) []attack.Fault {
	leading := func(name string, to func(t *testing.T) (addr string)) attack.Fault {
		return attack.Fault{Name: name, Begin: func(t *testing.T) (end func()) {
			addr := to(t)
			i.elsewhere.Store(&addr)
			return func() { i.elsewhere.Store(nil) }
		}}
	}
	answering := func(name string, texts ...string) attack.Fault {
		return leading(name, func(t *testing.T) string {
			text := texts[mathrand.IntN(len(texts))]
			return refuser(t, func(string) string { return text }).Options().Addr
		})
	}
	var unlisted []string
	for _, r := range testserver.Refusals(100) {
		unlisted = append(unlisted, r.Code+" "+r.Text)
	}
	return []attack.Fault{
		answering("login refused", "WRONGPASS invalid username-password pair or user is disabled.", "NOAUTH Authentication required."),
		answering("loading", "LOADING Redis is loading the dataset in memory"),
		answering("unlisted codes", unlisted...),
		leading("read-only replica", func(t *testing.T) string {
			_, port, _ := net.SplitHostPort(a.Addr)
			return testserver.Redis.Start(t, func(o *testserver.Options) { o.Args = []string{"--replicaof", testserver.Host, port} }).Addr()
		}),
		{Name: "an hour ahead", MovesClock: true, Begin: func(*testing.T) (end func()) {
			i.ahead.Store(true)
			return func() { i.ahead.Store(false) }
		}},
	}
}
