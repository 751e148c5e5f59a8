package sqsworker

import (
	"slices"
	"time"

	"github.com/sqsonce/sqsonce/internal/host"
)

// Postponed messages may stand before others in the queue. Each that is received for nothing costs a place in its line,
// or a receive. So a worker that has postponed messages receives as many as could run of those that it received last,
// and the longest line's room. Or it gives up to Options.Delayed of them back until their turn, to get past them.
// Protocol, 18.5.

const (
	judgeAfter = 50 * time.Millisecond // of a receive: by then its messages have been postponed, if they are
	// probeEvery is how often one message is received while none could run and the longest line is full, probeSooner while
	// another line has room: a fair queue hands out the messages of the group with the fewest in flight.
	probeEvery, probeSooner = 2 * time.Second, time.Second
	// delayedOfHeld is Options.Delayed for messages without a group, in MaxHeld.
	delayedOfHeld = 10
)

// behind is what a worker knows of what stands behind postponed messages.
type behind struct {
	ran     int        // of the last receive that is judged
	last    []unjudged // the receives since then
	probed  time.Time  // when the last receive began
	delayed int        // messages that are given back until their turn
	grouped bool       // the last one that was postponed has a group
}

// unjudged is a receive that is not judged yet.
type unjudged struct {
	at    time.Time
	added []*delivery
}

// mayPass is how many messages may be given back at a time to get past them.
func (l *loop) mayPass() int {
	switch n := l.opts.Delayed; {
	case n != 0:
		return max(n, 0)
	case l.behind.grouped:
		return 0
	}
	return delayedOfHeld * l.opts.MaxHeld
}

// wantedBehind is how many of the messages that the handlers can use a receive may ask for because of those that are
// postponed. It is more where it is to get past them: they need their slots for no time.
func (l *loop) wantedBehind(wanted int) int {
	b := &l.behind
	postponed := l.parkedAs[kindPostponed].messages
	if l.lastStands() {
		return min(wanted, l.probeStanding())
	}
	if postponed+b.delayed == 0 {
		b.ran = host.MaxBatch
		return wanted
	}
	judged := l.judge()
	if b.delayed < l.mayPass() && postponed < l.opts.MaxHeld {
		if wanted > 0 {
			return max(wanted, host.MaxBatch-b.ran)
		}
		return wanted
	}
	left, others := l.line.left()
	n := min(host.MaxBatch, b.ran+left)
	probe := probeEvery
	if others {
		probe = probeSooner
	}
	switch {
	case n == host.MaxBatch:
	case !judged || l.polling.active > 0:
		n = 0
	case n == 0 && elapsed(l.now(), b.probed) >= probe:
		n = 1
	}
	return min(wanted, n)
}

// noteBatch remembers a receive, to judge it. While nothing is postponed only the last one counts, and there is no timer.
func (l *loop) noteBatch(added []*delivery) {
	b := &l.behind
	if l.parkedAs[kindPostponed].messages+b.delayed > 0 {
		l.wakeAfter(judgeAfter)
	} else {
		clear(b.last)
		b.last = b.last[:0]
	}
	b.last = append(b.last, unjudged{l.now(), added})
}

// judge counts how many messages of each receive could run, in their order, and reports whether that is known of all.
func (l *loop) judge() bool {
	b := &l.behind
	for len(b.last) > 0 {
		ran, unknown := b.last[0].ran()
		if unknown && elapsed(l.now(), b.last[0].at) < judgeAfter {
			if ran < len(b.last[0].added) { // it won't be more
				b.ran = min(b.ran, ran)
			}
			return false
		}
		if ran == len(b.last[0].added) {
			ran = min(host.MaxBatch, 2*max(b.ran, 1))
		}
		b.ran, b.last = ran, slices.Delete(b.last, 0, 1)
	}
	return true
}

// ran is how many of its messages could run, and whether some of these may still be postponed.
func (r unjudged) ran() (ran int, unknown bool) {
	for _, d := range r.added {
		if !d.postponed && !d.parked {
			ran++
			unknown = unknown || d.isUnstarted() || d.state == running
		}
	}
	return ran, unknown
}
