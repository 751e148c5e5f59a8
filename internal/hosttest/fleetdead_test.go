package hosttest

import (
	"slices"
	"time"

	"github.com/sqsonce/sqsonce"
)

// This file finds why a message is in the dead-letter queue: each reason is a clause of the protocol, and has evidence of its own.

// Reasons of hosts, which send messages.
const (
	deadRejected    tallied = "sent: rejected (7.4)"
	deadFailed      tallied = "sent: failed MaxAttempts times in a worker, or at a function's last receive (9.3, 9.7)"
	deadUnavailable tallied = "sent: unavailable at a function's last receive, before others of its group (9.7b)"
	deadCrashed     tallied = "sent: accused of a crash (17.7c, 17.8b)"
	deadExpired     tallied = "sent: its retention was nearly over (17.15)"
)

// What happened at the last receive of a message that SQS has moved.
const (
	movedFailed      tallied = "moved: it failed"
	movedRunning     tallied = "moved: it was running when its process died (17.7)"
	movedKilled      tallied = "moved: its process was killed (13.2)"
	movedStopped     tallied = "moved: its process was stopped, and it was unavailable, in progress elsewhere, frozen, or found no slot (13.2, 15.12a)"
	movedBeside      tallied = "moved: another message ended its process, and not all of its receives (17.7b)"
	movedLost        tallied = "moved: the answer was lost (17.15e, 17.15f)"
	movedHidden      tallied = "moved: SQS was not reached to hide it longer (1.2)"
	movedPolicy      tallied = "moved: the host knew of a later last receive (17.11)"
	movedUnread      tallied = "moved: a function could not read which receive is the last one (17.11c)"
	movedThrottled   tallied = "moved: Lambda did not invoke the function, or lost its answer (17.3b)"
	movedUnavailable tallied = "moved: unavailable in a function (17.3b)"
	movedElsewhere   tallied = "moved: in progress elsewhere, and a function cannot hold it (9.7c)"
	movedBehind      tallied = "moved: behind one that failed in a function (9.5)"
	movedUnasked     tallied = "moved: behind one at its last receive, and SQS could not be asked whether it moves that one (9.7b)"
	movedLate        tallied = "moved: no time left in a function's invocation (7.17, 9.7d)"
	movedNotInvoked  tallied = "moved: not invoked, since one before it in its group failed"
	movedCopy        tallied = "moved: SQS's copy of one that a host has or had done"
)

// checkDead checks why messages are in the dead-letter queue, and returns their events.
func (f *fleet) checkDead() map[string]bool {
	dead := map[string]bool{}
	for _, m := range slices.Concat(f.deleted, f.sqs.Messages(f.dlq)) {
		event, reason := m.Attributes[sqsonce.AttrEventID], m.Attributes[sqsonce.AttrRejectReason]
		dead[event] = true
		clause, at := tallied(""), m.VisibleAt.Sub(f.start) // nobody receives it there
		if reason != "" {
			clause = f.sentBy(event, at)
		} else {
			clause = f.movedBy(event, m.ID, m.ReceiveCount, at)
		}
		switch {
		case clause != "":
			f.tally[clause]++
		case reason != "":
			f.complain("dead-lettered too early", "%s was sent at %s with reason %q: %s", event, at, reason, f.history(event, ""))
		default:
			f.complain("moved unrun", "%s at %s, after receive %d: %s", event, at, m.ReceiveCount, f.history(event, m.ID))
		}
	}
	return dead
}

// sentBy is the clause by which a host has sent an event to the dead-letter queue at a time.
func (f *fleet) sentBy(event string, at time.Duration) tallied {
	e := f.byKey[event]
	for _, n := range f.sends[at] {
		switch {
		case e.reject && f.tries[event] > e.fails:
			return deadRejected
		case f.failedEnough(event, n, at, sqsonce.OutcomeFailed):
			return deadFailed
		case f.failedEnough(event, n, at, sqsonce.OutcomeUnavailable), f.unrunAtLastReceive(event, n, at):
			return deadUnavailable
		case f.crashedEnough(event) && f.endangers(n, event, at):
			return deadCrashed
		case f.expires(event, n, at):
			return deadExpired
		}
	}
	return ""
}

// failedEnough says that a host may send an event of a FIFO queue to the dead-letter queue with its error: its handler failed MaxAttempts
// times in one receive by a worker, or failed at the last receive by the function, or, as the head of a group with others behind it, at the
// one before that. One that is unavailable is sent at the last receive only, by the function.
func (f *fleet) failedEnough(event string, n *node, at time.Duration, outcome sqsonce.OutcomeKind) bool {
	type hold struct {
		id    string
		count int
	}
	failed, unavailable := map[hold]int{}, outcome == sqsonce.OutcomeUnavailable
	for _, r := range f.checker.runs(event) {
		abandoned := n.index == notAWorker && r.ended.IsZero() && !unavailable
		if r.process != n.process || !f.fifo || !(r.failed && r.outcome == outcome || abandoned || f.refused(r) && !unavailable) {
			continue
		}
		h, count := hold{r.m.ID, r.m.ReceiveCount}, r.m.ReceiveCount
		failed[h]++
		for _, most := range n.believed(min(at, r.endedAfter(f.start)), at) {
			attempts := min(most, 10)
			if most == 0 {
				attempts = 3
			}
			switch {
			case n.index != notAWorker:
				if !unavailable && failed[h] >= attempts {
					return true
				}
			case most > 0 && count >= most:
				return !unavailable || f.othersBehind(n, h.id, count, 1)
			case most > 2 && count == most-1 && !unavailable && f.othersBehind(n, h.id, count, most-1):
				return true
			}
		}
	}
	return false
}

// unrunAtLastReceive says that an event was at its last receive in the function's invocation, with others of its group behind it, when the
// store may not have answered: none of its runs there got to the handler.
func (f *fleet) unrunAtLastReceive(event string, n *node, at time.Duration) bool {
	runs := f.checker.runs(event)
	return f.fifo && n.index == notAWorker && slices.ContainsFunc(f.receiptsOfEvent(event), func(r *receipt) bool {
		ran := func(x *run) bool { return x.process == n.process && x.m.ID == r.id && x.m.ReceiveCount == r.count }
		return r.node == n && !slices.ContainsFunc(runs, ran) && r.at <= at && at <= r.at+functionTimeout && n.unreleased(r.at, at) && f.othersBehind(n, r.id, r.count, 1) &&
			slices.ContainsFunc(n.believed(at, at), func(most int) bool { return most > 0 && r.count >= most })
	})
}

// othersBehind says that messages of its group with so many receives were behind one in its invocation.
func (f *fleet) othersBehind(n *node, id string, count, received int) bool {
	return slices.ContainsFunc(f.receiptsOf(id, count), func(head *receipt) bool {
		at := slices.Index(head.batch, head)
		return head.node == n && slices.ContainsFunc(head.batch[at+1:], func(r *receipt) bool {
			return groupOf(r.event) == groupOf(head.event) && r.count >= received
		})
	})
}

// crashedEnough says that a host may send the head of a group to the dead-letter queue because it ran twice without an end that its
// record knows, the second time apart from others when its process died, and has been received so often that its next crash could be
// the last: protocol 17.7. A process may also die between the record's answer and the handler: the record knows of a start, and the
// checker of none.
func (f *fleet) crashedEnough(event string) bool {
	type receive struct {
		id    string
		count int
	}
	died, received, starts, ran, copies := 0, 0, 0, map[receive]bool{}, map[string]bool{}
	for _, r := range f.checker.runs(event) {
		starts++
		died += count(r.killed)
		ran[receive{r.m.ID, r.m.ReceiveCount}], copies[r.m.ID] = true, true
	}
	for id := range copies {
		for _, rc := range f.receipts[id] {
			received = max(received, rc.count)
			starts += count(!ran[receive{id, rc.count}] && rc.cut())
		}
	}
	return f.fifo && died >= 1 && starts >= 2 && received >= f.plan.fewest()-1
}

// endangers says that the next crash of an event could be the last one for another message in its process.
func (f *fleet) endangers(n *node, event string, at time.Duration) bool {
	for _, all := range f.receipts {
		for _, r := range all {
			if r.node == n && r.event != event && r.at <= at && r.count >= f.plan.fewest()-1 {
				return true
			}
		}
	}
	return false
}

func (f *fleet) receiptsOfEvent(event string) (of []*receipt) {
	for _, all := range f.receipts {
		if all[0].event == event {
			of = append(of, all...)
		}
	}
	return of
}

// movedBy is the clause by which SQS has moved a message after its last receive.
func (f *fleet) movedBy(event, id string, received int, at time.Duration) tallied {
	last := f.receiptsOf(id, received)
	for _, c := range []struct {
		clause tallied
		holds  func(*receipt) bool
	}{
		{movedFailed, func(r *receipt) bool { return f.failedHere(event, r) }},
		{movedRunning, func(r *receipt) bool { return f.diedHere(event, r) }},
		{movedKilled, func(r *receipt) bool { return r.cut() && r.node.by == byKill }},
		{movedBeside, func(r *receipt) bool { return r.cut() && r.node.by == byExit && f.fewExits(event, id, received) }},
		{movedStopped, func(r *receipt) bool { return r.cut() && r.node.by == byStop && f.unrunInStop(r) }},
		{movedLost, func(r *receipt) bool { return r.lost }},
		{movedPolicy, func(r *receipt) bool { return f.changedSince(r, at) }},
		{movedUnread, f.unread},
		{movedThrottled, func(r *receipt) bool { return r.node == nil || r.disrupted }},
		{movedElsewhere, f.bounced},
		{movedBehind, f.behindAFailure},
		{movedUnasked, f.behindUnasked},
		{movedLate, func(r *receipt) bool { return f.outOfTime(r) || f.behindLongOnes(r) }},
		{movedUnavailable, f.unavailableHere},
		{movedHidden, func(r *receipt) bool { return at >= r.hidden && r.gaveBack == 0 && f.unreached(r) }},
	} {
		if slices.ContainsFunc(last, c.holds) {
			return c.clause
		}
	}
	another := func(r *receipt) bool { return at < r.hidden && (r.gaveBack == 0 || at < r.gaveBack) }
	switch done := f.doneAt(event); {
	case f.plan.duplicates > 0 && (done >= 0 && done < at || slices.ContainsFunc(last, another)):
		return movedCopy
	case len(last) == 0 && f.wasUnheard(id, at):
		return movedLost
	case len(last) == 0 && f.pool != nil && f.fifo:
		return movedNotInvoked
	}
	return ""
}
