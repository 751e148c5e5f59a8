package sqsworker

import (
	"time"

	"github.com/sqsonce/sqsonce"
)

// slots are the places of running handlers. What limits how many may run at once, and which message gets a slot, is here, but for what
// keeps a message from starting at all: see mayStart.
type slots struct {
	taken  int
	groups map[string]int // of running handlers, by the group of a standard queue
}

// longerReady is how much longer than the message that would start next another one waits at most, whatever runs of its group.
const longerReady = time.Second

// slot is what a delivery has of them.
type slot struct {
	hasSlot bool      // its handler runs and is not stuck
	readyAt time.Time // when it became so
	again   bool      // it is tried once more, with a slot of loop.again
	due     bool      // it waits for one of those
}

// again are the messages that were unavailable and are run once more. They get a quarter of the slots, so that long attempts
// keep slots for the others, and a slot more with each that gets through.
type again struct {
	slots int
	taken int
	due   []*delivery // those that wait for one of them, held meanwhile
}

// freeSlots is how many handlers may start. It is negative after Concurrency was lowered.
func (l *loop) freeSlots() int { return l.opts.Concurrency - l.slots.taken }

// waitForSlots is how many messages are ready. A receive for a free slot would bring one more than handlers can use.
func (l *loop) waitForSlots() int { return len(l.ready) }

// anyWaitsForSlot says that a message could be started if there were a slot. While slots are free, what is ready waits for the proof
// of its lease, or may not start at present: see mayStart.
func (l *loop) anyWaitsForSlot() bool { return l.waitForSlots() > 0 && l.freeSlots() <= 0 }

// makeReady queues a delivery for a handler. A message that is finished is deleted without a run.
func (l *loop) makeReady(d *delivery) {
	l.setState(d, ready)
	if l.finished.has(d.m.ID) {
		l.counters.repeated.Add(1)
		l.delete(d)
		return
	}
	d.readyAt = l.now()
	l.ready = append(l.ready, d)
}

// bringForward moves the message to the front that starts next: of a standard queue that of the group with the fewest
// running handlers, then the oldest one. A message without a group has one of its own. Nothing has to be moved while
// there are slots for all, or no groups.
func (l *loop) bringForward() {
	if len(l.slots.groups) == 0 || len(l.ready) <= l.freeSlots() {
		return
	}
	next := 0
	for i, d := range l.ready {
		if l.slots.groups[d.m.Group] < l.slots.groups[l.ready[next].m.Group] {
			next = i
		}
	}
	if d := l.ready[next]; next > 0 && d.readyAt.Sub(l.ready[0].readyAt) < longerReady {
		copy(l.ready[1:next+1], l.ready[:next])
		l.ready[0] = d
	}
}

// startReady starts handlers while slots are free. It does not start a message whose lease it cannot prove: another
// worker may have it. One whose answer was late waits for its extension.
func (l *loop) startReady() {
	var later []*delivery // unproven, or not to be started at present
	for len(l.ready) > 0 && l.freeSlots() > 0 {
		if l.ready[0].state == ready {
			l.bringForward()
		}
		d := l.ready[0]
		l.ready[0] = nil
		l.ready = l.ready[1:]
		if d.state != ready {
			continue // lost or given back since
		}
		if !d.lease.live(l.now()) {
			l.loseLease(d, "visibility timeout passed before the start", nil)
			continue
		}
		if d.lease.unproven || !l.mayStart(d) {
			later = append(later, d)
			continue
		}
		l.start(d)
	}
	if len(later) > 0 {
		l.ready = append(later, l.ready...)
	}
}

// handlerBegins counts a handler among those that run, until handlerEnds.
func (l *loop) handlerBegins(d *delivery) {
	d.hasSlot = true
	l.countSlot(d, 1)
	d.began = l.now()
	l.pace.began(d)
	l.endStandingBy(d)
	l.setState(d, running)
}

func (l *loop) handlerEnds(d *delivery) {
	l.pace.returned(d, l.now(), d.stuck || d.result.outcome == sqsonce.OutcomePostponed)
	l.endSlot(d)
	if d.stuck {
		d.stuck = false // the head of a group may run again
		l.counters.stuck.Add(-1)
	}
}

// endSlot gives the slot of a handler to another one: it has returned, or is stuck.
func (l *loop) endSlot(d *delivery) {
	l.endAgain(d)
	if d.hasSlot {
		d.hasSlot = false
		l.countSlot(d, -1)
	}
}

func (l *loop) countSlot(d *delivery, by int) {
	l.slots.taken += by
	if l.fifo || d.m.Group == "" {
		return
	}
	if l.slots.groups == nil {
		l.slots.groups = map[string]int{}
	}
	if l.slots.groups[d.m.Group] += by; l.slots.groups[d.m.Group] == 0 {
		delete(l.slots.groups, d.m.Group)
	}
}

// tryAgain has a held message run again.
func (l *loop) tryAgain(d *delivery) {
	switch a := &l.again; {
	case d.due:
	case l.mayTryAgain():
		d.again = true
		a.taken++
		l.makeReady(d)
	default:
		d.due = true
		a.due = append(a.due, d)
	}
}

// mayTryAgain says that there is a slot for a message that was unavailable. None is run while the answer to its question may be that
// the store is down.
func (l *loop) mayTryAgain() bool {
	return l.stopping.begun || l.again.taken < l.again.slots && !l.needs.unsure(l.now())
}

// runDue has those run again that waited for a slot.
func (l *loop) runDue() {
	for a := &l.again; len(a.due) > 0 && l.mayTryAgain(); {
		d := a.due[0]
		a.due[0] = nil
		a.due = a.due[1:]
		if d.due && d.state == held {
			d.due = false
			l.tryAgain(d)
		}
	}
}

// endAgain frees the slot of a message that was tried again.
func (l *loop) endAgain(d *delivery) {
	if d.again {
		d.again = false
		l.again.taken--
	}
}
