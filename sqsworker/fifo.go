package sqsworker

import (
	"slices"
	"time"

	"github.com/sqsonce/sqsonce/internal/host"
)

// group is what this worker holds of one FIFO message group, over all receives. Its messages run one after the other:
// the next one starts when the delete of the one before is confirmed. Started earlier, it would be overtaken by a
// redelivery of the first.
type group struct {
	name    string
	current *delivery   // the head: starting, running, held, or being deleted
	queue   []*delivery // its followers
}

func (l *loop) joinGroup(d *delivery) *group {
	g := l.groups[d.m.Group]
	if g == nil {
		g = &group{name: d.m.Group}
		l.groups[g.name] = g
	}
	d.group = g
	g.queue = append(g.queue, d)
	return g
}

// advance makes the first follower the head where there is none.
func (l *loop) advance(g *group) {
	if g.current != nil {
		return
	}
	if len(g.queue) == 0 {
		if l.groups[g.name] == g {
			delete(l.groups, g.name)
		}
		return
	}
	g.current = g.queue[0]
	g.queue = g.queue[1:]
	l.makeReady(g.current)
}

// leaveGroup takes a delivery out that has ended.
func (l *loop) leaveGroup(d *delivery) {
	g := d.group
	if g.current == d {
		g.current = nil
		l.advance(g)
		return
	}
	if i := slices.Index(g.queue, d); i >= 0 {
		g.queue = slices.Delete(g.queue, i, i+1)
	}
}

// stopGroup drops the followers after one member's handle was lost, without extending or giving back any: another
// consumer may have received the group from there, and what we changed could reach its newer deliveries. They become
// visible by themselves, in order, since SQS holds a group back behind its first hidden message. A head that only waits
// is dropped too; one that runs is told if the lost handle was its own, and holds its place until it has returned.
func (l *loop) stopGroup(g *group) {
	followers := g.queue
	g.queue = nil
	for _, d := range followers {
		d.lease.lost = true
		l.leave(d)
	}
	if c := g.current; c != nil && (c.state == waiting || c.state == held) {
		c.lease.lost = true
		l.leave(c)
	}
}

// headFailed decides about the failing head of a group. Every redelivery of a head costs its followers a receive, since
// SQS hands them out together, so that they could reach the dead-letter queue without ever having been run. Therefore
// the head is first run again here, under its lease; and at the last receive of a follower the head, not the follower,
// goes to the dead-letter queue.
func (l *loop) headFailed(d *delivery, r result) {
	g := d.group
	local := r.asked
	if local < 0 {
		local = host.Jitter(time.Second, 15*time.Minute, d.runs)
	}
	switch last := l.followerAtLastReceive(g); {
	case !l.stopping.begun && d.runs <= l.opts.FIFORetries && local <= l.opts.Visibility:
		l.hold(d, local, nil)
	case last && !r.noSend && l.queue.hasDLQ():
		l.reject(d, r)
	case last && !l.stopping.cancelled:
		// Nowhere to send the head, and nothing may go back: it is tried until its lease's end.
		l.hold(d, local, nil)
	default:
		l.releaseGroup(g, r.delay)
	}
}

func (l *loop) followerAtLastReceive(g *group) bool {
	return slices.ContainsFunc(g.queue, l.atLastReceive)
}

// releaseGroup gives the head back after delay and its followers at once: they stay behind it until it is visible.
func (l *loop) releaseGroup(g *group, delay time.Duration) {
	head, followers := g.current, g.queue
	g.queue = nil
	delete(l.groups, g.name)
	// The same message may be received again before the answer to the release: it then starts a new group.
	head.group = nil
	g.current = nil
	l.counters.retried.Add(1)
	l.release(head, delay)
	for _, d := range followers {
		d.group = nil
		l.counters.released.Add(1)
		l.release(d, 0)
	}
}

// releaseUnstarted gives back, at the stop, what of a group has not started. Up to the last member that is at its last
// receive all are kept: given back it would go to the dead-letter queue without having been run.
func (l *loop) releaseUnstarted(g *group) {
	unstarted := g.queue
	if c := g.current; c != nil && (c.state == waiting || c.state == held) {
		unstarted = append([]*delivery{c}, unstarted...)
	}
	keep := 0
	for i, d := range unstarted {
		if l.keepAtStop(d) {
			keep = i + 1
		}
	}
	g.queue = unstarted[:keep:keep]
	if len(unstarted) > 0 && unstarted[0] == g.current {
		if keep == 0 {
			g.current = nil
		} else {
			g.queue = g.queue[1:]
		}
	}
	for _, d := range unstarted[keep:] {
		d.group = nil
		l.giveBack(d)
	}
	l.advance(g)
}
