package sqsworker

import (
	"context"
	"slices"
	"time"

	"github.com/sqsonce/sqsonce/internal/host"
)

// Held messages wait in flight, under the heartbeat and without a slot. They and the followers in their groups are parked meanwhile: they
// take no place in MaxInFlight, which a few poisoned groups or long handlers elsewhere would use up.

// reason is why a message is held.
type reason struct {
	kind        kind
	stat        func(*Stats) *int64 // the number of such messages; nil: only Stats.Held counts them
	unavailable bool                // see isAside
	keepsDelay  bool                // given back by a stop, the message stays hidden for the rest of its delay; else others may run it at once
	spare       int                 // receives that it must have left to be given back for want of room; 0: it stays
}

// kind is the reasons that share a part of Options.MaxHeld.
type kind int

const (
	kindHead kind = iota // a FIFO group that waits for its head
	kindPeer
	kindUnavailable
	kindPostponed
	kindSuspect
	kinds
)

var (
	// heldAttempt: the head of a FIFO group, for its next attempt.
	heldAttempt = &reason{keepsDelay: true, spare: 1}
	// heldElsewhere: its event is in progress elsewhere.
	heldElsewhere = &reason{kind: kindPeer, keepsDelay: true, spare: 1}
	// heldAside: its dependency is unavailable, while others run.
	heldAside = &reason{kind: kindUnavailable, stat: func(s *Stats) *int64 { return &s.Aside }, unavailable: true, spare: leftReceives}
	// heldClaim: the same, and it is not known whether others do.
	heldClaim = &reason{kind: kindUnavailable, stat: func(s *Stats) *int64 { return &s.InDoubt }, unavailable: true, spare: leftReceives}
	// heldPostponed: for its turn.
	heldPostponed = &reason{kind: kindPostponed, keepsDelay: true, spare: sparePostponed}
	// heldDLQ: the head of a FIFO group, for a dead-letter queue that accepts it.
	heldDLQ = &reason{keepsDelay: true, spare: 1}
	// heldSuspect: for its turn to run apart. Given back, it would only crash another process.
	heldSuspect = &reason{kind: kindSuspect, stat: func(s *Stats) *int64 { return &s.Suspect }}
)

// holdOrGiveBack holds a message, with its group. In a stop, and beyond Options.MaxHeld, they are given back, hidden for a while, if each
// message keeps enough receives. It returns false if the message is not held.
func (l *loop) holdOrGiveBack(d *delivery, why *reason, delay, hidden time.Duration, ended <-chan struct{}) bool {
	if !l.inTime(d, &delay) || !l.inTime(d, &hidden) {
		return false
	}
	if l.stopping.begun && !l.mustEndInStop(d) || d.group == nil && !l.roomToPark(d.amount()) && l.mayTrim(why, d) && !l.withinPart(why, d.amount()) {
		l.giveBack(d, hidden)
		return false
	}
	l.holdParked(d, why, delay, ended)
	return true
}

// holdParked holds a message, with its group, outside MaxInFlight, and gives back what is then beyond Options.MaxHeld. The message is tried
// again after delay, or when its peer has ended; ended is nil if that cannot be known.
func (l *loop) holdParked(d *delivery, why *reason, delay time.Duration, ended <-chan struct{}) {
	if d.runs > 0 {
		l.counters.retried.Add(1)
	}
	l.setState(d, held)
	d.heldFor = why
	l.heldAs[why]++
	d.retry = l.after(delay, func() {
		switch {
		case l.isAside(d):
			l.tryAgain(d)
		case d.heldFor == heldPostponed:
			l.postponeEnds(d)
		default:
			l.makeReady(d)
		}
	})
	if ended != nil {
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
	l.park(d)
	if d.group != nil {
		for _, f := range d.group.followers {
			l.park(f)
		}
	}
	l.trimParked(why)
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
	if d.heldFor == heldPostponed {
		l.line.leave(d)
	}
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

func (l *loop) park(d *delivery) {
	if !d.parked {
		head := d
		if d.group != nil {
			head = d.group.head
		}
		d.parked, d.parkedAs = true, head.heldFor.kind
		l.countParked(d.parkedAs, d.amount())
		l.capacity.free(amount{messages: 1})
	}
}

// unpark gives a message its place in MaxInFlight back, beyond the limit if need be.
func (l *loop) unpark(d *delivery) {
	if d.parked {
		d.parked = false
		l.countParked(d.parkedAs, amount{}.minus(d.amount()))
		l.capacity.use(amount{messages: 1})
	}
}

func (l *loop) countParked(k kind, more amount) {
	l.parked = l.parked.plus(more)
	l.parkedAs[k] = l.parkedAs[k].plus(more)
	if k != kindPostponed {
		l.line.limit(&l.opts, l.parked.minus(l.parkedAs[kindPostponed]))
	}
}

// roomToPark says whether what is parked is within Options.MaxHeld and half of MaxBytes.
func (l *loop) roomToPark(more amount) bool {
	all := l.parked.plus(more)
	return all.messages <= l.opts.MaxHeld && all.bytes <= l.opts.MaxBytes/2
}

// withinPart says whether that many more messages of a kind are within its part, which other kinds leave it.
func (l *loop) withinPart(why *reason, more amount) bool {
	all := l.parkedAs[why.kind].plus(more)
	return all.messages <= l.opts.MaxHeld/partOfHeld && all.bytes <= l.opts.MaxBytes/2/partOfHeld
}

// trimParked gives back groups that wait beyond the limits, those with the farthest next attempt first: followers, the last
// first, which stay behind their head; then messages alone. A message at its last receive is kept, and those before it in
// its group: given back, it would go to the dead-letter queue without having been run. Other reasons keep more receives.
func (l *loop) trimParked(newest *reason) {
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
		for n := len(g.followers); n > 0 && !l.roomToPark(amount{}) && !l.withinPart(d.heldFor, amount{}) && l.mayTrim(d.heldFor, g.followers[n-1]); n-- {
			f := g.followers[n-1]
			g.followers, f.group = g.followers[:n-1], nil
			l.releaseUnstarted(f)
		}
	}
	l.trimHeld(newest)
}

// hiddenFor is how long a held message is hidden that is given back for want of room.
func (l *loop) hiddenFor(d *delivery) time.Duration {
	rest := d.retry.at.Sub(l.now())
	switch d.heldFor {
	case heldAside:
		return l.asideHidden(d)
	case heldClaim:
		return 0
	case heldElsewhere:
		return rest + afterHolder
	}
	return rest
}

// mayTrim says whether a message can be given back that is held for that reason, or whose head is.
func (l *loop) mayTrim(why *reason, d *delivery) bool {
	most := l.queue.maxReceives - why.spare
	if why == heldPostponed && l.queue.maxReceives > 1 {
		most = max(most, 1)
	}
	return why.spare > 0 && (l.queue.maxReceives == 0 || d.lease.count <= most)
}

// mayTrimGroup says so of a message and those behind it in its group.
func (l *loop) mayTrimGroup(why *reason, d *delivery) bool {
	no := func(d *delivery) bool { return !l.mayTrim(why, d) }
	return !no(d) && (d.group == nil || !slices.ContainsFunc(d.group.followers, no))
}

// inProgress holds a message whose event is in progress elsewhere. SQS counts every receive: a copy that came back again
// and again while a long handler runs elsewhere could reach the dead-letter queue without having been run, and each time it
// would miss the end of a crashed handler's lease. Beyond Options.MaxHeld it is given back until that end.
func (l *loop) inProgress(d *delivery, r result) {
	d.bounces++
	delay := l.holdTime(r, d.bounces)
	l.holdOrGiveBack(d, heldElsewhere, delay, delay+afterHolder, r.peerEnded)
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

// giveBack gives back a message, with its group.
func (l *loop) giveBack(d *delivery, delay time.Duration) {
	if d.group != nil {
		l.releaseGroup(d.group, delay)
		return
	}
	if d.runs > 0 {
		l.counters.retried.Add(1)
	} else {
		l.counters.released.Add(1)
	}
	l.release(d, delay)
}
