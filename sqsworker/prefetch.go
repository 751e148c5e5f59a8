package sqsworker

import (
	"time"

	"github.com/sqsonce/sqsonce/internal/host"
)

// prefetch is the time for which a worker receives ahead. A message that waits here for a slot can't be handled by another
// worker that has a free one. So a worker receives only for its free slots, and the messages that its handlers will start
// within prefetch. This is enough to keep them at work during a receive, and gives full receives if handlers are quick.
const prefetch = time.Second

// pace is how long handlers run.
type pace struct {
	mean    time.Duration // of the last runs, the latest counting most
	returns int           // counted in mean, at most paceOf
	running chain         // those whose handlers run, in the order of their start
}

const (
	paceOf  = 16
	paceMin = 8 // returns, or Concurrency if less: the first one to return may be one that fails at once
)

func (p *pace) began(d *delivery) { p.running.push(d) }

// returned ends a run. That of a stuck handler says nothing about those that occupy slots.
func (p *pace) returned(d *delivery, now time.Time, stuck bool) {
	took := now.Sub(d.began)
	p.running.remove(d)
	if stuck {
		return
	}
	p.returns = min(p.returns+1, paceOf)
	p.mean += (took - p.mean) / time.Duration(p.returns)
}

// takeUp is how many messages the handlers that run, and then free slots after one message for each, will take up within
// prefetch. A handler counts when it has run for so long that it should return by then, unless it has run for twice that:
// nobody knows when it will return.
func (p *pace) takeUp(now time.Time, free int) int {
	mean := max(p.mean, 1)
	late, ending := 0, 0
	for d := p.running.first; d != nil; d = p.running.next(d) {
		age := now.Sub(d.began)
		if age > max(2*mean, prefetch) {
			late++
			continue
		}
		if mean <= prefetch || age < mean-prefetch {
			break
		}
		ending++
	}
	if mean <= prefetch {
		return int(prefetch * time.Duration(p.running.count-late+free) / mean)
	}
	return ending
}

// wanted is how many more messages the handlers can use; it may be negative. While nothing is known of the handlers it is
// one for each free slot.
func (l *loop) wanted() int {
	n := l.freeSlots() - l.waitForSlots() - l.polling.asked
	if l.pace.returns >= min(paceMin, l.opts.Concurrency) {
		n += l.pace.takeUp(l.now(), max(0, l.freeSlots()))
	}
	return n
}

// toReceive is how many messages a receive may ask for, if one is to be started; else 0. Receives for ten cost least. One
// for fewer is started only while nothing else is to be had: no message waits for a slot and no receive is under way. If
// it is MaxInFlight or MaxBytes that leaves no room for ten, it is also started only when nothing under way will free some.
func (l *loop) toReceive() int {
	if l.needs.unsure(l.now()) || !l.mayReceive() {
		return 0
	}
	if n, decided := l.toProbe(); decided {
		return min(n, l.wantedBehind(n))
	}
	wanted := l.wantedBehind(l.wanted())
	n := min(l.capacity.available(), wanted)
	switch {
	case n >= min(host.MaxBatch, l.capacity.limit.messages):
		return n
	case n <= 0 || l.anyWaitsForSlot() || l.polling.active > 0:
		return 0
	case n < wanted && (l.freeSlots() <= 0 || l.deletes.unanswered() > 0 || l.releases.unanswered() > 0):
		return 0
	}
	return n
}

// mayReceive says that a receive may be started, and that there is room for a message.
func (l *loop) mayReceive() bool {
	return !l.control.closed() && l.capacity.available() > 0 && l.suspects.state == noSuspects && l.closing() < 2*l.opts.MaxHeld
}

// closing is how many held messages count where they end receives: those that are postponed don't.
func (l *loop) closing() int { return l.parked.minus(l.parkedAs[kindPostponed]).messages }
