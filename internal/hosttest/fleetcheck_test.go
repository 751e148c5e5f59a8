package hosttest

import (
	"fmt"
	"maps"
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
	invocations     tallied = "invoked"
	throttled       tallied = "throttled invocations"
	responsesLost   tallied = "invocations with a lost response"
	timedOut        tallied = "timed out invocations"
	killedInside    tallied = "killed invocations"
	atKills         tallied = "runs at kills"
	expired         tallied = "successes after their leases"
	repeats         tallied = "successes of events that had succeeded before"
	queueChanges    tallied = "changed policies and dead-letter queues"
	unsignedCalls   tallied = "calls without credentials"
	processExits    tallied = "processes ended by a handler"
)

// String has a line for each.
func (t tally) String() string {
	text := ""
	for _, what := range slices.Sorted(maps.Keys(t)) {
		text += fmt.Sprintf("\n%7d %s", t[what], what)
	}
	return text
}

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
		deleted := !done && !dead[e.name] && f.deletedBySQS(e.name)
		f.tally[deletedInQueue] += count(deleted)
		switch {
		case rejected && (done || !dead[e.name] && !deleted):
			f.complain("not dead-lettered", "%s: completed %t, in the dead-letter queue %t, and its handler never succeeds", e.name, done, dead[e.name])
		case !rejected && !done && !dead[e.name] && !deleted:
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

// history is what happened to an event.
func (f *fleet) history(event, id string) string {
	text := ""
	ids := map[string]bool{id: true}
	for _, r := range f.checker.runs(event) {
		ids[r.m.ID] = true
		lease, _ := inboxkit.LeaseFrom(r.ctx)
		text += fmt.Sprintf("\n  %s: run %d by %s, receive %d, failed %t, killed %t, effect %t, ended %s, lease until %s", r.begun.Sub(f.start), r.n, f.nodes[r.process].name, r.m.ReceiveCount, r.failed, r.killed, r.effect, r.endedAfter(f.start), lease.Until.Sub(f.start))
	}
	for id := range ids {
		for _, r := range f.receipts[id] {
			name := "no environment"
			if r.node != nil {
				name = r.node.name
				if r.node.ended > 0 {
					name += fmt.Sprintf(" (ended by %s at %s)", r.node.by, r.node.ended)
				}
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
			text += fmt.Sprintf("\n  %s: receive %d by %s, lost %t, disrupted %t, given back at %s, hidden until %s", r.at, r.count, name, r.lost, r.disrupted, r.gaveBack, r.hidden)
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
		names = slices.DeleteFunc(slices.Clone(names), func(name string) bool {
			// A copy may run when SQS has deleted the message.
			late := f.plan.retention > 0 && f.doneAt(name) >= f.byKey[name].at+f.plan.retention
			return dead[name] || late
		})
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

// checkCalls checks that a worker whose store is down makes few calls of SQS from its third minute on: protocol 13, bound 6. It gives
// messages back after a minute. Where SQS is down too, the SDK repeats each call.
func (f *fleet) checkCalls() {
	for _, w := range f.plan.faults {
		queueToo := slices.ContainsFunc(f.plan.faults, func(q window) bool { return q.kind == queueAway && q.at < w.end() && q.end() > w.at })
		if w.kind != storeAway || w.host != everyone || w.isPartial() || queueToo {
			continue
		}
		for _, n := range f.nodes {
			for minute := int((max(w.at, n.born)+2*time.Minute-1)/time.Minute) + 1; time.Duration(minute+1)*time.Minute <= w.end(); minute++ {
				if n.index != notAWorker && n.calls[minute] > mostCalls {
					f.complain("calls", "%s made %d of SQS in minute %d, and the store is away since %s", n.name, n.calls[minute], minute, w.at)
				}
			}
		}
	}
}
