package sqsworker

import (
	"slices"
	"time"
)

// group is the messages of one FIFO message group that are in flight here, over all receives. They run one after the other.
// The next one starts when the delete of the one before is confirmed. If it started earlier, a redelivery of the first one
// could run after it.
type group struct {
	name      string
	head      *delivery // the first one: waiting for a slot, running, held, rejected or being deleted
	followers []*delivery
	leaving   bool // a follower is on its way to the dead-letter queue: none of those behind it may start
	stopped   bool // since then: it does not come back
}

func (l *loop) joinGroup(d *delivery) *group {
	g := l.groups[d.m.Group]
	if g == nil {
		g = &group{name: d.m.Group}
		l.groups[g.name] = g
	}
	d.group = g
	g.followers = append(g.followers, d)
	if g.head != nil && g.head.parked {
		l.park(d)
	}
	return g
}

// advance makes the first follower the head if there is none.
func (l *loop) advance(g *group) {
	if g.head != nil || g.leaving {
		return
	}
	if len(g.followers) == 0 {
		if l.groups[g.name] == g {
			delete(l.groups, g.name)
		}
		return
	}
	g.head = g.followers[0]
	g.followers = g.followers[1:]
	l.makeReady(g.head)
}

// leaveGroup removes a delivery from its group.
func (l *loop) leaveGroup(d *delivery) {
	g := d.group
	if g.head == d {
		g.head = nil
		l.advance(g)
		return
	}
	if i := slices.Index(g.followers, d); i >= 0 {
		g.followers = slices.Delete(g.followers, i, i+1)
	}
}

// stopGroup drops a group after the lease of one of its messages was lost. Nothing of it is extended or given back:
// another consumer may have received the group from there on, and a change of ours could reach its newer deliveries. The
// messages become visible by themselves, in order, since SQS hands out nothing of a group behind a hidden message.
//
// A head that does not run is dropped with its followers. One that runs stays the head until it has returned; if the lost
// lease is its own, loseLease cancels it. One on its way to the dead-letter queue is dropped if that refuses it.
func (l *loop) stopGroup(g *group) {
	followers := g.followers
	g.followers, g.stopped = nil, g.leaving
	for _, d := range followers {
		d.lease.lost = true
		l.remove(d)
	}
	if d := g.head; d != nil && (d.state == ready || d.state == held) {
		d.lease.lost = true
		l.remove(d)
	}
}

// headFailed decides about the failing head of a group. SQS hands out a group together, so each redelivery of the head
// costs its followers a receive, and they could reach the dead-letter queue without having been run. Therefore the head is
// run again here, under its lease, and after Options.MaxAttempts of its own runs sent to the dead-letter queue.
//
// A head that was damaged on the way is given back: its handler did not run, and here every attempt would find the same.
func (l *loop) headFailed(d *delivery, r result) {
	if d.damaged {
		l.releaseGroup(d.group, r.delay)
		return
	}
	spent := d.attempts >= l.maxAttempts || d.crashes
	// Later than that no extension reaches.
	tooLate := elapsed(l.now(), d.lease.received)+r.delay >= l.opts.MaxExtension
	switch {
	case l.stopping.cancelled, l.stopping.begun && !l.followerAtLastReceive(d.group):
		l.releaseGroup(d.group, r.delay)
	case !tooLate && !spent:
		l.holdParked(d, heldAttempt, l.delayInStop(r.delay), nil)
	case spent && l.queue.hasDLQ() && !r.sendFailed:
		l.reject(d, r)
	case r.sendFailed && l.movedNext(d):
		l.releaseAlone(d)
	case spent && !tooLate && l.mustAwaitDLQ(d):
		l.awaitDLQ(d, r.delay)
	default:
		l.releaseGroup(d.group, r.delay)
	}
}

// releaseAlone gives a head back that has been run often enough, and that the dead-letter queue does not take from the worker.
// SQS moves it by itself, and never hands it out again: see movedNext. So the next message becomes the head. Given back with
// the head, its followers would lose their last receives too, and follow it there unrun.
func (l *loop) releaseAlone(d *delivery) {
	g := d.group
	g.head, d.group = nil, nil
	l.giveBack(d, 0)
	l.advance(g)
}

func (l *loop) followerAtLastReceive(g *group) bool {
	return slices.ContainsFunc(g.followers, l.atLastReceive)
}

// releaseGroup gives the head back after delay, and its followers at once: they stay behind it until it is visible.
func (l *loop) releaseGroup(g *group, delay time.Duration) {
	head, followers := g.head, g.followers
	g.head, g.followers = nil, nil
	// The same messages may be received again before the answers to the releases: they then start a new group.
	delete(l.groups, g.name)
	head.group = nil
	l.giveBack(head, delay)
	for _, d := range followers {
		d.group = nil
		l.releaseUnstarted(d)
	}
}

// releaseUnstartedOf gives back, in a stop, what of a group has not started. If a message is at its last receive, it and
// those before it are kept to be run: given back, it would go to the dead-letter queue without having been run.
func (l *loop) releaseUnstartedOf(g *group) {
	unstarted := g.followers
	headWaits := g.head != nil && (g.head.state == ready || g.head.state == held)
	if headWaits {
		unstarted = append([]*delivery{g.head}, unstarted...)
	}
	keep := 0
	for i, d := range unstarted {
		if l.mustRunInStop(d) {
			keep = i + 1
		}
	}
	g.followers = slices.Clone(unstarted[:keep])
	switch {
	case headWaits && keep == 0:
		g.head = nil
	case headWaits:
		g.followers = g.followers[1:] // without the head, which stays
	}
	for _, d := range unstarted[keep:] {
		d.group = nil
		l.releaseUnstarted(d)
	}
	l.advance(g)
}
