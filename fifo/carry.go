package fifo

import (
	"slices"
	"time"
)

// carry hands an entry whose caller has gone to the first lane that has an event behind it and goes on. The entry may be in
// the queue or not, and those behind it must not overtake it: without a lane that sends it on they would fail for a deadline
// that is not theirs. The caller of the entry gets its result now, with the entry; the copy that is sent on has nobody who waits
// for its result but those behind it. Without such a lane, carry does nothing and returns false. The caller holds the lock.
func (p *Publisher) carry(e *entry) bool {
	g := e.group // e is its head: no other entry has been sent
	i := slices.IndexFunc(g.entries, func(behind *entry) bool { return behind.lane.ctx.Err() == nil })
	if i < 0 {
		return false
	}
	p.groups.leaveState(g)
	sentOn := *e
	sentOn.lane = g.entries[i].lane
	sentOn.pending = &Pending{event: e.pending.event, group: e.pending.group, done: make(chan struct{})}
	sentOn.due = time.Now()
	g.entries[0] = &sentOn
	p.entries[&sentOn] = struct{}{}
	p.capacity.take(e.size)
	p.recent.begin(&sentOn, sentOn.due)
	if sentOn.lane != p.shared { // which does not end before the publisher
		sentOn.lane.carried = append(sentOn.lane.carried, sentOn.pending)
	}
	p.groups.ready(g)
	return true
}

// waitCarried waits until a lane that has ended sends nothing on. Its entries have their results; those that it carried have
// them when their requests have ended.
func (p *Publisher) waitCarried(l *lane) {
	p.mu.Lock()
	carried := l.carried
	p.mu.Unlock()
	for _, pending := range carried {
		<-pending.done
	}
}
