package fifo

import (
	"context"
	"errors"
	"time"
)

// gather is how long PublishAll waits for room before it sends what it has.
const gather = 10 * time.Millisecond

// PublishAll sends events and waits for all answers, without linger: the way to publish from a Lambda function. Receipts
// are by index, zero for an event that failed; the error joins one [*PublishError] per failed event.
//
// Events of a group keep their order, and where one is refused the group's later ones are [ErrGroupHalted].
//
// No goroutine and no timer of the call is left behind. When ctx ends, requests under way are cancelled: an event is
// [ErrNotSent], or [ErrUnknownOutcome] where it may have been enqueued, and publishing the same events again within the
// next minutes is safe.
func (p *Publisher) PublishAll(ctx context.Context, es []Event) ([]Receipt, error) {
	l, closeLane := p.openLane(ctx)
	defer closeLane()

	receipts, errs := make([]Receipt, len(es)), make([]error, len(es))
	entries := make([]*entry, len(es))
	last := make(map[string]*Pending) // of each group
	for i, ev := range es {
		entries[i], errs[i] = p.enqueue(ctx, l, ev, last[ev.Group])
		switch {
		case !p.fifo: // no order, no halt
		case errs[i] != nil:
			last[ev.Group] = refused(ev, errs[i])
		default:
			last[ev.Group] = entries[i].pending
		}
	}

	p.mu.Lock()
	l.hurry = true
	p.dispatch()
	p.mu.Unlock()
	for i, e := range entries {
		if e == nil {
			continue
		}
		select {
		case <-e.pending.done:
		case <-l.ctx.Done(): // not ctx, which ends a moment earlier: a failed attempt in between would still be repeated
			p.abandonLane(l)
			<-e.pending.done // its request's context has ended
		}
		receipts[i], errs[i] = e.pending.receipt, e.pending.err
	}
	for i, err := range errs {
		errs[i] = at(i, err)
	}
	return receipts, errors.Join(errs...)
}

// openLane returns a lane whose requests end with ctx or when Close gives up.
func (p *Publisher) openLane(ctx context.Context) (_ *lane, closeLane func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(p.ctx, func() { cancel(context.Cause(p.ctx)) })
	l := &lane{ctx: ctx, linger: gather}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.lanes = append(p.lanes, l)
	return l, func() {
		// Entries are answered under the lock, so with it the requests' goroutines have nothing left to do.
		p.mu.Lock()
		defer p.mu.Unlock()
		for i, other := range p.lanes {
			if other == l {
				p.lanes = append(p.lanes[:i:i], p.lanes[i+1:]...)
				break
			}
		}
		stop()
		cancel(nil)
	}
}
