package sqsworker

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/sqsonce/sqsonce"
)

// delivery is one received message from its receipt until it is deleted, given back or lost.
type delivery struct {
	m       *sqsonce.Message
	damaged bool // the body is not what was sent
	size    int64
	lease   lease
	state   state
	group   *group    // nil on a standard queue
	next    *delivery // the same message, received again while this one's handler runs on without its lease

	handler  runningHandler
	cancel   context.CancelCauseFunc // of the running handler
	stuck    bool
	rejected bool // is in the dead-letter queue
	offered  bool // to hold it while its event is in progress in this process
	runs     int  // in this receive

	// Of a held one:
	alarm   *alarm
	unwatch context.CancelFunc // nil: nobody tells when what it waits for has ended

	delay time.Duration // of a release
	tries int           // of a delete or release
	sent  bool          // a delete is under way
}

type state int

const (
	settling  state = iota // what follows is being decided
	waiting                // for a slot, its group or the end of an orphan
	running                // its handler
	held                   // under the heartbeat, without a slot, until its alarm rings or what it waits for has ended
	rejecting              // being sent to the dead-letter queue
	deleting               // done, delete not confirmed
	releasing              // being given back; not extended any more
	gone
)

// byReceipt is the order of SQS's answers.
func byReceipt(a, b *delivery) int { return a.lease.order.compare(b.lease.order) }

// inTable lists what is in the table, in that order.
func (l *loop) inTable() []*delivery { return slices.SortedFunc(maps.Values(l.table), byReceipt) }

func (l *loop) set(d *delivery, s state) {
	if d.state == held {
		l.unhold(d)
	}
	l.counts[d.state]--
	d.state = s
	l.counts[s]++
}

// admit takes in one received message. A message that is already here hands over its newer receipt handle: SQS delivers
// at least once, also twice in one answer, and only the newest handle is sure to work.
func (l *loop) admit(in *incoming, le lease) *delivery {
	if d := l.table[in.m.ID]; d != nil && d.state != releasing {
		if le.count >= d.lease.count {
			// A call under way still answers for the old handle; it is told apart by the handle.
			l.adopt(d, le)
		}
		return nil
	}
	// A message that is being given back may be received again before we hear that it was: the old delivery only waits
	// for its answer, the new one takes its place.
	d := &delivery{m: in.m, damaged: in.damaged, size: in.size, lease: le}
	l.counts[settling]++
	l.set(d, waiting)
	l.table[in.m.ID] = d
	l.room.add(d.size)
	return d
}

func (l *loop) adopt(d *delivery, le lease) {
	d.lease = le
	l.log.Debug("sqsworker: newer receipt handle adopted", keyMessage, d.m.ID, keyCount, le.count)
	l.beatBy(le.due)
}

// leave ends a delivery: nothing more is sent for it.
func (l *loop) leave(d *delivery) {
	if d.state == gone {
		return
	}
	l.set(d, gone)
	l.room.give(reservation{n: 1, size: d.size})
	if l.table[d.m.ID] == d {
		delete(l.table, d.m.ID)
	}
	if d.group != nil {
		l.leaveGroup(d)
	}
}

// lose ends a lease. Another consumer may have the message by now, so nothing is deleted, extended or given back; a
// running handler is told by its context. Its nil still counts: it is remembered, so that the message is not run again
// here.
func (l *loop) lose(d *delivery, reason string, err error) {
	if d.lease.lost || d.state == gone {
		return
	}
	d.lease.lost = true
	l.counters.leasesLost.Add(1)
	l.log.Warn("sqsworker: lease lost", keyMessage, d.m.ID, keyGroup, d.m.Group, keyCount, d.lease.count,
		keyReason, reason, keyError, err)
	if d.group != nil {
		l.stopGroup(d.group) // first: what leaves a group starts the next of it
	}
	switch d.state {
	case running:
		delete(l.table, d.m.ID)
		l.orphans[d.m.ID] = d
		d.cancel(sqsonce.ErrLeaseLost)
		l.watch(d)
	case rejecting: // its answer decides what is remembered
		delete(l.table, d.m.ID)
	case deleting:
		l.remember(d)
		l.leave(d)
	default:
		l.leave(d)
	}
}

// hold keeps a message under the heartbeat, without a slot, and tries it again after delay, or when what it waits for
// has ended, if that can be known.
func (l *loop) hold(d *delivery, delay time.Duration, ended <-chan struct{}) {
	l.counters.retried.Add(1)
	l.set(d, held)
	l.kept.n, l.kept.size = l.kept.n+1, l.kept.size+d.size
	d.alarm = l.later(delay, func() { l.makeReady(d) })
	if ended == nil {
		return
	}
	ctx, cancel := context.WithCancel(l.callCtx)
	d.unwatch = cancel
	l.calls.Go(func() {
		select {
		case <-ctx.Done():
		case <-ended:
			l.put(holderEnded{d})
		}
	})
}

// holderEnded says that the delivery of this process that a held message waits for has ended.
type holderEnded struct{ waiting *delivery }

func (l *loop) holderEnded(e holderEnded) {
	if e.waiting.state == held { // to try it too early, when it is held again by now, does no harm
		l.makeReady(e.waiting)
	}
}

// unhold is for a message that is held no longer, whatever becomes of it.
func (l *loop) unhold(d *delivery) {
	l.kept.n, l.kept.size = l.kept.n-1, l.kept.size-d.size
	l.schedule.cancel(d.alarm)
	if d.unwatch != nil {
		d.unwatch()
		d.unwatch = nil
	}
}

// canKeep says whether a message may be held that could as well be given back. All that is held takes at most half of
// what InFlight has beyond Concurrency, and half of Bytes: copies of one event, however many come, leave the slots to
// others.
func (l *loop) canKeep(d *delivery) bool {
	return l.kept.n < (l.opts.InFlight-l.opts.Concurrency)/2 && l.kept.size+d.size <= l.opts.Bytes/2
}

// offersHold says whether a message is held if its handler finds its event in progress in this process. If not, the
// handler waits a while.
func (l *loop) offersHold(d *delivery) bool {
	return d.group != nil || l.atLastReceive(d) || l.canKeep(d)
}
