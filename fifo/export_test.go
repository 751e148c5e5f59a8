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
	if p.capacity.messages != p.opts.MaxMessages || p.capacity.bytes != p.opts.MaxBytes || len(p.shared.carried) > 0 {
		return false
	}
	return len(p.entries) == 0 && len(p.groups.byID) == 0 && p.requests == 0 && len(p.lanes) == 1 && len(p.shared.ready) == 0 && !armed
}

// Remembered returns how many events are remembered to find conflicts.
func (p *Publisher) Remembered() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.recent.byKey)
}
