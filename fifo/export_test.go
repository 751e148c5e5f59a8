package fifo

import "time"

// SetClocks replaces both clocks: the time since the start by the monotonic clock, and the wall clock.
func (p *Publisher) SetClocks(read func() (mono time.Duration, wall time.Time)) {
	p.clocks = func() instant {
		mono, wall := read()
		return instant{mono: mono, wall: wall}
	}
}

// Idle reports whether the publisher has no entry, no request and no timer, and all its capacity.
func (p *Publisher) Idle() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	armed := p.timer != nil && p.timer.Stop()
	return len(p.shared.entries) == 0 && len(p.groups.byID) == 0 && p.requests == 0 && len(p.lanes) == 1 && p.groups.ready.n == 0 && len(p.recent.accepted) == 0 &&
		!armed && p.limit.reading == nil && p.reports.idle == nil && p.capacity.messages == p.opts.MaxMessages && p.capacity.bytes == p.opts.MaxBytes
}

// Remembered returns how many events are remembered to find conflicts.
func (p *Publisher) Remembered() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := 0
	for _, g := range p.recent.sent {
		n += len(g)
	}
	return n
}

// SetAttemptTimeout replaces the time of one request.
func SetAttemptTimeout(o *Options, d time.Duration) { o.attemptTimeout = d }
