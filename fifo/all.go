package fifo

import (
	"context"
	"errors"
)

// PublishAll sends events and waits for all results, without a linger. Use it in a Lambda function. The receipts have the index
// of their events, and the receipt of a failed event is zero. The error joins one [*PublishError] per failed event.
//
// The events of a group keep their order. If one fails, the later ones of its group fail with [ErrGroupHalted].
//
// Calls that run at the same time share requests. All goroutines and timers of the call have ended when PublishAll returns. The
// ones that still run belong to other calls.
//
// When ctx ends, PublishAll returns at once and cancels the requests that only this call waits for. That takes some
// microseconds for each event. The error of an event is then [ErrNotSent], or [ErrUnknownOutcome] if it may be in the queue. If
// it may, and events of other calls are behind it in its group, the publisher goes on sending it for them. You may publish the
// same events again.
func (p *Publisher) PublishAll(ctx context.Context, es []Event) ([]Receipt, error) {
	return p.publishAll(ctx, es, nil)
}

// publishAll is PublishAll, without the events for which refused has an error: see refuse. They halt their groups as any failure does.
func (p *Publisher) publishAll(ctx context.Context, es []Event, refused []error) ([]Receipt, error) {
	called := p.clocks() // an event may wait here until others have their results
	l, closeLane := p.openLane(ctx)

	receipts, errs := make([]Receipt, len(es)), make([]error, len(es))
	entries := make([]*entry, len(es))
	last := make(map[string]*PublishResult) // of each group
	for i, ev := range es {
		if ctx.Err() != nil { // nothing more is accepted; checking the events would take as long as sending them
			h := p.accepting(ctx, ev)
			errs[i] = p.neverAccepted(&ev, foreign(context.Cause(ctx)))
			p.notAccepted(h, errs[i])
			continue
		}
		e := &entry{event: ev, called: called}
		if refused != nil {
			e.refused = refused[i]
		}
		entries[i], errs[i] = p.enqueue(ctx, l, e, last[ev.Group], 1)
		switch {
		case !p.fifo: // no order, and no event halts another
		case errs[i] != nil:
			last[ev.Group] = failedResult(ev, errs[i])
		default:
			last[ev.Group] = entries[i].pending
		}
	}

	p.mu.Lock()
	l.flush = true
	p.dispatch()
	p.mu.Unlock()
	for _, e := range entries {
		if e == nil {
			continue
		}
		select {
		case <-e.pending.done:
		case <-l.ctx.Done(): // not ctx: between its end and that of l.ctx a failed attempt would be repeated
		}
	}
	why := l.why()
	closeLane()

	p.mu.Lock()
	defer p.mu.Unlock()
	for i, e := range entries {
		if e != nil {
			receipts[i], errs[i] = p.readOrLeave(e, why)
		}
		errs[i] = withIndex(i, errs[i])
	}
	return receipts, errors.Join(errs...)
}
