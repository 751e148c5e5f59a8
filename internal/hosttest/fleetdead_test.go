package hosttest

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/internal/inboxkit"
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
	movedStopped     tallied = "moved: its process was stopped, and it was unavailable or found no slot (13.2, 15.12a)"
	movedBeside      tallied = "moved: another message ended its process, and not all of its receives (17.7b)"
	movedLost        tallied = "moved: the answer was lost (17.15e, 17.15f)"
	movedHidden      tallied = "moved: SQS was not reached to hide it longer (1.2)"
	movedPolicy      tallied = "moved: the host knew of a later last receive (17.11)"
	movedUnread      tallied = "moved: a function could not read which receive is the last one (17.11c)"
	movedThrottled   tallied = "moved: Lambda did not invoke the function, or lost its answer (17.3b)"
	movedUnavailable tallied = "moved: unavailable in a function (17.3b)"
	movedElsewhere   tallied = "moved: in progress elsewhere, and a function cannot hold it (9.7c)"
	movedBehind      tallied = "moved: behind one that failed in a function (9.5)"
	movedLate        tallied = "moved: no time left in a function's invocation (7.17)"
	movedNotInvoked  tallied = "moved: not invoked, since one before it in its group failed"
	movedCopy        tallied = "moved: SQS's copy of one that a host has or had done"
)

// deletedInQueue is no reason of a dead letter: SQS deletes what is in the queue when its retention is over.
const deletedInQueue tallied = "deleted by SQS in the queue (17.15a)"

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
		case f.failedEnough(event, n, at, sqsonce.OutcomeUnavailable):
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

// expires says that a message of an event had too little time left at a host for another receive.
func (f *fleet) expires(event string, n *node, at time.Duration) bool {
	visibility := fleetVisibility
	if n.index == notAWorker {
		visibility = 6 * functionTimeout
	}
	const dates = 3 * time.Second // SQS's clock is known to the second
	return f.plan.retention > 0 && slices.ContainsFunc(f.receiptsOfEvent(event), func(r *receipt) bool {
		return r.node == n && at-r.sent >= f.plan.retention-leastLeft(visibility)-dates
	})
}

// leastLeft is the last part of a message's life, which no delay reaches.
func leastLeft(visibility time.Duration) time.Duration { return max(2*visibility, time.Minute) }

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
		{movedBeside, func(r *receipt) bool { return r.cut() && r.node.by == byExit && f.fewExits(id, received) }},
		{movedStopped, func(r *receipt) bool { return r.cut() && r.node.by == byStop && f.unrunInStop(r) }},
		{movedLost, func(r *receipt) bool { return r.lost }},
		{movedPolicy, func(r *receipt) bool { return f.changedSince(r, at) }},
		{movedUnread, f.unread},
		{movedThrottled, func(r *receipt) bool { return r.node == nil || r.disrupted }},
		{movedElsewhere, f.bounced},
		{movedBehind, f.behindAFailure},
		{movedLate, f.outOfTime},
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

// wasUnheard says that after the receives that are known of a message there was one that its process gave up.
func (f *fleet) wasUnheard(id string, at time.Duration) bool {
	var hidden time.Duration
	for _, r := range f.receipts[id] {
		hidden = max(hidden, r.hidden)
	}
	return slices.ContainsFunc(f.unheard, func(w window) bool { return w.at < at && w.end() >= hidden })
}

// failedHere says that the handler failed for a message in the process that has the receipt, after it. The run may have begun
// before: a worker takes the newer receipt of a message that it has. A run in the function that had not returned at the invocation's
// deadline failed too.
func (f *fleet) failedHere(event string, r *receipt) bool {
	return r.node != nil && slices.ContainsFunc(f.checker.runs(event), func(x *run) bool {
		if x.m.ID != r.id || x.process != r.node.process {
			return false
		}
		late := r.node.index == notAWorker && !x.effect && x.m.ReceiveCount == r.count
		// A delivery ends when its record is released, after its handler: the newer receipt may come in between.
		return late || (x.failed || f.refused(x)) && x.ended.Sub(f.start) >= r.at-time.Second
	})
}

// refused says that the store may have refused the transaction of a handler that had run, while a question passed: protocol 17.3 holds
// that against the message, also where only a part of the calls fails.
func (f *fleet) refused(x *run) bool {
	return f.plan.inbox && x.effect && slices.ContainsFunc(f.plan.faults, func(w window) bool {
		return w.kind == storeAway && w.isPartial() && w.has(x.ended.Sub(f.start), w.host)
	})
}

// diedHere says that the message ran when the process with the receipt died.
func (f *fleet) diedHere(event string, r *receipt) bool {
	return r.node != nil && slices.ContainsFunc(f.checker.runs(event), func(x *run) bool {
		return x.m.ID == r.id && x.process == r.node.process && x.killed
	})
}

// cut says that the process ended while it had the message.
func (r *receipt) cut() bool {
	n := r.node
	return n != nil && n.ended > 0 && n.ended <= r.hidden+time.Second && (r.gaveBack == 0 || r.gaveBack >= n.ended)
}

// fewExits says that the messages that end processes took no more than two receives of another one, and one more for each beyond the first.
func (f *fleet) fewExits(id string, received int) bool {
	exits, poisons := map[int]bool{}, 0
	for _, r := range f.receipts[id] {
		if r.cut() && r.node.by == byExit {
			exits[r.count] = true
		}
	}
	for i := range f.plan.events {
		if e := &f.plan.events[i]; e.how == withExit {
			poisons += 1 + len(e.copies)
		}
	}
	return len(exits) < received || received <= 1+poisons
}

// unrunInStop says that a worker could not run a message in its stop: something that it needs was away, or handlers took the time of the
// stop.
func (f *fleet) unrunInStop(r *receipt) bool {
	n := r.node
	away := slices.ContainsFunc(f.plan.faults, func(w window) bool {
		return (w.keepsUnrun() || w.cutsOff()) && w.concerns(n) && w.at <= n.ended+stopTime && w.end() >= r.at
	})
	return away || slices.ContainsFunc(f.checker.runsIn(n.process), func(x *run) bool {
		return x.begun.Sub(f.start) <= n.ended+stopTime && x.endedAfter(f.start) >= n.ended+stopTime/3
	})
}

const stopTime = 30 * time.Second

// changedSince says that a host took a receive for one before the last by a policy that it had read and that has changed since.
func (f *fleet) changedSince(r *receipt, at time.Duration) bool {
	until := r.hidden
	switch {
	case r.gaveBack > 0:
		until = r.gaveBack
	case r.cut():
		until = r.node.ended
	}
	if r.node == nil || len(r.node.beliefs) == 0 || r.node.beliefs[0].at > until || len(f.plan.changes) == 0 {
		return false
	}
	from := until
	if r.node.index == notAWorker {
		from = r.at // it decides at some time of the invocation
	}
	return slices.ContainsFunc(r.node.believed(from, until), func(known int) bool {
		return known != f.plan.movesAfter(at) && (known == 0 || r.count < known)
	})
}

// unread says that a function could not read the policy: it does not know of a last receive, in which it would run what is postponed.
func (f *fleet) unread(r *receipt) bool {
	n, until := r.node, r.at+functionTimeout
	return n != nil && n.index == notAWorker && (len(n.beliefs) == 0 || n.beliefs[0].at > r.at) && slices.ContainsFunc(f.plan.faults, func(w window) bool {
		return w.cutsOff() && w.concerns(n) && w.at <= until && w.end() >= r.at
	})
}

// unreached says that SQS could not be reached, or the process was frozen, in the last visibility timeout of a receipt.
func (f *fleet) unreached(r *receipt) bool {
	n := r.node
	hit := func(w window) bool { return w.at <= r.hidden && w.end() >= r.hidden-fleetVisibility }
	return n != nil && n.index != notAWorker && (slices.ContainsFunc(n.frozen, hit) || slices.ContainsFunc(f.plan.faults, func(w window) bool {
		return hit(w) && w.concerns(n) && w.cutsOff()
	}))
}

// cutsOff says that calls of SQS fail meanwhile.
func (w *window) cutsOff() bool {
	return w.kind == queueAway || w.kind == lossy || w.kind == latePackets
}

// keepsUnrun says that handlers are unavailable meanwhile.
func (w *window) keepsUnrun() bool {
	return w.kind == storeAway || w.kind == dependencyAway || w.kind == dependencyAsks || w.kind == lossy || w.kind == latePackets
}

func (w *window) concerns(n *node) bool { return w.host == everyone || w.host == n.index }

// unavailableHere says that something that the message needs was away in its invocation.
func (f *fleet) unavailableHere(r *receipt) bool {
	return r.node != nil && r.node.index == notAWorker && slices.ContainsFunc(f.plan.faults, func(w window) bool {
		return w.keepsUnrun() && w.concerns(r.node) && w.at <= r.at+functionTimeout && w.end() >= r.at
	})
}

// outOfTime says that the invocation had no time left for a FIFO message: those before it in its group took so long that
// one as long as the plan's longest might not have ended. What Lambda's adapter does not start spends its receive: README,
// Limits.
func (f *fleet) outOfTime(r *receipt) bool {
	if !f.fifo || r.node == nil {
		return false
	}
	var longest time.Duration
	for i := range f.plan.events {
		longest = max(longest, f.plan.events[i].takes)
	}
	for _, ahead := range r.batch {
		if ahead == r {
			return false
		}
		if groupOf(ahead.event) != groupOf(r.event) {
			continue
		}
		for _, x := range f.checker.runs(ahead.event) {
			if left := r.at + functionTimeout - deadlineMargin - x.ended.Sub(f.start); x.process == r.node.process && left > 0 && left < longest {
				return true
			}
		}
	}
	return false
}

// behindAFailure says that the function did not start a FIFO message because one before it in its group failed, and will be
// tried again. Several that fail one after another can use up a follower's receives: README, Limits. One that fails at its
// last receive, or the head at the one before that, goes to the dead-letter queue, and those behind it run, if that queue takes it.
func (f *fleet) behindAFailure(r *receipt) bool {
	if !f.fifo || r.node == nil {
		return false
	}
	for _, ahead := range r.batch {
		if ahead == r {
			return false
		}
		most := f.plan.movesAfter(r.at)
		if groupOf(ahead.event) == groupOf(r.event) && (most == 0 || ahead.count < most) && f.failedHere(ahead.event, ahead) {
			return true
		}
	}
	return false
}

// bounced says that the function had received a message whose event was in progress elsewhere, or one behind it in its
// group. It cannot hold them, and the receive is spent.
func (f *fleet) bounced(r *receipt) bool {
	return slices.ContainsFunc(r.batch, func(head *receipt) bool {
		return (head == r || f.fifo && groupOf(head.event) == groupOf(r.event)) && f.inProgressElsewhere(head)
	})
}

func (f *fleet) inProgressElsewhere(r *receipt) bool {
	return r.node != nil && slices.ContainsFunc(f.checker.runs(r.event), func(x *run) bool {
		l, _ := inboxkit.LeaseFrom(x.ctx)
		until := l.Until.Sub(f.start) + leaseGuard
		if ended := x.endedAfter(f.start); !f.nodes[x.process].unreleased(ended, until) {
			until = min(until, ended)
		}
		return x.process != r.node.process && x.begun.Sub(f.start) < r.at+functionTimeout && until > r.at
	})
}

// unreleased says that a process may not have reached the store between the end of a run and that of its lease.
func (n *node) unreleased(from, to time.Duration) bool {
	hit := func(w window) bool { return w.at < to && w.end() > from }
	return slices.ContainsFunc(n.frozen, hit) || slices.ContainsFunc(n.f.plan.faults, func(w window) bool {
		return hit(w) && w.concerns(n) && (w.kind == storeAway || w.kind == lossy || w.kind == latePackets)
	})
}

// leaseGuard is how much longer than its end a lease counts for others: the guard, and the second that a Date leaves out.
const leaseGuard = 3 * time.Second

// endedAfter is when a run has returned, counted from start, or a late time where its process has died before.
func (r *run) endedAfter(start time.Time) time.Duration {
	if r.ended.IsZero() {
		return toTheEnd
	}
	return r.ended.Sub(start)
}

// checkLastReceives checks that no worker gave a message back at its last receive by the policy that it had read, unless it stopped, or its
// handler failed.
func (f *fleet) checkLastReceives() {
	for id, receipts := range f.receipts {
		for _, r := range receipts {
			n := r.node
			if r.gaveBack == 0 || n == nil || n.index == notAWorker || n.ended > 0 && r.gaveBack >= n.ended {
				continue
			}
			known := n.believed(r.gaveBack-time.Second, r.gaveBack)
			more := slices.ContainsFunc(known, func(most int) bool { return most == 0 || r.count < most })
			if !more && !f.failedHere(r.event, r) {
				f.complain("given back at its last receive", "%s by %s at %s, and it had not failed, by maxReceiveCount %d, born %s, read %v: %s", r.event, n.name, r.gaveBack, known, n.born, n.beliefs, f.history(r.event, id))
			}
		}
	}
}

// deletedBySQS says that the retention of all messages of an event ended in the queue. A worker may not have let it come to that.
func (f *fleet) deletedBySQS(event string) bool {
	if f.plan.retention == 0 {
		return false
	}
	last := map[string]*receipt{}
	for _, r := range f.receiptsOfEvent(event) {
		if old := last[r.id]; old == nil || old.at <= r.at {
			last[r.id] = r
		}
	}
	for id, r := range last {
		if why := f.kept(r, r.sent+f.plan.retention); why != "" {
			f.complain("kept until SQS deleted it", "%s: %s: %s", event, why, f.history(event, id))
		}
	}
	return true
}

// kept is what a worker did wrong with a message that it had last, and that SQS has deleted at a time: it hid the message for too long, or
// held it for another attempt, where it could have sent it to the dead-letter queue. Protocol 17.15.
func (f *fleet) kept(r *receipt, end time.Duration) string {
	n, latest := r.node, end-leastLeft(fleetVisibility)
	if n == nil || n.index == notAWorker || r.lost || r.cut() || len(n.beliefs) == 0 || n.beliefs[0].at > latest || r.hidden < end || f.noDLQ(n, latest-askedAgain, end) {
		return ""
	}
	if r.gaveBack > 0 {
		return fmt.Sprintf("hidden from %s to %s", r.gaveBack, r.hidden)
	}
	w := f.plan.workers[n.index]
	why, slots := "", min(cmp.Or(w.concurrency, 10), cmp.Or(w.inFlight, 10))
	for _, x := range f.checker.runsIn(n.process) {
		begun, ended := x.begun.Sub(f.start), x.endedAfter(f.start)
		if slots -= count(begun <= latest && ended > latest); slots == 0 {
			return "" // it waited for a slot: 17.15h
		}
		if x.m.ID == r.id && begun >= r.at {
			if why = "held after a run"; ended > end-longestSend || ended > latest && n.unreleased(ended, end) {
				return ""
			}
		}
	}
	return why // "": it waited to run for the first time
}

// longestSend is how long a send to the dead-letter queue may take.
const longestSend = 10 * time.Second

// askedAgain is after how long a worker asks again a dead-letter queue that has refused.
const askedAgain = 30 * time.Second

// noDLQ says that a worker could not send to the dead-letter queue for some time of a period.
func (f *fleet) noDLQ(n *node, from, to time.Duration) bool {
	states := []queueState{f.plan.queueAt(from)}
	for _, s := range f.plan.changes {
		if s.at > from && s.at < to {
			states = append(states, s)
		}
	}
	hit := func(w window) bool { return w.at < to && w.end() > from }
	return slices.ContainsFunc(states, func(s queueState) bool { return s.noDLQ || s.receives == 0 }) || slices.Contains(n.believed(from, to), 0) ||
		slices.ContainsFunc(n.frozen, hit) || slices.ContainsFunc(f.plan.faults, func(w window) bool {
		return hit(w) && w.concerns(n) && (w.kind == dlqAway || w.cutsOff())
	})
}
