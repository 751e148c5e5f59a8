package sqsworker

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/internal/host"
	"github.com/sqsonce/sqsonce/internal/settle"
)

// delivery is one received message, from its receipt until it is deleted, given back or lost.
type delivery struct {
	m       *sqsonce.Message
	key     eventKey
	damaged bool // the body is not what was sent
	moved   bool // by SQS, from another queue: its receive count counts the receives there too
	size    int64
	lease   lease
	state   state
	group   *group // nil on a standard queue
	leaves  *group // on its way to the dead-letter queue; nil: it does not
	slot

	received time.Time
	runs     int // of the handler

	// While its handler runs:
	call     *host.Call // for hooks; nil: there are none
	cancel   context.CancelCauseFunc
	began    time.Time
	result   result    // of the handler, once it has returned
	watchdog *timer    // marks the handler as stuck
	stuck    bool      // see markStuck
	next     *delivery // of an orphan: the same message, received again
	attempts int       // those of the head of a FIFO group that failed
	bounces  int       // times in a row that the event was in progress elsewhere
	running  runningDelivery
	links    links

	// While it is unavailable:
	unavailable      int           // outcomes in a row; only unavailable and forgetUnavailable change it
	unavailableSince time.Time     // of the first of them
	unavailableLast  time.Time     // of the last one
	took             time.Duration // by the longest of its runs that was unavailable
	refuted          bool          // its claim: others could be handled

	tooLarge     bool // for the dead-letter queue
	expiring     bool // it was logged that its retention ends soon
	suspect      bool // runs apart, or waits for it
	accused      bool // it was the last suspect to start in a process that crashed
	suspectStart time.Time
	crashes      bool // it crashed a process alone, and is for the dead-letter queue

	// While its handler runs: whether it may be given back, and whether it has to run now, whatever limits say. Middleware reads both.
	keeps, debt bool

	// While it is postponed:
	postponed bool // its last outcome
	lines     *lines
	place     place
	until     time.Time   // its turn, as its handler has estimated it
	turn      settle.Turn // as middleware decides it
	owes      bool        // its next run is in debt
	owesFor   string      // why its last run was owed; "": it was not
	stood     time.Time   // since when it stands, as handOverStanding has seen

	// While it is held, or behind a head that is:
	heldFor  *reason
	parked   bool // takes no place in MaxInFlight
	parkedAs kind
	retry    *timer
	stopWait context.CancelFunc // nil: nobody knows when the peer ends

	// While it is deleted or given back:
	rejected bool          // is in the dead-letter queue
	delay    time.Duration // of the release
	failures int           // of the delete or the release
	inDelete int           // deletes under way
	unsure   bool          // a delete has failed that may have deleted it
}

// isUnstarted says that no handler runs for the message, and nothing is sent for it.
func (d *delivery) isUnstarted() bool {
	return d.state == following || d.state == ready || d.state == held
}

func (d *delivery) amount() amount { return amount{1, d.size} }

type state int

const (
	deciding  state = iota // between two of the others
	following              // behind another message of its group, or an orphan
	ready                  // for a slot
	running                // its handler
	held                   // in flight without a slot: see reason
	rejecting              // sent to the dead-letter queue
	deleting               // done, delete not confirmed
	releasing              // given back, not confirmed, and no longer extended
	gone
)

func (l *loop) setState(d *delivery, s state) {
	if d.state == held {
		l.endHold(d)
	}
	if s != ready && s != running {
		l.endAgain(d)
	}
	if s >= running && s != held {
		if d.turn.Left != nil && s != running { // in its run middleware finds it by itself
			d.turn.Left()
		}
		d.turn = settle.Turn{}
	}
	l.counts[d.state]--
	d.state = s
	l.counts[s]++
}

// sorted returns the deliveries in the order of their receipt.
func (l *loop) sorted() []*delivery {
	return slices.SortedFunc(maps.Values(l.deliveries), compareReceipt)
}

func compareReceipt(a, b *delivery) int { return a.lease.order.compare(b.lease.order) }

// addDelivery adds a received message. It returns nil if the message is in flight here already: SQS delivers at least once,
// also twice in one answer. The delivery then takes the newer receipt handle, since only the newest is sure to work. A
// call under way still answers for the old handle; deletion and change have the handle, to recognise that.
func (l *loop) addDelivery(in incoming, le lease) *delivery {
	if d := l.deliveries[in.m.ID]; d != nil && d.state != releasing {
		if le.count >= d.lease.count {
			d.lease = le
			l.counters.running.changed(d)
			l.log.DebugContext(d.context(), "sqsworker: newer receipt handle adopted", d.about()...)
			l.heartbeatBy(le.due)
		}
		return nil
	}
	// A message that is given back may be received again before the answer to the release. The new delivery replaces the
	// old one here, which only waits for that answer.
	d := &delivery{m: in.m, damaged: in.damaged, moved: in.moved, size: in.size, lease: le, state: following, lines: &l.line}
	l.counts[following]++
	l.deliveries[in.m.ID] = d
	l.capacity.use(d.amount())
	return d
}

// remove ends a delivery: nothing more is sent for it.
func (l *loop) remove(d *delivery) {
	if d.state == gone {
		return
	}
	l.setState(d, gone)
	l.forgetUnavailable(d)
	l.unpark(d)
	l.capacity.free(d.amount())
	if l.deliveries[d.m.ID] == d {
		delete(l.deliveries, d.m.ID)
	}
	if d.group != nil {
		l.leaveGroup(d)
	}
	if d.leaves != nil {
		l.left(d)
	}
}

// loseLease is for a message that another consumer may have: it is not deleted, extended or given back from here on. A
// running handler is cancelled. If it returns nil all the same, the message is finished and not run again here.
func (l *loop) loseLease(d *delivery, reason string, err error) {
	if d.lease.lost || d.state == gone {
		return
	}
	d.lease.lost = true
	l.counters.running.changed(d)
	l.counters.leasesLost.Add(1)
	l.log.WarnContext(d.context(), "sqsworker: lease lost", d.about(keyReason, reason, keyError, err)...)
	if g := cmp.Or(d.group, d.leaves); g != nil {
		l.stopGroup(g) // first: removing a message starts the next one of its group
	}
	switch d.state {
	case running:
		delete(l.deliveries, d.m.ID)
		l.orphans[d.m.ID] = d
		d.cancel(sqsonce.ErrLeaseLost)
		l.markStuckAfter(d, 0)
	case rejecting: // the answer to the send decides whether the message is finished
		delete(l.deliveries, d.m.ID)
	case deleting:
		l.finishUndeleted(d)
		l.remove(d)
	default:
		l.remove(d)
	}
}
