package limit

import (
	"context"
	"time"

	"github.com/sqsonce/sqsonce"
)

// leastIntake is the shortest time after which an intake without a start is asked again: a receive for several messages costs as
// much as one for a single message.
const leastIntake = portion

// Intake returns a function for sqsworker.Options.Intake: the worker then asks before it receives, and receives no more messages than
// the rule's Rate allows. Messages wait in the queue instead of the worker, and cost one receive. Use it for a limit of the whole
// queue, with a Limiter of its own whose Handler you don't use: Handler would count each message again.
//
// The rule's key is "*", and its Concurrency doesn't count. In any time T at most (T + 1 s) * N / Per + Burst messages are received,
// with a Counter in DynamoDB (T + 2 s) * N / Per + Burst, and ten more for each worker. The error is a [*sqsonce.OptionError] if New has had no rule of that name with a Rate.
func (l *Limiter) Intake(rule string) (func(ctx context.Context, n int) (granted int, again time.Duration), error) {
	for _, r := range l.rules {
		if r.Name == rule && (r.PlanOf != nil || r.fixed.step > 0) {
			return func(ctx context.Context, n int) (int, time.Duration) { return l.intake(ctx, r, n) }, nil
		}
	}
	return nil, &sqsonce.OptionError{Package: "limit", Field: "rule", Problem: "is " + rule + ", must be the Name of a rule with a Rate"}
}

// intake grants up to n starts: those that are due.
func (l *Limiter) intake(ctx context.Context, r *rule, n int) (granted int, again time.Duration) {
	u, err := r.use("*")
	if err != nil {
		l.o.Logger.ErrorContext(ctx, "limit: PlanOf failed: nothing is received", "rule", r.Name, "error", err)
		return 0, mostAfter
	}
	u.plan.slots = 0
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return 0, mostAfter
	}
	now := time.Now()
	g := u.gate(now)
	way := &pass{l: l, ctx: ctx, m: &sqsonce.Message{ReceiveCount: 2}, mayHold: true} // its messages wait in the queue
	tickets := make([]*ticket, n)
	for i := range tickets {
		tickets[i] = way.ticket(g, 1)
		g.line.add(tickets[i])
	}
	g.advance(now)
	now = way.await(tickets[0])
	again = leastWait
	if at, known := g.at(now, tickets[n-1]); known && tickets[n-1].state == waiting {
		again = max(at.Sub(now), leastIntake)
	}
	for _, t := range tickets {
		if t.state == reserved {
			g.use(t)
			g.leave(t, now, false)
			granted++
		} else {
			g.leave(t, now, true)
		}
	}
	g.advance(now)
	return granted, again
}
