package sqsworker

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/internal/host"
	"github.com/sqsonce/sqsonce/internal/settle"
)

// A message that crashes its process takes a receive from all that is in flight there. So a message whose event was running in a crash is
// a suspect, as dedup finds by the record. At its second receive the worker starts it alongside running handlers, but no other message shortly
// before or after it: the next crash tells which one started last. Later it runs suspects apart: it receives nothing, lets end what runs,
// and then starts them one by one, the one last that had started last before its crash. What is not guilty is done and deleted by then.
// The head of a FIFO group that has crashed a process alone leaves its group while the messages behind heads have a receive left.
// Protocol, 17.7.

var errCrashes = errors.New("sqsworker: the message has crashed a process that ran it apart from other messages")

const (
	suspectFirst = 2 // dedup tells of suspects from this receive on
	// suspectProves is how long one runs apart before the next one starts. A message that kills its process later has another one accused.
	suspectProves = 2 * time.Minute
	// suspectsApart is in what time all suspects start that run apart, but for waits: nothing is received meanwhile.
	suspectsApart = 20 * time.Minute
	// suspectsBeside is in what time all suspects start that run alongside other messages: a kill of a fleet makes many.
	suspectsBeside = 2 * time.Second
	suspectWaits   = 40 * time.Second // for messages held for less
	suspectHeld    = 12 * time.Hour
	// suspectPatience is how long the first and the last suspect wait for running handlers. A handler that has hung since would keep all
	// others from running.
	suspectPatience = 15 * time.Minute
)

// suspects are the messages that run apart.
type suspects struct {
	state   suspectsState
	apart   bool        // one of them runs apart: so all do
	most    int         // waited at once
	waiting []*delivery // in the order in which they start
	current *delivery   // the one that was started last
	since   time.Time   // when the first one was found, and then when the last one was started
}

type suspectsState int

const (
	noSuspects      suspectsState = iota
	suspectsWait                  // for what runs
	suspectsStarted               // only they start
)

// apartFrom is from which receive on suspects run apart.
func (l *loop) apartFrom() int {
	const from = 3
	if l.queue.maxReceives == 0 {
		return from
	}
	return max(1, min(from, l.queue.maxReceives-1))
}

// withSuspects returns the context of a handler that is about to start, so that dedup tells of a suspect. One whose turn has not come is
// told of again: it may have waited for the dead-letter queue.
func (l *loop) withSuspects(ctx context.Context, d *delivery) context.Context {
	switch from := l.apartFrom(); {
	case d.suspect && d == l.suspects.current:
		l.wakeAfter(l.proves())
		if l.suspects.apart {
			return settle.RunningSuspect(ctx)
		}
	case d.suspect, d.lease.count >= min(suspectFirst, from):
		return settle.WithSuspects(ctx, from)
	}
	return ctx
}

// suspected holds a message, with its group, until it runs apart, or sends it to the dead-letter queue.
func (l *loop) suspected(d *delivery, s *settle.Suspect) {
	d.suspect, d.accused, d.suspectStart = true, s.Alone, s.Started
	if l.judgeAccused(d) || !l.holdOrGiveBack(d, heldSuspect, suspectHeld, 0, nil) {
		return
	}
	w := &l.suspects
	w.waiting = append(w.waiting, d)
	slices.SortStableFunc(w.waiting, func(a, b *delivery) int { return a.suspectStart.Compare(b.suspectStart) })
	w.most = max(w.most, len(w.waiting))
	switch {
	case !w.apart && d.m.ReceiveCount >= l.apartFrom():
		w.apart, w.state, w.since = true, suspectsWait, l.now()
		l.wakeAfter(suspectPatience)
	case w.state == noSuspects:
		w.state = suspectsStarted
	}
	l.wakeAfter(l.proves())
}

// proves is how long a suspect runs before the next one starts.
func (l *loop) proves() time.Duration {
	among := time.Duration(max(1, l.suspects.most))
	if l.suspects.apart {
		return min(suspectProves, suspectsApart/among)
	}
	return suspectsBeside / among
}

// judgeAccused sends a suspect that is accused to the dead-letter queue, if its next crash would cost messages behind heads their last
// receive but one, and reports whether it did. Messages of all groups count: those behind a head run after all suspects. A guessed policy
// says nothing about what a crash costs.
func (l *loop) judgeAccused(d *delivery) bool {
	if !d.accused || !l.queue.hasDLQ() || l.queue.guessed || l.stopping.cancelled {
		return false
	}
	behind := 0
	for _, g := range l.groups {
		for _, f := range g.followers {
			behind = max(behind, f.lease.count)
		}
	}
	if !host.CrashCosts(l.queue.maxReceives, d.lease.count, behind, d.moved) {
		return false
	}
	r := d.result
	r.outcome, r.err, d.crashes = sqsonce.OutcomeRejected, fmt.Errorf("%w: %s", errCrashes, r.err.Error()), true
	l.setState(d, deciding)
	l.reject(d, r)
	return true
}

// runSuspects starts the next suspect, if it is its turn, or ends their time.
func (l *loop) runSuspects() {
	s := &l.suspects
	if s.state == noSuspects {
		return
	}
	s.waiting = slices.DeleteFunc(s.waiting, func(d *delivery) bool {
		return d.state != held || d.heldFor != heldSuspect || l.judgeAccused(d)
	})
	switch {
	case l.proving(s.current), len(s.waiting) > 0 && !l.mayStartSuspect():
		return
	case len(s.waiting) == 0:
		*s = suspects{}
		return
	}
	s.state, s.current, s.since = suspectsStarted, s.waiting[0], l.now()
	l.makeReady(s.current)
	l.wakeAfter(suspectPatience)
}

// proving says that a suspect has to run for a while yet, before it counts as innocent.
func (l *loop) proving(d *delivery) bool {
	return d != nil && (d.state == ready || d.state == running && elapsed(l.now(), d.began) < l.proves())
}

// mayStartSuspect says whether the next suspect may start: the first one and the last one when nothing else runs, so that they crash
// no other message. Those that run alongside others start when nothing has just started.
func (l *loop) mayStartSuspect() bool {
	s := &l.suspects
	if !s.apart {
		for _, d := range l.deliveries {
			if d.state == running && elapsed(l.now(), d.began) < l.proves() {
				return false
			}
		}
		return true
	}
	if s.state == suspectsStarted && len(s.waiting) > 1 {
		return true
	}
	if l.polling.active == 0 && elapsed(l.now(), l.suspects.since) >= suspectPatience {
		return true
	}
	if l.polling.active > 0 || l.slots.taken > 0 || l.counts[deleting]+l.counts[rejecting] > 0 {
		return false
	}
	if l.suspects.state == suspectsStarted {
		return true
	}
	for _, d := range l.deliveries {
		briefly := d.state == held && d.heldFor == heldAttempt && d.retry.at.Sub(l.now()) < suspectWaits
		if briefly || d.state == ready && !l.waitsForSuspects(d) {
			return false
		}
	}
	return true
}

// waitsForSuspects says that a message does not run now, since suspects do or wait for what runs. For what is unavailable they would wait
// for ever: it is tried again and again.
func (l *loop) waitsForSuspects(d *delivery) bool {
	s := &l.suspects
	return s.state == suspectsWait && d.unavailable > 0 || s.state == suspectsStarted && d != s.current
}
