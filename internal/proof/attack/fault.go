package attack

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/sqsonce/sqsonce/internal/proof/netfault"
)

// Fault is something that the server does for a while, to all hosts.
type Fault struct {
	Name string
	// Begin begins it and returns the function that ends it.
	Begin func(t *testing.T) (end func())
	// MovesClock says that the server's clock is wrong meanwhile. Then leases don't keep owners apart.
	MovesClock bool
}

// cut ends all connections, also those that handlers use: a proxy does that at the begin and the end of each fault.
var cut = Fault{Name: "cut", Begin: func(*testing.T) func() { return func() {} }}

// faultLength is how long a fault comes and goes.
const faultLength = 10 * time.Second

// faults has the hosts meet one fault after the other.
func faults(t *testing.T, target Target) {
	for _, f := range append([]Fault{cut}, target.Faults...) {
		t.Run(f.Name, func(t *testing.T) { meet(t, target, false, f) })
		if target.Inbox != nil {
			t.Run(f.Name+"-inbox", func(t *testing.T) { meet(t, target, true, f) })
		}
	}
}

// meet has hosts deliver events while the fault comes and goes, and then until all are done.
func meet(t *testing.T, target Target, inbox bool, f Fault) {
	b := newBed(t, target, inbox)
	for range 200 {
		e := b.add()
		e.faulty, e.locks = true, e.locks || f.MovesClock
	}
	var networks []*netfault.Proxy
	var ended []chan struct{}
	bad := time.Now().Add(faultLength)
	for range hosts {
		p := b.proxy()
		networks = append(networks, p)
		ended = append(ended, b.deliver(p.Addr, bad.Add(heal)))
	}
	renew := func() {
		for _, p := range networks {
			p.Cut()
			p.Mend()
		}
	}
	times := 0
	for ; time.Now().Before(bad) && b.next() != nil; times++ {
		time.Sleep(rand.N(lease))
		end := f.Begin(t)
		renew()
		time.Sleep(lease/2 + rand.N(lease))
		end()
		renew()
	}
	for _, e := range ended {
		<-e
	}
	b.running.Wait()
	runs := b.check()
	t.Logf("%d events, %d runs, %d times", len(b.events), runs, times)
}
