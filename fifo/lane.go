package fifo

import (
	"context"
	"slices"
	"time"

	"github.com/sqsonce/sqsonce/internal/host"
)

// lane gathers entries into requests. Publish and Enqueue share one lane. Each call of PublishAll has its own, because its
// requests end with the call. The groups belong to all lanes. A lane belongs to the publisher's mutex.
type lane struct {
	ctx    context.Context // of its requests; when it ends, all its entries get their results
	linger time.Duration
	flush  bool     // no linger
	ready  []*group // groups whose head may be sent and is of this lane, the longest ready first

	carried []*Pending // of entries of calls that have ended: see carry
}

// due returns when the lane has a request to send, or false if it has nothing to send.
func (l *lane) due(now time.Time, flush bool) (time.Time, bool) {
	if len(l.ready) == 0 {
		return time.Time{}, false
	}
	if flush || l.flush || len(l.ready) >= host.MaxBatch || l.fits() < len(l.ready) {
		return now, true
	}
	first := l.ready[0].head().due
	for _, g := range l.ready[1:] {
		if due := g.head().due; due.Before(first) {
			first = due
		}
	}
	return first, true
}

// fits returns how many heads of the ready groups fit into one request.
func (l *lane) fits() int {
	total := int64(0)
	for i, g := range l.ready {
		total += g.head().size
		if i == host.MaxBatch || i > 0 && total > maxMessageBytes-batchMargin {
			return i
		}
	}
	return len(l.ready)
}

// next returns the entries of the next request, each of another group, and marks them as in flight.
func (l *lane) next() []*entry {
	n := l.fits()
	batch := make([]*entry, n)
	for i, g := range l.ready[:n] {
		batch[i] = g.head()
		batch[i].inFlight = true
	}
	l.ready = slices.Delete(l.ready, 0, n)
	return batch
}

// removeReady removes a group from the ready list.
func (l *lane) removeReady(g *group) {
	if i := slices.Index(l.ready, g); i >= 0 {
		l.ready = slices.Delete(l.ready, i, i+1)
	}
}

// dispatch starts the requests that are due and sets the timer for the next one. Everything that can make a request due
// calls it: a new event, a result, the end of a backoff, Flush, Close. Each request has a goroutine that ends with it, so
// an idle publisher has none. The caller holds the lock.
func (p *Publisher) dispatch() {
	for {
		if p.requests >= p.opts.InFlight {
			return // the end of a request calls dispatch
		}
		now := time.Now()
		l, at := p.nextLane(now)
		switch {
		case l == nil: // an event, a result or the end of a backoff calls dispatch
			if p.timer != nil {
				p.timer.Stop()
			}
			return
		case p.throttle.until.After(now):
			p.dispatchAfter(p.throttle.until.Sub(now))
			return
		case at.After(now):
			p.dispatchAfter(at.Sub(now))
			return
		}
		batch := l.next()
		p.requests++
		go p.send(l, batch)
	}
}

// nextLane returns a lane with a request that is due, the lanes in turns. If no request is due, it returns the lane whose
// request is due first.
func (p *Publisher) nextLane(now time.Time) (next *lane, at time.Time) {
	for i := range p.lanes {
		n := (p.turn + i) % len(p.lanes)
		due, ok := p.lanes[n].due(now, p.flushes > 0)
		switch {
		case !ok:
		case !due.After(now):
			p.turn = n + 1
			return p.lanes[n], due
		case next == nil || due.Before(at):
			next, at = p.lanes[n], due
		}
	}
	return next, at
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

// capacity is what is free of Options.MaxMessages and MaxBytes. Events that wait for capacity get it in the order they
// came. It belongs to the publisher's mutex.
type capacity struct {
	messages int
	bytes    int64
	waiters  []*waiter
}

type waiter struct {
	size    int64
	granted chan struct{}
}

// reserve takes capacity for one message of size bytes. It returns nil, or a waiter to wait for.
func (c *capacity) reserve(size int64) *waiter {
	if len(c.waiters) == 0 && c.fits(size) {
		c.take(size)
		return nil
	}
	w := &waiter{size: size, granted: make(chan struct{})}
	c.waiters = append(c.waiters, w)
	return w
}

func (c *capacity) fits(size int64) bool { return c.messages > 0 && c.bytes >= size }

func (c *capacity) take(size int64) { c.messages, c.bytes = c.messages-1, c.bytes-size }

// free returns the capacity of one message.
func (c *capacity) free(size int64) {
	c.messages, c.bytes = c.messages+1, c.bytes+size
	c.grant()
}

// cancel ends a wait. If the waiter got its capacity meanwhile, the capacity is freed.
func (c *capacity) cancel(w *waiter) {
	if i := slices.Index(c.waiters, w); i >= 0 {
		c.waiters = slices.Delete(c.waiters, i, i+1)
		c.grant() // the next waiter may need less
		return
	}
	c.free(w.size)
}

func (c *capacity) grant() {
	for len(c.waiters) > 0 && c.fits(c.waiters[0].size) {
		c.take(c.waiters[0].size)
		close(c.waiters[0].granted)
		c.waiters = slices.Delete(c.waiters, 0, 1)
	}
}

// reserveCapacity waits until there is capacity for one message of size bytes.
func (p *Publisher) reserveCapacity(ctx context.Context, size int64) error {
	p.mu.Lock()
	w := p.capacity.reserve(size)
	p.mu.Unlock()
	if w == nil {
		return nil
	}
	var err error
	select {
	case <-w.granted:
		return nil
	case <-ctx.Done():
		err = because(ErrBufferFull, context.Cause(ctx))
	case <-p.closing:
		err = ErrClosed
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.capacity.cancel(w)
	return err
}
