package hosttest

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// This file checks what becomes of messages whose retention ends: protocol 17.15.

// deletedInQueue is no reason of a dead letter: SQS deletes what is in the queue when its retention is over.
const deletedInQueue tallied = "deleted by SQS in the queue (17.15a)"

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
