package fifo

import (
	"errors"
	"time"
)

// Stats counts events and requests since NewPublisher, and describes the Publisher's present load.
type Stats struct {
	Published, Failed int64 // events that have their results. Events that were not accepted have failed
	Unknown           int64 // of the failed: may be in the queue
	Halted            int64 // of the failed: behind another one of their group
	Repeated          int64 // attempts after an event's first
	Throttled         int64 // requests in which SQS throttled the queue
	Requests          int64

	Pending      int64         // now: events that are accepted and have no result
	PendingBytes int64         // now: of them, as Options.MaxBytes counts
	Waiting      int64         // now: events that wait for capacity
	Active       int64         // now: requests under way
	Oldest       time.Duration // now: since the oldest pending event was accepted
}

// Stats returns the counters and gauges. It looks at each pending event.
func (p *Publisher) Stats() Stats {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.stats
	s.Pending = int64(p.opts.MaxMessages - p.capacity.messages)
	s.PendingBytes = p.opts.MaxBytes - p.capacity.bytes
	s.Waiting = int64(p.capacity.waiters.Len())
	s.Active = int64(p.requests)
	for l := range p.lanes {
		for e := range l.entries {
			s.Oldest = max(s.Oldest, time.Since(e.accepted))
		}
	}
	return s
}

// count counts an event that has its result.
func (s *Stats) count(err error) {
	if err == nil {
		s.Published++
		return
	}
	s.Failed++
	if errors.Is(err, ErrUnknownOutcome) {
		s.Unknown++
	}
	if errors.Is(err, ErrGroupHalted) {
		s.Halted++
	}
}
