package fifo

import "time"

// dispatch starts the requests that are due, and sets the timer for the next one. Everything that can make a request due
// calls it: a new event, an answer, a backoff that ended, Flush. Requests are goroutines that end with their answer, so
// there are none while nothing is to be sent. The caller holds the lock.
func (p *Publisher) dispatch() {
	for {
		if p.requests >= p.opts.InFlight {
			return // an answer comes first
		}
		now := time.Now()
		l, at := p.nextLane(now)
		switch {
		case l == nil: // an event, an answer or the end of a backoff comes first
			if p.timer != nil {
				p.timer.Stop()
			}
			return
		case p.pause.until.After(now):
			p.wakeAfter(p.pause.until.Sub(now))
			return
		case at.After(now):
			p.wakeAfter(at.Sub(now))
			return
		}
		batch := l.take()
		p.requests++
		go p.send(l, batch)
	}
}

// nextLane returns the lane with a request that is due, in turns, else the one whose request is due first.
func (p *Publisher) nextLane(now time.Time) (next *lane, at time.Time) {
	for i := range p.lanes {
		n := (p.turn + i) % len(p.lanes)
		due, ok := p.lanes[n].due(now, p.hurry > 0)
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

func (p *Publisher) wakeAfter(d time.Duration) {
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
