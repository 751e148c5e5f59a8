package fifo

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/sqsonce/sqsonce/internal/host"
)

// latch keeps a FIFO group closed after a failure: events that were accepted now would come before the failed ones, which
// the caller has yet to publish again.
type latch struct {
	event  string // the first that failed
	err    error
	unread int // failed events whose results nobody has
	logged bool
}

// Resume lets a group of a FIFO queue accept events again after a failure. Call it if your program doesn't read the results of
// failed events with [PublishResult.Get] or [Publisher.Flush], for example because Options.OnFailure has stored them.
func (p *Publisher) Resume(group string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.latches, group)
}

// failures are failed events that wait for a caller, and for a report. They belong to the publisher's mutex.
type failures struct {
	latches map[string]*latch
	unread  map[*PublishResult]struct{}
	more    int // unread failures that are counted only, since the last call of Flush
	flushed int // how often Flush and Close have read the failures, from 1
	reports reports
}

func newFailures() failures {
	return failures{latches: make(map[string]*latch), unread: make(map[*PublishResult]struct{}), flushed: 1}
}

// failed notes the failure of an entry that has its result. halted is the number of entries that failed with it. The caller
// holds the lock.
func (p *Publisher) failed(e *entry, halted int) {
	pending := e.pending
	// An event that is halted behind another one is counted in the line of that one. Who has opened a lane has each result: a relay
	// whose queue is refused would write a line for each group, again and again.
	if !errors.Is(pending.err, ErrGroupHalted) && !e.lane.opened {
		p.opts.Logger.ErrorContext(e.context(), "fifo: event failed", "event", pending.event, "group", pending.group, "attempts", e.attempts,
			"halted", halted, "error", reasonOf(pending.err))
	}
	if p.opts.OnFailure != nil {
		p.report(e)
	}
	if pending.read {
		return
	}
	if p.fifo {
		l := p.latches[pending.group]
		if l == nil {
			l = &latch{event: pending.event, err: reasonOf(pending.err)}
			p.latches[pending.group] = l
		}
		l.unread++
		pending.latch = l
	}
	switch {
	case e.lane != p.shared: // its caller reads it, or closes the lane: Flush does not
		if e.lane.unread == nil {
			e.lane.unread = make(map[*PublishResult]struct{})
		}
		e.lane.unread[pending], pending.lane = struct{}{}, e.lane
	case len(p.unread) < p.opts.MaxMessages:
		p.unread[pending] = struct{}{}
	default:
		p.more++
		pending.counted = p.flushed
	}
}

// markRead notes that a caller has the result. The caller holds the lock.
func (p *Publisher) markRead(pending *PublishResult) {
	if pending.read {
		return
	}
	pending.read = true
	delete(p.unread, pending)
	if pending.lane != nil {
		delete(pending.lane.unread, pending)
	}
	if pending.counted == p.flushed {
		p.more--
	}
	l := pending.latch
	if l == nil {
		return
	}
	if l.unread--; l.unread == 0 && p.latches[pending.group] == l {
		delete(p.latches, pending.group)
	}
}

// readOrLeave returns an entry's result to its caller. If it has none yet, the caller goes without it. The caller holds the
// lock.
func (p *Publisher) readOrLeave(e *entry, why error) (Receipt, error) {
	pending := e.pending
	p.markRead(pending)
	if pending.hasResult {
		return pending.receipt, pending.err
	}
	return Receipt{}, p.publishError(e, because(ErrUnknownOutcome, why))
}

// readAll returns the failures that nobody has read, in the order the events were accepted, except for those that a caller
// waits for. The groups accept events again.
func (p *Publisher) readAll() (errs []error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, pending := range slices.SortedFunc(maps.Keys(p.unread), func(a, b *PublishResult) int { return cmp.Compare(a.serial, b.serial) }) {
		if pending.waiters == 0 {
			p.markRead(pending)
			errs = append(errs, pending.err)
		}
	}
	if p.more > 0 {
		errs = append(errs, fmt.Errorf("fifo: %d more events failed: see the log, or Options.OnFailure", p.more))
		p.more = 0
		p.unlatch()
	}
	p.flushed++
	return errs
}

// unlatch opens the groups but those of failed events that only the callers of their lanes read: a group that was opened too
// early would have a later event before the failed one. The caller holds the lock.
func (p *Publisher) unlatch() {
	kept := make(map[string]*latch)
	for l := range p.lanes {
		for pending := range l.unread {
			latch := pending.latch
			if latch == nil || p.latches[pending.group] != latch {
				continue // Resume has removed it
			}
			if kept[pending.group] == nil {
				kept[pending.group], latch.unread = latch, 0
			}
			latch.unread++
		}
	}
	p.latches = kept
}

// reports are calls of Options.OnFailure, in their order. One goroutine makes them, and ends when all are made. The function is
// the user's, and may panic or block.
type reports struct {
	queue   []*entry
	idle    chan struct{} // closed when the goroutine ends; nil: it does not run
	dropped int
}

// report hands a failed entry to the goroutine. The caller holds the lock.
func (p *Publisher) report(e *entry) {
	q := &p.reports
	if len(q.queue) >= p.opts.MaxMessages {
		q.dropped++
		return
	}
	q.queue = append(q.queue, e)
	if q.idle == nil {
		q.idle = make(chan struct{})
		go p.makeReports()
	}
}

func (p *Publisher) makeReports() {
	for {
		failed, dropped := p.takeReports()
		if failed == nil {
			return
		}
		for _, e := range failed {
			pe, _ := errors.AsType[*PublishError](e.pending.err)
			err := host.Contain(func() error {
				p.opts.OnFailure(e.event, pe)
				return nil
			})
			if err != nil {
				p.opts.Logger.ErrorContext(e.context(), "fifo: Options.OnFailure panicked", append(host.ErrorAttrs(err), "event", e.event.ID)...)
			}
		}
		if dropped > 0 {
			p.opts.Logger.Error("fifo: Options.OnFailure is too slow: it was not called for some events", "events", dropped)
		}
	}
}

func (p *Publisher) takeReports() (failed []*entry, dropped int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	q := &p.reports
	if len(q.queue) == 0 {
		close(q.idle)
		q.idle = nil
		return nil, 0
	}
	failed, dropped = q.queue, q.dropped
	q.queue, q.dropped = nil, 0
	return failed, dropped
}

// awaitReports waits until what failed is reported and logged, for a short while: a function's process is frozen after its
// answer.
func (p *Publisher) awaitReports() {
	p.mu.Lock()
	idle := p.reports.idle
	p.mu.Unlock()
	if idle != nil {
		waitFor(idle)
	}
	p.lines.Flush(logFlush)
}
