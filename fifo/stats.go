package fifo

import (
	"errors"
	"time"
)

// Stats counts events and requests since NewPublisher, and describes the Publisher's present load.
type Stats struct {
	Published int64 `help:"Events that SQS accepted."`
	Failed    int64 `help:"Events that were not accepted."`
	Unknown   int64 `help:"Failed events that may be in the queue."`
	Halted    int64 `help:"Failed events behind another one of their group."`
	Repeated  int64 `help:"Attempts after an event's first."`
	Throttled int64 `help:"Requests in which SQS throttled the queue."`
	Requests  int64 `help:"Requests to SQS."`

	Pending      int64         `help:"Events that the publisher accepted and that have no result yet."`
	PendingBytes int64         `help:"Bytes of the pending events, as Options.MaxBytes counts."`
	Waiting      int64         `help:"Events that wait for capacity."`
	Active       int64         `help:"Requests under way."`
	Oldest       time.Duration `help:"How long ago the oldest pending event was accepted. 0: none is pending."`
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
