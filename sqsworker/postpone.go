package sqsworker

import (
	"cmp"
	"time"

	"github.com/sqsonce/sqsonce/internal/settle"
)

// A postponed message waits for its turn, in its line: see lines.go. It is held in its part of MaxHeld. What finds no
// room is given back until its turn, and a message that would lose its last receives so is held all the same. Where it
// can't wait any longer it runs in debt: middleware that limits lets it. Protocol, section 18.

const (
	leastPostponed = 2 * time.Second // that a message is hidden that is given back
	mostPostponed  = 11*time.Hour + 30*time.Minute
	sparePostponed = 3 // receives left of a message that is given back: one more, a crash, and its run
	debtLogged     = 10 * time.Minute
)

// postponing is what the worker knows of postponed messages.
type postponing struct {
	line     lines
	behind   behind
	standing standing
	debts    time.Time // when one whose handler was called before its turn was last logged
	unrun    time.Time // when one of these was last logged that was postponed again
}

// postponed holds a message, with its group, until its turn, or gives it back. That is no attempt, and says nothing
// about the dependencies of messages.
func (l *loop) postponed(d *delivery, r result) {
	d.result, d.until, d.postponed = r, l.now().Add(r.delay), true
	if turn, held := settle.TurnOf(r.err); held {
		d.turn = turn
	}
	l.behind.grouped = d.m.Group != ""
	l.needs.postpones = l.needs.postpones || !d.began.Before(l.needs.since)
	l.logUnrun(d)
	switch left, known := l.timeLeft(d); {
	case l.stopping.begun && (d.debt || !l.mustEndInStop(d)):
		l.line.leave(d)
		l.giveBack(d, l.beforeEnd(d, r.delay))
		return
	case l.stopping.begun:
		l.runInDebt(d, "the worker stops, and its next receive is its last one")
		return
	case known && left <= 0 && !d.debt:
		l.runInDebt(d, "its retention ends")
		return
	case !l.now().Before(l.holdEnd(d)):
		l.atHoldEnd(d)
		return
	}
	delay := max(r.delay, time.Second)
	if !l.inTime(d, &delay) {
		l.line.leave(d)
		return
	}
	if !d.place.asked {
		d.keeps = !l.mayPutOff(d)
		l.line.enter(d, place{line: d.m.Group})
	}
	if !d.place.taken {
		l.putOff(d, delay)
		return
	}
	l.holdParked(d, heldPostponed, min(delay, l.holdEnd(d).Sub(l.now())), d.turn.Ready)
}

// holdEnd is until when a message is held at most: SQS hides it for 12 h after its receive.
func (l *loop) holdEnd(d *delivery) time.Time {
	return d.lease.received.Add(l.opts.MaxExtension - l.opts.VisibilityTimeout)
}

// postponeEnds runs a held message whose time has come. Where it is the end of the 12 h, it is given back for the rest.
func (l *loop) postponeEnds(d *delivery) {
	if l.now().Before(d.until) && !l.now().Before(l.holdEnd(d)) {
		l.atHoldEnd(d)
		return
	}
	l.makeReady(d)
}

// atHoldEnd is for a message that can't be held any longer.
func (l *loop) atHoldEnd(d *delivery) {
	if l.atLastReceive(d) && !d.debt {
		l.runInDebt(d, "SQS hides it no longer, and its next receive is its last one")
		return
	}
	l.putOff(d, d.until.Sub(l.now()))
}

// runInDebt calls the handler of a message before its turn, since the message would be moved or deleted without a run. A limit lets
// it run. A pause doesn't.
func (l *loop) runInDebt(d *delivery, reason string) {
	d.owes, d.owesFor = true, reason
	l.line.leave(d)
	if isDue(&l.debts, l.now(), debtLogged) {
		l.log.WarnContext(d.context(), "sqsworker: a postponed message can't wait any longer: its handler is called before its turn", d.about(keyReason, reason)...)
	}
	l.makeReady(d)
}

// logUnrun says of a message in debt that its handler has postponed it all the same.
func (l *loop) logUnrun(d *delivery) {
	if d.owesFor != "" && isDue(&l.unrun, l.now(), debtLogged) {
		l.log.WarnContext(d.context(), "sqsworker: a message that can't wait any longer was postponed again: it may be dead-lettered or deleted unrun", d.about(keyReason, d.owesFor)...)
	}
	d.owesFor = ""
}

// mayPutOff says that a message and those behind it in its group keep enough receives if they are given back.
func (l *loop) mayPutOff(d *delivery) bool { return l.mayTrimGroup(heldPostponed, d) }

// putOff gives a message back until its turn, with its group.
func (l *loop) putOff(d *delivery, delay time.Duration) {
	delay = l.beforeEnd(d, min(max(delay, leastPostponed), mostPostponed))
	l.line.leave(d)
	l.behind.delayed++
	l.after(delay, func() { l.behind.delayed-- })
	l.giveBack(d, delay)
}

// trimHeld gives back messages beyond the limits. Each kind of held messages keeps its part of MaxHeld: only others
// yield to one of the newest kind. Of postponed ones the longest line yields first, in it the one with the fewest
// receives.
func (l *loop) trimHeld(newest *reason) {
	for !l.roomToPark(amount{}) {
		var last *delivery
		for _, d := range l.deliveries {
			if l.mayYield(d, newest) && (last == nil || l.yieldsFirst(d, last) < 0) {
				last = d
			}
		}
		switch {
		case last == nil:
			return
		case last.heldFor == heldPostponed:
			l.putOff(last, last.until.Sub(l.now()))
		default:
			l.giveBack(last, l.hiddenFor(last))
		}
	}
}

// mayYield says that a held message can be given back, so that a newer one is held. Those with others behind them have
// kept these already.
func (l *loop) mayYield(d *delivery, newest *reason) bool {
	if d.state != held || l.withinPart(d.heldFor, amount{}) || d.group != nil && len(d.group.followers) > 0 || !l.mayTrim(d.heldFor, d) {
		return false
	}
	return d.group != nil || d.heldFor == heldPostponed || d.heldFor.kind != newest.kind
}

func (l *loop) yieldsFirst(a, b *delivery) int {
	switch ap, bp := a.heldFor == heldPostponed, b.heldFor == heldPostponed; {
	case ap && bp:
		return cmp.Or(cmp.Compare(l.line.length(b), l.line.length(a)), cmp.Compare(a.lease.count, b.lease.count), compareReceipt(b, a))
	case ap:
		return -1
	case bp:
		return 1
	}
	return b.retry.at.Compare(a.retry.at)
}
