package fifo

import "time"

// Clocks is a test's reading of both clocks: time since the start by the monotonic one, and the wall's.
func (p *Publisher) SetClocks(read func() (mono time.Duration, wall time.Time)) {
	p.clocks = func() instant {
		mono, wall := read()
		return instant{mono: mono, wall: wall}
	}
}

// Idle reports whether nothing is accepted, under way or timed.
func (p *Publisher) Idle() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	armed := p.timer != nil && p.timer.Stop()
	return len(p.entries) == 0 && len(p.groups.byID) == 0 && p.requests == 0 && len(p.lanes) == 1 && len(p.stream.ready) == 0 && !armed
}

// Remembered returns how many events the collision guard holds.
func (p *Publisher) Remembered() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.guard.seen)
}
