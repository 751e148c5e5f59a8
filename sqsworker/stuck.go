package sqsworker

import "github.com/sqsonce/sqsonce/internal/host"

// giveBackBehind gives back what waits behind a stuck handler whose lease is lost, and would wait for as long as the process
// lives: its message, received again, or on FIFO what has been received of its group since. Another worker may be able to
// run it. The same messages may come here again: SQS counts each receive, so the delay doubles with it. What is at its last
// receive goes on waiting: given back, it would go to the dead-letter queue.
func (l *loop) giveBackBehind(d *delivery) {
	if !d.stuck || !d.lease.lost {
		return
	}
	var behind []*delivery
	switch {
	case d.group != nil && !l.followerAtLastReceive(d.group):
		behind, d.group.followers = d.group.followers, nil
	case d.group == nil && d.next != nil && d.next.state == following && !l.atLastReceive(d.next):
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
