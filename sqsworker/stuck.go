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

// expireBehind sends the first message behind a stuck handler whose retention ends to the dead-letter queue, and looks again later.
func (l *loop) expireBehind(d *delivery) {
	g := d.group
	if !d.watchdog.pending() {
		d.watchdog = l.after(lookAgain, func() { l.giveBackBehind(d) })
	}
	i := slices.IndexFunc(g.followers, func(f *delivery) bool {
		left, known := l.timeLeft(f)
		return known && left <= 0 && f.m.ID != d.m.ID // the handler may yet succeed for its own message
	})
	switch {
	case i < 0 || g.leaving:
	case !l.queue.hasDLQ():
		l.logExpires(g.followers[i])
	default:
		f := g.followers[i]
		g.followers = slices.Delete(g.followers, i, i+1)
		f.group, f.leaves, g.leaving = nil, g, true
		if l.finished.has(f.m.ID) { // a copy of it is there already
			l.delete(f)
			return
		}
		l.expire(f)
	}
}

// left is for a message that has left its group, or stays. The messages behind it have waited for that.
func (l *loop) left(d *delivery) {
	g := d.leaves
	d.leaves, g.leaving, g.stopped = nil, false, false
	if g.head != nil {
		l.giveBackBehind(g.head)
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
	l.advance(g)
}
