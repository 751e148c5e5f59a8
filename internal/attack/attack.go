// Package attack is for tests of stores of package dedup. It runs handlers on several hosts whose network to the store's
// server loses, doubles, delays and holds up requests, and cuts hosts off for good, as a kill does. Whatever happens, no two
// handlers of an event hold its lease, fences grow, no event runs again after its success was recorded, none is lost, and
// none looks like a crash where no process died.
package attack

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/dedup"
	"github.com/sqsonce/sqsonce/internal/netfault"
)

// Target is a store and its server.
type Target struct {
	// Addr is the server's host and port. "": the store has no server, as SQLite. Then its hosts only compete.
	Addr string
	// Store opens a host's store, which reaches the server at addr. t.Cleanup closes it.
	Store func(t *testing.T, addr string) dedup.Store
	// Inbox opens a host's inbox. The handler calls work with its context, and adds one to the event's effects in the
	// transaction where work returns nil. nil: the store has no inbox.
	Inbox func(t *testing.T, addr string, work func(ctx context.Context, event string) error) sqsonce.Handler
	// Effects returns how often each event had its effect. Required with Inbox.
	Effects func(t *testing.T) map[string]int
	// Locks says that the inbox holds the lock of a row in place of a lease: the handler of a host that is cut off may run beside
	// the next one, and its transaction is rolled back.
	Locks bool
	// Doubles says that a packet is a whole request, which may reach the server again on another connection.
	Doubles bool
}

const (
	hosts   = 4
	workers = 4 // of each host
	lease   = time.Second
	// heal is how long the events that remain may take when the network is well.
	heal = 2 * time.Minute
)

// length is how long the network is bad at most, if the events last: seconds, and with SOAK in the environment minutes.
func length() time.Duration {
	if os.Getenv("SOAK") != "" {
		return 3 * time.Minute
	}
	return 4 * time.Second
}

// Run runs the attacks as subtests.
func Run(t *testing.T, target Target) {
	t.Run("store", func(t *testing.T) {
		t.Parallel()
		play(t, target, func(t *testing.T, addr string, work func(context.Context, string) error) sqsonce.Handler {
			o, err := dedup.New(target.Store(t, addr), "attack", Options)
			if err != nil {
				t.Fatal(err)
			}
			return o.Handler(func(ctx context.Context, m *sqsonce.Message) error { return work(ctx, m.ID) })
		}, false)
	})
	if target.Addr != "" {
		t.Run("stall", func(t *testing.T) {
			t.Parallel()
			stall(t, target)
		})
	}
	if target.Inbox == nil {
		return
	}
	t.Run("inbox", func(t *testing.T) {
		t.Parallel()
		b := play(t, target, target.Inbox, target.Locks)
		effects := target.Effects(t)
		for name := range b.events {
			if effects[name] != 1 {
				t.Errorf("%s: %d effects, want 1", name, effects[name])
			}
		}
	})
}

// Options are the options of every host, and of a Target's inbox.
func Options(o *dedup.Options) {
	o.Lease, o.CallTimeout, o.Wait, o.CacheSize = lease, time.Second, -1, -1
}

// bed is a run: its events, and the hosts.
type bed struct {
	*testing.T
	target Target
	open   func(t *testing.T, addr string, work func(context.Context, string) error) sqsonce.Handler
	events map[string]*event
	names  []string

	running sync.WaitGroup // deliveries, also those of hosts that are cut off

	mu   sync.Mutex
	cuts int
}

// play has the hosts deliver the events while the network is bad, and then until all are done.
func play(t *testing.T, target Target, open func(*testing.T, string, func(context.Context, string) error) sqsonce.Handler, locks bool) *bed {
	b := &bed{T: t, target: target, open: open, events: map[string]*event{}}
	n := 240
	if length() > time.Minute {
		n = 2000 // fewer than the hosts can do in that time, also on a slow machine
	}
	if target.Addr == "" {
		n /= 4 // SQLite has one writer at a time
	}
	for i := range n {
		name := fmt.Sprint(t.Name(), "/", i)
		b.names = append(b.names, name)
		b.events[name] = &event{name: name, locks: locks}
	}
	bad := time.Now().Add(length())
	var wg sync.WaitGroup
	for range hosts {
		wg.Go(func() { b.host(bad) })
	}
	wg.Wait()
	b.running.Wait()
	runs := 0
	for _, e := range b.events {
		e.check(t)
		runs += len(e.runs)
	}
	t.Logf("%d events, %d runs, %d hosts cut off for good", len(b.events), runs, b.cuts)
	if runs == len(b.events) {
		t.Error("no event ran twice: the network was too good")
	}
	return b
}

// host is a host and its successors: each is cut off after a while, and the next one starts.
func (b *bed) host(bad time.Time) {
	for time.Now().Before(bad) && b.next() != nil {
		addr, cut := b.network(b.plan())
		life := lease + rand.N(2*lease)
		ended := b.deliver(addr, time.Now().Add(life))
		select {
		case <-ended: // all events are done
		case <-time.After(life):
		}
		cut() // for good, also for what its handlers that still run would send
		b.mu.Lock()
		b.cuts++
		b.mu.Unlock()
	}
	addr, _ := b.network(netfault.Plan{})
	<-b.deliver(addr, bad.Add(heal))
}

// network is a host's.
func (b *bed) network(plan netfault.Plan) (addr string, cut func()) {
	if b.target.Addr == "" {
		return "", func() {}
	}
	p := b.proxy()
	p.Set(plan)
	return p.Addr, p.Cut
}

func (b *bed) plan() netfault.Plan {
	plan := netfault.Plan{LoseRequest: 40, LoseReply: 25, Delay: 10, MaxDelay: lease / 2}
	if rand.IntN(4) == 0 {
		plan.Delay, plan.MaxDelay = 4, 3*lease // slower than its leases
	}
	if b.target.Doubles {
		plan.Double = 20
	}
	return plan
}

func (b *bed) proxy() *netfault.Proxy {
	p, err := netfault.Start(b.target.Addr)
	if err != nil {
		b.Error(err)
		b.FailNow()
	}
	b.Cleanup(func() {
		if err := p.Close(); err != nil {
			b.Error(err)
		}
	})
	return p
}

// deliver delivers events until the time is over or all are done. ended is closed when no handler runs any more.
func (b *bed) deliver(addr string, until time.Time) (ended chan struct{}) {
	h := b.open(b.T, addr, b.work)
	var running sync.WaitGroup
	for range workers {
		b.running.Add(1)
		running.Go(func() {
			defer b.running.Done()
			for e := b.next(); e != nil && time.Now().Before(until); e = b.next() {
				m := &sqsonce.Message{ID: e.name, Body: "{}", ReceiveCount: 1 + rand.IntN(2), QueueARN: "arn:aws:sqs:us-east-1:1:attack"}
				e.delivered(h(context.Background(), m))
			}
		})
	}
	ended = make(chan struct{})
	go func() {
		running.Wait()
		close(ended)
	}()
	return ended
}

// next returns one of the events that come next, or one that is done already; nil: all are done.
func (b *bed) next() *event {
	var open []*event
	for i, name := range b.names {
		if e := b.events[name]; !e.isDone() {
			if open = append(open, e); len(open) == 2*hosts*workers {
				break
			}
		}
		if len(open) == 1 && rand.IntN(8) == 0 { // a copy that comes late
			return b.events[b.names[rand.IntN(i+1)]]
		}
	}
	if len(open) == 0 {
		return nil
	}
	return open[rand.IntN(len(open))]
}

var errWork = errors.New("the handler fails")

// work is what a handler does.
func (b *bed) work(ctx context.Context, name string) error {
	e := b.events[name]
	r := e.start(ctx)
	defer e.end(r)
	d := rand.N(20 * time.Millisecond)
	if rand.IntN(15) == 0 {
		d = lease + rand.N(4*lease)
	}
	select {
	case <-time.After(d):
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	if rand.IntN(8) == 0 {
		return errWork
	}
	return nil
}
