package hosttest

import (
	"slices"
	"time"

	"github.com/sqsonce/sqsonce/internal/inboxkit"
)

// This file finds how a receive of a message ended.

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

// fewExits says that the messages that end processes took no more than two receives of another one in which it did not run, and one more for
// each beyond the first. One that had run there was held for its next attempt (17.7e), or has ended the process itself.
func (f *fleet) fewExits(event, id string, received int) bool {
	exits, poisons := map[int]bool{}, 0
	for _, r := range f.receipts[id] {
		ran := func(x *run) bool { return x.process == r.node.process && x.m.ID == id && x.m.ReceiveCount == r.count }
		if r.cut() && r.node.by == byExit && !slices.ContainsFunc(f.checker.runs(event), ran) {
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

// unrunInStop says that a worker could not run a message in its stop: something that it needs was away, its event was in progress
// elsewhere, or handlers or a freeze took the time of the stop.
func (f *fleet) unrunInStop(r *receipt) bool {
	n := r.node
	away := slices.ContainsFunc(f.plan.faults, func(w window) bool {
		return (w.keepsUnrun() || w.cutsOff()) && w.concerns(n) && w.at <= n.ended+stopTime && w.end() >= r.at
	})
	took := func(begun, ended time.Duration) bool {
		return begun <= n.ended+stopTime && ended >= n.ended+stopTime/3
	}
	frozen := slices.ContainsFunc(n.frozen, func(w window) bool { return took(w.at, w.end()) })
	return away || frozen || f.inProgressElsewhere(r, n.ended, n.ended+stopTime) || slices.ContainsFunc(f.checker.runsIn(n.process), func(x *run) bool {
		return took(x.begun.Sub(f.start), x.endedAfter(f.start))
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
	read := r.node.beliefs[0].at
	for _, b := range r.node.beliefs {
		if b.at <= until {
			read = b.at
		}
	}
	hit := func(w window) bool { return w.at < until && w.end() > read+5*time.Minute }
	failed := slices.ContainsFunc(r.node.frozen, hit) || slices.ContainsFunc(f.plan.faults, func(w window) bool { return hit(w) && w.cutsOff() && w.concerns(r.node) })
	if until-read > longestBelief && !failed {
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

// longestBelief is after how long a host has read the policy again, with a repetition of a read that the network lost: 17.11, 17.11a.
const longestBelief = 6*time.Minute + 30*time.Second

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
	most := f.plan.movesAfter(r.at)
	return f.behindOne(r, func(ahead *receipt) bool {
		return (most == 0 || ahead.count < most) && f.failedHere(ahead.event, ahead)
	})
}

// behindLongOnes says that two or more before the message failed in the function's invocation, one of the later ones when it was nearly
// over. Each leaves half of the time that is left to those behind it, or an eighth where they are quick as far as the process
// knows, less a send: protocol 9.7b, 9.7d.
func (f *fleet) behindLongOnes(r *receipt) bool {
	failed, stop := 0, r.at+functionTimeout-functionTimeout/20
	return f.behindOne(r, func(ahead *receipt) bool {
		if !f.failedHere(ahead.event, ahead) {
			return false
		}
		failed++
		return failed > 1 && slices.ContainsFunc(f.checker.runs(ahead.event), func(x *run) bool {
			return x.process == r.node.process && x.m.ReceiveCount == ahead.count && x.endedAfter(f.start) > stop-2*time.Second
		})
	})
}

// behindUnasked says that one before the message failed at its last receive, when SQS did not answer the function. It could neither send
// that one nor find out whether its dead-letter queue exists: without that it would come again, behind this one.
func (f *fleet) behindUnasked(r *receipt) bool {
	most := f.plan.movesAfter(r.at)
	return f.behindOne(r, func(ahead *receipt) bool {
		return most > 0 && ahead.count >= most && f.failedHere(ahead.event, ahead) && slices.ContainsFunc(f.plan.faults, func(w window) bool {
			return w.cutsOff() && w.concerns(r.node) && w.at <= r.at+functionTimeout && w.end() >= r.at
		})
	})
}

// behindOne says that a message of a FIFO group was behind such a one of its group in the function's batch.
func (f *fleet) behindOne(r *receipt, such func(ahead *receipt) bool) bool {
	at := slices.Index(r.batch, r)
	return f.fifo && r.node != nil && slices.ContainsFunc(r.batch[:max(at, 0)], func(ahead *receipt) bool {
		return groupOf(ahead.event) == groupOf(r.event) && such(ahead)
	})
}

// bounced says that the function had received a message whose event was in progress elsewhere, or one behind it in its
// group. It cannot hold them, and the receive is spent.
func (f *fleet) bounced(r *receipt) bool {
	return slices.ContainsFunc(r.batch, func(head *receipt) bool {
		return (head == r || f.fifo && groupOf(head.event) == groupOf(r.event)) && f.inProgressElsewhere(head, r.at, r.at+functionTimeout)
	})
}

// inProgressElsewhere says that another process had the event of a receive, by its record, at some time of a period.
func (f *fleet) inProgressElsewhere(r *receipt, from, to time.Duration) bool {
	return r.node != nil && slices.ContainsFunc(f.checker.runs(r.event), func(x *run) bool {
		l, _ := inboxkit.LeaseFrom(x.ctx)
		until := l.Until.Sub(f.start) + leaseGuard
		if ended := x.endedAfter(f.start); !f.nodes[x.process].unreleased(ended, until) {
			until = min(until, ended)
		}
		return x.process != r.node.process && x.begun.Sub(f.start) < to && until > from
	})
}

// unreleased says that a process may not have reached the store between the end of a run and that of its lease.
func (n *node) unreleased(from, to time.Duration) bool {
	hit := func(w window) bool { return w.at < to && w.end() > from }
	return slices.ContainsFunc(n.frozen, hit) || slices.ContainsFunc(n.f.plan.faults, func(w window) bool {
		return hit(w) && w.concerns(n) && (w.kind == storeAway || w.kind == lossy || w.kind == latePackets)
	})
}

// leaseGuard is how much longer than its end a lease counts for others: the margin, the second that a Date leaves out to the holder and to the
// taker, and time for requests and drift. Protocol 5.1 to 5.3.
const leaseGuard = 4*time.Second + 100*time.Millisecond

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
