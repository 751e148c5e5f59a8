package fifo

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"
)

// gatherTime is how long an event of a lane waits for others to fill its request.
const gatherTime = 10 * time.Millisecond

// cancelGrace is how long a call waits for a request that it has cancelled, and for a logger: a [Client] that ignores its
// context does not hold it up.
const cancelGrace = 100 * time.Millisecond

var errLaneClosed = errors.New("fifo: the lane is closed")

// openUserLane opens a lane, one user's share of a publisher. Its events end with its context. They fill requests together with
// the events of other lanes, of Publish and of Enqueue. An event waits 10 ms for others at most, whatever Options.Linger is.
// [Publisher.PublishAll] is a lane that is used once. When ctx ends, the publisher stops sending the lane's events:
//
//   - An event that is certainly not in the queue fails with [ErrNotSent], and one that may be with [ErrUnknownOutcome].
//   - The publisher cancels a request that only this lane waits for.
//   - An event in a request that another lane waits for has its result when SQS has answered the request.
//   - The publisher goes on sending an event that may be in the queue, if events of others are behind it in its group.
//
// closeLane ends the lane as the end of ctx does, if it hasn't ended, and waits for everything that the lane has started. That
// includes requests that it cancelled (100 ms at most, because a [Client] may ignore its context), hooks and the read of the
// queue's size limit. It waits for Options.OnFailure and log lines as PublishAll does. Then all goroutines and timers of the
// lane have ended, and its failures count as read, so that the groups accept events again. Call close when you have all
// results, or don't want them any more, even after the end of ctx, because the publisher keeps a lane until then. You may call
// it again. A hook must not call it.
//
// The publisher doesn't log a lane's failures, because you read them in the events' results. It calls Options.OnFailure as for
// any other event.
//
// A lane may serve one task or all tasks of a program, since the events of several lanes fill requests together. Only a task's
// own lane ends with the task.
//
// enqueue accepts one event and returns at once, as [Publisher.Enqueue] does. Its error is a [*PublishError], with the cause of
// the lane's context if the lane has ended. At the limit of Options.MaxMessages or MaxBytes it waits until its own context or the
// lane ends. Several events of a group may wait one behind the other. The publisher sends each when the one before it is confirmed.
// If one fails, those behind it fail with [ErrGroupHalted]. So do later ones, until the results of all of them have been read
// with [PublishResult.Get], or the lane is closed. [Publisher.Flush] doesn't read them. An event that enqueue itself refuses
// doesn't halt its group.
func (p *Publisher) openUserLane(ctx context.Context) (enqueue func(context.Context, Event) (*PublishResult, error), closeLane func()) {
	internal, end := p.openLane(ctx)
	internal.opened = true // before it has an entry
	ended := make(chan struct{}, 1)
	stop := context.AfterFunc(internal.ctx, func() {
		defer func() { ended <- struct{}{} }()
		p.mu.Lock()
		p.cancelLane(internal)
		p.unlock()
	})
	enqueue = func(ctx context.Context, e Event) (*PublishResult, error) {
		en, err := p.enqueue(ctx, internal, &entry{event: e}, nil, 0)
		if err != nil {
			return nil, err
		}
		return en.pending, nil
	}
	return enqueue, sync.OnceFunc(func() {
		if !stop() {
			<-ended
		}
		end()
	})
}

// gather has the head of a group, whose entry before it was sent, wait for other requests that are in flight: their groups will be
// ready then too. Else requests would become smaller and smaller, as groups end, and never larger. Alone it does not wait.
// The caller holds the lock.
func (p *Publisher) gather(g *group) {
	if head := g.head(); head != nil && head.lane.opened && p.requests > 1 {
		head.due = time.Now().Add(gatherTime)
	}
}

// openLane returns a lane that ends with ctx, or when Close cancels all requests. Until closeLane nobody ends its entries then.
func (p *Publisher) openLane(parent context.Context) (_ *lane, closeLane func()) {
	ctx, cancel := context.WithCancelCause(parent)
	stop := context.AfterFunc(p.ctx, func() { cancel(context.Cause(p.ctx)) })
	l := newLane(ctx, p.ctx, gatherTime)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.lanes[l] = struct{}{}
	return l, func() {
		stop()
		cancel(errLaneClosed)
		p.mu.Lock()
		var requests []*request
		if len(l.entries) > 0 { // not so as a rule
			requests = p.cancelLane(l)
		}
		for pending := range l.unread {
			p.markRead(pending)
		}
		l.closed = true
		p.forgetLane(l)
		p.unlock()
		if len(requests) > 0 {
			waitRequests(requests)
		}
		// The goroutine of a request sets the results under the lock, and calls their hooks. Whoever has the lock, and the end of
		// the hooks, after that knows that the goroutine has nothing left to do for this lane.
		p.mu.Lock()
		answering := slices.Clone(l.answering)
		p.mu.Unlock()
		for _, pending := range answering {
			<-pending.done
		}
		p.awaitLimit(parent)
		p.awaitReports()
	}
}

// cancelLane ends the entries of a lane that has ended, except for those that are sent on for other lanes and those that are in
// flight. It returns the requests that it cancelled: nobody waits for their results any more. The caller holds the lock.
func (p *Publisher) cancelLane(l *lane) (cancelled []*request) {
	for _, e := range l.unfinished() {
		r := e.request()
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
			p.markRead(e.pending) // its caller goes without it
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
