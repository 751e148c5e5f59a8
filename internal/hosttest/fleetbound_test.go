package hosttest

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"
)

// This file has what the tests of the bounds share: protocol, section 13. Each bound is a fleet of workers with default
// options under one kind of fault, and what it may cost.

const (
	boundMessages = 500
	boundGroups   = 20
	boundReceives = 5
)

// load is the work of a bound: 500 messages in 20 groups.
type load struct {
	kind    kind
	workers int
	takes   time.Duration
}

func (l load) String() string { return fmt.Sprintf("%s, %d workers, %s", l.kind, l.workers, l.takes) }

// plan returns the plan of the load alone, all of it in the queue from the start.
func (l load) plan() *fleetPlan {
	p := &fleetPlan{fifo: l.kind == fifo, receives: boundReceives, limit: 3 * time.Hour}
	for i := range boundMessages {
		p.events = append(p.events, eventPlan{name: fmt.Sprintf("g%d-%d", i%boundGroups, i), takes: l.takes})
	}
	for range l.workers {
		p.workers = append(p.workers, workerPlan{lives: []life{{to: toTheEnd}}})
	}
	return p
}

// alone is how long the load takes without a fault.
func (l load) alone(t *testing.T) (d time.Duration) {
	play(t, l.plan(), func(f *fleet) { d = f.lastDone(func(*eventPlan) bool { return true }) })
	return d
}

// play runs a plan, checks the guarantees and then the bound.
func play(t *testing.T, p *fleetPlan, bound func(*fleet)) {
	defer func() {
		if t.Failed() {
			t.Logf("%s", p)
		}
	}()
	synctest.Test(t, func(t *testing.T) {
		f := simulateFleet(t, p)
		f.check()
		bound(f)
		f.countComplaints()
	})
}

// doneAt is when an event had its effect, or a negative time.
func (f *fleet) doneAt(event string) time.Duration {
	for _, r := range f.checker.runs(event) {
		if r.effect {
			return r.ended.Sub(f.start)
		}
	}
	return -1
}

// lastDone is when the last of some events had its effect. All of them must have had it.
func (f *fleet) lastDone(which func(*eventPlan) bool) (last time.Duration) {
	for i := range f.plan.events {
		if e := &f.plan.events[i]; which(e) {
			at := f.doneAt(e.name)
			if at < 0 {
				f.complain("not done", "%s: %s", e.name, f.history(e.name, ""))
			}
			last = max(last, at)
		}
	}
	return last
}

// wantNoneDead checks that the dead-letter queue is empty.
func (f *fleet) wantNoneDead() {
	if dead := f.sqs.Messages(f.dlq); len(dead) > 0 {
		f.Errorf("%d messages are in the dead-letter queue, the first one: %s", len(dead), dead[0].Body)
	}
}

// wantAllDoneBy checks that all events are done, and by when.
func (f *fleet) wantAllDoneBy(limit time.Duration) {
	if last := f.lastDone(func(*eventPlan) bool { return true }); last > limit {
		f.Errorf("the last event is done after %s, want %s", last, limit)
	}
}
