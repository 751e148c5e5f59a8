package sqsworker

import (
	"errors"
	"math/rand/v2"
	"time"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/internal/host"
	"github.com/sqsonce/sqsonce/internal/question"
)

// Messages that are unavailable are held outside MaxInFlight, in MaxHeld, so that receives go on. Those whose question passes, or
// whose claim was refuted, are aside. Those with a claim that nothing refutes are in doubt, and with doubtAfter of them in a row the
// worker is. Nobody can be asked then: whether they are at fault, or a dependency of all, only other messages can tell.

const (
	unavailableFirst = time.Second
	asideMost        = 5 * time.Minute
	asideHiddenMost  = time.Hour
	wakeEvery        = 30 * time.Second
	crowd            = 3 // messages: so many may be unavailable by themselves for ever

	doubtAfter  = 3 // claims in a row
	claimMost   = 30 * time.Second
	claimLong   = time.Hour // after it a claim runs as seldom as a message that is aside
	doubtProbe  = time.Second
	doubtKeeps  = 90 * time.Second // what a worker receives for so long it keeps
	lateProbe   = time.Minute
	coldProbe   = 2 * time.Minute
	laterProbe  = 10 * time.Minute
	spareCounts = 4 // receives left of a message that is received for nothing at little cost, unless it comes for the first time
)

// unavailable holds a message, with its group, and tries it again.
func (l *loop) unavailable(d *delivery, r result) {
	if l.needs.trial.message == d {
		l.needs.trial = trial{}
	}
	if d.unavailable++; d.unavailable == 1 {
		d.unavailableSince = l.now()
		if l.needs.trouble.affected++; l.needs.trouble.affected <= crowd {
			l.needs.trouble.crowded = l.now()
		}
	}
	d.unavailableLast, l.needs.err = l.now(), r.err
	l.countTrouble()
	took := elapsed(l.now(), d.began)
	l.needs.took, d.took = max(l.needs.took, took), max(d.took, took)
	l.again.slots = max(1, l.opts.Concurrency/4)
	q, asks := question.Of(r.err)
	switch {
	case l.stopping.begun:
		l.holdOrGiveBack(d, heldAside, unavailableFirst, l.hiddenUnavailable(d), nil)
	case asks:
		l.setAside(d)
		l.ask(q)
	case errors.Is(r.err, sqsonce.ErrNoQueueARN): // others have keys without it
		l.setAside(d)
		l.noteTrouble()
	case d.refuted, d.began.Before(l.needs.last): // it may have waited for its calls all the while
		d.refuted = true
		l.setAside(d)
		l.noteTrouble()
	default:
		l.claim(d)
	}
}

// setAside holds a message whose failure says nothing about others.
func (l *loop) setAside(d *delivery) {
	l.holdOrGiveBack(d, heldAside, around(host.Double(unavailableFirst, asideMost, d.unavailable)), l.asideHidden(d), nil)
}

// hiddenUnavailable is how long a message that is unavailable is hidden when a stop gives it back. Where no message had another outcome in
// this process, the process may be one of a row that restart, and each costs the message a receive.
func (l *loop) hiddenUnavailable(d *delivery) time.Duration {
	if l.needs.proven {
		return 0
	}
	return l.beforeEnd(d, host.UnavailableDelay(d.lease.count, d.m.FirstReceivedAt))
}

// asideHidden is how long a message is hidden that finds no room: 1, 4 or 16 min by its receives, and at least half as long as it has
// been unavailable here, and two thirds as long as more than crowd messages have been: an hour of trouble would else use up the receives
// of more messages than workers can hold. It is visible again while it can run before its retention ends.
func (l *loop) asideHidden(d *delivery) time.Duration {
	now, t := l.now(), l.needs.trouble
	hidden := max(time.Minute<<(2*min(max(d.lease.count-1, 0), 2)), elapsed(now, d.unavailableSince)/2)
	if t.affected > crowd {
		hidden = max(hidden, elapsed(now, t.crowded)*2/3)
	}
	return l.beforeEnd(d, min(hidden, asideHiddenMost))
}

// beforeEnd shortens a delay to what is left until a message could not run before its retention ends.
func (l *loop) beforeEnd(d *delivery, delay time.Duration) time.Duration {
	if left, known := l.timeLeft(d); known {
		return max(0, min(delay, left))
	}
	return delay
}

// claim holds a message that says, with nobody to ask, that what it needs is unavailable.
func (l *loop) claim(d *delivery) {
	n := &l.needs
	if n.claims++; n.claims >= doubtAfter && (n.state == needsProven || n.state == needsUnproven) {
		l.beginDoubt()
	}
	most := claimMost
	if n.state == needsDoubted && elapsed(l.now(), n.since) >= claimLong {
		most = asideMost
	}
	l.holdOrGiveBack(d, heldClaim, around(host.Double(unavailableFirst, most, d.unavailable)), 0, nil)
	l.noteTrouble()
}

// refute notes that a message had another outcome: what others say is unavailable is so for them only, or is available again.
func (l *loop) refute() {
	if l.needs.trouble.affected == 0 {
		return
	}
	for _, d := range l.deliveries {
		if d.unavailable == 0 || d.state == running {
			continue
		}
		d.refuted = true
		if d.state == held && d.heldFor == heldClaim {
			l.heldAs[heldClaim]--
			d.heldFor = heldAside
			l.heldAs[heldAside]++
		}
	}
}

func (l *loop) isAside(d *delivery) bool {
	return d.state == held && d.heldFor.unavailable
}

// beginDoubt has the worker receive one message a second, until one of them has another outcome. What it receives it keeps for
// doubtKeeps: given back at once, the messages would come again before others, and lose receives.
func (l *loop) beginDoubt() {
	l.setNeeds(needsDoubted)
	l.needs.probes, l.needs.probeAt = 0, l.now().Add(doubtProbe)
	l.wakeAfter(doubtProbe)
	l.whileNeeds(doubtKeeps, lookAgain, func() {
		l.expireHeld()
		l.handOver(lateProbe)
	})
}

// probed notes that a worker has begun a receive.
func (l *loop) probed() {
	switch l.needs.state {
	case needsDown:
		l.needs.trial.state = trialReceived
		return
	case needsProven, needsUnproven:
		return
	case needsDoubted:
	}
	l.needs.probes++
	pause := l.probePause()
	l.needs.probeAt = l.now().Add(pause)
	l.wakeAfter(pause)
}

// probePause is how long a worker in doubt waits for its next receive. Where no message had another outcome since its start the
// worker may be one of a fleet that cannot work, or that is killed again and again: each receive costs the messages one.
func (l *loop) probePause() time.Duration {
	n := &l.needs
	early := elapsed(l.now(), n.since) < doubtKeeps
	spare := l.queue.maxReceives == 0 || n.count <= l.queue.maxReceives-spareCounts || n.count == 1 && l.queue.maxReceives > leftReceives
	switch {
	case (n.proven || spare) && early:
		return doubtProbe
	case n.proven || spare:
		return lateProbe
	case l.holdsLate():
		return laterProbe
	}
	return min(doubtProbe<<(2*min(n.probes-1, 8)), coldProbe)
}

// holdsLate says that a message is held that cannot be given back.
func (l *loop) holdsLate() bool {
	for _, d := range l.deliveries {
		if l.isAside(d) && !l.mayTrim(heldAside, d) {
			return true
		}
	}
	return false
}

// wake tries all that is aside or in doubt: what they need may work again.
func (l *loop) wake() {
	l.needs.woken = l.now()
	for _, d := range l.sorted() {
		if l.isAside(d) {
			l.tryAgain(d)
		}
	}
}

// gotThrough has more of what is aside tried: a message that was unavailable is not any more.
func (l *loop) gotThrough() {
	l.again.slots = min(l.again.slots+1, l.opts.Concurrency)
	if l.needs.state != needsDown && elapsed(l.now(), l.needs.woken) >= wakeEvery {
		l.wake()
	}
}

// around is d, a quarter more or less.
func around(d time.Duration) time.Duration { return d*3/4 + rand.N(d/2) }
