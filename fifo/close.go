package fifo

import (
	"cmp"
	"context"
	"errors"
	"slices"
)

// Flush sends the events that were accepted before the call, without a linger, and waits until all of them have a result.
//
// Its error joins one [*PublishError] for each event that has failed and whose result you haven't read with
// [PublishResult.Get]. Those results count as read then, and their groups accept events again. If more than Options.MaxMessages
// have failed, the error has only the number of the others. If ctx ends first, the error joins the context's cause too.
func (p *Publisher) Flush(ctx context.Context) error {
	p.mu.Lock()
	entries := p.unfinished()
	p.flushes++
	p.dispatch()
	p.mu.Unlock()
	defer func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.flushes--
	}()
	var ended error
	if remaining := waitAll(ctx, entries); len(remaining) > 0 {
		ended = context.Cause(ctx)
	}
	p.awaitReports()
	failed := p.readAll()
	if len(failed) == 0 {
		return ended // as it is
	}
	return errors.Join(append(failed, ended)...)
}

// Close stops accepting events, sends the accepted ones and waits until all of them have a result. Later calls of Publish,
// Enqueue and PublishAll return [ErrClosed].
//
// When ctx ends first, Close cancels the requests in flight and stops sending. The error joins one [*PublishError] for each
// event that had no result by then, [ErrUnknownOutcome] if it may be in the queue and [ErrNotSent] if it isn't. It also joins
// one for each event that has failed and whose result you haven't read.
func (p *Publisher) Close(ctx context.Context) error {
	p.mu.Lock()
	if !p.closed {
		p.closed = true
		close(p.closing)
	}
	entries := p.unfinished()
	p.flushes++ // and never less
	p.dispatch()
	p.mu.Unlock()

	remaining := waitAll(ctx, entries)
	if len(remaining) > 0 {
		p.cancelAll(because(ErrClosed, foreign(context.Cause(ctx))))
		p.mu.Lock()
		var requests []*request
		for l := range p.lanes {
			requests = append(requests, p.cancelLane(l)...)
		}
		p.unlock()
		waitRequests(requests)
	}
	var errs []error
	for _, e := range remaining {
		if err := p.errorAtClose(e); err != nil {
			errs = append(errs, err)
		}
	}
	p.detach()
	p.awaitReports()
	return errors.Join(append(errs, p.readAll()...)...)
}

// errorAtClose returns the error of an entry that had no result when the context of Close ended.
func (p *Publisher) errorAtClose(e *entry) error {
	p.mu.Lock()
	if e.pending.waiters == 0 {
		p.markRead(e.pending)
	}
	if e.pending.hasResult {
		p.mu.Unlock()
		<-e.pending.done // after the hooks
		return e.pending.err
	}
	defer p.mu.Unlock()
	// The client ignores its context.
	return p.publishError(e, because(ErrUnknownOutcome, context.Cause(p.ctx)))
}

// unfinished returns the entries without a result, in the order they were accepted. The caller holds the lock.
func (p *Publisher) unfinished() (all []*entry) {
	for l := range p.lanes {
		all = append(all, l.unfinished()...)
	}
	slices.SortFunc(all, func(a, b *entry) int { return cmp.Compare(a.serial, b.serial) })
	return all
}

// waitAll waits until all entries have a result or ctx ends, and returns those that have none.
func waitAll(ctx context.Context, entries []*entry) []*entry {
	for i, e := range entries {
		select {
		case <-e.pending.done:
			continue
		case <-ctx.Done():
		}
		return slices.DeleteFunc(entries[i:], func(e *entry) bool { return e.pending.isDone() })
	}
	return nil
}
