package fifo

import (
	"errors"
	"slices"
	"time"
)

// fail ends an entry with an error, and all entries behind it in its group: they would be delivered before it if it was
// published again. The caller holds the lock.
func (p *Publisher) fail(e *entry, err error) {
	followers := p.groups.halt(e)
	p.finish(e, Receipt{}, err)
	var halted []*entry
	for _, f := range followers {
		if f.lane.hasEnded() {
			p.finish(f, Receipt{}, p.finalError(f, f.lane.why())) // its own call has ended
			continue
		}
		p.finish(f, Receipt{}, haltedBehind(e.event.ID, err, p.outcome(f)))
		halted = append(halted, f)
	}
	if !e.lane.hasEnded() || e.lane == p.shared { // else its caller decided so
		p.failed(e, len(halted))
	}
	for _, f := range halted {
		p.failed(f, 0)
	}
}

// withdraw removes an entry whose caller does not wait any longer, unless it is in flight or an attempt may have put it
// into the queue. The entries behind it move up: its own caller decided to leave it out. The caller holds the lock.
func (p *Publisher) withdraw(e *entry, why error) bool {
	if e.inFlight() || e.unknown {
		return false
	}
	p.groups.remove(e)
	p.finish(e, Receipt{}, p.finalError(e, why))
	return true
}

// finish sets the result of an entry that its group no longer has. The caller holds the lock, and gives it up with unlock.
func (p *Publisher) finish(e *entry, r Receipt, err error) {
	e.pending.receipt, e.pending.hasResult = r, true
	if err != nil {
		e.pending.err = p.publishError(e, err)
	}
	e.leaveLane()
	p.forgetLane(e.lane)
	// SQS has dropped an event with a conflict. Were it remembered as sent, the next answer to it would pass for a success.
	maybeSent := err == nil || e.unknown && !errors.Is(err, ErrDedupConflict)
	p.recent.end(e, maybeSent, r.Sequence, time.Now())
	p.capacity.free(e.size)
	p.stats.count(e.pending.err)
	if e.hooked == nil && err == nil {
		close(e.pending.done)
		return
	}
	p.answered = append(p.answered, e) // its caller may exit: hooks and the log have the failure first
	if e.lane != p.shared {
		e.lane.answering = append(slices.DeleteFunc(e.lane.answering, (*PublishResult).isDone), e.pending)
	}
}
