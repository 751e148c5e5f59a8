package sqsworker

import (
	"context"
	"slices"
	"time"

	"github.com/sqsonce/sqsonce/internal/host"
)

// Messages are held, under the heartbeat and without a slot, for the reasons of heldFor. They are parked meanwhile, and take no place in MaxInFlight,
// which a few poisoned groups or long handlers elsewhere would use up.

// hold keeps a message in flight. It is tried again after delay, or when its peer has ended; ended is nil if that cannot be
// known.
func (l *loop) hold(d *delivery, why heldFor, delay time.Duration, ended <-chan struct{}) {
	l.counters.retried.Add(1)
	l.setState(d, held)
	d.heldFor = why
	l.heldAs[why]++
	d.retry = l.after(delay, func() {
		if l.isAside(d) {
			l.tryAgain(d)
		} else {
			l.makeReady(d)
		}
	})
	if ended == nil {
		return
	}
	ctx, cancel := context.WithCancel(l.callCtx)
	d.stopWait = cancel
	l.calls.Go(func() {
		select {
		case <-ctx.Done():
		case <-ended:
			l.post(peerEnded{d})
		}
	})
}

// peerEnded says that the delivery in this process that a held message waits for has ended.
type peerEnded struct{ waiting *delivery }

func (l *loop) peerEnded(e peerEnded) {
	// The message may have been tried, and be held again by now, for another peer: then it is tried too early, which does
	// no harm.
	if e.waiting.state == held {
		l.makeReady(e.waiting)
	}
}

// endHold is called for a message that leaves the state held, whatever becomes of it.
func (l *loop) endHold(d *delivery) {
	l.heldAs[d.heldFor]--
	d.due = false
	l.unpark(d)
	if d.group != nil {
		for _, f := range d.group.followers {
			l.unpark(f)
		}
	}
	l.schedule.cancel(d.retry)
	if d.stopWait != nil {
		d.stopWait()
		d.stopWait = nil
	}
}

// holdParked holds a message, with its group, outside MaxInFlight, and gives back what is then beyond Options.MaxHeld.
func (l *loop) holdParked(d *delivery, why heldFor, delay time.Duration, ended <-chan struct{}) {
	l.hold(d, why, delay, ended)
	l.park(d)
	if d.group != nil {
		for _, f := range d.group.followers {
			l.park(f)
		}
	}
	l.trimParked()
}

func (l *loop) park(d *delivery) {
	if !d.parked {
		d.parked = true
		l.parked = l.parked.plus(d.amount())
		l.capacity.free(amount{messages: 1})
	}
}

// unpark gives a message its place in MaxInFlight back, beyond the limit if need be.
func (l *loop) unpark(d *delivery) {
	if d.parked {
		d.parked = false
		l.parked = l.parked.minus(d.amount())
		l.capacity.use(amount{messages: 1})
	}
}

// roomToPark says whether what is parked is within Options.MaxHeld and half of MaxBytes.
func (l *loop) roomToPark(more amount) bool {
	all := l.parked.plus(more)
	return all.messages <= l.opts.MaxHeld && all.bytes <= l.opts.MaxBytes/2
}

// trimParked gives back groups that wait beyond the limits, those with the farthest next try first: followers, the last
// first, which stay behind their head; then heads alone. A message at its last receive is kept, and what is before it in
// its group: given back, it would go to the dead-letter queue without having been run. Of what is unavailable one receive more is kept.
func (l *loop) trimParked() {
	if l.roomToPark(amount{}) {
		return
	}
	var heads []*delivery
	for _, g := range l.groups {
		if g.head != nil && g.head.parked {
			heads = append(heads, g.head)
		}
	}
	slices.SortFunc(heads, func(a, b *delivery) int { return b.retry.at.Compare(a.retry.at) })
	for _, d := range heads {
		g := d.group
		for n := len(g.followers); n > 0 && !l.roomToPark(amount{}) && l.mayTrim(d, g.followers[n-1]); n-- {
			f := g.followers[n-1]
			g.followers, f.group = g.followers[:n-1], nil
			l.releaseUnstarted(f)
		}
	}
	for _, d := range heads {
		if !l.roomToPark(amount{}) && len(d.group.followers) == 0 && l.mayTrim(d, d) {
			delay := d.retry.at.Sub(l.now())
			if d.heldFor == heldAside {
				delay = l.asideHidden(d)
			}
			l.releaseGroup(d.group, delay)
		}
	}
}

// mayTrim says whether a message of the head's group can be given back.
func (l *loop) mayTrim(head, d *delivery) bool {
	switch {
	case head.suspect: // it would only crash another process
		return false
	case l.isAside(head):
		return l.hasReceives(d)
	}
	return !l.atLastReceive(d)
}

// inProgress holds a message whose event is in progress elsewhere. SQS counts every receive: a copy that came back again
// and again while a long handler runs elsewhere could reach the dead-letter queue without having been run, and each time it
// would miss the end of a crashed handler's lease. Beyond Options.MaxHeld it is given back until that end.
func (l *loop) inProgress(d *delivery, r result) {
	d.bounces++
	delay := l.holdTime(r, d.bounces)
	switch {
	case l.stopping.begun && !l.mustEndInStop(d):
		l.giveBack(d, delay+afterHolder)
	case d.group == nil && !l.atLastReceive(d) && !l.roomToPark(d.amount()):
		l.giveBack(d, delay+afterHolder)
	default:
		l.holdParked(d, heldElsewhere, delay, r.peerEnded)
	}
}

const (
	// afterHolder is how much later than the end of the holder's lease a message is visible that is given back.
	afterHolder = 2 * time.Second
	// holdAgain is how soon a message runs again that the store refuses after the end of the holder's lease, because by the
	// store's clock the lease has not expired yet.
	holdAgain     = 500 * time.Millisecond
	holdAgainMost = 30 * time.Second
)

// holdTime is how long a message is held whose event is in progress: half the visibility timeout where the error asks for no
// delay, else until the end of the holder's lease. Package dedup asks for a second more, for hosts that give messages back.
func (l *loop) holdTime(r result, bounces int) time.Duration {
	if r.asked < 0 {
		return max(l.opts.VisibilityTimeout/2, time.Second)
	}
	return max(r.asked-time.Second, host.Double(holdAgain, holdAgainMost, bounces-4))
}

// giveBack gives back a message that has been run, with its group.
func (l *loop) giveBack(d *delivery, delay time.Duration) {
	if d.group != nil {
		l.releaseGroup(d.group, delay)
		return
	}
	l.counters.retried.Add(1)
	l.release(d, delay)
}
