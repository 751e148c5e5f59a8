package fifo

import (
	"context"
	"time"
)

// request is one call of SendMessageBatch.
type request struct {
	ctx     context.Context
	cancel  context.CancelCauseFunc
	entries []*entry
	done    chan struct{} // closed when its entries have their results, or will be sent again
}

// isWanted reports whether a lane of the entries that are in flight still waits for them.
func (r *request) isWanted() bool {
	for _, e := range r.entries {
		if e.request() == r && !e.lane.hasEnded() {
			return true
		}
	}
	return false
}

// dispatch starts the requests that are due and sets the timer for the next one. Everything that can make a request due
// calls it: a new event, a result, the end of a backoff, Flush, Close. Each request has a goroutine that ends with it, so
// an idle publisher has none. The caller holds the lock.
func (p *Publisher) dispatch() {
	for p.requests < p.opts.MaxRequests { // else the end of a request calls dispatch
		now := time.Now()
		at, ok := p.groups.ready.due(now, p.flushes > 0)
		if !ok { // an event, a result or the end of a backoff calls dispatch
			if p.timer != nil {
				p.timer.Stop()
			}
			return
		}
		if p.throttle.until.After(now) {
			at = p.throttle.until
		}
		if at.After(now) {
			p.dispatchAfter(at.Sub(now))
			return
		}
		if batch := p.groups.take(); len(batch) > 0 {
			p.start(batch)
		}
	}
}

// start sends a request. The caller holds the lock.
func (p *Publisher) start(batch []*entry) {
	r := &request{entries: batch, done: make(chan struct{})}
	r.ctx, r.cancel = context.WithCancelCause(p.ctx)
	for _, e := range batch {
		e.group.request = r
		p.inheritWindow(e)
	}
	p.requests++
	go p.send(r)
}

func (p *Publisher) dispatchAfter(d time.Duration) {
	if p.timer != nil {
		p.timer.Reset(d)
		return
	}
	p.timer = time.AfterFunc(d, func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.dispatch()
	})
}
