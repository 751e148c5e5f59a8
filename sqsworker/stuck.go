package sqsworker

import (
	"slices"

	"github.com/sqsonce/sqsonce/internal/host"
)

// giveBackBehind gives back what waits behind a stuck handler whose lease is lost, and would wait for as long as the process
// lives: its message, received again, or on FIFO what has been received of its group since. Another worker may be able to
// run it. The same messages may come here again: SQS counts each receive, so the delay doubles with it. What is at its last
// receive goes on waiting: given back, it would go to the dead-letter queue.
func (l *loop) giveBackBehind(d *delivery) {
	if !d.stuck || d.state != running {
		return
	}
	var behind []*delivery
	switch {
	case d.group != nil && (!d.lease.lost || d.group.leaving || l.followerAtLastReceive(d.group)):
		l.expireBehind(d)
	case !d.lease.lost:
	case d.group != nil:
		behind, d.group.followers = d.group.followers, nil
	case d.next != nil && d.next.state == following && !l.atLastReceive(d.next):
		behind = []*delivery{d.next}
	}
	for _, b := range behind {
		b.group = nil
		delay := host.Double(l.opts.VisibilityTimeout/2, maxVisibility, b.lease.count)
		if b.m.ID != d.m.ID && !l.inTime(b, &delay) { // the handler may yet succeed for its own message
			continue
		}
		l.counters.released.Add(1)
		l.release(b, delay)
	}
}

// expireFollowing is for messages that are extended. Those that wait behind a handler of their group, here or elsewhere, go to the dead-letter
// queue when their retention ends: by the time an extension finds the head deleted, SQS may have deleted them too.
func (l *loop) expireFollowing(extended []*delivery) {
	for _, d := range extended {
		if d.state != following || d.group == nil || !isBusy(d.group.head) || !l.expires(d) {
			continue
		}
		if head := d.group.head; l.queue.hasDLQ() {
			l.expireBehind(head)
		} else {
			l.logExpires(d)
		}
	}
}

// expires says that a message behind others waits in the second half of the last part of its retention: the handler ahead may end in the
// first half, and the next extension comes before the second one ends. It is none whose handler runs: that may yet succeed.
func (l *loop) expires(d *delivery) bool {
	left, known := l.timeLeft(d)
	return known && left <= -host.LeastLeft(l.opts.VisibilityTimeout)/2 && d.m.ID != d.group.head.m.ID
}

// isBusy says that a handler runs for the head of a group, here or elsewhere. Else it may start, and those behind it too.
func isBusy(head *delivery) bool {
	return head != nil && (head.state == running || head.state == held && head.heldFor == heldElsewhere)
}

// expireBehind sends the first message whose retention ends behind such a head to the dead-letter queue.
func (l *loop) expireBehind(head *delivery) {
	g := head.group
	if g.leaving || !isBusy(head) || !l.queue.hasDLQ() {
		return
	}
	i := slices.IndexFunc(g.followers, func(f *delivery) bool { return !f.tooLarge && l.expires(f) })
	if i < 0 {
		return
	}
	f := g.followers[i]
	g.followers = slices.Delete(g.followers, i, i+1)
	f.group, f.leaves, g.leaving = nil, g, true
	if l.finished.has(f.m.ID) { // a copy of it is there already
		l.delete(f)
		return
	}
	l.expire(f)
}

// left is for a message that has left its group, or stays. The messages behind it have waited for that.
func (l *loop) left(d *delivery) {
	g := d.leaves
	d.leaves, g.leaving, g.stopped = nil, false, false
	if g.head != nil {
		l.giveBackBehind(g.head)
		l.expireBehind(g.head)
	}
	l.advance(g)
}

// staysBehind is for a message that was to leave its group, and that the dead-letter queue did not take. It waits in its place, if SQS does
// not move it and has not got the group back. A stop decides about it with its group.
func (l *loop) staysBehind(d *delivery) {
	g := d.leaves
	l.logExpires(d)
	switch {
	case g.stopped:
		l.remove(d) // as stopGroup does
		return
	case l.movedNext(d), l.groups[g.name] != g:
		l.release(d, l.opts.VisibilityTimeout/2)
		return
	}
	l.setState(d, following)
	d.group, d.leaves, g.leaving = g, nil, false
	i, _ := slices.BinarySearchFunc(g.followers, d, compareReceipt)
	g.followers = slices.Insert(g.followers, i, d)
	if g.head != nil && g.head.parked {
		l.park(d)
	}
	if l.stopping.begun {
		l.releaseUnstartedOf(g)
	}
	if d.tooLarge && g.head != nil { // others may not be
		l.expireBehind(g.head)
	}
	l.advance(g)
}
