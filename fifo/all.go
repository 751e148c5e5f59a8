package fifo

import (
	"context"
	"errors"
	"time"
)

// gatherTime is how long PublishAll waits for capacity before it sends what it has.
const gatherTime = 10 * time.Millisecond

// cancelGrace is how long a call waits for a request that it has cancelled, and for a logger: a [Client] that ignores its
// context does not hold it up.
const cancelGrace = 100 * time.Millisecond

// PublishAll sends events and waits for all results, without a linger. Use it in a Lambda function. The receipts have the
// index of their events; an event that failed has a zero one. The error joins one [*PublishError] per failed event.
//
// The events of a group keep their order. If one fails, the later ones of its group fail with [ErrGroupHalted].
//
// Calls that run at the same time share requests. When PublishAll returns, none of its goroutines and timers is left; what
// runs then belongs to other calls. When ctx ends, PublishAll returns at once, and a request that no other call waits for is
// cancelled. That takes some microseconds for each event. The error of an event is [ErrNotSent], or [ErrUnknownOutcome] if it may be in the queue. If it may, and events
// of other calls are behind it in its group, it is sent on for them. The same events may be published again.
func (p *Publisher) PublishAll(ctx context.Context, es []Event) ([]Receipt, error) {
	l, closeLane := p.openLane(ctx)
	defer closeLane()

	receipts, errs := make([]Receipt, len(es)), make([]error, len(es))
	entries := make([]*entry, len(es))
	last := make(map[string]*Pending) // of each group
	for i, ev := range es {
		if ctx.Err() != nil { // nothing more is accepted; checking the events would take as long as sending them
			h := p.accepting(ctx, ev)
			errs[i] = p.neverAccepted(&ev, foreign(context.Cause(ctx)))
			p.notAccepted(h, errs[i])
			continue
		}
		entries[i], errs[i] = p.enqueue(ctx, l, &entry{event: ev}, last[ev.Group], 1)
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
	p.waitLane(l, entries)

	p.mu.Lock()
	for i, e := range entries {
		if e != nil {
			receipts[i], errs[i] = p.readOrLeave(e, l.why())
			if !e.pending.hasResult {
				entries[i] = nil
			}
		}
	}
	p.mu.Unlock()
	for _, e := range entries {
		if e != nil {
			<-e.pending.done // after the hooks
		}
	}
	for i, err := range errs {
		errs[i] = withIndex(i, err)
	}
	p.awaitLimit(l.ctx)
	p.awaitReports()
	return receipts, errors.Join(errs...)
}

// openLane returns a lane that ends with ctx, or when Close cancels all requests.
func (p *Publisher) openLane(ctx context.Context) (_ *lane, closeLane func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(p.ctx, func() { cancel(context.Cause(p.ctx)) })
	l := newLane(ctx, p.ctx, gatherTime)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.lanes[l] = struct{}{}
	return l, func() {
		stop()
		cancel(nil)
		p.mu.Lock()
		defer p.mu.Unlock()
		l.closed = true
		p.forgetLane(l)
	}
}

// waitLane waits until all entries of a lane have results, or the lane has ended and its requests too.
func (p *Publisher) waitLane(l *lane, entries []*entry) {
	for _, e := range entries {
		if e == nil {
			continue
		}
		select {
		case <-e.pending.done:
			continue
		case <-l.ctx.Done(): // not ctx: between its end and that of l.ctx a failed attempt would be repeated
		}
		p.mu.Lock()
		requests := p.cancelLane(l)
		p.unlock()
		waitRequests(requests)
		return
	}
	// The goroutine of a request sets the results under the lock, and calls their hooks. Whoever has the lock, and the end of the
	// hooks, after that knows that the goroutine has nothing left to do for this call.
}

// cancelLane ends the entries of a lane that has ended, except for those that are sent on for other lanes and those that are in
// flight. It returns the requests that it cancelled: nobody waits for their results any more. The caller holds the lock.
func (p *Publisher) cancelLane(l *lane) (cancelled []*request) {
	for _, e := range l.unfinished() {
		r := e.request
		switch {
		case e.pending.hasResult: // halted by an entry before it
		case r == nil:
			p.cancel(e)
		case !r.isWanted():
			r.cancel(l.why())
			cancelled = append(cancelled, r)
		}
	}
	p.dispatch() // entries of other lanes may have moved up
	return cancelled
}

// cancel ends an entry whose lane has ended and which is not sent on for another lane. It reports whether it did. The caller
// holds the lock.
func (p *Publisher) cancel(e *entry) bool {
	why := e.lane.why()
	switch {
	case !e.unknown: // the entries behind it move up: its own caller decided to leave it out
		p.groups.remove(e)
		p.finish(e, Receipt{}, p.finalError(e, why))
	case p.handOn(e):
		return false
	default:
		p.fail(e, p.finalError(e, why))
	}
	return true
}

// handOn gives an entry that may be in the queue, and whose lane has ended, to the lane of an entry behind it: one that was
// sent before the outcome is certain could be delivered first. The caller holds the lock.
func (p *Publisher) handOn(e *entry) bool {
	for next := e.behind; next != nil; next = next.behind {
		if !next.lane.hasEnded() {
			ended := e.lane
			p.groups.hand(e, next.lane)
			p.forgetLane(ended)
			return true
		}
	}
	return false
}

func waitRequests(requests []*request) {
	ended := make([]<-chan struct{}, len(requests))
	for i, r := range requests {
		ended[i] = r.done
	}
	waitFor(ended...)
}

// waitFor waits until all is closed, for cancelGrace at most.
func waitFor(ended ...<-chan struct{}) {
	grace := time.NewTimer(cancelGrace)
	defer grace.Stop()
	for _, c := range ended {
		select {
		case <-c:
		case <-grace.C:
			return
		}
	}
}
