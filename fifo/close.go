package fifo

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
)

// Flush sends what was accepted before the call without linger and waits until all of it is answered. Its error is the
// context's cause; how each event fared is told to those who wait for it.
func (p *Publisher) Flush(ctx context.Context) error {
	p.mu.Lock()
	waiting := p.outstanding()
	p.hurry++
	p.dispatch()
	p.mu.Unlock()
	defer func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.hurry--
	}()
	if left := waitAll(ctx, waiting); len(left) > 0 {
		return context.Cause(ctx)
	}
	return nil
}

// Close takes no more events, sends what was accepted and waits until all of it is answered. Later calls of Publish,
// Enqueue and PublishAll return [ErrClosed].
//
// When ctx ends first, requests under way are cancelled and nothing more is sent. The error then joins one
// [*PublishError] for each event that was not answered before: [ErrUnknownOutcome] for those that may be in the queue,
// [ErrNotSent] for those that are not.
func (p *Publisher) Close(ctx context.Context) error {
	p.mu.Lock()
	p.closed = true
	p.stop(ErrClosed)
	waiting := p.outstanding()
	p.hurry++ // for good
	p.dispatch()
	p.mu.Unlock()

	left := waitAll(ctx, waiting)
	if len(left) > 0 {
		p.giveUp(because(ErrClosed, context.Cause(ctx)))
		p.mu.Lock()
		p.abandonQueued(p.stream) // calls of PublishAll give up their own
		p.dispatch()
		p.mu.Unlock()
	}
	var errs []error
	for _, e := range left {
		<-e.pending.done // its request's context has ended
		errs = append(errs, e.pending.err)
	}
	return errors.Join(errs...)
}

// outstanding returns the entries that are not answered, in the order they were accepted. The caller holds the lock.
func (p *Publisher) outstanding() []*entry {
	return slices.SortedFunc(maps.Keys(p.entries), func(a, b *entry) int { return cmp.Compare(a.serial, b.serial) })
}

// waitAll waits until all entries are answered or ctx ends, and returns those that are not.
func waitAll(ctx context.Context, entries []*entry) []*entry {
	for i, e := range entries {
		select {
		case <-e.pending.done:
			continue
		case <-ctx.Done():
		}
		return slices.DeleteFunc(entries[i:], func(e *entry) bool { return e.pending.answered() })
	}
	return nil
}

// abandonLane gives up the entries of a lane whose context has ended. Those in a request follow when it ends.
func (p *Publisher) abandonLane(l *lane) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.abandonQueued(l)
	p.dispatch() // entries of other lanes may have moved up
}

func (p *Publisher) abandonQueued(l *lane) {
	for _, e := range p.outstanding() {
		if e.lane == l && !e.inFlight && !e.pending.answered() {
			p.abandon(e)
		}
	}
}

// abandon ends an entry whose lane's context has ended. The caller holds the lock.
func (p *Publisher) abandon(e *entry) {
	why := context.Cause(e.lane.ctx)
	if e.unknown {
		p.fail(e, e.ending(why))
		return
	}
	p.groups.remove(e)
	p.answer(e, Receipt{}, e.ending(why))
}
