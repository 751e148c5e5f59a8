// Package attack is for tests of stores of package dedup. It runs handlers on several hosts whose network to the store's
// server loses, doubles, delays and holds up requests. Hosts in this process are cut off for good; hosts that are processes
// are killed, and stopped for longer than their leases. Whatever happens, no two handlers of an event hold its lease, fences
// grow, no event runs again after its success was recorded, none is lost, none looks like a crash where no process died, and no
// delivery counts against an event whose handler did not run.
package attack

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/dedup"
	"github.com/sqsonce/sqsonce/internal/proof/netfault"
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
	// Takeover is how long after its owner's last renewal an event has been taken over. Default: two leases.
	Takeover time.Duration
	// Faults are those of the server that a network can't make. They are met in long tests only.
	Faults []Fault
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

// length is how long the hosts are under attack: seconds, and with SOAK in the environment minutes.
func length() time.Duration {
	if os.Getenv("SOAK") != "" {
		return 3 * time.Minute
	}
	return 4 * time.Second
}

// Run runs the attacks as subtests. setUp makes what all hosts share and returns where it is, which JSON must keep. target
// makes the Target of that. A host that is a process runs the calling test again, without setUp.
func Run[Place any](t *testing.T, setUp func(t *testing.T) Place, target func(Place) Target) {
	if s := os.Getenv(envHost); s != "" {
		var at settings
		var place Place
		if err := errors.Join(json.Unmarshal([]byte(s), &at), json.Unmarshal(at.Place, &place)); err != nil {
			t.Fatal(err)
		}
		serve(t, target(place), at)
		return
	}
	place := setUp(t)
	text, err := json.Marshal(place)
	if err != nil {
		t.Fatal(err)
	}
	child := settings{Test: t.Name(), Place: text}
	on := target(place)
	subtest := func(name string, attack func(t *testing.T)) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			attack(t)
		})
	}
	subtest("store", func(t *testing.T) { play(t, on, false) })
	if on.Addr != "" {
		subtest("stall", func(t *testing.T) { stall(t, on) })
	}
	if on.Addr != "" && length() > time.Minute {
		subtest("faults", func(t *testing.T) { faults(t, target(place)) }) // they meet no other hosts
	}
	subtest("processes", func(t *testing.T) { processes(t, on, false, child) })
	if on.Inbox != nil {
		subtest("inbox", func(t *testing.T) { play(t, on, true) })
		subtest("processes-inbox", func(t *testing.T) { processes(t, on, true, child) })
	}
}

// Options are the options of every host, and of a Target's inbox.
func Options(o *dedup.Options) {
	o.LeaseDuration, o.CallTimeout, o.PeerWait, o.CacheSize = lease, time.Second, -1, -1
}

// bed is a run: its events, and the hosts.
type bed struct {
	*testing.T
	target Target
	inbox  bool

	mu         sync.Mutex
	events     map[string]*event
	names      []string
	deliveries int64
	cuts       int

	running sync.WaitGroup // deliveries, also those of hosts that are cut off
}

func newBed(t *testing.T, target Target, inbox bool) *bed {
	return &bed{T: t, target: target, inbox: inbox, events: map[string]*event{}}
}

// add adds an event.
func (b *bed) add() *event {
	e := &event{name: fmt.Sprint(b.Name(), "/", len(b.names)), locks: b.inbox && b.target.Locks}
	b.names = append(b.names, e.name)
	b.events[e.name] = e
	return e
}

// check checks the events when all hosts have ended, and returns how many runs there were.
func (b *bed) check() (runs int) {
	var effects map[string]int
	if b.inbox {
		effects = b.target.Effects(b.T)
	}
	for name, e := range b.events {
		e.check(b.T)
		runs += len(e.runs)
		if n := effects[name]; b.inbox && n != 1 {
			b.Errorf("%s: %d effects, want 1", name, n)
		}
	}
	return runs
}

// play has the hosts deliver the events while the network is bad, and then until all are done.
func play(t *testing.T, target Target, inbox bool) {
	b := newBed(t, target, inbox)
	n := 240
	if length() > time.Minute {
		n = 2000 // fewer than the hosts can do in that time, also on a slow machine
	}
	if target.Addr == "" {
		n = min(n/4, 120) // SQLite has one writer at a time
	}
	for range n {
		b.add()
	}
	bad := time.Now().Add(length())
	var wg sync.WaitGroup
	for range hosts {
		wg.Go(func() { b.host(bad) })
	}
	wg.Wait()
	b.running.Wait()
	runs := b.check()
	t.Logf("%d events, %d runs, %d hosts cut off for good", len(b.events), runs, b.cuts)
	if runs == len(b.events) && target.Addr != "" {
		t.Error("no event ran twice: the network was too good")
	}
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
	h := newHost(b.T, b.target, b.inbox, addr, func(n note) { b.events[n.Event].note(n) })
	var running sync.WaitGroup
	for range workers {
		b.running.Add(1)
		running.Go(func() {
			defer b.running.Done()
			for e := b.next(); e != nil && time.Now().Before(until); e = b.next() {
				h.deliver(b.delivery(), e.name)
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

// delivery returns the number of the next one.
func (b *bed) delivery() int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.deliveries++
	return b.deliveries
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
