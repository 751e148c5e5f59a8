package fifo

import (
	"context"
	"errors"
	"slices"
	"time"
)

// gatherTime is how long PublishAll waits for capacity before it sends what it has.
const gatherTime = 10 * time.Millisecond

// PublishAll sends events and waits for all results, without a linger. Use it in a Lambda function. The receipts have the
// index of their events; an event that failed has a zero one. The error joins one [*PublishError] per failed event.
//
// The events of a group keep their order. If one fails, the later ones of its group fail with [ErrGroupHalted].
//
// When PublishAll returns, none of its goroutines and timers is left. When ctx ends, the requests in flight are cancelled:
// the error of an event is [ErrNotSent], or [ErrUnknownOutcome] if it may be in the queue. The same events may then be
// published again: SQS recognises a copy that arrives within five minutes of the first call. Events of other calls that wait
// in the group behind one with an unknown outcome do not fail with it: their calls send it on, and then them.
func (p *Publisher) PublishAll(ctx context.Context, es []Event) ([]Receipt, error) {
	l, closeLane := p.openLane(ctx)
	defer closeLane()

	receipts, errs := make([]Receipt, len(es)), make([]error, len(es))
	entries := make([]*entry, len(es))
	last := make(map[string]*Pending) // of each group
	for i, ev := range es {
		entries[i], errs[i] = p.enqueue(ctx, l, ev, last[ev.Group])
		switch {
		case !p.fifo: // no order, and no event halts another
		case errs[i] != nil:
			last[ev.Group] = failedPending(ev, errs[i])
		default:
			last[ev.Group] = entries[i].pending
		}
	}

	p.mu.Lock()
	l.flush = true
	p.dispatch()
	p.mu.Unlock()
	for i, e := range entries {
		if e == nil {
			continue
		}
		select {
		case <-e.pending.done:
		case <-l.ctx.Done(): // not ctx: between its end and that of l.ctx a failed attempt would be repeated
			p.cancelLane(l)
			<-e.pending.done // the context of its request has ended
		}
		receipts[i], errs[i] = e.pending.receipt, e.pending.err
	}
	p.waitCarried(l)
	p.lines.Flush(logFlush)
	for i, err := range errs {
		errs[i] = withIndex(i, err)
	}
	return receipts, errors.Join(errs...)
}

// openLane returns a lane whose requests end with ctx, or when Close cancels all requests.
func (p *Publisher) openLane(ctx context.Context) (_ *lane, closeLane func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(p.ctx, func() { cancel(context.Cause(p.ctx)) })
	l := &lane{ctx: ctx, linger: gatherTime}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.lanes = append(p.lanes, l)
	return l, func() {
		// The goroutine of a request sets the results under the lock. Whoever has the lock after that knows that the goroutine
		// has nothing left to do.
		p.mu.Lock()
		defer p.mu.Unlock()
		p.lanes = slices.DeleteFunc(p.lanes, func(other *lane) bool { return other == l })
		stop()
		cancel(nil)
	}
}

// cancelLane cancels the entries of a lane whose context has ended. Those in flight get their results when their requests
// end.
func (p *Publisher) cancelLane(l *lane) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cancelWaiting(l)
	p.dispatch() // entries of other lanes may have moved up
}

// cancelWaiting cancels the entries of a lane that are not in flight. The caller holds the lock.
func (p *Publisher) cancelWaiting(l *lane) {
	for _, e := range p.unfinished() {
		if e.lane == l && !e.inFlight && !e.pending.isDone() {
			p.cancel(e)
		}
	}
}

// cancel ends an entry whose lane's context has ended. If other callers' events are behind one that may be in the queue, it is
// sent on for them. The caller holds the lock.
func (p *Publisher) cancel(e *entry) {
	why := e.finalError(context.Cause(e.lane.ctx))
	switch {
	case !e.unknown:
		p.groups.remove(e)
		p.finish(e, Receipt{}, why)
	case p.carry(e):
		p.finish(e, Receipt{}, why)
	default:
		p.fail(e, why)
	}
}
