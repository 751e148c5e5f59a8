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
}

// Resume lets a group of a FIFO queue accept events again after a failure. It is needed where nobody reads the results of
// failed events with [Pending.Wait] or [Publisher.Flush], for example because Options.OnFailure has stored them.
func (p *Publisher) Resume(group string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.latches, group)
}

// failures are failed events that wait for a caller, and for a report. They belong to the publisher's mutex.
type failures struct {
	latches map[string]*latch
	unread  map[*Pending]struct{}
	more    int // unread failures that are counted only, since the last call of Flush
	flushed int // how often Flush and Close have read the failures, from 1
	reports reports
}

func newFailures() failures {
	return failures{latches: make(map[string]*latch), unread: make(map[*Pending]struct{}), flushed: 1}
}

// failed notes the failure of an entry that has its result. halted is the number of entries that failed with it. The caller
// holds the lock.
func (p *Publisher) failed(e *entry, halted int) {
	pending := e.pending
	p.report(report{event: e.event, err: pending.err, attempts: e.attempts, halted: halted})
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
	if len(p.unread) < p.opts.MaxMessages {
		p.unread[pending] = struct{}{}
	} else {
		p.more++
		pending.counted = p.flushed
	}
}

// markRead notes that a caller has the result. The caller holds the lock.
func (p *Publisher) markRead(pending *Pending) {
	if pending.read {
		return
	}
	pending.read = true
	delete(p.unread, pending)
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
	if pending.isDone() {
		return pending.receipt, pending.err
	}
	return Receipt{}, p.publishError(e, because(ErrUnknownOutcome, why))
}

// readAll returns the failures that nobody has read, in the order the events were accepted, except for those that a caller
// waits for. The groups accept events again.
func (p *Publisher) readAll() (errs []error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, pending := range slices.SortedFunc(maps.Keys(p.unread), func(a, b *Pending) int { return cmp.Compare(a.serial, b.serial) }) {
		if pending.waiters == 0 {
			p.markRead(pending)
			errs = append(errs, pending.err)
		}
	}
	if p.more > 0 {
		errs = append(errs, fmt.Errorf("fifo: %d more events failed: see the log, or Options.OnFailure", p.more))
		p.more = 0
		clear(p.latches)
	}
	p.flushed++
	return errs
}

// report is a failure to be told of.
type report struct {
	event            Event
	err              error
	attempts, halted int
}

// reports are told in their order by one goroutine, which ends when there is none: the logger and Options.OnFailure are the
// user's, and may panic or block.
type reports struct {
	queue   []report
	idle    chan struct{} // closed when the goroutine ends; nil: it does not run
	dropped int
}

// report hands a failure to the goroutine. The caller holds the lock.
func (p *Publisher) report(r report) {
	q := &p.reports
	if len(q.queue) >= p.opts.MaxMessages {
		q.dropped++
		return
	}
	q.queue = append(q.queue, r)
	if q.idle == nil {
		q.idle = make(chan struct{})
		go p.tellReports()
	}
}

func (p *Publisher) tellReports() {
	q := &p.reports
	for {
		p.mu.Lock()
		told, dropped := q.queue, q.dropped
		q.queue, q.dropped = nil, 0
		if len(told) == 0 {
			close(q.idle)
			q.idle = nil
			p.mu.Unlock()
			return
		}
		p.mu.Unlock()
		for _, r := range told {
			p.tell(r)
		}
		if dropped > 0 {
			p.opts.Logger.Error("fifo: more events failed than could be reported", "events", dropped)
		}
	}
}

func (p *Publisher) tell(r report) {
	// An event that is halted behind another one is counted in the line of that one.
	if !errors.Is(r.err, ErrGroupHalted) {
		p.opts.Logger.Error("fifo: event failed", "event", r.event.ID, "group", r.event.Group, "attempts", r.attempts,
			"halted", r.halted, "error", reasonOf(r.err))
	}
	if p.opts.OnFailure == nil {
		return
	}
	pe, _ := errors.AsType[*PublishError](r.err)
	err := host.Contain(func() error {
		p.opts.OnFailure(r.event, pe)
		return nil
	})
	if err != nil {
		p.opts.Logger.Error("fifo: Options.OnFailure panicked", append(host.ErrorAttrs(err), "event", r.event.ID)...)
	}
}

// awaitReports waits until what failed is reported, for a short while: a function's process is frozen after its answer.
func (p *Publisher) awaitReports() {
	p.mu.Lock()
	idle := p.reports.idle
	p.mu.Unlock()
	if idle != nil {
		waitFor(idle)
	}
}
