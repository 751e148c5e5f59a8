package hosttest

import (
	"fmt"
	"slices"
	"time"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/internal/inboxkit"
)

// tally counts what happened in simulations.
type tally map[tallied]int

type tallied string

const (
	allEvents       tallied = "events"
	deliveries      tallied = "delivered"
	allLimited      tallied = "started by limiters"
	allRuns         tallied = "run"
	publishFailures tallied = "published again after a failure"
	workersKilled   tallied = "killed workers"
	workersStopped  tallied = "stopped workers"
	workersFrozen   tallied = "frozen workers"
	deadRejected    tallied = "rejected to the dead-letter queue"
	deadFailed      tallied = "failed to the dead-letter queue"
	deadCrashed     tallied = "crashed to the dead-letter queue"
	deadCut         tallied = "cut off at the last receive"
	invocations     tallied = "invoked"
	throttled       tallied = "throttled invocations"
	responsesLost   tallied = "invocations with a lost response"
	timedOut        tallied = "timed out invocations"
	killedInside    tallied = "killed invocations"
	atKills         tallied = "runs at kills"
	expired         tallied = "successes after their leases"
	repeats         tallied = "successes of events that had succeeded before"
)

// maxComplaints is how many violations of one kind are printed.
const maxComplaints = 3

// complain reports a violation of a kind: all of them are counted, the first ones printed.
func (f *fleet) complain(kind, format string, args ...any) {
	f.Helper()
	if f.complaints == nil {
		f.complaints = map[string]int{}
	}
	if f.complaints[kind]++; f.complaints[kind] <= maxComplaints {
		f.Errorf(kind+": "+format, args...)
	}
	f.Fail()
}

func (f *fleet) countComplaints() {
	for kind, n := range f.complaints {
		if n > maxComplaints {
			f.Logf("%s: %d in all", kind, n)
		}
	}
	f.complaints = nil
}

func (f *fleet) count(what tallied, n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.tally[what] += n
}

// check checks the end of a simulation against the guarantees.
func (f *fleet) check() tally {
	for _, p := range f.checker.report() {
		f.Error(p)
	}
	for _, m := range f.sqs.Messages(f.url) {
		f.complain("still queued", "%s after calm: %s, received %d times, visible in %s: %s", f.plan.limit, m.Body,
			m.ReceiveCount, time.Until(m.VisibleAt), f.history(m.Attributes[sqsonce.AttrEventID], m.ID))
	}
	f.dead = f.checkDead()
	dead := f.dead
	effects := f.fleetEffects()
	for i := range f.plan.events {
		e := &f.plan.events[i]
		f.tally[allEvents]++
		f.tally[allRuns] += len(f.checker.runs(e.name))
		f.checkRepeats(e)
		done, rejected := f.record(e.name).completed(), e.reject || e.poison()
		switch {
		case rejected && (done || !dead[e.name]):
			f.complain("not dead-lettered", "%s: completed %t, in the dead-letter queue %t, and its handler never succeeds", e.name, done, dead[e.name])
		case !rejected && !done && !dead[e.name]:
			f.complain("lost", "%s is neither completed nor in the dead-letter queue", e.name)
		case f.plan.inbox && done != (effects[e.name] == 1) || effects[e.name] > 1:
			f.complain("not once", "%s: completed %t, and its effect happened %d times through the inbox", e.name, done, effects[e.name])
		}
	}
	f.checkLastReceives()
	f.checkFleetOrder(dead)
	f.checkCalls()
	f.checkLimits()
	f.countComplaints()
	return f.tally
}

// checkRepeats checks the runs of one event. Where nothing keeps a run from its record, an event succeeds again only if a run
// died with its process, when it may have had its effect, or was abandoned and went on after its lease.
func (f *fleet) checkRepeats(e *eventPlan) {
	successes, dead, late := 0, 0, 0
	for _, r := range f.checker.runs(e.name) {
		successes += count(r.effect)
		dead += count(r.killed)
		late += count(r.expired)
	}
	again := max(successes-1, 0)
	f.tally[repeats] += again
	f.tally[atKills] += dead
	f.tally[expired] += late
	if f.plan.disturbsRecords() {
		return
	}
	if again > dead+late {
		f.complain("repeated", "%s succeeded %d times; %d of its runs died with their processes, %d went on after their lease", e.name, successes, dead, late)
	}
	// A process that serves several invocations is never frozen, and renews the lease of an abandoned handler.
	if late > 0 && (e.how != withLate || f.plan.perProcess > 1) {
		f.complain("expired", "%s: %d successes after the end of a lease", e.name, late)
	}
}

func count(b bool) int {
	if b {
		return 1
	}
	return 0
}

// checkDead checks why messages are in the dead-letter queue, and returns their events.
func (f *fleet) checkDead() map[string]bool {
	dead := map[string]bool{}
	for _, m := range f.sqs.Messages(f.dlq) {
		name, reason := m.Attributes[sqsonce.AttrEventID], m.Attributes[sqsonce.AttrRejectReason]
		dead[name] = true
		switch e := f.byKey[name]; {
		case reason != "" && e.reject:
			f.tally[deadRejected]++
		case reason != "" && f.failedEnough(name):
			f.tally[deadFailed]++
		case reason != "" && f.crashedEnough(name):
			f.tally[deadCrashed]++
		case reason != "":
			f.complain("dead-lettered too early", "%s was sent with reason %q: %s", name, reason, f.history(name, m.ID))
		default:
			f.checkMoved(name, m.ID, m.ReceiveCount)
		}
	}
	return dead
}

// failedEnough says that a host may send an event to the dead-letter queue with its error: its handler failed
// MaxAttempts times in one receive by a worker, or failed at the last receive by the function, or, as the head of its group, at the
// one before that.
func (f *fleet) failedEnough(event string) bool {
	type hold struct {
		p     *process
		id    string
		count int
	}
	failed := map[hold]int{}
	for _, r := range f.checker.runs(event) {
		abandoned := f.nodes[r.process].index == notAWorker && !r.effect // and the process died later
		if !r.failed && !abandoned {
			continue
		}
		h := hold{r.process, r.m.ID, r.m.ReceiveCount}
		failed[h]++
		if failed[h] >= min(f.plan.receives, 10) || f.nodes[r.process].index == notAWorker && r.m.ReceiveCount >= f.plan.receives-1 {
			return true
		}
	}
	return false
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
			starts += count(!ran[receive{id, rc.count}] && f.disrupted(rc))
		}
	}
	return f.fifo && died >= 1 && starts >= 2 && received >= f.plan.receives-1
}

// checkMoved checks a message that SQS has moved: after its last receive its handler failed, or a disruption hit it. A run in
// the function that had not returned at the invocation's deadline failed too.
func (f *fleet) checkMoved(event, id string, count int) {
	last := f.receiptsOf(id, count)
	for _, r := range f.checker.runs(event) {
		late := f.nodes[r.process].index == notAWorker && !r.effect
		if r.m.ID == id && r.m.ReceiveCount == count && (r.failed || late) {
			f.tally[deadFailed]++
			return
		}
	}
	for _, r := range last {
		if f.failedHere(event, r) {
			f.tally[deadFailed]++
			return
		}
		if f.disrupted(r) || f.bounced(r) || f.outOfTime(r) || f.behindAFailure(r) {
			f.tally[deadCut]++
			return
		}
	}
	if f.plan.duplicates > 0 && f.doneAt(event) >= 0 { // a copy that SQS made of it, with the receives that it had
		f.tally[deadCut]++
		return
	}
	if len(last) == 0 { // the answer came to a receive that nobody waited for any more, or to a mapping that did not invoke
		f.tally[deadCut]++
		return
	}
	f.complain("moved unrun", "%s: its last receive passed without a failure or a disruption: %s", event, f.history(event, id))
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
// last receive, or the head at the one before that, goes to the dead-letter queue, and those behind it run.
func (f *fleet) behindAFailure(r *receipt) bool {
	if !f.fifo || r.node == nil {
		return false
	}
	for _, ahead := range r.batch {
		if ahead == r {
			return false
		}
		if groupOf(ahead.event) == groupOf(r.event) && ahead.count < f.plan.receives && f.failedHere(ahead.event, ahead) {
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
	return slices.ContainsFunc(f.checker.runs(r.event), func(x *run) bool {
		l, _ := inboxkit.LeaseFrom(x.ctx)
		until := min(x.endedAfter(f.start), l.Until.Sub(f.start)+leaseGuard)
		return x.process != r.node.process && x.begun.Sub(f.start) < r.at+functionTimeout && until > r.at
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

// disrupted says that a receive of a message could not end by itself.
func (f *fleet) disrupted(r *receipt) bool {
	n := r.node
	if r.lost || r.disrupted || n == nil {
		return true
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.ended > 0 && (r.gaveBack == 0 || r.gaveBack >= n.ended) {
		return true
	}
	if r.gaveBack > 0 {
		return false
	}
	if n.index == notAWorker { // it cannot hold what meets a fault
		return slices.ContainsFunc(f.plan.faults, func(w window) bool {
			return w.host == everyone && w.at <= r.at+functionTimeout && w.end() >= r.at
		})
	}
	hit := func(w *window) bool { return w.end() >= r.at && w.length >= 5*time.Second }
	for i := range n.frozen {
		if hit(&n.frozen[i]) {
			return true
		}
	}
	for i := range f.plan.faults { // it could not be extended
		if w := &f.plan.faults[i]; w.kind == queueAway && (w.host == everyone || w.host == n.index) && hit(w) {
			return true
		}
	}
	return false
}

// checkLastReceives checks that no worker gave a message back at its last receive, unless it stopped, or its handler failed.
func (f *fleet) checkLastReceives() {
	for id, receipts := range f.receipts {
		for _, r := range receipts {
			n := r.node
			if r.count < f.plan.receives || r.gaveBack == 0 || n == nil || n.index == notAWorker || n.ended > 0 && r.gaveBack >= n.ended {
				continue
			}
			event := f.eventOf(id)
			if !f.failedHere(event, r) {
				f.complain("given back at its last receive", "%s by %s at %s, and it had not failed: %s", event, n.name, r.gaveBack, f.history(event, id))
			}
		}
	}
}

// failedHere says that the handler failed for a message in the process that has the receipt, after it. The run may have begun
// before: a worker takes the newer receipt of a message that it has.
func (f *fleet) failedHere(event string, r *receipt) bool {
	return r.node != nil && slices.ContainsFunc(f.checker.runs(event), func(x *run) bool {
		// A delivery ends when its record is released, after its handler: the newer receipt may come in between.
		return x.m.ID == r.id && x.process == r.node.process && (x.failed || f.refused(x)) && x.ended.Sub(f.start) >= r.at-time.Second
	})
}

// refused says that the store may have refused the transaction of a handler that had run, while a question passed: protocol 17.3 holds
// that against the message, also where only a part of the calls fails.
func (f *fleet) refused(x *run) bool {
	return f.plan.inbox && x.effect && slices.ContainsFunc(f.plan.faults, func(w window) bool {
		return w.kind == storeAway && w.isPartial() && w.has(x.ended.Sub(f.start), w.host)
	})
}

func (f *fleet) eventOf(id string) string {
	for _, e := range f.plan.events {
		for _, r := range f.checker.runs(e.name) {
			if r.m.ID == id {
				return e.name
			}
		}
	}
	return "message " + id
}

// history is what happened to an event.
func (f *fleet) history(event, id string) string {
	text := ""
	ids := map[string]bool{id: true}
	for _, r := range f.checker.runs(event) {
		ids[r.m.ID] = true
		text += fmt.Sprintf("\n  %s: run %d by %s, receive %d, failed %t, killed %t, effect %t", r.begun.Sub(f.start), r.n, f.nodes[r.process].name, r.m.ReceiveCount, r.failed, r.killed, r.effect)
	}
	for id := range ids {
		for _, r := range f.receipts[id] {
			name := "no environment"
			if r.node != nil {
				name = r.node.name
			}
			for _, b := range r.batch {
				if r.node != nil && groupOf(b.event) == groupOf(r.event) {
					text += "\n    in the invocation: " + b.event
					for _, x := range f.checker.runs(b.event) {
						if x.process == r.node.process && x.ended.Sub(f.start) >= r.at && x.begun.Sub(f.start) <= r.at+functionTimeout {
							text += fmt.Sprintf(", ran from %s to %s, failed %t", x.begun.Sub(f.start), x.ended.Sub(f.start), x.failed)
						}
					}
				}
			}
			text += fmt.Sprintf("\n  %s: receive %d by %s, lost %t, disrupted %t, given back at %s", r.at, r.count, name, r.lost, r.disrupted, r.gaveBack)
		}
	}
	return text
}

// checkFleetOrder checks the order of the effects in each group. An event that was dead-lettered, or came twice, has none.
func (f *fleet) checkFleetOrder(dead map[string]bool) {
	if !f.fifo {
		return
	}
	position := map[string]int{}
	for i := range f.plan.events {
		position[f.plan.events[i].name] = i
	}
	order := f.checker.order
	if f.plan.inbox {
		order = f.ledgerOrder()
	}
	for group, names := range order {
		names = slices.DeleteFunc(slices.Clone(names), func(name string) bool { return dead[name] })
		for i := 1; i < len(names); i++ {
			if a, b := names[i-1], names[i]; position[a] > position[b] {
				f.complain("reordered", "group %s: %s had its effect after %s: %s%s", group, b, a, f.history(a, ""), f.history(b, ""))
			}
		}
	}
}

// mostCalls is how many calls of SQS a minute a worker makes in an outage. It extends every 20 s what has fewer than two receives left,
// and what has succeeded and waits for its complete.
const mostCalls = 30

// checkCalls checks that a worker whose store is down for long makes few calls of SQS: protocol 13, bound 6. Where SQS is down too, the
// SDK repeats each call.
func (f *fleet) checkCalls() {
	for _, w := range f.plan.faults {
		queueToo := slices.ContainsFunc(f.plan.faults, func(q window) bool { return q.kind == queueAway && q.at < w.end() && q.end() > w.at })
		if w.kind != storeAway || w.host != everyone || w.isPartial() || queueToo {
			continue
		}
		for minute := int((w.at+2*time.Minute-1)/time.Minute) + 1; time.Duration(minute+1)*time.Minute <= w.end(); minute++ {
			for _, n := range f.nodes {
				if n.index != notAWorker && n.calls[minute] > mostCalls {
					f.complain("calls", "%s made %d of SQS in minute %d, and the store is away since %s", n.name, n.calls[minute], minute, w.at)
				}
			}
		}
	}
}
