package fifo

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
)

// Flush sends the events that were accepted before the call, without a linger, and waits until all of them have a result.
// Its error is the context's cause. It does not report failed events: [Publisher.Publish] and [Pending.Wait] do.
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
	if remaining := waitAll(ctx, entries); len(remaining) > 0 {
		return context.Cause(ctx)
	}
	return nil
}

// Close accepts no more events, sends those that were accepted and waits until all of them have a result. Later calls of
// Publish, Enqueue and PublishAll return [ErrClosed].
//
// When ctx ends first, the requests in flight are cancelled and nothing more is sent. The error then joins one
// [*PublishError] for each event that had no result by then: [ErrUnknownOutcome] if it may be in the queue, [ErrNotSent]
// if it is not.
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
		p.cancelAll(because(ErrClosed, context.Cause(ctx)))
		p.mu.Lock()
		p.cancelWaiting(p.shared) // calls of PublishAll cancel their own
		p.dispatch()
		p.mu.Unlock()
	}
	var errs []error
	for _, e := range remaining {
		<-e.pending.done // the context of its request has ended
		errs = append(errs, e.pending.err)
	}
	p.lines.Flush(logFlush)
	return errors.Join(errs...)
}

// unfinished returns the entries without a result, in the order they were accepted. The caller holds the lock.
func (p *Publisher) unfinished() []*entry {
	return slices.SortedFunc(maps.Keys(p.entries), func(a, b *entry) int { return cmp.Compare(a.serial, b.serial) })
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
