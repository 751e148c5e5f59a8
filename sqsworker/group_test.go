package sqsworker

import (
	"fmt"
	"testing"
	"time"

	"github.com/sqsonce/sqsonce"
)

// newGroup returns a loop with n messages of a group. The first one is the head, and waits for a slot.
func newGroup(t *testing.T, n int) (*loop, []*delivery) {
	t.Helper()
	l := newTestLoop(t)
	l.fifo = true
	var ds []*delivery
	for i := range n {
		d := l.addTest(fmt.Sprint(i), 1)
		d.m.Group = "g"
		l.advance(l.joinGroup(d))
		ds = append(ds, d)
	}
	return l, ds
}

// Of two copies with the same receive count the later one counts. The list of what runs has it too.
func TestNewerHandleIsAdopted(t *testing.T) {
	t.Parallel()
	l, ds := newGroup(t, 1)
	l.setState(ds[0], running)
	l.counters.running.add(ds[0])
	for _, c := range []struct {
		count int
		want  string
	}{{1, "1"}, {0, "1"}, {2, "2"}} {
		le := newLease(fmt.Sprint(c.count), c.count, receiveOrder{}, time.Now(), 30*time.Second, 0)
		if l.addDelivery(incoming{m: ds[0].m}, le) != nil || ds[0].lease.handle != c.want {
			t.Errorf("after a copy with receive count %d: handle %q, want %q", c.count, ds[0].lease.handle, c.want)
		}
	}
	until := ds[0].lease.anchor.Add(ds[0].lease.span)
	if all, _ := l.Running(1); all[0].ReceiveCount != 2 || time.Until(until)-all[0].Lease > time.Second {
		t.Errorf("got %+v, want receive count 2, hidden until %s", all[0], until)
	}
}

// A rejected message whose lease was lost meanwhile is not sent to the dead-letter queue: middleware learns it. That of any
// other outcome has settled already.
func TestOrphanIsSettled(t *testing.T) {
	t.Parallel()
	for outcome, want := range map[sqsonce.OutcomeKind]int{sqsonce.OutcomeRejected: 1, sqsonce.OutcomeDone: 0, sqsonce.OutcomeFailed: 0} {
		l, ds := newGroup(t, 1)
		settled := 0
		l.orphanReturned(ds[0], result{outcome: outcome, settle: func(deadLettered bool) error {
			settled++
			if deadLettered {
				t.Error("settled as dead-lettered")
			}
			return nil
		}})
		if l.calls.Wait(); settled != want {
			t.Errorf("%v: settled %d times, want %d", outcome, settled, want)
		}
	}
}

// A group without a head can be stopped too.
func TestStopOfAGroupWithoutAHead(t *testing.T) {
	t.Parallel()
	l, ds := newGroup(t, 1)
	g := ds[0].group
	g.head, g.followers = nil, []*delivery{ds[0]}
	l.stopGroup(g)
	if ds[0].state != gone || len(l.deliveries) != 0 {
		t.Errorf("the follower is in state %d", ds[0].state)
	}
}

// A message that lost its lease takes its whole group along, but for a head that runs.
func TestLostLeaseStopsItsGroup(t *testing.T) {
	t.Parallel()
	for _, state := range []state{ready, held, running} {
		l, ds := newGroup(t, 3)
		l.setState(ds[0], state)
		l.loseLease(ds[1], "test", nil)
		if runs := state == running; runs != (ds[0].state == running) || runs == ds[0].lease.lost {
			t.Errorf("state %d: the head is in state %d, its lease lost: %t", state, ds[0].state, ds[0].lease.lost)
		}
		for _, d := range ds[1:] {
			if d.state != gone || !d.lease.lost {
				t.Errorf("state %d: a follower is in state %d, its lease lost: %t", state, d.state, d.lease.lost)
			}
		}
	}
}
